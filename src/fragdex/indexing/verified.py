"""Seeking to samples that a decoder can start at, whatever their flags say.

From the sync sample that a seek finds, the first bytes of samples marked sync are looked at, one
after the other back in time, until one is found that needs none before it. How many are looked at,
and what may be read for it, is bounded. Of encrypted samples, the clear bytes are looked at
(ISO/IEC 23001-7, 7.2 and 9.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import (
    FormatError,
    InexactIndex,
    NoSyncSample,
    SourceChanged,
    SourceNotFound,
    UnverifiedSync,
)
from fragdex.fragments.table import NULL, FragmentFlags, SampleTable
from fragdex.indexing.access import CannotTell, SampleBytes, access_of, every_sample
from fragdex.indexing.samples import RowSamples, read_moof
from fragdex.seeking.finding import Place
from fragdex.seeking.origin import FileInfo, Home
from fragdex.seeking.seek import Finder, Hits
from fragdex.sources import Source, open_source

if TYPE_CHECKING:
    from fragdex.seeking.track import Track

Ranges = list[tuple[int, int]]
"""Starts and stops (exclusive) in a sample, rising; what is clear."""

SUBSAMPLES = 2
"""The flag of a senc whose samples have ranges of clear and protected bytes."""
VECTORS = (0, 8, 16)


class ClearBytes:
    """What is clear in the samples that an encrypted track has in one moof.

    Args:
        vector: bytes of the initialization vector of each sample by default; 0: a constant one.
    """

    def __init__(self, moof: bytes, track: int, vector: int | None) -> None:
        self._parts: list[tuple[int, list[Ranges] | None]] = []
        try:
            trafs = parse_box(moof).find_all("traf")
        except FormatError:
            return
        for traf in trafs:
            tfhd = traf.find("tfhd")
            if tfhd is not None and tfhd.get("track_ID") == track:
                runs = traf.find_all("trun")
                count = sum(int(trun.get("sample_count") or 0) for trun in runs)
                self._parts.append((count, _of_traf(traf, vector)))

    def of(self, number: int) -> Ranges | None:
        """What is clear in a sample.

        Returns: None where all of it is clear.

        Raises:
            CannotTell: nothing says it.
        """
        for count, ranges in self._parts:
            if number < count:
                if ranges is None:
                    return None
                if number < len(ranges):
                    return ranges[number]
                break
            number -= count
        raise CannotTell("nothing says which of its bytes are encrypted")


def _of_traf(traf: Box, vector: int | None) -> list[Ranges] | None:
    """The clear ranges of each sample, as far as they are said; None: nothing is encrypted."""
    senc = traf.find("senc") or next(
        (one for one in traf.find_all("uuid") if "samples" in one.fields), None
    )
    if senc is None:
        # Without the vectors that each sample needs nothing could be decrypted: all is clear.
        clear = bool(vector) and traf.find("saiz") is None and traf.find("sgpd") is None
        return None if clear else []
    size = senc.get("IV_size") or vector
    if size not in VECTORS or not (senc.get("flags") or 0) & SUBSAMPLES:
        return []
    data, at = bytes(senc["samples"]), 0
    samples: list[Ranges] = []
    for _ in range(senc["sample_count"]):
        at += size
        start = at + 2
        at = start + 6 * int.from_bytes(data[at:start], "big")
        if start > len(data) or at > len(data):
            break
        samples.append(_ranges(data[start:at]))
    return samples


def _ranges(entries: bytes) -> Ranges:
    """BytesOfClearData (16 bits) and BytesOfProtectedData (32 bits), one after the other."""
    clear_ranges: Ranges = []
    at = 0
    for place in range(0, len(entries), 6):
        clear = int.from_bytes(entries[place : place + 2], "big")
        if clear_ranges and clear_ranges[-1][1] == at:
            clear_ranges[-1] = clear_ranges[-1][0], at + clear
        elif clear:
            clear_ranges.append((at, at + clear))
        at += clear + int.from_bytes(entries[place + 2 : place + 6], "big")
    return clear_ranges


LOOK_BACK = 4096
"""Samples marked sync that one seek looks at: two and a half minutes of pictures at 25 a second."""
BEHIND = 1 << 18
"""Bytes in front of a sample that are read with it from a remote source: where every sample is
marked sync, those that are looked at next lie there."""


@contextmanager
def verifier(
    track: Track, seeker: Finder, source: Any = None, look_back: int | None = None
) -> Iterator[Verifier | None]:
    """What goes to true sync samples of a track; None where each of its samples is one.

    Args:
        source: the media, in any form that `open_source` takes; None: what the index was made of.
        look_back: as `Track.seek`.

    Raises:
        SourceNotFound: no source is given, and the index does not say where its media are.
        SourceChanged: the source is shorter than what the index describes.
    """
    info = track.info
    if every_sample(info.kind, info.format, info.codec):
        yield None
        return
    home = track.home or Home(FileInfo(), (), {})
    source = home.place if source is None else source
    if source is None:
        raise SourceNotFound(
            f"to verify sync samples of track {track.id}, its media must be read, and the index "
            "does not say where they are",
            advice="give the file with source=",
        )
    opened = open_source(source)
    try:
        _same(opened, home.file)
        yield Verifier(track, seeker, opened, home, LOOK_BACK if look_back is None else look_back)
    finally:
        if opened is not source:
            opened.close()


def _same(source: Source, described: FileInfo) -> None:
    """Complain about media that cannot be those of the index."""
    if None not in (source.size, described.size) and source.size < described.size:  # type: ignore[operator]
        raise SourceChanged(
            f"{source.name} is not the file that the index describes",
            expected=f"{described.size} bytes",
            found=source.size,
            advice="build the index again",
        )
    if source.etag and described.etag and source.etag != described.etag:
        raise SourceChanged(
            f"{source.name} has changed since it was indexed",
            expected=f"the ETag {described.etag}",
            found=source.etag,
            advice="build the index again",
        )


class Verifier:
    """Goes from samples marked sync to those that are; remembers what it looked at."""

    def __init__(
        self, track: Track, seeker: Finder, source: Source, home: Home, look_back: int
    ) -> None:
        self._track, self._seeker, self._source = track, seeker, source
        self._rows = RowSamples(track, source, home.init, home.defaults)
        self._left_of_all = look_back
        self._sync = track.sync_samples
        self._before = np.cumsum(self._sync.count) - self._sync.count
        self._known: dict[int, bool] = {}
        self._row, self._samples = -1, SampleTable.empty()
        self._clear_row = -1
        self._clear: ClearBytes | None = None
        self._held_at, self._held = 0, b""

    def find_many(self, targets: npt.NDArray[np.int64]) -> Hits:
        """`find` for many composition times; raises as it does."""
        wanted, places = np.unique(targets, return_inverse=True)
        rows = [self.find(int(target)) for target in wanted]
        table = np.array(rows, np.int64).reshape(-1, 7)[places]
        fragment, sample, offset, size, cts, dts, clamped = table.T
        return Hits(fragment, sample, offset, size, cts, dts, clamped.astype(np.bool_))

    def find(self, target: int) -> Place:
        """`Seeker.find`, but of samples that a decoder can start at.

        Raises:
            NoSyncSample: none of them is, or none among as many as may be looked at.
            UnverifiedSync: what would say it is encrypted, or of an unknown codec.
            InexactIndex: the index knows fragments, not samples.
            BudgetExceeded, SourceError: as the source raises.
        """
        row = self._seeker.find(target)
        first = self._number(row[4])
        left = self._left_of_all
        for number in self._numbers(first):
            if not left:
                raise NoSyncSample(
                    f"no decoder can start at any of {self._left_of_all:,} samples marked sync at "
                    "and before this time",
                    expected="a picture that needs none before it",
                    found="pictures that need others",
                    advice="look further back with look_back=, or encode the file again",
                )
            left -= 1
            hit = row if number == first else self._seeker.find(self._cts(number))
            if self._is_one(hit):
                return (*hit[:6], row[6] or number > first)
        raise NoSyncSample(
            f"no decoder can start at any of the {self._total:,} samples marked sync of track "
            f"{self._track.id}",
            advice="encode the file again",
        )

    @property
    def _total(self) -> int:
        return int(self._sync.count.sum())

    def _numbers(self, first: int) -> Iterator[int]:
        """Sync samples by their place in order of time: back from one, then on after it."""
        yield from range(first, -1, -1)
        yield from range(first + 1, self._total)

    def _number(self, cts: int) -> int:
        """Place of a sync sample of this time; of several the last."""
        sync = self._sync
        run = int(np.searchsorted(sync.cts, cts, side="right")) - 1
        step, last = int(sync.step[run]), int(sync.count[run]) - 1
        turn = (cts - int(sync.cts[run])) // step if step else last
        return int(self._before[run]) + turn

    def _cts(self, number: int) -> int:
        run = int(np.searchsorted(self._before, number, side="right")) - 1
        return int(self._sync.cts[run] + (number - self._before[run]) * self._sync.step[run])

    def _is_one(self, hit: Place) -> bool:
        row, sample = hit[0], hit[1]
        if sample == NULL:
            raise InexactIndex(
                f"the index knows fragments of track {self._track.id}, not samples",
                advice="build it with exact=True",
            )
        if sample not in self._known:
            self._known[sample] = self._look(row, sample)
        return self._known[sample]

    def _look(self, row: int, sample: int) -> bool:
        if row != self._row:
            self._samples, self._row = self._rows.rows(row, row + 1), row
        number = sample - int(self._track.fragments.sample_start[row])
        if not 0 <= number < len(self._samples):
            raise InexactIndex(
                "the file has other samples than the index", advice="build the index again"
            )
        offset, size = int(self._samples.offset[number]), int(self._samples.size[number])
        if offset < 0:
            return False
        info = self._track.info
        try:
            data = SampleBytes(size, self._reader(offset), self._clear_of(row, number))
            return bool(access_of(data, info.format, info.codec, info.nal_length_size))
        except CannotTell as reason:
            raise UnverifiedSync(
                f"it is unknown whether a decoder can start at sample {sample} of track "
                f"{self._track.id}: {reason}",
                offset=offset,
                advice="seek without verified",
            ) from reason

    def _clear_of(self, row: int, number: int) -> list[tuple[int, int]] | None:
        encryption = self._track.info.encryption
        table = self._track.fragments
        sample = int(table.sample_start[row]) + number
        if encryption is None or not self._track.is_encrypted(sample, sample + 1):
            return None
        if table.flags[row] & FragmentFlags.VIRTUAL or table.moof_offset[row] == NULL:
            raise CannotTell("it is encrypted")
        if row != self._clear_row:
            moof = read_moof(self._source, int(table.moof_offset[row]))
            self._clear = ClearBytes(moof, self._track.id, encryption.iv_size)
            self._clear_row = row
        assert self._clear is not None
        return self._clear.of(number)

    def _reader(self, offset: int) -> Callable[[int, int], bytes]:
        def read(start: int, stop: int) -> bytes:
            return self._read(offset + start, offset + stop)

        return read

    def _read(self, start: int, stop: int) -> bytes:
        if not self._held_at <= start <= stop <= self._held_at + len(self._held):
            self._held_at = max(0, stop - BEHIND) if self._source.remote else start
            self._held = self._source.read_up_to(ByteRange(self._held_at, stop))
        return self._held[start - self._held_at : stop - self._held_at]
