"""Every file of the shared corpus is indexed as it should be, or refused as it should be.

The corpus is found through FRAGDEX_CORPUS. Its expected.json holds what two other demuxers say of
each track; docs/disagreements.md settles where they, FFmpeg and we differ.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragdex
from fragdex.errors import TruncatedInput
from oracle.media_files import an_init_for
from oracle.packet_agreement import disagreements, samples_by_track
from oracle.payload import inside_mdat, misplaced, payloads

pytestmark = pytest.mark.corpus


@dataclass(frozen=True)
class Right:
    """What an index of all boxes (`exact=True`) has to say.

    Attributes:
        tracks: samples of each track, of each period.
        findings: codes, of all tracks together.
        first: how the index is made where nothing is asked for.
        complete: False where the end is missing.
    """

    tracks: tuple[dict[int, int], ...]
    findings: frozenset[str] = frozenset()
    first: str = "boxes"
    complete: bool = True


def right(*tracks: dict[int, int], findings: str = "", **more: Any) -> Right:
    return Right(tracks, frozenset(findings.split()), **more)


NO_MOOV = "no-timescale"
RIGHT: dict[str, Right] = {
    "fq__dash_video_1.m4s": right({1: 3}, findings=NO_MOOV),
    "fq__dash_video_init.mp4": right({1: 0}),
    # Boxes that introduce a fragment, and no fragment.
    "fq__emsg.mp4": right({}, findings="no-movie"),
    "fq__fragmented.mp4": right({1: 3, 2: 6}, findings="stale-base-offset", first="sidx"),
    "fq__stz2.mp4": right({1: 3}, first="stbl"),
    # Two uuid boxes and nothing else.
    "fq__tfxd_tfrf.mp4": right({}, findings="no-movie"),
    "fq__vp9.mp4": right({1: 1}, first="stbl"),
    "livesim2__896605655.cmfv": right({1: 37}, findings=NO_MOOV),
    "mp4ff__1.m4s": right({2: 60}, findings=NO_MOOV),
    "mp4ff__bbb5s_aac.isma": right({1: 235}, first="mfra"),
    "mp4ff__bbb5s_aac_sidx.mp4": right({3: 235}, first="sidx"),
    "mp4ff__cbcs.mp4": right({1: 182, 2: 5}),
    "mp4ff__interleaved_sidxs_segment.m4s": right({1: 3}, findings=NO_MOOV),
    "mp4ff__main_1.mp4": right({1: 214, 2: 9}),
    # The moof alone: the media data it speaks of is missing.
    "mp4ff__moof_enc.m4s": right({}, findings="truncated", complete=False),
    "mp4ff__multi_sidx_segment.m4s": right({1: 123, 2: 219}, findings=NO_MOOV),
    "mp4ff__opus.mp4": right({1: 50}),
    "mp4ff__prog_8s.mp4": right({1: 375, 2: 240}, first="stbl"),
    "mp4ff__sample_short.ismt": right({1: 8}, findings="no-tfdt"),
    "shaka-packager__BigBuckBunny_10s.ismv": right({1: 300, 2: 470}, first="mfra"),
    "shaka-packager__bear-640x360-audio.mp4": right({1: 119}, first="sidx"),
    "shaka-packager__bear-640x360-av_frag.mp4": right({1: 82, 2: 119}, findings="base-not-moof"),
    "shaka-packager__bear-640x360-hevc.mp4": right({1: 84, 2: 121}, first="stbl"),
    "shaka-packager__bear-640x360-trailing-moov-additional-mdat.mp4": right(
        {1: 82, 2: 119}, first="stbl"
    ),
    "shaka-packager__bear-640x360-v_frag-cenc-aux.mp4": right({1: 82}),
    "shaka-packager__bear-640x360-v_frag-cenc-senc.mp4": right({1: 82}),
    "shaka-packager__bear-av1.mp4": right({1: 82}, first="mfra"),
    "wpt__test.mp4": right({1: 193, 2: 141}),
    "wpt__video_512x288_h264-360k_clear_enc_dashinit.mp4": right({1: 48}, {1: 74}),
}
# Nothing in them is whole: an mdat of 7 GB of which 84 bytes are there, a moov cut within.
REFUSED = {"fq__size64": TruncatedInput, "mp4ff__init_truncated.mp4": TruncatedInput}

# Tracks of which expected.json has other times, and what we hold to be right (first and last dts).
SETTLED = {("shaka-packager__BigBuckBunny_10s.ismv", 2): (-213_333, 99_840_000)}

# What FFmpeg says otherwise, by file and track; the clauses stand in docs/disagreements.md.
FFMPEG_OTHERWISE = {
    ("mp4ff__cbcs.mp4", 2): {"size"},
    ("mp4ff__main_1.mp4", 2): {"size"},
    ("shaka-packager__BigBuckBunny_10s.ismv", 2): {"dts", "pts"},
}
# FFmpeg does not open them: no moov, no track.
NOT_OPENED = {"fq__emsg.mp4", "fq__tfxd_tfrf.mp4", *REFUSED}


def strictly(path: Path, init: bytes | None = None) -> fragdex.Index:
    return fragdex.index(path, exact=True, strict=True, partial=True, init=init)


def test_the_table_names_every_file(corpus: Path) -> None:
    listed = {row["file"] for row in json.loads((corpus / "MANIFEST.json").read_text("utf-8"))}
    assert RIGHT.keys() | REFUSED.keys() == listed


@pytest.mark.parametrize("name", REFUSED)
def test_refused(corpus: Path, name: str) -> None:
    for options in ({}, {"exact": True}, {"strict": True, "exact": True}):
        with pytest.raises(REFUSED[name]) as caught:
            fragdex.index(corpus / name, **options)
        assert caught.value.offset is not None
        assert caught.value.expected is not None


@pytest.mark.parametrize("name", RIGHT)
def test_indexed_as_it_should_be(corpus: Path, name: str) -> None:
    wanted = RIGHT[name]
    index = fragdex.index(corpus / name, exact=True)
    assert tuple({t.id: t.sample_count for t in p.tracks} for p in index.periods) == wanted.tracks
    assert {one.code for one in index.findings} == wanted.findings
    assert index.complete is wanted.complete
    assert index.exact
    size = (corpus / name).stat().st_size
    for track in index.tracks:
        samples = track.samples
        assert len(samples) == track.sample_count
        assert (samples.offset >= 0).all()
        assert (samples.offset + samples.size <= size).all()


@pytest.mark.parametrize("name", RIGHT)
def test_the_cheapest_way_that_can_be_trusted_is_taken(corpus: Path, name: str) -> None:
    index = fragdex.index(corpus / name)
    # Of a small local file an mfra saves nothing.
    assert index.how.method in {RIGHT[name].first, "boxes"}
    assert (index.how.method == "sidx") == (RIGHT[name].first == "sidx")
    exact = fragdex.index(corpus / name, exact=True)
    for mine, truth in zip(index.tracks, exact.tracks, strict=True):
        # An mfra lists access points: its spans may hold several fragments, never split one.
        assert set(mine.fragments.offset.tolist()) <= set(truth.fragments.offset.tolist())
        assert mine.timescale == truth.timescale
        assert mine.codec == truth.codec


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_two_other_demuxers_say_the_same(corpus: Path, name: str) -> None:
    expected = json.loads((corpus / "expected.json").read_text("utf-8"))["files"][name]["tracks"]
    # Of the file with two moovs only the last period is counted there.
    tracks = strictly(corpus / name).periods[-1].tracks
    assert {str(track.id) for track in tracks} == expected.keys()
    for track in tracks:
        theirs, samples = expected[str(track.id)], track.samples
        assert len(samples) == theirs["samples"]
        if not len(samples):
            continue
        assert track.info.handler == theirs["handler"]
        assert track.timescale == (theirs["timescale"] or 0)
        # A protected track is named there by its wrapper, here by what is inside (8.12.1).
        wrapped = track.info.encryption is not None
        assert wrapped == theirs["format"].startswith("enc")
        assert wrapped or track.info.format == theirs["format"]
        rows = np.stack(
            [samples.offset, samples.size, samples.dts, samples.cts, samples.sync], axis=1
        )
        rows = rows[np.argsort(samples.offset, kind="stable")]
        assert digest(rows[:, :2]) == theirs["sha256_pos_size"]
        if (name, track.id) in SETTLED:
            assert (rows[0, 2], rows[-1, 2]) == SETTLED[name, track.id]
            later = theirs["first_dts"] - rows[0, 2]
            rows[:, 2:4] += later
        assert digest(rows) == theirs["sha256_all"]


def digest(rows: Any) -> str:
    lines = "\n".join(" ".join(map(str, row)) for row in rows.tolist())
    return hashlib.sha256(lines.encode()).hexdigest()


@pytest.mark.parametrize("name", sorted(RIGHT.keys() - NOT_OPENED))
def test_ffmpeg_says_the_same(corpus: Path, name: str) -> None:
    oracle = pytest.importorskip("oracle.ffmpeg_packets", exc_type=ImportError)
    path = corpus / name
    ids = [track.id for track in strictly(path).tracks]
    init = b""
    if RIGHT[name].findings >= {NO_MOOV} or name == "mp4ff__moof_enc.m4s":
        init = an_init_for(corpus / "fq__dash_video_init.mp4", ids)
    index = strictly(path, init or None)
    theirs = oracle.packets(path, init=init)
    for track_id, samples in samples_by_track(index).items():
        differences = disagreements(
            samples,
            theirs.get(track_id, []),
            size=path.stat().st_size,
            fragmented="boxes" in index.how.method,
        )
        assert differences == FFMPEG_OTHERWISE.get((name, track_id), set()), f"track {track_id}"


def test_exceptions_are_few(corpus: Path) -> None:
    from oracle.test_ffmpeg_packets import COMPARED, EXCEPTIONS, index_of

    ours = sum(len(period) for one in RIGHT.values() for period in one.tracks)
    theirs = sum(len(index_of(name).tracks) for name in COMPARED)
    assert len(FFMPEG_OTHERWISE) + len(EXCEPTIONS) <= 0.05 * (ours + theirs)


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_pictures_lie_where_the_index_says(corpus: Path, name: str) -> None:
    assert misplaced((corpus / name).read_bytes(), fragdex.index(corpus / name, exact=True)) == []


# ---- positions that the rule gets wrong ------------------------------------------------------


REPAIRED = ("fq__fragmented.mp4", "shaka-packager__bear-640x360-av_frag.mp4")


@pytest.mark.parametrize("name", REPAIRED)
def test_repaired_positions_lie_in_the_media_data(corpus: Path, name: str) -> None:
    data = (corpus / name).read_bytes()
    mended, strict = fragdex.index(corpus / name, exact=True), strictly(corpus / name)
    assert all(inside_mdat(data, track.samples) for track in mended.tracks)
    assert not all(inside_mdat(data, track.samples) for track in strict.tracks)
    assert misplaced(data, mended) == []
    for track, by_the_rule in zip(mended.tracks, strict.tracks, strict=True):
        assert (track.samples.dts == by_the_rule.samples.dts).all()
        assert (track.samples.size == by_the_rule.samples.size).all()


@pytest.mark.parametrize("name", REPAIRED)
def test_sound_decodes_at_repaired_positions_alone(corpus: Path, name: str) -> None:
    data = (corpus / name).read_bytes()
    mended, strict = fragdex.index(corpus / name, exact=True), strictly(corpus / name)
    assert undecodable(data, corpus / name, mended.track(2).samples) == 0
    assert undecodable(data, corpus / name, strict.track(2).samples) > 0


def undecodable(data: bytes, path: Path, samples: fragdex.tables.SampleTable) -> int:
    """How many samples of an AAC track FFmpeg's decoder refuses, each asked for itself."""
    av = pytest.importorskip("av", exc_type=ImportError)
    refused = 0
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        for sample in payloads(data, samples):
            decoder = av.CodecContext.create("aac", "r")
            decoder.extradata = stream.codec_context.extradata
            try:
                decoder.decode(av.Packet(sample))
            except av.error.FFmpegError:
                refused += 1
    return refused


# ---- single cases ---------------------------------------------------------------------------


def test_a_segment_learns_its_times_from_its_init(corpus: Path) -> None:
    segment = corpus / "fq__dash_video_1.m4s"
    index = fragdex.index(segment, init=corpus / "fq__dash_video_init.mp4")
    assert index.track(1).codec == "avc1.F4100D"
    assert index.track(1).timescale == 12800
    assert float(index.track(1).seek(0.1).time) == pytest.approx(1024 / 12800)
    with pytest.raises(fragdex.FragdexError, match="timescale"):
        fragdex.index(segment).track(1).seek(0)


def test_two_moovs_make_two_periods(corpus: Path) -> None:
    index = fragdex.index(corpus / "wpt__video_512x288_h264-360k_clear_enc_dashinit.mp4")
    clear, protected = (period.track(1) for period in index.periods)
    assert clear.info.encryption is None
    assert protected.info.encryption is not None
    assert protected.info.encryption.scheme == "cenc"
    with pytest.raises(fragdex.FragdexError, match="2 periods"):
        index.track(1)


def test_a_start_before_zero_is_kept(corpus: Path) -> None:
    index = fragdex.index(corpus / "shaka-packager__BigBuckBunny_10s.ismv", exact=True)
    start = index.track(2).start
    assert start is not None
    assert float(start) == pytest.approx(-0.0213333)
