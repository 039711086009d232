"""Files whose times jump by hours and days: no work is done for time that holds nothing."""

import shutil
from itertools import pairwise

import av
import numpy as np
import pytest

import fragdex
from fragdex.transcode.tracks import SCRUB_TRACK
from transcode.test_process import laws, packets, pictures, process

HOUR = 3600
DAYS = 47 * HOUR


def jumped(source, path, starts, last=None):
    """A file of one stream with other times: second n of the source begins at `starts[n]` seconds.

    `last`: how long its last packet says that it lasts, seconds.
    """
    with av.open(str(source)) as given, av.open(str(path), "w") as out:
        stream = given.streams[0]
        target = out.add_stream_from_template(stream)
        packets = [packet for packet in given.demux(stream) if packet.size]
        second = 0
        for packet in packets:
            if stream.type == "audio" or packet.is_keyframe:
                second = min(max(0, int(packet.pts * packet.time_base)), len(starts) - 1)
            later = int((starts[second] - second) / packet.time_base)
            packet.pts, packet.dts = packet.pts + later, packet.dts + later
            if last is not None and packet is packets[-1]:
                packet.duration = int(last / packet.time_base)
            packet.stream = target
            out.mux(packet)
    return path


def holes(path):
    """How long its holes are, seconds."""
    return [b - a for a, b in pairwise(times(path)) if b - a > 5]


def samples(path):
    """How many samples of sound a file decodes to."""
    with av.open(str(path)) as container:
        return sum(frame.samples for frame in container.decode(audio=0))


def times(path):
    return sorted(time for _, time, _ in packets(path))


def jumps(path):
    """Where its times leap by more than 5 s: from and to which second."""
    return [round(at) for pair in pairwise(times(path)) if pair[1] - pair[0] > 5 for at in pair]


HOLES = {
    "at the start": [DAYS, DAYS + 1, DAYS + 2],
    "in the middle": [0, DAYS, DAYS + 1],
    "before the end": [0, 1, DAYS],
    "several": [0, 5 * HOUR, 30 * HOUR],
    "of two hours": [0, 1, 2 * HOUR],
    "of twenty minutes": [0, 1, 1200],
}


@pytest.mark.parametrize("starts", HOLES.values(), ids=HOLES)
@pytest.mark.parametrize("codec", ["ac3", "aac", "libopus", "flac"])
def test_holes_in_sound_are_kept_and_cost_nothing(codec, starts, made, tmp_path):
    whole = made("whole.mkv", audio=codec, seconds=3)
    source = jumped(whole, tmp_path / "holes.mkv", starts)
    (one,) = process(source, tmp_path / "made").values()
    laws(one)
    assert jumps(one.path) == pytest.approx(jumps(source), abs=1)
    # 60 s of silence, and as much as there is sound, are the most that may be filled in
    assert samples(one.path) <= 48000 * 60 + 2 * samples(source)
    assert times(one.path)[0] == pytest.approx(max(-0.03, starts[0]), abs=0.06)
    assert times(one.path)[-1] == pytest.approx(times(source)[-1], abs=0.06)
    assert one.byte_size < 4 * source.stat().st_size + 4096
    (track,) = fragdex.open_index(one.index_path).tracks
    assert float(track.stop) == pytest.approx(starts[-1] + 1, abs=0.1)


def test_short_holes_are_filled_so_that_every_player_plays_on(made, tmp_path):
    source = jumped(made("whole.mkv", audio="ac3", seconds=3), tmp_path / "holes.mkv", [0, 11, 22])
    (one,) = process(source, tmp_path / "made").values()
    laws(one)
    assert not jumps(one.path)
    assert samples(one.path) == pytest.approx(23 * 48000, abs=4096)
    with av.open(one.path) as container:
        sound = np.concatenate([f.to_ndarray()[0] for f in container.decode(audio=0)])
    heard = [np.abs(sound[at * 48000 + 9600 : at * 48000 + 38400]).max() > 0.1 for at in range(23)]
    assert [at for at, loud in enumerate(heard) if loud] == [0, 11, 22]


def test_silence_is_filled_in_as_long_as_there_is_sound_for_it(made, tmp_path):
    starts = [50 * n for n in range(12)]
    source = jumped(made("whole.mkv", audio="ac3", seconds=12), tmp_path / "holes.mkv", starts)
    (one,) = process(source, tmp_path / "made").values()
    laws(one)
    assert samples(one.path) <= 48000 * 60 + 2 * samples(source)
    assert len(jumps(one.path)) == 20
    assert times(one.path)[-1] == pytest.approx(times(source)[-1], abs=0.06)


def test_a_hole_leaves_the_sound_on_both_sides_as_it_was(made, tmp_path):
    source = jumped(made("whole.mkv", audio="flac", seconds=2), tmp_path / "h.mkv", [0, DAYS])
    (one,) = process(source, tmp_path / "made").values()
    with av.open(one.path) as after, av.open(str(source)) as before:
        kept_frames, wanted = (
            [(frame.time, frame.to_ndarray()) for frame in container.decode(audio=0)]
            for container in (after, before)
        )
    assert [t for t, _ in kept_frames] == pytest.approx([t for t, _ in wanted], abs=1e-3)
    assert all(np.array_equal(a, b) for (_, a), (_, b) in zip(kept_frames, wanted, strict=True))


@pytest.mark.parametrize("codec", ["ac3", "aac", "libopus", "mpeg4", "libx264"])
def test_a_last_packet_that_says_it_lasts_for_days(codec, made, tmp_path):
    kind = "video" if codec in ("mpeg4", "libx264") else "audio"
    options = {"bf": "0"} if codec == "libx264" else None
    whole = made("whole.mov" if kind == "video" else "w.mkv", **{kind: codec}, options=options)
    source = jumped(whole, tmp_path / "long.mkv", [0, 1, 2, 3], last=DAYS)
    for one in process(source, tmp_path / "made").values():
        track = laws(one)
        assert 3.9 < float(track.stop) <= DAYS + 5
        assert times(one.path)[-1] == pytest.approx(times(source)[-1], abs=0.11)
        if kind == "audio":
            assert samples(one.path) <= samples(source) + 2048


VIDEO = {name: starts for name, starts in HOLES.items() if name != "of twenty minutes"}


@pytest.mark.parametrize("starts", VIDEO.values(), ids=VIDEO)
@pytest.mark.parametrize("codec", ["mpeg4", "libx264"])
def test_holes_in_pictures_are_kept(codec, starts, made, tmp_path):
    options = {"bf": "0"} if codec == "libx264" else None
    whole = made("whole.mov", video=codec, seconds=3, options=options)
    source = jumped(whole, tmp_path / "holes.mkv", starts)
    before = pictures(source)
    tracks = process(source, tmp_path / "made")
    after = pictures(tracks[1].path)
    laws(tracks[1], holes(source))
    laws(tracks[SCRUB_TRACK], holes(source))
    assert [t for t, _, _ in after] == pytest.approx([t for t, _, _ in before], abs=2e-3)
    assert [g for _, g, _ in after] == pytest.approx([g for _, g, _ in before], abs=6)
    scrub = pictures(tracks[SCRUB_TRACK].path)
    assert len(scrub) <= len(before)
    assert jumps(tracks[SCRUB_TRACK].path) == pytest.approx(jumps(source), abs=1)
    assert {round(t) for t in starts} <= {round(t) for t, _, key in scrub if key}
    for one in tracks.values():
        (track,) = fragdex.open_index(one.index_path).tracks
        assert float(track.stop) == pytest.approx(starts[-1] + 1, abs=0.2)


def joined(path, made, starts, **what):
    """Recordings that begin at these seconds, one behind the other in one MPEG-TS file."""
    with open(path, "wb") as out:
        for number, start in enumerate(starts):
            part = made(f"part-{number}.ts", seconds=1, start=start, **what)
            with open(part, "rb") as file:
                shutil.copyfileobj(file, out)
    return path


@pytest.mark.parametrize(
    "starts", [[0, 20 * HOUR, 5], [20 * HOUR, 0], [0, 10 * HOUR, 2, 11 * HOUR], [9, 0]], ids=str
)
@pytest.mark.parametrize("what", [{"audio": "mp2"}, {"audio": "aac"}, {"video": "mpeg2video"}])
def test_times_that_jump_back_and_forth_cost_no_more_than_their_bytes(what, starts, made, tmp_path):
    source = joined(tmp_path / "joined.ts", made, starts, **what)
    count = len(packets(source))
    for one in process(source, tmp_path / "made").values():
        laws(one, holes(one.path) if one.type == "video" else ())
        if one.type == "audio":
            assert samples(one.path) <= 48000 * 60 + 2 * samples(source)
        else:
            assert len(packets(one.path)) <= count
        # 33 bits of ticks that fall back are taken for ones that began anew
        assert max(times(one.path)) <= max(starts) + 2**33 / 90_000 + 70
