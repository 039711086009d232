"""The workflows run what is here, with no more rights than they need; forms ask for what helps."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = {path.name: yaml.safe_load(path.read_text("utf-8")) for path in FOLDER.glob("*.yml")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WRITES = {
    ("release.yml", "publish"): {"id-token": "write"},
    ("release.yml", "announce"): {"contents": "write"},
    ("docs.yml", "publish"): {"pages": "write", "id-token": "write"},
}
"""The only jobs that may do more than read: trusted publishing needs an identity."""


def steps(workflow):
    for name, job in workflow["jobs"].items():
        for step in job["steps"]:
            yield name, job, step


def test_there_are_workflows_for_tests_releases_and_docs():
    assert {"test.yml", "release.yml", "docs.yml"} <= WORKFLOWS.keys()


@pytest.mark.parametrize("name", WORKFLOWS)
def test_each_may_only_read_where_it_need_not_write(name):
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    for job, plan in workflow["jobs"].items():
        assert plan.get("permissions", {}) == WRITES.get((name, job), {})
        assert plan["timeout-minutes"] <= 360
        for needed in [plan.get("needs", [])]:
            for one in [needed] if isinstance(needed, str) else needed:
                assert one in workflow["jobs"]
    # what strangers write (titles, branches) is never put into a shell
    for _, _, step in steps(workflow):
        assert not re.search(r"\$\{\{\s*github\.(event|head_ref|ref_name)", step.get("run", ""))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_they_run_is_here(name):
    usage = (ROOT / "dev").read_text("utf-8")
    for _, _, step in steps(WORKFLOWS[name]):
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d[\w.]*|release/v\d)", step["uses"])
        for word in re.findall(r"\./dev (\w+)", step.get("run", "")):
            assert re.search(rf"^  {word} ", usage, re.MULTILINE), word
        for path in re.findall(
            r"\b(?:tests|tools|fuzz|fixtures|src)/[\w./-]+", step.get("run", "")
        ):
            assert (ROOT / path).exists(), path
        for extras in re.findall(r"\.\[([\w,]+)\]", step.get("run", "")):
            assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()


def test_every_python_that_is_promised_is_tried():
    promised = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if ":: 3." in one}
    assert set(WORKFLOWS["test.yml"]["jobs"]["whole"]["strategy"]["matrix"]["python"]) == promised
    tried = WORKFLOWS["test.yml"]["jobs"]["library"]["strategy"]["matrix"]
    assert {min(promised), "3.14"} == set(tried["python"])
    assert {one.partition("-")[0] for one in tried["os"]} == {"macos", "windows"}


def test_wheels_are_built_for_every_platform_that_is_promised():
    rows = WORKFLOWS["release.yml"]["jobs"]["wheels"]["strategy"]["matrix"]["include"]
    built = {(row["os"].partition("-")[0], row["archs"].lower()) for row in rows}
    assert built == {
        ("ubuntu", "x86_64"), ("ubuntu", "aarch64"), ("macos", "arm64"), ("macos", "x86_64"),
        ("windows", "amd64"), ("windows", "arm64"),
    }  # fmt: skip


def test_only_a_tag_publishes_and_only_what_was_tried():
    jobs = WORKFLOWS["release.yml"]["jobs"]
    assert jobs["publish"]["if"] == "github.ref_type == 'tag'"
    assert set(jobs["publish"]["needs"]) == {"sdist", "wheels"}
    assert jobs["announce"]["needs"] == "publish"


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_files_are_what_their_readers_take(schema, files):
    """By the published JSON schemas; ./dev lint also asks actionlint, where it is installed."""
    pytest.importorskip("check_jsonschema")
    paths = sorted(ROOT.glob(files))
    assert paths
    options = ["--builtin-schema", f"vendor.{schema}"]
    options += ["--default-filetype", "yaml"] if schema.startswith("citation") else []
    command = [sys.executable, "-m", "check_jsonschema", *options, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("pyproject.toml", 'version = "0.1.0"', 'version = "0.2.0"'), "the tag is v0.1.0"),
        (("CITATION.cff", "version: 0.1.0", "version: 0.0.9"), "CITATION.cff"),
        (("CHANGELOG.md", "## 0.1.0, 2026-11-27", "## 0.1.0, not yet released"), "no section"),
        (None, ""),
    ],
)
def test_a_tag_is_tried_before_anything_is_built(tmp_path, change, said):
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "check_release.py", tmp_path / "tools")
    files = {
        "pyproject.toml": '[project]\nversion = "0.1.0"\n',
        "CITATION.cff": "version: 0.1.0\n",
        "CHANGELOG.md": "# Changes\n\n## 0.1.0, 2026-11-27\n\nFirst.\n\n## 0.0.1, 2026-01-01\n\n",
    }
    for name, text in files.items():
        if change is not None and change[0] == name:
            assert change[1] in text
            text = text.replace(*change[1:])
        (tmp_path / name).write_text(text)

    def tried(*options):
        command = [sys.executable, tmp_path / "tools" / "check_release.py", "v0.1.0", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = tried()
    assert done.returncode == bool(said)
    assert said in done.stderr
    if change is None:
        assert tried("--notes").stdout == "First.\n"


def test_issues_are_asked_for_the_doctor_and_the_structure_without_media():
    forms = {
        path.stem: yaml.safe_load(path.read_text("utf-8"))
        for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")
        if path.stem != "config"
    }
    for name, form in forms.items():
        assert {"name", "description", "body"} <= form.keys()
        ids = [part["id"] for part in form["body"]]
        assert len(ids) == len(set(ids)), name
    needed = {
        part["id"]
        for part in forms["wrong-answer"]["body"]
        if part.get("validations", {}).get("required")
    }
    assert {"doctor", "dump"} <= needed
    commands = set(re.findall(r"`fragdex (\w+)", str(forms)))
    cli = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert commands >= {"doctor", "dump", "info"}
    assert [one for one in commands if f"## fragdex {one}" not in cli] in ([], ["doctor"])
