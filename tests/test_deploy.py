"""The files of deploy/: what they name is what the service has."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

DEPLOY = Path(__file__).parent.parent / "deploy"
YAML = sorted(DEPLOY.rglob("*.y*ml"))
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())


class Loader(yaml.SafeLoader):
    """YAML with the tags of Compose."""


Loader.add_multi_constructor("!", lambda *_: None)


@pytest.fixture(scope="module")
def settings():
    from fragdex.service.config import Settings

    return Settings.model_fields


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_yaml_is_yaml(path):
    assert any(yaml.load_all(path.read_text("utf-8"), Loader))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_variable_is_a_setting(path, settings):
    variables = set(re.findall(r"\bFRAGDEX_([A-Z_]+)\b", path.read_text("utf-8")))
    assert {name.lower() for name in variables} <= set(settings)


def test_the_dockerfile_copies_what_is_there():
    root = DEPLOY.parent
    kept = (root / ".dockerignore").read_text("utf-8").splitlines()
    needed = [line.removeprefix("!") for line in kept if line.startswith("!")]
    assert "src" in needed
    assert all((root / name).exists() for name in needed)
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    extras = re.search(r"^ARG EXTRAS=([\w,-]+)$", text, re.MULTILINE)[1].split(",")
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(extras) <= project["optional-dependencies"].keys()


def test_metrics_of_alerts_and_dashboard_exist(tmp_path):
    from fragdex.service.app import close_context, open_context
    from fragdex.service.config import Settings

    context = open_context(Settings(data=tmp_path, job_workers=0))
    try:
        context.metrics.count_request("GET", "/", 200, 0.1)
        context.metrics.count_wait("render", 0.1)
        with context.metrics.attempt("render"):
            pass
        families = list(text_string_to_metric_families(context.metrics.text().decode()))
    finally:
        close_context(context)
    known = {sample.name for family in families for sample in family.samples}
    known |= {family.name for family in families}
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yml").read_text("utf-8"))
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    board = json.loads((DEPLOY / "monitoring" / "dashboard.json").read_text("utf-8"))
    expressions += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    named = {name for one in expressions for name in re.findall(r"\b(?:fragdex|process)_\w+", one)}
    assert named
    assert named <= known
    page = (DEPLOY.parent / "docs" / "monitoring.md").read_text("utf-8")
    parts = ("_bucket", "_sum", "_count", "_created", "fragdex_requests")
    own = {name for name in known if name.startswith("fragdex_") and not name.endswith(parts)}
    assert [name for name in sorted(own) if f"`{name}`" not in page] == []


def test_slow_requests_are_those_that_nobody_holds_open():
    """Streams of events and uploads last as long as their clients want."""
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yml").read_text("utf-8"))
    every = [rule for group in rules["groups"] for rule in group["rules"]]
    (slow,) = [rule["expr"] for rule in every if rule.get("alert") == "RequestsAreSlow"]
    left_out = re.compile(re.search(r'route!~"([^"]+)"', slow)[1])
    document = json.loads((DEPLOY.parent / "docs" / "openapi.json").read_text("utf-8"))
    for path, operations in document["paths"].items():
        kinds = set()
        for operation in operations.values():
            kinds |= operation.get("requestBody", {}).get("content", {}).keys()
            for answer in operation["responses"].values():
                kinds |= answer.get("content", {}).keys() & {"text/event-stream"}
        lasts = kinds & {
            "text/event-stream", "application/octet-stream", "application/partial-upload",
        }  # fmt: skip
        if lasts:
            assert left_out.fullmatch(path), path
        if left_out.fullmatch(path):
            assert "upload" in path or lasts, path


def test_workers_of_one_machine_have_ports_that_there_are():
    unit = (DEPLOY / "systemd" / "fragdex-worker@.service").read_text("utf-8")
    port = re.search(r"^Environment=FRAGDEX_WORKER_PORT=(.*)$", unit, re.MULTILINE)[1]
    named = re.findall(r"fragdex-worker@(\d+)", unit)
    assert named
    ports = [int(port.replace("%i", instance)) for instance in named]
    assert len(set(ports)) == len(set(named))
    assert all(1024 <= one < 1 << 16 for one in ports)


def test_ports_agree():
    compose = yaml.load((DEPLOY / "compose" / "compose.yaml").read_text("utf-8"), Loader)
    scraped = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yml").read_text("utf-8"))
    ports = {
        name: one["dns_sd_configs"][0]["port"]
        for one in scraped["scrape_configs"]
        for name in one["dns_sd_configs"][0]["names"]
    }
    services = compose["services"]
    assert set(ports) <= set(services)
    assert ports["worker"] == int(services["worker"]["environment"]["FRAGDEX_WORKER_PORT"])
    settings = yaml.safe_load((DEPLOY / "kubernetes" / "settings.yaml").read_text("utf-8"))["data"]
    worker = yaml.safe_load((DEPLOY / "kubernetes" / "worker.yaml").read_text("utf-8"))
    (container,) = worker["spec"]["template"]["spec"]["containers"]
    assert container["ports"][0]["containerPort"] == int(settings["FRAGDEX_WORKER_PORT"])


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_takes_its_configuration(tmp_path):
    text = (DEPLOY / "compose" / "nginx.conf").read_text("utf-8")
    # the name exists in the network of the containers alone
    text = text.replace("server api:8000 resolve max_fails=0;", "server 127.0.0.1:8000;")
    text = text.replace("/var/log/nginx/", f"{tmp_path}/")
    whole = tmp_path / "nginx.conf"
    whole.write_text(
        f"pid {tmp_path}/pid;\nerror_log {tmp_path}/errors;\nevents {{}}\nhttp {{\n{text}}}\n"
    )
    ran = subprocess.run(
        ["nginx", "-t", "-c", whole, "-p", tmp_path, "-e", tmp_path / "errors"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_units(tmp_path):
    for path in (DEPLOY / "systemd").glob("*.service"):
        text = path.read_text("utf-8").replace("/opt/fragdex/bin/fragdex", "/bin/true")
        name = path.name.replace("@", "@1")
        (tmp_path / name).write_text(text)
        ran = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", tmp_path / name],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        own = [line for line in ran.stderr.splitlines() if str(tmp_path / name) in line]
        assert own == []
