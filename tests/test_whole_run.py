"""What `./dev test` does with tests that fail beside others, and with one that hangs.

The functions of `dev` run a suite of a few lines in a folder of its own.
"""

import os
import subprocess
import sys

import pytest

# Others take seconds to import.
FEW_PLUGINS = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "xdist.plugin,pytest_cov.plugin,pytest_timeout,_hypothesis_pytestplugin",
    "PYTEST_XDIST_AUTO_NUM_WORKERS": "1",
}

PROJECT = """
[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["tests"]
filterwarnings = ["ignore::hypothesis.errors.HypothesisWarning"]
timeout = {timeout}

[tool.coverage.run]
source = ["tested"]

[tool.coverage.report]
fail_under = {least}
"""

PROFILES = """
from hypothesis import settings

settings.register_profile("short", max_examples=1)
"""

FIRST_TIME = """
from pathlib import Path

import tested


def test_passes_the_second_time():
    assert tested.exists(Path(__file__).parent / "been")
"""

TESTED = """
def exists(path):
    if path.exists():
        return True
    path.touch()
    return False


def never():
    return 1
"""

FIRST_TIME_PURE = """
import os
from pathlib import Path

from hypothesis import given, strategies

import tested


@given(strategies.none())
def test_without_the_hop(_):
    if os.environ.get("FRAGDEX_PURE_PYTHON"):
        assert tested.exists(Path(__file__).parent / "been")
"""

ALWAYS = "def test_fails_always():\n    assert False\n"
PASSES = "def test_passes():\n    assert True\n"
HANGS = "import threading\n\n\ndef test_hangs():\n    threading.Event().wait()\n"


@pytest.fixture
def run_all(root, tmp_path):
    """run_all(files, ci=, measured=, least=, timeout=): status and output of `all_tests`."""
    functions, _, _ = (root / "dev").read_text().partition("\ncommand=")
    dev = tmp_path / "dev"

    def run(files, *, ci="true", measured="", least=0, timeout=0):
        last = f"venv={sys.prefix}\nmeasures_coverage={measured}\nall_tests\n"
        dev.write_text(f"{functions}\n{last}")
        (tmp_path / "pyproject.toml").write_text(PROJECT.format(timeout=timeout, least=least))
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests" / "conftest.py").write_text(PROFILES)
        (tmp_path / "tests" / "tested.py").write_text(TESTED)
        for name, text in files.items():
            (tmp_path / "tests" / f"test_{name}.py").write_text(text)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV"))}
        done = subprocess.run(
            ["sh", dev],
            env={**kept, **FEW_PLUGINS, "CI": ci},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    return run


def listed(output, heading):
    """The tests under a heading of `dev`."""
    _, _, rest = output.partition(f"{heading}:\n")
    return [line for line in rest.splitlines() if line.startswith("tests/")][: int(heading[0])]


def test_what_fails_beside_others_and_passes_alone_does_not_fail_the_run(run_all):
    status, output = run_all({"first_time": FIRST_TIME, "passes": PASSES})
    assert status == 0, output
    heading = "1 tests failed beside others and passed alone"
    assert listed(output, heading) == [
        "tests/test_first_time.py::test_passes_the_second_time",
    ]


def test_what_fails_twice_fails_the_run(run_all):
    status, output = run_all({"first_time": FIRST_TIME, "always": ALWAYS})
    assert status != 0
    assert listed(output, "1 tests failed twice") == ["tests/test_always.py::test_fails_always"]
    assert "1 tests failed beside others and passed alone:" in output


def test_a_property_that_failed_without_the_hop_is_tried_without_it(run_all):
    pytest.importorskip("fragdex._hop", reason="the compiled hop is not built")
    status, output = run_all({"property": FIRST_TIME_PURE})
    assert status == 0, output
    heading = "1 tests failed beside others and passed alone"
    assert listed(output, heading) == ["tests/test_property.py::test_without_the_hop"]
    assert "what failed in property_tests" in output


def test_without_a_build_server_nothing_is_tried_again(run_all):
    status, output = run_all({"first_time": FIRST_TIME}, ci="")
    assert status != 0
    assert "once more" not in output


def test_more_than_twenty_failures_are_not_tried_again(run_all):
    times = "@pytest.mark.parametrize('n', range(21))"
    many = f"import pytest\n\n\n{times}\ndef test_n(n):\n    assert n > 99\n"
    status, output = run_all({"many": many})
    assert status != 0
    assert "21 tests failed: too many to try them again" in output


def test_a_file_that_cannot_be_read_fails_the_run(run_all):
    status, output = run_all({"broken": "import absent_module", "passes": PASSES})
    assert status != 0, output


def test_coverage_counts_every_run_and_fails_below_the_least(run_all):
    # the line of never() that no run reaches
    status, output = run_all({"first_time": FIRST_TIME}, measured="1", least=100)
    assert status != 0
    assert "passed alone" in output
    assert "total of" in output


def test_coverage_is_measured_only_where_it_is_asked_for(run_all):
    status, output = run_all({"passes": PASSES}, least=100)
    assert status == 0, output
    assert "1 passed" in output


def test_a_test_that_hangs_fails_under_its_name_and_the_others_go_on(run_all):
    status, output = run_all({"hangs": HANGS, "passes": PASSES}, timeout=2)
    assert status != 0
    assert "FAILED tests/test_hangs.py::test_hangs - Failed: Timeout" in output
    assert "1 failed, 1 passed" in output
