"""The files of fixtures/made are those that their makers give, and are read as they were meant."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fragdex
from fragdex.fragments.table import NULL, FragmentFlags
from laws import brute
from test_fixtures import FIXTURES, script

MADE = FIXTURES / "made"
make_made = script("make_made")
ROWS: dict[str, dict[str, Any]] = {row["file"]: row for row in make_made.read_manifest()}


def index_of(name: str, **options: Any) -> fragdex.Index:
    return fragdex.index(MADE / name, **options)


def test_they_are_made_again_byte_for_byte() -> None:
    assert make_made.check() == []


def test_check_tells_what_differs(tmp_path: Path) -> None:
    for path in MADE.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "co64.mp4").unlink()
    (tmp_path / "stray.mp4").write_bytes(b"")
    (tmp_path / "emsg.mp4").write_bytes(b"\0\0\0\x08free")
    assert make_made.check(tmp_path) == [
        "co64.mp4: missing",
        "emsg.mp4: other bytes",
        "stray.mp4: no recipe makes it",
    ]


def test_each_is_small_and_says_what_it_shows() -> None:
    assert all(row["size"] < 4096 and row["shows"] and row["clause"] for row in ROWS.values())
    assert len({row["sha256"] for row in ROWS.values()}) == len(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_the_index_says_what_the_makers_know(name: str) -> None:
    index = index_of(name, exact=True)
    row = ROWS[name]
    assert len(index.periods) == len(row["periods"])
    for period, true in zip(index.periods, row["periods"], strict=True):
        assert {str(track.id) for track in period.tracks} == true.keys()
        for track in period.tracks:
            known = true[str(track.id)]
            assert track.timescale == known["timescale"]
            assert track.shift == Fraction(known["shift"])
            assert [list(s) for s in brute.samples(track.samples)] == placed(known["samples"])
            moofs = track.fragments.moof_offset
            assert moofs[moofs != NULL].tolist() == known["moofs"]
    assert sorted({finding.code for finding in index.findings}) == row["findings"]
    assert index.complete is row["complete"]


@pytest.mark.parametrize("name", ROWS)
def test_at_each_sample_lie_its_own_bytes(name: str) -> None:
    data = (MADE / name).read_bytes()
    for track in index_of(name, exact=True).tracks:
        samples = track.samples
        for offset, size in zip(samples.offset.tolist(), samples.size.tolist(), strict=True):
            word = data[offset : offset + size]
            assert word.startswith(b"%d" % track.id) or not size
            assert set(word) <= set(b"0123456789:/;")


def placed(samples: list[list[int]]) -> list[list[int]]:
    """Samples of no bytes lie nowhere."""
    return [[offset * bool(size), size, *times] for offset, size, *times in samples]


@pytest.mark.parametrize("name", ROWS)
def test_the_cheapest_index_seeks_to_the_same_samples(name: str) -> None:
    """Whether an index stands in the file or not, and whether it lies."""
    for track, exact in zip(index_of(name).tracks, index_of(name, exact=True).tracks, strict=True):
        assert track.shift == exact.shift
        if not len(exact.sync_samples) or not exact.timescale or not len(track.fragments):
            continue
        for _, cts, _ in brute.sync_samples(exact.sync_samples):
            time = (cts + exact.shift) / exact.timescale
            seen, true = track.seek(time), exact.seek(time)
            assert true.time.ticks == cts + exact.shift
            assert seen.range.start <= true.range.start
            assert seen.time.ticks <= true.time.ticks or seen.clamped


def test_what_is_read_besides_samples() -> None:
    assert index_of("cenc.mp4").track(1).info.encryption.scheme == "cenc"
    assert index_of("cbcs.mp4").track(1).info.encryption.default_kid == bytes(range(16)).hex()
    assert index_of("piff-encrypted.ismv").track(1).info.encryption.scheme == "piff"
    groups = index_of("groups.mp4", exact=True)
    group_rows = [
        (g.grouping_type, g.sample_start, g.sample_count, g.value) for g in groups.track(1).groups
    ]
    assert group_rows == [("rap ", 0, 1, 1), ("roll", 4, 3, -2)]
    group_rows = [
        (g.grouping_type, g.sample_start, g.sample_count, g.value) for g in groups.track(2).groups
    ]
    assert group_rows == [("roll", 0, 4, -2)]
    moov = index_of("groups-moov.mp4", exact=True).track(1)
    assert sorted(
        (g.grouping_type, g.sample_start, g.sample_count, g.value) for g in moov.groups
    ) == [
        ("rap ", 3, 1, 1),
        ("roll", 0, 2, -1),
        ("roll", 3, 3, 3),
    ]
    assert index_of("wvtt.mp4").track(1).codec == "wvtt"
    assert index_of("stpp.mp4").track(1).codec.startswith("stpp")


def test_indexes_in_the_files_are_used_where_they_are_true() -> None:
    used = {name: index_of(name).how.method for name in ROWS if name.startswith("sidx")}
    # A sidx before each fragment spares nothing: to find them all is to walk the file.
    walked = {"sidx-lying.mp4", "sidx-each-fragment.mp4"}
    assert used == {name: "boxes" if name in walked else "sidx" for name in used}
    assert not any(
        FragmentFlags.VIRTUAL in FragmentFlags(int(flag))
        for flag in index_of("sidx-hierarchical.mp4").track(1).fragments.flags
    )
