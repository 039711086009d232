"""Segments of fragments that are made: the initialization segment, and moofs around samples.

One moof for all tracks of a segment, a traf for each, then one mdat. Values that all samples share
stand in the tfhd, the others in rows of the trun; which these are is decided for a whole track, so
that the size of a moof follows from how many samples it has.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, build, make_box, parse
from fragdex.boxes.fragments import (
    DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    DEFAULT_SAMPLE_DURATION,
    DEFAULT_SAMPLE_FLAGS,
    DEFAULT_SAMPLE_SIZE,
    FIRST_SAMPLE_FLAGS,
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DESCRIPTION_INDEX,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError
from fragdex.formats.sidx import boxes
from fragdex.formats.subsegments import Subsegments
from fragdex.fragments.table import NULL, FragmentFlags, Int64
from fragdex.muxing.clip_movie import clip_init, track_id, traks_of
from fragdex.muxing.clip_samples import OTHER_FLAGS, SYNC_FLAGS, described
from fragdex.muxing.media import media_type
from fragdex.muxing.plan import PlannedTrack
from fragdex.muxing.protection import Protected
from fragdex.muxing.segmentation import cut, reference
from fragdex.muxing.view import Block, Scattered, SourceRange, View, size_of
from fragdex.seeking.origin import FileInfo
from fragdex.seeking.times import TimeLike, exact_time

CMAF = "cmfc"
"""A track of fragments with composition offsets of 0 or more (ISO/IEC 23000-19, 7.2)."""


def init_segment(init: bytes, media: Sequence[PlannedTrack]) -> bytes:
    """The initialization segment for some tracks.

    Args:
        init: the source's ftyp and moov.
        media: the tracks, with their timescales; an edit list of one entry says their
            `media_time`.

    Raises:
        BuildError: there is no moov.
    """
    known = {one.track.id: one for one in media}
    traks = []
    for piece in clip_init(init, set(known), delays=False, from_samples=True):
        if piece[4:8] == b"moov":
            (moov,) = parse(piece)
            piece = build(moov.replace(children=[_child(box, known) for box in moov.children]))
        elif piece[4:8] == b"ftyp" and len(media) == 1:
            (ftyp,) = parse(piece)
            brands = (*ftyp["compatible_brands"], CMAF)
            piece = build(ftyp.replace(compatible_brands=brands))
        traks.append(piece)
    return b"".join(piece for piece in traks if piece[4:8] in (b"ftyp", b"moov"))


def _child(box: Box, known: dict[int, PlannedTrack]) -> Box:
    media = known.get(track_id(box)) if box.type == "trak" else None
    if media is None:
        return box
    children = []
    for child in box.children:
        if child.type == "edts":
            continue
        if child.type == "mdia" and media.timescale != media.track.timescale:
            child = child.replace(children=[_finer(one, media) for one in child.children])
        children.append(child)
        ticks = media.media_time
        if child.type == "tkhd" and ticks:
            elst = make_box("elst", version=int(ticks >= 1 << 31), entries=[(0, ticks, 1, 0)])
            children.append(make_box("edts", children=[elst]))
    return box.replace(children=children)


def _finer(box: Box, media: PlannedTrack) -> Box:
    return box.replace(timescale=media.timescale) if box.type == "mdhd" else box


def descriptions_of(trak: Box | None, media: PlannedTrack) -> Int64 | None:
    """sample_description_index of each sample of a track; None: 1 for all.

    Raises:
        BuildError: the moov does not describe the track, or fragments use several descriptions,
            and which one is not known here.
    """
    track = media.track
    stsd = None if trak is None else trak.find("mdia/minf/stbl/stsd")
    if trak is None or stsd is None or not stsd.children:
        raise BuildError(
            f"the moov describes no samples of track {track.id}", path="moov/trak/mdia/minf/stbl"
        )
    virtual = (track.fragments.flags & FragmentFlags.VIRTUAL) != 0
    if len(stsd.children) == 1:
        return None
    if not virtual.all():
        raise BuildError(
            f"fragments of track {track.id} have several sample descriptions, and which one each "
            "uses is not in the index",
            path="moov/trak/mdia/minf/stbl/stsd",
        )
    firsts = media.source_numbers
    numbers = described(trak, firsts)
    if media.unit and (numbers != described(trak, np.append(firsts[1:], media.count) - 1)).any():
        raise BuildError(
            f"another sample description begins inside a chunk of track {track.id}",
            path="moov/trak/mdia/minf/stbl/stsd",
        )
    return None if (numbers == 1).all() else numbers


_WIDE: Final = 1 << 32
_EVEN_SYNC, _FIRST_SYNC, _NO_SYNC, _MIXED = range(4)
"""Which samples of a fragment are sync: all, the first alone, none, or as its rows say."""
_MOOF, _TRAF, _TFDT = 24, 8, 20
"""Bytes of a moof with its mfhd, of a traf's header, of a tfdt of version 1."""
STYP: Final = struct.pack(">I4s4sI4s4s", 24, b"styp", b"msdh", 0, b"msdh", b"cmfs")
"""A media segment (ISO/IEC 23009-1, 6.3.4.2; ISO/IEC 23000-19, 7.2)."""


class Fragments:
    """Fragments of some tracks.

    Args:
        media: the tracks; those that have no samples in a fragment are not in it.
        edges: of each track, the first sample of each fragment, and the end; equally many.
        descriptions: of each track the sample_description_index of its samples, or None: 1.
        lead: bytes in front of each fragment.
        protection: of each track what decrypts its samples, or None; None: nothing does.
        begins: decode time at which the first fragment says that it begins, before its samples do;
            None: with them. Players that take it for the time of the fragment are right then.

    Attributes:
        sizes: int64 bytes of each fragment, with what leads it.

    Raises:
        BuildError: a value does not fit into a fragment.
    """

    def __init__(
        self,
        media: Sequence[PlannedTrack],
        edges: Sequence[Int64],
        descriptions: Sequence[Int64 | None],
        lead: bytes = b"",
        protection: Sequence[Protected | None] | None = None,
        begins: int | None = None,
    ) -> None:
        keys = [None] * len(media) if protection is None else protection
        self._tracks = [_Track(*one) for one in zip(media, edges, descriptions, keys, strict=True)]
        self._lead = lead
        self._first = lead + (b"" if begins is None else _empty(media[0].track.id, begins))
        payload = sum(track.payload for track in self._tracks)
        self.payload: Int64 = np.asarray(payload, np.int64)
        self._header = np.where(self.payload + 8 >= _WIDE, 16, 8)
        boxes = _MOOF + sum(track.boxes for track in self._tracks)
        self._moof: Int64 = np.asarray(boxes, np.int64)
        self.sizes: Int64 = len(lead) + self._moof + self._header + self.payload
        self.sizes[:1] += len(self._first) - len(lead)
        ahead = self._moof + self._header + self.payload - self._tracks[-1].payload
        if len(ahead) and int(ahead.max()) >= _WIDE >> 1:
            raise BuildError(
                "a fragment is so large that the samples of its last track cannot be named",
                path="moof/traf/trun",
                expected=f"data_offset below {_WIDE >> 1}",
                found=int(ahead.max()),
                advice="take one track alone, or shorter fragments",
            )

    def __len__(self) -> int:
        return len(self.sizes)

    def parts(self, number: int) -> list[Block]:
        """The parts of a fragment, by its number from 0."""
        payload, header = int(self.payload[number]), int(self._header[number])
        at = int(self._moof[number]) + header
        trafs: list[Block] = []
        media: list[Block] = []
        place = _MOOF
        for track in self._tracks:
            traf, inside, size = track.traf(number, at, place)
            place += sum(map(size_of, traf))
            trafs += traf
            media += inside
            at += size
        moof = struct.pack(
            ">I4sI4sII", int(self._moof[number]), b"moof", 16, b"mfhd", 0, number + 1
        )
        mdat = struct.pack(">I4s", payload + 8, b"mdat")
        if header == 16:
            mdat = struct.pack(">I4sQ", 1, b"mdat", payload + 16)
        lead = self._lead if number else self._first
        return [*_joined([lead, moof, *trafs, mdat]), *media]


def _joined(blocks: Iterable[Block]) -> Iterator[Block]:
    """Made bytes that touch as one."""
    pieces: list[bytes] = []
    for block in blocks:
        if isinstance(block, bytes):
            pieces.append(block)
            continue
        yield b"".join(pieces)
        yield block
        pieces = []
    yield b"".join(pieces)


def _empty(track: int, time: int) -> bytes:
    """A fragment that has no samples, and says the time at which it begins."""
    tfhd = struct.pack(">I4sII", 16, b"tfhd", DEFAULT_BASE_IS_MOOF, track)
    tfdt = struct.pack(">I4sIQ", _TFDT, b"tfdt", 1 << 24, time)
    size = _MOOF + _TRAF + len(tfhd) + _TFDT + 20
    trun = struct.pack(">I4sIIi", 20, b"trun", DATA_OFFSET, 0, size + 8)
    head = struct.pack(">I4sI4sII", size, b"moof", 16, b"mfhd", 0, 0)
    head += struct.pack(">I4s", size - _MOOF, b"traf")
    return b"".join([head, tfhd, tfdt, trun, struct.pack(">I4s", 8, b"mdat")])


class _Track:
    """What the fragments hold of one track.

    Of a fragment alone depends which values its samples share: what comes later changes nothing.
    """

    def __init__(
        self,
        media: PlannedTrack,
        edges: Int64,
        descriptions: Int64 | None,
        protection: Protected | None,
    ) -> None:
        samples = media.samples
        self._offsets = offsets = media.offsets
        _refuse_wide(media, offsets)
        self._media, self._edges = media, edges
        self._descriptions, self._protection = descriptions, protection
        self._durations, self._sizes = media.durations, samples.size
        if media.unit:
            # a row stands for several samples that are alike
            self._sizes = np.broadcast_to(np.int64(media.unit), len(samples))
            self._durations = media.durations // (samples.size // media.unit)
        # how often each column changes, and how many are not 0, up to each sample
        self._changes = [
            _counted(column[1:] != column[:-1]) for column in (self._durations, self._sizes)
        ]
        self._moved = _counted(offsets != 0)
        self._bytes_before = np.concatenate([[0], np.cumsum(samples.size)])
        self._sync_before = _counted(samples.sync)
        self.payload: Int64 = np.diff(self._bytes_before[edges])
        runs = self._runs(edges)
        # sizes of all runs at once, then of the fragments that they are in
        low, high = runs[:-1], runs[1:]
        kind = self._kinds(low, high)
        even_duration, even_size = self._even(low, high)
        width = 4 * (
            ~even_duration + 0 + ~even_size + (kind == _MIXED)
            + (self._moved[high] > self._moved[low])
        )  # fmt: skip
        sizes = (
            _TRAF + _TFDT + 16 + 20 + 4 * (even_duration + 0 + even_size)
            + 4 * (kind != _MIXED) + 4 * (kind == _FIRST_SYNC) + (high - low) * width
        )  # fmt: skip
        if descriptions is not None:
            sizes = sizes + 4 * (descriptions[np.minimum(low, len(samples) - 1)] != 1)
        if protection is not None:
            sizes = sizes + protection.boxes(low, high)
        sizes = np.where(high > low, sizes, 0)
        self.boxes: Int64 = np.zeros(len(edges) - 1, np.int64)
        np.add.at(self.boxes, np.searchsorted(edges, low, side="right") - 1, sizes)

    def _even(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Whether the samples of runs share their duration, and their size."""
        last = np.maximum(high - 1, low)
        duration, size = (changes[last] == changes[low] for changes in self._changes)
        return duration, size

    def _runs(self, edges: Int64) -> Int64:
        """Where trafs begin: at each fragment, and where another sample description is used."""
        if self._descriptions is None:
            return np.unique(edges)
        changes = np.flatnonzero(np.diff(self._descriptions)) + 1
        return np.unique(np.concatenate([edges, changes]))

    def _kinds(self, low: Int64, high: Int64) -> Int64:
        """Which of their samples are sync, of runs."""
        count = self._sync_before[high] - self._sync_before[low]
        first = self._media.samples.sync[np.minimum(low, len(self._media) - 1)]
        kind: Int64 = np.select(
            [count == high - low, (count == 1) & first, count == 0],
            [_EVEN_SYNC, _FIRST_SYNC, _NO_SYNC],
            _MIXED,
        )
        return kind

    def traf(self, number: int, at: int, place: int) -> tuple[list[Block], list[Block], int]:
        """The trafs of a fragment, where their samples are, and bytes of these.

        Args:
            number: of the fragment.
            at: where the samples begin, in bytes from the moof's start.
            place: where the trafs begin, likewise.
        """
        low, high = int(self._edges[number]), int(self._edges[number + 1])
        start = at
        blocks: list[Block] = []
        media: list[Block] = []
        edges = np.array([low, high]) if low < high else np.zeros(0, np.int64)
        if self._descriptions is not None and low < high:
            changes = np.flatnonzero(np.diff(self._descriptions[low:high])) + low + 1
            edges = np.concatenate([[low], changes, [high]])
        for first, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            run = self._run(first, stop, at, place)
            place += sum(map(size_of, run))
            blocks += run
            at += int(self._bytes_before[stop] - self._bytes_before[first])
        if low < high:
            media = self._places(low, high)
        return blocks, media, at - start

    def _places(self, low: int, high: int) -> list[Block]:
        """Where samples lie; those that touch are one range."""
        samples, sources = self._media.samples, self._media.source[low:high]
        starts, sizes = samples.offset[low:high], samples.size[low:high]
        apart = (starts[1:] != starts[:-1] + sizes[:-1]) | (sources[1:] != sources[:-1])
        heads = np.append(0, np.flatnonzero(apart) + 1)
        lengths = np.add.reduceat(sizes, heads)
        is_filled = lengths > 0
        starts, sources, lengths = (
            starts[heads][is_filled],
            sources[heads][is_filled],
            lengths[is_filled],
        )
        edges = [0, *(np.flatnonzero(np.diff(sources)) + 1).tolist(), len(sources)]
        blocks: list[Block] = []
        for first, stop in pairwise(edges):
            if stop - first > 1:
                mine = slice(first, stop)
                blocks.append(Scattered(int(sources[first]), starts[mine], lengths[mine]))
            elif stop > first:
                whole = ByteRange.of(int(starts[first]), int(lengths[first]))
                blocks.append(SourceRange(int(sources[first]), whole))
        return blocks

    def _run(self, low: int, high: int, at: int, place: int) -> list[Block]:
        samples = self._media.samples
        even_duration, even_size = self._even(low, high)
        kind = int(self._kinds(np.array([low]), np.array([high]))[0])
        description = 1 if self._descriptions is None else int(self._descriptions[low])
        flags, shared = DEFAULT_BASE_IS_MOOF, b""
        for value, flag in (
            (description if description != 1 else None, SAMPLE_DESCRIPTION_INDEX),
            (int(self._durations[low]) if even_duration else None, DEFAULT_SAMPLE_DURATION),
            (int(self._sizes[low]) if even_size else None, DEFAULT_SAMPLE_SIZE),
            (_shared_flags(kind), DEFAULT_SAMPLE_FLAGS),
        ):
            if value is not None:
                flags |= flag
                shared += struct.pack(">I", value)
        tfhd = (
            struct.pack(">I4sII", 16 + len(shared), b"tfhd", flags, self._media.track.id) + shared
        )
        tfdt = struct.pack(">I4sIQ", 20, b"tfdt", 1 << 24, int(self._media.decode[low]))
        columns = [("duration", ">u4")] * (not even_duration) + [("size", ">u4")] * (not even_size)
        if kind == _MIXED:
            columns.append(("flags", ">u4"))
        if self._moved[high] > self._moved[low]:
            columns.append(("offset", ">i4"))
        rows = np.empty(high - low, np.dtype(columns))
        flags, first = 1 << 24 | DATA_OFFSET, b""
        for name, _ in columns:
            flags |= _FLAG_OF[name]
            if name == "flags":
                rows[name] = np.where(samples.sync[low:high], SYNC_FLAGS, OTHER_FLAGS)
            elif name == "offset":
                rows[name] = self._offsets[low:high]
            elif name == "duration":
                rows[name] = self._durations[low:high]
            else:
                rows[name] = self._sizes[low:high]
        if kind == _FIRST_SYNC:
            flags |= FIRST_SAMPLE_FLAGS
            first = struct.pack(">I", SYNC_FLAGS)
        size = 20 + len(first) + rows.nbytes
        count, unit = high - low, self._media.unit
        if unit:
            count = int(self._bytes_before[high] - self._bytes_before[low]) // unit
        trun = struct.pack(">I4sIIi", size, b"trun", flags, count, at) + first
        head, keys = tfhd + tfdt, []
        if self._protection is not None:
            keys = self._protection.blocks(low, high, place + _TRAF + len(head))
        size = _TRAF + len(head) + sum(map(size_of, keys)) + len(trun) + rows.nbytes
        return [struct.pack(">I4s", size, b"traf") + head, *keys, trun + rows.tobytes()]


_FLAG_OF: Final = {
    "duration": SAMPLE_DURATION,
    "size": SAMPLE_SIZE,
    "flags": SAMPLE_FLAGS,
    "offset": SAMPLE_COMPOSITION_TIME_OFFSET,
}


def _counted(which: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """How many are so before each, and in all; a track has fewer than 2^31 samples."""
    counts = np.zeros(len(which) + 1, np.int32)
    np.cumsum(which, dtype=np.int32, out=counts[1:])
    return counts


def _shared_flags(kind: int) -> int | None:
    return {_EVEN_SYNC: SYNC_FLAGS, _FIRST_SYNC: OTHER_FLAGS, _NO_SYNC: OTHER_FLAGS}.get(kind)


def _refuse_wide(media: PlannedTrack, offsets: Int64) -> None:
    for name, column, least, most in (
        ("sample_duration", media.durations, 0, _WIDE),
        ("sample_size", media.samples.size, 0, _WIDE),
        ("sample_composition_time_offset", offsets, -(_WIDE >> 1), _WIDE >> 1),
    ):
        if len(column) and not (least <= int(column.min()) and int(column.max()) < most):
            raise BuildError(
                f"{name} of track {media.track.id} does not fit into a fragment",
                path="moof/traf/trun",
                expected=f"{least} to {most - 1}",
                found=f"{int(column.min())} to {int(column.max())}",
            )


def seconds_of(seconds: TimeLike | None) -> Fraction | None:
    """A wanted length as an exact number of seconds; None stays.

    Raises:
        ValueError: it is not above 0.

    >>> seconds_of("2.5s")
    Fraction(5, 2)
    """
    if seconds is None:
        return None
    length = exact_time(seconds)
    if not 0 < length < float("inf"):
        raise ValueError(f"segments must last longer than 0 s, and not for ever: {seconds}")
    return Fraction(length)


class Segments:
    """Tracks cut into segments, each a fragment with all of them.

    Args:
        init: the source's ftyp and moov.
        media: the tracks, at least one.
        seconds: wanted length; None: a segment for each sync sample.
        edges: of each track the first sample of each segment, and the end; None: cut again.
        descriptions: of each track, as `descriptions_of` gives them; None: asked again.
        protection: of each track, as `protected` gives it; None: all are clear.
        head: bytes in front of each fragment.
        begins: as `Fragments` takes it.

    Attributes:
        media, edges: as given or cut.
        fragments: sizes and parts of the fragments.
        lead: the track whose times are those of the segments.
        time: int64 presentation time of each segment in ticks of the lead; the first begins where
            the track does, or at 0 where the edit list hides what is before.
        is_closed: whether nothing in a segment is presented before its first sample.
        duration: int64 ticks to the next one's time, the last one's to the end of the track.

    Raises:
        NoSyncSample, BuildError: as `cut` and `Fragments`.
    """

    def __init__(
        self,
        init: bytes,
        media: Sequence[PlannedTrack],
        seconds: Fraction | None,
        edges: Sequence[Int64] | None = None,
        *,
        descriptions: Sequence[Int64 | None] | None = None,
        protection: Sequence[Protected | None] | None = None,
        head: bytes = b"",
        begins: int | None = None,
    ) -> None:
        self.media = list(media)
        self.lead = reference(self.media)
        self.edges = list(edges) if edges is not None else cut(self.media, seconds, self.lead)
        self._source_init = init
        self.media_type = media_type(one.track for one in self.media)
        if descriptions is None:
            traks = traks_of(parse(init))
            descriptions = [descriptions_of(traks.get(m.track.id), m) for m in self.media]
        self.fragments = Fragments(self.media, self.edges, descriptions, head, protection, begins)
        mine = self.edges[next(n for n, one in enumerate(self.media) if one is self.lead)]
        shown = self.lead.presentation
        # From a segment on nothing earlier is presented: its least time, and those after it.
        least = np.minimum.reduceat(shown, mine[:-1])
        least = np.minimum.accumulate(least[::-1])[::-1]
        self.time: Int64 = np.maximum(least, 0)
        self.duration: Int64 = np.diff(self.time, append=max(self.lead.end, int(self.time[-1])))
        starts = self.lead.samples.sync[mine[:-1]]
        self.is_closed = bool((shown[mine[:-1]] <= least).all())
        self._access = np.where(starts, np.maximum(shown[mine[:-1]], 0), NULL)

    def __len__(self) -> int:
        return len(self.fragments)

    @cached_property
    def init(self) -> bytes:
        """The initialization segment; made when it is requested."""
        return init_segment(self._source_init, self.media)

    @cached_property
    def sidx(self) -> bytes:
        """The segment index that stands between initialization segment and fragments."""
        return build(boxes(self._subsegments, self.lead.track.id, self.lead.timescale))

    @property
    def _subsegments(self) -> Subsegments:
        """The fragments as stretches, for a sidx."""
        sizes = self.fragments.sizes
        return Subsegments(
            np.cumsum(sizes) - sizes,
            sizes,
            self.time,
            self.duration,
            self._access,
            (self._access != NULL).astype(np.int64),
            np.arange(len(sizes)),
        )

    def whole(
        self,
        sources: Sequence[FileInfo],
        recipe: Any,
        media_type: str | None = None,
        findings: Iterable[str] = (),
    ) -> View:
        """One file as a view: initialization segment, sidx and all fragments.

        Args:
            sources: of the tracks.
            recipe: what else decides its bytes.
            media_type: None: that of the tracks.
            findings: of the view.
        """
        head = self.init + self.sidx
        sizes = np.concatenate([[len(head)], self.fragments.sizes])

        def block(number: int) -> Sequence[Block]:
            return self.fragments.parts(number - 1) if number else [head]

        return View(media_type or self.media_type, sources, recipe, sizes, block, findings)

    def view(self, number: int, source: FileInfo, recipe: Any) -> View:
        """One segment as a view; `recipe` says what else decides its bytes."""
        size = int(self.fragments.sizes[number])
        return View(
            self.media_type,
            [source],
            [*recipe, number],
            [size],
            lambda _: self.fragments.parts(number),
        )
