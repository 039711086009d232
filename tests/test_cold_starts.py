"""What a process imports for its first answer: each module costs its start, in every worker too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fragdex
from fragdex.testing import movie

pytestmark = pytest.mark.true_start
FIXTURES = Path(__file__).parents[1] / "fixtures"
READING = {"record", "errors", "byterange", "digest", "sources", "fragments", "seeking"}
INDEXING = {*READING, "_native", "box_header", "boxes", "indexing"}
"""Rooms that a first answer may import."""
HEAVY = ("numpy.ma", "numpy.random", "numpy.linalg.lapack_lite", "asyncio", "email", "http", "av")
"""Modules that other ways lead to, and no answer needs: np.isin imports numpy.ma, for example."""

CHILD = """
import json, sys
texts = []
def note(event, given):
    if event == "compile" and given[1] == "<string>":
        texts.append(str(given[0]))
sys.addaudithook(note)
import fragdex
{imported}
other = ("def __repr__", "def __eq__", "def __hash__", "def __setattr__")
made = [text for text in texts if any(name in text for name in other)]
{code}
print(json.dumps([sorted(sys.modules), made]))
"""


def imported(code: str, names: str = "") -> tuple[set[str], list[str]]:
    """The modules of a fresh process, and what it compiled at import of records but `__init__`."""
    child = CHILD.format(code=code, imported=names)
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True)
    modules, made = json.loads(done.stdout.splitlines()[-1])
    return set(modules), made


def rooms(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("fragdex.")}


def foreign(modules: set[str]) -> set[str]:
    """Top-level packages that are neither ours nor Python's."""
    known = {*sys.stdlib_module_names, "__main__", "fragdex"}
    names = {name.partition(".")[0] for name in modules}
    # what site starts by itself, and cython's names of numpy's parts
    return {name for name in names - known if not name.startswith(("_", "cython_runtime"))}


@pytest.mark.parametrize("name", ["moov-last.mp4", "frag-default-base.mp4", "hybrid.mp4"])
def test_a_first_index_imports_what_it_needs(name):
    modules, made = imported(f"fragdex.index({str(FIXTURES / name)!r})", "fragdex.index")
    assert rooms(modules) <= INDEXING
    assert foreign(modules) <= {"numpy", "construct"}
    assert modules.isdisjoint(HEAVY)
    assert made == []


def test_a_first_seek_of_a_saved_index_parses_no_boxes(tmp_path):
    place = str(tmp_path / "a.fidx")
    fragdex.index(FIXTURES / "frag-default-base.mp4").save(place)
    code = f"fragdex.open_index({place!r}).track(1).seek(0.5)"
    modules, made = imported(code, "fragdex.open_index")
    assert rooms(modules) <= {*READING, "formats"}
    assert foreign(modules) <= {"numpy"}
    assert modules.isdisjoint(HEAVY)
    assert made == []


def test_the_command_seek_of_a_saved_index_imports_no_numpy(tmp_path):
    place = str(tmp_path / "a.fidx")
    fragdex.index(movie(fragments=3)).save(place)
    code = f"from fragdex.__main__ import main; main(['seek', {place!r}, '0.5'])"
    modules, _ = imported(code)
    ours = {name for name in modules if name.startswith("fragdex.")}
    assert ours == {
        *("fragdex.__main__", "fragdex.cli", "fragdex.cli.saved_seek", "fragdex.errors"),
        *("fragdex.formats", "fragdex.formats.fidx_head", "fragdex.fragments"),
        *("fragdex.seeking", "fragdex.seeking.finding"),
    }
    assert foreign(modules) == set()
    assert modules.isdisjoint(("dataclasses", "inspect", "fractions", "threading", "pathlib"))


def test_the_face_alone_imports_nothing():
    modules, _ = imported("")
    assert rooms(modules) == set()
    assert foreign(modules) == set()
