"""The films of a folder or bucket, page by page, in the order of their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from fragdex.errors import SourceNotFound
from fragdex.sources import Listed, list_folder, list_objects

__all__ = ["MOST_LISTED", "SUFFIXES", "FilmList", "film_list", "is_name"]

SUFFIXES: Final = (".mp4", ".m4v", ".m4a", ".mov", ".3gp", ".cmfv", ".cmfa", ".mp4a", ".qt")
"""How files end that are listed."""
MOST_LISTED: Final = 1000
"""Films of one page."""
_LOOKED_AT: Final = 10_000
"""Names that are looked at for one page, be they of films or not."""


@dataclass(frozen=True, slots=True)
class FilmList:
    """Some films.

    Attributes:
        films: in the order of their names.
        next: the name behind which the next page begins; None: there are no more.
    """

    films: tuple[Listed, ...]
    next: str | None


def is_name(name: str) -> bool:
    """Whether a path may be that of a film: no part of it is hidden, empty or leads elsewhere.

    >>> is_name("a/b.mp4"), is_name("a/../b.mp4"), is_name("/b.mp4")
    (True, False, False)
    """
    return not any(
        part.startswith(".") or not part or "\\" in part or "\0" in part for part in name.split("/")
    )


def film_list(
    root: str, remote: bool, after: str, most: int, options: Mapping[str, Any]
) -> FilmList:
    """The films behind a name; a page may have fewer than are asked for, and a next one.

    Args:
        root: a folder, as `os.path.realpath` gives it, or a URL.
        remote: whether it is a URL.
        after: the name; "": from the first one on.
        most: how many films.
        options: for `fragdex.open_source`.

    Raises:
        SourceNotFound: web servers have no lists.
        SourceError: the bucket cannot be listed.
    """
    found: Iterator[Listed]
    if not remote:
        found = list_folder(root, after=after, most=_LOOKED_AT)
    elif root.lower().startswith(("http://", "https://")):
        raise SourceNotFound(
            "web servers do not list their files", advice="ask for films by their names"
        )
    else:
        found = list_objects(root, after=after, **options)
    films: list[Listed] = []
    looked_at, last = 0, ""
    for one in islice(found, _LOOKED_AT):
        looked_at, last = looked_at + 1, one.name
        if one.name.lower().endswith(SUFFIXES) and is_name(one.name) and not _is_several(one.name):
            films.append(one)
            if len(films) > most:
                return FilmList(tuple(films[:most]), films[most - 1].name)
    return FilmList(tuple(films), last if looked_at == _LOOKED_AT else None)


def _is_several(name: str) -> bool:
    """Whether an address would take the name for those of several files."""
    return "," in name.rpartition("/")[2]
