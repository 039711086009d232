"""Which tests run: those that decide, all of them (`--all`), or those a change can touch.

`--changed[=REV]` runs the tests whose imports, followed through tests and library, reach a file
that differs from REV (by default, what is not committed yet). It reads the syntax of every file and
imports none, so what it leaves out is not even collected. A file that nobody imports (a page, a
fixture, a document) reaches the tests that name it, and the modules beside it.

Every test that starts the service or the command would reach everything: what puts everything
together is not followed (`COMPOSED`). Tests of a room reach that room instead, and those that stand
directly in `tests/service` all of the service. So this is for work in progress; what lands has
passed the whole suite.
"""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DATABASE_DECIDES = ("records", "jobs", "uploads", "survival")
"""Rooms of the service whose tests run on both databases; the others do so by `--all`."""
EVERYTHING = {
    "pyproject.toml", "constraints.txt", "dev",
    "tests/conftest.py", "tests/forkserver.py", "tests/forked_workers.py", "tests/selection.py",
}  # fmt: skip
"""Files that no import leads to, and that all tests stand on."""
WITH_COMMANDS = [ROOT / "tests" / name for name in ("agents", "cli", "client", "service")]
"""Folders of tests that run commands by their names."""
COMPOSED = {"fragdex.service.app", "fragdex.cli.app", "fragdex.__main__"}
NATIVE = ROOT / "src/fragdex/native/module.c"
CODE = {".py", ".pyi", ".c", ".h"}
_MODULE = re.compile(r"fragdex(?:\.\w+)+")
_OF_FACE = re.compile(r"\bfragdex\.(\w+)")
_WORD = re.compile(r"\w+")


def pytest_addoption(parser):
    group = parser.getgroup("selection")
    group.addoption(
        "--all", action="store_true", dest="full_product",
        help="each test on both databases, and properties with many more examples",
    )  # fmt: skip
    group.addoption(
        "--changed", nargs="?", const="HEAD", metavar="REV",
        help="only tests that reach a file which differs from REV (by default: HEAD)",
    )  # fmt: skip


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "nightly: runs by ./dev test --all alone, since others hold the same law"
    )
    revision = config.getoption("changed")
    config.reached = None if revision is None else tests_reaching(changed_files(revision))


def pytest_ignore_collect(collection_path, config):
    if config.reached is None or collection_path.suffix != ".py":
        return None
    return collection_path not in config.reached or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out the second database where the database does not decide, and what is of `--all`."""
    if config.getoption("full_product"):
        return
    left_out = [item for item in items if item.get_closest_marker("nightly") or _is_repeated(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in gone]


def _is_repeated(item):
    where = item.path.relative_to(ROOT).parts
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return (
        any(isinstance(value, str) and value == "postgresql" for value in values)
        and where[:2] == ("tests", "service")
        and where[2] not in DATABASE_DECIDES
        and not item.get_closest_marker("database_decides")
    )


def pytest_sessionfinish(session, exitstatus):
    """No test that a change can touch is a good end."""
    nothing = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    if nothing and session.config.reached is not None:
        session.exitstatus = pytest.ExitCode.OK


# ---- what a change can touch ----------------------------------------------------------------


def changed_files(revision):
    """Paths of what differs from a revision, new files included."""
    commands = (
        ["git", "diff", "--name-only", "-z", revision],
        ["git", "ls-files", "--others", "--exclude-standard", "-z"],
    )
    paths = set()
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise pytest.UsageError(f"--changed={revision}: {done.stderr.strip()}")
        paths |= {name for name in done.stdout.split("\0") if name}
    return paths


def tests_reaching(changed):
    """Paths of the files with tests that reach one of the changed files."""
    tests = {path for path in _files("tests") if path.name.startswith("test_")}
    sources = set(_files("src"))
    if changed & EVERYTHING:
        return tests | sources
    modules = {name for name, path in _modules().items() if _is_touched(path, changed)}
    reached = {
        path for path in tests
        if _is_touched(path, changed) or _closure(path) & modules or _names_one(path, changed)
    }  # fmt: skip
    # examples in the docstrings of what is changed
    return reached | {path for path in sources if str(path.relative_to(ROOT)) in changed}


def _is_touched(path, changed):
    """Whether a module is changed, or a file beside it that is not a module."""
    own = path.relative_to(ROOT)
    if path == NATIVE:
        return any(name.startswith("src/fragdex/native/") for name in changed)
    beside = {name for name in changed if Path(name).parent == own.parent}
    return str(own) in changed or any(Path(name).suffix not in CODE for name in beside)


def _names_one(path, changed):
    text = path.read_text(encoding="utf-8")
    return any(Path(name).name in text for name in changed if not name.endswith(".py"))


@cache
def _files(folder):
    return tuple(
        path for path in sorted((ROOT / folder).rglob("*.py")) if "node_modules" not in path.parts
    )


@cache
def _modules():
    """{dotted name: path} of the library and of what tests import."""
    paths = {}
    for folder in ("src", "tests"):
        for path in _files(folder):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths | {"fragdex._native": NATIVE}


@cache
def _closure(path):
    """Names of all modules that a file with tests reaches."""
    waiting = list(_imports(path) | _fixtures_imports(path) | _own_room(path))
    names = set(waiting)
    while waiting:
        name = waiting.pop()
        more = _imports(_modules()[name]) - names if name not in COMPOSED else set()
        names |= more
        waiting += more
    return names


def _own_room(path):
    """Modules of the room that a file has the tests of, by the folders of both."""
    folders = path.relative_to(ROOT).parent.parts[1:3]
    if folders == ("cli",):
        return set()  # it names its commands
    name = ".".join(("fragdex", *folders))
    return {one for one in _modules() if folders and f"{one}.".startswith(f"{name}.")}


def _fixtures_imports(path):
    """What the conftest.py above a file import, in functions only where the file names them."""
    names, words = set(), set(_WORD.findall(path.read_text(encoding="utf-8")))
    folder = path.parent
    while folder != ROOT / "tests" and folder != ROOT:
        conftest = folder / "conftest.py"
        if conftest.exists():
            tree = ast.parse(conftest.read_bytes())
            functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
            rest = [node for node in tree.body if node not in functions]
            used = set()
            # a fixture may use others
            while more := {f for f in functions if f.name in words or _is_autouse(f)} - used:
                used |= more
                words |= {arg.arg for f in more for arg in f.args.args}
            names |= _names_in(ast.Module([*rest, *used], []), conftest)
        folder = folder.parent
    return names


def _is_autouse(function):
    return any("autouse" in ast.unparse(one) for one in function.decorator_list)


@cache
def _face():
    """{public name: the module that has it} of `fragdex`."""
    tree = ast.parse((ROOT / "src/fragdex/__init__.py").read_bytes())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.name: node.module for node in nodes for alias in node.names}


@cache
def _commands():
    """{command, or group of them: the module that has it}, as the command line imports them."""
    from fragdex.cli.app import COMMANDS, SERVICE_COMMANDS, SERVICE_GROUPS

    groups = {word: next(iter(members.values())) for word, (_, members) in SERVICE_GROUPS.items()}
    every = COMMANDS | SERVICE_COMMANDS | groups
    return {word: command.module for word, command in every.items()}


@cache
def _imports(path):
    """Names of the modules that a file imports, wherever in it, or starts."""
    if path.suffix != ".py":
        return frozenset()
    if path == ROOT / "src/fragdex/__init__.py":
        return frozenset()  # whoever uses a name of the face is asked which
    return _names_in(ast.parse(path.read_bytes()), path)


def _names_in(tree, path):
    known, names = _modules(), set()
    is_test = path.is_relative_to(ROOT / "tests")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            if node.module == "fragdex":
                names |= {_face().get(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "fragdex":
            names.add(_face().get(node.attr, ""))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # a module that is started, or a program in a text
            names |= set(_MODULE.findall(node.value))
            if any(path.is_relative_to(folder) for folder in WITH_COMMANDS):
                names.add(_commands().get(node.value, ""))
            if is_test:
                names |= {_face().get(name, "") for name in _OF_FACE.findall(node.value)}
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
            if called.endswith("import_module") and not texts and not is_test:
                # which one is reckoned as it runs: those beside it
                names |= {name for name, one in known.items() if one.parent == path.parent}
        elif is_test and isinstance(node, ast.List | ast.Tuple):
            values = [one.value for one in node.elts if isinstance(one, ast.Constant)]
            if "-m" in values and "fragdex" in values:
                names.add("fragdex.__main__")
    return frozenset(name for name in names if name in known and known[name] != path)
