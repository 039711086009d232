"""`./dev mutate`: changes the library's code in small ways, and counts the changes no test notices.

    ./dev mutate                          100 changes of each room, drawn by chance
    ./dev mutate boxes seeking            of two rooms
    ./dev mutate boxes --sample 500       more of them; --sample 0: all there are
    ./dev mutate boxes --seed 2           others
    ./dev mutate --show NAME              one of them, as a diff

A change that no test notices survives. It shows a rule that no test holds, or code that changes
nothing that users see. mutmut makes the changes, inside functions alone, and runs for each one the
tests that reach it, the quickest first. "In vain" are the longest tests that were the first to
notice none. Where a change survives, all tests of the room run once more, with the change there
from the start: mutmut is too late for what runs as modules are imported, and knows of what is
remembered only the tests that asked first. The C extension stays out, so that its Python twin is
what is tried. A room's changes, tests and outcomes lie in out/mutate/ROOM. The words of messages,
the looks of pictures and `strict` of zip are left alone.

Exit code 1 if less than 90 % of the changes were noticed in a room.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "mutate"
TO_REACH = 0.9
LAWS = ["tests/laws", "tests/test_oracle.py", "tests/test_repeats.py"]
# {room: the tests that hold its rules}; a change is tried with those of them that reach it.
TESTS = {
    "byterange": [
        *("tests/test_byterange.py", "tests/test_arguments.py"),
        "tests/test_face.py::test_dir_of_a_package_shows_what_it_promises",
    ],
    "boxes": ["tests/boxes", "tests/test_box_header.py"],
    "fragments": ["tests/indexing", "tests/fragments", *LAWS],
    "indexing": ["tests/indexing", *LAWS],
    "seeking": [
        *("tests/seeking", "tests/test_arguments.py", "tests/test_pickle.py"),
        *("tests/cli/test_verify.py", "tests/cli/test_stale_indexes.py"),
        *("tests/indexing/test_facts.py", "tests/laws/test_seeking.py"),
    ],
    "formats": [
        *("tests/formats", "tests/test_ready_indexes.py"),
        "tests/cli/test_stale_indexes.py",
    ],
    "muxing": ["tests/muxing"],
    "packaging": ["tests/packaging"],
}
CHANGED = {
    "boxes": ["src/fragdex/boxes/*", "src/fragdex/box_header.py"],
    "byterange": ["src/fragdex/byterange.py"],
}
COPIED = ("fixtures", "docs", "README.md", "constraints.txt")
# How a picture looks is for people to judge; what it shows is counted by other functions.
DRAWN = ("timeline_svg", "_text", "_rate_path", "_fragment_path", "_sync_path")
WORDS = ("expected", "found", "advice", "where")
UNMET = ("__mutmut_", "another_process")
# The examples in docstrings, but not those of every changed copy of a function; and nothing in
# other processes, which do not meet the change.
CHOSEN = [
    *("-m", "not slow", "-k", f"not {' and not '.join(UNMET)}"),
    *("--hypothesis-profile=short", "-o", "consider_namespace_packages=true"),
]
# mutmut hands the tests of a change over in any order; most changes are noticed by quick ones. It
# does not keep which test noticed a change.
CONFTEST = """
import json, os
from pathlib import Path

def pytest_collection_modifyitems(items):
    stats = Path("mutmut-stats.json")
    took = json.loads(stats.read_text())["duration_by_test"] if stats.exists() else {}
    items.sort(key=lambda item: took.get(item.nodeid, 0))

def pytest_runtest_logreport(report):
    if report.failed:
        with open("noticed.tsv", "a") as lines:
            print(os.environ.get("MUTANT_UNDER_TEST"), report.nodeid, sep="\\t", file=lines)
"""
BY_FUNCTION = "tests_by_mangled_function_name"
# mutmut's exit codes of the tests: 0, all passed; 33, none reaches it; 34, left out.
SURVIVED, UNREACHED, LEFT_OUT, TIMED_OUT = 0, 33, 34, 36
LONGEST = 900
"""Seconds that the tests of a room may take; a change may make them endless."""


def prepare(room: str) -> Path:
    """A copy of the project in which mutmut changes this room alone."""
    folder = OUT / room
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("src", "tests", *COPIED):
        source, target = ROOT / name, folder / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.so", "node_modules", "service")
            shutil.copytree(source, target, ignore=ignored if name == "tests" else _no_native)
        else:
            shutil.copy2(source, target)
    examples = [path.removesuffix("/*") for path in CHANGED.get(room, [f"src/fragdex/{room}/*"])]
    settings = {
        "source_paths": ["src"],
        # no test meets what an earlier run of the tests left in the process
        "process_isolation": "forkserver",
        "only_mutate": CHANGED.get(room, [f"src/fragdex/{room}/*"]),
        "also_copy": [*COPIED, "conftest.py"],
        "pytest_add_cli_args": CHOSEN,
        "pytest_add_cli_args_test_selection": [*TESTS[room], *examples],
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    (folder / "pyproject.toml").write_text("\n".join([project, "[tool.mutmut]", *lines, ""]))
    (folder / "conftest.py").write_text(CONFTEST)
    return folder


def _no_native(_: str, names: list[str]) -> set[str]:
    return {name for name in names if name == "__pycache__" or name.endswith(".so")}


def mutmut(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run mutmut in a room's copy; the same examples each time, so that a change alone decides."""
    environment = os.environ | {"CI": "true", "FRAGDEX_PURE_PYTHON": "1", "PYTHONPATH": ""}
    command = [sys.executable, "-m", "mutmut", *args]
    return subprocess.run(
        command, cwd=folder, env=environment, text=True, capture_output=True, check=False
    )


def from_the_start(room: str, folder: Path, change: str) -> int:
    """Run all tests of a room with a change, "" for none, that is there at once: exit code."""
    environment = os.environ | {"MUTANT_UNDER_TEST": change, "PYTHONPATH": "src"}
    command = [sys.executable, "-m", "pytest", "-x", "-qq", *CHOSEN, *TESTS[room]]
    environment |= {"CI": "true", "FRAGDEX_PURE_PYTHON": "1"}
    where = folder / "mutants"
    try:
        run = subprocess.run(
            command, cwd=where, env=environment, capture_output=True, check=False, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    return run.returncode


class Plain(ast.NodeTransformer):
    """A function without what no test should hold."""

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """What an error says is for people to judge; that it comes, and of which byte, is not."""
        self.generic_visit(node)
        if isinstance(node.exc, ast.Call):
            node.exc.args = []
            node.exc.keywords = [key for key in node.exc.keywords if key.arg not in WORDS]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`strict` of zip guards what cannot be; a finding's second argument is its words."""
        self.generic_visit(node)
        node.keywords = [key for key in node.keywords if key.arg not in WORDS]
        match node.func:
            case ast.Name("zip"):
                node.keywords = []
            case ast.Attribute(attr="add" | "note") if len(node.args) > 1:
                node.args[1] = ast.Constant("")
            case ast.Attribute(attr="fail"):
                node.args = []
        return node


def left_alone(folder: Path, names: Iterable[str]) -> set[str]:
    """Those of the changes that concern only what no test should hold."""
    found = set()
    trees: dict[str, dict[str, str]] = {}
    for name in names:
        module, _, function = name.rpartition(".")
        if module not in trees:
            path = folder / "mutants" / "src" / f"{module.replace('.', '/')}.py"
            tree = ast.parse(
                (path if path.exists() else path.with_suffix("") / "__init__.py").read_bytes()
            )
            trees[module] = {
                node.name: ast.dump(ast.Module(Plain().visit(node).body))
                for node in ast.walk(tree)
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                and "__mutmut_" in node.name
            }
        original = f"{function.rpartition('__mutmut_')[0]}__mutmut_orig"
        drawn = original.removeprefix("x_").removesuffix("__mutmut_orig") in DRAWN
        if drawn or trees[module][function] == trees[module][original]:
            found.add(name)
    return found


def outcomes(folder: Path) -> dict[str, int | None]:
    """{name of a change: exit code of its tests, None before they ran}."""
    found: dict[str, int | None] = {}
    for path in (folder / "mutants").rglob("*.meta"):
        found |= json.loads(path.read_text("utf-8"))["exit_code_by_key"]
    return found


def in_vain(folder: Path, drawn: set[str], most: int = 5) -> list[tuple[str, float]]:
    """The longest tests that tried changes and were the first to notice none, and their seconds.

    What they hold is held by quicker tests, too, as far as these changes tell.
    """
    stats = json.loads((folder / "mutants" / "mutmut-stats.json").read_text("utf-8"))
    noted = folder / "mutants" / "noticed.tsv"
    lines = [line.split("\t") for line in noted.read_text().splitlines()] if noted.exists() else []
    noticed = {test for change, test in lines if change in drawn}
    functions = {name.rpartition("__mutmut_")[0] for name in drawn}
    tests = {test for one in functions for test in stats[BY_FUNCTION].get(one, ())} - noticed
    took = {test: stats["duration_by_test"].get(test, 0.0) for test in tests}
    return sorted(took.items(), key=lambda pair: -pair[1])[:most]


def tried(room: str, sample: int, seed: int) -> bool:
    """Try changes of a room and print what survived; whether enough were noticed."""
    folder = prepare(room)
    # It makes all changes before it looks for the wanted ones.
    made = mutmut(folder, "run", "no change has this name")
    made_names = outcomes(folder)
    names = sorted(made_names.keys() - left_alone(folder, made_names))
    if not names or "nothing matches" not in made.stdout + made.stderr:
        lines = [line for line in made.stdout.splitlines() if "Running stats" not in line]
        print(*lines[-60:], made.stderr[-4000:], sep="\n")
        sys.exit(f"{room}: mutmut could not begin, see above")
    drawn = names if not 0 < sample < len(names) else random.Random(seed).sample(names, sample)
    print(f"{room}: {len(drawn)} of {len(names)} changes", flush=True)
    run = mutmut(folder, "run", *drawn)
    told = outcomes(folder)
    codes = {name: told[name] for name in sorted(drawn)}
    if None in codes.values():
        print(run.stdout[-1500:], run.stderr[-4000:], sep="\n")
        sys.exit(f"{room}: not all were tried, see above")
    counted = {name: code for name, code in codes.items() if code != LEFT_OUT}
    left = {name: code for name, code in counted.items() if code in (SURVIVED, UNREACHED)}
    if left and from_the_start(room, folder, ""):
        sys.exit(
            f"{room}: the tests fail without a change, so that survivors cannot be tried again"
        )
    left = {name: code for name, code in left.items() if not from_the_start(room, folder, name)}
    for name, code in left.items():
        print(f"  {'survived ' if code == SURVIVED else 'no test  '} {name}")
    for name, seconds in in_vain(folder, set(drawn)):
        print(f"  in vain    {name} ({seconds:.1f} s)")
    share = 1 - len(left) / max(1, len(counted))
    print(f"{room}: {share:.1%} of {len(counted)} noticed", flush=True)
    return share >= TO_REACH


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        prog="dev mutate", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(TESTS))
    parser.add_argument("--sample", type=int, default=100, help="of each room; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--show", metavar="NAME", help="print a change as a diff")
    asked = parser.parse_args(arguments)
    if asked.show:
        room = asked.show.split(".")[1]
        shown = mutmut(OUT / room, "show", asked.show)
        print(shown.stdout or shown.stderr)
        return shown.returncode
    if unknown := set(asked.rooms) - set(TESTS):
        parser.error(f"no such room: {', '.join(unknown)}")
    results = [tried(room, asked.sample, asked.seed) for room in asked.rooms or TESTS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
