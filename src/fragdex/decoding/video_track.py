"""A track of pictures that is open for decoding: its samples by row, and a decoder."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

from fragdex.byterange import ByteRange
from fragdex.decoding.codec import TrackCodec, hold_back, is_short_of_memory, packet_of
from fragdex.decoding.open_track import OpenTrack, TrackSamples
from fragdex.errors import TrackNotFound, UndecodableMedia
from fragdex.fragments.table import NULL, FragmentFlags, Int64, SampleTable
from fragdex.indexing.access import family_of
from fragdex.record import record
from fragdex.seeking.model import Index, Track, one_period_of
from fragdex.seeking.track import presented
from fragdex.sources import Source, SourceLike


class ReadAhead(Source):
    """Reads of another source, of which one stretch at a time is kept.

    Its own counts are those of its requests; the other source counts what was read.
    """

    def __init__(self, below: Source) -> None:
        super().__init__(below.name, size=below.size, etag=below.etag, remote=below.remote)
        self._below = below
        self._start, self._held = 0, b""

    def take(self, stretch: ByteRange) -> None:
        """Read a stretch at once, as far as the file has it, and keep it instead of the last."""
        if not self._holds(stretch):
            self._start, self._held = stretch.start, self._below.read_up_to(stretch)

    def read_up_to(self, range: ByteRange) -> bytes:
        """As of every source."""
        cut = self._spend(range)
        if self._holds(cut):
            return self._held[cut.start - self._start : cut.stop - self._start]
        return self._below.read_up_to(cut)

    def _holds(self, part: ByteRange) -> bool:
        return self._start <= part.start and part.stop <= self._start + len(self._held)


ParameterSets = tuple[bytes, ...]
_MOST_UNITS: Final = 64


def sets_of(data: bytes, format: str, length_size: int | None) -> ParameterSets:
    """The parameter sets in front of a sample's first slice, as they stand there.

    AVC: ISO/IEC 14496-10, table 7-1; HEVC: ISO/IEC 23008-2, table 7-1; VVC: ISO/IEC 23090-3,
    table 5, without adaptation parameter sets, which are of single pictures.

    Args:
        length_size: bytes of the length in front of each NAL unit; None: 4.
    """
    family = family_of(format)
    size = 4 if length_size is None else length_size
    if family is None or not size:
        return ()
    sets: list[bytes] = []
    at, end = 0, len(data)
    for _ in range(_MOST_UNITS):
        start = at + size
        if start + 1 >= end:
            break
        at = start + int.from_bytes(data[at:start], "big")
        if family == "avc":
            kind = data[start] & 31
            is_slice, is_set = 1 <= kind <= 5, kind in (7, 8, 13, 15)
        elif family == "hevc":
            kind = data[start] >> 1 & 63
            is_slice, is_set = kind < 32, 32 <= kind <= 34
        else:
            kind = data[start + 1] >> 3
            is_slice, is_set = kind < 12, 14 <= kind <= 16
        if is_slice or at > end:
            break
        if is_set:
            sets.append(data[start:at])
    return tuple(sets)


KEPT_TABLES = 64
"""Rows of the fragment table whose samples are kept."""
MOST_CODECS = 16
"""Sample entries whose decoders are kept."""


@record(frozen=True, slots=True, eq=False)
class Picture:
    """A decoded picture and when it is shown.

    Attributes:
        time: seconds of presentation time, exact.
        frame: PyAV's VideoFrame, in the coded size and format.
        aspect: width of a pixel over its height.
    """

    time: Fraction
    frame: Any
    aspect: Fraction = Fraction(1)


class VideoTrack(OpenTrack):
    """A track of pictures that is open for decoding.

    A context manager. To be used by one thread at a time.

    Raises:
        TrackNotFound: there is no such track of pictures.
        UndecodableMedia: it is encrypted, or there is no decoder for it.
        MissingExtra: PyAV is not installed (`pip install 'fragdex[media]'`).
    """

    def __init__(
        self,
        index: Index,
        source: SourceLike,
        *,
        track: int | None = None,
        init: bytes | None = None,
    ) -> None:
        chosen = chosen_track(index, track)
        if not chosen.has_clear_samples:
            raise UndecodableMedia(f"the pictures of track {chosen.id} are encrypted")
        super().__init__(index, chosen, source, init)
        self._codecs, self._entry = {self._setup.first: self._codec}, self._setup.first
        self._entries: dict[int, Int64] = {}
        self._options: dict[str, str] = {}
        self._context = self._codec.fresh()
        # Decoding begins with the next packet; the latest parameter sets that the decoder met
        # among the samples, and the decode time of the last sample that had some.
        self._begins = True
        self._depth = 0
        self._met: ParameterSets = ()
        self._met_until = NULL
        self._ahead = ReadAhead(self._source)
        self._samples = TrackSamples(self._index, self.track, self._ahead)
        self._tables: dict[int, SampleTable] = {}
        self._opened()

    def _take_ahead(self, row: int, most: int, *, whole: bool) -> None:
        """Read bytes of a fragment by one request, unless they are at hand.

        Args:
            most: bytes; of a longer fragment nothing is read if it has to be `whole`.
        """
        table = self.track.fragments
        size = int(table.size[row])
        if table.flags[row] & FragmentFlags.VIRTUAL or size <= 0 or (whole and size > most):
            return
        self._ahead.take(ByteRange.of(int(table.offset[row]), min(size, most)))

    def _before_samples(self, row: int) -> None:
        """Called before the samples of a row are requested: what can be read with them."""

    def _table(self, row: int) -> SampleTable:
        """The samples of one fragment."""
        if row not in self._tables:
            self._before_samples(row)
            if len(self._tables) >= KEPT_TABLES:
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

    def _entry_of(self, row: int, place: int) -> int:
        """The sample entry that a sample is coded by; of equal ones the first."""
        if not self._setup.several:
            return 1
        if row not in self._entries:
            if len(self._entries) >= KEPT_TABLES:
                self._entries.pop(next(iter(self._entries)))
            self._entries[row] = self._setup.entries_of(self.track, row, row + 1, self._ahead)
        return int(self._entries[row][place])

    def _packet(self, data: bytes, samples: SampleTable, place: int, entry: int) -> Any:
        """A sample as a packet for the decoder."""
        info, dts = self.track.info, int(samples.dts[place])
        sets = sets_of(data, info.format, info.nal_length_size)
        if self._begins:
            self._begin(dts, sets, entry)
        if sets:
            self._met, self._met_until = sets, dts
        packet = packet_of(data)
        packet.pts, packet.dts = int(samples.cts[place]), int(samples.dts[place])
        packet.time_base = Fraction(1, self.track.timescale)
        packet.is_keyframe = bool(samples.sync[place])
        return packet

    def _begin(self, dts: int, sets: ParameterSets, entry: int) -> None:
        self._begins = False
        if entry != self._entry or (dts < self._met_until and sets != self._met):
            # Flushed, it would keep parameter sets that come later in the file.
            if entry not in self._codecs:
                if len(self._codecs) > MOST_CODECS:
                    self._codecs.clear()
                init = self._setup.init_of(entry)
                self._codecs[entry] = TrackCodec(init, self.track.id, self.track.codec)
            self._context, self._entry = self._codecs[entry].fresh(), entry
            self._context.options = {**self._context.options, **self._options}
            self._met, self._met_until = (), NULL
        else:
            self._context.flush_buffers()
        hold_back(self._context, self._depth)

    def _hold_back(self, depth: int) -> None:
        """Let the decoder reorder pictures so far, from here on."""
        self._depth = max(self._depth, depth)
        hold_back(self._context, self._depth)

    def _frames(self, packet: Any, time: float) -> list[Any]:
        """Pictures that the decoder gives for a packet (None: the last ones); of damage none."""
        import av.error

        try:
            frames: list[Any] = self._context.decode(packet)
        except (av.error.EOFError, av.error.InvalidDataError):
            return []
        except av.FFmpegError as error:
            if isinstance(error, MemoryError) and is_short_of_memory():
                raise
            raise self._undecodable(time) from error
        return frames

    def _picture(self, cts: int, frame: Any) -> Picture:
        aspect = Fraction(self._context.sample_aspect_ratio or 1)
        return Picture(self.track.presentation(cts).fraction, frame, aspect)

    def _undecodable(self, time: float) -> UndecodableMedia:
        return UndecodableMedia(
            f"the pictures of track {self.track.id} at {time:.3f} s cannot be decoded"
        )


def chosen_track(index: Index, track: int | None) -> Track:
    """The track of pictures with this track_ID; None: the first."""
    if track is not None:
        chosen = index.track(track)
    else:
        pictures = presented([t for t in index.tracks if len(t.fragments)], "video")
        if not pictures:
            raise TrackNotFound("there is no video track")
        one_period_of(pictures)
        chosen = next((t for t in pictures if len(t.sync_samples)), pictures[0])
    if chosen.kind != "video" or not chosen.timescale:
        raise TrackNotFound(f"track {chosen.id} has no pictures with times", found=chosen.kind)
    return chosen
