"""Each line of docs/integrations.md names a test that exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "integrations.md"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def defined(path):
    """The functions of a file and of its classes."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_each_line_names_a_test_that_exists():
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 12
    for row in rows:
        named = TEST.findall(row.split("|")[-2])
        assert named, f"no test: {row}"
        for path, name in named:
            assert name in defined(path), f"{path} has no {name}"
