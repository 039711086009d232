"""The README and the pages of docs are followed line by line: what they say is what happens."""

import doctest
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fragdex.testing import movie

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TOLD = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", ROOT / "docs" / "tasks.md"]
RUN = ("README.md", "docs/embedding.md", "docs/cookbook.md", "docs/exactness.md")
RUN += ("docs/first-training-set.md", "docs/frames.md")
RUN += ("docs/how-an-index-works.md", "docs/labelling.md", "docs/library.md")
RUN += ("docs/moving-from.md", "docs/notebooks.md", "docs/origin.md", "docs/recordings.md")
RUN += ("docs/repair.md", "docs/times.md", "docs/training.md", "docs/tutorial.md")
RUN += ("docs/tasks.md", "docs/windows.md", "docs/arrays.md", "docs/other-sets.md")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def blocks(text, language):
    """(line number, text) of every fenced block of a language."""
    for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, match.start(1)), match[1]


def commands(text):
    """Command lines of fragdex: indented ones, and those behind a $ in console blocks."""
    indented = re.findall(r"^    (fragdex .*)$", text, re.MULTILINE)
    console = "".join(block for _, block in blocks(text, "console"))
    return indented + re.findall(r"^\$ (fragdex .*)$", console, re.MULTILINE)


@pytest.mark.parametrize("page", [ROOT / name for name in RUN], ids=name_of)
def test_every_python_block_runs_and_prints_what_it_shows(page, checkout):
    text = page.read_text("utf-8")
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    parser, names, output = doctest.DocTestParser(), {}, []
    for line, block in blocks(text, "python"):
        assert block.startswith(">>> "), f"{name_of(page)}:{line + 1}: a block that nobody runs"
        test = parser.get_doctest(block, names, name_of(page), str(page), line)
        # One reader, one session: a block sees the names of those before it.
        runner.run(test, out=output.append, clear_globs=False)
        names = test.globs
    assert runner.tries
    assert not runner.failures, "".join(output)


CORE_ALONE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package not in sys.stdlib_module_names | {"fragdex", "numpy", "construct"}:
            raise ModuleNotFoundError(name, name=package)
sys.meta_path.insert(0, Missing())
import doctest
import inspect
failed, tried = doctest.testfile(sys.argv[1], module_relative=False)
sys.exit(failed or not tried)
"""


def test_the_first_screen_shows_proves_and_runs_with_what_it_installs(checkout):
    """The two commands of a fresh machine, the install line, and lines that need no extra."""
    first = (ROOT / "README.md").read_text("utf-8").partition("\n## ")[0]
    assert len(first.splitlines()) <= 50
    shown = ("./dev demo", "./dev test", "pip install .\n", ">>> ")
    places = [re.sub(r" +#.*", "", first).index(text) for text in shown]
    assert places == sorted(places)
    ((_, block),) = blocks(first, "python")
    (checkout / ".git" / "first.txt").write_text(block, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", CORE_ALONE, ".git/first.txt"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [TOLD[0], pytest.param(TOLD[1], marks=pytest.mark.true_start), TOLD[2]], ids=name_of
)
def test_every_command_line_works(page, checkout):
    pytest.importorskip("typer")
    pytest.importorskip("matplotlib")
    (checkout / "movie.mp4").write_bytes(movie(fragments=50, samples=50, fps=25))
    subprocess.run(["git", "add", "--all"], check=True)
    lines = commands(page.read_text("utf-8"))
    assert lines
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if any("://" in word or word.isupper() for word in words):
            continue  # someone else's server; a word to fill in
        done = subprocess.run(
            [sys.executable, "-m", "fragdex", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert "Traceback" not in done.stderr


def anchors(text):
    """What a page's headings are called in links to it."""
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        led = (page.parent / path).resolve() if path else page
        assert led.exists(), target
        if anchor:
            assert anchor in list(anchors(led.read_text("utf-8"))), target


def test_every_page_is_found_from_the_contents():
    contents = (ROOT / "docs" / "index.md").read_text("utf-8")
    missing = [
        path.name
        for path in (ROOT / "docs").glob("*.md")
        if path.name != "index.md" and f"]({path.name})" not in contents
    ]
    assert missing == []


def test_the_extras_are_told():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    readme = (ROOT / "README.md").read_text("utf-8")
    extras = set(re.findall(r"^\| `([\w-]+)` \|", readme, re.MULTILINE))
    assert extras == project["optional-dependencies"].keys()


def test_every_command_of_dev_is_told_in_contributing():
    if not shutil.which("sh"):
        pytest.skip("no shell")
    usage = subprocess.run(
        ["sh", str(ROOT / "dev"), "help"], capture_output=True, check=True, text=True
    ).stdout
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    offered = re.findall(r"^  (\w+) ", usage, re.MULTILINE)
    assert [name for name in offered if f"./dev {name}" not in guide] == []
    # `help` ends before most of the script is read
    subprocess.run(["sh", "-n", str(ROOT / "dev")], check=True)


def test_what_is_said_of_renders_are_the_results():
    folder = ROOT / "benchmarks" / "render"
    rows = json.loads((folder / "results.json").read_text("utf-8"))["rows"]
    heavy, slides = (1 / rows[key]["wants"][0]["reached"] for key in ("heavy", "slides"))
    sentence = f"take from {heavy:.2f} (a heavy page) to {slides:.2f} (slides) of Remotion's time"
    assert sentence in (ROOT / "README.md").read_text("utf-8")


def test_what_is_said_of_indexes_are_the_results():
    program = (
        "import json, report\n"
        "print(report.readme_table(json.load(open('results.json', encoding='utf-8'))), end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT / "benchmarks",
        capture_output=True, encoding="utf-8", check=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.stdout in (ROOT / "README.md").read_text("utf-8")


def test_the_first_screen_of_the_readme_has_what_it_is_and_what_to_type():
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    screen = "\n".join(lines[:40])
    assert "fragdex finds" in screen.splitlines()[2]
    for part in (">>> import fragdex", "| You want to | Use |", "pip install", "**Exact**"):
        assert part in screen, part


PROJECT = ROOT / "pyproject.toml"
# What an extra brings, by the name that it is imported by; `cli` is asked of commands alone.
MODULES = {
    "av": "av", "pillow": "PIL", "pyarrow": "pyarrow", "matplotlib": "matplotlib",
    "httpx": "httpx", "obstore": "obstore", "fsspec": "fsspec", "starlette": "starlette",
}  # fmt: skip
WHAT_BLOCKS_IMPORT = """
import doctest, json, os, sys
import numpy, construct, fragdex  # what each of them needs
pages, wanted = json.loads(sys.argv[1]), set(json.loads(sys.argv[2]))
loaded = {name.partition(".")[0] for name in sys.modules}
assert not wanted & loaded
for page, blocks in pages.items():
    if pid := os.fork():
        assert os.waitpid(pid, 0)[1] == 0, page
        continue
    runner, parser = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), doctest.DocTestParser()
    names, news = {}, []
    for block in blocks:
        test = parser.get_doctest(block, names, "page", "page", 0)
        runner.run(test, out=lambda text: None, clear_globs=False)
        names = test.globs
        now = wanted & {name.partition(".")[0] for name in sys.modules}
        news.append(sorted(now - loaded))
        loaded |= now
    print("news", json.dumps([page, news]), flush=True)
    os._exit(0)
"""


def extras():
    """{extra: the packages that it brings, those of the extras in it too}."""
    tomllib = pytest.importorskip("tomllib")
    declared = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]

    def brought(extra):
        for line in declared[extra]:
            if match := re.match(r"fragdex\[([\w,-]+)\]", line):
                for inner in match[1].split(","):
                    yield inner
                    yield from brought(inner)
            else:
                yield re.match(r"[\w-]+", line)[0].lower()

    return {extra: {extra, *brought(extra)} for extra in declared}


def sections(text):
    """The parts of a page: what stands before its first heading of the second level, then each."""
    return re.split(r"^(?=## )", text, flags=re.MULTILINE)


def named_in(text):
    """The extras that a text names."""
    lists = re.findall(r"(?:fragdex|\.)\[([\w,-]+)\]", text) + re.findall(r"extra `([\w-]+)`", text)
    return {name for one in lists for name in one.split(",")}


def needed_by(command):
    """What a command of fragdex needs beside `cli`: its help says it, or the code."""
    from fragdex.cli.app import COMMANDS, SERVICE_COMMANDS

    found = {**COMMANDS, **SERVICE_COMMANDS}.get(command)
    if found is None:
        return {"cli", *(["service"] if command in SERVICE_GROUPS_OF_OPERATORS else [])}
    source = inspect.getsource(found.function)
    help_ = {name for one in re.findall(r"fragdex\[([\w,]+)\]", source) for name in one.split(",")}
    return {"cli"} | help_ | set(re.findall(r"\bextra\(\"(\w+)\"\)", source))


SERVICE_GROUPS_OF_OPERATORS = ("key", "tenant", "db")
SHELL = re.compile(r"(?:^|\$ |\()fragdex ([a-z]+)\b", re.MULTILINE)


def python_in(parts):
    """(number of its section, text) of each block."""
    return [(n, block) for n, part in enumerate(parts) for _, block in blocks(part, "python")]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """{page: [modules that each of its blocks is the first to import]}, each in a new process."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "fixtures").symlink_to(ROOT / "fixtures")
    pages = {
        name: [block for _, block in python_in(sections((ROOT / name).read_text("utf-8")))]
        for name in RUN
    }
    words = [json.dumps(pages), json.dumps([*MODULES.values()])]
    done = subprocess.run(
        [sys.executable, "-c", WHAT_BLOCKS_IMPORT, *words],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return dict(map(json.loads, re.findall(r"^news (.*)$", done.stdout, re.MULTILINE)))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_says_which_extra_its_examples_need(page, imported):
    """Before the example, or in its section."""
    pytest.importorskip("typer")
    text, brings = page.read_text("utf-8"), extras()
    parts = sections(text)
    needs = [set() for _ in parts]
    if name_of(page) in RUN:
        of_module = {module: package for package, module in MODULES.items()}
        for (number, _), modules in zip(python_in(parts), imported[name_of(page)], strict=True):
            needs[number] |= {of_module[module] for module in modules}
    for number, part in enumerate(parts):
        shell = [block for kind in ("sh", "console") for _, block in blocks(part, kind)]
        for block in (*shell, *commands(part)):
            for command in SHELL.findall(block):
                needs[number] |= needed_by(command)
    have = set()
    for part, need in zip(parts, needs, strict=True):
        have |= set().union(*(brings.get(name, set()) for name in named_in(part)))
        title = part.partition("\n")[0]
        assert need <= have, f"{name_of(page)}, {title}: {sorted(need - have)} is of no extra named"
