"""`fragdex doctor` looks at the machine itself."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fragdex.cli import doctor as doctoring
from fragdex.cli.doctor import CHECKS, Requirement, RequirementState, doctor
from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser import finding
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.site import Page


def doctor_says(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "fragdex", "doctor", *arguments],
        capture_output=True,
        check=False,
        env=os.environ | environment,
        timeout=120,
    )


def test_the_doctor_finds_what_the_tests_of_the_browser_use():
    process = doctor_says("--json")
    told = json.loads(process.stdout)
    assert all(part["said"] for part in told)
    assert len(told) > len(CHECKS)
    parts = {part["name"]: part for part in told}
    assert parts["chromium"]["state"] == "ok"
    assert "Chrome" in parts["chromium"]["said"]
    assert {"fragdex", "service", "media", "stills", "beginFrame", "walls", "fonts"} <= parts.keys()
    missing = [part for part in parts.values() if part["state"] == "missing"]
    assert process.returncode == (1 if missing else 0)


def test_what_is_missing_comes_with_advice_and_an_exit_code():
    process = doctor_says(FRAGDEX_CHROMIUM="/nowhere/chromium")
    assert process.returncode == 1
    lines = process.stdout.decode().splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.startswith("chromium")]
    assert lines[at].split()[1] == "missing"
    assert "apt-get install chromium-headless-shell" in lines[at + 1]


def apt(folder, monkeypatch, owner, policy):
    """Puts an apt before that of the machine, which knows one package."""
    for name, text in (("dpkg-query", owner), ("apt-cache", policy)):
        path = folder / name
        path.write_text(f"#!/bin/sh\ncat <<'EOF'\n{text}\nEOF\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


POLICY = "chromium:\n  Installed: 150.0-1\n  Candidate: {}\n  Version table:\n *** 150.0-1 500"


@pytest.mark.parametrize(
    ("candidate", "days", "state", "said"),
    [
        ("150.0-1", 1, "ok", "the newest that apt offers"),
        ("156.0-1", 1, "limited", "out of date: apt offers 156.0-1"),
        ("156.0-1", None, "limited", "out of date: apt offers 156.0-1"),
        ("(none)", 1, "ok", "the newest that apt offers"),
        ("150.0-1", 30, "limited", "package lists are 30 days old"),
        ("150.0-1", None, "limited", "package lists are not there"),
    ],
)
def test_a_browser_that_is_behind_its_updates_is_named(
    tmp_path, monkeypatch, candidate, days, state, said
):
    apt(tmp_path, monkeypatch, "chromium: /usr/bin/chromium", POLICY.format(candidate))
    monkeypatch.setattr(finding, "LISTS", tmp_path / "lists")
    (tmp_path / "lists" / "partial").mkdir(parents=True)
    if days is not None:
        (tmp_path / "lists" / "x_Packages.lz4").touch()
        before = time.time() - days * 86_400
        os.utime(tmp_path / "lists" / "partial", (before, before))
    (part,) = doctoring._updates(finding.package_of(Path("/usr/bin/chromium")))
    assert part.state == state
    assert said in part.said
    assert part.advice == ("" if state == "ok" else "apt-get update && apt-get install chromium")


def test_of_a_browser_that_apt_does_not_know_no_updates_are_told(tmp_path, monkeypatch):
    apt(tmp_path, monkeypatch, "", POLICY.format("156.0-1"))
    assert doctoring._updates(finding.package_of(Path("/opt/chromium"))) == []
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert finding.package_of(Path("/usr/bin/chromium")) is None


def test_a_browser_that_is_too_old_is_missing(monkeypatch):
    """The real one, to a program that supports later ones alone."""
    later = finding.OLDEST + 1000
    monkeypatch.setattr(finding, "OLDEST", later)
    with pytest.raises(EngineUnavailable, match=f"{later} is the oldest") as caught:
        Stage(Page("<p>"), PageView(64, 64))
    assert "apt-get update" in caught.value.advice
    assert "Chrome" in str(caught.value)


@pytest.mark.parametrize(("state", "code"), [("ok", 0), ("limited", 0), ("missing", 1)])
def test_only_what_is_missing_is_a_failed_check(monkeypatch, capsys, state, code):
    monkeypatch.setattr(
        doctoring, "CHECKS", [lambda: [Requirement("x", RequirementState(state), "y", "do z")]]
    )
    assert doctor() == code
    assert capsys.readouterr().out == f"x  {state:7}  y\n            → do z\n"


def test_engines_of_speech_are_those_that_the_service_would_use(monkeypatch):
    model = Path(__file__).parents[3] / "fixtures" / "speech" / "tiny-whisper"
    monkeypatch.setenv("FRAGDEX_WHISPER_MODEL", str(model))
    whisper = next(part for part in doctoring.speech() if part.name == "faster-whisper")
    assert whisper.state is RequirementState.OK
