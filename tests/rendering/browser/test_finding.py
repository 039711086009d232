"""Which Chromium is taken, and whether its own sandbox can be on."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser import finding, process
from fragdex.rendering.browser.finding import find_engine
from fragdex.rendering.browser.process import allows_sandbox
from fragdex.service.renders import worker


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without any Chromium: (its bin, the home of its user)."""
    programs, home = tmp_path / "bin", tmp_path / "home"
    programs.mkdir()
    home.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("HOME", str(home))
    for name in ("FRAGDEX_CHROMIUM", "PLAYWRIGHT_BROWSERS_PATH", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(finding, "_SHELLS", finding._SHELLS[1:])
    return programs, home


def program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_nothing_is_found_where_there_is_nothing(bare):
    with pytest.raises(EngineUnavailable, match="no Chromium on this machine") as caught:
        find_engine()
    assert "FRAGDEX_CHROMIUM" in caught.value.advice


def test_the_headless_shell_is_taken_and_a_whole_browser_where_it_is_named(bare, monkeypatch):
    programs, home = bare
    whole = program(programs / "chromium")
    with pytest.raises(EngineUnavailable, match="cannot render single frames") as caught:
        find_engine()
    assert all(system in caught.value.advice for system in ("Debian", "macOS", "Windows"))
    monkeypatch.setenv("FRAGDEX_CHROMIUM", str(whole))
    assert find_engine() == finding.Browser(whole, is_shell=False)
    monkeypatch.delenv("FRAGDEX_CHROMIUM")
    cache = home / ".cache/ms-playwright"
    old = program(cache / "chromium_headless_shell-1187/chrome-linux/headless_shell")
    assert find_engine() == finding.Browser(old, is_shell=True)
    new = program(
        cache / "chromium_headless_shell-1223/chrome-headless-shell-linux64/chrome-headless-shell"
    )
    assert find_engine().path == new
    shell = program(programs / "chromium-headless-shell")
    assert find_engine() == finding.Browser(shell, is_shell=True)


def test_the_named_one_wins(bare, monkeypatch):
    programs, _ = bare
    program(programs / "chromium-headless-shell")
    mine = program(programs / "my-browser")
    monkeypatch.setenv("FRAGDEX_CHROMIUM", "my-browser")
    assert find_engine() == finding.Browser(mine, is_shell=False)
    monkeypatch.setenv("FRAGDEX_CHROMIUM", str(programs / "none"))
    with pytest.raises(EngineUnavailable, match="names no program"):
        find_engine()


@pytest.mark.parametrize(("platform", "folder", "name"), [
    ("darwin", "Library/Caches", "chrome-headless-shell-mac-arm64/chrome-headless-shell"),
    ("win32", "AppData/Local", "chrome-headless-shell-win64/chrome-headless-shell.exe"),
    ("linux", ".cache", "chrome-headless-shell-linux64/chrome-headless-shell"),
])  # fmt: skip
def test_where_playwright_installs(bare, monkeypatch, platform, folder, name):
    _, home = bare
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    path = program(home / folder / "ms-playwright/chromium_headless_shell-1223" / name)
    monkeypatch.setattr(finding.sys, "platform", platform)
    assert find_engine() == finding.Browser(path, is_shell=True)


def test_where_playwright_was_told_to_install(bare, monkeypatch, tmp_path):
    path = program(tmp_path / "browsers/chromium_headless_shell-9/chrome-linux/headless_shell")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    assert find_engine().path == path


@pytest.mark.parametrize(
    "version",
    ["Chromium 130.0.6723.58", "HeadlessChrome/149.9.9999.999", "Chrome 99.0.1.2 x"],
)
def test_a_browser_older_than_the_oldest_is_not_taken(version):
    with pytest.raises(EngineUnavailable, match=f"{finding.OLDEST} is the oldest") as caught:
        finding.need_supported(version)
    assert version in str(caught.value)
    assert "apt-get update" in caught.value.advice


@pytest.mark.parametrize(
    "version", [f"Chromium {finding.OLDEST}.0.0.0", "HeadlessChrome/1234.0.1.2", "Chromium", ""]
)
def test_the_oldest_later_ones_and_those_that_do_not_say_are_taken(version):
    finding.need_supported(version)


def test_the_docs_name_the_oldest_browser_that_is_supported(root):
    for name in ("docs/renders.md", "CONTRIBUTING.md"):
        assert f"Chromium {finding.OLDEST} and later" in (root / name).read_text("utf-8"), name


@pytest.mark.parametrize(("version", "missing"), [("99.0.1.2", True), ("999.0.1.2", False)])
def test_a_process_that_has_an_old_browser_has_none(bare, version, missing):
    programs, _ = bare
    shell = program(programs / "chromium-headless-shell")
    shell.write_text(f"#!/bin/sh\necho Chromium {version}\n")
    context = SimpleNamespace(settings=SimpleNamespace(job_workers=1))
    state = worker.browser_state(context)
    assert worker.browser_is_missing(state) is missing
    assert version in state


@pytest.mark.parametrize(
    ("user", "refused", "allowed"),
    [
        (0, None, True),
        (0, "setpriv", False),
        (0, "--pid", False),
        (1000, None, True),
        (1000, "setpriv", True),
        (1000, "--map-current-user", True),
        (1000, "unshare", False),
        (0, "/usr/bin/x", False),
    ],
)
def test_the_sandbox_is_tried_behind_the_walls_that_it_will_have(
    monkeypatch, user, refused, allowed
):
    monkeypatch.setattr(process, "_works", lambda *words: refused not in [*words[0], *words[1]])
    monkeypatch.setattr(os, "geteuid", lambda: user)
    allows_sandbox.cache_clear()
    assert allows_sandbox(Path("/usr/bin/x")) is allowed
    allows_sandbox.cache_clear()


def test_trials_are_real_programs(monkeypatch):
    assert process._works(("env", "--"), ("true",))
    assert not process._works(("no-such-program-anywhere",), ("true",))
    assert not process._works(("env", "--"), ("false",))

    def too_long(*_, **__):
        raise subprocess.TimeoutExpired("true", 1)

    monkeypatch.setattr(subprocess, "run", too_long)
    assert not process._works(("env", "--"), ("true",))
