"""How a browser is started and what it leaves behind."""

import os
import shlex
import shutil
import tempfile
from pathlib import Path

import pytest

from fragdex.errors import BrowserGone, EngineUnavailable
from fragdex.rendering.browser import process
from fragdex.rendering.browser.finding import Browser
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.process import Chromium, allows_sandbox
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.pool import RenderProcess
from fragdex.rendering.site import Page

SMALL = PageView(64, 64)
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
        # the folder of the browser itself, which children read whether it is the system's or not
        monkeypatch.setenv("LD_LIBRARY_PATH", str(engine.path.parent))
        return path

    yield wrap
    shutil.rmtree(folder)


def test_a_browser_that_does_not_start_with_its_sandbox_starts_without(wrapped, tmp_path):
    path = wrapped('case " $* " in *" --no-sandbox "*) ;; *) exit 1 ;; esac')
    if not allows_sandbox(path):
        pytest.skip("no sandbox to do without on this system")
    with RenderProcess(PAGE) as child:
        drawn_slice = child.draw(SMALL, range(1), tmp_path)
    assert drawn_slice.frames == 1
    assert "Chromium does not start with its sandbox on" in drawn_slice.notes.browser


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_the_browser_of_a_render_is_not_roots(wrapped, tmp_path):
    wrapped('[ "$(id -u)" != 0 ] || exit 1')
    with RenderProcess(PAGE) as child:
        drawn_slice = child.draw(SMALL, range(1), tmp_path)
    assert drawn_slice.frames == 1
    with pytest.raises(BrowserGone):
        Stage(PAGE, SMALL)


# a busy machine shows the end of the pipes before that of the process
@pytest.mark.parametrize("before", ["", "exec 3<&- 4>&-; sleep 0.3;"], ids=["at-once", "late"])
def test_a_browser_that_ends_while_it_starts_is_started_once_more(wrapped, tmp_path, before):
    seen = shlex.quote(str(tmp_path / "seen"))
    wrapped(f"[ -e {seen} ] || {{ : > {seen}; {before} kill -TRAP $$; }}")
    with Stage(PAGE, SMALL) as stage:
        assert stage.frame(0)
        assert not stage.notes.browser
    assert (tmp_path / "seen").exists()


def test_a_browser_that_never_starts_is_gone(wrapped):
    wrapped("exit 3")
    with pytest.raises(BrowserGone):
        Stage(PAGE, SMALL)


def test_a_browser_is_given_nothing_of_ours(wrapped, tmp_path, monkeypatch):
    folder = Path(tempfile.mkdtemp(prefix="fragdex-test-"))
    folder.chmod(0o777)
    wrapped(f"env > {folder}/env; ls -l /proc/$$/fd > {folder}/fds")
    monkeypatch.setenv("FRAGDEX_SECRET", "do not tell")
    with open(tmp_path / "open-file", "w") as file, Stage(PAGE, SMALL) as stage:
        assert file.fileno()
        stage.frame(0)
    assert "do not tell" not in (folder / "env").read_text()
    opened = (folder / "fds").read_text()
    assert opened.count("pipe:") == 2, opened
    assert "open-file" not in opened
    shutil.rmtree(folder)


def test_a_program_that_cannot_be_run_is_no_engine(tmp_path):
    path = tmp_path / "headless"
    path.write_text("x")
    path.chmod(0o644)
    with pytest.raises(EngineUnavailable, match="cannot be run"):
        Chromium(
            Browser(path, is_shell=True), SMALL, begin_frames=True, memory_bytes=1, sandbox=False
        )


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
