"""Access-point groups, beside sync samples: in moovs and in fragments, named there or here."""

from __future__ import annotations

from pathlib import Path

import pytest

import fragdex
from fragdex.boxes import Box, build, make_box, parse
from fragdex.fragments.track_info import SampleGroup
from fragdex.testing import edit
from fragdex.testing.files import Brand, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Run, Sample, Track, Traf

FIXTURES = Path(__file__).parents[2] / "fixtures"


def described(kind: str, *entries: bytes) -> Box:
    """An sgpd with entries of one length (8.9.3)."""
    size = len(entries[0])
    return make_box(
        "sgpd",
        version=1,
        grouping_type=kind,
        default_length=size,
        entries=[{"data": entry} for entry in entries],
    )


def grouped(kind: str, *runs: tuple[int, int]) -> Box:
    """An sbgp: (samples, description)."""
    return make_box("sbgp", grouping_type=kind, entries=list(runs))


def with_boxes(data: bytes, number: int, *more: Box) -> bytes:
    """A file, whose moov is the last box, with boxes behind those of one trak's stbl."""
    path = f"moov/trak[{number + 1}]/mdia/minf/stbl"
    return edit(data, path, lambda stbl: stbl.replace(children=[*stbl.children, *more]))


def fragmented(*extras: tuple[Box, ...], stbl: tuple[Box, ...] = ()) -> bytes:
    """Fragments of five pictures, each with these boxes in its traf."""
    pictures = tuple(Sample(10, 1, NON_SYNC if n else SYNC) for n in range(5))
    parts = [
        Fragment((Traf(1, (Run(pictures),), tfdt=5 * n, extra=extra),))
        for n, extra in enumerate(extras)
    ]
    data = make_file(Brand(), Moov((Track(1, "video", 25, trex=(1, 10, 0)),)), *parts).data
    if not stbl:
        return data
    head = next(box for box in parse(data) if box.type == "moov")
    rest = data[head.stop :]
    return with_boxes(data[: head.stop], 0, *stbl) + rest


ROLL = described("roll", (-1).to_bytes(2, "big", signed=True), b"\0\4")
RAP = described("rap ", b"\x83", b"\x05")


def test_the_pre_roll_of_sound_that_a_muxer_wrote():
    index = fragdex.index(FIXTURES / "encrypted.mp4")
    assert index.track(1).groups == ()
    assert index.track(2).groups == (SampleGroup("roll", 0, 33, -1),)


def test_open_pictures_of_a_progressive_file():
    data = with_boxes(
        (FIXTURES / "moov-last.mp4").read_bytes(),
        0,
        RAP,
        grouped("rap ", (12, 0), (1, 1), (11, 0), (1, 2), (4, 9)),
    )
    track = fragdex.index(data).track(1)
    # 3 leading samples are known of the first; the second does not say (0)
    assert track.groups == (SampleGroup("rap ", 12, 1, 3), SampleGroup("rap ", 24, 1, 0))
    assert track.sync_samples == fragdex.index(FIXTURES / "moov-last.mp4").track(1).sync_samples


def test_descriptions_of_version_0_have_no_lengths():
    roll = make_box("sgpd", grouping_type="roll", entry_count=2, data=b"\xff\xfe\0\1")
    rap = make_box("sgpd", grouping_type="rap ", entry_count=1, data=b"\x81")
    data = with_boxes(
        (FIXTURES / "moov-last.mp4").read_bytes(),
        0,
        roll,
        rap,
        grouped("roll", (2, 1), (3, 2)),
        grouped("rap ", (7, 1)),
    )
    assert fragdex.index(data).track(1).groups == (
        SampleGroup("roll", 0, 2, -2),
        SampleGroup("roll", 2, 3, 1),
        SampleGroup("rap ", 0, 7, 1),
    )


@pytest.mark.parametrize("stbl", [(), (ROLL,)], ids=["own", "of the moov"])
def test_fragments_name_their_own_descriptions_or_those_of_the_moov(stbl):
    if stbl:
        extras = [(grouped("roll", (5, 1)),)] * 3
    else:
        extras = [(ROLL, grouped("roll", (5, 0x10001)))] * 3
    track = fragdex.index(fragmented(*extras, stbl=stbl)).track(1)
    # runs that continue each other are one
    assert track.groups == (SampleGroup("roll", 0, 15, -1),)


def test_groups_count_the_samples_of_the_track():
    data = fragmented(
        (), (RAP, grouped("rap ", (1, 0x10001))), (), (RAP, grouped("rap ", (2, 0), (1, 0x10002)))
    )
    track = fragdex.index(data).track(1)
    assert track.groups == (SampleGroup("rap ", 5, 1, 3), SampleGroup("rap ", 17, 1, 0))
    assert track.sync_samples.count.sum() == 4


def test_what_is_of_no_use_is_passed_over():
    """Keys, descriptions that are not there, and a damaged sgpd."""
    keys = (described("seig", bytes(20)), grouped("seig", (5, 0x10001)))
    nowhere = (grouped("roll", (5, 0x10007), (2, 3)),)
    cut = build(ROLL)
    damaged = parse(cut[:8] + bytes([9]) + cut[9:])[0]
    data = fragmented(keys, nowhere, (damaged, grouped("roll", (5, 0x10001))))
    assert fragdex.index(data).track(1).groups == ()


def test_groups_survive_saving_and_growing(tmp_path):
    extras = [(ROLL, grouped("roll", (5, 0x10001)))] * 4
    data = fragmented(*extras)
    whole = fragdex.index(data)
    whole.save(tmp_path / "a.fidx")
    assert fragdex.open_index(tmp_path / "a.fidx").track(1).groups == whole.track(1).groups
    at = int(whole.track(1).fragments.offset[2])
    grown = fragdex.index(data[:at]).extend(data)
    assert grown.track(1).groups == whole.track(1).groups
    indexer = fragdex.Indexer()
    for byte in range(0, len(data), 7):
        indexer.feed(data[byte : byte + 7])
    assert indexer.finish().track(1).groups == whole.track(1).groups


@pytest.mark.parametrize("version", [1, 2, 3])
def test_descriptions_behind_their_own_lengths(version):
    """A default_length of 0: each entry says its own; one that is too short describes nothing."""
    roll = make_box(
        "sgpd",
        version=version,
        grouping_type="roll",
        default_length=0,
        entries=[
            {"description_length": len(entry), "data": entry}
            for entry in (b"\xff\xfd", b"", b"\0\2more")
        ],
    )
    data = with_boxes(
        (FIXTURES / "moov-last.mp4").read_bytes(),
        0,
        roll,
        grouped("roll", (2, 1), (1, 2), (3, 3), (1, 4), (1, 0)),
    )
    assert fragdex.index(data).track(1).groups == (
        SampleGroup("roll", 0, 2, -3),
        SampleGroup("roll", 3, 3, 2),
    )


@pytest.mark.parametrize("claimed", [3, 2**32 - 1])
@pytest.mark.parametrize("length", [0, 1, 2])
def test_descriptions_that_are_not_there_describe_nothing(claimed, length):
    roll = build(make_box("sgpd", version=1, grouping_type="roll", default_length=length))
    broken = parse(roll[:-4] + claimed.to_bytes(4, "big"))[0]
    data = with_boxes((FIXTURES / "moov-last.mp4").read_bytes(), 0, broken, grouped("roll", (2, 1)))
    assert fragdex.index(data).track(1).groups == ()


def compact(kind: str, *patterns: tuple[list[int], int], flags: int = 0) -> Box:
    """A csgp: (descriptions, samples over which they repeat); numbers of 32 bits."""
    return make_box(
        "csgp",
        flags=flags | 0x3F,
        grouping_type=kind,
        pattern_count=len(patterns),
        patterns=[(len(one), count) for one, count in patterns],
        sample_group_description_index=[index for one, _ in patterns for index in one],
    )


def spelled(box: Box) -> Box:
    """The same as an sbgp, sample by sample."""
    start, runs = 0, []
    for length, count in box["patterns"].tolist():
        own = box["sample_group_description_index"][start : start + length]
        start += length
        runs += [(1, int(own[n % length])) for n in range(min(count, 50))]
    local = box["flags"] & 0x80
    runs = [
        (n, i & 0x7FFFFFFF | 0x10000 if local and i >> 31 else i)  # its first bit
        for n, i in runs
    ]
    return make_box("sbgp", grouping_type=box["grouping_type"], entries=runs)


LATE = 1 << 31
"""The first bit of an index of 32 bits."""


@pytest.mark.parametrize(
    ("kind", "patterns"),
    [
        ("roll", [([1], 5)]),
        ("roll", [([1, 2], 4), ([0], 1)]),
        ("roll", [([0, 1, 1], 2), ([2, 2], 3)]),
        ("rap ", [([0, 0, 1], 5)]),
        ("rap ", [([2], 1), ([0], 3), ([7], 1)]),
    ],
)
@pytest.mark.parametrize("place", ["moov", "of the moov", "own"])
def test_patterns_are_the_groups_that_they_spell(kind, patterns, place):
    known = ROLL if kind == "roll" else RAP
    if place == "own":
        patterns = [([i and i | LATE for i in one], count) for one, count in patterns]
    box = compact(kind, *patterns, flags=0x80 if place == "own" else 0)
    seen = []
    for one in (box, spelled(box)):
        if place == "moov":
            data = with_boxes((FIXTURES / "moov-last.mp4").read_bytes(), 0, known, one)
        elif place == "own":
            data = fragmented((known, one), (), (known, one))
        else:
            data = fragmented((one,), (one,), stbl=(known,))
        seen.append(sorted(rows_of(fragdex.index(data).track(1).groups)))
    assert seen[0] == seen[1] != []


def rows_of(groups):
    return [
        (g.grouping_type, n, g.value)
        for g in groups
        for n in range(g.sample_start, g.sample_start + g.sample_count)
    ]


def test_patterns_cost_no_more_than_the_samples_that_are_there():
    """Hostile: 40 bytes that name runs of 2^32 samples, again and again."""
    box = compact("rap ", ([0, 1], (1 << 32) - 1))
    data = with_boxes((FIXTURES / "moov-last.mp4").read_bytes(), 0, RAP, *[box] * 40)
    track = fragdex.index(data).track(1)
    assert len(track.groups) == 40 * (track.sample_count // 2)
    traf = fragdex.index(fragmented((RAP, compact("rap ", ([0, 1 | LATE], 1 << 31), flags=0x80))))
    assert [g.sample_start for g in traf.track(1).groups] == [1, 3]


@pytest.mark.parametrize("kind", ["fragmented", "faststart"])
def test_copies_of_fragments_have_what_patterns_say(kind):
    box = compact("rap ", ([0, 0, 1 | LATE], 5), flags=0x80)
    data = fragmented((RAP, box), (), (RAP, box))
    view = fragdex.view(data, kind)
    groups = fragdex.index(data).track(1).groups
    assert fragdex.index(view.read()).track(1).groups == groups != ()
    assert not view.findings
