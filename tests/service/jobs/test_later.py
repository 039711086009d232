"""Imports that wait. In processes of their own: what is imported is imported for good."""

import subprocess
import sys

import pytest

BEGIN = """
import sys
from fragdex.service.jobs.later import put_off
with put_off("wsgiref", "wsgiref.util"):
"""


def run(inside, after=""):
    program = BEGIN + "".join(f"    {line}\n" for line in inside.splitlines()) + after
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


TELL = "print(*sorted(name for name in sys.modules if name.startswith('wsgiref')))\n"


def test_what_is_only_named_is_not_imported():
    assert run("import wsgiref\nfrom wsgiref import util", TELL) == []


@pytest.mark.parametrize("use", ["util.FileWrapper", "wsgiref.util.FileWrapper"])
def test_what_is_used_is_the_module_itself(use):
    after = f"used = {use}\nimport wsgiref.util as real\nprint(used is real.FileWrapper)\n"
    assert run("import wsgiref\nfrom wsgiref import util", after) == ["True"]


@pytest.mark.parametrize(
    "inside",
    [
        "from wsgiref.util import FileWrapper",
        "import wsgiref.headers",
        "from wsgiref.headers import Headers",
    ],
)
def test_what_is_used_at_once_is_imported_at_once(inside):
    assert "wsgiref.headers" in run(inside + "\nimport wsgiref.headers", TELL)
    assert "wsgiref" in run(inside, TELL)


def test_what_is_there_or_missing_is_left_as_it_is():
    assert run("pass", "import wsgiref.util\n" + BEGIN + "    import wsgiref\n" + TELL) == [
        "wsgiref",
        "wsgiref.util",
    ]
    assert run("pass", "with put_off('no_such_package'):\n    pass\nprint(1)\n") == ["1"]
