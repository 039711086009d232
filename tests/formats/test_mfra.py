"""The index at the end of a file: read, doubted where it lies, written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import build, make_box, parse, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, FragdexError, InexactIndex
from fragdex.formats import mfra
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.fragments.track_info import Edit, Movie, TrackInfo
from fragdex.indexing import mfra_reading
from fragdex.sources import open_source
from fragdex.testing import make_file, movie
from strategies.files import fragmented_parts

FIXTURES = Path(__file__).parents[2] / "fixtures"

Entry = tuple[int, int, int, int, int]


def made(entries: dict[int, list[Entry]], *, offset: int = 10_000) -> mfra_reading.RandomAccess:
    tfras = [
        make_box("tfra", version=1, track_ID=track, entries=rows) for track, rows in entries.items()
    ]
    data = build(make_box("mfra", children=[*tfras, make_box("mfro")]))
    return mfra_reading.read(parse_box(data, offset=offset))


def info(track: int, timescale: int, *, kind: str = "video", **more: object) -> TrackInfo:
    return TrackInfo(track, "", kind, timescale, "", None, **more)  # type: ignore[arg-type]


def place_of(data: bytes) -> mfra_reading.RandomAccess:
    where = mfra_reading.mfra_range(data[-16:], len(data))
    assert where is not None
    return mfra_reading.read(parse_box(data[where.start :], offset=where.start))


# --- finding ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "size", "expected"),
    [
        ("00000010 6d66726f 00000000 00000064", 1000, ByteRange(900, 1000)),
        ("00000010 6d66726f 00000000 000003e8", 1000, ByteRange(0, 1000)),
        ("00000010 6d66726f 00000000 000003e9", 1000, None),  # larger than the file
        ("00000010 6d66726f 00000000 00000010", 1000, None),  # no room for an mfra
        ("00000010 66726565 00000000 00000064", 1000, None),
        ("00000064", 4, None),
    ],
)
def test_the_last_16_bytes_tell_where_it_lies(
    tail: str, size: int, expected: ByteRange | None
) -> None:
    assert mfra_reading.mfra_range(bytes.fromhex(tail), size) == expected


# --- tables ----------------------------------------------------------------------------------


def test_a_fragment_reaches_to_the_next_one_listed_and_the_last_to_the_mfra() -> None:
    access = made({1: [(0, 500, 1, 1, 1), (900, 2000, 1, 1, 1), (2100, 7000, 1, 1, 1)]})
    table, sync = mfra_reading.tables(access, Movie(1000, 0, True, (info(1, 300),)))[1]
    assert table.offset.tolist() == table.moof_offset.tolist() == [500, 2000, 7000]
    assert table.size.tolist() == [1500, 5000, 3000]
    assert table.cts_min.tolist() == sync.cts.tolist() == [0, 900, 2100]
    assert table.cts_end.tolist() == [900, 2100, NULL]
    assert (table.flags == FragmentFlags.APPROXIMATE).all()
    assert access.last_moof == 7000


@pytest.mark.parametrize("duration", [{"media_duration": 3300}, {}])
def test_the_last_fragment_ends_when_the_moov_says(duration: dict[str, int]) -> None:
    access = made({1: [(0, 500, 1, 1, 1), (900, 2000, 1, 1, 1)]})
    film = Movie(1000, 11_000, True, (info(1, 300, **duration),))
    assert mfra_reading.tables(access, film)[1][0].cts_end.tolist() == [900, 3300]


def test_several_access_points_of_a_fragment_are_one_row() -> None:
    access = made({1: [(0, 500, 1, 1, 1), (300, 500, 1, 1, 9), (900, 2000, 1, 1, 1)]})
    table, sync = mfra_reading.tables(access, Movie(0, 0, True, ()))[1]
    assert table.offset.tolist() == [500, 2000]
    assert sync.cts.tolist() == [0, 300, 900]
    assert sync.fragment.tolist() == [0, 0, 1]


def test_presentation_times_become_composition_times() -> None:
    access = made({1: [(0, 500, 1, 1, 1)]})
    film = Movie(1000, 0, True, (info(1, 300, edits=(Edit(0, 20),)),))
    assert mfra_reading.tables(access, film)[1][1].cts.tolist() == [20]


def test_a_track_that_is_not_listed_shares_the_rows_of_the_pictures() -> None:
    access = made({2: [(0, 500, 1, 1, 1), (900, 2000, 1, 1, 1)]})
    film = Movie(1000, 0, True, (info(1, 1000, kind="audio"), info(2, 300)))
    findings = Findings()
    table, _ = mfra_reading.tables(access, film, findings)[1]
    assert table.cts_min.tolist() == [0, 3000]
    assert (table.flags & FragmentFlags.TIMES_GUESSED).all()
    assert [(f.code, f.track) for f in findings.all()] == [("mfra-one-track", 1)]
    unknown = Movie(1000, 0, True, (info(7, 1000),))
    assert mfra_reading.tables(access, unknown) == {}


def test_a_second_table_of_a_track_is_noted() -> None:
    tfra = make_box("tfra", track_ID=1, entries=[(0, 500, 1, 1, 1)])
    empty = make_box("tfra", track_ID=2, entries=[])
    tables = mfra_reading.read(make_box("mfra", children=[tfra, empty, tfra]))
    assert list(tables.tracks) == [1]
    assert [f.code for f in tables.findings] == ["mfra-twice"]


# --- doubts ----------------------------------------------------------------------------------


def test_what_cannot_be_is_doubted() -> None:
    def codes(access: mfra_reading.RandomAccess, **more: object) -> list[str]:
        return [f.code for f in access.doubts(**more)]  # type: ignore[arg-type]

    assert codes(made({})) == ["mfra-empty"]
    assert codes(made({1: [(0, 10_000, 1, 1, 1)]})) == ["mfra-past-end"]
    assert codes(made({1: [(9, 500, 1, 1, 1), (4, 600, 1, 1, 1)]})) == ["mfra-order"]
    assert codes(made({1: [(4, 600, 1, 1, 1), (9, 500, 1, 1, 1)]})) == ["mfra-order"]
    far = made({1: [(0, 1 << 63, 1, 1, 1)]})
    assert codes(far) == ["mfra-empty"]
    assert [f.code for f in far.findings] == ["mfra-damaged"]
    one = made({1: [(0, 500, 1, 1, 1)]})
    assert codes(one, heads={500: b"\0\0\0\x20mdat"}) == ["mfra-lie"]
    assert codes(one, heads={500: b"\0\0\0\x20moof", 700: b"\0\0\0\x20mdat"}) == []


@pytest.mark.parametrize(
    ("name", "lies"),
    [
        # This muxer lists every fragment, also those that begin with no sync sample.
        ("frag-by-duration.mp4", True),
        ("frag-by-size.mp4", True),
        ("frag-every-frame.mp4", True),
        ("mfra-stale.mp4", True),
        ("frag-default-base.mp4", False),
        ("frag-separate-moof.mp4", False),
        ("piff.ismv", False),
    ],
)
def test_a_moof_at_hand_shows_a_lie(name: str, lies: bool) -> None:
    data = (FIXTURES / name).read_bytes()
    access = place_of(data)
    boxes = parse(data)
    heads = {at: data[at : at + 8] for e in access.tracks.values() for at in e.moof_offset.tolist()}
    moofs = {b.offset: b for b in boxes if b.type == "moof"}
    film = fragdex.index(data, exact=True).periods[0].movie
    doubts = access.doubts(heads=heads, moofs=moofs, movie=film)
    assert bool(doubts) == lies


@pytest.mark.parametrize("entry", [(1, 2, 1), (1, 1, 99), (1, 1, 0)])
def test_a_sample_that_is_not_there_is_a_lie(entry: tuple[int, int, int]) -> None:
    data = movie(2)
    moofs = {b.offset: b for b in parse(data) if b.type == "moof"}
    first = min(moofs)
    access = made({1: [(0, first, *entry)]}, offset=len(data))
    (lie,) = access.doubts(moofs=moofs)
    assert (lie.code, lie.track, lie.offset) == ("mfra-lie", 1, first)
    assert not made({1: [(0, first, 1, 1, 1)]}, offset=len(data)).doubts(moofs=moofs)


@given(st.binary(max_size=200))
def test_any_bytes_give_an_answer_or_an_error_of_ours(body: bytes) -> None:
    data = (len(body) + 8).to_bytes(4, "big") + b"mfra" + body
    try:
        access = mfra_reading.read(parse_box(data, offset=1 << 20))
    except FragdexError:
        return
    if not access.doubts():
        mfra_reading.tables(access, Movie(0, 0, True, ()))
        mfra_reading.tables(access, Movie(1000, 9, True, (info(1, 90000), info(2, 3))))


# --- writing ---------------------------------------------------------------------------------


@given(fragmented_parts())
def test_what_is_written_leads_to_sync_samples(parts: list) -> None:
    data = make_file(*parts).data
    try:
        index = fragdex.index(data, exact=True)
        written = mfra.write(index, period=0, source=data)
    except (BuildError, FragdexError):
        return
    access = place_of(data + written)
    film = index.periods[0].movie
    moofs = {b.offset: b for b in parse(data) if b.type == "moof"}
    lies = [f for f in access.doubts(moofs=moofs, movie=film) if f.code == "mfra-lie"]
    # Two trafs of one track in a moof cannot be told apart by what reading takes them for.
    assert not lies or any(_two_trafs(moof) for moof in moofs.values())
    for track in index.periods[0].tracks:
        entries = access.tracks.get(track.id)
        listed = 0 if entries is None else len(entries)
        assert listed == int((track.fragments.first_sync >= 0).sum())


def _two_trafs(moof: object) -> bool:
    tracks = [t["track_ID"] for t in moof.find_all("traf/tfhd")]  # type: ignore[attr-defined]
    return len(tracks) > len(set(tracks))


@pytest.mark.parametrize("tracks", [1, 2])
@pytest.mark.parametrize("edit", [None, 7000])
def test_it_is_read_as_it_was_written(tracks: int, edit: int | None) -> None:
    data = movie(4, tracks=tracks, edit=edit)
    index = fragdex.index(data, exact=True)
    access = place_of(data + mfra.write(index))
    assert access.start == len(data)
    for number, (table, _) in mfra_reading.tables(access, index.periods[0].movie).items():
        exact = index.track(number)
        assert table.moof_offset.tolist() == exact.fragments.moof_offset.tolist()
        begin = -int(exact.shift)
        assert table.cts_min.tolist() == np.maximum(exact.fragments.cts_min, begin).tolist()


def test_the_numbers_of_trafs_and_runs_come_from_the_file() -> None:
    path = FIXTURES / "frag-interleaved-truns.mp4"
    index = fragdex.index(path, exact=True)
    with open_source(path) as source:
        from_source = mfra.write(index, source=source)
    assert from_source == mfra.write(index, source=path.read_bytes())
    access = mfra_reading.read(parse_box(from_source, offset=path.stat().st_size))
    assert (access.tracks[2].traf_number == 2).all()


def test_without_samples_or_fragments_there_is_none() -> None:
    with pytest.raises(BuildError, match="movie fragments"):
        mfra.write(fragdex.index(movie(fragmented=False)))
    with pytest.raises((BuildError, InexactIndex)):
        mfra.write(fragdex.index(movie(3, sidx=True)))
    index = fragdex.index(movie(3), exact=True)
    with pytest.raises(BuildError, match="disagree"):
        mfra.write(index, source=bytes(5000))
