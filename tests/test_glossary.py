"""The clauses in the glossary are those that the boxes declare."""

import re
from pathlib import Path

import pytest

from fragdex.boxes.tree import layout_of

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "glossary.md").read_text("utf-8")
CITED = re.findall(r"([\d.]+) \(`(\w{4})`\)", TEXT)


def test_enough_terms_are_explained():
    assert len(CITED) >= 20


@pytest.mark.parametrize(("clause", "code"), CITED)
def test_a_clause_is_that_of_the_box(clause, code):
    layout = layout_of(code)
    assert layout is not None
    assert layout.source == f"ISO/IEC 14496-12, {clause}"


def test_terms_are_in_tables_of_three_columns():
    rows = [line.strip("|").split("|") for line in TEXT.splitlines() if line.startswith("|")]
    assert [row for row in rows if len(row) != 3] == []
