"""Files of every kind become tracks: the same packets or the same pictures, at the same times."""

from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

import fragdex
from decoding.filming import MATRICES, shown_by
from fragdex.errors import Unprocessable
from fragdex.testing import check_bmff
from fragdex.transcode.process import process_file
from fragdex.transcode.tracks import SCRUB_TRACK

ELST = "trak/edts/elst"


def process(path, folder, **how):
    folder.mkdir()
    with open(path, "rb") as file:
        tracks = process_file(file, folder, **how)
    return {one.track_id: one for one in tracks}


def packets(path, index=0):
    """Data and presentation time (seconds) of the packets of a stream, in decode order."""
    with av.open(str(path)) as container:
        stream = container.streams[index]
        return [
            (bytes(packet), float(packet.pts * packet.time_base), packet.is_keyframe)
            for packet in container.demux(stream)
            if packet.size
        ]


def pictures(path, index=0):
    """Presentation times and mean greys of the frames that are shown."""
    with av.open(str(path)) as container:
        stream = container.streams[index]
        return [
            (frame.time, float(frame.to_ndarray(format="gray").mean()), frame.key_frame)
            for frame in container.decode(stream)
        ]


def first_shown(track):
    """Presentation time of the first sample, which the edit list may hide."""
    return track.presentation(int(track.fragments.cts_min.min()))


def laws(output, holes=()):
    """What holds of every track that was made; `holes` are the lengths of those in its source."""
    index = fragdex.open_index(output.index_path)
    again = fragdex.index(output.path, exact=True)
    (track,) = index.tracks
    assert not index.findings
    assert track.id == (1 if output.track_id == SCRUB_TRACK else output.track_id)
    assert np.array_equal(track.fragments.moof_offset, again.tracks[0].fragments.moof_offset)
    # the index tells the very presentation times that a player sees
    packet_rows = packets(output.path)
    times = [time for _, time, _ in packet_rows]
    assert float(first_shown(track)) == pytest.approx(min(times), abs=1e-3)
    assert float(track.start) == pytest.approx(max(0, min(times)), abs=1e-3)
    assert output.duration_ms >= 0
    assert output.byte_size == index.file.size
    # default-base-is-moof, and every segment begins at an access point
    with open(output.path, "rb") as file:
        data = file.read()
    assert check_bmff(data) == []
    box = fragdex.boxes.parse(data)
    heads = [b for moof in box if moof.type == "moof" for b in moof.find_all("traf/tfhd")]
    assert heads
    assert all(head["flags"] & 0x020000 for head in heads)
    # one edit that is not empty: what players know
    (edits,) = [b["entries"] for moov in box if moov.type == "moov" for b in moov.find_all(ELST)]
    assert len(edits) == 1
    assert edits["media_time"][0] >= 0
    if output.type == "video":
        samples = again.tracks[0].samples
        firsts = track.fragments.sample_start
        assert samples.sync[firsts].all()
        keys = sorted(time for _, time, key in packet_rows if key)
        limit = 1.2 if output.track_id == SCRUB_TRACK else 10.5
        far = [b - a for a, b in pairwise([*keys, times[-1]]) if b - a > limit]
        assert len(far) <= len(holes)
        assert all(a - limit <= b for a, b in zip(sorted(far), sorted(holes), strict=False))
    return again.tracks[0]


COPIED = [
    "faststart.mp4", "frag-default-base.mp4", "moov-last.mp4", "quicktime.mov", "flash.f4v",
    "video-late.mp4", "audio-late.mp4", "start-7s.mp4", "frag-start-7s.mp4", "negative-cts.mp4",
    "variable-rate.mp4", "ntsc.mp4", "av1-opus.mp4", "vp9-flac.mp4", "cover.mp4",
    "three-audio.mp4", "track-ids.mp4", "surround.mp4", "frag-tfdt-over-32-bits.mp4", "avc3.mp4",
]  # fmt: skip


@pytest.mark.parametrize("name", COPIED)
def test_copied_packets_are_the_source_s_at_the_source_s_times(name, fixture_file, tmp_path):
    source = fixture_file(name)
    tracks = process(source, tmp_path / "made")
    copied = [one for one in tracks.values() if one.probe_info["copied"]]
    assert copied
    for one in copied:
        laws(one)
        # AAC may lose a header of its own kind on the way into MP4; nothing else changes.
        before, after = packets(source, one.probe_info["index"]), packets(one.path)
        assert [data for data, _, _ in after] == [data for data, _, _ in before]
        assert [t for _, t, _ in after] == pytest.approx([t for _, t, _ in before], abs=1e-3)


def test_the_scrub_track_alone_is_the_one_of_the_whole(fixture_file, tmp_path):
    source = fixture_file("frag-default-base.mp4")
    whole = process(source, tmp_path / "whole")[SCRUB_TRACK]
    alone = process(source, tmp_path / "alone", scrub_alone=True)
    assert set(alone) == {SCRUB_TRACK}
    laws(alone[SCRUB_TRACK])
    assert packets(alone[SCRUB_TRACK].path) == packets(whole.path)
    assert process(fixture_file("alac.m4a"), tmp_path / "none", scrub_alone=True) == {}


def shown_until(path):
    """Where the last picture of the first video ends, in seconds."""
    with av.open(str(path)) as container:
        (stream, *_) = container.streams.video
        shown = [p for p in container.demux(stream) if p.size]
        return float(max(p.pts + p.duration for p in shown) * stream.time_base)


@pytest.mark.parametrize(
    "name",
    [
        "faststart.mp4",
        "ntsc.mp4",
        "variable-rate.mp4",
        "video-late.mp4",
        "hevc-aac.mp4",
        "av1-opus.mp4",
    ],
)
def test_the_last_picture_of_the_scrub_track_lasts_until_the_video_ends(
    name, fixture_file, tmp_path
):
    source = fixture_file(name)
    scrub = process(source, tmp_path / "made", scrub_alone=True)[SCRUB_TRACK]
    assert shown_until(scrub.path) == pytest.approx(shown_until(source), abs=1e-3)
    (track,) = fragdex.index(scrub.path, exact=True).tracks
    assert float(track.stop) == pytest.approx(shown_until(source), abs=1e-3)


ENCODED = [
    ("hevc-aac.mp4", "h264"), ("mpeg2-ac3.mp4", "h264"), ("prores.mov", "h264"),
    ("mjpeg.mp4", "h264"), ("raw.mov", "h264"), ("frag-every-frame.mp4", "h264"),
    ("frag-hvc1.mp4", "h264"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "codec"), ENCODED)
def test_encoded_pictures_are_the_source_s_at_the_source_s_times(
    name, codec, fixture_file, tmp_path
):
    source = fixture_file(name)
    tracks = process(source, tmp_path / "made")
    one = tracks[1]
    assert one.codec == codec
    assert not one.probe_info["copied"]
    assert one.probe_info["reasons"]
    laws(one)
    before = [p for p in pictures(source) if p[0] >= 0]
    after = pictures(one.path)
    if name != "frag-every-frame.mp4":  # which shows some of its pictures twice
        assert [t for t, _, _ in after] == pytest.approx([t for t, _, _ in before], abs=2e-3)
        assert [g for _, g, _ in after] == pytest.approx([g for _, g, _ in before], abs=6)
    assert after[0][2]


@pytest.mark.parametrize(
    "name", ["alac.m4a", "amr.3gp", "pcm.mov", "mulaw.mov", "mpeg1-eac3.mp4", "ima4.mov"]
)
def test_encoded_audio_is_as_long_as_the_source(name, fixture_file, tmp_path):
    source = fixture_file(name)
    tracks = process(source, tmp_path / "made")
    (one,) = [m for m in tracks.values() if m.type == "audio"]
    assert one.codec == "aac"
    laws(one)
    with av.open(str(one.path)) as container:
        heard = sum(f.samples / f.sample_rate for f in container.decode(audio=0))
    with av.open(str(source)) as container:
        wanted = sum(f.samples / f.sample_rate for f in container.decode(audio=0))
    assert heard == pytest.approx(wanted, abs=0.15)


CONTAINERS = [
    ("film.mkv", {"video": "libx264", "audio": "libmp3lame"}, ["h264", "aac"]),
    ("film.webm", {"video": "libvpx-vp9", "audio": "libopus"}, ["vp9", "opus"]),
    ("old.webm", {"video": "libvpx", "audio": "libopus"}, ["h264", "opus"]),
    ("film.ts", {"video": "libx264", "audio": "aac"}, ["h264", "aac"]),
    ("film.avi", {"video": "mpeg4", "audio": "libmp3lame"}, ["h264", "aac"]),
    ("film.flv", {"video": "libx264", "audio": "aac"}, ["h264", "aac"]),
    ("song.mp3", {"audio": "libmp3lame"}, ["aac"]),
    ("song.wav", {"audio": "pcm_s16le"}, ["aac"]),
    ("song.flac", {"audio": "flac"}, ["flac"]),
    ("song.ogg", {"audio": "libopus"}, ["opus"]),
    ("ten.mp4", {"video": "libx264", "pix_fmt": "yuv420p10le"}, ["h264"]),
]


@pytest.mark.parametrize(("name", "what", "codecs"), CONTAINERS, ids=[c[0] for c in CONTAINERS])
def test_files_of_every_container_become_tracks(name, what, codecs, made, tmp_path):
    options = {"preset": "ultrafast"} if what.get("video") == "libx264" else {}
    source = made(name, seconds=3, options=options, **what)
    tracks = process(source, tmp_path / "made")
    media = [one for track_id, one in sorted(tracks.items()) if track_id != SCRUB_TRACK]
    assert [one.codec for one in media] == codecs
    for one in tracks.values():
        laws(one)
        assert one.duration_ms == pytest.approx(3000, abs=250)
    if "video" in what:
        source_start = min(t for _, t, _ in packets(source))
        begins = first_shown(fragdex.open_index(media[0].index_path).tracks[0])
        assert float(begins) == pytest.approx(source_start, abs=0.05)
        before, after = pictures(source), pictures(media[0].path)
        assert len(after) == len(before) == 75
        assert [g for _, g, _ in after] == pytest.approx([g for _, g, _ in before], abs=6)


def test_the_scrub_track_is_small_and_has_a_key_frame_each_second(made, tmp_path):
    source = made(
        "wide.mp4", video="libx264", seconds=4, width=642, height=358, key=100, start=2,
        options={"preset": "ultrafast"},
    )  # fmt: skip
    tracks = process(source, tmp_path / "made")
    scrub = tracks[SCRUB_TRACK]
    laws(scrub)
    with av.open(scrub.path) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (320, 178)
    shown = pictures(scrub.path)
    assert len(shown) <= 41
    assert [t for t, _, key in shown if key] == pytest.approx([2, 3, 4, 5], abs=0.05)
    assert scrub.byte_size < tracks[1].byte_size


def test_a_video_whose_access_points_are_too_far_apart_is_encoded(made, tmp_path):
    source = made(
        "one-gop.mkv", video="libx264", seconds=12, width=64, height=48, key=1000,
        options={"preset": "ultrafast", "sc_threshold": "0"},
    )  # fmt: skip
    one = process(source, tmp_path / "made")[1]
    assert one.probe_info["reasons"] == ["its access points are too far apart"]
    keys = [t for _, t, key in packets(one.path) if key]
    assert keys == pytest.approx([0, 2, 4, 6, 8, 10], abs=0.05)
    assert len(pictures(one.path)) == 300
    laws(one)


def test_an_open_gop_is_not_called_an_access_point(made, tmp_path):
    """Muxers mark the I picture of an open group of pictures; only IDR pictures stay marked."""
    source = made(
        "open.mkv", video="libx264", seconds=8, key=50,
        options={"preset": "ultrafast", "bf": "2", "x264-params": "open-gop=1:scenecut=0"},
    )  # fmt: skip
    assert len([1 for _, _, key in packets(source) if key]) > 1
    one = process(source, tmp_path / "made")[1]
    track = laws(one)
    if one.probe_info["copied"]:
        assert track.samples.sync.sum() == 1


def test_segments_are_about_two_seconds_long(made, tmp_path):
    source = made(
        "keys.mp4", video="libx264", audio="aac", seconds=9, key=10,
        options={"preset": "ultrafast"},
    )  # fmt: skip
    for one in process(source, tmp_path / "made").values():
        track = laws(one)
        starts = track.fragments.cts_min / track.timescale
        assert np.all(np.diff(starts) >= 1.9)
        assert np.all(np.diff(starts) <= 2.6)


def test_rotation_stays(made, tmp_path):
    for codec, form in (("libx264", "copied.mp4"), ("mpeg4", "encoded.mp4")):
        source = made(form, video=codec, seconds=1, rotation=90)
        one = process(source, tmp_path / form.removesuffix(".mp4"))[1]
        with av.open(str(source)) as before, av.open(one.path) as after:
            turns = [next(c.decode(video=0)).rotation for c in (before, after)]
        assert turns[0] == turns[1] != 0


@pytest.mark.parametrize("name", [name for name in MATRICES if name != "plain"])
def test_pictures_are_shown_as_before(made, name, tmp_path):
    """Also those that are mirrored, copied and encoded."""
    for codec, form in (("libx264", "copied.mp4"), ("mpeg4", "encoded.mp4")):
        data = shown_by(made(form, video=codec, seconds=1).read_bytes(), MATRICES[name][0])
        (tmp_path / form).write_bytes(data)
        one = process(tmp_path / form, tmp_path / form.removesuffix(".mp4"))[1]
        before, after = (
            np.asarray(fragdex.Frames(path, format="gray")[0].data, np.int16)
            for path in (tmp_path / form, Path(one.path))
        )
        assert before.shape == after.shape
        assert np.abs(before - after).mean() < 3


def test_progress_goes_from_0_to_1(fixture_file, tmp_path):
    seen = []
    with open(fixture_file("faststart.mp4"), "rb") as file:
        process_file(file, tmp_path, seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("encrypted.mp4", "encrypted"),
        ("piff-encrypted.ismv", "encrypted"),
        ("ttml.mp4", "neither video nor audio"),
        ("dash-init.mp4", "no media data"),
        ("cut-moov-last.mp4", "no moov"),
        ("dash-segment-1.m4s", "not a media file"),
    ],
)
def test_what_cannot_be_processed_says_why(name, reason, fixture_file, tmp_path):
    with pytest.raises(Unprocessable, match=reason):
        process(fixture_file(name), tmp_path / "made")


def test_a_file_that_was_cut_gives_what_is_there(fixture_file, tmp_path):
    tracks = process(fixture_file("cut-in-mdat.mp4"), tmp_path / "made")
    for one in tracks.values():
        laws(one)
    assert tracks[1].duration_ms < tracks[1].probe_info["duration"] * 1000 + 1


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"layout": "stereo"}, {"layout": "mono"}),
        ({"layout": "mono"}, {"layout": "5.1"}),
        ({"rate": 48000}, {"rate": 44100}),
    ],
    ids=["fewer channels", "more channels", "another rate"],
)
def test_sound_that_changes_its_form_goes_on(first, then, made, tmp_path):
    """As a broadcast does at an advertisement: one stream, whose frames change."""
    parts = [made(f"{n}.ac3", audio="ac3", seconds=2, **p) for n, p in enumerate([first, then])]
    source = tmp_path / "both.ac3"
    source.write_bytes(b"".join(part.read_bytes() for part in parts))
    (one,) = process(source, tmp_path / "made").values()
    laws(one)
    assert one.duration_ms == pytest.approx(4000, abs=250)
    with av.open(one.path) as container:
        sound = np.concatenate([f.to_ndarray()[0] for f in container.decode(audio=0)])
    rate = first.get("rate", 48000)
    for second in np.array_split(sound, 4):
        assert np.abs(second[rate // 5 : -rate // 5]).max() > 0.1
