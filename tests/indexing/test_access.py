"""Whether a decoder can start at a sample: by real files, by vectors, by any bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.indexing.access import (
    Access,
    CannotTell,
    SampleBytes,
    access_of,
    can_tell,
    every_sample,
)

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
NONE, OPEN, CLOSED = Access.NONE, Access.OPEN, Access.CLOSED

# Files whose muxer marked the samples that a decoder can start at, and no others.
RIGHT = (
    "faststart.mp4", "open-gop.mp4", "avc3.mp4", "all-intra.mp4", "hevc-aac.mp4", "hvc1.mp4",
    "frag-hvc1.mp4", "av1-opus.mp4", "sequence.avif", "frag-vp9-opus.mp4", "mpeg4-mp3.mp4",
    "mpeg2-ac3.mp4", "mpeg1-eac3.mp4", "psp.mp4",
)  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_it_agrees_with_marks_that_are_right(name: str) -> None:
    data = FIXTURES.joinpath(name).read_bytes()
    index = fragdex.index(data, exact=True)
    (track,) = (track for track in index.tracks if track.kind == "video")
    info, samples = track.info, track.samples
    assert can_tell(info.format, info.codec)
    assert len(samples) > 2
    ends = samples.offset + samples.size
    for start, stop, sync in zip(samples.offset, ends, samples.sync, strict=True):
        sample = SampleBytes.of(data[int(start) : int(stop)])
        access = access_of(sample, info.format, info.codec, info.nal_length_size)
        assert bool(access) == bool(sync)


def unit(data: str, length: int = 4) -> bytes:
    body = bytes.fromhex(data)
    return len(body).to_bytes(length, "big") + body


SEI = "06 05 02 aabb"  # a message of user data, before which and behind which others may come
RECOVERS, RECOVERS_LATER = "06 06 01 c4", "06 06 02 3440"
SEQUENCE = "0a0b 00000004 3cff bc02 1a40 10".replace(" ", "")

VECTORS = [
    ("avc1", unit("0910") + unit("6742") + unit("68ce") + unit("6588"), CLOSED),
    ("avc1", unit("0930") + unit("419a"), NONE),
    ("avc1", unit("0910") + unit(RECOVERS) + unit("419a"), OPEN),
    ("avc1", unit("0910") + unit(SEI) + unit(SEI[:-5] + RECOVERS[3:]) + unit("219a"), NONE),
    ("avc1", unit("0910") + unit("06 05 02 aabb 06 01 c4") + unit("219a"), OPEN),
    ("avc1", unit("0910") + unit(RECOVERS_LATER) + unit("419a"), NONE),
    # a message of 256 bytes; a size that runs over the unit; one that never ends
    ("avc1", unit("06 05 ff 01" + "00" * 256 + "06 01 80") + unit("419a"), OPEN),
    ("avc1", unit("06 05 ff 10 06 01 80") + unit("419a"), NONE),
    ("avc1", unit("06 ff ff ff") + unit("419a"), NONE),
    # two pictures in one sample, as fields are: the first decides
    ("avc1", unit("6588") + unit("419a"), CLOSED),
    ("avc1", unit("0910"), NONE),
    ("avc1", unit("6588")[:3], NONE),
    ("avc1", bytes.fromhex("00ffffff 6588"), NONE),
    ("avc1", b"", NONE),
    ("dva1", unit("6588"), CLOSED),
    *(("hvc1", unit(f"46 01 50{'':1}") + unit(f"{kind << 1:02x}01af"), access) for kind, access in (
        (0, NONE), (1, NONE), (9, NONE), (16, OPEN), (17, CLOSED), (18, CLOSED), (19, CLOSED),
        (20, CLOSED), (21, OPEN), (22, OPEN), (24, NONE),
    )),
    # the picture of another layer comes first, and says nothing of the base layer
    ("hev1", unit("2609 af") + unit("0201af"), NONE),
    ("dvh1", unit("2601af"), CLOSED),
    *(("vvc1", unit("00a1 28") + unit(f"00{kind << 3 | 1:02x}c0"), access) for kind, access in (
        (0, NONE), (7, CLOSED), (8, CLOSED), (9, OPEN), (10, NONE), (11, OPEN),
    )),
    # temporal delimiter, sequence header, frame
    ("av01", bytes.fromhex("1200" + SEQUENCE + "320510001234aa"), CLOSED),
    ("av01", bytes.fromhex("1200" + SEQUENCE + "320530001234aa"), NONE),  # inter
    ("av01", bytes.fromhex("1200" + SEQUENCE + "320590001234aa"), NONE),  # an existing one
    ("av01", bytes.fromhex("1200" + SEQUENCE + "320500001234aa"), NONE),  # not shown
    ("av01", bytes.fromhex("1200" + "320510001234aa"), NONE),
    ("av01", bytes.fromhex("0a020800" + "3203ffffff"), CLOSED),  # a reduced still picture
    ("av01", bytes.fromhex(SEQUENCE + "3010"), CLOSED),  # without a size: to the end
    ("av01", bytes.fromhex("0affffffffffffffffff"), NONE),
    ("vp08", bytes.fromhex("f0d700"), CLOSED),
    ("vp08", bytes.fromhex("f1d700"), NONE),
    ("vp09", bytes.fromhex("8249"), CLOSED),
    ("vp09", bytes.fromhex("8600"), NONE),
    ("vp09", bytes.fromhex("8a00"), NONE),  # shows an existing frame
    ("vp09", bytes.fromhex("b0498342"), CLOSED),  # profile 3
    ("vp09", bytes.fromhex("b2498342"), NONE),
    ("vp09", bytes.fromhex("0249"), NONE),
    ("mp4v.20.1", bytes.fromhex("000001b3 00100f 000001b6 10"), NONE),
    ("mp4v.20.1", bytes.fromhex("000001b3 00100f 000001b6 1060"), OPEN),
    ("mp4v.20.1", bytes.fromhex("000001b6 5060"), NONE),
    ("mp4v.61", bytes.fromhex("000001b3 aabb 00000100 000f"), OPEN),
    ("mp4v.61", bytes.fromhex("00000100 0017"), NONE),
    ("m2v1", bytes.fromhex("00000100 000f"), OPEN),
    ("s263", bytes.fromhex("00008002 0800000000"), CLOSED),
    ("s263", bytes.fromhex("00008002 0a00000000"), NONE),
    ("s263", bytes.fromhex("ffff8002 0800000000"), NONE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "expected"), VECTORS)
def test_by_vectors(name: str, data: bytes, expected: Access) -> None:
    format, codec = name.partition(".")[0], name
    assert access_of(SampleBytes.of(data), format, codec) is expected


def test_lengths_of_other_sizes_and_start_codes() -> None:
    for size in (1, 2, 3, 4):
        data = unit("0910", size) + unit("6588", size)
        assert access_of(SampleBytes.of(data), "avc1", None, size) is CLOSED
    annex_b = bytes.fromhex("00000001 0910 000001 06 0502aabb 00000001 6588")
    assert access_of(SampleBytes.of(annex_b), "avc1", None, 0) is CLOSED


def test_a_start_code_over_the_edge_of_what_is_read() -> None:
    for before in range(4090, 4100):
        data = bytes.fromhex("000001b2") + b"\xff" * before + bytes.fromhex("000001b6 1060")
        assert access_of(SampleBytes.of(data), "mp4v", "mp4v.20.1") is OPEN


def test_what_lies_far_behind_is_read_alone() -> None:
    data = unit("0605" + "ff" * 4000 + "00" * 2_000_000) + unit("6588") + bytes(500_000)
    read = []

    def reading(start: int, stop: int) -> bytes:
        read.append(stop - start)
        return data[start:stop]

    assert access_of(SampleBytes(len(data), reading), "avc1", None) is CLOSED
    assert len(read) == 2
    assert sum(read) < 10_000


def test_a_sample_of_units_without_end_is_given_up() -> None:
    data = (unit("06" + "00" * 5000)) * 400
    reads = []

    def reading(start: int, stop: int) -> bytes:
        reads.append(stop - start)
        return data[start:stop]

    with pytest.raises(CannotTell, match="too many other units"):
        access_of(SampleBytes(len(data), reading), "avc1", None)
    assert len(reads) <= 64


def test_clear_bytes_of_an_encrypted_sample_suffice() -> None:
    data = unit("0910") + unit("6588" + "ee" * 40)

    def reading(start: int, stop: int) -> bytes:
        return data[start:stop]

    clear = SampleBytes(len(data), reading, [(0, 12)])
    assert access_of(clear, "avc1", None) is CLOSED
    for ranges in ([], [(0, 10)], [(4, 12)]):
        with pytest.raises(CannotTell, match="encrypted"):
            access_of(SampleBytes(len(data), reading, ranges), "avc1", None)


def test_strange_codecs_are_not_guessed() -> None:
    with pytest.raises(CannotTell, match="SVQ3"):
        access_of(SampleBytes.of(b"abc"), "SVQ3", None)
    assert not every_sample("video", "SVQ3", None)
    assert not every_sample("audio", "mhm1", "mhm1.0x0D")
    assert every_sample("video", "apch", "apch")
    assert every_sample("text", "wvtt", "wvtt")


SLICES = {1, 2, 3, 4, 5}
units = st.lists(
    st.tuples(st.integers(0, 255), st.binary(max_size=20).map(lambda b: b.replace(b"\0", b"\1"))),
    max_size=6,
)


def begins_with_idr(units: list[tuple[int, bytes]]) -> bool:
    return next((head & 31 for head, _ in units if head & 31 in SLICES), None) == 5


@given(units, st.integers(1, 4))
def test_the_first_slice_decides(nal_units: list[tuple[int, bytes]], size: int) -> None:
    data = b"".join(
        (len(body) + 1).to_bytes(size, "big") + bytes([head]) + body for head, body in nal_units
    )
    closed = access_of(SampleBytes.of(data), "avc1", None, size) is CLOSED
    assert closed == begins_with_idr(nal_units)


@given(units, st.sampled_from([b"\0\0\1", b"\0\0\0\1"]))
def test_the_first_slice_behind_start_codes(
    nal_units: list[tuple[int, bytes]], code: bytes
) -> None:
    # a unit of no body at the very end is one that was cut
    data = b"".join(code + bytes([head or 1]) + body + b"\1" for head, body in nal_units)
    closed = access_of(SampleBytes.of(data), "avc1", None, 0) is CLOSED
    assert closed == begins_with_idr([(head or 1, body) for head, body in nal_units])


FORMATS = ("avc1", "hvc1", "vvc1", "av01", "vp08", "vp09", "mp4v.20", "mp4v.61", "m2v1", "s263")


@given(
    st.sampled_from(FORMATS),
    st.binary(max_size=400),
    st.integers(0, 4),
    st.one_of(st.none(), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 40)), max_size=4)),
    st.integers(0, 400),
)
def test_any_bytes_give_an_answer(
    name: str, data: bytes, length: int, clear: list[tuple[int, int]] | None, held: int
) -> None:
    """Also where the file ends before the sample does."""
    ranges = None if clear is None else sorted((start, start + size) for start, size in clear)
    sample = SampleBytes(len(data), lambda start, stop: data[:held][start:stop], ranges)
    try:
        assert access_of(sample, name.partition(".")[0], name, length) in Access
    except CannotTell:
        assert ranges is not None or len(data) > 63
