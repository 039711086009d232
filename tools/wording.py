"""Find words of tools/vocabulary.toml in the prose of the project; `./dev lint` runs this.

Prose is the text of Markdown pages, comments of Python and JavaScript, docstrings, and string
literals with a space in them, which are messages and help. Code blocks, inline code, links and
doctests are not prose.

    python tools/wording.py             # each place with the words and a better wording
    python tools/wording.py PATH ...    # these files, even if they are pending
"""

from __future__ import annotations

import ast
import fnmatch
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
VOCABULARY = Path(__file__).with_name("vocabulary.toml")
NOT_PROSE = re.compile(
    r"^(?:```|~~~).*?^(?:```|~~~)$"  # code blocks
    r"|^(?: {4,}|\t)[^\n]*$"  # indented ones
    r"|``[^`]+``|`[^`\n]+(?:\n[^`\n]+)?`"  # inline code
    r"|\]\([^)]*\)"  # targets of links
    r"|<!--.*?-->|<[a-zA-Z/][^>\n]*>"  # comments and tags
    r"|\bhttps?://\S+",
    re.DOTALL | re.MULTILINE,
)
JS_TOKEN = re.compile(  # comments, and strings
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`", re.DOTALL
)
INLINE_CODE = re.compile(r"`[^`\n]+`")
NOT_DOCSTRING = re.compile(  # doctests with their output, code, addresses
    r"^ *>>> .*(?:\n *\S.*)*|``?[^`]+``?|\bhttps?://\S+", re.MULTILINE
)


def blank(pattern: re.Pattern[str], text: str) -> str:
    """The text with all that a pattern finds as spaces, lines kept."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def prose(path: Path, *, docstrings: bool = True) -> Iterator[tuple[int, str]]:
    """(number of the first line, text) of each piece of prose in a file."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield 1, blank(NOT_PROSE, text)
    elif path.suffix == ".html":
        yield 1, blank(re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>|<!--.*?-->", re.DOTALL), text)
    elif path.suffix == ".js":
        for found in JS_TOKEN.finditer(text):
            if " " in found[0] or found[0][1:2].isupper():  # a label
                yield text.count("\n", 0, found.start()) + 1, blank(INLINE_CODE, found[0])
    else:
        alone = set()
        for node in ast.walk(ast.parse(text)):  # a statement comes before what is in it
            if isinstance(node, ast.Expr):
                alone.add(id(node.value))  # a string that is one documents what it is below
            elif not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            elif " " in node.value and (docstrings or id(node) not in alone):
                yield node.lineno, blank(NOT_DOCSTRING, node.value)
        for token in tokenize.generate_tokens(io.StringIO(text).readline) if docstrings else ():
            if token.type == tokenize.COMMENT:
                yield token.start[0], blank(INLINE_CODE, token.string)


def found_in(
    path: Path, say: dict[str, str], *, docstrings: bool = True
) -> Iterator[tuple[int, str, str]]:
    """(line, the words, what to say) of each place in a file."""
    rules = [
        (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), better) for words, better in say.items()
    ]
    some = re.compile(rf"\b(?:{'|'.join(f'(?:{words})' for words in say)})\b", re.IGNORECASE)
    for first, text in prose(path, docstrings=docstrings):
        for pattern, better in rules if some.search(text) else ():
            for found in pattern.finditer(text):
                yield first + text.count("\n", 0, found.start()), found[0], better


def files(vocabulary: dict[str, Any]) -> Iterator[tuple[Path, bool]]:
    """Each tracked file that is read, and whether its docstrings are.

    Messages are read in all files; a page or docstrings that are pending are not.
    """
    command = ["git", "ls-files", *vocabulary["where"]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    pending = [re.compile(fnmatch.translate(one)) for one in vocabulary["pending"]]
    for name in done.stdout.splitlines():
        waits = any(one.match(name) for one in pending)
        if not (waits and name.endswith(".md")):
            yield ROOT / name, not waits


def main(names: list[str]) -> int:
    """The exit status: 1 if a word was found."""
    vocabulary = tomllib.loads(VOCABULARY.read_text("utf-8"))
    places = 0
    for path, docstrings in [(Path(name), True) for name in names] or files(vocabulary):
        found = found_in(path, vocabulary["say"], docstrings=docstrings)
        for line, words, better in sorted(found):
            places += 1
            shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            print(f"{shown}:{line}: {' '.join(words.split())}: {better}")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
