"""`./dev demo` as a new user runs it: on its film, on a file of one's own, without PyAV."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RUN = str(ROOT / "demo" / "run.py")

pytestmark = pytest.mark.slow


def run(*arguments, **more):
    for extra in ("typer", "httpx", "matplotlib"):
        pytest.importorskip(extra)
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, check=False, encoding="utf-8",
        env=os.environ | more,
    )  # fmt: skip


def test_the_film_is_made_indexed_and_checked(tmp_path):
    pytest.importorskip("av")
    done = run(RUN, "--seconds", "10", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    # two of them on the title card, where there is a browser
    assert done.stdout.count("✓") == (9 if "Left out" in done.stdout else 11), done.stdout
    made = {path.name for path in tmp_path.iterdir()}
    assert {"movie.mp4", "movie.fidx", "clip.mp4", "movie.png", "seekable.mp4"} <= made
    # Everything that was made is told at the end, with what it is for.
    told = done.stdout.rpartition("It all lies in")[2]
    for name in made:
        assert name in told


def run_without(packages, *arguments):
    """The demo where these packages are not installed, nor a browser."""
    program = (
        "import sys, runpy\n"
        f"sys.modules.update(dict.fromkeys({packages!r}))\n"
        f"sys.argv = {['run.py', *arguments]!r}\n"
        f"sys.path.insert(0, {str(ROOT / 'demo')!r})\n"
        f"runpy.run_path({RUN!r}, run_name='__main__')"
    )
    return run("-c", program, FRAGDEX_CHROMIUM="nowhere")


def test_a_file_of_ones_own(tmp_path):
    file = str(ROOT / "fixtures" / "faststart.mp4")
    # the service and the title card do the same with every film
    done = run_without(["dbos"], file, "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Left out" in done.stdout
    assert "dbos is not installed" in done.stdout
    assert "faststart.mp4" in done.stdout


def test_without_pyav_a_fixture_is_taken(tmp_path):
    done = run_without(["av"], "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "frag-default-base.mp4 is taken" in done.stdout


def test_a_file_that_is_not_there(tmp_path):
    done = run(RUN, str(tmp_path / "nowhere.mp4"))
    assert done.returncode == 2
    assert "nowhere.mp4 is no file" in done.stderr
