"""The picture that is shown at any time, and key frames alone, by ranges through the index."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.decoding.codec import MOST_PIXELS
from fragdex.decoding.open_track import fetched
from fragdex.decoding.video_track import Picture, VideoTrack
from fragdex.errors import (
    NoSyncSample,
    SourceChanged,
    TruncatedInput,
    UndecodableMedia,
    UnverifiedSync,
)
from fragdex.fragments.table import NULL
from fragdex.indexing.access import can_start
from fragdex.seeking.model import Index
from fragdex.seeking.numbering import reorder_depth
from fragdex.seeking.seek import Hit
from fragdex.seeking.times import TimeLike, exact_time, floor_ticks
from fragdex.seeking.track import Track
from fragdex.sources import SourceLike

_UNSPECIFIED: Final = 2
_HD_LINES: Final = 720
# Matrix coefficients by their number (ITU-T H.273, 8.3): names for swscale and for VideoFrame.
_BT709: Final = ("ITU709", "bt709")
_BT601: Final = ("ITU601", "smpte170m")
_MATRICES: Final = {1: _BT709, 5: ("ITU601", "bt470bg"), 6: _BT601, 9: ("BT2020", "bt2020-ncl")}


class Orientation(NamedTuple):
    """How a stored picture becomes the one that is shown (ISO/IEC 14496-12, 6.2.2).

    Attributes:
        transposed: its rows become columns, before all else.
        mirrored: then left and right change places.
        flipped: and top and bottom.
    """

    transposed: bool = False
    mirrored: bool = False
    flipped: bool = False

    def of(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A view of an array of shape (height, width, …), as it is shown."""
        array = array.swapaxes(0, 1) if self.transposed else array
        array = array[:, ::-1] if self.mirrored else array
        return array[::-1] if self.flipped else array


_AS_STORED: Final = Orientation()


def orientation_of(frame: Any) -> Orientation:
    """What the display matrix of a decoded picture says; one with other angles is left as it is."""
    _take_any_side_data()
    matrix = frame.side_data.get("DISPLAYMATRIX")
    if matrix is None:
        return _AS_STORED
    # a b u c d v x y w: x' = a x + c y, y' = b x + d y
    a, b, _, c, d = np.frombuffer(bytes(matrix)[:20], np.int32).tolist()
    if a and d and not b and not c:
        return Orientation(False, a < 0, d < 0)
    if b and c and not a and not d:
        return Orientation(True, c < 0, b < 0)
    return _AS_STORED


@functools.cache
def _take_any_side_data() -> None:
    """Let PyAV name every side data of a frame by number where it has no name.

    It names all to answer for one, and has no name for those of later FFmpeg: a ValueError for each
    picture of MV-HEVC (the number of its view) and of Motion JPEG with Exif.
    """
    from av.sidedata.sidedata import Type

    def unnamed(kind: Any, number: int) -> Any:
        member = object.__new__(kind)
        member._name_, member._value_ = f"UNNAMED_{number}", number
        return member

    if "_missing_" not in vars(Type):
        # a name that enumerations look up for this purpose
        Type._missing_ = classmethod(unnamed)  # type: ignore[assignment]


def shown_size(picture: Picture) -> tuple[int, int]:
    """Width and height of a decoded picture as it is shown: its pixels square, itself upright."""
    frame = picture.frame
    height = frame.height
    width = max(1, round(frame.width * (picture.aspect if picture.aspect > 0 else 1)))
    if width * height > MOST_PIXELS:
        raise UndecodableMedia(f"pictures of {width} × {height} are too large")
    return (height, width) if orientation_of(frame).transposed else (width, height)


def is_much_smaller(size: tuple[int, int], own: tuple[int, int]) -> bool:
    """Whether both sides are a third of a picture's own or less."""
    return all(side * 3 <= whole for side, whole in zip(size, own, strict=True))


def matrix_of(frame: Any) -> tuple[str, str]:
    """Names of the matrix that its colours are made by; of one that does not say, by its height."""
    number = int(frame.colorspace)
    guess = _BT709 if frame.height >= _HD_LINES else _BT601
    return guess if number == _UNSPECIFIED else _MATRICES.get(number, guess)


_IN_PART: Final = ("yuv420p", "yuva420p", "yuvj420p", "yuv422p", "yuvj422p")
_WIDE: Final = 16


def written_whole(frame: Any, name: str) -> Any:
    """A picture of which swscale makes a format with no pixel left as it was in memory.

    Of 8-bit 4:2:0 and 4:2:2 it leaves out the last columns in RGBA and RGB of 16 bits where the
    width is not a multiple of 16 (of 2). So such a picture is made wider; what is over is to be cut
    off. Pixels are not changed by what is next to them there.

    Args:
        name: FFmpeg's name of the format, in the same size.
    """
    left_out = name in ("rgba", "bgra", "rgb48le") and frame.format.name in _IN_PART
    if not left_out or frame.width % _WIDE == 0 or frame.height % 2:
        return frame
    wide = type(frame)(-(-frame.width // _WIDE) * _WIDE, frame.height, frame.format.name)
    for plane, wider in zip(frame.planes, wide.planes, strict=True):
        rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: plane.height]
        into = np.zeros((wider.buffer_size // wider.line_size, wider.line_size), np.uint8)
        into[: plane.height, : plane.width] = rows[:, : plane.width]
        wider.update(into.tobytes())
    wide.colorspace, wide.color_range = frame.colorspace, frame.color_range
    return wide


def rgb_of(frame: Any, name: str, **how: Any) -> np.ndarray[Any, Any]:
    """A picture in a format of RGB, of shape (height, width, 3 or 4)."""
    width, height = how.pop("width", frame.width), how.pop("height", frame.height)
    if (width, height) == (frame.width, frame.height):
        ready = written_whole(frame, name).reformat(format=name, **how)
    else:
        ready = frame.reformat(format=name, width=width, height=height, **how)
    array: np.ndarray[Any, Any] = ready.to_ndarray()
    return array[:, :width]


def upright(picture: Picture, size: tuple[int, int] | None = None) -> np.ndarray[Any, Any]:
    """Red, green, blue (and opacity, where it has any), as it is shown.

    Returns: uint8 of shape (height, width, 3 or 4).
    """
    frame = picture.frame
    name = frame.format.name
    clear = "yuva" in name or "rgba" in name or "argb" in name or name in ("bgra", "abgr", "ya8")
    width, height = size or shown_size(picture)
    orientation = orientation_of(frame)
    if orientation.transposed:
        width, height = height, width
    is_yuv = name.startswith(("yuv", "nv", "p0"))
    # of much smaller pictures each pixel is the mean of those that it stands for
    is_small = is_much_smaller((width, height), (frame.width, frame.height))
    array = rgb_of(
        frame,
        "rgba" if clear else "rgb24",
        width=width,
        height=height,
        src_colorspace=matrix_of(frame)[0] if is_yuv else None,
        interpolation="AREA" if is_small else "BICUBIC",
    )
    return np.ascontiguousarray(orientation.of(array))


AT_ONCE = 16 << 20
"""Bytes of fragments that are read by one request; a longer fragment is read by its samples."""
REORDERED = 16
"""Fragments before the last one that may still show a later picture: decoders keep no more."""
KEPT = 32
"""Decoded pictures that wait for their turn at most: decoders hold back no more (H.264: 16)."""
EARLIER = 2
"""Sync samples before the one that a seek finds, tried where it gives no picture."""
LATE = 64
"""Samples after the wanted one after which a decoder has dropped it."""

Place = tuple[int, int]
"""Row of the fragment table, sample in that fragment."""


class PictureReader(VideoTrack):
    """Pictures of one track, at any time, and in order for less.

    Args and errors as of `VideoTrack`.
    """

    def _opened(self) -> None:
        self._feed: Iterator[tuple[Place, Any]] = iter(())
        # Rows that belong to what is decoded: the first, after the last that is shown by now, and
        # after those whose reordering is known.
        self._start = self._last = self._measured = 0
        self._next: Place | None = None  # None: the decoder has to start again
        self._given = -(1 << 62)  # cts of the latest picture that the decoder gave
        self._waiting: dict[int, Any] = {}
        self._shown: tuple[int, int, Picture] | None = None

    def at(self, time: TimeLike) -> Picture:
        """The picture of a time: before the first that one, after the end the last."""
        target = floor_ticks(time, self.track.timescale, self.track.shift)
        if self._shown is not None and self._shown[0] <= target < self._shown[1]:
            return self._shown[2]
        hit = self.track.seek(time)
        last = self._rows_until(hit.fragment, target)
        wanted, until, begin, end = self._wanted(hit.fragment, hit.cts, last, target)
        if wanted not in self._waiting:
            self._decode(begin, end, last, wanted, float(exact_time(time)))
        for _ in range(EARLIER):
            if wanted in self._waiting or hit.clamped:
                break
            # Wrongly marked as a sync sample: for example pictures refreshed little by little.
            hit = self.track.seek((hit.cts - 1 + self.track.shift) / self.track.timescale)
            begin = self._sync_place(hit.fragment, hit.cts)
            self._next = None
            self._decode(begin, end, last, wanted, float(exact_time(time)))
        nearest = wanted
        if nearest not in self._waiting:
            # Dropped by the decoder: what stands before it stays.
            before = [cts for cts in self._waiting if cts <= wanted]
            if not before:
                raise self._undecodable(float(exact_time(time)))
            nearest = max(before)
        frame = self._waiting[nearest]
        self._waiting = {cts: kept for cts, kept in self._waiting.items() if cts >= nearest}
        picture = self._picture(nearest, frame)
        first = -(1 << 62) if target < wanted else wanted
        self._shown = first, until, picture
        return picture

    def time_at(self, time: TimeLike) -> Fraction:
        """When the picture of a time begins, without decoding it; raises as `at`."""
        target = floor_ticks(time, self.track.timescale, self.track.shift)
        hit = self.track.seek(time)
        last = self._rows_until(hit.fragment, target)
        wanted, *_ = self._wanted(hit.fragment, hit.cts, last, target)
        return self.track.presentation(wanted).fraction

    # -- which sample

    def _rows_until(self, first: int, target: int) -> int:
        """Row after the last fragment, from `first` on, with a sample at or before a time."""
        starts = self.track.fragments.cts_min[first:]
        shown = np.flatnonzero((starts <= target) & (starts != NULL))
        return first + int(shown[-1]) + 1 if len(shown) else first + 1

    def _wanted(self, row: int, sync: int, last: int, target: int) -> tuple[int, int, Place, Place]:
        """The picture of a time: its cts, that of the next, the sync sample, its own place."""
        begin = self._sync_place(row, sync)
        first = max(row, last - REORDERED)
        known = [(n, self._table(n)) for n in range(first, last)]
        # Pictures before the sync sample belong to the one before.
        all_cts = np.concatenate([table.cts for _, table in known])
        rows = np.repeat([n for n, _ in known], [len(table) for _, table in known])
        places = np.concatenate([np.arange(len(table)) for _, table in known])
        shown = all_cts >= sync
        at_or_before = np.flatnonzero(shown & (all_cts <= target))
        if len(at_or_before):
            chosen = int(at_or_before[np.argmax(all_cts[at_or_before])])
        else:
            chosen = int(np.flatnonzero(shown)[np.argmin(all_cts[shown])])
        later = all_cts[all_cts > max(target, int(all_cts[chosen]))]
        # The next fragment may begin with a picture that comes sooner than these.
        table = self.track.fragments
        following = table.cts_min[last : last + REORDERED]
        following = following[(following != NULL) & (following > target)]
        until = min([*later.tolist(), *following.tolist()], default=target + 1)
        return int(all_cts[chosen]), until, begin, (int(rows[chosen]), int(places[chosen]))

    def _sync_place(self, row: int, cts: int) -> Place:
        table = self._table(row)
        places = np.flatnonzero((table.cts == cts) & table.sync)
        return row, int(places[0]) if len(places) else 0

    def _before_samples(self, row: int) -> None:
        self._take_ahead(row, AT_ONCE, whole=True)

    # -- decoding

    def _decode(self, begin: Place, end: Place, last: int, wanted: int, time: float) -> None:
        """Decode until the wanted picture is there, from where the decoder is if that will do.

        Args:
            last: row after the last fragment that shows anything up to it.
        """
        goes_on = self._next is not None and begin <= self._next and wanted > self._given
        if not goes_on:
            self._begins = True
            self._waiting, self._given = {}, -(1 << 62)
            self._feed = self._packets(begin)
            self._start = self._measured = begin[0]
        self._last = last
        self._measure(begin[0] if self._next is None or not goes_on else self._next[0])
        late = 0
        for place, packet in self._feed:
            last_here = place[1] + 1 >= len(self._table(place[0]))
            self._next = (place[0] + 1, 0) if last_here else (place[0], place[1] + 1)
            self._take(packet, time)
            if wanted in self._waiting:
                return
            # The picture alone is wanted: no other fragment is read for what the decoder holds
            # back. In order, the next one is needed anyhow.
            late += place >= end
            if place >= end and ((last_here and not goes_on) or late > LATE):
                break
        self._take(None, time)
        self._next = None

    def _measure(self, row: int) -> None:
        """Before a row is decoded: how far the samples around it are reordered."""
        needed = max(min(self._last, row + REORDERED // 2), row + 1)
        if min(needed, len(self.track.fragments)) <= self._measured:
            return
        self._measured = max(min(self._last, row + REORDERED), row + 1)
        first = max(self._start, row - REORDERED)
        rows = [self._table(number).cts for number in range(first, self._measured)]
        self._hold_back(reorder_depth(np.concatenate(rows)))

    def _take(self, packet: Any, time: float) -> None:
        for frame in self._frames(packet, time):
            if frame.pts is not None:
                self._waiting[frame.pts] = frame
                self._given = max(self._given, frame.pts)
        while len(self._waiting) > KEPT:
            self._waiting.pop(min(self._waiting))

    def _packets(self, begin: Place) -> Iterator[tuple[Place, Any]]:
        """The samples from a place on, each as a packet for the decoder; None: it starts again."""
        row, first = begin
        before = begin
        for number in range(row, len(self.track.fragments)):
            self._measure(number)
            table = self._table(number)
            chosen = table.rows(slice(first, len(table)))
            self._before_samples(number)
            extents = zip(chosen.offset.tolist(), chosen.size.tolist(), strict=True)
            parts = fetched(self._ahead, [chosen]).parts(
                (max(at, 0), max(size, 0)) for at, size in extents
            )
            for n, data in enumerate(parts):
                if not data:
                    continue
                place = number, first + n
                entry = self._entry_of(*place)
                if (entry != self._entry and not self._begins) and (
                    chosen.sync[n] or not self._setup.decode_alike(entry, self._entry)
                ):
                    yield before, None
                    self._begins = True
                before = place
                yield place, self._packet(data, chosen, n, entry)
            first = 0


FIRST_BYTES = 128 << 10
"""Bytes of a fragment that are read with its moof, where the index holds no samples."""
MOST_SAMPLE = 256 << 20
"""Bytes of a sample; a picture of 8192 × 8192 at 16 bits has more only if it is not compressed."""


def nearest_sync(track: Track, time: TimeLike) -> Hit:
    """The sync sample that is shown nearest to a time; of two as near, the earlier one."""
    before = track.seek(time)
    target = floor_ticks(time, track.timescale, track.shift)
    after = _next_sync(track, target)
    if after is None or (before.cts <= target and target - before.cts <= after - target):
        return before
    return track.seek(track.presentation(after))


def _next_sync(track: Track, target: int) -> int | None:
    """Composition time of the first sync sample after a time, in ticks; None: there is none."""
    sync = track.sync_samples
    place = int(sync.cts.searchsorted(target, side="right"))
    if place:
        first, step, count = (
            int(column[place - 1]) for column in (sync.cts, sync.step, sync.count)
        )
        number = (target - first) // step + 1 if step > 0 else count
        if number < count:
            return first + number * step
    return int(sync.cts[place]) if place < len(sync) else None


class KeyFrameReader(VideoTrack):
    """Key frames of one track; whatever else the file holds is neither read nor decoded.

    Args:
        widest: pixels that the longer side of the resulting pictures has at most; None: not
            known. Where that is a third of the picture's shorter side or less, edges of blocks are
            not smoothed, which nobody would see.
        And errors and what else is given as of `VideoTrack`.
    """

    def __init__(
        self,
        index: Index,
        source: SourceLike,
        *,
        track: int | None = None,
        init: bytes | None = None,
        widest: int | None = None,
    ) -> None:
        super().__init__(index, source, track=track, init=init)
        info = self.track.info
        shorter = min(info.width or 0, info.height or 0)
        if widest is not None and is_much_smaller((widest, widest), (shorter, shorter)):
            self._options = {"skip_loop_filter": "all"}
            self._context.options = {**self._context.options, **self._options}

    def near(self, time: TimeLike) -> Picture:
        """The key frame that is shown nearest to a time.

        Where it cannot be decoded, or is not a key frame whatever the file says, an earlier one.
        """
        hit = nearest = nearest_sync(self.track, time)
        for _ in range(EARLIER + 1):
            picture = self.of(hit)
            if picture is not None:
                return picture
            earlier = (hit.cts - 1 + self.track.shift) / self.track.timescale
            try:
                hit = self.track.seek(earlier, verified=True, source=self._ahead)
            except (NoSyncSample, UnverifiedSync, TruncatedInput, SourceChanged):
                break  # SourceChanged: the file is shorter than what the index describes
            if hit.clamped:
                break
        picture = self.of(nearest, believe=True)
        if picture is None:
            raise self._undecodable(float(exact_time(time)))
        return picture

    def of(self, hit: Hit, *, believe: bool = False) -> Picture | None:
        """The key frame of a seek; None where its sample is not a picture, damaged or missing.

        Args:
            believe: decode what the file says is a key frame, whatever its bytes say.
        """
        table = self._table(hit.fragment)
        places = ((table.cts == hit.cts) & table.sync).nonzero()[0]
        if not len(places):
            return None
        place = int(places[0])
        offset, size = int(table.offset[place]), int(table.size[place])
        if offset < 0 or not 0 < size <= MOST_SAMPLE:
            return None
        try:
            data = self._ahead.read(ByteRange.of(offset, size))
        except TruncatedInput:
            return None
        if not believe and not can_start(self.track.info, data):
            return None
        seconds = hit.time.seconds
        self._begins = True
        packet = self._packet(data, table, place, self._entry_of(hit.fragment, place))
        frames = self._frames(packet, seconds)
        frames += self._frames(None, seconds)
        return self._picture(hit.cts, frames[0]) if frames else None

    def _before_samples(self, row: int) -> None:
        if not self.track.has_samples:
            self._take_ahead(row, FIRST_BYTES, whole=False)
