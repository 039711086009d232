"""A page on its way to a service: packed with the files that it uses."""

from __future__ import annotations

import os
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import unquote

__all__ = ["files_of", "packed"]

INDEX: Final = "index.html"
_PAGES: Final = frozenset({".html", ".htm", ".xhtml"})
_TEXTS: Final = _PAGES | {".css", ".js", ".mjs", ".svg", ".json", ".webmanifest", ".vtt"}
_MOST_TEXT: Final = 16 << 20
"""Bytes of a file that are searched for names: no person wrote more."""
_QUOTED: Final = re.compile(r"""["'`(]([^"'`()\n]{1,1024})["'`)]""")
# A name of a template (`img/${n}.png`) ends where it is not known any further.
_BARE: Final = re.compile(r"""[^\s"'`()<>=,;:${}|\\?#]{1,1024}""")


def packed(page: str | os.PathLike[str]) -> BinaryIO:
    """A site as .tar.gz, open at its start; what is packed already as it is.

    Args:
        page: a folder, an HTML file (with the files that it names, as `files_of` finds them), or
            an archive.

    Raises:
        OSError: it is not there.
    """
    path = Path(page)
    if path.is_dir():
        found: Mapping[str, Path] = {
            one.relative_to(path).as_posix(): one for one in _visible(path, path)
        }
    elif path.suffix.lower() in _PAGES:
        found = files_of(path)
    else:
        return path.open("rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115 — the caller closes it
    with tarfile.open(fileobj=file, mode="w:gz", dereference=True) as archive:
        for name, one in sorted(found.items()):
            archive.add(one, name, recursive=False)
    file.seek(0)
    return file


def files_of(page: str | os.PathLike[str]) -> dict[str, Path]:
    """An HTML file as index.html, with the files beside it that it names: by their names.

    Names are looked for in pages, style sheets, scripts and what else is text, and in the files
    found, too. A folder that is named (`img/`) is taken whole. Nothing outside the page's folder
    is taken, and no name that begins with a dot.

    Raises:
        OSError: the page cannot be read.
    """
    path = Path(page)
    folder = path.parent.resolve()
    found = {INDEX: path}
    waiting = [path]
    seen = {path.resolve()}
    while waiting:
        text = waiting.pop()
        for one in _named(text, folder):
            if one in seen:
                continue
            seen.add(one)
            found.setdefault(one.relative_to(folder).as_posix(), one)
            if one.suffix.lower() in _TEXTS:
                waiting.append(one)
    return found


def _named(text: Path, folder: Path) -> Iterator[Path]:
    """The files below a folder that a text names."""
    with text.open("rb") as file:
        said = file.read(_MOST_TEXT).decode("utf-8", "replace")
    names = {one.partition("?")[0].partition("#")[0] for one in _QUOTED.findall(said)}
    names.update(_BARE.findall(said))
    for name in names:
        if "." not in name and not name.endswith("/"):
            continue
        for base in (text.parent, folder):
            try:
                one = (base / unquote(name).lstrip("/")).resolve()
                if one == folder or not one.is_relative_to(folder) or _hidden(one, folder):
                    continue
                if one.is_file():
                    yield one
                elif name.endswith("/") and one.is_dir():
                    yield from _visible(one, folder)
            except (OSError, ValueError):
                continue  # no name of a file


def _visible(inside: Path, folder: Path) -> Iterator[Path]:
    for one in inside.rglob("*"):
        if one.is_file() and not _hidden(one, folder):
            yield one


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
