"""The face of the library: what `import fragdex` promises, and what it costs."""

import doctest
import functools
import importlib
import inspect
import pydoc
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import fragdex
from fragdex.testing import movie

FACE = Path(fragdex.__file__).read_text("utf-8")
PACKAGES = [
    "fragdex.boxes",
    "fragdex.byterange",
    "fragdex.errors",
    "fragdex.formats",
    "fragdex.sources",
    "fragdex.testing",
]
SCREEN = 50
"""Lines of a terminal."""
VALUES = {"SourceLike", "TimeLike"}
"""Names that are not classes or functions: a docstring stands below them in the source."""


def loaded_after(program):
    """What is imported once a program has run in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        check=True,
        text=True,
    )
    return set(done.stdout.splitlines()[-1].split())


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'seeek'"):
        fragdex.seeek  # noqa: B018


def test_all_is_sorted_and_complete():
    # Constants first, then classes, then functions, each in order: as ruff sorts it.
    names = fragdex.__all__
    kinds = [0 if n.isupper() else 1 if n[0].isupper() else 2 for n in names]
    assert list(zip(kinds, names, strict=True)) == sorted(zip(kinds, names, strict=True))
    assert len(set(names)) == len(names)
    assert set(names) == set(fragdex._HOMES)


def test_type_checkers_see_what_python_gives():
    block = FACE.partition("if TYPE_CHECKING:")[2].partition("\n__version__")[0]
    imports = {}
    for module, several, one in re.findall(r"from (\S+) import (?:\(([^)]*)\)|(.*))", block):
        for name in re.findall(r"\w+", re.sub(r" as \w+", "", several or one)):
            imports[name] = module
    modules = {name for name, module in imports.items() if module == "fragdex"}
    assert modules <= fragdex._MODULES, "named as they are at run time"
    homes = {name: module for name, module in imports.items() if name not in modules}
    assert homes == {name: f"fragdex.{home}" for name, home in fragdex._HOMES.items()}


@pytest.mark.parametrize("name", fragdex.__all__)
def test_every_name_is_what_its_home_calls_by_it(name):
    home = importlib.import_module(f"fragdex.{fragdex._HOMES[name]}")
    assert getattr(fragdex, name) is getattr(home, name)
    assert name in home.__all__


@pytest.mark.parametrize("name", sorted(set(fragdex.__all__) - VALUES))
def test_every_name_has_a_docstring_with_an_example(name):
    docstring = inspect.getdoc(getattr(fragdex, name))
    assert docstring
    first = docstring.partition("\n\n")[0]
    assert first.rstrip().endswith((".", ":")), "one sentence comes first"
    value = getattr(fragdex, name)
    examples = [
        test for test in doctest.DocTestFinder(recurse=True).find(value, name) if test.examples
    ]
    if inspect.isclass(value) and issubclass(value, Exception):
        return
    assert examples, f"fragdex.{name} has no example"


def parameters():
    for name in sorted(set(fragdex.__all__) - VALUES):
        value = getattr(fragdex, name)
        if not inspect.isfunction(value):
            continue
        # The first one is what the first sentence is about.
        for parameter in list(inspect.signature(value).parameters.values())[1:]:
            yield pytest.param(value, parameter.name, id=f"{name}-{parameter.name}")


def test_what_index_takes_is_documented():
    docstring = inspect.getdoc(fragdex.index)
    arguments = docstring.partition("Args:")[2].partition("Returns:")[0]
    names = set(re.findall(r"^ +([\w, ]+):", arguments, re.MULTILINE))
    documented = {name.strip() for group in names for name in group.split(",")}
    assert set(inspect.signature(fragdex.index).parameters) <= documented


@pytest.mark.parametrize(("function", "parameter"), list(parameters()))
def test_every_argument_is_named_in_the_docstring(function, parameter):
    docstring = inspect.getdoc(function)
    assert re.search(rf"\b{parameter}\b", docstring), f"{function.__name__}: {parameter}"


def public_functions():
    """(name, function) of what a user calls on the face, with the variants of overloads."""
    for name in sorted(set(fragdex.__all__) - VALUES):
        value = getattr(fragdex, name)
        members = {name: value} if inspect.isfunction(value) else {}
        for kind in value.__mro__ if inspect.isclass(value) else ():
            if kind.__module__.startswith("fragdex."):
                members |= {f"{name}.{one}": vars(kind)[one] for one in vars(kind)}
        for label, member in members.items():
            last = label.rpartition(".")[2]
            if last.startswith("_") and last not in ("__init__", "__getitem__", "__iter__"):
                continue
            if isinstance(member, property | functools.cached_property):
                member = getattr(member, "fget", None) or member.func
            function = inspect.unwrap(getattr(member, "__func__", member))
            if inspect.isfunction(function) and function.__module__.startswith("fragdex"):
                yield from ((label, one) for one in (function, *typing.get_overloads(function)))


def annotations(function):
    """(name, annotation) of each parameter and of the result; None: there is no annotation."""
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.name not in ("self", "cls"):
            yield parameter.name, parameter.annotation
    yield "return", signature.return_annotation


def says_any(annotation, function):
    """Whether Any stands in an annotation, or in an alias that it names; shapes do not count."""
    named = (function.__globals__.get(name) for name in re.findall(r"\w+", annotation))
    aliases = [repr(one) for one in named if not isinstance(one, type) and one is not typing.Any]
    plain = re.sub(r"tuple\[typing\.Any, \.\.\.\]", "", " ".join([annotation, *aliases]))
    return re.search(r"\bAny\b", plain) is not None


def test_no_signature_of_the_face_says_any():
    wrong = [
        f"{label}: {name}: {annotation}"
        for label, function in public_functions()
        for name, annotation in annotations(function)
        if not isinstance(annotation, str) or says_any(annotation, function)
        if not (name == "return" and label.endswith(".__init__") and annotation is None)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(set(fragdex.__all__) - VALUES))
def test_help_of_a_name_is_one_screen(name):
    """Of a function all of it, of a class what stands above its members."""
    value = getattr(fragdex, name)
    shown = pydoc.plain(pydoc.render_doc(value)) if inspect.isfunction(value) else value.__doc__
    assert len(shown.splitlines()) <= SCREEN


def test_dir_shows_the_face_and_nothing_else():
    fragdex.index  # noqa: B018  # what was used does not change it
    assert set(dir(fragdex)) == {*fragdex.__all__, "__version__"}


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_of_a_package_shows_what_it_promises(package):
    module = importlib.import_module(package)
    assert [name for name in dir(module) if not name.startswith("__")] == sorted(module.__all__)


def test_the_face_has_at_most_28_names():
    assert len(fragdex.__all__) <= 28


def test_modules_are_imported_when_they_are_named():
    names = sorted(fragdex._MODULES - {"client", "origin", "transcode", "rendering"})  # of extras
    program = "import fragdex\n" + "".join(f"print(fragdex.{name}.__name__)\n" for name in names)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [f"fragdex.{name}" for name in names], done.stderr


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'seek'"):
        fragdex.seek  # noqa: B018
    with pytest.raises(ImportError):
        exec("from fragdex import nothing_of_this_name")


def test_importing_the_face_imports_no_room():
    before = loaded_after("")
    after = loaded_after("import fragdex") - before
    assert not {name for name in after if name.split(".")[0] in ("numpy", "construct")}
    assert {name for name in after if name.startswith("fragdex.")} == set()


# What takes long to import, and what few callers need.
SLOW = (
    *("asyncio", "concurrent", "email", "html", "http", "logging", "multiprocessing", "pathlib"),
    *("random", "secrets", "shutil", "socket", "ssl", "subprocess", "tempfile", "urllib", "xml"),
    *("fragdex.cli", "fragdex.decoding", "fragdex.seeking.show"),
    *("fragdex.indexing.mfra_reading", "fragdex.indexing.sidx_reading", "fragdex.sources.http"),
)


def slow(modules):
    """Those of these modules that stand in SLOW or below one that does."""
    return sorted(name for name in modules if f"{name}.".startswith(tuple(f"{s}." for s in SLOW)))


def test_a_first_index_imports_only_what_it_needs(root):
    path = str(root / "fixtures" / "frag-cmaf.mp4")
    before = loaded_after("import numpy")
    after = loaded_after(f"import fragdex; fragdex.index({path!r}).track(1).seek(1)") - before
    assert slow(after) == []
    # Of the files of declarations, those of boxes that the file has.
    declared = {name.removeprefix("fragdex.boxes.") for name in after if "fragdex.boxes." in name}
    assert {"fragments", "sample_table", "sample_entries"} <= declared
    assert not declared & {"segments", "video", "audio", "metadata", "encryption", "text"}


def test_opening_a_saved_index_needs_no_boxes(root, tmp_path):
    fragdex.index(root / "fixtures" / "frag-cmaf.mp4").save(tmp_path / "a.fidx")
    before = loaded_after("import numpy")
    opening = f"fragdex.open_index({str(tmp_path / 'a.fidx')!r}).track(1).seek(1)"
    after = loaded_after(f"import fragdex; {opening}") - before
    assert slow(after) == []
    rooms = {".".join(name.split(".")[:2]) for name in after}
    assert not rooms & {"fragdex.boxes", "fragdex.indexing", "construct", "hashlib"}


def test_byte_ranges_and_errors_need_no_numpy():
    after = loaded_after("from fragdex import ByteRange, FragdexError, byterange, errors")
    assert "numpy" not in after
    assert "construct" not in after


def test_the_version_is_that_of_the_project():
    tomllib = pytest.importorskip("tomllib")
    path = Path(__file__).parent.parent / "pyproject.toml"
    assert tomllib.loads(path.read_text("utf-8"))["project"]["version"] == fragdex.__version__


def test_types_are_shipped():
    assert (Path(fragdex.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize(
    ("ask", "advice"),
    [
        (lambda: fragdex.open, "did you mean open_index or open_source?"),
        (lambda: fragdex.Frame, "did you mean Frames?"),
        (lambda: fragdex.index(movie(1)).track(1).width, "it is track.info.width"),
    ],
)
def test_a_name_that_is_elsewhere_is_told(ask, advice):
    with pytest.raises(AttributeError, match=re.escape(advice)):
        ask()
