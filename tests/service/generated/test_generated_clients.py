"""Clients that two generators write from the OpenAPI document build, and walk through the service.

An upload that is broken off and goes on, a transcription, a render: with names and types as the
generators make them.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser.finding import find_engine
from service.working import fixture_bytes

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PYTHON = ROOT / ".venv-clients" / "bin" / "python"
NODE = HERE / "node"
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

pytestmark = pytest.mark.slow


def run(*command, cwd, **environment):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def browser():
    try:
        find_engine()
    except EngineUnavailable:
        return "none"
    return "browser"


@pytest.fixture(scope="module")
def document(working, tmp_path_factory):
    pytest.importorskip("pocketsphinx")
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_text(json.dumps(working.anyone.get("/openapi.json").json()))
    return path


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A file that no other test sends to the service that they share."""
    path = tmp_path_factory.mktemp("sound") / "speech.mp4"
    path.write_bytes(fixture_bytes("speech/pauses-flac.mp4", salt="generated"))
    return path


def test_a_client_in_Python(working, document, sound, tmp_path, browser):
    if not PYTHON.exists():
        pytest.skip("openapi-python-client is missing: ./dev setup installs it in .venv-clients")
    package = tmp_path / "media_client"
    output = run(
        PYTHON, "-m", "openapi_python_client", "generate", "--path", document, "--config",
        HERE / "config.yaml", "--output-path", package, "--meta", "none",
        cwd=tmp_path, PATH=f"{PYTHON.parent}:{ENVIRONMENT['PATH']}",
    )  # fmt: skip
    assert "WARNING" not in output, output[:3000]
    names = {path.stem for path in (package / "models").iterdir()}
    # what has no name gets that of its place, and a number
    assert not [name for name in names if "type_0" in name or "response_" in name]
    walk = shutil.copy(HERE / "walk.py", tmp_path)
    output = run(PYTHON, walk, working.url, working.key, sound, browser, cwd=tmp_path)
    assert output.startswith("walked ")


def test_a_client_in_TypeScript(working, document, sound, tmp_path, browser):
    if not (NODE / "node_modules" / ".bin" / "openapi-ts").exists() or not shutil.which("node"):
        pytest.skip("@hey-api/openapi-ts is missing: ./dev setup installs it where npm is there")
    for name in ("walk.ts", "tsconfig.json", "package.json"):
        shutil.copy(NODE / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(NODE / "node_modules")
    tools = tmp_path / "node_modules" / ".bin"
    run(tools / "openapi-ts", "-i", document, "-o", "client", cwd=tmp_path)
    types = (tmp_path / "client" / "types.gen.ts").read_text()
    assert "200: unknown" not in types
    run(tools / "tsc", "--outDir", "built", cwd=tmp_path)
    output = run("node", "built/walk.js", working.url, working.key, sound, browser, cwd=tmp_path)
    assert output.startswith("walked ")
