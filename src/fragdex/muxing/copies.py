"""Copies of a file as views: clips, some tracks, the moov or an index in front, captions in it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from fragdex.boxes import Box, build, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, FormatError
from fragdex.indexing.moov import plain_init, plain_moov
from fragdex.muxing.captions import Cues, with_captions
from fragdex.muxing.census import LeftOut, second_tracks
from fragdex.muxing.clip import clip
from fragdex.muxing.clip_span import Clip, Read
from fragdex.muxing.embed import (
    MAX_MENDED,
    Edit,
    embed,
    joined,
    mended,
    mended_box,
    repeated,
    walked,
    whole,
)
from fragdex.muxing.media import media_type
from fragdex.muxing.movie import agreeing, agreeing_brands
from fragdex.muxing.view import Block, SourceRange, View
from fragdex.record import record
from fragdex.seeking.model import Index
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.sources import Source

_MOST_WALKED: Final = 4096
"""Boxes at the top level that are looked at for what must be repaired."""
_AHEAD: Final = 16 << 10
"""Bytes of a remote source that are read at once: a moof comes with its header."""


@record(frozen=True, slots=True)
class ClipRequest:
    """What a clip is to show.

    Attributes:
        start, stop: presentation times as `Track.seek` takes them; stop is exclusive, infinity: to
            the end.
        tracks: track ids; None: all. Other tracks in the same fragments come along.
        fragmented: begin at the sync sample at or before `start`, in whole fragments of a
            fragmented source, else in fragments of about a second.
        keep_times: keep the decode times of the source, in fragments.
        init: the initialization segment, for segments that have none.
        period: number of the period; None: the one that shows this span, if one alone does.
        smart: re-encode the pictures next to the cuts, so that none is hidden.
        removed: spans (stop exclusive) of which it has no sample, in sample tables alone.
    """

    start: TimeLike
    stop: TimeLike
    tracks: Collection[int] | None = None
    fragmented: bool = False
    keep_times: bool = False
    init: bytes | None = None
    period: int | None = None
    smart: bool = False
    removed: tuple[tuple[TimeLike, TimeLike], ...] = ()


def clip_view(index: Index, source: Source, cut: ClipRequest) -> tuple[View, Clip]:
    """A clip, and what it really shows; the clip's blocks are used up."""
    removed = [(exact_time(low), exact_time(high)) for low, high in cut.removed]
    cut_clip = clip(
        index,
        _ahead(source),
        cut.start,
        cut.stop,
        tracks=cut.tracks,
        keep_times=cut.keep_times,
        init=cut.init,
        remote=source.remote,
        fragmented=cut.fragmented,
        period=cut.period,
        smart=cut.smart,
        removed=removed,
    )
    span = [*map(str, map(exact_time, (cut.start, cut.stop))), sorted(cut_clip.tracks), cut.period]
    init = None if cut.init is None else hashlib.md5(cut.init, usedforsecurity=False).hexdigest()
    recipe: list[Any] = ["clip", *span, cut.fragmented, cut.keep_times, init]
    if removed:
        recipe.append([[str(start), str(stop)] for start, stop in removed])
    blocks = cut_clip.blocks
    if cut.smart:
        # Another encoder gives other bytes.
        parts = [*blocks]
        blocks = iter(parts)
        head = b"".join(block for block in parts if isinstance(block, bytes))
        recipe.append(hashlib.md5(head, usedforsecurity=False).hexdigest())
    return copied(index, blocks, recipe, cut_clip.tracks, cut_clip.left_out), cut_clip


def embedded(index: Index, source: Source, **options: Any) -> View:
    """A fragmented file with a segment index in front of its fragments."""
    recipe = ["embedded", sorted(options.items())]
    return copied(index, embed(index, source.read, **options), recipe)


def captioned(index: Index, source: Source, cues: Cues, language: str | None) -> View:
    """A file with a track of captions."""
    pieces = with_captions(index, source.read, cues, language=language)
    return copied(index, pieces, ["captioned", [list(cue) for cue in cues], language])


def copied(
    index: Index,
    blocks: Iterable[Block | ByteRange],
    recipe: Any,
    tracks: Collection[int] | None = None,
    findings: Iterable[str] = (),
) -> View:
    """A view of bytes and ranges of one file.

    Args:
        recipe: what decides them besides the file.
    """
    placed = (SourceRange(0, b) if isinstance(b, ByteRange) else b for b in blocks)
    shown = [t for p in index.periods for t in p.tracks if tracks is None or t.id in tracks]
    said = (*findings, *second_tracks(index))
    return View.of(media_type(shown), [index.file], recipe, placed, said)


def _ahead(source: Source) -> Read:
    """Reads of a source; of a remote one, small ones that follow each other at one go."""
    if not source.remote:
        return source.read
    buffered = ByteRange(0, 0)
    data = b""

    def read(range: ByteRange) -> bytes:
        nonlocal buffered, data
        if range.size >= _AHEAD:
            return source.read(range)
        if not (buffered.start <= range.start and range.stop <= buffered.stop):
            data = source.read_up_to(ByteRange.of(range.start, _AHEAD))
            buffered = ByteRange.of(range.start, len(data))
        if range.stop > buffered.stop:
            return source.read(range)  # says where it ends
        return data[range.start - buffered.start : range.stop - buffered.start]

    return read


def faststart(index: Index, source: Source) -> tuple[View, bool]:
    """The file with its moov in front of the media, and whether its tables are true.

    Brands, durations and the next track_ID that contradict the rest of it are made true.
    """
    size = source.size if index.file.size is None else index.file.size
    if size is None:
        raise BuildError("the size of the source is not known")
    edits, end, has_gaps = _moov_in_front(source, size)
    rest = f"what follows the last box ({size - end:,} bytes)"
    gone = [LeftOut(rest, "it is not a box")] if end < size else []
    is_true = not has_gaps and not any("stbl" in (one.path or "") for one in index.findings)
    return copied(index, joined(edits, end), ["faststart"], findings=gone), is_true


def _has_empty_chunks(moov: Box) -> bool:
    """Whether chunks have no samples: FFmpeg reads none of those after them."""
    tables = (box.get("entries", ()) for box in moov.find_all("trak/mdia/minf/stbl/stsc"))
    return any(len(rows) and not rows["samples_per_chunk"].all() for rows in tables)


def _moov_in_front(source: Source, size: int) -> tuple[list[tuple[ByteRange, bytes]], int, bool]:
    """What puts the moov in front; where the last box ends; whether chunks have no samples."""
    boxes = list(islice(walked(source.read, 0, size), _MOST_WALKED))
    end = boxes[-1][1].stop if 0 < len(boxes) < _MOST_WALKED else size
    types = [code for code, _ in boxes]
    if "moov" not in types:
        raise BuildError("there is no moov, so that it could not be put in front", path="moov")
    moov = types.index("moov")
    is_behind = bool({"mdat", "moof"} & set(types[:moov]))
    if is_behind and "moof" in types:
        raise BuildError(
            "the moov comes after fragments; only a progressive file can be reordered",
            path="moov",
            offset=boxes[moov][1].start,
            advice="make a fragmented view instead",
        )
    part = boxes[moov][1]
    stored = whole(source.read, part)
    unpacked = plain_moov(stored) if b"cmov" in stored[:64] else stored
    plain = plain_init(unpacked)
    small, brands, has_gaps = _agreeing(plain, part.start, boxes, source)
    gone = [(part, b"") for part in repeated(boxes)]
    is_same = plain is unpacked and not brands and not gone
    if not is_behind and is_same and (unpacked is stored or not small):
        return small, end, has_gaps
    given = _spliced(plain, part.start, small)
    place = (boxes[0][1].stop if types[0] == "ftyp" else 0) if is_behind else part.start
    front = (mended_box, ByteRange(place, place), part.start, given)
    others = (one for one in boxes if one[0] != "moov")
    _, changed = mended(source.read, others, [(part, b""), *brands, *gone], [front])
    return [*changed, (part, b""), *brands, *gone], end, has_gaps


def _agreeing(
    data: bytes, at: int, boxes: list[tuple[str, ByteRange]], source: Source
) -> tuple[list[Edit], list[Edit], bool]:
    """What makes a moov and a ftyp true.

    Args:
        data: the moov, which stands at byte `at`.

    Returns: edits of the moov, of a ftyp that lacks brands, and whether chunks have no samples.
    """
    moov = _readable(data)
    if moov is None:
        return [], [], False
    brands = []
    code, place = boxes[0]
    if code == "ftyp" and place.size < MAX_MENDED:
        ftyp = parse_box(source.read(place))
        told = agreeing_brands(ftyp, moov)
        brands = [(place, build(told))] if told is not ftyp else []
    small: list[Edit] = []
    for before, after in _differing(moov, agreeing(moov)):
        made = build(after)
        if len(made) != before.size:
            # a duration that takes 64 bits now: it stays as it is
            continue
        small.append((ByteRange.of(at + before.offset, before.size), made))
    return small, brands, _has_empty_chunks(moov)


def _spliced(data: bytes, at: int, edits: list[Edit]) -> bytes:
    """The bytes of a box at byte `at` with edits that keep its size; it may have 100 MB."""
    if not edits:
        return data
    parts: list[bytes | memoryview] = []
    reached = 0
    for place, made in edits:
        parts += [memoryview(data)[reached : place.start - at], made]
        reached = place.stop - at
    return b"".join([*parts, memoryview(data)[reached:]])


def _differing(old: Box, new: Box) -> Iterator[tuple[Box, Box]]:
    """The boxes without children of two trees of one form that are not the same."""
    for before, after in zip(old, new, strict=True):
        if after is before:
            continue
        if before.children:
            yield from _differing(before, after)
        else:
            yield before, after


_LARGE: Final = frozenset(("free", "skip", "udta", "meta"))
"""Boxes of a moov that may be large, and say nothing here."""


def _readable(data: bytes) -> Box | None:
    """A moov as far as it is needed here; None: it cannot be read."""
    try:
        return parse_box(data, leave=_LARGE)
    except FormatError:
        return None
