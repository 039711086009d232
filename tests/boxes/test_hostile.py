"""What a hostile file may claim, and what it gets: one of our errors, at once, for no memory."""

import struct
import tracemalloc

import pytest

from fragdex.boxes import build, make_box, parse, parse_box
from fragdex.boxes.limits import MAX_BOXES_PER_ROOT, MAX_DEPTH, MAX_IMPLIED_ROWS
from fragdex.errors import (
    BuildError,
    FragdexError,
    LimitExceeded,
    MalformedBox,
    NotISOBMFF,
    TruncatedInput,
)

HUGE = 0xFFFFFFFF


def box(code, *parts):
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), code) + body


def full(code, version, flags, *parts):
    return box(code, struct.pack(">I", version << 24 | flags), *parts)


def words(*values):
    return struct.pack(f">{len(values)}I", *values)


CLAIMS = {
    "trun with columns": full(b"trun", 0, 0x301, words(HUGE, 8), bytes(64)),
    "trun without columns": full(b"trun", 0, 1, words(HUGE, 8)),
    "stts": full(b"stts", 0, 0, words(HUGE), bytes(16)),
    "stsz": full(b"stsz", 0, 0, words(0, HUGE)),
    "stz2": full(b"stz2", 0, 0, words(16, HUGE)),
    "co64": full(b"co64", 0, 0, words(1 << 29), bytes(8)),
    "elst": full(b"elst", 1, 0, words(HUGE)),
    "sidx": full(b"sidx", 0, 0, words(1, 1, 0, 0, 0xFFFF)),
    "tfra": full(b"tfra", 1, 0, words(1, 0x3F, HUGE)),
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS.keys())
def test_a_claimed_count_is_held_against_the_bytes(claim):
    tracemalloc.start()
    with pytest.raises((MalformedBox, LimitExceeded)) as caught:
        parse(claim)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
    assert caught.value.path == claim[4:8].decode()
    assert caught.value.offset == 0


DESCRIPTIONS = {
    "subs": full(b"subs", 0, 0, words(HUGE)),
    "sgpd": full(b"sgpd", 1, 0, b"roll", words(2, HUGE)),
    "pssh": full(b"pssh", 1, 0, bytes(16), words(HUGE)),
    "csgp": full(b"csgp", 0, 0x3F, b"roll", words(1, HUGE, 1)),
    "ssix": full(b"ssix", 0, 0, words(HUGE)),
    "chan": full(b"chan", 0, 0, words(0, 0, HUGE)),
    "esds": full(b"esds", 0, 0, b"\x03\xff\xff\xff\xff"),
    "emsg": full(b"emsg", 0, 0, b"urn:without end"),
}


@pytest.mark.parametrize("claim", DESCRIPTIONS.values(), ids=DESCRIPTIONS.keys())
def test_a_damaged_description_is_kept_as_it_is(claim):
    (kept,) = parse(claim)
    assert kept.opaque
    assert kept.misfit
    assert build(kept) == claim
    with pytest.raises(MalformedBox):
        parse(claim, strict=True)


def test_a_constant_sample_size_stays_one_number():
    (stsz,) = parse(full(b"stsz", 0, 0, words(512, HUGE)))
    assert (stsz["sample_size"], stsz["sample_count"]) == (512, HUGE)
    assert "entries" not in stsz


def test_a_run_of_default_samples_is_a_number_too():
    (trun,) = parse(full(b"trun", 0, 0, words(MAX_IMPLIED_ROWS)))
    assert trun["sample_count"] == MAX_IMPLIED_ROWS
    assert len(trun["samples"]) == 0


def test_nesting_is_bounded():
    nested = b""
    for _ in range(MAX_DEPTH + 2):
        nested = box(b"moof", nested)
    with pytest.raises(LimitExceeded, match="nested too deep"):
        parse(nested)


def test_boxes_inside_a_box_are_bounded():
    many = box(b"moov", box(b"free") * MAX_BOXES_PER_ROOT)
    with pytest.raises(LimitExceeded, match="too many boxes"):
        parse(many)


def test_items_of_a_list_are_bounded():
    (tsel,) = parse(full(b"tsel", 0, 0, words(0), b"cdec" * ((1 << 20) + 2)))
    assert tsel.misfit == "a list of too many items"


def test_boxes_side_by_side_are_bounded(monkeypatch):
    monkeypatch.setattr("fragdex.boxes.parsing.MAX_BOXES", 1000)
    assert len(parse(box(b"free") * 1000)) == 1000
    with pytest.raises(LimitExceeded, match="too many boxes"):
        parse(box(b"free") * 1001)


@pytest.mark.parametrize("size", range(2, 8))
def test_a_size_smaller_than_the_header_is_no_loop(size):
    data = box(b"ftyp", b"isom", words(0)) + struct.pack(">I4s", size, b"moov") + bytes(64)
    with pytest.raises(MalformedBox, match="smaller than its header") as caught:
        parse(data)
    assert caught.value.offset == 16


def test_a_large_size_smaller_than_its_header():
    with pytest.raises(MalformedBox, match="smaller than its header"):
        parse(struct.pack(">I4sQ", 1, b"moov", 15) + bytes(16))
    with pytest.raises(MalformedBox, match="smaller than its header"):
        parse(struct.pack(">I4s", 23, b"uuid") + bytes(32))


def test_a_box_past_its_parent_says_where():
    tkhd = struct.pack(">I4s", 500, b"tkhd") + bytes(8)
    data = box(b"ftyp", bytes(8)) + box(b"moov", box(b"trak"), box(b"free"), box(b"trak", tkhd))
    with pytest.raises(MalformedBox, match="runs past its parent") as caught:
        parse(data, offset=1000)
    assert caught.value.path == "moov/trak[2]/tkhd"
    assert caught.value.offset == 1000 + 16 + 8 + 8 + 8 + 8


def test_a_box_past_the_end_is_left_for_later():
    whole = box(b"ftyp", bytes(8))
    read = parse(whole + struct.pack(">I4s", 100, b"moof"))
    assert [box.type for box in read] == ["ftyp"]
    assert read[-1].stop == len(whole)
    with pytest.raises(TruncatedInput) as caught:
        parse(whole + struct.pack(">I4s", 100, b"moof"), strict=True)
    assert (caught.value.path, caught.value.offset) == ("moof", 16)


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n" + bytes(40), b"a text that is long enough"])
def test_other_formats_are_no_iso_base_media(data):
    with pytest.raises(NotISOBMFF) as caught:
        parse(data, offset=700)
    assert caught.value.offset == 700


def test_nothing_is_nothing():
    assert parse(b"") == ()
    with pytest.raises(FragdexError):
        parse_box(b"")


def test_stray_bytes_are_kept_and_strict_reading_refuses_them():
    data = box(b"mfhd", words(0, 7), b"\1\2")
    (mfhd,) = parse(data)
    assert mfhd.trailing == b"\1\2"
    assert build(mfhd) == data
    with pytest.raises(MalformedBox, match="bytes after the end"):
        parse(data, strict=True)


def test_an_unknown_version_is_kept():
    data = full(b"senc", 9, 0, words(HUGE))
    (senc,) = parse(data)
    assert senc.opaque
    assert senc.misfit == "version 9 is not known"
    assert build(senc) == data


def test_a_damaged_box_inside_user_data_is_no_reason_to_refuse_the_movie():
    broken = box(b"udta", struct.pack(">I4s", 999, b"cprt"))
    (moov,) = parse(box(b"moov", broken))
    assert moov.find("udta").opaque
    assert build(moov) == box(b"moov", broken)


def test_what_cannot_be_written_says_which_field():
    with pytest.raises(BuildError, match="sequence_number") as caught:
        build(make_box("mfhd", sequence_number=1 << 32))
    assert caught.value.path == "mfhd"
    nameless = make_box("abcd").replace(data=None)
    with pytest.raises(BuildError, match="moov/trak/abcd"):
        build(make_box("moov", children=[make_box("trak", children=[nameless])]))


@pytest.mark.parametrize(
    "claim",
    [
        full(b"csgp", 0, 0x10, b"roll", words(1), b"\x11\x10"),  # 8 bits beside 4
        full(b"csgp", 0, 0x04, b"roll", words(1), b"\x11\x10"),  # 4 bits beside 8
        full(b"esds", 0, 0, b"\x03\x80\x80\x80\x80\x01"),  # a length of five bytes
        full(b"esds", 0, 0, b"\x03\x08\x00\x01\x00\x04\x02\x40\x15\x00"),  # bytes left over
        full(b"chpl", 0, 0, b"\x01" + bytes(8) + b"\x05ab"),  # a text past the end
    ],
)
def test_descriptions_that_contradict_themselves_stay_bytes(claim):
    (kept,) = parse(claim)
    assert kept.opaque
    assert build(kept) == claim


def test_padding_of_half_a_byte_must_be_zero():
    with pytest.raises(MalformedBox, match="padding"):
        parse(full(b"stz2", 0, 0, words(4, 1), b"\x1f"))


def test_sizes_of_other_widths_are_refused():
    with pytest.raises(MalformedBox, match="entries of 7 bits"):
        parse(full(b"stz2", 0, 0, words(7, 1), b"\x1f"))
    (empty,) = parse(full(b"stz2", 0, 0, words(7, 0)))
    assert len(empty["entry_size"]) == 0


def test_descriptors_too_long_for_their_length_are_refused():
    esds = make_box("esds")
    stream = {**esds["ES"], "descriptors": ({"tag": 6, "size_length": 1, "data": bytes(200)},)}
    with pytest.raises(BuildError, match="too long for its length"):
        build(esds.replace(ES=stream))


def test_lists_within_boxes_are_of_the_declared_length():
    dec3 = make_box("dec3")
    with pytest.raises(BuildError, match="wrong length"):
        build(dec3.replace(substreams=()))
