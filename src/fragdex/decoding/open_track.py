"""A track of a file that is open for decoding: its description for decoders, and its samples.

Samples of a span of media time are known also where the index holds fragments only; their bytes
are read in few requests.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from fragdex.boxes import Box, build, find, find_all, parse
from fragdex.boxes.box import with_changes
from fragdex.byterange import ByteRange, Fetched, coalesce
from fragdex.decoding.codec import TrackCodec
from fragdex.errors import InexactIndex, TruncatedInput, UndecodableMedia
from fragdex.fragments.table import NULL, FragmentFlags, Int64, SampleTable
from fragdex.fragments.track_info import DESCRIPTION
from fragdex.indexing.codecs import encrypted_entries
from fragdex.indexing.making import index as index_of
from fragdex.indexing.moov import plain_init
from fragdex.indexing.samples import RowSamples, read_moof
from fragdex.muxing.movie import described
from fragdex.seeking.model import Index, Track
from fragdex.sources import Source, SourceLike, open_source

if TYPE_CHECKING:
    from typing import Self


REMOTE_GAP = 32 << 10
"""Bytes between two samples of a remote file that are rather read for nothing than asked twice."""
LONGEST_READ = 8 << 20
"""Bytes that are requested at once."""


def fetched(source: Source, tables: Iterable[SampleTable]) -> Fetched:
    """The bytes of all these samples, as far as the file has them."""
    ranges = [part for table in tables for part in stretches(table)]
    data = Fetched()
    for part in coalesce(ranges, max_gap=REMOTE_GAP if source.remote else 0):
        stop = part.stop if source.size is None else min(part.stop, source.size)
        for start in range(part.start, stop, LONGEST_READ):
            with contextlib.suppress(TruncatedInput):
                piece = ByteRange(start, min(start + LONGEST_READ, stop))
                data.pieces[start] = source.read_up_to(piece)
    return data


def stretches(table: SampleTable) -> Iterator[ByteRange]:
    """The ranges of samples; those that lie one after the other as one."""
    known = (table.size > 0) & (table.offset >= 0)
    offset, size = table.offset[known], table.size[known]
    if not len(offset):
        return
    stop = offset + size
    first = np.append(True, offset[1:] != stop[:-1])
    last = np.append(first[1:], True)
    for start, end in zip(offset[first].tolist(), stop[last].tolist(), strict=True):
        yield ByteRange(start, end)


_CONFIGURATIONS = ("avcC", "hvcC", "vvcC", "av1C", "vpcC", "esds", "mvcC", "lhvC")


class TrackSetup:
    """What an initialization segment says of a track.

    Attributes:
        several: whether it has more than one sample entry.
        first: number of the first one that is clear; 1 where none is.
    """

    def __init__(self, init: bytes, track: int) -> None:
        self.init, self.track = init, track
        self._boxes = parse(init)
        has_moov = find(self._boxes, "moov") is not None
        traks = find_all(self._boxes, "moov/trak") if has_moov else ()
        self._trak = next((trak for trak in traks if _id(trak) == track), None)
        self._stsd = None if self._trak is None else self._trak.find("mdia/minf/stbl/stsd")
        self.several = self._stsd is not None and len(self._stsd.children) > 1
        entries = () if self._stsd is None else self._stsd.children
        self._encrypted = encrypted_entries(entries)
        known = range(1, 1 + len(entries))
        self.first = next((n for n in known if n not in self._encrypted), 1)
        self._of_decoder: dict[int, bytes] = {}

    def entries(self, track: Track, count: int, source: Source) -> Int64 | None:
        """sample_description_index of each sample, in decode order; None: there is one entry.

        Of entries that are equal to decoders, that of the first. Where a track has several and its
        samples are in fragments, moofs are read where the index does not say (tfhd, ISO/IEC
        14496-12, 8.8.7).
        """
        if not self.several:
            return None
        numbers = self.entries_of(track, 0, len(track.fragments), source)
        if len(numbers) != count:
            raise InexactIndex(
                f"the moofs have {len(numbers)} samples of track {self.track}, the index {count}",
                advice="build the index again",
            )
        return None if (numbers == numbers[:1]).all() and numbers[:1] == [1] else numbers

    def entries_of(self, track: Track, start: int, stop: int, source: Source) -> Int64:
        """The same of the samples of rows of the fragment table, up to and without `stop`."""
        table = track.fragments.rows(slice(start, stop))
        if self._trak is None or not self.several:
            return np.ones(int(table.sample_count.sum()), np.int64)
        if track.extent.is_virtual or DESCRIPTION in [one.grouping_type for one in track.groups]:
            first, count = int(table.sample_start[0]), int(table.sample_count.sum())
            return self._alike(described(track, self._trak, first + np.arange(count)))
        trexs = (box for box in find_all(self._boxes, "moov/mvex/trex") if "track_ID" in box)
        trex = next((box for box in trexs if box["track_ID"] == self.track), None)
        default = 1 if trex is None else int(trex["default_sample_description_index"])
        offsets = table.moof_offset.tolist()
        parts = [_of_moof(read_moof(source, offset), self.track, default) for offset in offsets]
        return self._alike(np.concatenate(parts) if parts else np.ones(0, np.int64))

    def _alike(self, entries: Int64) -> Int64:
        """Of entries that are equal to decoders, the first one."""
        numbers, place = np.unique(entries, return_inverse=True)
        first_of: dict[bytes, int] = {}
        same = [first_of.setdefault(self.of_decoder(n), n) for n in numbers.tolist()]
        chosen: Int64 = np.array(same, np.int64)[place]
        return chosen

    def decode_alike(self, one: int, other: int) -> bool:
        """Whether what one entry sets up decodes the samples of the other, too.

        Both are clear, have the same configuration (avcC, hvcC and so on), and differ in what is
        shown: colours, the shape of pixels. Where samples that refer to others change their entry,
        the decoder continues.
        """
        if one in self._encrypted or other in self._encrypted:
            return False
        sets = [self._configuration(entry) for entry in (one, other)]
        return bool(sets[0]) and sets[0] == sets[1]

    def _configuration(self, entry: int) -> list[bytes]:
        if self._stsd is None or not 1 <= entry <= len(self._stsd.children):
            return []
        boxes = self._stsd.children[entry - 1].children
        return [self.init[box.offset : box.stop] for box in boxes if box.type in _CONFIGURATIONS]

    def of_decoder(self, entry: int) -> bytes:
        """What sets up the decoder of a sample entry: equal for tracks that may share decoders.

        All that FFmpeg takes for a decoder, and no lengths and rates, which each video has its own
        of: brands, matrices, the size shown, the handler, the sample entry without its btrt.
        """
        if entry not in self._of_decoder:
            self._of_decoder[entry] = self._decoder_bytes(entry)
        return self._of_decoder[entry]

    def init_of(self, entry: int) -> bytes:
        """The initialization segment with one sample entry of the track alone."""
        if entry in self._encrypted:
            raise UndecodableMedia(
                f"samples of track {self.track} are encrypted: those of sample entry {entry}"
            )
        return b"".join(
            build(_only(box, self.track, entry)) if box.type == "moov" else build(box)
            for box in self._boxes
        )

    def _decoder_bytes(self, entry: int) -> bytes:
        trak, stsd = self._trak, self._stsd
        hdlr, tkhd = (None if trak is None else trak.find(path) for path in ("mdia/hdlr", "tkhd"))
        mvhd, ftyp = (find(self._boxes, path) for path in ("moov/mvhd", "ftyp"))
        if (
            stsd is None or hdlr is None or tkhd is None or mvhd is None
            or not 1 <= entry <= len(stsd.children)
        ):  # fmt: skip
            return self.init
        chosen = stsd.children[entry - 1]
        start, parts = chosen.offset, []
        for rates in (child for child in chosen.children if child.type == "btrt"):
            parts.append(self.init[start : rates.offset])
            start = rates.stop
        parts.append(self.init[start : chosen.stop])
        parts += [self.init[box.offset : box.stop] for box in (hdlr, ftyp) if box is not None]
        shown = (*(tkhd.get(name) for name in ("matrix", "width", "height")), mvhd.get("matrix"))
        return b"".join((*parts, repr(shown).encode()))


def _only(moov: Box, track_id: int, entry: int) -> Box:
    def stsd(box: Box) -> Box:
        if not 1 <= entry <= len(box.children):
            raise UndecodableMedia(f"track {track_id} has no sample entry {entry}")
        return box.replace(children=[box.children[entry - 1]], entry_count=1)

    def trak(box: Box) -> Box:
        is_it = _id(box) == track_id
        return with_changes(box, {"mdia/minf/stbl/stsd": stsd}) if is_it else box

    return with_changes(moov, {"trak": trak})


def _of_moof(data: bytes, track_id: int, default: int) -> Int64:
    parts = [np.ones(0, np.int64)]
    for traf in find_all(parse(data), "moof/traf"):
        tfhd = traf.find("tfhd")
        if tfhd is None or tfhd.get("track_ID") != track_id:
            continue
        entry = tfhd.get("sample_description_index") or default
        runs = (box for box in traf.children if box.type == "trun")
        count = sum(int(trun.get("sample_count") or 0) for trun in runs)
        parts.append(np.full(count, entry, np.int64))
    return np.concatenate(parts)


def _id(trak: Box) -> int:
    tkhd = trak.find("tkhd")
    return int(tkhd["track_ID"]) if tkhd is not None and "track_ID" in tkhd else 0


MOST_ROWS = 4096
"""Fragments whose samples are requested at once; a hostile file may put all at one time."""
FAR = 1 << 62
"""No time lies beyond."""


def decodable(
    index: Index, track: Track, source: Source, init: bytes | None
) -> tuple[Index, Track]:
    """Index and track where they tell when samples are decoded, else those of the source's boxes.

    A sidx or mfra tells when fragments are shown, and may tell it of one track only.
    """
    table = track.fragments
    if (table.dts != NULL).all() and not (table.flags & FragmentFlags.TIMES_GUESSED).any():
        return index, track
    index = index_of(source, exact=True, init=init)
    return index, index.periods[track.period].track(track.id)


class TrackSamples(RowSamples):
    """Finds samples by decode time.

    Args:
        source: the file; read where the index holds no samples: moofs of the wanted fragments, or
            the moov, once.
    """

    def __init__(self, index: Index, track: Track, source: Source) -> None:
        period = index.periods[track.period]
        infos = [one.info for one in period.tracks]
        defaults = {info.id: info.defaults for info in infos if info.defaults is not None}
        super().__init__(track, source, period.init, defaults)

    def between(self, low: int, high: int) -> Iterator[SampleTable]:
        """Samples decoded from `low` (inclusive) to `high` (exclusive), in ticks of dts.

        One table for each stretch of neighbouring fragments, in file order; each sample is shown
        for at least a tick. A sample belongs here if any part of its duration does.
        """
        low, high = max(low, -FAR), min(high, FAR)
        table = self._track.fragments
        known = (table.dts != NULL) & (table.sample_count != 0)
        ends = table.dts + np.maximum(table.duration, 1)
        rows = np.flatnonzero(known & (table.dts < high) & (ends > low))[:MOST_ROWS]
        if not len(rows):
            return
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        firsts = rows[np.append(0, breaks)].tolist()
        lasts = rows[np.append(breaks - 1, len(rows) - 1)].tolist()
        for first, last in zip(firsts, lasts, strict=True):
            samples = self.rows(first, last + 1)
            wanted = (samples.dts < high) & (samples.dts + np.maximum(samples.duration, 1) > low)
            places = np.flatnonzero(wanted)
            if len(places):
                yield samples.rows(slice(int(places[0]), int(places[-1]) + 1))


class OpenTrack:
    """A track of a file that is open for decoding.

    Attributes:
        track: the `Track` that is read, of an index that tells when samples are decoded.

    Args:
        source: the file: anything that `open_source` takes, or a Source, which stays open.
        init: the initialization segment; None: it is read from the file.

    A context manager; a source that it opened is closed with it. For one thread at a time.

    Raises:
        UndecodableMedia: there is no decoder for the track, or no initialization segment.
        MissingExtra: PyAV is not installed.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie()
    >>> index = fragdex.index(data)
    >>> OpenTrack(index, index.track(1), data, b"")
    Traceback (most recent call last):
    ...
    fragdex.errors.UndecodableMedia: there is no initialization segment; give it with init=
    """

    def __init__(self, index: Index, track: Track, source: SourceLike, init: bytes | None) -> None:
        self.track = track
        self._ours = not isinstance(source, Source)
        self._source = source if isinstance(source, Source) else open_source(source)
        try:
            self._index, self.track = decodable(index, track, self._source, init)
            self._period = self._index.periods[self.track.period]
            if init is None:
                init = b"".join(self._source.read(part) for part in self._period.init)
            init = plain_init(init)
            self._setup = TrackSetup(init, self.track.id)
            init = self._setup.init_of(self._setup.first) if self._setup.several else init
            self._codec = TrackCodec(init, self.track.id, self.track.codec)
        except BaseException:
            self.close()
            raise

    def _opened(self) -> None:
        """Called once the track is open: readers set up what is theirs."""

    def close(self) -> None:
        """Close the source, if it was opened here."""
        if self._ours:
            self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
