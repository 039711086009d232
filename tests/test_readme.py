"""The README and the pages of docs are followed line by line: what they say is what happens."""

import doctest
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
TOLD = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]
RUN = ("README.md", "docs/embedding.md", "docs/cookbook.md", "docs/exactness.md")
RUN += ("docs/first-training-set.md", "docs/frames.md")
RUN += ("docs/how-an-index-works.md", "docs/labelling.md", "docs/library.md")
RUN += ("docs/moving-from.md", "docs/notebooks.md", "docs/origin.md", "docs/recordings.md")
RUN += ("docs/repair.md", "docs/times.md", "docs/training.md", "docs/tutorial.md")
RUN += ("docs/windows.md", "docs/arrays.md", "docs/other-sets.md")
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


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder that looks like a checkout to a reader, and may be written to."""
    os.symlink(ROOT / "fixtures", tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
    (checkout / "first.txt").write_text(block, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", CORE_ALONE, "first.txt"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", TOLD, ids=name_of)
@pytest.mark.true_start
def test_every_command_line_works(page, checkout):
    pytest.importorskip("typer")
    pytest.importorskip("matplotlib")
    (checkout / "movie.mp4").write_bytes(movie(fragments=50, samples=50, fps=25))
    lines = commands(page.read_text("utf-8"))
    assert lines
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if any("://" in word or word.isupper() for word in words):
            continue  # someone else's server; a word to fill in
        done = subprocess.run(
            [sys.executable, "-m", "fragdex", *words],
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
