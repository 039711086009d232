"""Colours, rotation, titles, chapters and rates: said by headers, counted from samples."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import Box, build, make_box, parse_box
from fragdex.formats import fidx
from fragdex.formats.records import from_plain, to_plain
from fragdex.fragments.track_info import (
    Chapter,
    Colour,
    ContentLight,
    DolbyVision,
    MasteringDisplay,
    TrackInfo,
)
from fragdex.indexing.moov import LEFT
from fragdex.indexing.movie import chapters, entry_facts, facts
from fragdex.testing import movie

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
ONE = 0x10000


def raw(code: str, data: str) -> Box:
    return Box(code, {"data": bytes.fromhex(data)})


def entry(*children: Box) -> Box:
    return make_box("avc1", parent="stsd", width=64, height=48, children=children)


def header(matrix: tuple[int, int, int, int] = (ONE, 0, 0, ONE), **more: Any) -> Box:
    a, b, c, d = matrix
    whole = (a, b, 0, c, d, 0, 0, 0, 0x40000000)
    return make_box("tkhd", track_ID=1, matrix=whole, **({"flags": 7} | more))


def trak(*children: Box) -> Box:
    """As a moov is read: user data are left as they are."""
    return parse_box(build(make_box("trak", children=children)), leave=LEFT)


@pytest.mark.parametrize(
    ("matrix", "degrees", "mirrored"),
    [
        ((ONE, 0, 0, ONE), 0, False),
        ((0, ONE, -ONE, 0), 90, False),
        ((-ONE, 0, 0, -ONE), 180, False),
        ((0, -ONE, ONE, 0), 270, False),
        ((-ONE, 0, 0, ONE), 0, True),
        ((ONE, 0, 0, -ONE), 180, True),
        ((0, ONE, ONE, 0), 90, True),
        ((0, -ONE, -ONE, 0), 270, True),
        ((ONE, 1, 0, ONE), None, False),  # skewed
        ((ONE, 0, 0, 2 * ONE), None, False),  # stretched
        ((-ONE, 0, 0, 2 * ONE), None, False),
        ((0, 0, 0, 0), None, False),
    ],
)
def test_rotation(matrix: tuple[int, int, int, int], degrees: int | None, mirrored: bool) -> None:
    track_facts = facts(trak(header(matrix)), {})
    assert (track_facts["rotation"], track_facts["mirrored"]) == (degrees, mirrored)


def test_high_dynamic_range() -> None:
    hdr = entry(
        make_box(
            "colr",
            colour_type="nclx",
            colour_primaries=9,
            transfer_characteristics=16,
            matrix_coefficients=9,
        ),
        # green, blue, red and white point of BT.2020; 1000 and 0.005 cd/m2
        raw("mdcv", "2134 9baa 1996 08fc 8a48 3908 3d13 4042 00989680 00000032"),
        raw("clli", "03e8 0190"),
        raw("dvvC", "01 00 10 35 10" + "00" * 19),
    )
    track_facts = facts(trak(header()), entry_facts(hdr))
    assert track_facts["colour"] == Colour(9, 16, 9, False)
    assert track_facts["colour"].dynamic_range == "PQ"
    assert track_facts["mastering_display"] == MasteringDisplay(
        (0.708, 0.292, 0.17, 0.797, 0.131, 0.046), (0.3127, 0.329), 1000, 0.005
    )
    assert track_facts["content_light"] == ContentLight(1000, 400)
    assert track_facts["dolby_vision"] == DolbyVision(8, 6, 1)


def test_high_dynamic_range_of_vp9() -> None:
    vp9 = entry(
        raw("vpcC", "01000000 02 0a a3 09 12 09 0000"),
        raw("SmDm", "00000000 b5001000 2000c000 40002000 50005000 0003e800 00000040"),
        raw("CoLL", "00000000 03e8 0190"),
    )
    track_facts = facts(trak(header()), entry_facts(vp9))
    assert track_facts["colour"] == Colour(9, 18, 9, True)
    assert track_facts["colour"].dynamic_range == "HLG"
    assert track_facts["mastering_display"].max_luminance == 1000
    assert track_facts["content_light"] == ContentLight(1000, 400)


def test_what_a_track_is_called_and_meant_for() -> None:
    udta = make_box("udta", children=[make_box("name", name="Director's voice")])
    elng = make_box("elng", extended_language="zh-Hant-TW")
    tref = make_box("tref", children=[raw("chap", "00000003 00000004")])
    whole = trak(header(flags=6, alternate_group=-1), tref, make_box("mdia", children=[elng]), udta)
    rate = make_box("btrt", maxBitrate=1000, avgBitrate=500)
    track_facts = facts(whole, entry_facts(entry(raw("pasp", "0000000400000003"), rate)))
    assert track_facts["title"] == "Director's voice"
    assert track_facts["extended_language"] == "zh-Hant-TW"
    assert track_facts["enabled"] is False
    assert track_facts["alternate_group"] == 65535
    assert track_facts["chapter_tracks"] == (3, 4)
    assert track_facts["pixel_aspect"] == (4, 3)
    assert (track_facts["declared_bit_rate"], track_facts["declared_peak_bit_rate"]) == (500, 1000)
    called = "Théo".encode()
    text = len(called).to_bytes(2, "big") + b"\x15\xc7" + called
    quicktime = trak(header(), make_box("udta", children=[Box("\xa9nam", {"data": text})]))
    assert facts(quicktime, {})["title"] == "Théo"


def test_chapters_of_a_list() -> None:
    index = fragdex.index(FIXTURES / "chapters.mp4")
    assert index.periods[0].movie.chapters == (Chapter(0, "first"), Chapter(10_000_000, "second"))
    assert index.track(1).info.chapter_tracks == (3,)
    assert chapters(make_box("moov", children=[])) == ()


CODES = ("pasp", "colr", "mdcv", "clli", "SmDm", "CoLL", "vpcC", "dvcC", "btrt", "esds")


@given(
    st.lists(st.tuples(st.sampled_from(CODES), st.binary(max_size=60)), max_size=4),
    st.binary(max_size=80),
)
def test_damage_in_what_is_beside_the_point_says_nothing(
    boxes: list[tuple[str, bytes]], data: bytes
) -> None:
    damaged = Box("avc1", {"data": bytes(78)}, [Box(code, {"data": body}) for code, body in boxes])
    whole = Box("trak", {}, [Box("udta", {"data": data}), Box("tref", {"data": data})])
    assert facts(whole, entry_facts(damaged)).keys() <= {one.name for one in fields(TrackInfo)}
    assert chapters(Box("moov", {}, [Box("udta", {"data": data})])) == ()


@pytest.mark.parametrize(
    "name", ["chapters.mp4", "frag-two-languages.mp4", "vp9-flac.mp4", "surround.mp4", "psp.mp4"]
)
def test_a_saved_index_keeps_them(name: str) -> None:
    index = fragdex.index(FIXTURES / name)
    read = fidx.read(fidx.write(index))
    assert [period.movie for period in read.periods] == [period.movie for period in index.periods]


def test_rates_are_counted() -> None:
    """The encoder said in btrt what it had put into the file."""
    index = fragdex.index(FIXTURES / "ntsc.mp4")
    pictures, sound = index.track(1), index.track(2)
    assert pictures.rates.frame_rate == Fraction(30000, 1001)
    assert pictures.rates.bit_rate == pytest.approx(pictures.info.declared_peak_bit_rate, abs=2)
    assert sound.rates.frame_rate is None
    assert sound.rates.bit_rate == pytest.approx(sound.info.declared_bit_rate, abs=2)


@given(st.integers(1, 6), st.integers(1, 8), st.integers(1, 60), st.booleans())
def test_rates_equal_a_count_over_all_samples(
    fragments: int, samples: int, fps: int, fragmented: bool
) -> None:
    index = fragdex.index(movie(fragments, samples=samples, fps=fps, fragmented=fragmented))
    track = index.track(1)
    table, scale = track.samples, track.timescale
    rates = track.rates
    duration = Fraction(int(table.duration.sum()), scale)
    assert rates.frame_rate == len(table) / duration
    assert rates.bit_rate == pytest.approx(float(int(table.size.sum()) * 8 / duration))
    rows = list(zip(table.dts.tolist(), table.size.tolist(), strict=True))
    fullest = max(sum(s for at, s in rows if first <= at < first + scale) for first, _ in rows) * 8
    expected = max(fullest, rates.bit_rate) if duration >= 1 else rates.bit_rate
    assert rates.peak_bit_rate == pytest.approx(expected)


def test_an_index_of_fragments_alone_counts_no_bits() -> None:
    index = fidx.read(fidx.write(fragdex.index(movie(3, samples=5, fps=25))))
    rates = index.track(1).rates
    assert (rates.frame_rate, rates.bit_rate) == (25, None)


def test_a_record_of_an_older_index_is_read() -> None:
    info = fragdex.index(FIXTURES / "chapters.mp4").track(1).info
    plain = to_plain(info)
    newer = {"nal_length_size", "declared_peak_bit_rate", "chapter_tracks"}
    assert newer <= plain.keys()
    older = from_plain(TrackInfo, {k: v for k, v in plain.items() if k not in newer})
    assert (older.id, older.codec, older.rotation, older.chapter_tracks) == (1, info.codec, 0, ())


def test_what_one_file_says_does_not_change_what_another_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sample entries of the same bytes, of which one was read by a second mdia's handler."""
    monkeypatch.setattr("fragdex.indexing.movie._DESCRIBED", {})
    data = (FIXTURES / "one-frame.mp4").read_bytes()
    at = data.index(b"moov") - 4
    moov = parse_box(data[at:])
    mdia = moov.find("trak/mdia")
    first = build(make_box("mdia", children=[mdia.find("mdhd"), mdia.find("hdlr")]))
    other = bytearray(data[at:].replace(b"vide", b"soun"))
    other[mdia.offset : mdia.offset] = first
    for box in (moov, moov.find("trak")):
        other[box.offset : box.offset + 4] = (box.size + len(first)).to_bytes(4, "big")
    assert fragdex.index(data[:at] + other).tracks[0].info.codec is None
    assert fragdex.index(data).tracks[0].info.codec == "avc1.64000A"
