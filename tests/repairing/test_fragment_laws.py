"""Every fragmented film, broken: still growing, with stale times, without its start, joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
import pytest
from tests.repairing.broken import (
    FIXTURES,
    Film,
    boxes_of,
    check_part,
    film,
    samples_of,
    segments_of,
)

import fragdex
from fragdex.errors import Unprocessable
from fragdex.fragments.table import FragmentFlags
from fragdex.repairing.repair import Repair

T = TypeVar("T")
known = cache(film)

FRAGMENTED = tuple(
    path.name
    for path in sorted(FIXTURES.iterdir())
    if path.name.startswith("frag-") and len(segments_of(path.read_bytes())) > 1
)
MOST = ("frag-cmaf.mp4", "frag-av1-opus.mp4", "frag-two-languages.mp4")
"""Films that are broken in every way; the others take turns."""


def of(name: str, ways: Sequence[T]) -> Sequence[T]:
    """The ways in which a film is broken."""
    return ways if name in MOST else ways[FRAGMENTED.index(name) % len(ways) :][:1]


def has(good: Film, flag: FragmentFlags) -> bool:
    return any((track.fragments.flags & flag).any() for track in good.index.tracks)


def everything(good: Film) -> dict[int, set[int]]:
    return {track: set(samples) for track, samples in good.truth.items()}


def is_even(good: Film) -> bool:
    """Whether the durations of fragments are the distances of their times, and say so."""
    return all(
        np.array_equal(np.diff(track.fragments.dts), track.fragments.duration[:-1])
        and (track.fragments.sample_count[:-1] > 1).all()
        for track in good.index.tracks
    )


def said(repair: Repair) -> bool:
    return bool(repair.findings) or repair.lost > 0


CUTS: dict[str, Callable[[int, int, int], int]] = {
    "in the header of the moof": lambda start, data, stop: start + 4,
    "in the moof": lambda start, data, stop: (start + data) // 2,
    "after the moof": lambda start, data, stop: data,
    "in the header of the mdat": lambda start, data, stop: data + 5,
    "in the mdat": lambda start, data, stop: (data + 8 + stop) // 2,
}


@pytest.mark.parametrize("name", FRAGMENTED)
def test_a_film_that_is_still_written_has_all_that_is_whole(name: str) -> None:
    good = known(name)
    for way in of(name, [*CUTS, "size not written"]):
        for start, stop in segments_of(good.data)[1::3]:
            data = start + int.from_bytes(good.data[start : start + 4], "big")
            cut = CUTS.get(way, CUTS["in the mdat"])(start, data, stop)
            broken = bytearray(good.data[:cut])
            if way == "size not written":
                broken[data : data + 4] = bytes(4)
            repair = fragdex.repair(bytes(broken))
            places_by_track = check_part(good, bytes(broken), repair)
            for track, samples in good.truth.items():
                whole = {
                    at
                    for at, size in samples.items()
                    if at + size <= start or data < at <= cut - size
                }
                assert places_by_track.get(track, set()) <= whole
                # where bases are stale, it needs the end of the media data to see it
                assert places_by_track.get(track, set()) == whole or has(
                    good, FragmentFlags.REPAIRED
                )
            assert said(repair)


def with_times(data: bytes, change: Callable[[int, int], int]) -> bytes:
    """The film with other decode times: of the number of the moof, and what its tfdt says."""
    film = bytearray(data)
    moofs = [(start, stop) for kind, start, stop in boxes_of(data) if kind == b"moof"]
    for number, (start, stop) in enumerate(moofs):
        place = data.find(b"tfdt", start, stop)
        while place >= 0:
            width = 8 if data[place + 4] else 4
            field = slice(place + 8, place + 8 + width)
            time = change(number, int.from_bytes(data[field], "big"))
            film[field] = time.to_bytes(width, "big")
            place = data.find(b"tfdt", place + 4, stop)
    return bytes(film)


WRONG_TIMES: dict[str, Callable[[int, int, int], int]] = {
    "all zero": lambda number, count, time: 0,
    "the last one zero": lambda number, count, time: 0 if number == count - 1 else time,
    "one in the middle zero": lambda number, count, time: 0 if number == count // 2 else time,
    "half of what they were": lambda number, count, time: time // 2,
}


EVEN = tuple(name for name in FRAGMENTED if is_even(known(name)))


@pytest.mark.parametrize("name", EVEN)
def test_decode_times_that_fall_back_are_those_of_the_durations(name: str) -> None:
    good = known(name)
    count = sum(kind == b"moof" for kind, _, _ in boxes_of(good.data))
    for way in of(name, [*WRONG_TIMES]):
        change = WRONG_TIMES[way]
        broken = with_times(good.data, lambda at, time, change=change: change(at, count, time))
        if broken == good.data:
            continue
        repair = fragdex.repair(broken)
        assert check_part(good, broken, repair) == everything(good)
        assert any("fell back" in sentence for sentence in repair.findings)


@pytest.mark.parametrize("name", EVEN)
def test_a_clock_that_starts_again_continues(name: str) -> None:
    good = known(name)
    segments = segments_of(good.data)
    half = segments[len(segments) // 2][0]
    since: dict[int, int] = {}
    for track in good.index.tracks:
        times = track.fragments.dts[track.fragments.moof_offset >= half].tolist()
        since |= {time: time - times[0] for time in times}
    moofs = [start for kind, start, _ in boxes_of(good.data) if kind == b"moof"]
    broken = with_times(
        good.data, lambda number, time: since[time] if moofs[number] >= half else time
    )
    repair = fragdex.repair(broken)
    assert check_part(good, broken, repair) == everything(good)


@pytest.mark.parametrize("name", FRAGMENTED)
def test_a_gap_in_the_times_stays(name: str) -> None:
    good = known(name)
    broken = with_times(good.data, lambda number, time: time + 90_000 * (number > 1))
    repair = fragdex.repair(broken)
    mended = repair.index(broken)
    wanted = fragdex.index(broken, exact=True)
    for track in wanted.tracks:
        dts = track.samples.dts
        assert np.array_equal(mended.track(track.id).samples.dts, dts - dts[0])
    assert not any("fell back" in sentence for sentence in repair.findings)


INDEXES = (b"sidx", b"mfra")


@pytest.mark.parametrize("name", FRAGMENTED)
def test_an_index_of_fragments_that_is_wrong_changes_nothing(name: str) -> None:
    good = known(name)
    for damage in of(name, ["missing", "zeros", "stale"]):
        broken = bytearray(good.data)
        for kind, start, stop in boxes_of(good.data):
            if kind in INDEXES and damage == "missing":
                broken[start + 4 : start + 8] = b"free"
            elif kind in INDEXES and damage == "zeros":
                broken[start + 8 : stop] = bytes(stop - start - 8)
            elif kind in INDEXES:
                broken[start + 31 : stop : 4] = bytes(
                    at ^ 0x15 for at in broken[start + 31 : stop : 4]
                )
        repair = fragdex.repair(bytes(broken))
        assert check_part(good, bytes(broken), repair) == everything(good)
        mended = repair.view.read(source=bytes(broken))
        assert not any(kind in INDEXES for kind, _, _ in boxes_of(mended))


@pytest.mark.parametrize("name", FRAGMENTED)
def test_segments_alone_and_joined_have_the_samples_that_are_theirs(name: str) -> None:
    good = known(name)
    segments = segments_of(good.data)
    middle = segments[len(segments) // 2][0]
    for start, stop in (segments[0], (middle, segments[-1][1]), segments[-1]):
        broken = good.data[start:stop]
        repair = fragdex.repair(broken, good.data)
        places_by_track = check_part(good, broken, repair, lambda at, start=start: at + start)
        wanted = {
            track: {at for at, size in samples.items() if start <= at and at + size <= stop}
            for track, samples in good.truth.items()
        }
        assert places_by_track == {track: places for track, places in wanted.items() if places}
    with pytest.raises(Unprocessable, match="nothing says which codecs"):
        fragdex.repair(broken)


@pytest.mark.parametrize("name", FRAGMENTED)
def test_halves_joined_in_the_wrong_order_are_put_right(name: str) -> None:
    good = known(name)
    segments = segments_of(good.data)
    begin, middle, end = segments[0][0], segments[len(segments) // 2][0], segments[-1][1]
    start, first, second = (0, begin), (begin, middle), (middle, end)
    for pieces in of(name, [(start, second, first), (second, start, first)]):
        broken = b"".join(good.data[low:high] for low, high in pieces)
        places = [at for low, high in pieces for at in range(low, high)]
        repair = fragdex.repair(broken)
        if has(good, FragmentFlags.DECLARED_BASE):  # places that the joining has made wrong
            for track, samples in samples_of(repair).items():
                assert {places[at]: n for at, n in samples.items()}.items() <= good.truth[
                    track
                ].items()
        else:
            assert check_part(good, broken, repair, places.__getitem__) == everything(good)
            assert any("wrong order" in sentence for sentence in repair.findings)


HYBRID = "hybrid.mp4"


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_a_hybrid_film_whose_last_moov_was_being_written(finished: bool, zeros: bool) -> None:
    """Its fragments say all, whether they were turned into one mdat already or not."""
    good = known(HYBRID)
    start, stop = good.moov
    mdat = good.box(b"mdat")[0]
    broken = bytearray(good.data)
    if not finished:
        inner = good.data.index(b"ftyp", mdat) - 4
        inner += int.from_bytes(good.data[inner : inner + 4], "big")
        broken[mdat : mdat + 8] = (inner - mdat).to_bytes(4, "big") + b"free"
    for written in (0, 3, 8, 20, 108, 700, stop - start - 600, stop - start - 1):
        film_then = bytes(broken[: start + written])
        if zeros:
            film_then += bytes(stop - start - written)
        repair = fragdex.repair(film_then)
        assert check_part(good, film_then, repair) == everything(good)


@pytest.mark.parametrize("name", ["frag-cmaf.mp4", "frag-text.mp4"])
def test_fragments_of_a_track_that_no_moov_describes_are_said(name: str) -> None:
    good = known(name)
    start, stop = segments_of(good.data)[1]
    place = good.data.index(b"tfhd", start, stop)
    broken = good.data[: place + 8] + (77).to_bytes(4, "big") + good.data[place + 12 :]
    repair = fragdex.repair(broken)
    places_by_track = check_part(good, broken, repair)
    gone = {at for at in good.truth[1] if start < at < stop}
    assert places_by_track == everything(good) | {1: set(good.truth[1]) - gone}
    assert any("track 77" in sentence for sentence in repair.findings)
