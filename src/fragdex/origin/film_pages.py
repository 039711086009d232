"""The list of films, and a page that plays one without any script."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from urllib.parse import quote

__all__ = ["listing", "player"]

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "video{width:100%;background:#000}code{background:#8882;padding:0 .3em}"
)


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>{body}</html>"
    )


def listing(names: Iterable[str]) -> str:
    """The list of films, as a page.

    >>> "<a href='a%20b.mp4/'>a b.mp4</a>" in listing(["a b.mp4"])
    True
    """
    lines = "".join(f"<li><a href='{quote(name)}/'>{escape(name)}</a>" for name in names)
    return _page("Films", f"<ul>{lines}</ul>" if lines else "<p>There are no films here.</p>")


def player(name: str) -> str:
    """A page that plays a film, with the addresses for players.

    >>> "fragmented.mp4" in player("a.mp4")
    True
    """
    links = (
        ("hls/master.m3u8", "HLS"),
        ("dash/manifest.mpd", "DASH"),
        ("fragmented.mp4", "one fragmented file"),
        ("thumbnail.jpg?t=5&w=320", "the key frame near the fifth second"),
        ("clip.mp4?start=0&end=10", "a clip of the first ten seconds"),
    )
    rows = "".join(
        f'<li>{escape(what)}: <a href="{escape(link)}"><code>{escape(link)}</code></a>'
        for link, what in links
    )
    video = '<video controls preload="metadata" src="fragmented.mp4"></video>'
    return _page(name, f"{video}<ul>{rows}</ul><p><a href='/'>All films</a></p>")
