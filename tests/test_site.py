"""The site of the documentation: its navigation, its long pages, its links."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
MKDOCS = ROOT / ".venv-site" / "bin" / "mkdocs"


@pytest.mark.skipif(not MKDOCS.exists(), reason="MkDocs is missing (./dev setup installs it)")
def test_the_site_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        # Not --quiet: strict counts the warnings that it would hide.
        [MKDOCS, "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert (done.returncode, warnings) == (0, [])
    reference = (tmp_path / "reference" / "library" / "index.html").read_text("utf-8")
    assert "fragdex.open_index" in reference


def pages_of(part):
    """The pages of a part of mkdocs.yml's nav, in order."""
    if isinstance(part, str):
        return [part]
    parts = part.values() if isinstance(part, dict) else part
    return [page for one in parts for page in pages_of(one)]


def test_the_contents_are_the_navigation_with_a_line_each():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    contents = (ROOT / "docs" / "index.md").read_text("utf-8")
    entries = re.findall(r"^- \[[^]]+\]\((?:\.\./)?([^)]+)\): \S", contents, re.MULTILINE)
    # The site's own pages are not in a checkout: the reference, and results of benchmarks.
    own_pages = ("index.md", "overview.md", "reference/", "benchmarks/")
    assert entries == [page for page in pages_of(nav) if not page.startswith(own_pages)]


def test_modules_that_the_page_of_the_library_names_have_a_page_in_the_reference():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    text = (ROOT / "docs" / "library.md").read_text("utf-8")
    homes = set(re.findall(r"\bfragdex\.([a-z_]+)\.\w|from fragdex\.([a-z_]+)[. ]", text))
    homes = {"".join(pair) for pair in homes}
    assert len(homes) >= 6
    pages = {page for page in pages_of(nav) if page.startswith("reference/")}
    assert {f"reference/{home}.md" for home in homes} <= pages


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_long_page_begins_with_its_contents(page):
    lines = page.read_text("utf-8").splitlines()
    text = re.sub(r"^```.*?^```", "", "\n".join(lines), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    anchors = [re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings]
    first = "\n".join(lines[:50])
    assert len(lines) <= 250 or [one for one in anchors if f"(#{one})" not in first] == []
