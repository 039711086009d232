"""`fragdex extract`: clips that play, with the samples of their source."""

import io
import json

import pytest

import fragdex
from fragdex.boxes import find_all, parse

av = pytest.importorskip("av")


def packets(data):
    """Stream index → (dts, pts in seconds, bytes, key) as FFmpeg reads them."""
    by_stream = {}
    with av.open(io.BytesIO(data)) as container:
        for packet in container.demux():
            if packet.size:
                times = [
                    None if t is None else t * packet.time_base for t in (packet.dts, packet.pts)
                ]
                entry = (*times, bytes(packet), packet.is_keyframe)
                by_stream.setdefault(packet.stream.index, []).append(entry)
    return by_stream


def sample_bytes(data, index, track_id):
    table = index.track(track_id).samples
    return [
        data[a : a + n] for a, n in zip(table.offset.tolist(), table.size.tolist(), strict=True)
    ]


def shown(index, track_id):
    """Exact presentation time of each sample."""
    track = index.track(track_id)
    return [track.presentation(cts).fraction for cts in track.samples.cts.tolist()]


def place(part, whole):
    """Where a list stands in another one."""
    places = [n for n in range(len(whole) - len(part) + 1) if whole[n : n + len(part)] == part]
    assert places, "these samples do not stand in the source one behind the other"
    return places


FRAGMENTED = (
    "frag-cmaf.mp4",
    "frag-default-base.mp4",
    "frag-base-data-offset.mp4",
    "frag-base-implicit.mp4",
    "frag-separate-moof-offset.mp4",
    "frag-interleaved-truns-offset.mp4",
    "frag-global-sidx.mp4",
    "frag-global-sidx-stale-base.mp4",
    "frag-every-frame.mp4",
    "frag-negative-cts.mp4",
    "frag-hevc-aac.mp4",
    "frag-av1-opus.mp4",
    "frag-vp9-flac.mp4",
    "frag-encrypted.mp4",
    "frag-prft.mp4",
    "piff.ismv",
    "piff-encrypted.ismv",
)
PROGRESSIVE = (
    "faststart.mp4",
    "moov-last.mp4",
    "negative-cts.mp4",
    "no-edit-list.mp4",
    "open-gop.mp4",
    "video-late.mp4",
    "audio-late.mp4",
    "start-7s.mp4",
    "hevc-aac.mp4",
    "av1-opus.mp4",
    "all-intra.mp4",
    "quicktime.mov",
    "hybrid.mp4",
    "text.mp4",
    "timecode.mov",
    "rtp-hints.mp4",
    "track-ids.mp4",
    "encrypted.mp4",
)


@pytest.mark.parametrize("name", FRAGMENTED + PROGRESSIVE)
@pytest.mark.parametrize("span", [(0.6, 1.3), (-1.0, float("inf"))], ids=["middle", "all"])
def test_a_clip_has_the_samples_of_its_source_at_their_distances(
    call, fixtures, tmp_path, name, span
):
    data = (fixtures / name).read_bytes()
    source = fragdex.index(data, exact=True)
    begins = min(float(track.start) for track in source.tracks if track.start is not None)
    start, stop = begins + span[0], begins + span[1]
    words = [f"{start:.6f}", "end" if span[1] > 1e9 else f"{stop:.6f}"]
    ran = call("extract", fixtures / name, "-o", "clip.mp4", "--json", "--", *words)
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    clip_data = (tmp_path / "clip.mp4").read_bytes()
    assert answer["size"] == len(clip_data)
    clip = fragdex.index(clip_data, exact=True, strict=True)
    assert not [f for f in clip.findings if f.code != "unknown-brand"], clip.findings

    moved = set()
    for track in clip.tracks:
        if not track.sample_count:
            continue
        part = sample_bytes(clip_data, clip, track.id)
        if track.kind == "timecode":
            # the frames before the clip have passed
            (count,), (began,) = part, sample_bytes(data, source, track.id)
            frames = max(0, int((answer["start"] - begins) * 25))
            assert int.from_bytes(count, "big") == int.from_bytes(began, "big") + frames
            continue
        at = place(part, sample_bytes(data, source, track.id))
        if track.kind in ("video", "audio"):
            ours, theirs = shown(clip, track.id), shown(source, track.id)
            # a tick of each timescale is what rounding may cost
            slack = 1.0 / track.timescale + 1e-9
            # The picture on show at the start begins there, wherever it began in the source.
            by_place = [
                {round(float(theirs[n + i] - t), 6) for i, t in enumerate(ours) if t}
                or {float(theirs[n] - ours[0])}
                for n in at
            ]
            constant = [gaps for gaps in by_place if max(gaps) - min(gaps) <= slack]
            assert constant, "distances in time have changed"
            moved.add((min(constant[0]), slack))
            assert (
                track.samples.sync == source.track(track.id).samples.sync[at[0] : at[0] + len(part)]
            ).all()
    # sound and picture are moved by the same time
    times = [time for time, _ in moved]
    assert max(times) - min(times) <= 2 * max(slack for _, slack in moved) + 2e-6
    assert -0.1 < min(float(t.start) for t in clip.tracks if t.start is not None) < 0.5
    if span[1] < 1e9:
        video = next((t for t in clip.tracks if t.kind == "video"), clip.tracks[0])
        assert answer["start"] <= start + 1e-6
        assert answer["stop"] >= min(stop, source.duration + begins) - 0.1
        assert video.samples.sync[0]


@pytest.mark.parametrize(
    "name", [n for n in FRAGMENTED + PROGRESSIVE if "encrypted" not in n and n != "video-late.mp4"]
)
def test_ffmpeg_plays_a_clip_from_its_first_picture(call, fixtures, tmp_path, name):
    begins = fragdex.index(fixtures / name).tracks[0].start.seconds
    ran = call("extract", fixtures / name, begins + 0.7, begins + 1.2, "-o", "clip.mp4")
    assert ran.code == 0, ran.err
    with av.open(str(tmp_path / "clip.mp4")) as container:
        pictures = list(container.decode(video=0))
    assert len(pictures) >= 8
    assert float(pictures[0].time) < 0.3


def test_whole_fragments_are_copied_and_the_line_says_what_they_span(run, files, tmp_path):
    ran = run("extract", "a.mp4", "0.25", "0.35", "--fragmented", "-o", "clip.mp4")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("clip.mp4: 0.200 – 0.400 of a.mp4 (asked: 0.250 – 0.350), whole frag")
    clip = parse((tmp_path / "clip.mp4").read_bytes())
    assert [box.type for box in clip] == ["ftyp", "moov", "moof", "mdat"]
    mdats = {bytes(box["data"]) for box in parse(files["a.mp4"]) if box.type == "mdat"}
    assert bytes(clip[3]["data"]) in mdats
    assert [tfdt["baseMediaDecodeTime"] for tfdt in find_all(clip, "moof/traf/tfdt")] == [0]


def test_the_times_of_the_source_on_request(call, files, tmp_path):
    call("extract", "a.mp4", "0.25", "0.35", "--keep-times", "-o", "clip.mp4")
    whole, clip = parse(files["a.mp4"]), (tmp_path / "clip.mp4").read_bytes()
    (moof,) = find_all(parse(clip), "moof")
    assert moof in find_all(whole, "moof")
    assert (
        fragdex.index(clip).track(1).start == fragdex.index(files["a.mp4"]).track(1).seek(0.2).time
    )


def test_of_a_truncated_file_the_samples_that_are_there(call, files, tmp_path):
    whole = files["progressive.mp4"]
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) * 2 // 3])
    ran = call("extract", "cut.mp4", "0", "end", "-o", "clip.mp4")
    assert ran.code == 0
    assert "cut.mp4: truncated" in ran.err
    clip = fragdex.index(tmp_path / "clip.mp4")
    assert clip.complete
    assert 0 < clip.track(1).sample_count < fragdex.index(whole).track(1).sample_count
    assert call("extract", "cut.mp4", "0.7", "end", "-o", "clip.mp4").code == 2


def test_one_track_of_a_progressive_file(call, files, tmp_path):
    assert call("extract", "progressive.mp4", "0", "end", "-t", "2", "-o", "clip.mp4").code == 0
    clip = fragdex.index(tmp_path / "clip.mp4")
    assert [track.id for track in clip.tracks] == [2]


def test_a_clip_on_stdout_and_the_words_on_stderr(run, files):
    ran = run("extract", "progressive.mp4", "0.3", "0.4", "-o", "-")
    assert ran.code == 0
    assert fragdex.index(ran.data).track(1).sample_count
    assert ran.err.startswith("-: ")


@pytest.mark.parametrize("command", ["extract", "view"])
def test_what_a_clip_leaves_out_is_named(call, fixtures, command):
    name = str(fixtures / "rtp-hints.mp4")
    span = ["0.5", "1.5"] if command == "extract" else ["-k", "clip", "--start", "0.5"]
    ran = call(command, name, *span, "-o", "clip.mp4", "--json")
    assert ran.code == 0
    (answer,) = (json.loads(line) for line in ran.lines)
    assert [one.partition(" is left")[0] for one in answer["findings"]] == [
        "track 3 (hint)",
        "track 4 (hint)",
    ]
    assert all(one in ran.err for one in answer["findings"])


def test_several_clips_into_a_folder(call, files, tmp_path):
    ran = call("extract", "*.mp4", "0", "0.3", "-o", "clips/", "--jobs", "2")
    assert ran.code == 0
    assert len(list((tmp_path / "clips").iterdir())) == 4


@pytest.mark.parametrize("name", ["a", "progressive"])
def test_from_a_saved_index(call, files, tmp_path, name):
    call("index", f"{name}.mp4")
    assert call("extract", f"{name}.fidx", "0.2", "0.5", "-o", "x.mp4").code == 0
    assert call("extract", f"{name}.mp4", "0.2", "0.5", "-o", "y.mp4").code == 0
    assert (tmp_path / "x.mp4").read_bytes() == (tmp_path / "y.mp4").read_bytes()
    (tmp_path / f"{name}.mp4").unlink()
    assert call("extract", f"{name}.fidx", "0.2", "0.5", "-o", "z.mp4").code == 2


def test_from_what_has_no_name(call, files, tmp_path):
    fragdex.index(files["a.mp4"]).save(tmp_path / "x.fidx")
    call("index", "a.mp4", "-f", "json", "-o", "x.json")
    ran = call("extract", "x.json", "0", "1", "-o", "x.mp4")
    assert ran.code == 2
    assert "does not say which file" in ran.err


def test_segments_with_their_init(call, fixtures, tmp_path):
    segment = fixtures / "dash-segment-1.m4s"
    assert call("extract", segment, "0", "end", "-o", "x.mp4").code == 2
    ran = call("extract", segment, "0", "end", "--init", fixtures / "dash-init.mp4", "-o", "x.mp4")
    assert ran.code == 0, ran.err
    assert packets((tmp_path / "x.mp4").read_bytes())


def test_over_http_a_progressive_file_is_read_in_few_requests(call, tmp_path):
    pytest.importorskip("httpx")
    from fragdex.testing import RangeServer, movie

    data = movie(fragments=50, tracks=2, fragmented=False, reordered=True)
    (tmp_path / "p.mp4").write_bytes(data)
    with RangeServer({"/p.mp4": data}) as server:
        ran = call("extract", server.url, "1", "4", "-o", "x.mp4", "--max-requests", "6")
        assert ran.code == 0, ran.err
    call("extract", "p.mp4", "1", "4", "-o", "y.mp4")
    assert (tmp_path / "x.mp4").read_bytes() == (tmp_path / "y.mp4").read_bytes()


def test_over_http_only_what_is_needed_is_read(call, files, tmp_path):
    pytest.importorskip("httpx")
    from fragdex.testing import RangeServer, movie

    long = movie(fragments=300, samples=20, sidx=True)
    with RangeServer({"/long.mp4": long}) as server:
        url = server.url
        ran = call(
            "extract",
            url,
            "100",
            "101",
            "-o",
            "x.mp4",
            "--max-bytes",
            len(long) // 4,
            "--max-requests",
            "20",
        )
        assert ran.code == 0, ran.err
    (tmp_path / "long.mp4").write_bytes(long)
    call("extract", "long.mp4", "100", "101", "-o", "y.mp4")
    assert (tmp_path / "x.mp4").read_bytes() == (tmp_path / "y.mp4").read_bytes()
