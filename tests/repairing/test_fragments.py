"""Fragmented films: without their initialization segment, without their moofs, cut off, joined."""

from __future__ import annotations

import numpy as np
import pytest
from tests.repairing.broken import FIXTURES, Film, check_spans, film, samples_of

import fragdex

NAMES = ("frag-cmaf.mp4", "frag-hevc-aac.mp4", "frag-av1-opus.mp4", "frag-pcm.mov")


def without(good: Film, *kinds: bytes) -> tuple[bytes, dict[int, int]]:
    """The film without boxes of some types; and where bytes that are left were."""
    remainder, at, moved = b"", 0, {}
    while at < len(good.data):
        size = int.from_bytes(good.data[at : at + 4], "big") or len(good.data) - at
        if good.data[at + 4 : at + 8] not in kinds:
            moved |= {len(remainder) + step: at + step for step in range(size)}
            remainder += good.data[at : at + size]
        at += size
    return remainder, moved


@pytest.mark.parametrize("name", NAMES)
def test_segments_without_init_are_the_film_again(name: str) -> None:
    good = film(name)
    broken, moved = without(good, b"moov", b"ftyp", b"sidx")
    repair = fragdex.repair(broken, good.data)
    check_spans(broken, repair)
    mended = repair.index(broken)
    for number, truth in good.truth.items():
        samples = samples_of(repair)[number]
        assert {moved[at]: size for at, size in samples.items()} == truth
        wanted = good.index.track(number).samples
        # without the edit list of an init segment, times are those of the good film's tracks
        assert np.array_equal(mended.track(number).samples.size, wanted.size)
        assert np.array_equal(np.diff(mended.track(number).samples.dts), np.diff(wanted.dts))


@pytest.mark.parametrize("name", ["frag-cmaf.mp4", "frag-hevc-aac.mp4"])
def test_media_without_moofs_is_found_by_its_codecs(name: str) -> None:
    good = film(name)
    broken, moved = without(good, b"moof", b"sidx", b"mfra")
    repair = fragdex.repair(broken)
    check_spans(broken, repair)
    samples = samples_of(repair)
    for number, truth in good.truth.items():
        assert {moved[at]: size for at, size in samples[number].items()} == truth


def test_a_fragment_whose_media_is_cut_off_keeps_what_is_there() -> None:
    data = (FIXTURES / "cut-in-mdat.mp4").read_bytes()
    repair = fragdex.repair(data)
    check_spans(data, repair)
    complete = fragdex.index(data, exact=True)
    for track in repair.tracks:
        assert track.samples >= (complete.track(track.id).sample_count or 0)
    assert sum(t.samples for t in repair.tracks) > sum(t.sample_count or 0 for t in complete.tracks)


@pytest.mark.parametrize(
    "name",
    ["frag-crashed.mp4", "hybrid-crashed.mp4", "joined-segments.mp4", "cut-faststart.mp4"],
)
def test_what_plays_already_stays(name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    repair = fragdex.repair(data)
    check_spans(data, repair)
    wanted = fragdex.index(data, exact=True)
    for track in repair.tracks:
        table = wanted.track(track.id).samples
        whole = table.offset + table.size <= len(data)
        assert set(table.offset[whole].tolist()) <= set(track.table().offset.tolist())


def test_films_behind_one_another_are_said() -> None:
    data = (FIXTURES / "two-inits.mp4").read_bytes()
    repair = fragdex.repair(data)
    assert any("2 movies" in sentence for sentence in repair.findings)
