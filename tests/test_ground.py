"""Laws on the repository itself: its rooms, its dependencies, its words.

The import law is read from the syntax of every file, so that an import inside a function counts
like any other. One under TYPE_CHECKING never runs, and may point anywhere: types name real classes.
"""

import ast
import functools
import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import fragdex

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"
DECISIONS = ROOT / "docs" / "decisions"

# A room imports only rooms before it. The empty name is the face, fragdex/__init__.py: what builds
# the library knows nothing of it, what stands on the library may use it like any user.
ROOMS = (
    "record",
    "errors",
    "_native",
    "byterange",
    "responses",
    "box_header",
    "digest",
    "webhook_signature",
    "outgoing",
    "traces",
    "lru_cache",
    "sources",
    "boxes",
    "fragments",
    "tables",
    "seeking",
    "indexing",
    "formats",
    "muxing",
    "packaging",
    "repairing",
    "decoding",
    "media",
    "frames",
    "data",
    "bridges",
    "",
    "testing",
    "sandbox",
    "transcode",
    "speech",
    "rendering",
    "serving",
    "origin",
    "service",
    "client",
    "agents",
    "cli",
    "__main__",
)
# The same inside the service. `app` puts everything together; it stands last.
SERVICE_ROOMS = (
    "logs",
    "metrics",
    "config",
    "store",
    "records",
    "jobs",
    "context",
    "outbox",
    "indexing",
    "web",
    "uploads",
    "isobmff",
    "images",
    "captions",
    "unprocessed",
    "files",
    "repairs",
    "resumable",
    "renders",
    "streaming",
    "timelines",
    "transcriptions",
    "webhooks",
    "console",
    "app",
)
# The C extension, and the one room that may know of it.
NATIVE_USERS = {"indexing"}
# construct has one importer: every other file sees declarations, not the library behind them.
CONSTRUCT_IMPORTERS = {"fragdex.boxes.kinds"}
CORE = {"numpy", "construct"}
# Rooms that are an extra as a whole; everywhere else an extra is imported where it is used.
ROOMS_OF_EXTRAS = {
    "cli": {"typer", "rich"},
    "transcode": {"av"},
    "rendering": {"av"},
    "serving": {"starlette", "uvicorn"},
    "origin": {"starlette"},
    "client": {"httpx", "httpx_sse", "msgspec"},
    "agents": {"anyio", "mcp", "mcp_types", "pydantic"},
    "service": {
        "alembic",
        "anyio",
        "av",
        "dbos",
        "defusedxml",
        "fastapi",
        "obstore",
        "PIL",
        "prometheus_client",
        "pydantic",
        "pydantic_core",
        "pydantic_settings",
        "jwt",
        "sqlalchemy",
        "starlette",
        "typing_extensions",
        "uuid_utils",
        "uvicorn",
    },
}
# Distributions whose import name is another.
IMPORT_NAMES = {
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
    "opentelemetry-sdk": "opentelemetry",
    "pillow": "PIL",
    "pyjwt": "jwt",
}

# The service and its engines hold no state in modules, beside what stands below.
WITHOUT_STATE = {"outgoing", "traces", "sandbox", "transcode", "speech", "rendering", "service"}
# What functions of these rooms still change in a module of their own. State belongs to the context
# or to an object that somebody owns: a new name fails, and so does one that is gone and still here.
STATE_IN_MODULES = {
    "sandbox.child._told",
    "sandbox.processes._children",
    "rendering.browser.finding._version",
    "rendering.browser.clocks.script",
    "rendering.browser.process.allows_sandbox",
    "rendering.encode.repeat_unit",
}
CHANGING = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "move_to_end", "pop"),
    *("popitem", "popleft", "put", "remove", "setdefault", "update"),
}
MEMOS = {"cache", "lru_cache"}

TOO_LONG = 800
WORDS_WITHOUT_MEANING = {"util", "helper", "common", "core", "misc", "manager"}


def modules():
    """{dotted name: path} of everything under src."""
    paths = {}
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


MODULES = modules()
KNOWN = MODULES.keys() | {"fragdex._native"}


def syntax(module):
    """Its tree; not kept, for all of them take 170 MB in each process of the tests."""
    return ast.parse(MODULES[module].read_bytes(), MODULES[module])


def room(module):
    return [*module.split("."), ""][1]


@functools.cache
def imports(module):
    """(imported module, line, at import time) for every import of a module that can run.

    `from package import name` is an import of package.name where that is a module.
    """
    return tuple(imports_of(syntax(module), module))


def imports_of(tree, module):
    late, never = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            late.update(map(id, ast.walk(node)))
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            is_negated = isinstance(node.test, ast.UnaryOp)
            parts = node.orelse if is_negated else node.body
            never.update(id(inner) for part in parts for inner in ast.walk(part))
    for node in ast.walk(tree):
        if id(node) in never:
            continue
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = absolute(module, node)
            names = [f"{base}.{alias.name}" for alias in node.names]
            targets = [name if name in KNOWN else base for name in names]
        else:
            continue
        yield from ((target, node.lineno, id(node) not in late) for target in targets)


def absolute(module, node):
    if not node.level:
        return node.module
    is_package = MODULES[module].name == "__init__.py"
    parts = module.split(".")
    base = parts[: len(parts) - node.level + is_package]
    return ".".join(base + ([node.module] if node.module else []))


def ours(target):
    return target.split(".")[0] == "fragdex"


def place(module, line):
    return f"{MODULES[module].relative_to(ROOT)}:{line}"


def tracked_files():
    """What git has, or would take in; a source distribution has no git."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    paths = [ROOT / name.decode() for name in listed.split(b"\0") if name]
    return [path for path in paths if path.is_file()]


# ---- rooms ----------------------------------------------------------------------------------


def upward(edges, order):
    """What is wrong with (room, imported room, where): imports of rooms that come later."""
    return [
        f"{where}: {here or 'the face'} imports {there}, which comes later"
        for here, there, where in edges
        if order.index(there) > order.index(here)
    ]


def edges_between_rooms():
    for module in MODULES:
        for target, line, _ in imports(module):
            if ours(target):
                yield room(module), room(target), place(module, line)


def room_of_the_service(module):
    """The third part of fragdex.service.ROOM; none for everything else."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["fragdex", "service"] and len(parts) > 2 else None


def edges_inside_the_service():
    for module in MODULES:
        for target, line, _ in imports(module):
            here, there = room_of_the_service(module), room_of_the_service(target)
            if here and there:
                yield here, there, place(module, line)


def test_every_module_is_in_a_room():
    strangers = [name for name in MODULES if room(name) not in ROOMS]
    strangers += [
        name for name in MODULES if room_of_the_service(name) not in {None, *SERVICE_ROOMS}
    ]
    assert strangers == [], "a new room needs its place in the order, in CONTRIBUTING and in docs"


def test_every_room_in_the_order_is_there():
    # The face is "", the C extension is not a module.
    assert set(ROOMS) - {room(name) for name in MODULES} <= {"_native"}
    assert set(SERVICE_ROOMS) == {room_of_the_service(name) for name in MODULES} - {None}


def test_an_import_of_a_later_room_is_found():
    order = ("errors", "store", "web")
    assert upward([("web", "errors", "a.py:1"), ("store", "store", "b.py:2")], order) == []
    assert upward([("store", "web", "c.py:3")], order) == [
        "c.py:3: store imports web, which comes later"
    ]


def test_imports_for_types_alone_do_not_count():
    program = """
from fragdex import errors
if TYPE_CHECKING:
    from fragdex import service
if not typing.TYPE_CHECKING:
    from fragdex import boxes
else:
    from fragdex import cli
def late():
    from fragdex import origin
"""
    found = [
        (target, now) for target, _, now in imports_of(ast.parse(program), "fragdex.byterange")
    ]
    assert found == [
        ("fragdex.errors", True), ("fragdex.boxes", True), ("fragdex.origin", False),
    ]  # fmt: skip


def test_no_room_imports_a_later_one():
    assert upward(edges_between_rooms(), ROOMS) == []


def test_no_room_of_the_service_imports_a_later_one():
    edges = list(edges_inside_the_service())
    assert len(edges) > 500
    assert upward(edges, SERVICE_ROOMS) == []


@pytest.mark.parametrize(
    ("heading", "order"), [("The rooms", ROOMS), ("The rooms of the service", SERVICE_ROOMS)]
)
def test_contributing_names_every_room_in_order(heading, order):
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    part = re.split(r"^##+ ", text.split(f"# {heading}\n", 1)[1], flags=re.MULTILINE)[0]
    as_written = {"": "__init__.py", "__main__": "__main__.py"}
    assert re.findall(r"^\| `([\w.]+)` \|", part, re.MULTILINE) == [
        as_written.get(name, name) for name in order
    ]


def test_no_import_circle_even_inside_functions():
    graph = {
        module: {target for target, *_ in imports(module) if target in MODULES and target != module}
        for module in MODULES
    }
    # Take away what imports nothing that is left; what cannot be taken away goes in circles.
    while free := {module for module, targets in graph.items() if not targets & graph.keys()}:
        graph = {module: targets for module, targets in graph.items() if module not in free}
    assert sorted(graph) == []


def test_the_extension_is_known_to_the_scan_alone():
    users = {
        room(module)
        for module in MODULES
        for target, *_ in imports(module)
        if target == "fragdex._native"
    }
    assert users <= NATIVE_USERS


def names_of_modules(tree, module):
    """{imported module of ours: its names in the file; "" where names are taken out of it}."""
    names = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            base = absolute(module, node)
            for alias in node.names:
                if (name := f"{base}.{alias.name}") in KNOWN:
                    names.setdefault(name, set()).add(alias.asname or alias.name)
                elif base in KNOWN:
                    names.setdefault(base, set()).add("")
    return names


def test_a_command_imports_a_module_or_names_of_it():
    """`options.extra` and `extra` in one file are two names of one thing."""
    twice = {
        module: sorted(target for target, names in found.items() if len(names) > 1)
        for module in MODULES
        if room(module) == "cli"
        for found in [names_of_modules(syntax(module), module)]
    }
    assert {module: targets for module, targets in twice.items() if targets} == {}


# ---- the map --------------------------------------------------------------------------------


def map_rows():
    """(files, functions) of each row of the journeys in docs/architecture.md."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [
        (files, re.findall(r"`([\w.]+)`", functions))
        for row in rows
        if (files := re.findall(r"`([\w/]+\.py)`", row[1])) and len(row) == 3
        for functions in [row[2]]
    ]


def definitions(path):
    """Names of classes and functions, and of methods as Class.method."""
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            inside = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            yield from (f"{node.name}.{part.name}" for part in inside)


def test_the_journeys_are_long_enough_to_be_followed():
    assert len(map_rows()) >= 35


@pytest.mark.parametrize(
    ("files", "functions"), map_rows(), ids=[" ".join(row[0]) for row in map_rows()]
)
def test_each_file_and_function_on_the_map_is_there(files, functions):
    paths = [SRC / "fragdex" / name for name in files]
    gone = [path.relative_to(SRC).as_posix() for path in paths if not path.is_file()]
    assert gone == [], "docs/architecture.md names a file that is gone"
    known = [set(definitions(path)) for path in paths]
    lost = [name for name in functions if not any(name in names for names in known)]
    assert lost == [], "docs/architecture.md names a function that is gone"
    unused = [name for name, names in zip(files, known, strict=True) if not names & {*functions}]
    assert unused == [], "docs/architecture.md names a file and no function of it"


@pytest.mark.parametrize(
    ("heading", "order"),
    [("The rooms of the library", ROOMS), ("The rooms of the service", SERVICE_ROOMS)],
)
def test_the_map_draws_every_room_below_what_it_imports(heading, order):
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    drawing = re.search(rf"^## {heading}\n.*?```text\n(.*?)```", text, re.DOTALL | re.MULTILINE)[1]
    # Each line: rooms, then behind several spaces what is said of them.
    lines = [re.findall(r"[\w.]+", line[:32]) for line in drawing.splitlines()]
    drawn = {
        "" if name == "__init__.py" else name: at for at, row in enumerate(lines) for name in row
    }
    assert drawn.keys() == set(order) - {"_native", "__main__"}
    edges = edges_between_rooms() if order is ROOMS else edges_inside_the_service()
    wrong = [
        f"{where}: {here or 'the face'} imports {there}"
        for here, there, where in edges
        if here != there and here in drawn and there in drawn and drawn[there] >= drawn[here]
    ]
    assert wrong == []


# ---- tests ----------------------------------------------------------------------------------


def named_modules(text):
    """Modules of ours that a text names: in imports, as strings, by the names of the face."""
    words = set(re.findall(r"\bfragdex(?:\.\w+)+", text))
    for base, names in re.findall(r"from (fragdex[\w.]*) import \(?([\w, \n]+)", text):
        words |= {base, *(f"{base}.{name}" for name in re.findall(r"\w+", names))}
    words |= {
        f"fragdex.{fragdex._HOMES[name]}"
        for name in re.findall(r"\bfragdex\.(\w+)", text)
        if name in fragdex._HOMES
    }
    for word in words:
        while word not in MODULES and word:
            word = word.rpartition(".")[0]
        yield word
    for start in re.findall(r'f"(fragdex\.[\w.]+\.)\{', text):
        yield from (module for module in MODULES if module.startswith(start))


@functools.cache
def modules_of_tests():
    """{file of tests: modules that it names}; packages of node are not looked into."""
    named = {}
    for folder, below, files in os.walk(ROOT / "tests"):
        below[:] = [name for name in below if name not in ("node_modules", "node", "__pycache__")]
        for path in (Path(folder, name) for name in files if name.endswith(".py")):
            named[path.relative_to(ROOT / "tests")] = {*named_modules(path.read_text("utf-8"))}
    return named


def named_by_tests_of(room):
    """By those in its folder; of a room that is one file, by all."""
    is_file = (SRC / "fragdex" / f"{room}.py").is_file()
    return {
        module
        for path, modules in modules_of_tests().items()
        if (path.stem.startswith("test_") if is_file else path.parts[0] == room)
        for module in modules
    }


def reached_in(room_name, modules):
    """Modules of a room that its own tests name, and what those import in the room."""
    todo, reached = named_by_tests_of(room_name) & modules, set()
    while todo:
        module = todo.pop()
        reached.add(module)
        text = MODULES[module].read_text("utf-8")
        there = {target for target, *_ in imports(module)} | set(named_modules(text))
        todo |= (there & modules) - reached
    return reached


def is_named_by_its_test(module):
    path = MODULES[module].relative_to(SRC / "fragdex")
    return (ROOT / "tests" / path.parent / f"test_{path.name}").is_file()


def test_every_file_is_reached_from_the_tests_of_its_own_room():
    """tests/ROOM mirrors src/fragdex/ROOM: who changes a file knows where its tests are."""
    for name in sorted({room(module) for module in MODULES} - {"", "__main__"}):
        modules = {module for module in MODULES if room(module) == name}
        # alembic reads the folder of migrations itself
        left = [
            module
            for module in sorted(modules - reached_in(name, modules))
            if MODULES[module].name != "__init__.py" and "migrations" not in module.split(".")
            if not is_named_by_its_test(module)
        ]
        assert left == [], f"tests/{name} has no test of them"


# ---- dependencies ---------------------------------------------------------------------------


def foreign_imports():
    for module in MODULES:
        for target, line, at_import in imports(module):
            package = target.split(".")[0]
            if package != "fragdex" and package not in sys.stdlib_module_names:
                yield module, package, line, at_import


def test_a_package_names_files_that_are_there():
    """Where its docstring lists them."""
    gone = []
    for path in (SRC / "fragdex").rglob("__init__.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        there = {one.stem for one in path.parent.iterdir()}
        listed = re.findall(r"^([a-z_]+) {2,}\S", docstring, re.MULTILINE)
        gone += [f"{path.parent.name}/{name}" for name in listed if name not in there]
    assert gone == []


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def packages(requirements):
    """What requirements bring, as import names."""
    names = set()
    for text in requirements:
        name, further = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", text).groups()
        if name == "fragdex":
            names |= packages(one for extra in further.split(",") for one in EXTRAS[extra])
        else:
            names.add(IMPORT_NAMES.get(name.lower(), name.lower().replace("-", "_")))
    return names


def declared():
    """(packages of the core, packages of all extras) by pyproject.toml, as import names."""
    return packages(PROJECT["dependencies"]), packages(chain.from_iterable(EXTRAS.values()))


def advised_extras():
    """(module, what is imported, the extra that is advised where it cannot be) of every module."""
    for module in MODULES:
        for attempt in (node for node in ast.walk(syntax(module)) if isinstance(node, ast.Try)):
            extras = [
                one.value.value
                for handler in attempt.handlers
                for call in ast.walk(handler)
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "MissingExtra"
                for one in call.keywords
                if one.arg == "extra" and isinstance(one.value, ast.Constant)
            ]
            wanted = [
                name.partition(".")[0]
                for node in attempt.body
                if isinstance(node, ast.Import | ast.ImportFrom)
                for name in ([one.name for one in node.names] if isinstance(node, ast.Import)
                             else [node.module])
            ]  # fmt: skip
            yield from ((module, name, extra) for name in wanted for extra in extras)


def test_an_extra_that_is_advised_has_the_package():
    """A picture of `compare` needed Pillow, and the whole service was advised."""
    advised = {one for one in advised_extras() if one[1] != "fragdex"}
    assert len(advised) > 5
    assert {one for one in advised if one[1] not in packages(EXTRAS[one[2]])} == set()


def test_the_core_is_numpy_and_construct():
    assert declared()[0] == CORE


def test_what_is_imported_is_declared():
    core, extras = declared()
    wrong = [
        f"{place(module, line)}: {package}"
        for module, package, line, _ in foreign_imports()
        if package not in core | extras
    ]
    assert wrong == []


def test_extras_are_imported_where_they_are_used():
    wrong = [
        f"{place(module, line)}: {package}"
        for module, package, line, at_import in foreign_imports()
        if at_import and package not in CORE | ROOMS_OF_EXTRAS.get(room(module), set())
    ]
    assert wrong == []


def test_construct_has_one_importer():
    importers = {module for module, package, *_ in foreign_imports() if package == "construct"}
    assert importers <= CONSTRUCT_IMPORTERS


def test_importing_the_library_brings_in_numpy_and_construct_at_most():
    program = (
        "import sys, fragdex\n"
        "for name in getattr(fragdex, '__all__', ()): getattr(fragdex, name)\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    # Isolated and without site hooks that coverage or an editable install might bring.
    before = loaded_packages("import sys; print(*{name.split('.')[0] for name in sys.modules})")
    after = loaded_packages(program)
    strangers = after - before - sys.stdlib_module_names - CORE - {"fragdex"}
    assert strangers == set()


def test_every_module_of_the_core_can_be_imported_without_the_extras():
    names = sorted(name for name in MODULES if room(name) not in ROOMS_OF_EXTRAS)
    _, extras = declared()
    program = (
        "import importlib, sys\n"
        # None in sys.modules makes an import fail as if nothing were installed
        f"sys.modules.update(dict.fromkeys({sorted(extras - CORE)!r}))\n"
        f"for name in {names!r}: importlib.import_module(name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr


def loaded_packages(program):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    return set(done.stdout.split())


# ---- state ----------------------------------------------------------------------------------


def last_name(node):
    """`cache` of `@functools.cache`, `@cache` and `@lru_cache(4)`."""
    if isinstance(node, ast.Call):
        node = node.func
    return getattr(node, "attr", None) or getattr(node, "id", None)


def parameters(function):
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def own_names(function):
    """The names that are a function's own: its parameters, and what it assigns."""
    return parameters(function) | {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def changed_names(function):
    """The names from outside of a function whose values it changes, or binds anew."""
    shared, own = set(), own_names(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            yield from node.names
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in CHANGING:
                shared.add(node.func.value)
        elif isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            shared.add(node.value)
    yield from (node.id for node in shared if isinstance(node, ast.Name) and node.id not in own)


def state_of(tree):
    """What lives in a module and changes.

    A memo of a function without parameters is a constant that is made when it is first needed. An
    object of ours that is called as constants are (`IMAGES`) is one, whatever its methods are.
    """
    bound = {
        target.id
        for node in tree.body
        for target in getattr(node, "targets", [getattr(node, "target", None)])
        if isinstance(target, ast.Name)
        and not (target.id.isupper() and (last_name(node.value) or "a")[0].isupper())
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if MEMOS & set(map(last_name, function.decorator_list)) and parameters(function):
            yield function.name
        yield from bound.intersection(changed_names(function))


def test_state_in_a_module_is_found():
    program = """
names = set()
fixed = {}
count = 0
owned = []
table: dict = {}

@functools.lru_cache(maxsize=4)
def square(number): return number * number

@cache
def constant(): return 1

def change(owned):
    global count
    names.add(1)
    table["a"] = 1
    owned.append(1)
    return fixed.get("a")
"""
    assert set(state_of(ast.parse(program))) == {"square", "names", "table", "count"}


def test_modules_of_the_service_and_its_engines_hold_no_state():
    state_names = {
        f"{module.removeprefix('fragdex.')}.{name}"
        for module in MODULES
        if room(module) in WITHOUT_STATE
        for name in state_of(syntax(module))
    }
    assert state_names == STATE_IN_MODULES


# ---- files and words ------------------------------------------------------------------------


def test_no_file_is_too_long_to_be_one_concept():
    lines = {name: len(path.read_bytes().splitlines()) for name, path in MODULES.items()}
    assert {name: count for name, count in lines.items() if count > TOO_LONG} == {}


def test_names_say_what_is_inside():
    vague = [
        path.relative_to(ROOT).as_posix()
        for path in tracked_files()
        if path.suffix in (".py", ".c")
        and {
            word.removesuffix("s")
            for part in path.relative_to(ROOT).with_suffix("").parts
            for word in part.lower().split("_")
        }
        & WORDS_WITHOUT_MEANING
    ]
    assert vague == []


def test_no_docstring_says_nothing():
    """One that only points elsewhere, or says a number, costs a look-up and gives none."""
    empty = re.compile(r'"""(?:\d+|See above|One for each|All of it|As said)\."""')
    assert [name for name in MODULES if empty.search(MODULES[name].read_text("utf-8"))] == []


# Written in pieces, so that this file does not find itself.
OF_ONE_MACHINE = [
    "/(?:" + "work|root|farm" + r")/[\w.]",
    "/(?:" + "home|Users" + r")/(?!you\b|user\b|me\b)\w+/",
    r"[A-Z]:\\" + "Users",
    "/tmp/" + "plan",
    "pypi" + r"\.org/simple",
    "files" + r"\.pythonhosted\.org",
    "registry" + r"\.(?:npmjs|yarnpkg)\.",
    "--(?:extra-)?" + "index-url",
    "--find" + "-links",
    '"resolved"' + ":",
]


def line_of(data, hit):
    return data.count(b"\n", 0, hit.start()) + 1


def test_no_file_knows_a_machine_or_a_package_registry():
    pattern = re.compile("|".join(OF_ONE_MACHINE).encode())
    places = []
    for path in tracked_files():
        data = path.read_bytes()
        if b"\0" in data[:8192]:
            continue  # media and indexes
        places += [
            f"{path.relative_to(ROOT)}:{line_of(data, hit)}: {hit[0].decode()}"
            for hit in pattern.finditer(data)
        ]
    assert places == []


def test_versions_are_pinned_by_name_and_number_alone():
    for path in sorted(ROOT.glob("constraints*.txt")):
        lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
        odd = [line for line in lines if not re.fullmatch(r"#.*|[\w.-]+==[\w.+!]+", line)]
        assert odd == [], path.name


# ---- decisions ------------------------------------------------------------------------------


def test_every_decision_is_listed_in_order():
    listed = re.findall(
        r"\]\((\d{4}-[a-z0-9-]+\.md)\)", (DECISIONS / "README.md").read_text("utf-8")
    )
    written = sorted(path.name for path in DECISIONS.glob("*.md") if path.name != "README.md")
    assert listed == written, "docs/decisions/README.md lists every record once, in order"
    assert [int(name[:4]) for name in written] == [*range(1, len(written) + 1)], "numbers are taken"


def test_decisions_name_functions_and_no_lines():
    """Lines move with every change, and what a record says of them is wrong soon after."""
    lines = re.compile(
        r"\.(?:py|c|js):\d|\blines? \d|#L\d|\b(?:is|are|has|have) [\d, and]*\d lines\b"
    )
    found = {
        path.name: hits
        for path in DECISIONS.glob("*.md")
        if (hits := lines.findall(path.read_text("utf-8")))
    }
    assert found == {}
    assert lines.search("Ours are 280, 52 and 38 lines.")


def test_what_coverage_leaves_out_is_there_under_that_name():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    for pattern in tools["coverage"]["report"]["omit"]:
        assert (SRC / pattern.removeprefix("*/")).is_file(), pattern
