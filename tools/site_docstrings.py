"""Doctests in docstrings as code blocks of the site."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"(?:^[ ]*>>> .*\n(?:^[ ]*\S.*\n)*\n?)+", re.MULTILINE)


class FencedExamples(griffe.Extension):
    """Wrap each doctest in a fence."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = DOCTEST.sub(_fenced, f"{obj.docstring.value}\n").rstrip()


def _fenced(found: re.Match[str]) -> str:
    return f"```python\n{found[0].rstrip()}\n```\n\n"
