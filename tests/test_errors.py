"""The tree of errors: its drawing is that of the classes, and each error says what it was given."""

import re

import pytest

import fragdex
from fragdex import errors
from fragdex.errors import FragdexError


def drawn(parent, before="    "):
    """The lines of a tree: each class of the module below its first base."""
    below = [one for one in parent.__subclasses__() if one.__module__ == errors.__name__]
    for one in below:
        last = one is below[-1]
        yield f"{before}{'└── ' if last else '├── '}{one.__name__}"
        yield from drawn(one, before + ("    " if last else "│   "))


def test_the_tree_is_that_of_the_classes():
    lines = re.findall(r"^[│├└─ ]*── \w+", errors.__doc__, re.MULTILINE)
    assert lines == list(drawn(FragdexError))
    assert len(lines) > 45


@pytest.mark.parametrize("line", [one for one in errors.__doc__.splitlines() if "── " in one])
def test_each_line_of_the_tree_says_when(line):
    assert re.fullmatch(r" {4}[│├└─ ]+\w+ +\S+ .+", line)


def test_one_except_clause_takes_them_all():
    with pytest.raises(FragdexError) as caught:
        fragdex.index(b"no film")
    assert isinstance(caught.value, errors.NotISOBMFF)
