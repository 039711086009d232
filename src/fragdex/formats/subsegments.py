"""A file's fragments as stretches of bytes and time, for the forms that list them.

The stretches tile the bytes from the first fragment to the end of the last one, all tracks
together; their times are those of one track, the reference stream. They begin where that track's
fragments do, and their earliest presentation times rise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, InexactIndex
from fragdex.formats.sample_csv import whole_ticks
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, Int64, SyncTable
from fragdex.indexing.sync import expanded
from fragdex.record import record
from fragdex.seeking.model import Index, Period, Track
from fragdex.seeking.track import presented_first

KINDS_FIRST = ("video", "audio")


@record(frozen=True, slots=True, eq=False)
class Subsegments:
    """Stretches of a file as int64 columns of equal length, in file order.

    Attributes:
        offset, size: bytes; each begins where the one before ends.
        time: earliest presentation time in ticks of the reference track; never falls.
        duration: ticks to the next one's time, the last one's to the end of the track.
        access: presentation time in ticks of the first sync sample in it; NULL: none.
        starts: 1 where the reference track's first sample in it is that sync sample.
        row: first row of the reference track's fragment table.
    """

    offset: Int64
    size: Int64
    time: Int64
    duration: Int64
    access: Int64
    starts: Int64
    row: Int64

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def stop(self) -> int:
        """Byte after the last one."""
        return int(self.offset[-1] + self.size[-1])


def period_of(index: Index, number: int | None) -> Period:
    """The period of this number; None: the only one.

    Raises:
        BuildError: there is no such period, or none was named and there are several.
    """
    if number is None and len(index.periods) == 1:
        return index.periods[0]
    if number is None:
        raise BuildError(
            "the index has several periods" if index.periods else "the index has no period",
            advice="take one: period=0, index.of_period(0), or --period 0; or all of them, one "
            "after the other: fragdex.join([index.of_period(0), index.of_period(1), …])"
            if index.periods
            else None,
        )
    for period in index.periods:
        if period.number == number:
            return period
    raise BuildError(
        "there is no such period", expected=f"below {len(index.periods)}", found=number
    )


def reference_track(period: Period, track: int | None = None) -> Track:
    """The track whose times count: the one named, or the first video or audio track with fragments.

    Raises:
        TrackNotFound: the track that was named is not there.
        BuildError: no track has movie fragments.
    """
    if track is not None:
        return period.track(track)
    filled = [one for one in period.tracks if len(_moofs(one))]
    for kind in KINDS_FIRST:
        if (first := presented_first(filled, kind)) is not None:
            return first
    if filled:
        return filled[0]
    if not any(len(one.fragments) for one in period.tracks):
        raise BuildError(
            "this is an initialization segment: it has no samples itself"
            if period.init and period.movie.fragmented
            else "the file has no samples",
            advice="name a segment, and this one with init= (--init)"
            if period.init and period.movie.fragmented
            else None,
        )
    raise BuildError(
        "this form needs movie fragments, and the file has none",
        advice="make a fragmented copy first: fragdex view FILE -o COPY.mp4",
    )


def _moofs(track: Track) -> Int64:
    """Rows of the fragment table that are movie fragments with samples."""
    table = track.fragments
    virtual = (table.flags & FragmentFlags.VIRTUAL) != 0
    return np.flatnonzero(~virtual & (table.sample_count != 0))


def subsegments(
    period: Period,
    track: int | None = None,
    *,
    min_ticks: int = 0,
    at_sync: bool = False,
    playable: bool = False,
    own: bool = False,
) -> Subsegments:
    """The stretches of a period.

    Args:
        track: the reference stream; None: the first video or audio track.
        min_ticks: least duration, in ticks of that track.
        at_sync: begin at fragments whose first sample is a sync sample only.
        playable: for players that fetch one stretch after the other: leave out what stands before
            the very first moof alone, which is an index of the file.
        own: begin with the track's own first fragment, not with that of all tracks.

    Raises:
        BuildError: the file has no movie fragments, or not in file order.
        InexactIndex: times of fragments are not known.
    """
    chosen = reference_track(period, track)
    rows = _moofs(chosen)
    if not len(rows):
        raise BuildError(f"track {chosen.id} has no movie fragments")
    timed(chosen)
    table = chosen.fragments.rows(rows)
    begins = table.offset if (table.moof_offset == NULL).any() else table.moof_offset
    if (np.diff(begins) < 0).any():
        raise BuildError("the fragments are not in file order", found=f"track {chosen.id}")
    in_row, access = (column[rows] for column in first_access(chosen))
    cuts = _cuts(table, in_row, min_ticks, at_sync)
    start, stop, moof = _all_moofs(period)
    cuts = cuts[np.append(True, _uncrossed(start, stop, table)[cuts[1:]])]
    shift = whole_ticks(chosen.shift)
    begin, end = int(start[0]), int(stop.max())
    if own:
        begin = int(table.offset[0])
    elif playable:
        # from the first moof on, where none of the others has boxes of its own before it
        leads, first = moof - start, moof == moof.min()
        begin = begin if (moof == NULL).any() or leads[~first].any() else int(moof.min())
    offset = np.append(begin, table.offset[cuts][1:])
    least = np.minimum.accumulate(table.cts_min[::-1])[::-1]
    time = least[cuts] + shift
    last = int(max(table.cts_end.max(), table.cts_min.max())) + shift
    first = _first_in(access, cuts)
    return Subsegments(
        offset,
        np.diff(offset, append=end),
        time,
        np.diff(time, append=last),
        np.where(access[first] == NULL, NULL, access[first] + shift),
        ((first == cuts) & (in_row[first] == 0)).astype(np.int64),
        rows[cuts],
    )


def _all_moofs(period: Period) -> tuple[Int64, Int64, Int64]:
    """Where the fragments of all tracks start and stop, and their moofs; rising by start."""
    parts = [t.fragments.rows(_moofs(t)) for t in period.tracks]
    start = np.concatenate([part.offset for part in parts])
    stop = np.concatenate([part.offset + part.size for part in parts])
    moof = np.concatenate([part.moof_offset for part in parts])
    order = np.argsort(start, kind="stable")
    return start[order], stop[order], moof[order]


def _uncrossed(start: Int64, stop: Int64, table: FragmentTable) -> npt.NDArray[np.bool_]:
    """Before which rows a stretch may end: no fragment has boxes or samples on both sides."""
    reached = np.append(-1, np.maximum.accumulate(stop))
    whole = reached[np.searchsorted(start, table.offset, side="left")] <= table.offset
    mine = np.maximum.accumulate(table.offset + table.size)
    whole[1:] &= mine[:-1] <= table.offset[1:]
    return whole


def have_own_bytes(period: Period) -> bool:
    """Whether no two moofs share bytes: each can be copied by itself."""
    start, stop, moof = _all_moofs(period)
    shared = start[1:] < np.maximum.accumulate(stop)[:-1]
    return not (shared & (moof[1:] != moof[:-1])).any()


def timed(track: Track) -> None:
    """Make sure that the times of a track's fragments are known, in seconds.

    Raises:
        InexactIndex: they are not.
    """
    if not track.timescale:
        raise InexactIndex(
            f"the timescale of track {track.id} is not known, so its times are not",
            advice="give the initialization segment with init= (--init)",
        )
    table = track.fragments.rows(_moofs(track))
    if (table.cts_min == NULL).any():
        raise InexactIndex(
            f"the times of track {track.id} are not known for every fragment",
            advice="build the index with exact=True (--exact)",
        )


def _cuts(table: FragmentTable, in_row: Int64, min_ticks: int, at_sync: bool) -> Int64:
    """Rows at which a stretch begins; the first row always does.

    Pictures after a cut may be shown before the one at it, so that the least time from a row on
    counts. Where it rises, the stretch before has its own least time and the two are in order. Of
    the rows that share a least time, one with a sync sample at its start is the better cut.
    """
    least = np.minimum.accumulate(table.cts_min[::-1])[::-1]
    group = np.cumsum(np.append(True, np.diff(least) > 0)) - 1
    synced = np.flatnonzero(in_row == 0)
    first = np.full(int(group[-1]) + 1, len(least))
    np.minimum.at(first, group[synced], synced)
    if not at_sync:
        opening = np.flatnonzero(np.append(True, np.diff(group) > 0))
        first = np.where(first == len(least), opening, first)
    cuts = first[first < len(least)]
    cuts = (
        np.append(0, cuts[(cuts > 0) & (least[cuts] > least[0])]) if len(cuts) else np.zeros(1, int)
    )
    if min_ticks <= 0:
        return cuts.astype(np.int64)
    end = int(table.cts_end.max())
    chosen = [0]
    since = int(least[0])
    for row, time in zip(cuts[1:].tolist(), least[cuts[1:]].tolist(), strict=True):
        if time - since >= min_ticks and end - time >= min_ticks:
            chosen.append(row)
            since = time
    return np.array(chosen, np.int64)


def _first_in(access: Int64, cuts: Int64) -> Int64:
    """For each stretch the first row with an access point; its first row where there is none."""
    known = np.flatnonzero(access != NULL)
    if not len(known):
        return cuts
    place = np.searchsorted(known, cuts)
    first = known[np.minimum(place, len(known) - 1)]
    ends = np.append(cuts[1:], len(access))
    return np.where((place < len(known)) & (first < ends), first, cuts)


def first_access(track: Track) -> tuple[Int64, Int64]:
    """The first sync sample of each row of the fragment table.

    Returns: its number in the row, counted from 0, -1 where the row has none and NULL where it is
    not known; and its composition time, NULL where there is none.
    """
    table, sync = track.fragments, track.sync_samples
    cts = np.full(len(table), NULL)
    if not len(sync):
        return np.where(table.first_sync == NULL, NULL, -1), cts
    known = (table.first_sync != NULL) & (table.sample_start != NULL)
    named = np.flatnonzero(known & (table.first_sync >= 0))
    numbered = sync.rows(sync.sample != NULL)
    if len(named) and len(numbered):
        numbered = numbered.rows(np.argsort(numbered.sample, kind="stable"))
        number = table.sample_start[named] + table.first_sync[named]
        time, right = _times_of(numbered, number)
        if not right.all():
            # Runs follow presentation order: with pictures reordered they may interleave.
            each = expanded(numbered)
            each = each.rows(np.argsort(each.sample, kind="stable"))
            time, right = _times_of(each, number)
        cts[named] = np.where(right, time, NULL)
    # What was not numbered: the sync table says which row holds the first of each run.
    missing = (cts == NULL) & (~known | (table.first_sync >= 0))
    if missing.any():
        least = np.full(len(table), np.iinfo(np.int64).max)
        np.minimum.at(least, sync.fragment, sync.cts)
        cts = np.where(missing & (least < np.iinfo(np.int64).max), least, cts)
    in_row = np.where(known, table.first_sync, NULL)
    # A sidx tells no sample: its access point is the first sample where nothing is shown before.
    guessed = (in_row == NULL) & (cts != NULL) & (cts == table.cts_min)
    return np.where(guessed, 0, np.where((in_row == NULL) & (cts == NULL), -1, in_row)), cts


def _times_of(runs: SyncTable, number: Int64) -> tuple[Int64, npt.NDArray[np.bool_]]:
    """Composition times of sync samples by their numbers, and which of them the runs hold.

    Args:
        runs: sorted by `sample`; a number is looked for in the last run that begins before it.
        number: numbers of samples in the track.
    """
    run = np.maximum(np.searchsorted(runs.sample, number, side="right") - 1, 0)
    step = np.maximum(runs.sample_step[run], 1)
    behind: Int64 = number - runs.sample[run]
    turn = behind // step
    right = (turn * step == behind) & (turn >= 0) & (turn < runs.count[run])
    return runs.cts[run] + turn * runs.step[run], right


def init_range(period: Period) -> ByteRange:
    """One range for ftyp and moov; the moov alone where media lie between the two.

    Raises:
        BuildError: there is no moov, or it holds samples itself, which no playlist can name.
    """
    if not period.init and period.movie.tracks:
        raise BuildError(
            "the initialization segment is not in this file",
            advice="say where players find it, with init_uri=",
        )
    if not period.init:
        raise BuildError(
            "there is no initialization segment",
            advice="give it with init= (--init) when indexing",
        )
    for track in period.tracks:
        if (track.fragments.flags & FragmentFlags.VIRTUAL).any():
            raise BuildError(
                "the moov has samples itself, so it is not an initialization segment",
                advice="make a fragmented copy first: fragdex view FILE -o COPY.mp4",
            )
    return init_place(period)


def init_place(period: Period) -> ByteRange:
    """One range for ftyp and moov; the moov alone where media lie between the two.

    Empty where there is no initialization segment, and no more than a place where the moov holds
    samples itself.
    """
    if not period.init:
        return ByteRange(0, 0)
    whole = ByteRange(period.init[0].start, max(part.stop for part in period.init))
    for track in period.tracks:
        offset = track.fragments.offset
        if ((offset < whole.stop) & (offset + track.fragments.size > whole.start)).any():
            return period.init[-1]
    return whole
