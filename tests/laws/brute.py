"""Slow and plain answers, computed over every sample, that the library's must equal."""

from fractions import Fraction

from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.testing.tracks import TrueSample


def samples(table):
    """A sample table as plain tuples."""
    columns = (table.offset, table.size, table.dts, table.cts, table.duration, table.sync)
    return placed(TrueSample(*row) for row in zip(*(c.tolist() for c in columns), strict=True))


def samples_of_moovs(index):
    """[{track id: samples}] of each moov: what follows a restarted clock has the same one."""
    moovs, init = [], None
    for period in index.periods:
        if not moovs or period.init != init:
            moovs.append({})
            init = period.init
        for track in period.tracks:
            moovs[-1][track.id] = moovs[-1].get(track.id, []) + samples(track.samples)
    return moovs


def restarts(index):
    """Whether a clock begins again in it; tests/indexing/test_restarts.py has the law of those."""
    return any(finding.code == "clock-restarts" for finding in index.findings)


def placed(samples):
    """Samples, those of no bytes without a place: they lie nowhere."""
    return [s if s.size else s._replace(offset=0) for s in samples]


def assert_fragments(rows, true):
    """The aggregates of a fragment table are those of its samples."""
    at = 0
    for n in range(len(rows)):
        first, count = int(rows.sample_start[n]), int(rows.sample_count[n])
        assert first == at
        at += count
        mine = true[first : first + count]
        flags = FragmentFlags(int(rows.flags[n]))
        assert (rows.moof_offset[n] == NULL) == (FragmentFlags.VIRTUAL in flags)
        if not mine:
            assert rows.first_sync[n] == -1
            assert rows.data_start[n] == rows.data_stop[n] == NULL
            continue
        assert rows.dts[n] == mine[0].dts or FragmentFlags.VIRTUAL not in flags
        sized = [s for s in mine if s.size]
        low = min((s.offset for s in sized), default=NULL)
        high = max((s.offset + s.size for s in sized), default=NULL)
        if FragmentFlags.VIRTUAL in flags and len(sized) < len(mine):
            # A chunk's place is that of its samples of no bytes, too.
            assert not sized or (rows.data_start[n] <= low and rows.data_stop[n] >= high)
        else:
            assert (rows.data_start[n], rows.data_stop[n]) == (low, high)
        assert rows.cts_min[n] == min(s.cts for s in mine)
        assert rows.cts_end[n] == max(s.cts + s.duration for s in mine)
        assert rows.first_sync[n] == next((k for k, s in enumerate(mine) if s.sync), -1)
    assert at == len(true)


def sync_samples(table):
    """A sync table written out: (sample, cts, dts) of every sync sample, by number."""
    return sorted(
        (
            int(table.sample[r] + k * table.sample_step[r]),
            int(table.cts[r] + k * table.step[r]),
            int(table.dts[r] + k * table.step[r]),
        )
        for r in range(len(table))
        for k in range(int(table.count[r]))
    )


def seek(true, timescale, shift, time):
    """Composition time of the last sync sample shown at or before an exact time, and clamped.

    None where there is no sync sample.
    """
    sync = [s for s in true if s.sync]
    if not sync:
        return None
    end = max(s.cts + s.duration for s in true)
    target = Fraction(time) * timescale - shift
    reached = [s.cts for s in sync if s.cts <= target]
    if not reached:
        return min(s.cts for s in sync), True
    return max(reached), target >= end


def same(one, other):
    """Whether two indexes say the same of every track: tables, samples, findings, resume point."""
    assert odd(one) == odd(other)
    assert len(one.periods) == len(other.periods)
    for mine, theirs in zip(one.periods, other.periods, strict=True):
        assert mine.init == theirs.init
        assert mine.movie == theirs.movie
        assert [t.id for t in mine.tracks] == [t.id for t in theirs.tracks]
        for a, b in zip(mine.tracks, theirs.tracks, strict=True):
            assert a.info == b.info
            assert a.shift == b.shift
            same_tables(a, b)
            assert a.groups == b.groups
    assert (one.complete, one.resume_offset) == (other.complete, other.resume_offset)


def same_tables(one, other):
    """Whether two tracks have the same fragments, samples and sync samples."""
    assert rows(one.fragments) == rows(other.fragments)
    assert rows(one.samples) == rows(other.samples)
    assert sync_samples(one.sync_samples) == sync_samples(other.sync_samples)


def odd(index):
    """The findings, less the one that a cut leaves, in an order of their own."""
    return sorted(str(f) for f in index.findings if f.code != "truncated")


def rows(table):
    """A table as plain rows, for readable differences."""
    return list(zip(*(column.tolist() for column in table.columns().values()), strict=True))
