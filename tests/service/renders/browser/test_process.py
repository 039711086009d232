"""How a browser is started and what it leaves behind."""

import os
import shlex
import shutil
import tempfile
from pathlib import Path

import pytest

from fragdex.service.errors import BrowserGone, EngineUnavailable
from fragdex.service.renders.browser import process
from fragdex.service.renders.browser.finding import Engine
from fragdex.service.renders.browser.process import Chromium
from fragdex.service.renders.browser.stage import Stage
from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.browser.walls import Walls, walls_for
from fragdex.service.renders.site import Page

SMALL = View(64, 64)
PAGE = Page("<!doctype html><p>x")


@pytest.fixture
def wrapped(engine, monkeypatch):
    """Puts a script before the browser, where every user can read it."""
    folder = Path(tempfile.mkdtemp(prefix="fragdex-test-"))
    folder.chmod(0o755)

    def wrap(script):
        path = folder / "wrapped-headless-shell"
        path.write_text(f'#!/bin/sh\n{script}\nexec {shlex.quote(str(engine.path))} "$@"\n')
        path.chmod(0o755)
        monkeypatch.setenv("FRAGDEX_CHROMIUM", str(path))
        return path

    yield wrap
    shutil.rmtree(folder)


def test_a_browser_that_does_not_start_with_its_sandbox_starts_without(wrapped):
    path = wrapped('case " $* " in *" --no-sandbox "*) ;; *) exit 1 ;; esac')
    if not walls_for(path).sandbox:
        pytest.skip("no sandbox to do without on this system")
    with Stage(PAGE, SMALL) as stage:
        assert stage.frame(0) is not None
        assert "Chromium does not start with its sandbox on" in stage.notes.browser


def test_a_browser_that_never_starts_is_gone(wrapped):
    wrapped("exit 3")
    with pytest.raises(BrowserGone):
        Stage(PAGE, SMALL)


def test_a_browser_is_given_nothing_of_ours(wrapped, tmp_path, monkeypatch):
    told = Path(tempfile.mkdtemp(prefix="fragdex-test-"))
    told.chmod(0o777)
    wrapped(f"env > {told}/env; ls -l /proc/$$/fd > {told}/fds; id -u > {told}/user")
    monkeypatch.setenv("FRAGDEX_SECRET", "do not tell")
    with open(tmp_path / "open-file", "w") as file, Stage(PAGE, SMALL) as stage:
        assert file.fileno()
        stage.frame(0)
    assert "do not tell" not in (told / "env").read_text()
    opened = (told / "fds").read_text()
    assert opened.count("pipe:") == 2, opened
    assert "open-file" not in opened
    if os.geteuid() == 0:
        assert (told / "user").read_text().strip() != "0"
    shutil.rmtree(told)


def test_a_program_that_cannot_be_run_is_no_engine(tmp_path, monkeypatch):
    path = tmp_path / "headless"
    path.write_text("x")
    path.chmod(0o644)
    monkeypatch.setattr(process, "walls_for", lambda _: Walls((), None, False, ()))
    with pytest.raises(EngineUnavailable, match="cannot be run"):
        Chromium(Engine(path, is_shell=True), SMALL, begin_frames=True, memory_bytes=1)


def test_a_folder_that_a_killed_owner_left_goes_with_the_next_browser(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o711)
    for folder in tmp_path.parents:
        if folder.owner() == tmp_path.owner() and "pytest" in str(folder):
            folder.chmod(0o711)
    (tmp_path / "fragdex-child-left").mkdir()
    (tmp_path / "other").mkdir()
    with Stage(PAGE, SMALL):
        assert len(list(tmp_path.iterdir())) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_little_shared_memory_is_not_used(monkeypatch):
    class Told:
        f_frsize = 4096

    monkeypatch.setattr(os, "statvfs", lambda _: Told)
    Told.f_bavail = (64 << 20) // 4096
    assert process._shared_memory() == ("--disable-dev-shm-usage",)
    Told.f_bavail = (2 << 30) // 4096
    assert process._shared_memory() == ()
    monkeypatch.setattr(os, "statvfs", lambda _: (_ for _ in ()).throw(OSError))
    assert process._shared_memory() == ("--disable-dev-shm-usage",)
