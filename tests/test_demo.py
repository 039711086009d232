"""`./dev demo` as a new user runs it: on its film, on a file of one's own, without PyAV."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fragdex

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
    files = {path.name for path in tmp_path.iterdir()}
    assert {"movie.mp4", "movie.fidx", "clip.mp4", "movie.png", "seekable.mp4"} <= files
    # Everything that was made is told at the end, with what it is for.
    listing = done.stdout.rpartition("It all lies in")[2]
    for name in files:
        assert name in listing


def run_without(packages, *lines):
    """Lines of Python with the demo as `run`, where these packages and a browser are missing."""
    program = (
        "import sys",
        f"sys.modules.update(dict.fromkeys({packages!r}))",
        f"sys.path.insert(0, {str(ROOT / 'demo')!r})",
        "import run",
        *lines,
    )
    return run("-c", "\n".join(program), FRAGDEX_CHROMIUM="nowhere")


def test_a_file_of_ones_own(tmp_path):
    file = str(ROOT / "fixtures" / "faststart.mp4")
    # the service, the title card and speech do the same with every film
    arguments = ["run.py", file, "--out", str(tmp_path)]
    done = run_without(["dbos", "av"], f"sys.argv = {arguments!r}", "sys.exit(run.main())")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Left out" in done.stdout
    assert "dbos is not installed" in done.stdout
    assert "faststart.mp4" in done.stdout


def test_without_pyav_a_fixture_is_taken(tmp_path):
    movie = tmp_path / "movie.mp4"
    lines = "from pathlib import Path", f"print(run.chapter_video(None, Path({str(movie)!r}), 10))"
    done = run_without(["av"], *lines)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "frag-default-base.mp4 is taken" in done.stdout
    assert done.stdout.splitlines()[-1] == "False", "its pictures have no numbers"
    assert fragdex.index(movie).duration


def test_a_file_that_is_not_there(tmp_path):
    done = run(RUN, str(tmp_path / "nowhere.mp4"))
    assert done.returncode == 2
    assert "nowhere.mp4 is no file" in done.stderr
