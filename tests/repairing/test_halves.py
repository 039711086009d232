"""Films of sample tables in two halves: joined again, or still being written."""

from __future__ import annotations

from functools import cache

import pytest
from tests.repairing.broken import Film, check_part, check_spans, film, samples_of

import fragdex

NAMES = ("moov-last.mp4", "faststart.mp4", "hevc-aac.mp4", "av1-opus.mp4", "pcm.mov", "aac.m4a")
PROVED = ("moov-last.mp4", "faststart.mp4", "hevc-aac.mp4", "aac.m4a")
"""Films all of whose samples say where they end."""
known = cache(film)


def mdat(good: Film, start: int, stop: int) -> list[bytes | tuple[int, int]]:
    return [(stop - start + 8).to_bytes(4, "big") + b"mdat", (start, stop)]


def halves(good: Film, at: int) -> dict[str, list[bytes | tuple[int, int]]]:
    """The film cut at a place of its media data, and put together again in other ways."""
    first, last = good.mdat
    head, moov = (0, good.box(b"ftyp")[1]), good.moov
    one, other = mdat(good, first, at), mdat(good, at, last)
    return {
        "moov between": [head, *one, moov, *other],
        "moov in front": [head, moov, *one, *other],
        "a second file": [head, *one, moov, head, *other],
        "without a header": [head, moov, *one, (at, last)],
        "in the wrong order": [head, *other, moov, *one],
        "the end first": [(at, last), moov, head, *one],
    }


def joined(good: Film, pieces: list[bytes | tuple[int, int]]) -> tuple[bytes, dict[int, int]]:
    """The bytes, and the place in the film of each that is of its media data."""
    data, places = b"", {}
    for piece in pieces:
        if isinstance(piece, tuple):
            places |= {len(data) + at - piece[0]: at for at in range(*piece)}
            data += good.data[slice(*piece)]
        else:
            data += piece
    return data, places


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", [0.3, 0.5, 0.8])
def test_joined_halves_lose_the_sample_that_was_cut(name: str, part: float) -> None:
    good = known(name)
    first, last = good.mdat
    at = first + int(part * (last - first))
    for pieces in halves(good, at).values():
        broken, places = joined(good, pieces)
        repair = fragdex.repair(broken)
        check_spans(broken, repair)
        for track, repaired_samples in samples_of(repair).items():
            moved = {places[place]: size for place, size in repaired_samples.items()}
            assert moved.items() <= good.truth[track].items()
        assert repair.findings
        if name in PROVED:
            found_at = check_part(good, broken, repair, places.__getitem__)
            for track, samples in good.truth.items():
                cut = {place for place, size in samples.items() if place < at < place + size}
                assert samples.keys() - found_at[track] <= cut


@pytest.mark.parametrize("name", [name for name in NAMES if name != "pcm.mov"])
@pytest.mark.parametrize("part", [0.4, 0.9])
@pytest.mark.parametrize("wide", [False, True])
def test_a_film_that_is_still_written(name: str, part: float, wide: bool) -> None:
    """No moov yet, and an mdat whose size is 0, of 32 or of 64 bits."""
    good = known(name)
    first, last = good.mdat
    stop = first + int(part * (last - first))
    head = good.data[: good.box(b"ftyp")[1]]
    head += b"\0\0\0\1mdat" + bytes(8) if wide else b"\0\0\0\0mdat"
    broken = head + good.data[first:stop]
    repair = fragdex.repair(broken, good.data)
    check_spans(broken, repair)
    moved = first - len(head)
    for track, samples in samples_of(repair).items():
        assert {at + moved: size for at, size in samples.items()}.items() <= good.truth[
            track
        ].items()
        table, wanted = repair.index(broken).track(track).samples, good.index.track(track).samples
        # pictures before the cut may be shown after some that are not there
        assert (table.dts == wanted.dts[: len(table)]).all()
        if name in PROVED:
            whole = [at for at, size in good.truth[track].items() if at + size <= stop]
            assert len(samples) >= len(whole) - 1
    assert repair.findings
    assert repair.lost < (last - first) // 2
