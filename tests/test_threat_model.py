"""The threat model names tests: each is there, and no wall stands without one."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
THREATS = ROOT / "docs" / "threat-model.md"
PAGES = (THREATS, ROOT / "SECURITY.md")
NAMED = re.compile(r"`(tests/[\w./-]+?\.py)(?:::(\w+))?`")


def rows():
    """The cells of each row of the threat model."""
    text = THREATS.read_text(encoding="utf-8")
    part = text.split("\n## Threat model\n", 1)[1].split("\n## ", 1)[0]
    lines = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in lines[2:]]


def named():
    return sorted({hit for page in PAGES for hit in NAMED.findall(page.read_text("utf-8"))})


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_wall_names_a_test():
    assert len(rows()) >= 20
    for row in rows():
        assert len(row) == 4, row
        assert all(row[1:]), row
        assert NAMED.search(row[3]), f"no test is named for: {row[1]}"
        # nothing else stands there: a name that is not a path of a test would not be looked for
        assert NAMED.sub("", row[3]).strip(" ,") == "", row[3]


@pytest.mark.parametrize(("path", "function"), named())
def test_what_it_names_is_there(path, function):
    file = ROOT / path
    assert file.is_file(), f"{path} is gone: name the test that proves it now"
    known = functions(file)
    assert any(name.startswith("test_") for name in known)
    assert not function or function in known, f"{path} has no {function}"
