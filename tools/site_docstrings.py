"""Docstrings as the site reads them: doctests as code blocks, a row for each name."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"(?:^[ ]*>>> .*\n(?:^[ ]*\S.*\n)*\n?)+", re.MULTILINE)
SEVERAL = re.compile(  # an entry of Args, Attributes or Raises for more than one name
    r"^ {4}(\w+(?:, \w+)+): (.*\n(?:(?: {8}.*)?\n(?= {8}|\n {8}))*(?: {8}.*\n)?)", re.MULTILINE
)


class FencedExamples(griffe.Extension):
    """Wrap each doctest in a fence, and give each name an entry of its own."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring before it is parsed."""
        if obj.docstring is not None:
            text = SEVERAL.sub(_one_each, f"{obj.docstring.value}\n")
            obj.docstring.value = DOCTEST.sub(_fenced, text).rstrip()


def _one_each(found: re.Match[str]) -> str:
    return "".join(f"    {name}: {found[2]}" for name in found[1].split(", "))


def _fenced(found: re.Match[str]) -> str:
    return f"```python\n{found[0].rstrip()}\n```\n\n"
