"""A moov that is there and wrong: what can be derived is mended, and the rest is said."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.repairing.broken import Film, check_spans, film, samples_of

import fragdex
from fragdex.boxes import Box, build, make_box, parse_box
from fragdex.testing import edit

NAMES = ("moov-last.mp4", "faststart.mp4", "hevc-aac.mp4", "av1-opus.mp4", "pcm.mov")


def with_moov(good: Film, moov: bytes) -> bytes:
    start, stop = good.moov
    return good.data[:start] + moov + good.data[stop:]


def moov_of(good: Film) -> Box:
    start, stop = good.moov
    return parse_box(good.data[start:stop])


def offsets_of(stco: Box) -> list[int]:
    return [int(entry["chunk_offset"]) for entry in stco["entries"]]


def with_offsets(stco: Box, offsets: list[int]) -> Box:
    return stco.replace(entries=[(at,) for at in offsets])


def check_whole(good: Film, broken: bytes, shift: int = 0, like: bytes | None = None) -> None:
    """All samples are found, with the times that the good film gives them."""
    repair = fragdex.repair(broken, like)
    check_spans(broken, repair)
    moved = {
        number: {at + shift: size for at, size in truth.items()}
        for number, truth in good.truth.items()
    }
    assert samples_of(repair) == moved
    mended = repair.index(broken)
    for track in good.index.tracks:
        wanted, repaired_samples = track.samples, mended.track(track.id).samples
        for column in ("dts", "cts", "sync", "size"):
            assert np.array_equal(getattr(wanted, column), getattr(repaired_samples, column)), (
                column
            )


@pytest.mark.parametrize("name", NAMES)
def test_a_good_film_stays_what_it_is(name: str) -> None:
    good = film(name)
    check_whole(good, good.data)
    assert fragdex.repair(good.data).lost < 40


@pytest.mark.parametrize("name", ["moov-last.mp4", "hevc-aac.mp4", "av1-opus.mp4"])
def test_a_moov_put_in_front_and_its_offsets_left_as_they_were(name: str) -> None:
    good = film(name)
    start, stop = good.moov
    first = good.box(b"mdat")[0]
    broken = good.data[:first] + good.data[start:stop] + good.data[first:start]
    check_whole(good, broken, shift=stop - start)
    (sentence,) = [s for s in fragdex.repair(broken).findings if "from where" in s]
    assert f"+{stop - start:,} bytes" in sentence


@pytest.mark.parametrize("by", [-16, -8, 100, 4096])
def test_offsets_that_are_all_wrong_by_so_much(by: int) -> None:
    good = film("faststart.mp4")
    moov = moov_of(good)

    def shifted(stco: Box) -> Box:
        return with_offsets(stco, [at + by for at in offsets_of(stco)])

    moov = edit(moov, "trak/mdia/minf/stbl/stco", shifted)
    check_whole(good, with_moov(good, build(moov)))


@pytest.mark.parametrize("size", [0, 1000, 8, 7])
def test_a_size_of_the_mdat_that_is_wrong(size: int) -> None:
    good = film("moov-last.mp4")
    at = good.box(b"mdat")[0]
    check_whole(good, good.data[:at] + size.to_bytes(4, "big") + good.data[at + 4 :])


def test_a_missing_table_of_sync_samples() -> None:
    good = film("moov-last.mp4")
    moov = build(edit(moov_of(good), "trak/mdia/minf/stbl/stss", lambda box: None))
    check_whole(good, with_moov(good, moov))
    findings = fragdex.repair(with_moov(good, moov)).findings
    assert any("45 marks of sync samples were wrong" in sentence for sentence in findings)


def test_a_stale_table_of_sync_samples() -> None:
    good = film("moov-last.mp4")
    stale = make_box("stss", entries=[(1,), (2,), (3,)])
    moov = build(edit(moov_of(good), "trak/mdia/minf/stbl/stss", lambda box: stale))
    check_whole(good, with_moov(good, moov))


def test_offsets_of_32_bits_that_wrapped(tmp_path: Path) -> None:
    good = film("moov-last.mp4")
    path, gap = tmp_path / "large.mp4", (1 << 32) - good.mdat[0] - 3000
    first, last = good.mdat
    middle = next(at for at in sorted(good.truth[2]) if at > 2500)

    def wrapped(stco: Box) -> Box:
        moved = (at + 8 + (gap if at >= middle else 0) for at in offsets_of(stco))
        return with_offsets(stco, [at % (1 << 32) for at in moved])

    moov = build(edit(moov_of(good), "trak/mdia/minf/stbl/stco", wrapped))
    with open(path, "wb") as file:
        file.write(good.data[: first - 8] + b"\0\0\0\1mdat")
        file.write((last - first + gap + 16).to_bytes(8, "big"))
        file.write(good.data[first:middle])
        file.seek(gap, os.SEEK_CUR)
        file.write(good.data[middle:last] + moov)
    repair = fragdex.repair(path)
    for track in repair.tracks:
        wanted = {at + 8 + (gap if at >= middle else 0) for at in good.truth[track.id]}
        assert wanted == set(track.table().offset.tolist())
    assert repair.view.size < 20_000
    assert any("4 GiB" in sentence for sentence in repair.findings)


def test_samples_that_are_overwritten_are_left_out() -> None:
    good = film("moov-last.mp4")
    broken = bytearray(good.data)
    broken[2000:2600] = bytes(600)
    repair = fragdex.repair(bytes(broken))
    repaired_samples = samples_of(repair)
    for number, truth in good.truth.items():
        whole = {at: n for at, n in truth.items() if at + n <= 2000 or at >= 2600}
        assert repaired_samples[number] == whole
    assert any("not what the tables say" in sentence for sentence in repair.findings)


@pytest.mark.parametrize("name", ["mfra-stale.mp4", "frag-global-sidx-stale-base.mp4"])
def test_a_stale_index_in_the_file_is_not_taken_along(name: str) -> None:
    data = (Path(__file__).parents[2] / "fixtures" / name).read_bytes()
    repair = fragdex.repair(data)
    mended = repair.index(data)
    for track in fragdex.index(data, exact=True).tracks:
        assert np.array_equal(mended.track(track.id).samples.size, track.samples.size)
    assert mended.findings == ()


Change = Callable[[Box], Box | None]
WRONG_TABLES: dict[str, tuple[str, Change]] = {
    "fewer sizes": ("stsz", lambda box: box.replace(entries=box["entries"][:40], sample_count=40)),
    "more sizes": (
        "stsz",
        lambda box: box.replace(entries=[*box["entries"], (9,)], sample_count=51),
    ),
    "fewer durations": ("stts", lambda box: box.replace(entries=[(30, 512)])),
    "more durations": ("stts", lambda box: box.replace(entries=[(99, 512)])),
    "no durations": ("stts", lambda box: None),
    "durations of 0": ("stts", lambda box: box.replace(entries=[(50, 0)])),
    "fewer chunks": ("stco", lambda box: with_offsets(box, offsets_of(box)[:-3])),
    "more chunks": ("stco", lambda box: with_offsets(box, [*offsets_of(box), 1 << 30])),
    "chunks that are elsewhere": ("stco", lambda box: with_offsets(box, [9] * 32)),
    "no runs of chunks": ("stsc", lambda box: None),
    "no composition offsets": ("ctts", lambda box: None),
    "stale composition offsets": ("ctts", lambda box: box.replace(entries=[(50, 0)])),
}


@pytest.mark.parametrize("damage", WRONG_TABLES)
def test_tables_of_pictures_that_contradict_one_another(damage: str) -> None:
    good = film("moov-last.mp4")
    kind, change = WRONG_TABLES[damage]
    met: list[Box] = []

    def of_pictures(box: Box) -> Box | None:
        met.append(box)
        return change(box) if len(met) == 1 else box

    moov = edit(moov_of(good), f"trak/mdia/minf/stbl/{kind}", of_pictures)
    check_whole(good, with_moov(good, build(moov)))


@pytest.mark.parametrize("path", ["mvhd", "trak/tkhd", "trak/mdia/mdhd"])
@pytest.mark.parametrize("duration", [0, 7, (1 << 32) - 2])
def test_durations_that_lie(path: str, duration: int) -> None:
    good = film("moov-last.mp4")
    moov = edit(moov_of(good), path, lambda box: box.replace(duration=duration))
    broken = with_moov(good, build(moov))
    check_whole(good, broken)
    expected = fragdex.repair(good.data).index(good.data).duration
    assert fragdex.repair(broken).index(broken).duration == expected


@pytest.mark.parametrize("number", [0, 1, 2])
def test_tracks_of_one_track_id(number: int) -> None:
    good = film("moov-last.mp4")
    moov = edit(moov_of(good), "trak/tkhd", lambda box: box.replace(track_ID=number))
    repair = fragdex.repair(with_moov(good, build(moov)))
    samples_by_kind = {track.kind: samples_of(repair)[track.id] for track in repair.tracks}
    assert samples_by_kind == {track.kind: good.truth[track.id] for track in good.index.tracks}
    assert any("track_ID" in sentence for sentence in repair.findings)


@pytest.mark.parametrize("name", ["moov-last.mp4", "faststart.mp4"])
@pytest.mark.parametrize("kind", [b"moov", b"mdat", b"ftyp"])
@pytest.mark.parametrize("like", [False, True])
def test_a_header_that_zeros_have_overwritten(name: str, kind: bytes, like: bool) -> None:
    good = film(name)
    broken = bytearray(good.data)
    start = good.box(kind)[0]
    broken[start : start + 8] = bytes(8)
    check_whole(good, bytes(broken), like=good.data if like else None)


@pytest.mark.parametrize("name", ["moov-last.mp4", "pcm.mov"])
def test_a_timescale_of_0_is_said_and_the_samples_are_kept(name: str) -> None:
    good = film(name)
    moov = edit(moov_of(good), "trak/mdia/mdhd", lambda box: box.replace(timescale=0))
    repair = fragdex.repair(with_moov(good, build(moov)))
    sizes_by_place = {at: n for samples in samples_of(repair).values() for at, n in samples.items()}
    assert sizes_by_place == {at: n for samples in good.truth.values() for at, n in samples.items()}
    assert any("timescale" in sentence for sentence in repair.findings)
