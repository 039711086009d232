"""Which samples a clip needs, and the edit list that presents exactly the asked span of them.

What a decoder needs first (the sync sample before the start, priming, pre-roll) and what it needs
after the end (pictures that are decoded before they are shown) comes along; the edit list of the
copy hides it again (ISO/IEC 14496-12, 8.6.6).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import floor, lcm

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.errors import LimitExceeded, MalformedBox, NoSyncSample, UnverifiedSync
from fragdex.fragments.table import NULL, Int64, SampleTable
from fragdex.fragments.track_info import Segment
from fragdex.indexing.samples import MAX_WITHOUT_BYTES
from fragdex.muxing.plan import PlannedTrack, one_source
from fragdex.record import record
from fragdex.seeking.model import Track
from fragdex.seeking.seek import Hit
from fragdex.sources import Source

LOOK_BACK = 512
"""Pictures marked sync that are looked at for one that a decoder can start at."""
LOOKS = 8 * LOOK_BACK
"""Reads of such pictures in all tracks of a clip, after the first `FEW_LOOKS` of each track."""
FEW_LOOKS = 4
FAR = 1 << 62
"""Beyond every byte and every second of a file."""


class SampleBudget:
    """How many samples are written out for a clip: as many as its source has bytes.

    A few bytes can claim tracks of a million samples each, all in the same bytes of media data.
    """

    def __init__(self, size: int | None) -> None:
        self._size = FAR if size is None else size
        self.left = MAX_WITHOUT_BYTES + self._size

    def take(self, track: Track, start: int, stop: int, wanted: int) -> SampleTable:
        """The samples of rows `start` to `stop` (exclusive) of a track's fragments, counted.

        Of a truncated file, no further than the first row after `wanted` that is not in it.
        """
        gone = np.flatnonzero(track.fragments.data_start[wanted + 1 : stop] >= self._size)
        if len(gone):
            stop = wanted + 1 + int(gone[0])
        count = int(track.fragments.sample_count[start:stop].sum())
        if count > self.left:
            raise LimitExceeded(
                f"the tracks claim more samples than the file has bytes, track {track.id} too many",
                path="moov/trak/mdia/minf/stbl",
                expected=f"at most {self.left}",
                found=count,
                advice="take a shorter clip, or fewer tracks",
            )
        self.left -= count
        return track.samples_of(start, stop)


class Reader(Source):
    """The source of a clip, for what has to look into its media.

    Args:
        doubted: track_IDs whose sync marks an index doubts; None among them: all.
    """

    def __init__(
        self,
        read: Callable[[ByteRange], bytes],
        size: int | None,
        remote: bool,
        doubted: Collection[int | None] = (),
    ) -> None:
        super().__init__("the source", size=size, remote=remote)
        self._read, self._doubted = read, doubted
        self.budget = SampleBudget(size)
        self.looks = LOOKS

    def worth_a_look(self, track: int) -> bool:
        """Whether to look at pictures marked sync: from afar only where there is a doubt."""
        if self.looks <= 0:
            return False
        return not self.remote or track in self._doubted or None in self._doubted

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, cut at the known size."""
        return self._read(self._spend(range))


PREROLL = Fraction(1, 5)
"""Seconds of sound decoded before what is heard: overlap, a filter's state (Opus needs 0.08)."""
RESERVOIR = Fraction(1)
"""The same for MP3, whose frames borrow bits, and for codecs that converge slowly."""
SLOW = ("mp3", ".mp3", "mp4a.6b", "mp4a.69", "opus", "samr", "sawb")
FINEST = 10_000_000
"""Ticks a second of the finest movie timescale that is written."""


@record(slots=True)
class Stretch:
    """What one segment of the presentation needs to show a span.

    Attributes:
        start, stop: seconds of the source's presentation (exclusive).
        low, high: the same in ticks of composition time.
        first, last: numbers of the samples that it needs, last exclusive.
        rate: at which it is shown; 0: a picture that stands still.
    """

    start: Fraction
    stop: Fraction
    low: Fraction
    high: int
    first: int
    last: int
    rate: Fraction
    samples: SampleTable


def movie_timescale(tracks: Sequence[Track]) -> int:
    """Ticks a second in which the times of all tracks are whole, if that is not too fine."""
    scales = [track.timescale for track in tracks]
    for wanted in ([*scales, *(track.movie_timescale or 1 for track in tracks)], scales):
        timescale = lcm(*wanted) if wanted else 1
        if timescale <= FINEST:
            return timescale * -(-1000 // timescale)
    return max(scale for scale in scales if scale <= FINEST or scale == min(scales))


def longest_tick(tracks: Sequence[Track], timescale: int) -> int:
    """Ticks of a movie, rounded up, that the longest tick of pictures or sound lasts; at least 1.

    FFmpeg rounds what an edit lasts to ticks of its track, so that it shows nothing of less than
    half of one: no clip is shorter.
    """
    paced = [track.timescale for track in tracks if track.kind in ("video", "audio")]
    return -(-timescale // min(paced, default=timescale))


def part_of(
    track: Track, start: Fraction, stop: Fraction, timescale: int, source: Reader
) -> PlannedTrack | None:
    """What a track gives to a clip from `start` to `stop`; None where it has nothing to present.

    Args:
        start, stop: seconds of the source's presentation, in whole ticks of `timescale`.
        source: the media; samples beyond its size are not there.
    """
    stretches = []
    for segment in segments_of(track):
        stretch = stretch_of(track, segment, start, stop, source)
        if stretch is not None:
            stretches.append(stretch)
    if not stretches:
        return None
    ranges = _joined([(stretch.first, stretch.last) for stretch in stretches])
    known = {(stretch.first, stretch.last): stretch.samples for stretch in stretches}
    tables = [known[part] if part in known else _samples(track, *part) for part in ranges]
    if track.kind == "video":
        tables = list(map(partial(_unmarked, stretches), tables, ranges))
    moved, by = _one_after_the_other(tables)
    starts = np.cumsum([0, *(high - low for low, high in ranges)]).tolist()
    edits: list[tuple[int, int, Fraction]] = []
    reached = 0
    for stretch, begin, end in _movie_ticks(track, stretches, start, timescale):
        if end <= max(begin, reached):
            continue
        if begin > reached:
            edits.append((begin - reached, -1, Fraction(1)))
        number = next(n for n, (low, high) in enumerate(ranges) if low <= stretch.first < high)
        shown_at = round(stretch.low) + by[number]
        reached = end
        if (stretch.first, stretch.last) in ranges and track.kind != "audio":
            rows = slice(starts[number], starts[number + 1])
            shown_at = begin_at(moved, rows, shown_at)
        edits.append((end - begin, shown_at, stretch.rate))
    if track.kind == "video":
        pace = Fraction(track.timescale, timescale)
        last_until(moved, max(at + round(ticks * rate * pace) for ticks, at, rate in edits))
    numbers = np.concatenate([np.arange(low, high) for low, high in ranges])
    planned = PlannedTrack(
        track, moved, track.timescale, one_source(0, len(moved)), tuple(edits), numbers
    )
    return _in_samples(planned)


def _movie_ticks(
    track: Track, stretches: Sequence[Stretch], start: Fraction, timescale: int
) -> list[tuple[Stretch, int, int]]:
    """Where each stretch begins and ends in the clip (exclusive), in ticks of the movie.

    Of pictures and sound, one is shown for a tick of its track at least.
    """
    spans = [
        (one, round((one.start - start) * timescale), round((one.stop - start) * timescale))
        for one in stretches
    ]
    tick = longest_tick([track], timescale)
    one, begin, end = spans[0]
    return [span for span in spans if 2 * (span[2] - span[1]) >= tick] or [
        (one, begin, max(end, begin + tick))
    ]


def last_until(samples: SampleTable, tick: int) -> None:
    """Let the last sample last until a tick of composition time, if no sample does.

    Where pictures are reordered and not equally long, the durations of decoding say less.
    """
    if len(samples) and int((samples.cts + samples.duration).max()) < tick:
        samples.duration[-1] = tick - int(samples.cts[-1])


def _in_samples(part: PlannedTrack) -> PlannedTrack:
    """Sound whose ticks are sound samples, where they can be.

    FFmpeg takes the ticks that an edit hides for sound samples; of Smooth Streaming, which counts
    ten million a second, it would then hide all.
    """
    rate, scale = part.track.info.sample_rate, part.timescale
    if part.track.kind != "audio" or not rate or rate == scale:
        return part
    columns = part.samples.columns()
    times = {name: columns[name] * rate for name in ("dts", "cts", "duration")}
    if any((column % scale).any() for column in times.values()):
        return part
    edits = tuple(
        (ticks, media_time if media_time < 0 else round(Fraction(media_time * rate, scale)), speed)
        for ticks, media_time, speed in part.edits
    )
    table = {name: column // scale for name, column in times.items()}
    return replace(part, samples=SampleTable.of(columns | table), edits=edits, timescale=rate)


def _unmarked(
    stretches: Sequence[Stretch], table: SampleTable, numbers: tuple[int, int]
) -> SampleTable:
    """No sync mark on what is hidden, but where decoding must start.

    A player starts at the last one before the edit, where the source's flags may lie, and FFmpeg
    stops at one after it, though pictures that are decoded later may be shown before.
    """
    low, high = numbers
    sync = table.sync.copy()
    for stretch in stretches:
        if low <= stretch.first < high:
            inside = slice(stretch.first - low + 1, stretch.last - low)
            cts = table.cts[inside]
            sync[inside] &= (cts > int(stretch.low)) & (cts < stretch.high)
    return replace(table, sync=sync)


def begin_at(samples: SampleTable, rows: slice, tick: int) -> int:
    """Let the sample that is on show at a tick begin there: what came before is hidden anyhow.

    FFmpeg and what is built on it drop a picture that begins before its edit, and show the next one
    too early.

    Returns: the tick at which it is on show now.
    """
    cts, dts, duration = samples.cts[rows], samples.dts[rows], samples.duration[rows]
    begun = np.flatnonzero(cts <= tick)
    place = int(begun[np.argmax(cts[begun])]) if len(begun) else 0
    late = tick - int(cts[place])
    if late <= 0:
        return tick
    if place == 0 and len(cts) == len(samples) and late < duration[0]:
        # Nothing is decoded before it, so that all others may come sooner.
        duration[0] -= late
        dts[1:] -= late
        cts[1:] -= late
        return tick - late
    cts[place] = tick
    return tick


def segments_of(track: Track) -> tuple[Segment, ...]:
    """The edit list of a track; without one, everything from the first sample on."""
    if track.segments or track.start is None:
        return track.segments
    first = track.start.fraction
    return (Segment(first, None, int(first * track.timescale - track.shift)),)


def stretch_of(
    track: Track, segment: Segment, start: Fraction, stop: Fraction, source: Reader
) -> Stretch | None:
    """What a segment of the presentation needs to show a span; None where it shows none of it."""
    begin = max(start, segment.start)
    end = stop if segment.stop is None else min(stop, segment.stop)
    if begin >= end:
        return None
    # A picture that stands still, or media at rate 1 (docs/findings.md, edit-rate).
    rate = Fraction(int(segment.rate != 0))
    pace = rate * track.timescale
    low = segment.media_time + (begin - segment.start) * pace
    high = segment.media_time + (end - segment.start) * pace
    # To the nearest tick: 0.6 s as a float lies below it.
    low_tick = round(low)
    high_tick = max(round(high), low_tick + 1)
    table = track.fragments
    hit = first_decoded(track, (low_tick + track.shift) / track.timescale, source)
    hit_row = row = hit.fragment if hit.cts <= low_tick else 0
    if track.kind == "audio":
        row = _row_before(track, row, low_tick - _preroll(track))
    is_text = track.kind == "text"
    begun = table.cts_min[row:] < high_tick + is_text
    shown = np.flatnonzero(begun & (table.cts_min[row:] != NULL))
    if not len(shown):
        return None
    samples = source.budget.take(track, row, row + int(shown[-1]) + 1, hit_row)
    base = int(table.sample_start[row])
    first = (hit.sample or 0) - base if hit.cts <= low_tick else 0
    if track.kind == "audio":
        first = _with_preroll(track, samples, first, base, low_tick)
    end_of_media = len(samples)
    if source.size is not None:
        gone = np.flatnonzero((samples.offset + samples.size)[first:] > source.size)
        end_of_media = first + int(gone[0]) if len(gone) else end_of_media
    wanted = samples.cts[first:end_of_media] < high_tick
    if is_text and track.stop is not None and end >= (segment.stop or track.stop.fraction):
        # Texts of no duration, which take the last one off the screen, are of what ends there.
        ended = samples.cts[first:end_of_media] == high_tick
        wanted |= ended & (samples.duration[first:end_of_media] == 0)
    needed = np.flatnonzero(wanted)
    if not len(needed):
        return None
    last = first + int(needed[-1]) + 1
    cts = samples.cts[first:last]
    ends = cts + np.maximum(samples.duration[first:last], 1)
    if track.kind == "video":
        goes_on = row + int(shown[-1]) + 1 < len(table) and end_of_media == len(samples)
        until = max(int(ends.max()), high_tick) if goes_on else int(ends.max())
        ends = _next_shown(samples.cts[first:end_of_media], cts, until)
    # In the last half of the last tick, too, something is on show.
    visible = (cts < high_tick) & (ends > floor(low))
    if not rate:
        visible = cts <= low_tick
    if not visible.any():
        return None
    if rate:
        # The edit list shows nothing before or after these samples.
        least, most = Fraction(int(cts[visible].min())), Fraction(int(ends[visible].max()))
        if least > low_tick:
            begin, low = begin + (least - low) / pace, least
        if most < high:
            end = begin + (most - low) / pace
        low = min(low, most - 1)
    return (
        Stretch(
            *(begin, end, low, high_tick, base + first, base + last, rate),
            samples.rows(slice(first, last)),
        )
        if begin < end
        else None
    )


def _next_shown(all_shown: Int64, cts: Int64, until: int) -> Int64:
    """Where pictures end: each stays until the next one, whatever its duration in decoding is.

    Args:
        all_shown: composition times of these and later pictures, in any order.
        cts: of those that are asked about.
    """
    order = np.append(np.sort(all_shown), until)
    ends: Int64 = np.maximum(order[np.searchsorted(order[:-1], cts, side="right")], cts)
    return ends


def first_decoded(track: Track, time: Fraction, source: Reader) -> Hit:
    """Where a decoder can start to show a time: flags of pictures lie, the pictures do not."""
    if track.kind == "video" and source.worth_a_look(track.id):
        before = source.requests
        try:
            return track.seek(time, verified=True, source=source, look_back=LOOK_BACK)
        except (NoSyncSample, UnverifiedSync, MalformedBox):
            pass  # the flags decide
        finally:
            source.looks -= max(0, source.requests - before - FEW_LOOKS)
    return track.seek(time)


def _row_before(track: Track, row: int, tick: int) -> int:
    """The fragment, from `row` backwards, that begins at or before a tick."""
    begins = track.fragments.cts_min
    while row and int(begins[row]) > tick:
        row -= 1
    return row


def _preroll(track: Track) -> int:
    """Ticks of sound to decode before what is heard."""
    codec = track.codec or track.info.format
    seconds = RESERVOIR if codec.lower() in SLOW else PREROLL
    return int(seconds * track.timescale)


def _with_preroll(track: Track, samples: SampleTable, first: int, base: int, tick: int) -> int:
    """The sample at which sound has to start, so that it is right at `tick`."""
    roll = max([-g.value for g in track.groups if g.grouping_type == "roll" and g.value < 0] + [1])
    early = np.flatnonzero(samples.dts[: first + 1] <= tick - _preroll(track))
    begin = int(early[-1]) if len(early) else 0
    # FFmpeg counts what is hidden in decoded samples: a duration that is none of a packet's, such
    # as of a first one that was stretched, would move the sound.
    uneven = np.flatnonzero(samples.duration[begin:first] != samples.duration[first])
    if len(uneven):
        begin += int(uneven[-1]) + 1
    begin = max(0, min(begin, first - roll))
    while begin and not samples.sync[begin]:
        begin -= 1
    return begin


def _joined(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of sample numbers in order, those that touch or overlap as one."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    return joined


def _samples(track: Track, low: int, high: int) -> SampleTable:
    starts = track.fragments.sample_start
    first = int(np.searchsorted(starts, low, side="right")) - 1
    stop = int(np.searchsorted(starts, high, side="left"))
    base = int(starts[first])
    return track.samples_of(first, stop).rows(slice(low - base, high - base))


def _one_after_the_other(tables: Sequence[SampleTable]) -> tuple[SampleTable, list[int]]:
    """The tables on one media timeline that begins at 0, and the ticks each of them moved by."""
    least = min(int((table.cts - table.dts).min()) for table in tables)
    # Players disagree about negative composition offsets: none is written.
    late = max(0, -least)
    parts, by = [], []
    dts = shown = 0
    for table in tables:
        begin = max(dts, shown - int((table.cts - table.dts[0]).min()) - late)
        shift = begin - int(table.dts[0])
        cts = table.cts + shift + late
        # Copies: views would keep all samples of these fragments in memory.
        columns = {name: column.copy() for name, column in table.columns().items()}
        parts.append(SampleTable.of(columns | {"dts": table.dts + shift, "cts": cts}))
        by.append(shift + late)
        dts = int(table.dts[-1] + table.duration[-1]) + shift
        shown = int((cts + table.duration).max())
    return SampleTable.concat(parts), by


def with_bytes(track: Track, samples: SampleTable) -> Int64 | None:
    """Those of pictures and sound that have bytes; None: all, or it is unknown.

    What stands before a sample of no bytes continues. FFmpeg reads no trun that has one; to decrypt
    some, their number among the others is needed.
    """
    if track.kind not in ("video", "audio") or track.is_encrypted():
        return None
    empty = samples.size == 0
    return np.flatnonzero(~empty) if empty.any() and not empty.all() else None


def without_empty(part: PlannedTrack) -> PlannedTrack:
    """Samples that all have bytes: each lasts until the next one that has some."""
    filled = with_bytes(part.track, part.samples)
    if filled is None:
        return part
    durations = np.add.reduceat(part.durations, filled)
    kept = part.rows(filled)
    return kept.timed(kept.presentation, kept.decode, durations)


def decoded_sooner(part: PlannedTrack) -> PlannedTrack:
    """Samples with composition offsets of 0 or more: players disagree about negative ones."""
    least = int(part.offsets.min())
    return (
        part if least >= 0 else part.timed(part.presentation, part.decode + least, part.durations)
    )
