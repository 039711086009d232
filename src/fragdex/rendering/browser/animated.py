"""Pictures that move by themselves: GIF, APNG, WebP, AVIF, and SVG with animations.

Chromium gives rasters the page's time. An SVG that is a picture (`<img>`, CSS, `<image>`) is a page
of its own whose clock begins when it is loaded and that is drawn each sixtieth of a second: it is
reported. In a frame of its own (`<iframe>`, `<object>`) its clock is the page's.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

from fragdex.rendering.browser.model import Notes

ANIMATED: Final = "an animated picture"
"""What `Notes.keeps` says of a page that shows GIF, APNG, WebP or AVIF that move."""

DRAWING: Final = "an animated SVG picture"
"""The same of SVG."""

CSS_CHANCE: Final = "a seed for random() of CSS: other values in each run"
"""What `Notes.refused` says of a page with chance that its sheets draw."""

_CHANCE: Final = re.compile(rb"(?<![-\w.])random(?:-item)?\((?!\s*fixed\b)", re.IGNORECASE)
_COMMENT: Final = re.compile(rb"/\*.*?\*/", re.DOTALL)
# A picture of a GIF, with what says how long it is shown.
_TIMED: Final = re.compile(rb"\x21\xf9\x04.{4}\0[\x2c\x21]", re.DOTALL)
_VP8X_FLAGS: Final = 20
_VP8X_ANIMATION: Final = 2

_SVG: Final = re.compile(
    rb"(?:\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>)*<(?:[\w.-]+:)?svg[\s/>]",
    re.DOTALL,
)
# SMIL, with any prefix of its namespace, and what begins by itself in CSS.
_MOVES: Final = re.compile(
    rb"<(?:[\w.-]+:)?(?:animate|set\b|discard\b)|@(?:-\w+-)?keyframes|@starting-style",
    re.IGNORECASE,
)
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# In HTML, CSS, scripts and SVG; what a page itself shows of them, Chromium reports.
_INLINE: Final = re.compile(
    rb"data:image/[-+.\w]{1,20}(?:;[-\w=]{1,30})*?(?:;base64,([A-Za-z0-9+/]{24,}={0,2})"
    rb"|,([^\r\n]*?(?:</svg|%3C/svg)(?:>|%3E)))"
)


def is_animated(data: bytes) -> bool:
    """Whether bytes are a picture that moves."""
    return is_raster_animated(data) or _moves_as_drawing(data)


def note_sheet(notes: Notes, text: bytes) -> None:
    """Report chance of a sheet, if it draws any: of one that scripts cannot read."""
    if _CHANCE.search(_COMMENT.sub(b"", text)):
        notes.say("refused", CSS_CHANCE)


def note_picture(notes: Notes, data: bytes, what: str, where: str = "") -> None:
    """Report a picture that moves, if it does: what it is called, and what it is written in."""
    if any(map(is_raster_animated, (data, *pictures_in(data)))):
        # Chromium turns its pictures when it draws, and rounds by when that was.
        notes.say("keeps", ANIMATED)
    if _SVG.match(drawing := _text(data)) is not None:
        note_sheet(notes, drawing)
    if _moves_as_drawing(data):
        notes.say("keeps", DRAWING)
        notes.say(
            "refused",
            f"a clock for an animated SVG picture, {what[:120]}: it moves by itself; within the "
            f"page, as <svg> or <iframe>, it follows the page's{where and f' ({where[:300]})'}",
        )


def pictures_in(text: bytes) -> Iterator[bytes]:
    """The pictures that stand within a text as data: URLs."""
    for match in _INLINE.finditer(text):
        if match[1] is None:
            yield unquote_to_bytes(match[2])
        else:
            with contextlib.suppress(ValueError):
                yield base64.b64decode(match[1] + b"==")


def picture_of(url: str) -> bytes:
    """The bytes of a data: URL."""
    head, _, text = url.partition(",")
    data = unquote_to_bytes(text)
    if not head.rstrip().lower().endswith(";base64"):
        return data
    with contextlib.suppress(ValueError):
        plain = b"".join(data.split()).replace(b"-", b"+").replace(b"_", b"/").rstrip(b"=")
        return base64.b64decode(plain + b"=" * (-len(plain) % 4))
    return b""


def is_raster_animated(data: bytes) -> bool:
    """Whether bytes are a GIF, APNG, WebP or AVIF that moves."""
    if data.startswith(b"GIF8"):
        return len(_TIMED.findall(data)) > 1
    if data.startswith(b"\x89PNG"):
        return b"acTL" in data[: max(0, data.find(b"IDAT"))]
    if data.startswith(b"RIFF") and data[8:16] == b"WEBPVP8X":
        return len(data) > _VP8X_FLAGS and bool(data[_VP8X_FLAGS] & _VP8X_ANIMATION)
    return data[4:12] == b"ftypavis"


def _text(data: bytes) -> bytes:
    """In UTF-8, without a mark of it."""
    if data.startswith(_UTF16):
        return data.decode("utf-16", "replace").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def _moves_as_drawing(data: bytes) -> bool:
    text = _text(data)
    if _SVG.match(text) is None:
        return False
    return _MOVES.search(text) is not None or any(map(_moves_as_drawing, pictures_in(text)))
