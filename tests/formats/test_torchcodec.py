"""Frame mappings in the form that torchcodec reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

import fragdex
from fragdex.errors import BuildError, InexactIndex, TrackNotFound
from fragdex.formats import torchcodec
from fragdex.fragments.table import SampleTable
from fragdex.fragments.track_info import Edit, Movie, TrackInfo
from fragdex.muxing.kinds import clip
from fragdex.seeking.model import FileInfo, How, Index, Period, Track
from strategies.indexes import indexes, tables_from_samples

FIXTURES = Path(__file__).parents[2] / "fixtures"
SAMPLES = SampleTable.of(
    {
        "offset": [0, 9, 10, 11],
        "size": [9, 1, 1, 1],
        "dts": [0, 1001, 2002, 3003],
        "cts": [1001, 3003, 2002, 4004],
        "duration": [1001, 1001, 1001, 1001],
        "sync": [True, False, False, True],
    }
)


def index_of(info: TrackInfo, samples: SampleTable | None = SAMPLES) -> Index:
    fragments, sync = tables_from_samples(SAMPLES, [3])
    shift = info.shift(1000)
    track = Track(info, fragments, sync, shift=shift, movie_timescale=1000, samples=samples)
    period = Period(0, (), Movie(1000, 0, True, (info,)), (track,))
    return Index(FileInfo(), How("boxes", True), [period])


INFO = TrackInfo(1, "vide", "video", 30_000, "avc1", None, edits=(Edit(0, 1001),))


def test_the_exact_text() -> None:
    """In presentation order: the first and the last frame tell the ends of the stream."""
    assert torchcodec.write(index_of(INFO)) == (
        b'{"frames":['
        b'{"pts":0,"duration":1001,"key_frame":1},'
        b'{"pts":1001,"duration":1001,"key_frame":0},'
        b'{"pts":2002,"duration":1001,"key_frame":0},'
        b'{"pts":3003,"duration":1001,"key_frame":1}]}'
    )


def test_frames_that_the_edit_list_hides_are_left_out() -> None:
    """Those outside of its span; the first that is shown stands at its start."""
    later = replace(INFO, edits=(Edit(100, -1), Edit(84, 1000)))  # 3000 ticks of delay
    frames = json.loads(torchcodec.write(index_of(later)))["frames"]
    assert [frame["pts"] for frame in frames] == [3000, 4001, 5002]  # cts of 1000 to 3520


def test_frames_whose_key_frame_is_hidden_have_no_mapping() -> None:
    """By the key frames of a mapping torchcodec seeks; without one it fails."""
    hidden = replace(INFO, edits=(Edit(67, 1500),))
    with pytest.raises(BuildError, match="hides the key frame of 2 frames") as refused:
        torchcodec.write(index_of(hidden))
    assert refused.value.path == "moov/trak/edts/elst"
    data = (FIXTURES / "faststart.mp4").read_bytes()
    index = fragdex.index(data, exact=True)
    for exact in (True, False):
        view = clip(index, 0.7, 0.9, source=data, at_key_frame=not exact)
        cut = fragdex.index(view.read(source=data), exact=True)
        if exact:
            with pytest.raises(BuildError, match="at_key_frame=True"):
                torchcodec.write(cut)
        else:
            assert json.loads(torchcodec.write(cut))["frames"][0]["key_frame"] == 1


@given(indexes(max_periods=1))
def test_every_frame_of_a_track_without_edits_is_in_it(index: Index) -> None:
    for track in index.tracks:
        try:
            frames = json.loads(torchcodec.write(index, track=track.id))["frames"]
        except BuildError:  # the key frame is hidden
            assert track.info.edits
            continue
        times = [frame["pts"] for frame in frames]
        assert times == sorted(times)
        assert all(set(frame) == {"pts", "duration", "key_frame"} for frame in frames)
        if not track.info.edits:
            assert len(frames) == len(track.samples)


@pytest.mark.parametrize(
    "name",
    ["frag-negative-cts", "frag-cmaf", "frag-hvc1", "negative-cts", "start-7s", "piff.ismv"],
)
def test_times_are_those_of_ffmpegs_libraries(name: str) -> None:
    av = pytest.importorskip("av")
    path = FIXTURES / (name if "." in name else f"{name}.mp4")
    if not path.exists():
        pytest.skip(f"{path.name} is not made")
    with av.open(str(path)) as container:
        packets = [p for p in container.demux(video=0) if p.size and not p.is_discard]
        track = container.streams.video[0].id
    frames = json.loads(torchcodec.write(fragdex.index(path, exact=True), track=track))["frames"]
    assert [frame["pts"] for frame in frames] == sorted(packet.pts for packet in packets)


def test_which_track() -> None:
    sound = replace(INFO, kind="audio", handler="soun")
    with pytest.raises(TrackNotFound, match="no video track"):
        torchcodec.write(index_of(sound))
    assert torchcodec.write(index_of(sound), track=1).startswith(b'{"frames":[{"pts":0,')
    with pytest.raises(TrackNotFound):
        torchcodec.write(index_of(sound), track=2)
    with pytest.raises(InexactIndex):
        torchcodec.write(index_of(INFO, samples=None))
