"""The samples of a track on the timeline of fragments, where the edit list is in the times.

Players of fragments agree on one edit list only: none, or one entry that takes off a time at the
start (ISO/IEC 23000-19, 7.5.13). So a track that begins late has late decode times. The one entry
takes off what the edit list hides before time 0, and the time that pictures wait because others are
decoded before them: composition offsets stay at 0 or above, since players disagree about negative
ones.

A sample lasts until the next one in presentation order is due, and decode times are the sums of
these durations. Browsers show a picture for as long as its sample lasts, which the decode times of
a variable frame rate do not say; and each segment has the decode time at which it is presented,
which is where players put it that read nothing else (decision 0038).

Browsers drop pictures before time 0, and all up to the next key frame with them. For players,
pictures that the edit list hides and that others need are therefore shown for an instant from time
0 on, all of them within half a millisecond (decision 0047).

Of sound that is not coded an hour has 170 million samples of a few bytes, and all are alike: a
group stands for neighbours that lie one after the other, so that tables have a row for a fiftieth
of a second and not for each sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.boxes.limits import MAX_MADE_SAMPLES
from fragdex.errors import BuildError, LimitExceeded, NoSyncSample
from fragdex.fragments.table import FAR, NULL, FragmentFlags, Int64, SampleTable
from fragdex.muxing.census import LeftOut, track_left_out, without_samples
from fragdex.muxing.plan import PlannedTrack, greatest_from, one_source
from fragdex.muxing.spans import with_bytes
from fragdex.seeking.model import Period, Track

KEPT: Final = ("video", "audio", "text")
"""Kinds of tracks that players of fragments know; others are left out unless they are named."""


def media_type(tracks: Iterable[Track]) -> str:
    """The media type of an MP4 with some tracks, with their codecs where all are known."""
    chosen = list(tracks)
    kinds = {track.kind for track in chosen}
    kind = next((k for k in ("video", "audio") if k in kinds), "application")
    codecs = list(dict.fromkeys(track.codec for track in chosen if track.kind in KEPT))
    if not codecs or None in codecs:
        return f"{kind}/mp4"
    return f'{kind}/mp4; codecs="{",".join(map(str, codecs))}"'


def left_out_of_fragments(period: Period) -> Iterator[LeftOut]:
    """A sentence on each track of a kind that fragments do not keep."""
    for track in period.tracks:
        if track.kind not in KEPT and track.sample_count:
            yield track_left_out(track, "players of fragments do not know this kind")
    yield from without_samples(period.tracks)


def media_of_each(
    tracks: Iterable[Track], left_out: list[LeftOut], *, named: bool, **options: Any
) -> list[PlannedTrack]:
    """What is shown of each track that has samples in the file; a sentence on each other one.

    A file of which only a part is there may have the samples of some tracks and not of others.

    Args:
        left_out: takes the sentences.
        named: whether the caller named these tracks: then one without samples raises.
    """
    media: list[PlannedTrack] = []
    first: NoSyncSample | None = None
    for track in tracks:
        try:
            media.append(media_of(track, **options))
        except NoSyncSample as error:
            if named:
                raise
            first = first or error
            left_out.append(track_left_out(track, error.message))
    if first is not None and not media:
        raise first
    return media


GROUPED_FROM: Final = 1 << 20
"""Samples of a track from which on they are grouped: 22 s at 48 kHz."""
_EACH: Final = 1024
"""Samples of a group at most, as many as of a packet of coded sound."""
_MOST_AT_ONCE: Final = 1 << 20
"""Samples that are written out at once."""


def grouped(track: Track) -> tuple[SampleTable, int] | None:
    """Groups of a track's samples, and bytes of each sample; None where samples are not alike.

    Each row has the place, size and duration of its samples together, and the times of its first.
    Groups end where the next sample lies elsewhere.
    """
    table = track.fragments
    count = track.sample_count
    alike = track.kind == "audio" and not track.is_encrypted()
    if not alike or count is None or count < GROUPED_FROM:
        return None
    virtual = (table.flags & FragmentFlags.VIRTUAL) != 0
    if not virtual.all() or int(table.sample_count.max()) > _MOST_AT_ONCE:
        return None
    first = track.samples_of(0, 1).rows(slice(0, 1))
    unit, ticks = int(first.size[0]), int(first.duration[0])
    if not unit or not ticks:
        return None
    starts = table.sample_start
    uneven = (table.duration != table.sample_count * ticks) | (table.cts_min != table.dts)
    if uneven.any() or (table.cts_min == NULL).any():
        return None
    places: list[Int64] = []
    counts: list[Int64] = []
    for low, high in _batches(table.sample_count):
        samples = track.samples_of(low, high)
        if not (
            (samples.size == unit).all()
            and (samples.duration == ticks).all()
            and (samples.cts == samples.dts).all()
            and samples.sync.all()
        ):
            return None
        heads = np.append(0, np.flatnonzero(np.diff(samples.offset) != unit) + 1)
        lengths = np.diff(heads, append=len(samples))
        parts = -(-lengths // _EACH)
        before = np.repeat(np.cumsum(parts) - parts, parts)
        number = (np.arange(int(parts.sum())) - before) * _EACH
        places.append(np.repeat(samples.offset[heads], parts) + number * unit)
        counts.append(np.minimum(np.repeat(lengths, parts) - number, _EACH))
    offset, each = np.concatenate(places), np.concatenate(counts)
    dts = int(first.dts[0]) + (np.cumsum(each) - each) * ticks
    assert int(each.sum()) == count == int(starts[-1] + table.sample_count[-1])
    sync = np.ones(len(each), np.bool_)
    return SampleTable(offset, each * unit, dts, dts, each * ticks, sync), unit


def _batches(counts: Int64) -> list[tuple[int, int]]:
    """Rows of fragments, as many together as may be written out at once."""
    batches = []
    low = size = 0
    for row, count in enumerate(counts.tolist()):
        if size and size + count > _MOST_AT_ONCE:
            batches.append((low, row))
            low, size = row, 0
        size += count
    return [*batches, (low, len(counts))]


_INSTANT: Final = 2000
"""Part of a second in which all pictures that need to be hidden are shown."""
_FINEST: Final = 10_000_000
"""Ticks a second: browsers count microseconds."""


class Before(NamedTuple):
    """What samples of a track that grows owe to those before them, which are not there.

    Attributes:
        moved: ticks by which their times continue those of an earlier clock.
        media_time: ticks that the edit list takes off.
        anchor: number of a sample, from 0.
    """

    moved: int
    media_time: int
    anchor: int
    decode: int

    @classmethod
    def of(cls, media: PlannedTrack, first: int, anchor: int) -> Before | None:
        """What is known when the samples before `first` go; None: not all of it is.

        Args:
            anchor: number of a sample after it whose decode time nothing changes any more.
        """
        if media.hidden or media.unit or media.numbers is not None:
            return None
        source = media.track.samples.cts[first] + round(media.track.shift)
        moved = int(media.presentation[first]) - int(source)
        return cls(moved, media.media_time, anchor - first, int(media.decode[anchor]))


def media_of(
    track: Track,
    *,
    size: int | None = None,
    source: int = 0,
    growing: bool = False,
    for_players: bool = False,
    grouping: bool = True,
    before: Before | None = None,
) -> PlannedTrack:
    """A track's samples on the timeline of fragments.

    Samples that the edit list hides at the end are left out, where nothing shown follows them; and
    those that a file which was cut off no longer has.

    Args:
        growing: whether what follows must not change the known times: how long
            pictures wait because others are decoded before them is that of the first second.
        for_players: whether pictures that the edit list hides at the beginning have a tick each
            from time 0 on, for players that drop what is before it; and where the clock of
            fragments falls back, or jumps by more than an hour, times continue as if it had not.
        grouping: whether a row may stand for many samples of raw sound.
        before: of a track that grows, what was known of it before its first samples were left out.

    Raises:
        InexactIndex: the index does not know the track's samples.
        NoSyncSample: the track has no samples that are shown.
        BuildError: its edit list has several parts, or another rate than 1.
        LimitExceeded: it has more samples than `MAX_MADE_SAMPLES`.
    """
    shown = [segment for segment in track.segments if segment.media_time >= 0]
    if len(shown) > 1 or any(segment.rate != 1 for segment in shown):
        raise BuildError(
            f"the edit list of track {track.id} shows several parts of its media, or not at their "
            "own rate, and fragments cannot say that",
            path="moov/trak/edts/elst",
            expected="one part, at rate 1",
            found=f"{len(shown)} parts",
            advice="make a clip of the whole file instead: it keeps the edit list",
        )
    groups = grouped(track) if grouping and not growing else None
    unit = 0 if groups is None else groups[1]
    if groups is None:
        _refuse_many(track.sample_count, track.id)
    samples = track.samples if groups is None else groups[0]
    stop = shown[0].media_stop(track.timescale) if shown else None
    if stop is not None:
        # A text without letters, which ends the one before, stands where the edit ends.
        late = 0 if track.kind in ("video", "audio") else -(-track.timescale // MILLISECONDS)
        samples = _until(samples, stop, unit, late)
    outside = np.flatnonzero(samples.offset + samples.size > (FAR if size is None else size))
    if len(outside):
        last = int(outside[0])
        room = (int(size or 0) - int(samples.offset[last])) // unit if unit else 0
        samples = _cut(samples, last, room, unit)
    samples_kept = None if unit else with_bytes(track, samples)
    if samples_kept is not None:
        samples = samples.rows(samples_kept)
    if not len(samples):
        raise NoSyncSample(f"track {track.id} has no samples that are shown")
    _refuse_many(len(samples), track.id)
    presentation = samples.cts + (round(track.shift) + (0 if before is None else before.moved))
    if for_players and not unit:
        presentation = _continuous(track, samples, samples_kept, presentation)
    # most tracks are in order, and those with the most samples
    rises = bool((presentation[1:] >= presentation[:-1]).all())
    order: Int64 | slice = slice(None) if rises else np.argsort(presentation, kind="stable")
    latest = len(samples) - 1 if isinstance(order, slice) else int(order[-1])
    last = max(int(samples.duration[latest]), 1)
    if int(presentation[latest]) + last <= 0:
        raise NoSyncSample(_why_hidden(track))
    finer, hidden = 1, 0
    is_first = before is None
    if for_players and is_first and track.kind == "video" and int(presentation.min()) < 0:
        presentation, finer, hidden = _from_zero(presentation, order, last, track.timescale)
        last *= finer
    waits: int | None
    if isinstance(order, slice) and is_first:
        # each is decoded when it is presented, or as much later as the first one is hidden
        durations = np.diff(presentation, append=presentation[-1] + last)
        waits = max(-int(presentation[0]), 0)
        decode = presentation + waits if waits else presentation
    else:
        durations = np.empty(len(samples), np.int64)
        durations[order] = np.diff(presentation[order], append=presentation[latest] + last)
        decode = np.cumsum(durations)
        decode -= durations
        if before is None:
            decode += max(int(presentation.min()), 0)
        else:
            decode += before.decode - int(decode[before.anchor])
        waits = None if before is None else before.media_time
    first = len(samples)
    if growing and is_first:
        first = _first_second(samples.sync, presentation, track.timescale * finer)
    media_time = max(0, int((decode - presentation)[:first].max())) if waits is None else waits
    end = int(presentation[latest]) + last
    settled = not growing or not is_first or first < len(samples)
    planned = PlannedTrack(
        track,
        samples,
        track.timescale * finer,
        one_source(source, len(samples)),
        numbers=samples_kept,
        unit=unit,
        end=end,
        settled=settled,
        hidden=hidden,
    )
    return planned.timed(presentation, decode, durations, media_time)


def _refuse_many(count: int | None, track: int) -> None:
    if count is not None and count > MAX_MADE_SAMPLES:
        raise LimitExceeded(
            f"track {track} has more samples than are made into fragments",
            expected=f"at most {MAX_MADE_SAMPLES}",
            found=count,
            advice="leave it out with tracks=, or take a clip",
        )


MILLISECONDS: Final = 1000
"""Ticks a second of most movies: edits end up to one of them before a text does."""


def _cut(samples: SampleTable, row: int, more: int, unit: int) -> SampleTable:
    """The rows before `row`, and so many samples of that one."""
    if more <= 0:
        return samples.rows(slice(0, row))
    columns = {name: column[: row + 1].copy() for name, column in samples.columns().items()}
    ticks = int(samples.duration[row]) // (int(samples.size[row]) // unit)
    columns["size"][row], columns["duration"][row] = more * unit, more * ticks
    return SampleTable.of(columns)


_FALLS_BACK: Final = Fraction(1, 4)
_JUMPS: Final = 3600
"""Seconds that a fragment begins before the one before it ends, or after it: the clock is wrong."""


def _continuous(
    track: Track, samples: SampleTable, numbers: Int64 | None, presentation: Int64
) -> Int64:
    """Times where those that fall back, or jump far ahead, follow what came before."""
    rows = track.fragments
    firsts = rows.sample_start[(rows.flags & FragmentFlags.VIRTUAL) == 0]
    if numbers is not None:
        firsts = np.searchsorted(numbers, firsts)
    firsts = np.unique(firsts[(firsts > 0) & (firsts < len(samples))])
    if not len(firsts):
        return presentation
    before, scale = firsts - 1, track.timescale
    ends = samples.dts[before] + np.clip(samples.duration[before], 0, scale)
    steps = samples.dts[firsts] - ends
    wrong = (steps < -int(_FALLS_BACK * scale)) | (steps > _JUMPS * scale)
    if not wrong.any():
        return presentation
    moved = np.zeros(len(presentation), np.int64)
    moved[firsts[wrong]] = -steps[wrong]
    return presentation + np.cumsum(moved)


def _from_zero(
    presentation: Int64, order: Int64 | slice, last: int, timescale: int
) -> tuple[Int64, int, int]:
    """Times with a tick each for hidden pictures from 0 on, before what is on show at 0.

    Args:
        last: duration of the last one.

    Returns: the times, how many ticks of them are one of the track, and how many are hidden.
    """
    rising = presentation[order]
    hidden = int(np.searchsorted(rising, 0, side="right")) - 1
    ends = int(rising[hidden + 1]) if hidden + 1 < len(rising) else int(rising[-1]) + last
    wanted = max(ceil(Fraction(hidden * _INSTANT, timescale)), hidden // ends + 1)
    finer = max(1, min(wanted, _FINEST // timescale))
    if hidden >= ends * finer:
        return presentation, 1, 0  # they have no place
    times = presentation * finer
    times[np.arange(len(times))[order][: hidden + 1]] = np.arange(hidden + 1)
    return times, finer, hidden


def _first_second(sync: npt.NDArray[np.bool_], presentation: Int64, timescale: int) -> int:
    """Samples before the first sync sample that is presented a second after the first sample.

    Something later is presented after it, so that all is known that is presented before it.
    """
    latest = greatest_from(presentation)
    later = sync & (presentation >= presentation[0] + timescale) & (latest > presentation)
    return int(later.argmax()) if later.any() else len(presentation)


def _why_hidden(track: Track) -> str:
    """Why nothing of a track is shown after time 0."""
    if track.info.edits:
        return f"the edit list hides all of track {track.id}"
    return f"all of track {track.id} lies before time 0, by its composition offsets"


def _until(samples: SampleTable, stop: int, unit: int, late: int) -> SampleTable:
    """Without samples at the end that begin at `stop` or later, a composition time in ticks.

    The last one that is left ends there; one that begins less than `late` ticks later is left, too,
    and those that are decoded before one that is left.
    """
    inside = np.flatnonzero(samples.cts < stop + late)
    last = int(inside[-1]) if len(inside) else -1
    if last >= 0 and unit:
        many = int(samples.size[last]) // unit
        ticks = int(samples.duration[last]) // many
        shown = -(-(stop - int(samples.cts[last])) // ticks)
        return _cut(samples, last, min(many, shown), unit)
    samples = samples.rows(slice(0, last + 1))
    if last < 0:
        return samples
    cts, duration = samples.cts.copy(), samples.duration.copy()
    after = np.flatnonzero(cts >= stop)
    if len(after) and not late:
        # Others need them to be decoded: each is shown for a tick at the end.
        cts[after[np.argsort(cts[after], kind="stable")]] = stop + np.arange(len(after))
        duration[after] = 1
    latest = int(np.argmax(cts))
    rest = stop - int(cts[latest])
    if 0 < rest < duration[latest]:
        duration[latest] = rest
    return replace(samples, cts=cts, duration=duration)
