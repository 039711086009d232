"""Seeking to samples that a decoder can start at, held against every sample's own bytes."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.errors import (
    BudgetExceeded,
    InexactIndex,
    NoSyncSample,
    SourceChanged,
    SourceNotFound,
    UnverifiedSync,
)
from fragdex.indexing.access import SampleBytes, access_of
from fragdex.seeking.model import FileInfo
from fragdex.testing import movie

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
ALL_SYNC = ("all-sync.mp4", "all-sync-open-gop.mp4", "frag-all-sync.mp4")
PICTURES = (
    *ALL_SYNC, "faststart.mp4", "intra-refresh.mp4", "all-intra.mp4", "frag-hvc1.mp4",
    "frag-vp9-opus.mp4", "frag-av1-opus.mp4", "mpeg4-mp3.mp4", "negative-cts.mp4", "hybrid.mp4",
)  # fmt: skip


def truth(data: bytes, track: Any) -> list[tuple[Fraction, int]]:
    """Presentation time and number of each sample marked sync that a decoder can start at."""
    table, info, moments = track.samples, track.info, []
    for number in range(len(table)):
        start, size = int(table.offset[number]), int(table.size[number])
        sample = SampleBytes.of(data[start : start + size])
        if table.sync[number] and access_of(sample, info.format, info.codec, info.nal_length_size):
            moments.append((track.presentation(int(table.cts[number])).fraction, number))
    return sorted(moments)


@pytest.mark.parametrize("name", PICTURES)
def test_it_equals_a_search_through_all_samples(name: str) -> None:
    path = FIXTURES / name
    data = path.read_bytes()
    index = fragdex.index(path, exact=True)
    (track,) = (track for track in index.tracks if track.kind == "video")
    true = truth(data, track)
    times = [Fraction(n, 32) for n in range(-3, 80)]
    hits = [track.seek(time, verified=True) for time in times]
    for time, hit in zip(times, hits, strict=True):
        before = [number for at, number in true if at <= time]
        assert hit.sample == (before[-1] if before else true[0][1])
        flagged = track.seek(time)
        assert hit.clamped == (flagged.clamped or not before)
        assert hit.range == track.seek(hit.time).range
    many = track.seek_many([float(time) for time in times], verified=True)
    assert many.sample.tolist() == [hit.sample for hit in hits]
    assert many.offset.tolist() == [hit.offset for hit in hits]
    assert many.clamped.tolist() == [hit.clamped for hit in hits]


@pytest.mark.parametrize("name", ALL_SYNC)
def test_a_saved_index_asks_the_file_it_was_made_of(name: str, tmp_path: Path) -> None:
    media = tmp_path / name
    media.write_bytes(FIXTURES.joinpath(name).read_bytes())
    index = fragdex.index(media, exact=True)
    for samples in (False, True):
        index.save(tmp_path / "saved.fidx", samples=samples)
        track = fragdex.open_index(tmp_path / "saved.fidx").track(1)
        assert track.seek(1.7, verified=True) == index.track(1).seek(1.7, verified=True)
        assert track.seek(1.7, verified=True).sample == 36
        assert track.seek(1.7, verified=True, source=media.read_bytes()).sample == 36
    media.write_bytes(media.read_bytes()[:-100])
    with pytest.raises(SourceChanged, match="not the file that the index describes"):
        track.seek(1.7, verified=True)


def test_without_the_media_it_says_so() -> None:
    data = FIXTURES.joinpath("all-sync.mp4").read_bytes()
    index = fragdex.index(data)
    with pytest.raises(SourceNotFound, match="give the file with source="):
        index.track(1).seek(1.7, verified=True)
    assert index.track(1).seek(1.7, verified=True, source=data).sample == 36
    assert index.track(1).seek_many([1.7], verified=True, source=data).sample.tolist() == [36]
    assert index.track(1).seek(1.7).sample == 43


def test_nothing_is_read_where_every_sample_is_one() -> None:
    index = fragdex.index(FIXTURES.joinpath("all-sync.mp4").read_bytes())
    source = fragdex.open_source(b"nothing")
    assert index.track(2).seek(1.7, verified=True) == index.track(2).seek(1.7)
    assert index.track(2).seek(1.7, verified=True, source=source) == index.track(2).seek(1.7)
    assert source.requests == 0


class Far(fragdex.Source):
    """Bytes as if they were far away."""

    def __init__(self, data: bytes, **budget: int) -> None:
        super().__init__("far", size=len(data), remote=True, **budget)
        self.data = data

    def read_up_to(self, range: fragdex.ByteRange) -> bytes:
        cut = self._spend(range)
        return self.data[cut.start : cut.stop]


@pytest.mark.parametrize(
    ("tag", "described", "refused"),
    [('"1"', '"1"', False), ('"1"', '"2"', True), ('"1"', None, False), (None, '"1"', False)],
)
def test_media_with_another_etag_are_not_read(tag, described, refused) -> None:
    data = FIXTURES.joinpath("all-sync.mp4").read_bytes()
    index = fragdex.index(data)
    index.track(1).home = index.track(1).home._replace(
        file=FileInfo(size=len(data), etag=described)
    )
    far = Far(data)
    far.etag = tag
    if refused:
        with pytest.raises(SourceChanged, match="has changed since"):
            index.track(1).seek(1.7, verified=True, source=far)
    else:
        assert index.track(1).seek(1.7, verified=True, source=far).sample == 36


def test_the_budget_of_a_source_holds() -> None:
    data = FIXTURES.joinpath("all-sync.mp4").read_bytes()
    index = fragdex.index(data)
    far = Far(data)
    assert index.track(1).seek(1.7, verified=True, source=far).sample == 36
    # Pictures that are looked at one after the other lie in one read.
    assert far.requests == 1
    with pytest.raises(BudgetExceeded):
        index.track(1).seek(1.7, verified=True, source=Far(data, max_bytes=100))
    with pytest.raises(BudgetExceeded):
        index.track(1).seek(1.7, verified=True, source=Far(data, max_requests=0))


def test_ten_hours_without_a_picture_to_start_at_end_with_an_answer() -> None:
    """Every sample marked sync, and each a slice that refers to others."""
    picture = bytes.fromhex("00000002 0930 00000002 419a")
    data = bytearray(movie(fragments=36000, samples=1, fps=1, fragmented=False))
    index = fragdex.index(bytes(data))
    track = index.track(1)
    table = track.samples
    assert float(track.stop or 0) == 36000
    assert table.sync.all()
    # the makers' media bytes hold no picture at all; some of ours are put there
    for start, size in zip(table.offset.tolist(), table.size.tolist(), strict=True):
        data[start : start + size] = picture[:size].ljust(size, b"\0")
    source = fragdex.open_source(bytes(data))
    with pytest.raises(NoSyncSample, match="any of 4,096 samples"):
        track.seek(35000, verified=True, source=source)
    assert source.requests < 3 * 4096
    before = source.requests
    with pytest.raises(NoSyncSample, match="any of 10 samples"):
        track.seek(35000, verified=True, source=source, look_back=10)
    assert source.requests - before <= 20
    short = movie(fragments=5, samples=1)
    few = fragdex.index(short).track(1)
    with pytest.raises(NoSyncSample, match="any of the 5 samples marked sync of track 1"):
        few.seek(0.1, verified=True, source=short)


def test_encrypted_pictures_are_told_by_their_clear_bytes() -> None:
    for name in ("frag-encrypted.mp4", "piff-encrypted.ismv"):
        index = fragdex.index(FIXTURES / name, exact=True)
        assert index.track(1).seek(1.7, verified=True) == index.track(1).seek(1.7)
    with pytest.raises(UnverifiedSync, match="track 1: it is encrypted"):
        fragdex.index(FIXTURES / "encrypted.mp4").track(1).seek(1.7, verified=True)


def test_an_index_of_fragments_alone_says_what_it_lacks() -> None:
    path = FIXTURES / "frag-global-sidx-video.mp4"
    source = fragdex.open_source(path)
    source.remote = True
    index = fragdex.index(source)
    assert index.how.method == "sidx"
    with pytest.raises(InexactIndex, match="exact=True"):
        index.track(1).seek(1.7, verified=True)


@settings(max_examples=60)
@given(st.data())
def test_broken_media_never_hang_it(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(ALL_SYNC))
    whole = FIXTURES.joinpath(name).read_bytes()
    track = fragdex.index(whole, exact=True).track(1)
    broken = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 30))):
        at = data.draw(st.integers(2000, len(whole) - 1))
        broken[at] = data.draw(st.integers(0, 255))
    try:
        hit = track.seek(data.draw(st.floats(-1, 3)), verified=True, source=bytes(broken))
        assert hit.sample is not None
    except fragdex.FragdexError:
        pass
