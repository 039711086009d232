"""Byte ranges hold to RFC 9110, section 14, and plans cover what they were asked to cover."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.byterange import (
    MAX_PLANNED_READS,
    MAX_RANGES,
    ByteRange,
    ContentRange,
    coalesce,
    content_range,
    parse_content_range,
    parse_range,
    plan_reads,
)
from fragdex.errors import BudgetExceeded, InvalidRange, LimitExceeded

IGNORE, UNSATISFIABLE = 200, 416
MANY_DIGITS = {"{HUGE}": "9" * 1_000_000, "{ZEROS}": "0" * 1_000_000}
"""What stands for a million digits in a table, whose rows all processes of a run hold."""

positions = st.integers(0, 2**64)
ranges = st.tuples(positions, positions).map(lambda pair: ByteRange(min(pair), max(pair)))
small_ranges = st.tuples(st.integers(0, 200), st.integers(0, 40)).map(lambda p: ByteRange.of(*p))


def written_out(header):
    """A field of a table with all its digits."""
    for name, digits in MANY_DIGITS.items():
        header = header and header.replace(name, digits)
    return header


def spans(*pairs):
    return tuple(ByteRange(start, stop) for start, stop in pairs)


class TestByteRange:
    @pytest.mark.parametrize(
        "pair", [(-1, 2), (3, 2), (0.0, 2), ("0", 2), (None, 1), (0, -(10**9000))]
    )
    def test_refuses_what_makes_no_range(self, pair):
        with pytest.raises(InvalidRange):
            ByteRange(*pair)

    def test_numpy_integers_become_ints(self):
        np = pytest.importorskip("numpy")
        one = ByteRange(np.int64(3), np.uint32(5))
        assert (type(one.start), type(one.stop)) == (int, int)
        assert one == ByteRange(3, 5)

    def test_an_empty_range_has_no_header(self):
        assert ByteRange(3, 3).size == 0
        with pytest.raises(InvalidRange):
            _ = ByteRange(3, 3).header

    def test_cannot_be_moved_before_the_first_byte(self):
        with pytest.raises(InvalidRange):
            ByteRange(5, 6).shift(-6)

    @given(small_ranges, small_ranges)
    def test_intersection_is_that_of_the_sets_of_positions(self, a, b):
        both = set(range(a.start, a.stop)) & set(range(b.start, b.stop))
        assert a.overlaps(b) is bool(both)
        overlap = a.intersection(b)
        assert both == (set() if overlap is None else set(range(overlap.start, overlap.stop)))

    @given(st.lists(small_ranges))
    def test_order_is_that_of_start_then_stop(self, many):
        assert sorted(many) == sorted(many, key=lambda one: (one.start, one.stop))


# header, size, answer, clause of RFC 9110
CASES = [
    (None, 100, IGNORE, "14.2: no field"),
    # the examples of 14.1.2, for content of 10,000 bytes
    ("bytes=0-499", 10_000, spans((0, 500)), "14.1.2: the first 500 bytes"),
    ("bytes=500-999", 10_000, spans((500, 1000)), "14.1.2: the second 500 bytes"),
    ("bytes=-500", 10_000, spans((9500, 10_000)), "14.1.2: the final 500 bytes"),
    ("bytes=9500-", 10_000, spans((9500, 10_000)), "14.1.2: the final 500 bytes"),
    ("bytes=0-0,-1", 10_000, spans((0, 1), (9999, 10_000)), "14.1.2: first and last byte only"),
    (
        "bytes= 0-999, 4500-5499, -1000",
        10_000,
        spans((0, 1000), (4500, 5500), (9000, 10_000)),
        "14.1.2: first, middle and last 1000 bytes",
    ),
    ("bytes=500-600,601-999", 10_000, spans((500, 601), (601, 1000)), "14.1.2: not canonical"),
    ("bytes=500-700,601-999", 10_000, spans((500, 701), (601, 1000)), "14.1.2: not canonical"),
    # ends
    ("bytes=0-", 100, spans((0, 100)), "14.1.2: no last position is the end"),
    ("bytes=90-1000", 100, spans((90, 100)), "14.1.2: past the end is the end"),
    ("bytes=99-99", 100, spans((99, 100)), "14.1.2"),
    ("bytes=-1000", 100, spans((0, 100)), "14.1.2: a longer suffix is everything"),
    ("bytes=100-", 100, UNSATISFIABLE, "14.1.2: first position at the length"),
    ("bytes=100-200,300-", 100, UNSATISFIABLE, "14.1.2: none can be sent"),
    ("bytes=-0", 100, UNSATISFIABLE, "14.1.2: a suffix of no bytes"),
    ("bytes=0-9,500-600,-0", 100, spans((0, 10)), "14.1.2: the others are dropped"),
    ("bytes=0-", 0, UNSATISFIABLE, "14.1.2: nothing has no first byte"),
    ("bytes=-5", 0, IGNORE, "14.2: no content"),
    ("bytes=-0", 0, UNSATISFIABLE, "14.1.2"),
    # units
    ("BYTES=0-1", 100, spans((0, 2)), "14.1: range-unit is case-insensitive"),
    ("Bytes=0-1", 100, spans((0, 2)), "14.1"),
    ("lines=0-1", 100, IGNORE, "14.2: a unit not understood MUST be ignored"),
    ("byte=0-1", 100, IGNORE, "14.2"),
    ("=0-1", 100, IGNORE, "14.1: a token is not empty"),
    # lists and white space
    (" \tbytes=0-1 ", 100, spans((0, 2)), "5.5: white space around a field value"),
    ("bytes=0-1 \t, \t5-6", 100, spans((0, 2), (5, 7)), "5.6.1: OWS around the comma"),
    ("bytes=,0-1,,5-6,", 100, spans((0, 2), (5, 7)), "5.6.1.2: empty elements are ignored"),
    ("bytes=", 100, IGNORE, "5.6.1: 1# wants one"),
    ("bytes=,,", 100, IGNORE, "5.6.1: 1# wants one"),
    ("bytes=0 - 1", 100, IGNORE, "14.1.1: no white space inside"),
    ("bytes =0-1", 100, IGNORE, "14.1.1"),
    ("bytes=\n0-1", 100, IGNORE, "5.6.3: OWS is space and tab"),
    # syntax
    ("", 100, IGNORE, "14.1.1"),
    ("bytes", 100, IGNORE, "14.1.1"),
    ("bytes=-", 100, IGNORE, "14.1.1"),
    ("bytes=5", 100, IGNORE, "14.1.1"),
    ("bytes=a-b", 100, IGNORE, "14.1.1"),
    ("bytes=1-2-3", 100, IGNORE, "14.1.1"),
    ("bytes=--1", 100, IGNORE, "14.1.1"),
    ("bytes=+1-2", 100, IGNORE, "14.1.1: digits only"),
    ("bytes=1_0-20", 100, IGNORE, "14.1.1: digits only"),
    ("bytes=0x1-2", 100, IGNORE, "14.1.1: digits only"),
    ("bytes=١-٢", 100, IGNORE, "14.1.1: DIGIT is ASCII"),
    ("bytes=0-1;5-6", 100, IGNORE, "14.1.1"),
    ("bytes=5-4", 100, IGNORE, "14.1.1: last before first is invalid"),
    ("bytes=500-400", 100, IGNORE, "14.1.1: invalid, wherever the end is"),
    ("bytes=0-1,5-4", 100, IGNORE, "14.1.1: one invalid spec spoils the field"),
    # numbers
    ("bytes=00000-0009", 100, spans((0, 10)), "14.1.1: leading zeros are digits"),
    ("bytes=000-0", 100, spans((0, 1)), "14.1.1"),
    ("bytes=0-{HUGE}", 100, spans((0, 100)), "14.1.2: large numerals must not break anything"),
    ("bytes={HUGE}-", 100, UNSATISFIABLE, "14.1.2"),
    ("bytes=-{HUGE}", 100, spans((0, 100)), "14.1.2"),
    ("bytes={HUGE}-{HUGE}", 100, UNSATISFIABLE, "14.1.2"),
    ("bytes={HUGE}9-{HUGE}", 100, IGNORE, "14.1.1: last before first"),
    ("bytes={ZEROS}5-7", 100, spans((5, 8)), "14.1.1"),
    # attacks
    ("bytes=0-9,5-14,8-20", 100, IGNORE, "17.15: more than two that overlap"),
    ("bytes=0-99,0-0,99-99", 100, IGNORE, "17.15"),
    ("bytes=" + ",".join(["0-"] * 1000), 100, IGNORE, "17.15: many"),
    ("bytes=" + ",".join(f"{i}-{i}" for i in range(0, 2 * MAX_RANGES, 2)), 1000, 64, "17.15"),
    ("bytes=" + ",".join(f"{i}-{i}" for i in range(0, 2 * MAX_RANGES + 2, 2)), 1000, IGNORE, ""),
    ("bytes=" + "," * 1_000_000, 100, IGNORE, "17.15"),
]


@pytest.mark.parametrize(
    ("header", "size", "answer"),
    [case[:3] for case in CASES],
    ids=[f"{str(case[0])[:30]}-{case[3][:40]}" for case in CASES],
)
def test_range_field(header, size, answer):
    read = parse_range(written_out(header), size)
    if answer in (IGNORE, UNSATISFIABLE):
        assert read.status == answer
    else:
        assert read.status == 206
        assert len(read.ranges) == answer if isinstance(answer, int) else read.ranges == answer


def test_the_limit_of_ranges_can_be_set():
    assert parse_range("bytes=0-0,2-2", 100, max_ranges=1).status == IGNORE
    assert parse_range("bytes=0-0,2-2", 100, max_ranges=2).ranges == spans((0, 1), (2, 3))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=1, max_size=20))
def test_a_field_built_from_ranges_gives_them_back(steps):
    built, at = [], 0
    for gap, size in steps:
        built.append(ByteRange.of(at + gap, size))
        at = built[-1].stop
    header = "bytes=" + ", ".join(one.header.removeprefix("bytes=") for one in built)
    assert parse_range(header, at).ranges == tuple(built)
    assert parse_range(built[0].header, at).ranges == (built[0],)


@given(st.text(), st.integers(0, 2**70))
def test_no_text_breaks_the_field(text, size):
    assert parse_range(text, size).status == IGNORE or text.strip(" \t")[:6].lower() == "bytes="


@given(st.text("bytes=0123456789-, \t", max_size=40), st.integers(0, 300))
def test_ranges_to_send_are_never_empty_and_lie_inside(text, size):
    answer = parse_range("bytes=" + text, size)
    if answer.status == 206:
        assert answer.ranges
        assert all(0 <= one.start < one.stop <= size for one in answer.ranges)


@given(st.text("bytes=0123456789-, \t", max_size=40), st.integers(0, 300))
def test_the_answer_to_a_range_says_what_to_send(text, size):
    answer = parse_range("bytes=" + text, size)
    status = answer.status
    assert answer.size == size
    assert answer.ranges == {200: spans((0, size)), 416: (), 206: answer.ranges}[status]
    content_range = answer.headers.get("Content-Range")
    if status == 206 and len(answer.ranges) == 1:
        assert parse_content_range(content_range) == ContentRange(answer.ranges[0], size)
    else:
        assert content_range == (f"bytes */{size}" if status == 416 else None)
    sizes = [str(part.size) for part in answer.ranges]
    assert answer.headers.get("Content-Length") == (sizes[0] if len(sizes) == 1 else None)


class TestContentRange:
    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            ("bytes 42-1233/1234", ContentRange(ByteRange(42, 1234), 1234)),
            ("bytes 42-1233/*", ContentRange(ByteRange(42, 1234), None)),
            ("bytes */1234", ContentRange(None, 1234)),
            ("bytes */0", ContentRange(None, 0)),
            ("bytes=0-1/2", ContentRange(ByteRange(0, 2), 2)),
            ("bytes=*/2", ContentRange(None, 2)),
            ("Bytes 0-1/2", ContentRange(ByteRange(0, 2), 2)),
            ("  bytes 0-1/2\t", ContentRange(ByteRange(0, 2), 2)),
            ("bytes 000-001/0002", ContentRange(ByteRange(0, 2), 2)),
        ],
    )
    def test_read(self, text, answer):
        assert parse_content_range(text) == answer

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "bytes",
            "bytes 0-1",
            "bytes 0-1/",
            "bytes */*",
            "bytes 1-0/2",
            "bytes 0-2/2",
            "bytes 0-5/5",
            "bytes -1/5",
            "bytes 0-/5",
            "lines 0-1/2",
            "bytes0-1/2",
            "bytes 0-1/2, 3-4/5",
            "bytes ٠-١/٢",
            "bytes 0-{HUGE}/*",
            "bytes */{HUGE}",
        ],
        ids=lambda text: text[:20],
    )
    def test_refused(self, text):
        with pytest.raises(InvalidRange):
            parse_content_range(written_out(text))

    @given(ranges.filter(lambda one: one.size), st.none() | st.integers(0, 2**64))
    def test_what_is_written_is_read_back(self, one, beyond):
        total = None if beyond is None else one.stop + beyond
        assert parse_content_range(content_range(one, total)) == ContentRange(one, total)
        assert str(ContentRange(one, total)) == content_range(one, total)

    @given(positions)
    def test_the_unsatisfied_form_is_read_back(self, total):
        assert parse_content_range(content_range(None, total)) == ContentRange(None, total)

    @pytest.mark.parametrize(
        "pair",
        [(None, None), (None, -1), (ByteRange(2, 2), 5), (ByteRange(0, 6), 5)],
    )
    def test_what_cannot_be_written(self, pair):
        with pytest.raises(InvalidRange):
            content_range(*pair)


def positions_of(many):
    return set().union(*(range(one.start, one.stop) for one in many))


@given(st.lists(small_ranges))
def test_coalesced_ranges_are_the_union_and_nothing_else(many):
    merged = coalesce(many)
    assert positions_of(merged) == positions_of(many)
    assert all(a.stop < b.start for a, b in pairwise(merged))
    assert all(one.size for one in merged)


@given(st.lists(small_ranges), st.integers(0, 30))
def test_only_gaps_up_to_the_limit_are_bridged(many, max_gap):
    merged = coalesce(many, max_gap)
    assert all(b.start - a.stop > max_gap for a, b in pairwise(merged))
    assert positions_of(merged) >= positions_of(many)
    for one in coalesce(many):
        assert sum(other.overlaps(one) for other in merged) == 1


@given(
    st.lists(small_ranges),
    st.integers(0, 30),
    st.none() | st.integers(1, 60),
    st.none() | st.integers(1, 12),
)
def test_a_plan_covers_everything_within_its_limits(many, max_gap, max_size, max_requests):
    try:
        plan = plan_reads(many, max_gap=max_gap, max_size=max_size, max_requests=max_requests)
    except BudgetExceeded:
        assert max_requests is not None
        assert max_size is not None
        assert fewest(positions_of(many), max_size) > max_requests
        return
    assert positions_of(plan) >= positions_of(many)
    assert all(a.stop <= b.start for a, b in pairwise(plan))
    assert all(one.size for one in plan)
    if max_size is not None:
        assert all(one.size <= max_size for one in plan)
    if max_requests is not None:
        assert len(plan) <= max_requests
    # each read begins and ends with bytes that were asked for
    assert all({one.start, one.stop - 1} <= positions_of(many) for one in plan)
    freely = plan_reads(many, max_gap=max_gap, max_size=max_size)
    widest = widest_gap(plan, positions_of(many))
    if max_requests is None or len(freely) <= max_requests:
        assert plan == freely
        assert widest <= max_gap
    else:  # no gap is read that a plan of so few reads can do without
        assert len(plan_reads(many, max_gap=widest - 1, max_size=max_size)) > max_requests


def widest_gap(plan, wanted):
    """Count the most positions in a row that a read has and nobody wants."""
    gaps = [0]
    for one in plan:
        inside = [position for position in range(one.start, one.stop) if position in wanted]
        gaps += [after - before - 1 for before, after in pairwise(inside)]
    return max(gaps)


def fewest(wanted, max_size):
    """Count the reads of a greedy cover that may bridge any gap."""
    count, end = 0, -1
    for position in sorted(wanted):
        if position >= end:
            count, end = count + 1, position + max_size
    return count


def test_a_plan_is_the_fewest_reads():
    wanted = spans((0, 10), (20, 30), (100, 110))
    assert plan_reads(wanted, max_gap=10, max_size=None) == spans((0, 30), (100, 110))
    assert plan_reads(wanted, max_gap=0, max_size=4) == spans(
        *[(at + i, min(at + i + 4, at + 10)) for at in (0, 20, 100) for i in (0, 4, 8)]
    )
    # the narrower gap is bridged, not the wider one
    assert plan_reads(wanted, max_gap=0, max_size=None, max_requests=2) == spans(
        (0, 30), (100, 110)
    )
    assert plan_reads([], max_gap=0, max_size=1) == ()
    assert plan_reads([], max_gap=0, max_size=1, max_requests=0) == ()


@pytest.mark.parametrize("allowed", range(1, 10))
def test_the_narrowest_gaps_are_read_where_reads_are_few(allowed):
    wanted = [ByteRange.of(sum(range(n)) + n, 1) for n in range(1, 10)]  # gaps of 1 to 8 bytes
    plan = plan_reads(wanted, max_gap=0, max_size=None, max_requests=allowed)
    assert len(plan) == allowed
    assert widest_gap(plan, positions_of(wanted)) == 9 - allowed


def test_a_plan_that_a_file_made_absurd_is_refused_at_once():
    absurd = [ByteRange(0, 2**62)]
    with pytest.raises(LimitExceeded, match=str(MAX_PLANNED_READS)):
        plan_reads(absurd, max_gap=0, max_size=1)
    with pytest.raises(BudgetExceeded):
        plan_reads(absurd, max_gap=0, max_size=1, max_requests=10**12)
    for limits in ({"max_gap": -1, "max_size": 1}, {"max_gap": 0, "max_size": 0}):
        with pytest.raises(InvalidRange):
            plan_reads(absurd, **limits)
