"""Initialization segments without samples, remembered where headers are those of another file.

Files of one encoder have the same headers but for durations, which such a segment leaves out, and
for the bit rates in their sample entry, which it takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fragdex.box_header import read_header

MOST_SEGMENTS = 64
"""Segments that are remembered from file to file."""
LARGEST = 1 << 14
"""Bytes of headers up to which a segment is remembered."""
_RATES = 12, 20
"""Places in a btrt: its rates, and its end (8.5.2)."""
_SEGMENTS: dict[bytes, tuple[bytes, bytes]] = {}


def remembered(init: bytes, track: int, make: Callable[[], bytes | None]) -> bytes | None:
    """What `make` gives of a simple file, or the same from another one of the same headers.

    Args:
        init: ftyp and moov, of a file that `indexing.simple_files` knows.
    """
    headers = _headers(init, track)
    if headers is None:
        return make()
    key, stsd = headers
    known = _SEGMENTS.get(key)
    if known is not None:
        return known[0] + stsd + known[1]
    segment = make()
    parts = [] if segment is None else segment.split(stsd)
    if len(parts) == 2:
        if len(_SEGMENTS) >= MOST_SEGMENTS:
            _SEGMENTS.clear()
        _SEGMENTS[key] = parts[0], parts[1]
    return segment


def _headers(init: bytes, track: int) -> tuple[bytes, bytes] | None:
    """All of a segment that tells one without samples from another, and the stsd of the track."""
    parts: list[bytes] = []
    kept: bytes | None = None
    for kind, at, stop in _boxes(init, 0, len(init)):
        if kind != b"moov":
            parts.append(init[at:stop])
            continue
        for child, first, end in _boxes(init, at + 8, stop):
            if child == b"trak":
                found = _of_trak(init, first, end, track)
                if found is not None:
                    parts += found[0]
                    kept = found[1]
            else:
                parts.append(_timeless(init[first:end], child))
    key = b"".join(parts)
    if kept is None or len(key) > LARGEST:
        return None
    return key, kept


def _of_trak(init: bytes, at: int, stop: int, track: int) -> tuple[list[bytes], bytes] | None:
    """The headers of the track, and its stsd; None: it is another one."""
    parts: list[bytes] = []
    stsd = b""
    waiting = [(at, stop)]
    for first, end in waiting:
        for kind, begin, until in _boxes(init, first + 8, end):
            data = init[begin:until]
            if kind == b"tkhd":
                number = 28 if data[8] else 20
                if int.from_bytes(data[number : number + 4], "big") != track:
                    return None
            if kind in (b"mdia", b"minf", b"stbl"):
                waiting.append((begin, until))
                parts.append(kind)
            elif kind == b"stsd":
                stsd = data
                parts.append(_rateless(data))
            elif kind == b"edts":
                parts += _edits(data)
            elif not _is_table(kind):
                parts.append(_timeless(data, kind))
    return parts, stsd


def _boxes(data: bytes, at: int, stop: int) -> Iterator[tuple[bytes, int, int]]:
    """Type, place and end of the boxes in a stretch."""
    while (header := read_header(data, at, stop)) is not None and header.fits(stop - at):
        yield header.type, at, at + header.size
        at += header.size


def _is_table(kind: bytes) -> bool:
    tables = (b"stts", b"ctts", b"stss", b"stsc", b"stsz", b"stco", b"co64", b"sgpd", b"sbgp")
    return kind in tables


_DURATIONS = {
    b"mvhd": ((24, 28), (32, 40)),
    b"mdhd": ((24, 28), (32, 40)),
    b"tkhd": ((28, 32), (36, 44)),
}
"""Where a duration stands in a header of version 0, and of version 1."""


def _timeless(data: bytes, kind: bytes) -> bytes:
    """A header without its duration."""
    places = _DURATIONS.get(kind)
    if places is None:
        return data
    start, stop = places[1 if data[8] else 0]
    # Whether there is one: what has none stays as it is.
    return data[:start] + bytes([any(data[start:stop])]) + data[stop:]


def _edits(data: bytes) -> list[bytes]:
    """An edts without the durations of its edits."""
    wide = data[16]
    row, length = (20, 8) if wide else (12, 4)
    rows = [data[at + length : at + row] for at in range(24, len(data), row)]
    return [data[:24], *rows]


def _rateless(stsd: bytes) -> bytes:
    """A stsd without the rates of its btrt."""
    at = stsd.find(b"\0\0\0\x14btrt")
    if at < 0:
        return stsd
    return stsd[: at + 8] + stsd[at + 20 :]
