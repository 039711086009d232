"""Samples that are marked sync and say themselves that they depend on others are noted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes.fragments import DATA_OFFSET, FIRST_SAMPLE_FLAGS, SAMPLE_FLAGS
from fragdex.indexing import periods
from fragdex.testing.files import Brand, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Run, Sample, Track, Traf
from strategies.files import files

DEPENDS = 0x01000000


@pytest.mark.parametrize(
    ("run", "trex", "count"),
    [
        (Run(tuple(Sample(1, 1, f) for f in (SYNC, DEPENDS, DEPENDS | NON_SYNC))), 0, 1),
        (Run((Sample(1, 1),) * 3, DATA_OFFSET), DEPENDS, 1),
        (Run((Sample(1, 1),) * 3, DATA_OFFSET | FIRST_SAMPLE_FLAGS, SYNC), DEPENDS, 1),
        (Run((Sample(1, 1),) * 3, DATA_OFFSET), SYNC, 0),
    ],
    ids=["each", "default", "default but first", "none"],
)
def test_flags_of_each_of_the_first_and_by_default(run, trex, count):
    flags = run.flags | (SAMPLE_FLAGS if trex == 0 else 0)
    run = Run(run.samples, flags, first_sample_flags=run.first_sample_flags)
    tracks = tuple(Track(n, "video", 1000, trex=(1, 1, trex)) for n in (1, 2))
    fragments = [Fragment(tuple(Traf(n, (run,), tfdt=3 * at) for n in (1, 2))) for at in range(2)]
    index = fragdex.index(make_file(Brand(), Moov(tracks), *fragments).data)
    noted = {f.track: f.count for f in index.findings if f.code == "sync-depends"}
    assert noted == ({1: 2 * count, 2: 2 * count} if count else {})


def by_declarations(moof):
    """What `_runs` says, from the declared layouts."""
    runs_by_track = {}
    for traf in fragdex.boxes.parse_box(moof).find_all("traf"):
        tfhd = traf.find("tfhd")
        for trun in traf.find_all("trun"):
            rows = trun["samples"]
            flags = rows["sample_flags"].tolist() if "sample_flags" in rows.dtype.names else None
            run = (
                tfhd.get("default_sample_flags"),
                trun.get("first_sample_flags"),
                trun["sample_count"],
                flags,
            )
            runs_by_track.setdefault(tfhd["track_ID"], []).append(run)
    return runs_by_track


@given(files())
def test_flags_read_in_passing_are_those_that_the_declarations_give(film):
    for box in fragdex.boxes.parse(film.data):
        if box.type == "moof":
            moof = film.data[box.offset : box.stop]
            read = {
                track: [
                    (*run[:3], None if run.flags is None else run.flags.tolist()) for run in runs
                ]
                for track, runs in periods._runs(memoryview(moof)).items()
            }
            assert read == by_declarations(moof)


@given(files(), st.data())
def test_flags_of_a_damaged_moof_are_read_without_a_fault(film, data):
    for box in fragdex.boxes.parse(film.data):
        if box.type == "moof":
            moof = bytearray(film.data[box.offset : box.stop])
            for _ in range(data.draw(st.integers(1, 4))):
                moof[data.draw(st.integers(0, len(moof) - 1))] = data.draw(st.integers(0, 255))
            cut = data.draw(st.integers(0, len(moof)))
            periods._runs(memoryview(bytes(moof[:cut])))
