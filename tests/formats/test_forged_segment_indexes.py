"""Forged sidx and mfra: whatever they claim, no fault of ours, no memory by their numbers.

Where the boxes of a file are read, they change nothing of what is found.
"""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import Box, build, make_box
from fragdex.errors import FormatError, FragdexError
from fragdex.formats import fidx
from fragdex.seeking.forms import FORMS
from fragdex.testing import movie

SMALL = (0, 1, 2, 7, 1000, 2**16, 2**31 - 1)
FORTY_MEGABYTES = 40 << 20

numbers = st.sampled_from([*SMALL, 2**31, 2**32 - 1]) | st.integers(0, 2000)
wide = numbers | st.sampled_from([2**61, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1])


def own_boxes(fragments: int) -> list[Box]:
    """A file of some fragments, without an index of its own."""
    return list(fragdex.boxes.parse(movie(fragments=fragments, samples=3)))


@st.composite
def sidx_boxes(draw: st.DrawFn) -> Box:
    version = draw(st.integers(0, 1))
    field = wide if version else numbers
    sizes = st.sampled_from(SMALL) | st.integers(0, 3000)
    row = st.tuples(
        st.integers(0, 1),
        sizes,
        numbers,
        st.integers(0, 1),
        st.integers(0, 7),
        st.sampled_from([0, 1, 2**28 - 1]),
    )
    return make_box(
        "sidx",
        version=version,
        reference_ID=draw(st.sampled_from([0, 1, 2, 2**32 - 1])),
        timescale=draw(st.sampled_from([0, 1, 1000, 90000, 2**32 - 1])),
        earliest_presentation_time=draw(field),
        first_offset=draw(field),
        references=draw(st.lists(row, max_size=6)),
    )


@st.composite
def tfra_boxes(draw: st.DrawFn, places: list[int]) -> Box:
    version = draw(st.integers(0, 1))
    field = wide if version else numbers
    places_said = st.sampled_from(places) | field
    # Numbers of trafs, runs and samples are one byte wide.
    row = st.tuples(field, places_said, *[st.sampled_from([0, 1, 2, 255])] * 3)
    return make_box(
        "tfra",
        version=version,
        track_ID=draw(st.sampled_from([0, 1, 2, 2**32 - 1])),
        entries=draw(st.lists(row, max_size=6)),
    )


def miscounted(box: bytes, at: int, width: int, count: int) -> bytes:
    """A box that claims another number of rows, its bytes as they were."""
    return box[:at] + (count % 256**width).to_bytes(width, "big") + box[at + width :]


@st.composite
def with_sidx(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A file with forged sidx boxes, and the file without them."""
    boxes = own_boxes(draw(st.integers(1, 4)))
    parts = [build(box) for box in boxes]
    for box in draw(st.lists(sidx_boxes(), min_size=1, max_size=3)):
        data = build(box)
        if draw(st.booleans()):
            count = draw(st.sampled_from([0, 1, 7, 255, 65535]))
            data = miscounted(data, 30 + 8 * box["version"], 2, count)
        place = draw(st.integers(2, len(parts)))
        parts.insert(place, data)
    return b"".join(parts), b"".join(build(box) for box in boxes)


@st.composite
def with_mfra(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A file with a forged mfra, and the file without it."""
    boxes = own_boxes(draw(st.integers(1, 4)))
    data = b"".join(build(box) for box in boxes)
    places, at = [], 0
    for box in boxes:
        places += [at] * (box.type == "moof")
        at += len(build(box))
    tables = draw(st.lists(tfra_boxes(places), max_size=3))
    inside = []
    for tfra in tables:
        one = build(tfra)
        if draw(st.booleans()):
            one = miscounted(one, 20, 4, draw(st.sampled_from([0, 1, 7, 2**16, 2**32 - 1])))
        inside.append(one)
    size = 8 + sum(map(len, inside)) + 16
    size_field = draw(st.sampled_from([size] * 4 + [0, 8, 16, 24, len(data), 2**31, 2**32 - 1]))
    inside.append(build(make_box("mfro", size=size_field)))
    mfra = size.to_bytes(4, "big") + b"mfra" + b"".join(inside)
    return data + mfra, data


def questions(index: fragdex.Index) -> Iterator[Callable[[], Any]]:
    """What anyone may ask of an index."""
    for track in index.tracks:
        for time in (-1, 0, 0.1, 1, 10**9):
            yield lambda track=track, time=time: track.seek(time)
        yield lambda track=track: (track.start, track.stop, track.rates, track.samples)
    yield lambda: index.span(0, 1)
    yield lambda: index.plan(0.1)
    yield lambda: repr(index)
    for form in FORMS:
        yield lambda form=form: index.export(form)


def asked(index: fragdex.Index) -> None:
    for question in questions(index):
        with contextlib.suppress(FragdexError):
            question()
    fidx.verify(index)
    saved = index.export("fidx")
    fidx.verify(saved)
    for question in questions(fidx.read(saved)):
        with contextlib.suppress(FragdexError):
            question()


def answered(forged: bytes, plain: bytes) -> None:
    tracemalloc.start()
    try:
        with contextlib.suppress(FormatError):
            asked(fragdex.index(forged))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < FORTY_MEGABYTES
    with contextlib.suppress(FormatError):
        exact, true = fragdex.index(forged, exact=True), fragdex.index(plain, exact=True)
        asked(exact)
        for track in true.tracks:
            own = exact.track(track.id)
            assert own.sample_count == track.sample_count
            assert own.samples.dts.tolist() == track.samples.dts.tolist()
            assert own.samples.size.tolist() == track.samples.size.tolist()


@given(with_sidx())
def test_a_forged_sidx_is_used_or_passed_over(forged: tuple[bytes, bytes]) -> None:
    answered(*forged)


@given(with_mfra())
def test_a_forged_mfra_is_used_or_passed_over(forged: tuple[bytes, bytes]) -> None:
    answered(*forged)


@given(with_sidx() | with_mfra(), st.data())
def test_a_forged_index_that_is_cut_off_is_answered(
    forged: tuple[bytes, bytes], data: st.DataObject
) -> None:
    cut = forged[0][: data.draw(st.integers(0, len(forged[0])))]
    with contextlib.suppress(FormatError):
        asked(fragdex.index(cut))


@pytest.mark.parametrize("version", [0, 1])
def test_a_sidx_whose_count_does_not_fit_says_where(version: int) -> None:
    sidx = build(make_box("sidx", version=version, timescale=1000, references=[(0, 1, 1, 1, 1, 0)]))
    with pytest.raises(FormatError) as caught:
        fragdex.boxes.parse(miscounted(sidx, 30 + 8 * version, 2, 65535), strict=True)
    assert caught.value.path == "sidx"
    assert caught.value.offset is not None
    assert caught.value.expected
    assert caught.value.found
