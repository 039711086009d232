"""Caption files that are given beside the films of a title: WebVTT, SubRip or JSON."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from hashlib import md5
from typing import Final

from fragdex.byterange import ByteRange
from fragdex.errors import LimitExceeded, MalformedCaptions
from fragdex.formats.captions_text import parse_json, parse_srt, webvtt_cues
from fragdex.formats.captions_track import Cue
from fragdex.formats.languages import language_tag
from fragdex.sources import open_source

__all__ = ["Captions", "captions_of", "read_captions"]

MOST_BYTES: Final = 16 << 20
"""Bytes of a caption file; ten hours have about one million."""
_SUFFIXES: Final = (".vtt", ".srt", ".json")
_TAG: Final = re.compile(r"[a-zA-Z]{2,3}(?:-[a-zA-Z0-9]{2,8})*")
_MARKUP: Final = re.compile(r"<(/?[biu])>|<[^<>\n]*>|\{\\[^{}\n]*\}")


@dataclass(frozen=True, slots=True)
class Captions:
    """Subtitles of a title.

    Attributes:
        cues: in order of their starts, each with its settings; their text is as in WebVTT.
        language: BCP 47 tag, or None.
        title: what people choose them by; None: the language.
        forced: whether they are shown to those who chose no subtitles: translations of signs.
        default: whether they are shown unless people choose something else.
        blocks: styles and regions.
        digest: hex digits that two files of other bytes do not share.
    """

    cues: tuple[tuple[Cue, str], ...]
    language: str | None = None
    title: str | None = None
    forced: bool = False
    default: bool = False
    blocks: tuple[str, ...] = field(default=())
    digest: str = ""


def read_captions(path: str | os.PathLike[str], *, language: str | None = None) -> Captions:
    """A caption file, its language and kind by its name: `film.fr.srt`, `film.en-GB.forced.vtt`.

    Args:
        path: ends in .vtt, .srt or .json; or a URL.
        language: BCP 47 tag; None: by the name.

    Raises:
        MalformedCaptions: it is none of these kinds, or breaks their rules; names the line.
        LimitExceeded: it is too large.
        SourceError: it cannot be read.
    """
    name = os.fspath(path)
    words = name.rpartition("/")[2].partition("?")[0].split(".")
    kind = f".{words.pop().lower()}"
    if kind not in _SUFFIXES:
        raise MalformedCaptions(f"{name}: captions end in {', '.join(_SUFFIXES)}")
    with open_source(name) as source:
        data = source.read_up_to(ByteRange(0, MOST_BYTES + 1))
    if len(data) > MOST_BYTES:
        raise LimitExceeded(f"{name} has more than {MOST_BYTES} bytes of captions")
    forced = words[-1:] == ["forced"]
    default = words[-1:] == ["default"]
    if forced or default:
        words.pop()
    if language is None and len(words) > 1 and _TAG.fullmatch(words[-1]):
        language = words[-1]
    try:
        return captions_of(data, kind, language=language, forced=forced, default=default)
    except MalformedCaptions as error:
        error.args = (f"{name}: {error.message}",)
        error.message = error.args[0]
        raise


def captions_of(
    data: bytes,
    kind: str,
    *,
    language: str | None = None,
    title: str | None = None,
    forced: bool = False,
    default: bool = False,
) -> Captions:
    r"""The captions in the bytes of a file.

    Args:
        data: of it.
        kind: .vtt, .srt or .json.
        language, title, forced, default: as in `Captions`.

    Raises:
        MalformedCaptions: they break the rules of their kind.

    >>> captions_of(b"1\n00:00:01,000 --> 00:00:02,000\n<i>a & b</i>\n", ".srt").cues
    ((Cue(start_ms=1000, end_ms=2000, text='<i>a &amp; b</i>'), ''),)
    """
    blocks: list[str] = []
    if kind == ".vtt":
        blocks, cues = webvtt_cues(data)
    else:
        plain = parse_srt(data) if kind == ".srt" else parse_json(data)
        cues = [(cue._replace(text=_payload(cue.text, kind == ".srt")), "") for cue in plain]
    ordered = sorted(cues, key=lambda one: one[0].start_ms)
    digest = md5(data, usedforsecurity=False).hexdigest()
    tag = language_tag(language)
    return Captions(tuple(ordered), tag, title, forced, default, tuple(blocks), digest)


def _payload(text: str, markup: bool) -> str:
    """Plain text as a payload of WebVTT; of SubRip's markup, what both know stays."""
    pieces, at = [], 0
    for found in _MARKUP.finditer(text) if markup else ():
        pieces.append(_escaped(text[at : found.start()]))
        pieces.append(f"<{found[1]}>" if found[1] else "")
        at = found.end()
    return "".join([*pieces, _escaped(text[at:])])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
