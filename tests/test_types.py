"""What a type checker says of the face: right uses pass without Any, wrong ones are refused."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "typing"
RIGHT, WRONG = FOLDER / "right_uses.py", FOLDER / "wrong_uses.py"


def checked(path, *options):
    """(exit code, {line: messages}) of strict mypy over a file, as a user runs it."""
    pytest.importorskip("mypy")
    flags = ["--strict", "--config-file=", "--no-error-summary", "--show-error-codes"]
    # hundreds of megabytes, which end with its process
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *flags, *options, str(path)],
        capture_output=True, text=True, check=False, cwd=FOLDER.parent.parent,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    code, lines = done.returncode, {}
    for line in done.stdout.splitlines():
        match = re.match(r"(.*?):(\d+): (error|note): (.*)", line)
        assert match, line
        if match[3] == "error":
            assert Path(match[1]).name == path.name, line
            lines.setdefault(int(match[2]), []).append(match[4])
    return code, lines


@pytest.mark.slow
def test_right_uses_pass_and_no_any_leaks():
    code, lines = checked(RIGHT, "--disallow-any-expr", "--disallow-any-unimported")
    assert lines == {}
    assert code == 0


def test_the_right_uses_run():
    runpy.run_path(str(RIGHT))


@pytest.mark.slow
def test_every_wrong_use_is_refused():
    text = WRONG.read_text("utf-8").splitlines()
    wrong = {number for number, line in enumerate(text, 1) if line.endswith("# no")}
    assert len(wrong) > 50
    _, lines = checked(WRONG)
    assert {text[n - 1] for n in wrong - lines.keys()} == set(), "mypy lets them pass"
    assert {text[n - 1] for n in lines.keys() - wrong} == set(), "mypy refuses them"
