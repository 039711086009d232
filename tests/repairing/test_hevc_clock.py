"""The clock of HEVC: parameter sets that are written here, with all that stands before it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.repairing.bits import Bits
from tests.repairing.broken import film
from tests.repairing.test_no_good_film import with_sets

import fragdex
from fragdex.indexing import hevc_sets
from fragdex.indexing.codecs import Missing
from fragdex.repairing import hevc


def profile(bits: Bits, layers: int, draw: Any) -> None:
    """profile_tier_level() (7.3.3)."""
    bits.put(draw(st.integers(0, 2**96 - 1)), 96)
    marks = [(draw(st.booleans()), draw(st.booleans())) for _ in range(layers)]
    for pair in marks:
        for mark in pair:
            bits.put(mark)
    if layers:
        bits.put(0, 2 * (8 - layers))
    for has_profile, has_level in marks:
        bits.put(0, 88 * has_profile)
        bits.put(0, 8 * has_level)


def picture_sets(bits: Bits, draw: Any) -> None:
    """Sets of reference pictures, some told by the one before (7.3.7)."""
    count = draw(st.integers(0, 6))
    bits.ue(count)
    before: list[int] = []
    for number in range(count):
        predicted = number > 0 and draw(st.booleans())
        if number:
            bits.put(predicted)
        counts: list[int] = []
        if predicted:
            distance = draw(st.integers(-4, 4).filter(bool))
            bits.put(distance < 0)
            bits.ue(abs(distance) - 1)
            for one in (*before, 0):
                how = draw(st.sampled_from(["used", "kept", "left"]))
                bits.put(how == "used")
                if how != "used":
                    bits.put(how == "kept")
                if how != "left" and one + distance:
                    counts.append(one + distance)
        else:
            sides = [draw(st.lists(st.integers(0, 3), max_size=3)) for _ in range(2)]
            for side in sides:
                bits.ue(len(side))
            for sign, side in zip((-1, 1), sides, strict=True):
                at = 0
                for step in side:
                    at += sign * (step + 1)
                    bits.ue(step)
                    bits.put(draw(st.booleans()))
                    counts.append(at)
        # nearest first, backwards before forwards
        before = sorted((one for one in counts if one < 0), reverse=True)
        before += sorted(one for one in counts if one > 0)


@st.composite
def sequence_sets(draw: Any) -> tuple[bytes, tuple[int, int] | None]:
    """A sequence parameter set (7.3.2.2.1), and its clock."""
    bits, flag, small = Bits(), st.booleans(), st.integers(0, 3)
    layers = draw(st.integers(0, 2))
    bits.put(0, 4)
    bits.put(layers, 3)
    bits.put(1)
    profile(bits, layers, draw)
    bits.ue(0)
    chroma = draw(st.integers(0, 3))
    bits.ue(chroma)
    if chroma == 3:
        bits.put(0)
    for side in (64, 48):
        bits.ue(side)
    cropped = draw(flag)
    bits.put(cropped)
    for _ in range(4 * cropped):
        bits.ue(1)
    bits.ue(0)
    bits.ue(0)
    order_bits = 4 + draw(small)
    bits.ue(order_bits - 4)
    each = draw(flag)
    bits.put(each)
    for _ in range(layers + 1 if each else 1):
        for _ in range(3):
            bits.ue(draw(small))
    for value in (0, 1, 0, 3, 1, 1):  # sizes of blocks and of transforms
        bits.ue(value)
    lists = draw(st.sampled_from(["none", "usual", "own"]))
    bits.put(lists != "none")
    if lists != "none":
        bits.put(lists == "own")
    if lists == "own":
        for size in range(4):
            for _ in range(2 if size == 3 else 6):
                coded = draw(flag)
                bits.put(coded)
                for _ in range((16 if size == 0 else 64) + (size > 1) if coded else 1):
                    bits.ue(draw(small))
    bits.put(3, 2)
    pcm = draw(flag)
    bits.put(pcm)
    if pcm:
        bits.put(0x77, 8)
        bits.ue(0)
        bits.ue(1)
        bits.put(1)
    picture_sets(bits, draw)
    long_term = draw(flag)
    bits.put(long_term)
    if long_term:
        count = draw(small)
        bits.ue(count)
        for _ in range(count):
            bits.put(draw(st.integers(0, (1 << order_bits) - 1)), order_bits)
            bits.put(draw(flag))
    bits.put(0, 2)
    ticks = draw(st.none() | st.tuples(*[st.integers(1, 2**32 - 1)] * 2))
    has_vui = draw(flag) or ticks is not None
    bits.put(has_vui)
    if has_vui:
        usability(bits, draw, ticks)
    bits.put(0)
    return bits.unit(bytes([hevc.SPS << 1, 1])), ticks


def usability(bits: Bits, draw: Any, ticks: tuple[int, int] | None) -> None:
    """vui_parameters() until its clock (E.2.1)."""

    def announced() -> bool:
        there: bool = draw(st.booleans())
        bits.put(there)
        return there

    if announced():
        aspect = draw(st.sampled_from([1, 255]))
        bits.put(aspect, 8)
        bits.put(0, 32 * (aspect == 255))
    if announced():  # overscan
        bits.put(1)
    if announced():  # the signal
        bits.put(5, 4)
        if announced():
            bits.put(0x010101, 24)
    if announced():  # where chroma lies
        bits.ue(1)
        bits.ue(1)
    bits.put(0, 3)
    if announced():  # the window that is shown
        for _ in range(4):
            bits.ue(1)
    clock(bits, ticks)


def clock(bits: Bits, ticks: tuple[int, int] | None) -> None:
    bits.put(ticks is not None)
    for number in ticks or ():
        bits.put(number, 32)


@given(sequence_sets())
def test_the_clock_of_a_sequence_is_read(
    unit_and_ticks: tuple[bytes, tuple[int, int] | None],
) -> None:
    unit, ticks = unit_and_ticks
    assert hevc_sets.sps_of(unit)[1].ticks == ticks


@given(sequence_sets(), st.integers(4, 400))
def test_a_set_that_is_cut_off_says_nothing_wrong(
    unit_and_ticks: tuple[bytes, tuple[int, int] | None], size: int
) -> None:
    unit, ticks = unit_and_ticks
    try:
        clock = hevc_sets.sps_of(unit[:size])[1].ticks
    except Missing:
        return
    assert clock in (ticks, None)


@st.composite
def video_sets(draw: Any) -> tuple[bytes, tuple[int, int] | None]:
    """A video parameter set (7.3.2.1), and its clock."""
    bits = Bits()
    layers = draw(st.integers(0, 2))
    bits.put(0b0000_11_000000, 12)
    bits.put(layers, 3)
    bits.put(0x1FFFF, 17)
    profile(bits, layers, draw)
    each = draw(st.booleans())
    bits.put(each)
    for _ in range(layers + 1 if each else 1):
        for _ in range(3):
            bits.ue(draw(st.integers(0, 3)))
    width, count = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    bits.put(width - 1, 6)
    bits.ue(count)
    bits.put(0, width * count)
    ticks = draw(st.none() | st.tuples(*[st.integers(1, 2**32 - 1)] * 2))
    clock(bits, ticks)
    return bits.unit(bytes([hevc.VPS << 1, 1])), ticks


@given(video_sets())
def test_the_clock_of_a_video_set_is_read(
    unit_and_ticks: tuple[bytes, tuple[int, int] | None],
) -> None:
    unit, ticks = unit_and_ticks
    assert hevc_sets.ticks_of_vps(unit) == ticks


def test_the_rate_of_the_stream_goes_before_a_guess() -> None:
    broken, _ = with_sets(film("hevc-aac.mp4"))
    repair = fragdex.repair(broken)
    track = next(t for t in film("hevc-aac.mp4").index.tracks if t.kind == "video")
    rate = track.timescale / int(track.samples.duration[0])
    assert repair.tracks[0].seconds == pytest.approx(
        (track.sample_count or 0) / rate, abs=1.5 / rate
    )
    assert not any("no rate is known" in sentence for sentence in repair.findings)
