"""Tests of the C extension once more, where each wrong access, overflow and leak of it fails.

It is compiled with AddressSanitizer and UndefinedBehaviorSanitizer into a folder of its own, and a
child process loads it in place of the one that is installed.
"""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from fragdex.indexing import native

ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/indexing/test_native_hostile.py",
    "tests/indexing/test_chunks.py",
    "tests/indexing/test_sums.py",
    "tests/indexing/test_shapes.py",
    "tests/indexing/test_reading.py",
    "tests/indexing/test_simple_files.py",
    "tests/repairing/test_sample_bytes.py",
    "src/fragdex/indexing/native.py",
)
LEFT_OUT = (
    "not budget and not every_way_of_reading and not does_not_tell_its_length"
    " and not fixtures_are_read_alike"
)
"""Slow, and they call the C extension no other way than the others do."""
FLAGS = (
    # -O0: nothing is optimized away before it is looked at, and it compiles in a third of the time
    *("-shared", "-fPIC", "-g1", "-O0", "-fno-omit-frame-pointer", "-DPy_LIMITED_API=0x030B0000"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
)
CHILD = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("fragdex._native", sys.argv[1])
sys.modules["fragdex._native"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from fragdex.indexing import native
assert native.compiled is module
"""
RUN_TESTS = """
import pytest
sys.exit(pytest.main(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def compiler():
    """gcc and its AddressSanitizer; without them the tests are skipped."""
    if native.compiled is None or sys.platform != "linux":
        pytest.skip("the C extension was not compiled, or not for Linux")
    try:
        asked = subprocess.run(
            ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no gcc")
    runtime = Path(asked.stdout.strip())
    if not runtime.is_absolute():
        pytest.skip("gcc has no libasan.so (on Debian: libgcc-12-dev)")
    return runtime.resolve()


@pytest.fixture(scope="module")
def sanitized(compiler, tmp_path_factory):
    """sanitized(program, *arguments): a child with the extension, and what was reported."""
    folder = tmp_path_factory.mktemp("sanitized")
    built = folder / "_native.abi3.so"
    sources = sorted(str(path) for path in (ROOT / "src" / "fragdex" / "native").glob("*.c"))
    headers = sysconfig.get_path("include")
    subprocess.run(["gcc", *FLAGS, f"-I{headers}", *sources, "-o", built], check=True)
    # Nothing of a run that counts lines or draws colours.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COV", "PYTEST"))}
    environment |= {
        "LD_PRELOAD": str(compiler),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(ROOT / "tests"),
        # the children need two plugins, and import all that are installed
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "ASAN_OPTIONS": f"detect_leaks=1:allocator_may_return_null=1:log_path={folder}/report",
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={folder}/report",
        # Others leave things, too, and only what the C extension leaves is a failure: tracemalloc
        # 24 bytes for each traceback that it has met (traceback_new), the compiled part of
        # jsonschema-rs, which a plugin of pytest imports, 640 bytes.
        "LSAN_OPTIONS": "exitcode=0:report_objects=0",
    }

    def run(program, *arguments):
        command = [sys.executable, "-c", CHILD + program, str(built), *map(str, arguments)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        reports = "".join(path.read_text() for path in folder.glob("report.*"))
        for path in folder.glob("report.*"):
            path.unlink()
        return done, reports

    started, reports = run("")
    if started.returncode or "fatal error" in reports:
        pytest.skip(
            f"no process runs under the sanitizers here: {(started.stderr + reports)[:300]}"
        )
    return run


OURS = re.compile(r"/_native\.|/fragdex/native/")
"""How reports name the extension, and its sources where they are known."""


def ours(reports):
    """What was reported of the C extension; leaks of the interpreter are left out."""
    parts = re.split(r"\n\n+", reports)
    return "\n\n".join(part for part in parts if "leak of" not in part or OURS.search(part))


def test_the_native_tests_under_the_sanitizers(sanitized):
    # What the sanitizers write as they end the process must not wait in a pipe of pytest's.
    plugins = ("-ppytest_timeout", "-p_hypothesis_pytestplugin", "-pno:cacheprovider")
    options = ("-q", "-x", "--capture=sys", *plugins, "-k", LEFT_OUT)
    done, reports = sanitized(RUN_TESTS, *options, "--hypothesis-profile=short", *TESTS)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:] + ours(reports)[:6000]
    assert not OURS.search(ours(reports)), ours(reports)[:6000]
