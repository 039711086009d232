"""Which Chromium is taken, and which walls are put around it."""

import os
import subprocess
from pathlib import Path

import pytest

from fragdex.service.errors import EngineUnavailable
from fragdex.service.renders.browser import finding, walls
from fragdex.service.renders.browser.finding import find_engine
from fragdex.service.renders.browser.walls import NOBODY, walls_for


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


def test_the_headless_shell_comes_first(bare):
    programs, home = bare
    whole = program(programs / "chromium")
    assert find_engine() == finding.Engine(whole, is_shell=False)
    cache = home / ".cache/ms-playwright"
    old = program(cache / "chromium_headless_shell-1187/chrome-linux/headless_shell")
    assert find_engine() == finding.Engine(old, is_shell=True)
    new = program(
        cache / "chromium_headless_shell-1223/chrome-headless-shell-linux64/chrome-headless-shell"
    )
    assert find_engine().path == new
    shell = program(programs / "chromium-headless-shell")
    assert find_engine() == finding.Engine(shell, is_shell=True)


def test_the_named_one_wins(bare, monkeypatch):
    programs, _ = bare
    program(programs / "chromium-headless-shell")
    mine = program(programs / "my-browser")
    monkeypatch.setenv("FRAGDEX_CHROMIUM", "my-browser")
    assert find_engine() == finding.Engine(mine, is_shell=False)
    monkeypatch.setenv("FRAGDEX_CHROMIUM", str(programs / "none"))
    with pytest.raises(EngineUnavailable, match="names no program"):
        find_engine()


def test_where_playwright_was_told_to_install(bare, monkeypatch, tmp_path):
    path = program(tmp_path / "browsers/chromium_headless_shell-9/chrome-linux/headless_shell")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    assert find_engine().path == path


@pytest.fixture
def allowing(monkeypatch):
    """A system that allows what it is told to: words that must not stand in a trial."""
    refused = set()

    def works(before, command=()):
        return not refused & {*before, *command}

    monkeypatch.setattr(walls, "_works", works)
    walls_for.cache_clear()
    yield refused
    walls_for.cache_clear()


@pytest.mark.parametrize("user", [0, 1000])
def test_every_wall_that_is_allowed_stands(allowing, monkeypatch, user):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    found = walls_for(Path("/usr/bin/x"))
    assert found.before[:2] == ("unshare", "--net" if user == 0 else "--user")
    assert found.user == (NOBODY if user == 0 else None)
    assert found.sandbox
    assert found.missing == ()


@pytest.mark.parametrize(
    ("user", "refused", "missing", "sandbox"),
    [
        (0, "--net", ["network namespace", "sandbox"], False),
        (0, "setpriv", ["runs as root", "sandbox"], False),
        (0, "--pid", ["sandbox"], False),
        (1000, "unshare", ["network namespace", "sandbox"], False),
        (1000, "--map-current-user", ["network namespace"], True),
    ],
)
def test_what_is_not_allowed_is_said(allowing, monkeypatch, user, refused, missing, sandbox):
    allowing.add(refused)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    found = walls_for(Path("/usr/bin/x"))
    assert len(found.missing) == len(missing)
    assert all(word in line for word, line in zip(missing, found.missing, strict=True))
    assert found.sandbox == sandbox


def test_trials_are_real_programs(monkeypatch):
    assert walls._works(("env", "--"))
    assert not walls._works(("no-such-program-anywhere",))
    assert not walls._works(("env", "--"), ("false",))

    def too_long(*_, **__):
        raise subprocess.TimeoutExpired("true", 1)

    monkeypatch.setattr(subprocess, "run", too_long)
    assert not walls._works(("env", "--"))
