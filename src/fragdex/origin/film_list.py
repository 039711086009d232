"""The files of a folder or bucket, page by page; the pages that list them and play one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any, Final

from fragdex.errors import SourceNotFound
from fragdex.record import record
from fragdex.sources.objects import (
    FILM_SUFFIXES,
    SOUND_SUFFIXES,
    ListedFile,
    list_folder,
    list_objects,
)

SUFFIXES: Final = FILM_SUFFIXES + SOUND_SUFFIXES
"""How files end that are listed."""
MOST_LISTED: Final = 1000
"""Files of one page."""
_LOOKED_AT: Final = 10_000
"""Names that are looked at for one page, be they of files or not."""


@record(frozen=True, slots=True)
class FilmList:
    """Some files.

    Attributes:
        films: in the order of their names.
        next: the name after which the next page begins; None: there are no more.
    """

    films: tuple[ListedFile, ...]
    next: str | None


def is_name(name: str) -> bool:
    """Whether a path may be that of a film: no part of it is hidden, empty or leads elsewhere."""
    return not any(
        part.startswith(".") or not part or "\\" in part or "\0" in part for part in name.split("/")
    )


def film_list(
    root: str, remote: bool, after: str, most: int, options: Mapping[str, Any]
) -> FilmList:
    """The files after a name; a page may have fewer than are requested, and a next one.

    Args:
        root: a folder, as `os.path.realpath` gives it, or a URL.
        remote: whether it is a URL.
        after: the name; "": from the first one on.
        most: how many files.
        options: for `fragdex.open_source`.

    Raises:
        SourceNotFound: web servers have no lists.
        SourceError: the bucket cannot be listed.
    """
    files: Iterator[ListedFile]
    if not remote:
        files = list_folder(root, after=after, most=_LOOKED_AT)
    elif root.lower().startswith(("http://", "https://")):
        raise SourceNotFound(
            "web servers do not list their files", advice="request files by their names"
        )
    else:
        files = list_objects(root, after=after, **options)
    films: list[ListedFile] = []
    looked_at, last = 0, ""
    for one in islice(files, _LOOKED_AT):
        looked_at, last = looked_at + 1, one.name
        if one.name.lower().endswith(SUFFIXES) and is_name(one.name) and not _is_several(one.name):
            films.append(one)
            if len(films) > most:
                return FilmList(tuple(films[:most]), films[most - 1].name)
    return FilmList(tuple(films), last if looked_at == _LOOKED_AT else None)


def _is_several(name: str) -> bool:
    """Whether an address would take the name for those of several files."""
    return "," in name.rpartition("/")[2]


_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "h1{overflow-wrap:anywhere}video{width:100%;max-height:70vh;background:#000}"
    "code{background:#8882;padding:0 .3em;overflow-wrap:anywhere}"
    "dl{display:grid;gap:.8rem;grid-template-columns:repeat(auto-fill,minmax(18rem,1fr))}dd{margin:0}"
    ".films{list-style:none;padding:0;display:grid;gap:1rem;"
    "grid-template-columns:repeat(auto-fill,minmax(10rem,1fr))}"
    ".films a{overflow-wrap:anywhere}"
    ".films img,.films em{width:100%;aspect-ratio:16/9;background:#8883}"
    ".films img{display:block;object-fit:contain}"
    ".films em{display:grid;place-items:center;color:#888}"
    "[hidden]{display:none!important}"
)


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>{body}</html>"
    )


_NUMBER = re.compile(r"\d+")


def patterns_of(names: Iterable[str]) -> list[str]:
    """Patterns of files of a folder whose names differ in numbers alone, as recorders name them."""
    shapes: Counter[tuple[str, str]] = Counter()
    for name in names:
        folder, slash, last = name.rpartition("/")
        numbers = [found.span() for found in _NUMBER.finditer(last.rpartition(".")[0])]
        if numbers:
            shape = _NUMBER.sub("#", last)
            shapes[f"{folder}{slash}{last[: numbers[0][0]]}*{last[numbers[-1][1] :]}", shape] += 1
    return [pattern for (pattern, _), count in shapes.items() if count > 1]


def listing(
    films: Sequence[tuple[str, str]],
    more: str | None = None,
    patterns: Sequence[tuple[str, str]] = (),
) -> str:
    """The list of files, as a page.

    Args:
        films: names and addresses.
        more: address of the next page; None: there is none.
        patterns: of files that can be played one after the other, and addresses.
    """
    lines = "".join(
        # of sound alone, or of a file that cannot be read
        f'<li><a href="{escape(address)}"><img alt="" loading="lazy" '
        'onerror="this.hidden=true;this.nextElementSibling.hidden=false" '
        f'src="{escape(address)}thumbnail.jpg?w=240"><em hidden>No picture</em> {escape(name)}</a>'
        for name, address in films
    )
    further = "" if more is None else f'<p><a href="{escape(more)}" rel="next">More videos</a></p>'
    none = "" if further else "<p>There are no videos here.</p>"
    together = "".join(
        f'<li><a href="{escape(address)}">{escape(pattern)}</a>' for pattern, address in patterns
    )
    recordings = f"<p>Recordings as one video:<ul>{together}</ul>" if together else ""
    films_ = f'<ul class="films">{lines}</ul>' if lines else none
    return _page("Videos", recordings + films_ + further)


def player(name: str, home: str | None = "/", several: bool = False) -> str:
    """A page that plays a file, with the addresses for players.

    Args:
        name: of the file.
        home: address of the list of all files; None: there is none.
        several: whether it is a pattern of files, which have lists alone.
    """
    links = (
        ("hls/master.m3u8", "HLS"),
        ("dash/manifest.mpd", "DASH"),
        ("fragmented.mp4", "One fragmented file"),
        ("faststart.mp4", "A progressive file with its moov first"),
        ("clip.mp4?start=0&end=10", "A clip of the first ten seconds"),
        ("thumbnail.jpg?t=5&w=320", "The key frame near the fifth second"),
        ("storyboard.vtt", "A storyboard: WebVTT and its sheets"),
        ("peaks.json", "The waveform"),
        ("loudness.json", "The loudness"),
    )
    rows = "".join(
        f'<div><dt>{escape(what)}<dd><a href="{escape(link)}"><code>{escape(link)}</code></a></div>'
        for link, what in links[: 2 if several else None]
    )
    played = "hls/master.m3u8" if several else "fragmented.mp4"
    video = (
        f'<video controls preload="metadata" src="{played}" '
        'onerror="this.hidden=true;this.nextElementSibling.hidden=false"></video>'
        "<p hidden>This video cannot be played here: "
        f'<a href="{played}">its address says why</a>, or the browser lacks the codec.</p>'
    )
    every = "" if home is None else f'<p><a href="{escape(home)}">All videos</a></p>'
    return _page(name, f"{video}<dl>{rows}</dl>{every}")
