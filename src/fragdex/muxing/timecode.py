"""Timecode in a clip: which samples, and what they count.

A timecode sample of 4 bytes counts the frames up to its beginning, and lasts for many of them
(QuickTime File Format, Timecode Media). A clip begins inside one: that sample is rewritten, with
the frames that have passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, lcm
from typing import Final, NamedTuple

import numpy as np

from fragdex.boxes import Box
from fragdex.byterange import ByteRange
from fragdex.fragments.table import SampleTable
from fragdex.fragments.track_info import Segment
from fragdex.muxing.kept import Kept
from fragdex.muxing.movie import described
from fragdex.muxing.plan import PlannedTrack, one_source
from fragdex.muxing.progressive import WIDE
from fragdex.muxing.spans import FAR, FINEST, Reader, segments_of
from fragdex.record import record
from fragdex.seeking.model import Track

SIZE: Final = 4
ONE: Final = Fraction(1)
DROP_FRAME, DAY, NEGATIVE, COUNTER = 1, 2, 4, 8
"""Flags: numbers of frames are dropped; they start again after 24 hours; they may be negative; they
count something that lasts for several frames."""


class Counting(NamedTuple):
    """How timecode samples count.

    Attributes:
        flags: of the sample entry.
        timescale, frame_duration: ticks a second, and of a frame.
        frames: in a second of timecode; in one step, where the flags say that it is a counter.
    """

    flags: int
    timescale: int
    frame_duration: int
    frames: int

    @property
    def step(self) -> Fraction:
        """Seconds after which samples count one more."""
        frames = max(self.frames, 1) if self.flags & COUNTER else 1
        return Fraction(self.frame_duration * frames, self.timescale)

    def later(self, sample: bytes, steps: int) -> bytes:
        """A sample that counts so many more."""
        value = int.from_bytes(sample, "big", signed=bool(self.flags & NEGATIVE)) + steps
        if self.flags & DAY and self.frames:
            a_day = 24 * 3600 * self.frames
            if self.flags & DROP_FRAME:
                # of each 30 frames two numbers a minute, but for each tenth (SMPTE ST 12-1)
                a_day -= 24 * 54 * 2 * (self.frames // 30)
            value %= a_day
        return (value % WIDE).to_bytes(SIZE, "big")


@record(frozen=True, slots=True)
class _Stretch:
    """Timecode samples that are on show from `begin` to `stop` (seconds, exclusive).

    Attributes:
        at: media time at `begin`, in ticks.
        passed: whole steps of the first sample before `begin`.
        first: number of the first sample in the track.
    """

    counting: Counting
    begin: Fraction
    stop: Fraction
    at: Fraction
    passed: int
    first: int
    samples: SampleTable

    def made(self, source: Reader) -> dict[int, bytes]:
        """What its first sample becomes, by its number here."""
        if not self.passed:
            return {}
        place = ByteRange.of(int(self.samples.offset[0]), SIZE)
        return {0: self.counting.later(source.read(place), self.passed)}


def timecode_part(
    track: Track, trak: Box, kept: Kept, timescale: int, source: Reader
) -> PlannedTrack | str:
    """What a timecode track gives to a clip, or why it gives nothing.

    Args:
        kept: what the clip shows, in whole ticks of `timescale`.
        source: the media; of each sample that is rewritten, 4 bytes are read.

    Returns: "" where it has nothing to present.
    """
    stretches: list[tuple[_Stretch, Fraction]] = []
    for span in kept:
        shown_here = _stretches(track, trak, span.start, span.stop, source)
        if isinstance(shown_here, str):
            if shown_here:
                return shown_here
            continue
        stretches += [(one, span.earlier) for one in shown_here]
    scale = lcm(track.timescale, *(one.begin.denominator for one, _ in stretches))
    if scale > FINEST or sum(span.length for span in kept) * scale >= WIDE >> 1:
        scale = track.timescale  # times are rounded to it
    samples_made: dict[int, bytes] = {}
    edits: list[tuple[int, int, Fraction]] = []
    tables, numbers = [], []
    shown = decoded = count = 0
    for one, earlier in stretches:
        begin, end = (round((at - earlier) * timescale) for at in (one.begin, one.stop))
        if end <= max(begin, shown):
            continue
        if begin > shown:
            edits.append((begin - shown, -1, ONE))
        # The first sample begins with its step, which may be on show from its middle on.
        begun = int(one.samples.cts[0]) + one.counting.step * one.passed * track.timescale
        hidden = floor((one.at - begun) * scale / track.timescale)
        later = [
            hidden + round((tick - one.at) * scale / track.timescale)
            for tick in one.samples.cts[1:].tolist()
        ]
        times = np.array([0, *later], np.int64) + decoded
        length = hidden + ceil((one.stop - one.begin) * scale)
        durations = np.diff(times, append=max(decoded + length, int(times[-1]) + 1))
        columns = {"dts": times, "cts": times, "duration": durations}
        columns["sync"] = np.ones(len(times), np.bool_)
        tables.append(SampleTable.of(one.samples.columns() | columns))
        numbers.append(one.first + np.arange(len(times)))
        samples_made |= {count + number: sample for number, sample in one.made(source).items()}
        edits.append((end - max(begin, shown), decoded + hidden, ONE))
        shown, count = end, count + len(times)
        decoded += int(durations.sum())
    if not edits:
        return ""
    samples = SampleTable.concat(tables)
    return PlannedTrack(
        track,
        samples,
        scale,
        one_source(0, len(samples)),
        tuple(edits),
        np.concatenate(numbers),
        made=samples_made,
    )


def timecode_cut(
    track: Track, trak: Box, start: Fraction, stop: Fraction, source: Reader
) -> PlannedTrack | str:
    """The same for fragments: the first sample begins at `start`, or at the next tick."""
    stretches = _stretches(track, trak, start, stop, source)
    if isinstance(stretches, str):
        return stretches
    if len(stretches) > 1:
        return "its edit list has several parts, and fragments cannot say that"
    (one,) = stretches
    samples, data = one.samples, one.made(source)
    end = ceil(one.at + (one.stop - one.begin) * track.timescale)
    times = np.append(ceil(one.at), samples.cts[1:])
    # Fragments cannot begin inside a step, so the rest of one is a sample by itself.
    after = int(samples.cts[0]) + one.counting.step * (one.passed + 1) * track.timescale
    whole = one.at == after - one.counting.step * track.timescale
    if not whole and times[0] < ceil(after) < np.append(times[1:], end)[0]:
        place = ByteRange.of(int(samples.offset[0]), SIZE)
        data[1] = one.counting.later(source.read(place), one.passed + 1)
        samples = SampleTable.concat([samples.rows(slice(0, 1)), samples])
        times = np.insert(times, 1, ceil(after))
    durations = np.diff(times, append=max(end, int(times[-1]) + 1))
    columns = {"dts": times, "cts": times, "duration": durations}
    table = SampleTable.of(samples.columns() | columns)
    sources, numbers = one_source(0, len(times)), one.first + np.arange(len(times))
    return PlannedTrack(track, table, track.timescale, sources, numbers=numbers, made=data)


def _stretches(
    track: Track, trak: Box, start: Fraction, stop: Fraction, source: Reader
) -> Sequence[_Stretch] | str:
    """What is on show of a track, or why that is unknown; "" where nothing is."""
    if track.is_encrypted():
        return "it is encrypted"
    stretches = []
    for segment in segments_of(track):
        begin = max(start, segment.start)
        end = stop if segment.stop is None else min(stop, segment.stop)
        if segment.media_time < 0 or begin >= end:
            continue
        if segment.rate != 1:
            return "its edit list shows it at another rate than 1"
        one = _stretch(track, trak, segment, begin, end, source)
        if isinstance(one, str):
            return one
        if one is not None:
            stretches.append(one)
    return stretches or ""


def _stretch(
    track: Track,
    trak: Box,
    segment: Segment,
    begin: Fraction,
    end: Fraction,
    source: Reader,
) -> _Stretch | str | None:
    low = segment.media_time + (begin - segment.start) * track.timescale
    high = low + (end - begin) * track.timescale
    table = track.fragments
    # The last sample may have no duration, if the muxer did not know how long the video would be.
    ends = np.where(np.arange(len(table)) < len(table) - 1, table.cts_end, FAR)
    rows = np.flatnonzero((table.cts_min < ceil(high)) & (ends > floor(low)))
    if not len(rows):
        return None
    row = int(rows[0])
    samples = source.budget.take(track, row, int(rows[-1]) + 1, row)
    ends = samples.cts + samples.duration
    if rows[-1] == len(table) - 1 and not samples.duration[-1]:
        ends[-1] = FAR
    shown = np.flatnonzero((samples.cts < ceil(high)) & (ends > floor(low)))
    if not len(shown):
        return None
    first = int(table.sample_start[row]) + int(shown[0])
    samples = samples.rows(slice(int(shown[0]), int(shown[-1]) + 1))
    if (samples.size != SIZE).any():
        return f"its samples do not have {SIZE} bytes each"
    if (samples.offset + samples.size > (FAR if source.size is None else source.size)).any():
        return "the file ends before its samples"
    counting = _counting(track, trak, first)
    if counting is None:
        return "its sample entry does not say how long a frame is"
    at = max(low, Fraction(int(samples.cts[0])))
    last = min(high, Fraction(int(ends[shown[-1]])))
    passed = floor((at - int(samples.cts[0])) / track.timescale / counting.step)
    begin += (at - low) / track.timescale
    end -= (high - last) / track.timescale
    return _Stretch(counting, begin, end, at, passed, first, samples) if begin < end else None


def _counting(track: Track, trak: Box, number: int) -> Counting | None:
    """How a sample counts, by its number."""
    stsd = trak.find("mdia/minf/stbl/stsd")
    entries = [] if stsd is None else stsd.children
    description = int(described(track, trak, np.array([number]))[0])
    if not 0 < description <= len(entries) or "frame_duration" not in entries[description - 1]:
        return None
    entry = entries[description - 1]
    names = ("time_code_flags", "timescale", "frame_duration", "number_of_frames")
    counting = Counting(*(int(entry[name]) for name in names))
    return counting if counting.timescale and counting.frame_duration else None
