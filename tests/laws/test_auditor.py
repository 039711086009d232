"""An auditor of tables: a field that others contradict changes nothing, or is noted."""

import struct
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import FragdexError
from fragdex.testing import movie
from laws import brute

FIXTURES = Path(__file__).parents[2] / "fixtures"
LARGEST = 1 << 18
MADE = {
    "progressive": movie(3, tracks=2, fragmented=False),
    "reordered": movie(3, fragmented=False, reordered=True),
    "fragments": movie(3, tracks=2),
    "fragments of reordered pictures": movie(3, reordered=True),
}
FIELDS = ("stts", "ctts", "stss", "stsz", "stsc", "stco", "co64", "stsd", "dref", "tkhd", "tfhd")
BIG = (2**31, 2**32 - 1)


def places(data):
    """(box, field, byte, its struct code, values that other fields contradict)."""
    boxes = fragdex.boxes.parse(data)
    fragmented = any(box.type == "moof" for box in boxes)
    todo = list(boxes)
    while todo:
        box = todo.pop()
        todo += box.children
        at = box.offset + box.header_size
        kind = box.type
        if kind in FIELDS and not box.opaque:
            yield from _of(kind, box, data, at, fragmented)
        if kind == "trun" and not box.opaque:
            if box["flags"] & 0xF00:
                yield kind, "sample_count", at + 4, ">I", (0, *BIG)
            if "data_offset" in box:
                yield kind, "data_offset", at + 8, ">i", (0, -(2**31), 2**31 - 1)
            if box["flags"] & 0x100 and box["sample_count"]:
                start = at + 8 + 4 * (box["flags"] & 1) + 4 * bool(box["flags"] & 4)
                yield kind, "sample_duration", start, ">I", BIG


def _of(kind, box, data, at, fragmented):
    count = struct.unpack_from(">I", data, at + (8 if kind == "stsz" else 4))[0]
    if kind in ("stts", "ctts", "stss", "stsc", "stco", "co64"):
        # Where the rows are all alike, fewer of them may say the same.
        yield kind, "entry_count", at + 4, ">I", (0, *BIG)
    if not count and kind != "tfhd":
        return
    last = at + 8
    if kind in ("stts", "ctts"):
        last += 8 * (count - 1)
        yield kind, "sample_count", last, ">I", (0, *BIG)
        if kind == "stts":
            yield kind, "sample_delta", at + 12, ">I", BIG
    elif kind == "stss":
        yield kind, "sample_number", at + 8, ">I", (0, *BIG)
        yield kind, "sample_number", last + 4 * (count - 1), ">I", (0, *BIG)
    elif kind == "stsz":
        constant = struct.unpack_from(">I", data, at + 4)[0]
        yield kind, "sample_count", at + 8, ">I", (0, 2**32 - 1)
        if not constant:
            yield kind, "sample_size", at + 4, ">I", (1, *BIG)
            yield kind, "entry_size", at + 12, ">I", BIG
    elif kind == "stsc":
        yield kind, "first_chunk", at + 8, ">I", (0, 2, *BIG)
        yield kind, "samples_per_chunk", at + 12, ">I", (0, *BIG)
        yield kind, "sample_description_index", at + 16, ">I", (0, *BIG)
    elif kind == "stco":
        yield kind, "chunk_offset", at + 8, ">I", (0, 1, *BIG)
    elif kind == "co64":
        yield kind, "chunk_offset", at + 8, ">Q", (0, 1, 2**63, 2**64 - 1)
    elif kind == "stsd":
        yield kind, "entry_count", at + 4, ">I", (0, *BIG)
        for entry in box.children[:1]:
            body = entry.offset + entry.header_size
            yield kind, "data_reference_index", body + 6, ">H", (0, 0xFFFF)
    elif kind == "dref":
        yield kind, "entry_count", at + 4, ">I", (0, *BIG)
        for entry in box.children[:1]:
            yield kind, "flags", entry.offset + entry.header_size + 3, "B", (0,)
    elif kind == "tkhd":
        # Elsewhere the number of a track is free.
        ids = (0, 2**32 - 1) if fragmented else (0,)
        yield kind, "track_ID", at + (20 if box["version"] else 12), ">I", ids
    else:
        yield kind, "track_ID", at + 4, ">I", (0, *BIG)
        at += 8
        for flag, size, name, values in (
            (1, 8, "base_data_offset", (0, 1, 2**63, 2**64 - 1)),
            (2, 4, "sample_description_index", (0, *BIG)),
            (8, 4, "default_sample_duration", BIG),
            (16, 4, "default_sample_size", BIG),
        ):
            if box["flags"] & flag:
                yield kind, name, at, ">Q" if size == 8 else ">I", values
                at += size


@cache
def told(data):
    """What an index says of samples, and its findings; or the error."""
    try:
        index = fragdex.index(data, exact=True)
        tracks = [
            (t.id, t.codec, t.timescale, t.shift, brute.samples(t.samples)) for t in index.tracks
        ]
    except FragdexError as error:
        return type(error), None
    return tracks, [(f.code, f.track) for f in index.findings]


def audit(data, place):
    kind, name, at, code, values = place
    before, known = told(data)
    for value in values:
        changed = bytearray(data)
        struct.pack_into(code, changed, at, value)
        after, noted = told(bytes(changed))
        if noted is not None:
            assert after == before or sorted(noted, key=str) != sorted(known, key=str), (
                f"{kind}.{name} = {value} at byte {at} changes the answer, and nothing is noted"
            )


@pytest.mark.parametrize("name", MADE)
def test_of_made_files(name):
    for place in places(MADE[name]):
        audit(MADE[name], place)


def _whole():
    for path in sorted(FIXTURES.rglob("*.m*")):
        data = path.read_bytes()
        if path.suffix != ".md" and len(data) < LARGEST and told(data)[1] == []:
            yield path.name, data


@cache
def fixtures():
    return {name: (data, list(places(data))) for name, data in _whole()}


@given(st.data())
def test_of_fixtures(draw):
    data, known = fixtures()[draw.draw(st.sampled_from(sorted(fixtures())))]
    if known:
        audit(data, draw.draw(st.sampled_from(known)))
