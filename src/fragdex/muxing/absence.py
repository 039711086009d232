"""Proof that no sample of a span of a source is left in another file, shown, hidden or lost in it.

The samples of the span are cut into blocks. Every offset of the other file is compared with all of
them at once: whatever repeats two blocks' length of a sample repeats a block. A block that the rest
of the source has too, such as silence, is no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, Final

import numpy as np

from fragdex.byterange import ByteRange, coalesce
from fragdex.errors import FragdexError
from fragdex.fragments.findings import Finding
from fragdex.fragments.table import Int64
from fragdex.indexing.making import index_source
from fragdex.muxing.spans import segments_of
from fragdex.record import record
from fragdex.seeking.model import Index, Track
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.sources import Source, SourceLike, open_source

BLOCK: Final = 16
"""Bytes: no two pieces of media agree in as many by chance."""
WORD: Final = 8
"""Bytes of blocks of texts and data that are shorter than `BLOCK`."""
PIECE: Final = 1 << 20
"""Bytes that are looked at together."""
MOST_BLOCKS: Final = 2_000_000
"""Of a longer span blocks lie further apart, and only longer pieces of it are sure to be found."""
MOST_FINDINGS: Final = 100
_AT_ONCE: Final = 1000
_FILTER: Final = 3
_FEWEST: Final = 4
"""Values of bytes that such a text has: tables have numbers of fewer."""
# odd, without a pattern: what mixes two words into one (splitmix64, xxHash)
_FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


@record(frozen=True, slots=True)
class Absence:
    """How much was looked for, and which of it is left.

    Attributes:
        findings: samples that are left (`sample-left`), in the order of tracks, 100 at most; none:
            it is proved.
        left: how many are left.
        samples: in the spans.
        blocks: of them that were compared with every offset; two of `WORD` bytes of a sample of
            neither pictures nor sound that is shorter than `BLOCK`.
        apart: bytes from one block of a sample to the next: a piece of `apart` + 15 bytes is found.
        elsewhere: blocks that are left, and that the rest of the source has, too.
        short: different samples too short for blocks. They are compared with whole samples of the
            other file, and are not looked for anywhere else.
    """

    findings: tuple[Finding, ...]
    left: int
    samples: int
    blocks: int
    apart: int
    elsewhere: int
    short: int


class Blocks:
    """Blocks of bytes, to be found at any offset."""

    def __init__(self, blocks: Sequence[bytes]) -> None:
        self._size = len(blocks[0])
        words = np.frombuffer(b"".join(blocks), "<u8").reshape(-1, self._size // 8)
        mixed = _mixed(*words.T)
        # of equal blocks the first
        self._mixed, self._numbers = np.unique(mixed, return_index=True)
        self._middle = at = self._size // 2 - 1
        middle = np.frombuffer(b"".join(blocks), np.uint8).reshape(-1, self._size)[:, at : at + 3]
        self._may_be = np.zeros(1 << 24, np.bool_)
        self._may_be[_three(*middle.T.astype(np.uint32))] = True

    def found(self, source: Source, ranges: Iterable[ByteRange]) -> Iterator[tuple[int, int]]:
        """Offsets in a source, and the number of the block that is there, in order."""
        for one in ranges:
            at = one.start
            while at < one.stop:
                stop = min(at + PIECE + self._size - 1, one.stop)
                yield from self._in(source.read(ByteRange(at, stop)), at)
                at += PIECE

    def _in(self, data: bytes, base: int) -> Iterator[tuple[int, int]]:
        count = len(data) - self._size + 1
        if count <= 0:
            return
        wide = np.frombuffer(data, np.uint8).astype(np.uint32)
        low = self._middle
        keys = _three(*(wide[low + n : low + n + count] for n in range(_FILTER)))
        places = np.flatnonzero(self._may_be[keys])
        if not len(places):
            return
        words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
        mixed = _mixed(*(words[places + 8 * n] for n in range(self._size // 8)))
        rows = self._mixed.searchsorted(mixed).clip(max=len(self._mixed) - 1)
        same = self._mixed[rows] == mixed
        hits = zip(places[same].tolist(), self._numbers[rows[same]].tolist(), strict=True)
        yield from ((base + place, number) for place, number in hits)


def _mixed(*words: Any) -> Any:
    mixed = np.zeros(len(words[0]), np.uint64)
    for word, factor in zip(words, _FACTORS, strict=False):
        mixed = (mixed ^ word) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _three(first: Any, second: Any, third: Any) -> Any:
    return first | second << np.uint32(8) | third << np.uint32(16)


@record(frozen=True, slots=True)
class _Part:
    """The samples of a track that are in the spans, and those that are not."""

    track: Track
    inside: Int64
    outside: Int64


def left_of(
    output: SourceLike,
    index: Index,
    source: SourceLike,
    spans: Iterable[tuple[TimeLike, TimeLike]],
) -> Absence:
    """Look for the samples of spans of a source in the bytes of another file.

    Pictures are in a span where they begin in it; of sound, texts and other samples, whatever is
    presented in it. Those of every track are looked for, at every offset, in boxes of any kind;
    but not timecode, of which one sample counts the frames of the whole.

    Args:
        output: the other file, of any kind, read once from its start to its end.
        index: of the source, with its samples.
        source: the source, of which the spans are read; all of it only where something is found.
        spans: start (inclusive) and stop (exclusive), times as `Track.seek` takes them.

    Raises:
        ValueError: a span ends before it starts, or there is no sample in any.
        InexactIndex: the index does not know the samples.
        And what reading raises.
    """
    edges = [(exact_time(start), exact_time(stop)) for start, stop in spans]
    for start, stop in edges:
        if not start < stop:
            raise ValueError(f"a span ends after it starts, not from {start} to {stop}")
    tracks = chain.from_iterable(period.tracks for period in index.periods)
    parts = [_part(track, edges) for track in tracks if track.kind != "timecode"]
    samples = sum(len(part.inside) for part in parts)
    if not samples:
        raise ValueError("there is no sample in these spans")
    total = sum(int(part.track.samples.size[part.inside].sum()) for part in parts)
    apart = max(BLOCK, -(-total // MOST_BLOCKS))
    media, other = open_source(source), open_source(output)
    try:
        places, contents, short = _blocks(parts, media, apart)
        texts = {
            data: (number, row) for data, (number, row) in short.items()
            if len(data) >= WORD and len({*data}) >= _FEWEST
            and parts[number].track.kind not in ("video", "audio")
        }  # fmt: skip
        short = {data: place for data, place in short.items() if data not in texts}
        words = [part for data in texts for part in (data[:WORD], data[-WORD:])]
        owners = [place for place in texts.values() for _ in range(2)]
        left, elsewhere = _left(contents, places, other, media, parts)
        some, more = _left(words, owners, other, media, parts)
        small = _short_of_others(short, other) if short else {}
        if small:
            same = _short(media, ((part.track, part.outside) for part in parts))
            small = {data: at for data, at in small.items() if data not in same}
        left |= some | {short[data]: at for data, at in small.items()}
        findings = [_finding(parts, *place, at) for place, at in sorted(left.items())]
        return Absence(
            tuple(findings[:MOST_FINDINGS]), len(findings), samples, len(contents) + len(words),
            apart, elsewhere + more, len(short),
        )  # fmt: skip
    finally:
        for one, given in ((media, source), (other, output)):
            if one is not given:
                one.close()


def _part(track: Track, spans: Sequence[tuple[Fraction | float, Fraction | float]]) -> _Part:
    table, scale = track.samples, track.timescale
    begins, ends = table.cts, table.cts + np.maximum(table.duration, 1)
    inside = np.zeros(len(table), np.bool_)
    for segment in segments_of(track):
        for start, stop in spans:
            first = max(start, segment.start)
            last = stop if segment.stop is None else min(stop, segment.stop)
            if not first < last:
                continue
            pace = scale * (segment.rate != 0)
            low = round(segment.media_time + (first - segment.start) * pace)
            high = segment.media_time + (last - segment.start) * pace if pace else low + 1
            shown = (begins < high) & (ends > low)
            if track.kind == "video" and pace and first > segment.start:
                shown &= begins >= low
            inside |= shown
    return _Part(track, np.flatnonzero(inside), np.flatnonzero(~inside))


def _read(source: Source, track: Track, rows: Int64) -> Iterator[tuple[int, bytes]]:
    """Samples by their numbers; what the file lacks is not there."""
    table = track.samples
    for at in range(0, len(rows), _AT_ONCE):
        some = rows[at : at + _AT_ONCE].tolist()
        extents = [(int(table.offset[n]), int(table.size[n])) for n in some]
        ranges = [ByteRange.of(max(place, 0), max(size, 0)) for place, size in extents]
        yield from zip(some, source.read_many(ranges), strict=True)


def _blocks(
    parts: Sequence[_Part], source: Source, apart: int
) -> tuple[list[tuple[int, int]], list[bytes], dict[bytes, tuple[int, int]]]:
    """Of each block the part and the sample, the blocks, and samples that are shorter."""
    places: list[tuple[int, int]] = []
    contents: list[bytes] = []
    short: dict[bytes, tuple[int, int]] = {}
    for number, part in enumerate(parts):
        for row, data in _read(source, part.track, part.inside):
            last = len(data) - BLOCK
            if last < 0:
                short.setdefault(data, (number, row))
                continue
            for at in dict.fromkeys([*range(0, last + 1, apart), last]):
                block = data[at : at + BLOCK]
                if block.count(block[0]) < BLOCK:  # zeros are in tables, too
                    places.append((number, row))
                    contents.append(block)
    short.pop(b"", None)
    return places, contents, short


def _left(
    contents: Sequence[bytes],
    places: Sequence[tuple[int, int]],
    other: Source,
    media: Source,
    parts: Sequence[_Part],
) -> tuple[dict[tuple[int, int], int], int]:
    """First offset of each sample found; how many blocks the source has elsewhere."""
    hits = _hits(contents, other, None)
    elsewhere = _hits([contents[n] for n in hits], media, parts) if hits else {}
    rest = {n: at for place, (n, at) in enumerate(hits.items()) if place not in elsewhere}
    return {places[n]: at for n, at in reversed(rest.items())}, len(elsewhere)


def _hits(
    contents: Sequence[bytes], source: Source, outside: Sequence[_Part] | None
) -> dict[int, int]:
    """Which blocks a source has, and the first offset of each.

    Args:
        outside: everywhere but in samples that are in the spans; None: everywhere.
    """
    hits: dict[int, int] = {}
    if not contents:
        return hits
    size = _size(source)
    ranges = [ByteRange(0, size)]
    if outside is not None:
        gone = coalesce(
            ByteRange.of(place, length)
            for part in outside
            for place, length in zip(
                part.track.samples.offset[part.inside].tolist(),
                part.track.samples.size[part.inside].tolist(),
                strict=True,
            )
            if place >= 0 < length
        )
        inside = chain.from_iterable((one.start, one.stop) for one in gone)
        edges = [0, *(min(edge, size) for edge in inside), size]
        both = zip(edges[::2], edges[1::2], strict=True)
        ranges = [ByteRange(low, high) for low, high in both if low < high]
    for offset, number in Blocks(contents).found(source, ranges):
        hits.setdefault(number, offset)
    return hits


def _short(source: Source, rows: Iterable[tuple[Track, Int64]]) -> dict[bytes, int]:
    """The samples of less than a block, and where each is first."""
    found: dict[bytes, int] = {}
    for track, numbers in rows:
        small = numbers[track.samples.size[numbers] < BLOCK]
        for row, data in _read(source, track, small):
            found.setdefault(data, int(track.samples.offset[row]))
    return found


def _short_of_others(short: Iterable[bytes], other: Source) -> dict[bytes, int]:
    """Those that are samples of another file; none of a file that is no MP4."""
    try:
        index = index_source(other, exact=True)
        every = ((t, np.arange(len(t.samples))) for p in index.periods for t in p.tracks)
        theirs = _short(other, every)
    except FragdexError:
        return {}
    return {data: theirs[data] for data in short if data in theirs}


def _size(source: Source) -> int:
    if source.size is None:
        source.read_up_to(ByteRange(0, 1))
    assert source.size is not None
    return source.size


def _finding(parts: Sequence[_Part], number: int, row: int, offset: int) -> Finding:
    track = parts[number].track
    time = track.presentation(int(track.samples.cts[row])).seconds
    size = int(track.samples.size[row])
    return Finding(
        "sample-left",
        f"bytes of the {track.kind} sample at {time:.3f} s ({size:,} bytes) are in the file",
        offset=offset,
        track=track.id,
    )
