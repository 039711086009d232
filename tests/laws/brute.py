"""Slow and plain answers, computed over every sample, that the library's must equal."""

from fractions import Fraction

from fragdex import NULL, FragmentFlags
from fragdex.testing.descriptions import TrueSample


def samples(table):
    """A sample table as plain tuples."""
    columns = (table.offset, table.size, table.dts, table.cts, table.duration, table.sync)
    return [TrueSample(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]


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
            assert rows.sync[n] == -1
            assert rows.data_start[n] == rows.data_stop[n] == NULL
            continue
        assert rows.dts[n] == mine[0].dts or FragmentFlags.VIRTUAL not in flags
        assert rows.data_start[n] == min(s.offset for s in mine if s.size or not _sized(mine))
        assert rows.data_stop[n] == max(
            s.offset + s.size for s in mine if s.size or not _sized(mine)
        )
        assert rows.cts_min[n] == min(s.cts for s in mine)
        assert rows.cts_end[n] == max(s.cts + s.duration for s in mine)
        assert rows.sync[n] == next((k for k, s in enumerate(mine) if s.sync), -1)
    assert at == len(true)


def _sized(mine):
    return any(s.size for s in mine)


def sync_samples(table):
    """A sync table written out: (sample, cts, dts) of every sync sample, by number."""
    found = []
    for r in range(len(table)):
        for k in range(int(table.count[r])):
            found.append(
                (
                    int(table.sample[r] + k * table.sample_step[r]),
                    int(table.cts[r] + k * table.step[r]),
                    int(table.dts[r] + k * table.step[r]),
                )
            )
    return sorted(found)


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
