"""Running the command as users do, and in this process where a test needs to look inside."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from fragdex.__main__ import main
from fragdex.testing import movie


@dataclass
class Ran:
    code: int
    out: str
    err: str
    data: bytes = b""

    @property
    def lines(self):
        return self.out.splitlines()


@pytest.fixture
def run(tmp_path):
    """run("seek", …): the real command as a process, in an empty folder."""

    def run(*arguments, stdin=b"", env=None, cwd=tmp_path):
        done = subprocess.run(
            [sys.executable, "-m", "fragdex", *map(str, arguments)],
            input=stdin,
            check=False,
            capture_output=True,
            cwd=cwd,
            env={**os.environ, **(env or {})},
        )
        out = done.stdout.decode("utf-8", "replace").replace("\r\n", "\n")
        return Ran(done.returncode, out, done.stderr.decode(), done.stdout)

    return run


@pytest.fixture
def call(tmp_path, monkeypatch, capfdbinary):
    """call("seek", …): the same in this process, which is quicker."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        capfdbinary.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return Ran(code, out.decode("utf-8", "replace"), err.decode(), out)

    return call


@pytest.fixture
def files(tmp_path):
    """A folder with four small movies: a.mp4, b.mp4 (sound, too), sidx.mp4, progressive.mp4."""
    contents = {
        "a.mp4": movie(fragments=4),
        "b.mp4": movie(fragments=5, tracks=2, reordered=True),
        "sidx.mp4": movie(fragments=6, sidx=True),
        "progressive.mp4": movie(fragments=4, tracks=2, fragmented=False, reordered=True),
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    return contents


@pytest.fixture
def fixtures(root) -> Path:
    """The folder of real files that other muxers wrote."""
    return root / "fixtures"


@pytest.fixture(scope="session")
def chromium():
    """Skips what needs a browser where there is none."""
    finding = pytest.importorskip("fragdex.rendering.browser.finding")
    from fragdex.errors import EngineUnavailable

    try:
        finding.find_engine()
    except EngineUnavailable as error:
        pytest.skip(str(error))
