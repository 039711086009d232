"""`fragdex doctor` looks at the machine itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fragdex.cli import doctor as doctoring
from fragdex.cli.doctor import CHECKS, Part, State, doctor


def doctor_says(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "fragdex", "doctor", *arguments],
        capture_output=True,
        check=False,
        env=os.environ | environment,
        timeout=120,
    )


def test_the_doctor_finds_what_the_tests_of_the_browser_use():
    told = doctor_says("--json")
    parts = {part["name"]: part for part in json.loads(told.stdout)}
    assert parts["chromium"]["state"] == "ok"
    assert "Chrome" in parts["chromium"]["said"]
    assert {"fragdex", "service", "media", "stills", "beginFrame", "walls", "fonts"} <= parts.keys()
    missing = [part for part in parts.values() if part["state"] == "missing"]
    assert told.returncode == (1 if missing else 0)


def test_what_is_missing_comes_with_advice_and_an_exit_code():
    told = doctor_says(FRAGDEX_CHROMIUM="/nowhere/chromium")
    assert told.returncode == 1
    lines = told.stdout.decode().splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.startswith("chromium")]
    assert lines[at].split()[1] == "missing"
    assert "apt-get install chromium-headless-shell" in lines[at + 1]


def test_every_check_says_something():
    for check in CHECKS:
        if check is not doctoring.browser:
            assert all(part.said for part in check())


@pytest.mark.parametrize(("state", "code"), [("ok", 0), ("limited", 0), ("missing", 1)])
def test_only_what_is_missing_is_a_failed_check(monkeypatch, capsys, state, code):
    monkeypatch.setattr(doctoring, "CHECKS", [lambda: [Part("x", State(state), "y", "do z")]])
    assert doctor() == code
    assert capsys.readouterr().out == f"x  {state:7}  y\n            → do z\n"


def test_engines_of_speech_are_those_that_the_service_would_use(monkeypatch):
    model = Path(__file__).parents[4] / "fixtures" / "speech" / "tiny-whisper"
    monkeypatch.setenv("FRAGDEX_WHISPER_MODEL", str(model))
    whisper = next(part for part in doctoring.speech() if part.name == "faster-whisper")
    assert whisper.state is State.OK
