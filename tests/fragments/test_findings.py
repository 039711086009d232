"""Findings are collected in bounded memory: the same one is counted, and its first place kept."""

from hypothesis import given
from hypothesis import strategies as st

from fragdex.fragments.findings import MAX_KINDS, Findings

added = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.integers(0, 99), st.integers(1, 4))
)


@given(added)
def test_the_same_finding_of_a_track_is_counted_at_its_first_place(rows):
    findings, expected = Findings(), {}
    for code, track, offset, count in rows:
        findings.add(code, "odd", offset=offset, track=track, count=count)
        first, before = expected.get((code, track), (offset, 0))
        expected[code, track] = first, before + count
    found = findings.all()
    assert {(one.code, one.track): (one.offset, one.count) for one in found} == expected
    assert [one.offset for one in found] == sorted(one.offset for one in found)
    assert Findings(found).all() == found


def test_complaints_do_not_fill_the_memory():
    findings = Findings()
    for number in range(2 * MAX_KINDS):
        findings.add("odd", "odd", track=number)
    assert len(findings.all()) == MAX_KINDS
