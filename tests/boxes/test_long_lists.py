"""Long lists of records: parsed when asked for, equal to what they would be as tuples."""

from __future__ import annotations

import pickle
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.boxes import Box, build, make_box, parse
from fragdex.boxes.kinds import FEW, LazyList


def descriptor(tag: int, data: bytes) -> dict[str, object]:
    return {"tag": tag, "size_length": 4, "data": data}


def elements(count: int) -> Box:
    inside = tuple(descriptor(6, bytes([n % 3])) for n in range(count))
    flags = dict.fromkeys(
        ("streamDependenceFlag", "URL_Flag", "OCRstreamFlag", "streamPriority"), 0
    )
    stream = {"tag": 3, "size_length": 4, "ES_ID": 0, **flags, "descriptors": inside}
    return make_box("esds", ES=stream)


def groups(count: int) -> Box:
    entries = tuple({"data": n.to_bytes(2, "big")} for n in range(count))
    fields = {"version": 1, "grouping_type": "roll", "default_length": 2}
    return make_box("sgpd", **fields, entries=entries)


def levels(count: int) -> Box:
    one = {"ranges": ({"level": 1, "range_size": 2},)}
    return make_box("ssix", subsegments=(one, {"ranges": ()}) * (count // 2))


def entries_of(box: Box) -> object:
    return box["ES"]["descriptors"] if box.type == "esds" else list(box.fields.values())[-1]


@pytest.mark.parametrize("make", [elements, groups, levels])
def test_a_long_list_takes_no_more_memory_than_a_few_times_its_bytes(make) -> None:
    """A dict for each entry of two bytes took a hundred times the bytes."""
    data = build([make(60_000)])
    parse(build([make(100)]))
    tracemalloc.start()
    (box,) = parse(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * len(data)
    assert isinstance(entries_of(box), LazyList)


@pytest.mark.parametrize("make", [elements, groups, levels])
@given(st.integers(0, 3 * FEW))
def test_a_long_list_is_what_a_tuple_would_be(make, half: int) -> None:
    items = make(2 * half)
    (box,) = parse(build([items]))
    kept, parsed = entries_of(items), entries_of(box)
    assert isinstance(parsed, LazyList if 2 * half > FEW else tuple)
    assert tuple(parsed) == parsed[:] == kept
    assert parsed == kept
    assert len(parsed) == len(kept)
    assert box == items
    assert build([box]) == build([items])
    assert pickle.loads(pickle.dumps(box)) == box  # noqa: S301
    assert repr(parsed) == repr(kept)
    if half:
        assert parsed[-1] == kept[-1] == parsed[2 * half - 1]
        assert parsed[1::3] == kept[1::3]
        assert kept[0] in parsed
    for outside in (2 * half, -2 * half - 1):
        with pytest.raises(IndexError):
            parsed[outside]


def test_an_entry_that_differs_makes_a_long_list_another() -> None:
    (one,) = parse(build([groups(100)]))
    entries = (*one["entries"][:-1], {"data": b"zz"})
    (other,) = parse(build([one.replace(entries=entries)]))
    assert one != other
    assert one["entries"] != other["entries"]
    assert one["entries"] != 3
