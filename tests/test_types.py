"""What a type checker says of the face: right uses pass without Any, wrong ones are refused."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "typing"
RIGHT, WRONG = FOLDER / "right_uses.py", FOLDER / "wrong_uses.py"


@pytest.fixture(scope="module")
def messages():
    """{file: {line: messages}} of strict mypy over both, as a user runs it."""
    pytest.importorskip("mypy")
    flags = ["--strict", "--config-file=", "--no-error-summary", "--show-error-codes"]
    # hundreds of megabytes, which end with its process
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *flags, str(RIGHT), str(WRONG)],
        capture_output=True, text=True, check=False, cwd=FOLDER.parent.parent,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    assert done.returncode == 1, "wrong uses are not errors"
    errors = {RIGHT.name: {}, WRONG.name: {}}
    for line in done.stdout.splitlines():
        match = re.match(r"(.*?):(\d+): (error|note): (.*)", line)
        assert match, line
        if match[3] == "error":
            errors[Path(match[1]).name].setdefault(int(match[2]), []).append(match[4])
    return errors


@pytest.mark.slow
def test_right_uses_pass_and_no_any_leaks(messages):
    rules = next(line for line in RIGHT.read_text("utf-8").splitlines() if "# mypy:" in line)
    assert "disallow-any-expr" in rules
    assert messages[RIGHT.name] == {}


def test_the_right_uses_run():
    runpy.run_path(str(RIGHT))


@pytest.mark.slow
def test_every_wrong_use_is_refused(messages):
    text = WRONG.read_text("utf-8").splitlines()
    wrong = {number for number, line in enumerate(text, 1) if line.endswith("# no")}
    assert len(wrong) > 50
    lines = messages[WRONG.name]
    assert {text[n - 1] for n in wrong - lines.keys()} == set(), "mypy lets them pass"
    assert {text[n - 1] for n in lines.keys() - wrong} == set(), "mypy refuses them"
