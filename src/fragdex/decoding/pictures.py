"""The picture that is shown at any time, by ranges through the index.

From the sync sample before it everything is decoded, as the codec needs it; while the next
pictures follow, decoding goes on where it is and nothing is read or decoded twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.decoding.ahead import Ahead
from fragdex.decoding.codec import TrackCodec
from fragdex.decoding.fetching import fetched
from fragdex.decoding.samples import TrackSamples, decodable
from fragdex.errors import TrackNotFound, UndecodableMedia
from fragdex.fragments.table import NULL, FragmentFlags, SampleTable
from fragdex.seeking.model import FragmentIndex, TrackIndex
from fragdex.seeking.times import TimeLike, exact_time, floor_ticks
from fragdex.sources import Source, open_source

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Picture", "PictureReader"]

AT_ONCE = 16 << 20
"""Bytes of fragments that are read by one request; a longer fragment is read by its samples."""
REORDERED = 16
"""Fragments before the last one that may still show a later picture: decoders keep no more."""
KEPT = 32
"""Decoded pictures that wait for their turn at most: decoders hold back no more (H.264: 16)."""
EARLIER = 2
"""Sync samples before the one that a seek finds, tried where it gives no picture."""
LATE = 64
"""Samples behind the wanted one after which a decoder has dropped it."""

Place = tuple[int, int]
"""Row of the fragment table, sample in that fragment."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A decoded picture and when it is shown.

    Attributes:
        time: seconds of presentation time, exact.
        frame: PyAV's VideoFrame, in the coded size and format.
        aspect: width of a pixel over its height.

    >>> Picture(Fraction(1, 2), None).time
    Fraction(1, 2)
    """

    time: Fraction
    frame: Any
    aspect: Fraction = Fraction(1)


class PictureReader:
    """Pictures of one track, at any time, and in order for less.

    Attributes:
        track: the `TrackIndex` that is read.

    Args:
        index: of the file; where it holds no samples, moofs are read with their fragments.
        source: the file: anything that `open_source` takes, or a Source, which stays open.
        track: track_ID; None: the first with pictures.
        init: the initialization segment, where the file has none.

    A context manager. To be used by one thread at a time.

    Raises:
        TrackNotFound: there is no such track of pictures.
        UndecodableMedia: it is encrypted, or there is no decoder for it.
        MissingExtra: PyAV is not installed (`pip install 'fragdex[media]'`).

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie()
    >>> PictureReader(fragdex.index(data), data, track=7)
    Traceback (most recent call last):
    ...
    fragdex.errors.TrackNotFound: there is no track 7: expected one of 1, found 7
    """

    def __init__(
        self,
        index: FragmentIndex,
        source: Any,
        *,
        track: int | None = None,
        init: bytes | None = None,
    ) -> None:
        self.track = _chosen(index, track)
        if self.track.info.encryption is not None:
            raise UndecodableMedia(f"the pictures of track {self.track.id} are encrypted")
        self._ours = not isinstance(source, Source)
        self._source: Source = open_source(source) if self._ours else source
        try:
            index, self.track = decodable(index, self.track, self._source, init)
            if init is None:
                places = index.periods[self.track.period].init
                init = b"".join(self._source.read(part) for part in places)
            codec = TrackCodec(init, self.track.id, self.track.codec)
            self._context = codec.fresh()
        except BaseException:
            self.close()
            raise
        self._ahead = Ahead(self._source)
        self._samples = TrackSamples(index, self.track, self._ahead)
        self._tables: dict[int, SampleTable] = {}
        self._feed: Iterator[tuple[Place, Any]] = iter(())
        self._next: Place | None = None  # None: the decoder has to begin anew
        self._given = -(1 << 62)  # cts of the latest picture that the decoder gave
        self._waiting: dict[int, Any] = {}
        self._shown: tuple[int, int, Picture] | None = None

    def at(self, time: TimeLike) -> Picture:
        """The picture of a time: before the first that one, after the end the last.

        Args:
            time: as `TrackIndex.seek` takes it.

        Raises:
            UndecodableMedia: the samples of this time cannot be decoded.
            NoSyncSample: there is none in the track.
            InexactIndex: neither the index nor the file tells the samples.
            And what reading the source raises.
        """
        target = floor_ticks(time, self.track.timescale, self.track.shift)
        if self._shown is not None and self._shown[0] <= target < self._shown[1]:
            return self._shown[2]
        hit = self.track.seek(time)
        last = self._rows_until(hit.fragment, target)
        wanted, until, begin, end = self._wanted(hit.fragment, hit.cts, last, target)
        if wanted not in self._waiting:
            self._decode(begin, end, wanted, float(exact_time(time)))
        for _ in range(EARLIER):
            if wanted in self._waiting or hit.clamped:
                break
            # Marked as a sync sample, and is none: pictures refreshed little by little, say.
            hit = self.track.seek((hit.cts - 1 + self.track.shift) / self.track.timescale)
            begin = self._sync_place(hit.fragment, hit.cts)
            self._next = None
            self._decode(begin, end, wanted, float(exact_time(time)))
        found = wanted
        if found not in self._waiting:
            # Dropped by the decoder: what stands before it stays.
            before = [cts for cts in self._waiting if cts <= wanted]
            if not before:
                raise self._undecodable(float(exact_time(time)))
            found = max(before)
        frame = self._waiting[found]
        self._waiting = {cts: kept for cts, kept in self._waiting.items() if cts >= found}
        aspect = Fraction(self._context.sample_aspect_ratio or 1)
        picture = Picture(self.track.presentation(found).exact, frame, aspect)
        first = -(1 << 62) if target < wanted else wanted
        self._shown = first, until, picture
        return picture

    def time_at(self, time: TimeLike) -> Fraction:
        """When the picture of a time begins, without decoding it; raises as `at`."""
        target = floor_ticks(time, self.track.timescale, self.track.shift)
        hit = self.track.seek(time)
        last = self._rows_until(hit.fragment, target)
        wanted, *_ = self._wanted(hit.fragment, hit.cts, last, target)
        return self.track.presentation(wanted).exact

    def close(self) -> None:
        """Close the source, if it was opened here."""
        if self._ours:
            self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- which sample

    def _rows_until(self, first: int, target: int) -> int:
        """Row behind the last fragment, from `first` on, with a sample at or before a time."""
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
        found = np.flatnonzero((table.cts == cts) & table.sync)
        return row, int(found[0]) if len(found) else 0

    def _table(self, row: int) -> SampleTable:
        """The samples of one fragment; its bytes are at hand then, where they are read at once."""
        if row not in self._tables:
            self._fill(row)
            if len(self._tables) >= 4 * REORDERED:
                self._tables.pop(next(iter(self._tables)))
            self._tables[row] = self._timed(row, self._samples.rows(row, row + 1))
        return self._tables[row]

    def _timed(self, row: int, samples: SampleTable) -> SampleTable:
        """With times, where the index knows only when a fragment is first shown (sidx, mfra)."""
        table = self.track.fragments
        first = int(table.cts_min[row])
        if table.dts[row] != NULL or first == NULL or not len(samples):
            return samples
        columns = samples.columns()
        late = first - int((samples.cts - NULL).min())
        moved = {name: columns[name] - NULL + late for name in ("cts", "dts")}
        return SampleTable.of(columns | moved)

    def _fill(self, row: int) -> None:
        table = self.track.fragments
        virtual = bool(table.flags[row] & FragmentFlags.VIRTUAL)
        if not virtual and 0 < table.size[row] <= AT_ONCE:
            self._ahead.take(ByteRange.of(int(table.offset[row]), int(table.size[row])))

    # -- decoding

    def _decode(self, begin: Place, end: Place, wanted: int, time: float) -> None:
        """Decode until the wanted picture is there, from where the decoder is if that will do."""
        goes_on = self._next is not None and begin <= self._next and wanted > self._given
        if not goes_on:
            self._context.flush_buffers()
            self._waiting, self._given = {}, -(1 << 62)
            self._feed = self._packets(begin)
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

    def _take(self, packet: Any, time: float) -> None:
        import av.error

        try:
            frames = self._context.decode(packet)
        except av.error.EOFError:
            return
        except av.error.InvalidDataError:
            return  # of a damaged sample there is no picture
        except MemoryError:  # ENOMEM of FFmpeg's is one, too: no fault of the sample's
            raise
        except av.FFmpegError as error:
            raise self._undecodable(time) from error
        for frame in frames:
            if frame.pts is not None:
                self._waiting[frame.pts] = frame
                self._given = max(self._given, frame.pts)
        while len(self._waiting) > KEPT:
            self._waiting.pop(min(self._waiting))

    def _packets(self, begin: Place) -> Iterator[tuple[Place, Any]]:
        """The samples from a place on, each as a packet for the decoder."""
        import av

        row, first = begin
        base = Fraction(1, self.track.timescale)
        for number in range(row, len(self.track.fragments)):
            table = self._table(number)
            chosen = table.rows(slice(first, len(table)))
            self._fill(number)
            held = fetched(self._ahead, [chosen]).ranges(
                [ByteRange.of(max(at, 0), max(size, 0)) for at, size in _extents(chosen)]
            )
            for n, data in enumerate(held):
                if not data:
                    continue
                packet = av.Packet(data)
                packet.pts, packet.dts = int(chosen.cts[n]), int(chosen.dts[n])
                packet.time_base = base
                packet.is_keyframe = bool(chosen.sync[n])
                yield (number, first + n), packet
            first = 0

    def _undecodable(self, time: float) -> UndecodableMedia:
        return UndecodableMedia(
            f"the pictures of track {self.track.id} at {time:.3f} s cannot be decoded"
        )


def _extents(table: SampleTable) -> Iterator[tuple[int, int]]:
    return zip(table.offset.tolist(), table.size.tolist(), strict=True)


def _chosen(index: FragmentIndex, track: int | None) -> TrackIndex:
    if track is not None:
        chosen = index.track(track)
    else:
        pictures = [t for t in index.tracks if t.kind == "video" and len(t.sync)]
        if not pictures:
            raise TrackNotFound("there is no video track")
        chosen = pictures[0]
    if chosen.kind != "video" or not chosen.timescale:
        raise TrackNotFound(f"track {chosen.id} has no pictures with times", found=chosen.kind)
    return chosen
