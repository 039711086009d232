"""VVC: films of an encoder, and streams that are written here from the syntax of the standard."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.repairing.bits import Bits, escaped
from tests.repairing.broken import (
    DAMAGE,
    changed_by,
    check_no_invention,
    check_samples,
    check_spans,
    film,
    samples_of,
)
from tests.repairing.test_damage import damage
from tests.repairing.test_sound_found import without_moov

import fragdex
from fragdex.errors import Unprocessable
from fragdex.repairing import vvc
from fragdex.repairing.syntax import Window
from fragdex.sources import open_source

NAMES = ("vvc/open-gop.mp4", "vvc/idr.mp4")


@pytest.mark.parametrize("name", NAMES)
def test_each_sample_is_found_with_its_times(name: str) -> None:
    good, other = film(name), film(NAMES[1 - NAMES.index(name)])
    broken = good.without_moov()
    for like in (good, other):
        repair = fragdex.repair(broken, like.data)
        check_no_invention(good, broken, repair)
        assert samples_of(repair) == good.truth
        assert all(track.proved == track.samples for track in repair.tracks)
        mended = repair.index(broken)
        for track in good.index.tracks:
            wanted, repaired_samples = track.samples, mended.track(track.id).samples
            for column in ("dts", "cts", "sync"):
                assert np.array_equal(getattr(wanted, column), getattr(repaired_samples, column)), (
                    column
                )


@pytest.mark.parametrize("name", NAMES)
def test_it_is_found_without_any_other_film_and_decodes(name: str) -> None:
    broken, truth = without_moov(name)
    repair = fragdex.repair(broken, rate=25)
    check_spans(broken, repair)
    assert samples_of(repair) == truth
    mended = repair.view.read(source=broken)
    track = fragdex.index(mended).track(1)
    assert track.codec == (film(name).index.track(1).codec or "").replace("vvc1", "vvi1")
    pictures = []
    for data in (mended, film(name).data):
        with av.open(io.BytesIO(data)) as opened:
            pictures.append([one.to_ndarray() for one in opened.decode(video=0)])
    assert len(pictures[0]) == len(pictures[1]) == 50
    assert all(np.array_equal(*pair) for pair in zip(*pictures, strict=True))


@settings(max_examples=40)
@given(
    st.sampled_from(NAMES),
    *DAMAGE,
    st.booleans(),
)
def test_nothing_is_invented(
    name: str, kind: str, where: float, size: int, seed: int, is_alone: bool
) -> None:
    whole, truth = without_moov(name)
    first = whole.index(b"mdat") + 4
    start = first + int(where * (len(whole) - first - 1))
    broken = damage(whole, kind, start, min(start + size, len(whole)), seed)
    try:
        repair = fragdex.repair(broken, None if is_alone else film(name).data)
    except Unprocessable:
        return
    check_spans(broken, repair)
    samples = samples_of(repair)
    for track in repair.tracks:
        check_samples(repair, track, samples[track.id], truth, changed_by(kind, start, size))


def sets_of(draw: Any) -> tuple[bytes, bytes, int, bool]:
    """A sequence and a picture parameter set, bits of an order count, and whether GDR is used."""
    flag = st.booleans()
    bits, layers, block = Bits(), draw(st.integers(0, 3)), draw(st.integers(0, 2))
    bits.put(0, 8)
    bits.put(layers, 3)
    bits.put(1, 2)
    bits.put(block, 2)
    bits.put(1)
    bits.put(1, 7)  # profile_tier_level()
    bits.put(0)
    bits.put(16, 8)
    bits.put(2, 2)
    constrained = draw(flag)
    bits.put(constrained)
    if constrained:
        more = draw(st.integers(0, 9))
        bits.put(0, 71)
        bits.put(more, 8)
        bits.put(0, more)
    aligned(bits)
    levels = [draw(flag) for _ in range(layers)]
    for level in levels:
        bits.put(level)
    aligned(bits)
    bits.put(0, 8 * sum(levels))
    parts = draw(st.integers(0, 2))
    bits.put(parts, 8)
    bits.put(7, 32 * parts)
    refreshes = draw(flag)
    bits.put(refreshes)
    bits.put(0)
    width, height = 8 * draw(st.integers(2, 60)), 8 * draw(st.integers(2, 60))
    bits.ue(width)
    bits.ue(height)
    bits.put(0)
    pieces = draw(st.sampled_from([None, 0, 1, 3]))
    bits.put(pieces is not None)
    if pieces is not None:
        subpictures(bits, pieces, [-(-side // (32 << block)) for side in (width, height)], draw)
    bits.ue(2)
    bits.put(0, 2)
    order_bits = draw(st.integers(6, 12))  # pictures are at most 27 apart
    bits.put(order_bits - 4, 4)
    bits.put(draw(st.integers(0, 2**40)), 41)  # what follows is not read
    sps = bits.unit(header(vvc.SPS))
    bits = Bits()
    bits.put(0, 11)
    bits.ue(width)
    bits.ue(height)
    bits.put(5, 8)
    return sps, bits.unit(header(vvc.PPS)), order_bits, refreshes


def aligned(bits: Bits) -> None:
    bits.put(0, -len(bits.text) % 8)


def subpictures(bits: Bits, last: int, blocks: list[int], draw: Any) -> None:
    """From sps_num_subpics_minus1 on (7.3.2.4)."""
    bits.ue(last)
    alone, alike = draw(st.booleans()), draw(st.booleans())
    widths = [(side - 1).bit_length() for side in blocks]
    if last:
        bits.put(alone)
        bits.put(alike)
    for number in range(last + 1 if last else 0):
        if not alike or number == 0:
            for is_there in (number > 0, number < last):
                for width in widths:
                    bits.put(0, width * is_there)
        if not alone:
            bits.put(3, 2)
    bits.ue(3)
    mapped = draw(st.booleans())
    bits.put(mapped)
    if mapped:
        bits.put(1)
        bits.put(0, 4 * (last + 1))


def header(kind: int, sub_layer: int = 1) -> bytes:
    return bytes([0, kind << 3 | sub_layer])


def picture_header(order: int, kind: int, order_bits: int, is_reference: bool) -> Bits:
    bits, refreshes = Bits(), kind >= vvc.IDR_W_RADL
    bits.put(refreshes)
    bits.put(not is_reference)
    if refreshes:
        bits.put(kind == vvc.GDR)
    bits.put(kind in (0, vvc.RASL, vvc.RADL, vvc.GDR))
    if kind in (0, vvc.RASL, vvc.RADL, vvc.GDR):
        bits.put(1)
    bits.ue(0)
    bits.put(order % (1 << order_bits), order_bits)
    return bits


@st.composite
def streams(draw: Any) -> tuple[bytes, list[tuple[int, int, int, bool]]]:
    """Access units after their lengths; where each begins and ends, its order, and sync."""
    sps, pps, order_bits, refreshes = sets_of(draw)
    random = Random(draw(st.integers(0, 1 << 32)))
    kinds = [0, 0, 0, vvc.CRA, vvc.IDR_N_LP] + [vvc.GDR] * refreshes
    data, rows, order = b"", [], 0
    is_split, has_delimiter = draw(st.booleans()), draw(st.booleans())
    for number in range(draw(st.integers(4, 9))):
        kind = vvc.IDR_W_RADL if number == 0 else draw(st.sampled_from(kinds))
        order = 0 if kind in (vvc.IDR_W_RADL, vvc.IDR_N_LP) else order + draw(st.integers(1, 3))
        bits = picture_header(order, kind, order_bits, draw(st.booleans()))
        units = [header(vvc.DELIMITER) + b"\x28"] if has_delimiter else []
        if number == 0 or draw(st.booleans()):
            units += [sps, pps]
        if draw(st.booleans()):
            units.append(header(vvc.PREFIX_APS) + escaped(random.randbytes(30)) + b"\x80")
        if draw(st.booleans()):
            units.append(header(vvc.PREFIX_SEI) + b"\x05\x02ab\x80")
        if is_split:
            units.append(bits.unit(header(vvc.PICTURE_HEADER)))
        for _ in range(draw(st.integers(1, 3)) if is_split else 1):
            slice = Bits("0" if is_split else "1" + bits.text)
            slice.put(random.getrandbits(700), 700)
            units.append(slice.unit(header(kind)))
        if draw(st.booleans()):
            units.append(header(vvc.SUFFIX_SEI) + b"\x84\x01a\x80")
        begin = len(data)
        data += b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)
        sync = kind in (vvc.IDR_W_RADL, vvc.IDR_N_LP, vvc.CRA)
        rows.append((begin, len(data), order, sync))
    return data, rows


@given(streams())
def test_access_units_that_are_written_from_the_syntax_are_found(
    stream: tuple[bytes, list[tuple[int, int, int, bool]]],
) -> None:
    data, rows = stream
    syntax, window = vvc.Vvc(), Window(open_source(data), len(data))
    for begin, stop, order, sync in rows:
        sample = syntax.find(window, begin, len(data))
        assert sample is not None
        assert (sample.stop, sample.sync) == (stop, sync)
        assert begin in syntax.starts(data)
        assert syntax.accept(sample).order == order


@given(streams(), st.data())
def test_what_is_cut_or_overwritten_ends_somewhere(
    stream: tuple[bytes, list[tuple[int, int, int, bool]]], draw: Any
) -> None:
    data, rows = stream
    at, size = draw.draw(st.integers(0, len(data) - 1)), draw.draw(st.integers(1, 80))
    broken = data[:at] + draw.draw(st.binary(min_size=size, max_size=size)) + data[at + size :]
    window, syntax = Window(open_source(broken), len(broken)), vvc.Vvc()
    for begin, _, _, _ in rows:
        sample = syntax.find(window, begin, len(broken))
        assert sample is None or begin < sample.stop <= len(broken)


@given(st.binary(min_size=1, max_size=120))
@example(header(vvc.SPS) + b"\xff" * 60)
def test_hostile_parameter_sets_are_read_to_their_end(data: bytes) -> None:
    for kind in (vvc.SPS, vvc.PPS, vvc.VPS, vvc.PICTURE_HEADER, vvc.PREFIX_SEI):
        syntax = vvc.Vvc()
        syntax.learn(header(kind) + data)
        assert all(len(unit) <= len(data) + 2 for unit in syntax.raw.values())
