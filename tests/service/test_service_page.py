"""What README and docs/service.md do with curl alone, against `fragdex serve` in a process."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fragdex

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "service.md"
TUTORIAL = ROOT / "docs" / "first-service.md"
# Two tracks, so that there is something to process; small chunks, so that there are several.
MOVIE = ROOT / "fixtures" / "frag-cmaf.mp4"
CHUNK = ("CHUNK=1048576", "CHUNK=3000")


@pytest.fixture
def started(tmp_path_factory):
    """The URL and the key that a first start prints."""
    folder = tmp_path_factory.mktemp("served")
    command = [sys.executable, "-m", "fragdex", "serve", "--data", "DIR", "--port", "0"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FRAGDEX_")}
    log = folder / "serve.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
            env=plain | {"PYTHONUNBUFFERED": "1"},
        )
        key = ""
        try:
            for line in process.stdout:
                key = line.strip() if line.startswith("ef_") else key
                if match := re.match(r"Serving (http://\S+)", line):
                    yield match[1], key
                    break
            else:
                pytest.fail(log.read_text())
        finally:
            process.terminate()
            process.communicate(timeout=60)


@pytest.fixture
def followed(started, checkout):
    """A function that runs the shell blocks of a page and gives what they print."""
    if not shutil.which("curl"):
        pytest.skip("curl is missing")
    shutil.copy(MOVIE, checkout / "movie.mp4")
    url, key = started
    assert key

    def follow(page, *, only="", change=("", "")):
        blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        script = "\n".join(block for block in blocks if only in block)
        assert change[0] in script
        process = subprocess.run(
            ["sh", "-eu", "-c", script.replace(*change)],
            cwd=checkout,
            env=os.environ
            | {"API": f"{url}/api/v1", "KEY": key, "FRAGDEX_URL": url, "FRAGDEX_KEY": key}
            | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
            | {"NO_PROXY": "*", "no_proxy": "*"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    return follow


@pytest.mark.slow
@pytest.mark.true_start
def test_the_page_of_the_service_works_with_curl_alone(followed, tmp_path):
    pytest.importorskip("PIL.Image").new("RGB", (64, 48)).save(tmp_path / "photo.png")
    output = followed(PAGE, change=CHUNK)
    assert "event: complete" in output
    assert "#EXTM3U" in output
    assert "206\n" in output
    assert '"status":"ready"' in output
    assert (tmp_path / "copy.png").read_bytes() == (tmp_path / "photo.png").read_bytes()
    # what was cut out by ranges plays the moment that was sought
    [moment] = fragdex.index(tmp_path / "moment.mp4").tracks
    assert moment.seek(1.5).time.seconds <= 1.5 < moment.stop.seconds
    assert fragdex.open_index(tmp_path / "movie.fidx").tracks


@pytest.mark.slow
@pytest.mark.true_start
def test_the_readme_works_with_curl_alone(followed, tmp_path):
    output = followed(ROOT / "README.md", only="call()")
    assert '"status":"ready"' in output
    assert '"segments":' in output
    assert '"time_ms":' in output
    assert (tmp_path / "part.mp4").stat().st_size == 1000


@pytest.mark.slow
@pytest.mark.true_start
def test_the_tutorial_of_the_service_works(followed, tmp_path):
    output = followed(TUTORIAL)
    assert "#EXTM3U" in output
    assert '"time_ms":' in output
    assert fragdex.index(tmp_path / "clip.mp4").tracks
    assert (tmp_path / "still.jpg").read_bytes().startswith(b"\xff\xd8")
