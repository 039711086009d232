"""WebVTT segments from caption files, and from samples of wvtt and tx3g tracks.

How long a segment is has to be known before its text is read. A segment of samples therefore has a
bound that follows from their sizes, and ends in empty lines up to it, which WebVTT ignores.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from fragdex.boxes import Box, parse
from fragdex.errors import FragdexError
from fragdex.fragments.table import Int64

__all__ = [
    "SAMPLE_BYTES",
    "TIMING",
    "VttCue",
    "cues_of_sample",
    "header",
    "sample_bound",
    "written",
]

SAMPLE_BYTES: Final = 1 << 16
"""A sample of text that is larger is left out: it is no subtitle."""
_ESCAPED: Final = 5
"""Bytes that one byte of text becomes at most: & is written as &amp;."""
TIMING: Final = 64
"""Bytes of the times of a cue at most, with the lines around it."""
_TAGS: Final = ((1, "b"), (2, "i"), (4, "u"))
"""face_style_flags of a style record (3GPP TS 26.245, 5.17.1.1)."""


class VttCue(NamedTuple):
    """Text from `start` (inclusive) to `end` (exclusive), seconds of presentation.

    Attributes:
        start, end: as said.
        text: the payload as it stands in WebVTT, escaped.
        settings: behind the times, or "".
    """

    start: Fraction
    end: Fraction
    text: str
    settings: str = ""


def header(blocks: Iterable[str] = ()) -> str:
    r"""What each segment begins with: styles, and that its times are those of the presentation.

    X-TIMESTAMP-MAP ties the times of cues to those of the media (RFC 8216, 3.5), which are the
    same here.

    >>> header()
    'WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n'
    """
    told = "".join(f"{block}\n\n" for block in blocks)
    return f"WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n{told}"


def written(head: str, cues: Iterable[VttCue]) -> bytes:
    r"""A WebVTT text. Cues of one text that touch are one.

    >>> cues = [VttCue(Fraction(1), Fraction(2), "Hi"), VttCue(Fraction(2), Fraction(5, 2), "Hi")]
    >>> written("WEBVTT\n\n", cues)
    b'WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nHi\n\n'
    """
    joined: list[VttCue] = []
    for cue in cues:
        for number in range(len(joined) - 1, max(len(joined) - 9, -1), -1):
            if joined[number][1:] == (cue.start, *cue[2:]):
                joined[number] = joined[number]._replace(end=cue.end)
                break
        else:
            joined.append(cue)
    blocks = [
        f"{_clock(cue.start)} --> {_clock(cue.end)}{' ' if cue.settings else ''}{cue.settings}\n"
        f"{cue.text}\n\n"
        for cue in joined
        if _milliseconds(cue.end) > _milliseconds(cue.start)
    ]
    return (head + "".join(blocks)).encode("utf-8", "replace")


def sample_bound(sizes: Int64) -> Int64:
    """Bytes that the cues of each sample need at most, by the samples' sizes.

    >>> import numpy as np
    >>> sample_bound(np.array([10, 2])).tolist()
    [114, 74]
    """
    return _ESCAPED * sizes + TIMING


def cues_of_sample(data: bytes, code: str, start: Fraction, end: Fraction) -> Iterator[VttCue]:
    r"""The cues of a sample: one of tx3g, any number of wvtt; none where it cannot be read.

    Args:
        data: of the sample.
        code: of its sample entry: wvtt or tx3g.
        start, end: seconds of presentation.

    >>> [cue.text for cue in cues_of_sample(b"\0\3a<b", "tx3g", Fraction(0), Fraction(1))]
    ['a&lt;b']
    """
    if len(data) > SAMPLE_BYTES:
        return
    if code == "tx3g":
        text = _lines(_styled(data))
        if text:
            yield VttCue(start, end, text)
        return
    try:
        boxes = parse(data)
    except (FragdexError, ValueError):
        return
    for box in boxes:
        text = _lines(_field(box, "payl", "cue_text")) if box.type == "vttc" else ""
        if text:
            settings = " ".join(_field(box, "sttg", "settings").split())
            yield VttCue(start, end, text, "" if "-->" in settings else settings)


def _field(box: Box, child: str, name: str) -> str:
    found = box.find(child)
    value = found.get(name) if found is not None else None
    return value if isinstance(value, str) else ""


def _lines(text: str) -> str:
    """Without empty lines, which would end the cue, and without what would begin another."""
    lines = re.split(r"\r\n|\r|\n", text.replace("\0", "").replace("-->", "--&gt;"))
    return "\n".join(line for line in lines if line.strip())


def _styled(data: bytes) -> str:
    """The text of a tx3g sample (3GPP TS 26.245, 5.17), its styles as tags."""
    size = int.from_bytes(data[:2], "big")
    raw = data[2 : 2 + size]
    wide = {b"\xfe\xff": "utf-16-be", b"\xff\xfe": "utf-16-le"}.get(raw[:2])
    text = raw[2:].decode(wide, "replace") if wide else raw.decode("utf-8", "replace")
    pieces, at = [], 0
    for start, stop, flags in _styles(data[2 + size :]):
        tags = [tag for flag, tag in _TAGS if flags & flag]
        if tags and at <= start < stop:
            pieces.append(_escaped(text[at:start]))
            pieces += [f"<{tag}>" for tag in tags]
            pieces.append(_escaped(text[start:stop]))
            pieces += [f"</{tag}>" for tag in reversed(tags)]
            at = stop
    return "".join([*pieces, _escaped(text[at:])])


def _styles(data: bytes) -> Iterator[Sequence[int]]:
    """First character, the one behind the last, and face flags of style records."""
    at = 0
    while at + 8 <= len(data):
        size, code = struct.unpack_from(">I4s", data, at)
        if size < 8:
            return
        if code == b"styl" and at + 10 <= len(data):
            count = int.from_bytes(data[at + 8 : at + 10], "big")
            stop = min(at + size, len(data))
            for place in range(at + 10, min(at + 10 + 12 * count, stop - 11), 12):
                yield struct.unpack_from(">HHxxB", data, place)
        at += size


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _milliseconds(seconds: Fraction) -> int:
    return int(max(seconds, Fraction(0)) * 1000 + Fraction(1, 2))


def _clock(seconds: Fraction) -> str:
    minutes, millis = divmod(_milliseconds(seconds), 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{millis // 1000:02d}.{millis % 1000:03d}"
