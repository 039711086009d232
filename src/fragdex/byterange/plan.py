"""Which reads cover which ranges: plans, made before anything is read."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from fragdex.byterange.model import ByteRange
from fragdex.errors import BudgetExceeded, InvalidRange, LimitExceeded

__all__ = ["MAX_PLANNED_READS", "coalesce", "plan_reads"]

MAX_PLANNED_READS = 1_000_000
"""Reads in one plan; a table that asks for more names sizes that no file has."""


def coalesce(ranges: Iterable[ByteRange], max_gap: int = 0) -> tuple[ByteRange, ...]:
    """Return the same bytes as sorted ranges that neither overlap nor touch.

    With `max_gap` > 0, ranges with at most so many bytes between them become one, gap included.
    Empty ranges vanish.

    >>> coalesce([ByteRange(8, 9), ByteRange(0, 5), ByteRange(5, 7)])
    (ByteRange(start=0, stop=7), ByteRange(start=8, stop=9))
    >>> coalesce([ByteRange(8, 9), ByteRange(0, 5), ByteRange(5, 7)], max_gap=1)
    (ByteRange(start=0, stop=9),)
    """
    merged: list[list[int]] = []
    for one in sorted(one for one in ranges if one.start < one.stop):
        if merged and one.start - merged[-1][1] <= max_gap:
            merged[-1][1] = max(merged[-1][1], one.stop)
        else:
            merged.append([one.start, one.stop])
    return tuple(ByteRange(start, stop) for start, stop in merged)


def plan_reads(
    ranges: Iterable[ByteRange],
    *,
    max_gap: int,
    max_size: int | None,
    max_requests: int | None = None,
) -> tuple[ByteRange, ...]:
    """Plan the fewest reads that cover every byte of `ranges`.

    Reads are sorted and disjoint. No read is longer than `max_size` bytes (None: any length), and
    none has more than `max_gap` unwanted bytes in a row; a range longer than
    `max_size` is read in pieces. Where that gives more than `max_requests` reads, wider gaps are
    read too, as few and as small as possible. Raises BudgetExceeded where even that is not enough,
    LimitExceeded past MAX_PLANNED_READS, InvalidRange for impossible limits.

    >>> wanted = [ByteRange(0, 100), ByteRange(110, 200), ByteRange(5000, 5100)]
    >>> [str(read) for read in plan_reads(wanted, max_gap=64, max_size=4096)]
    ['[0, 200)', '[5000, 5100)']
    >>> [str(read) for read in plan_reads(wanted, max_gap=64, max_size=None, max_requests=1)]
    ['[0, 5100)']
    """
    if max_gap < 0 or (max_size is not None and max_size < 1):
        raise InvalidRange(
            "no plan fits these limits",
            expected="max_gap >= 0 and max_size >= 1",
            found=f"max_gap {max_gap}, max_size {max_size}",
        )
    wanted = coalesce(ranges)
    allowed = MAX_PLANNED_READS if max_requests is None else min(max_requests, MAX_PLANNED_READS)
    plan = _covering(wanted, max_gap, max_size, allowed)
    if plan is None and max_requests is not None:
        # the count falls as the gap grows, so the smallest gap that will do is found by halving
        gaps = sorted({b.start - a.stop for a, b in pairwise(wanted)})
        low, high = 0, len(gaps)
        while low < high:
            middle = (low + high) // 2
            tried = _covering(wanted, max(gaps[middle], max_gap), max_size, allowed)
            if tried is None:
                low = middle + 1
            else:
                plan, high = tried, middle
    if plan is None:
        if max_requests is not None:
            raise BudgetExceeded(
                "these ranges do not fit into so few reads",
                expected=f"{max_requests} reads of at most {max_size} bytes",
                found=f"{sum(one.size for one in wanted)} bytes in {len(wanted)} places",
                advice="raise max_requests or the size of a read",
            )
        raise LimitExceeded(
            "the plan has too many reads",
            expected=f"at most {MAX_PLANNED_READS}",
            found=f"{sum(one.size for one in wanted)} bytes by {max_size}",
        )
    return plan


def _covering(
    wanted: tuple[ByteRange, ...], max_gap: int, max_size: int | None, allowed: int
) -> tuple[ByteRange, ...] | None:
    """Cover greedily from the left, which is the fewest; None past `allowed` reads."""
    reads: list[ByteRange] = []
    start = stop = -1
    for one in wanted:
        begin = one.start
        if stop >= 0:
            if begin - stop <= max_gap and (max_size is None or begin - start < max_size):
                stop = one.stop if max_size is None else min(one.stop, start + max_size)
                begin = stop
                if begin == one.stop:
                    continue
            reads.append(ByteRange(start, stop))
        if max_size is not None and one.stop - begin > max_size:
            full = (one.stop - begin - 1) // max_size
            if len(reads) + full >= allowed:
                return None
            reads += [ByteRange.of(begin + i * max_size, max_size) for i in range(full)]
            begin += full * max_size
        start, stop = begin, one.stop
        if len(reads) >= allowed:
            return None
    if stop >= 0:
        reads.append(ByteRange(start, stop))
    return tuple(reads)
