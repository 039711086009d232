"""Sample groups of a source in copies: run by run, and by patterns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import Box, build, make_box, parse, parse_box
from fragdex.muxing.groups import groupings_of
from fragdex.muxing.mixed_files import muxed

FIXTURES = Path(__file__).parents[2] / "fixtures"
SOURCE = (FIXTURES / "faststart.mp4").read_bytes()
PATTERNS = [([1, 2, 0], 7), ([2], 3), ([0, 1], 5), ([1], 90)]
SAMPLES = 40


def compact(patterns: list[tuple[list[int], int]], wide: bool) -> Box:
    """A csgp of type `abcd`: indices and how many samples repeat them."""
    rows = [(len(indices), count) for indices, count in patterns]
    indices = [index for one, _ in patterns for index in one]
    return make_box(
        "csgp",
        flags=0x1A if wide else 0x15,
        grouping_type="abcd",
        pattern_count=len(rows),
        patterns=rows,
        sample_group_description_index=indices,
    )


def described() -> Box:
    entries = [{"data": b"a"}, {"data": b"b"}]
    return make_box("sgpd", version=1, grouping_type="abcd", default_length=1, entries=entries)


def expected(patterns: list[tuple[list[int], int]], samples: int) -> list[int]:
    spelled = [one[n % len(one)] for one, count in patterns for n in range(count)]
    return (spelled + [0] * samples)[:samples]


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=4), st.integers(1, 20)),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
def test_patterns_are_what_they_spell(patterns: list[tuple[list[int], int]], wide: bool) -> None:
    track = fragdex.index(SOURCE).track(1)
    stbl = make_box("stbl", children=[described(), compact(patterns, wide)])
    minf = make_box("minf", children=[parse_box(build(stbl))])
    trak = make_box("trak", children=[make_box("mdia", children=[minf])])
    (one,) = groupings_of(track, trak, np.arange(SAMPLES))
    assert one.index.tolist() == expected(patterns, SAMPLES)


def with_groups() -> bytes:
    """The film with compact groups of its pictures, its moov moved behind its media."""

    def changed(box: Box) -> Box:
        if box.type == "stbl":
            more = [described(), compact(PATTERNS, True)]
            return box.replace(children=[*box.children, *more])
        return box.replace(children=list(map(changed, box.children))) if box.children else box

    parts = []
    for box in parse(SOURCE):
        raw = SOURCE[box.offset : box.offset + box.size]
        if box.type == "moov":
            traks = [child for child in box.children if child.type == "trak"]
            first = traks[0]
            moov = box.replace(
                children=[changed(one) if one is first else one for one in box.children]
            )
            parts.append(build(make_box("free", data=bytes(box.size - 8))))
            late = build(moov)
        else:
            parts.append(raw)
    return b"".join([*parts, late])


@pytest.mark.parametrize("kind", ["fragmented", "faststart", "clip"])
def test_copies_have_the_groups_of_compact_boxes(kind: str) -> None:
    data = with_groups()
    made = fragdex.clip(data) if kind == "clip" else fragdex.view(data, kind)
    assert not [one for one in made.findings if "sgp" in one or "sbgp" in one]
    copy = parse(made.read())
    moofs = [box for box in copy if box.type == "moof"]
    found: list[int] = []
    if kind == "fragmented":
        for moof in moofs:
            for traf in moof.find_all("traf"):
                if traf.find("tfhd")["track_ID"] == 1:
                    count = sum(trun["sample_count"] for trun in traf.find_all("trun"))
                    sbgp = traf.find("sbgp")
                    found += spelled(sbgp) if sbgp is not None else [0] * count
    else:
        moov = next(box for box in copy if box.type == "moov")
        stbl = moov.find_all("trak")[0].find("mdia/minf/stbl")
        same = [one for one in stbl.find_all("*") if one.get("grouping_type") == "abcd"]
        sbgp = next(one for one in same if one.type != "sgpd")
        if sbgp.type == "csgp":
            assert build(sbgp) == build(compact(PATTERNS, True))
            return
        found = spelled(sbgp)
    samples = fragdex.index(data).track(1).sample_count
    assert (found + [0] * samples)[:samples] == expected(PATTERNS, samples)


def spelled(sbgp: Box) -> list[int]:
    rows = sbgp["entries"]
    return np.repeat(rows["group_description_index"], rows["sample_count"]).tolist()


def abcd(parent: Box, code: str) -> list[Box]:
    return [one for one in parent.find_all(code) if one.get("grouping_type") == "abcd"]


def texts(parent: Box, known: list[bytes], count: int) -> list[bytes]:
    """What describes the group of each sample of a sample table or of a traf."""
    own = [entry["data"] for box in abcd(parent, "sgpd") for entry in box["entries"]]
    by_number = {0: b""} | dict(enumerate(known or own, 1)) | dict(enumerate(own, 0x10001))
    found = [by_number[at] for box in abcd(parent, "sbgp") for at in spelled(box)]
    return (found + [b""] * count)[:count]


def values(data: bytes) -> list[bytes]:
    """The same of each sample of the first track of pictures."""
    boxes, track = parse(data), fragdex.index(data).video
    moov = next(box for box in boxes if box.type == "moov")
    (trak,) = (one for one in moov.find_all("trak") if one.find("tkhd")["track_ID"] == track.id)
    stbl = trak.find("mdia/minf/stbl")
    known = [entry["data"] for box in abcd(stbl, "sgpd") for entry in box["entries"]]
    found = texts(stbl, known, int(stbl.find("stsz")["sample_count"]))
    for moof in (box for box in boxes if box.type == "moof"):
        for traf in moof.find_all("traf"):
            if traf.find("tfhd")["track_ID"] == track.id:
                count = sum(trun["sample_count"] for trun in traf.find_all("trun"))
                found += texts(traf, known, count)
    return found


def of_fragments(local: bool) -> bytes:
    """A fragmented film whose trafs name groups, which the moov or they themselves describe."""
    data = fragdex.view(with_groups(), segment_duration=1).read()
    if not local:
        return data
    entries = [{"data": b"b"}, {"data": b"a"}]
    sgpd = make_box("sgpd", version=1, grouping_type="abcd", default_length=1, entries=entries)
    longer = len(build(sgpd))

    def own(box: Box, by: int) -> Box:
        if box.type == "trun":
            return box.replace(data_offset=box["data_offset"] + by)
        if box.type == "sbgp" and box["grouping_type"] == "abcd":
            rows = box["entries"].copy()
            index = rows["group_description_index"]
            index[index > 0] = 0x10003 - index[index > 0]
            return box.replace(entries=rows)
        children = [own(child, by) for child in box.children]
        if box.type == "traf" and abcd(box, "sbgp"):
            children.append(sgpd)
        return box.replace(children=children) if box.children else box

    parts = []
    for box in parse(data):
        if box.type == "moof":
            trafs = [one for one in box.find_all("traf") if abcd(one, "sbgp")]
            parts.append(build(own(box, longer * len(trafs))))
        elif box.type != "sidx":
            parts.append(data[box.offset : box.stop])
    return b"".join(parts)


@pytest.mark.parametrize("local", [False, True], ids=["in the moov", "in fragments"])
def test_groups_of_fragments_are_in_all_that_is_made_of_them(local: bool) -> None:
    data = of_fragments(local)
    index = fragdex.index(data, exact=True)
    indices = expected(PATTERNS, index.track(1).sample_count)
    wanted = [(b"", b"a", b"b")[at] for at in indices]
    assert values(data) == wanted
    made = {
        "fragmented": fragdex.view(data, segment_duration=2),
        "faststart": fragdex.view(data, "faststart"),
        "clip": fragdex.clip(data),
        "in parallel": muxed([index], source=[data]),
        "join": fragdex.join([data, data]),
    }
    for name, view in made.items():
        copy = view.read(source=data) if name == "in parallel" else view.read()
        assert values(copy) == wanted * (1 + (name == "join")), name
        assert not [one for one in view.findings if "abcd" in one], name
    package = fragdex.package(data)
    assert not [one for one in package.findings if "abcd" in one]
    (one,) = [one for one in package.title.renditions if one.kind == "video"]
    media = [package[f"v1/{time}.m4s"].read() for time in one.made.time.tolist()]
    assert values(package["v1/init.mp4"].read() + b"".join(media)) == wanted


@pytest.mark.parametrize("version", [0, 2])
def test_groups_that_cannot_be_told_apart_are_named(version: int) -> None:
    """Descriptions without lengths, and one that holds for all samples that are in no group."""
    body: dict[str, object] = {"data": b"ab"}
    if version:
        entries = [{"data": b"a"}, {"data": b"b"}]
        body = {"default_length": 1, "entries": entries, "default_group_description_index": 1}
    sgpd = make_box("sgpd", version=version, grouping_type="abcd", **body)
    data = of_fragments(local=False)
    parts = []
    for box in parse(data):
        if box.type == "moov":
            parts.append(build(replaced(box, sgpd)))
        elif box.type != "sidx":
            parts.append(data[box.offset : box.stop])
    for kind in ("fragmented", "faststart"):
        made = fragdex.view(b"".join(parts), kind)
        assert any("sbgp abcd" in one for one in made.findings), made.findings


def replaced(box: Box, sgpd: Box) -> Box:
    if box.type == "sgpd" and box["grouping_type"] == "abcd":
        return sgpd
    return (
        box.replace(children=[replaced(one, sgpd) for one in box.children]) if box.children else box
    )
