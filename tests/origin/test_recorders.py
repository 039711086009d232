"""What recorders write, write by write: what was announced stays, to the byte and the tag."""

import os
import re
import shutil
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

import fragdex

av = pytest.importorskip("av", reason="PyAV is not installed: it writes the recordings")
pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from fragdex.origin.titles import Titles  # noqa: E402
from fragdex.testing import movie  # noqa: E402
from origin.serving import serving  # noqa: E402
from origin.test_growing_films import FOR_EVER, quiet  # noqa: E402
from service.console.films import HEIGHT, RATE, WIDTH, picture_of, tone  # noqa: E402
from strategies.recordings import fragment_starts  # noqa: E402

SECONDS = 5


class Writes:
    """A file that remembers each write: where it was, and its bytes."""

    def __init__(self):
        self.at = self.size = 0
        self.all = []

    def write(self, data):
        self.all.append((self.at, bytes(data)))
        self.at += len(data)
        self.size = max(self.size, self.at)
        return len(data)

    def seek(self, to, whence=os.SEEK_SET):
        self.at = to + (0, self.at, self.size)[whence]
        return self.at

    def tell(self):
        return self.at


def ffmpeg(flags):
    """The writes of FFmpeg's muxer, pictures with a key picture each second, and sound."""
    writes = Writes()
    options = {"movflags": flags, "frag_duration": "500000"}
    with av.open(writes, "w", format="mp4", options=options) as out:
        video = out.add_stream("libx264", rate=RATE)
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        video.options = {"preset": "ultrafast", "tune": "zerolatency", "g": str(RATE)}
        audio = out.add_stream("aac", rate=48_000, layout="stereo")
        sounded = 0
        for number in range(SECONDS * RATE):
            frame = picture_of(number)
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            out.mux(video.encode(frame))
            while sounded * RATE < number * 48_000:
                out.mux(audio.encode(tone(sounded)))
                sounded += 1024
        for stream in (video, audio):
            out.mux(stream.encode(None))
    if flags == "hybrid_fragmented":
        # its moov of all samples, and the mdat around the fragments, make it another file
        return writes.all[:-2]
    return writes.all


def mediamtx():
    """Parts of tracks together; how long it is goes into the mvhd at the end."""
    whole = movie(2 * SECONDS, tracks=2, samples=5, fps=10)
    starts = fragment_starts(fragdex.index(whole, exact=True))
    edges = [0, *starts, len(whole)]
    duration = whole.index(b"mvhd") + 4 + 16
    writes = [(low, whole[low:high]) for low, high in pairwise(edges)]
    return [*writes, (duration, (1000 * SECONDS).to_bytes(4, "big"))]


LAYOUTS = {
    "default": "empty_moov+default_base_moof",
    "key frames": "empty_moov+default_base_moof+frag_keyframe",
    "cmaf": "cmaf",
    "separate_moof": "empty_moov+default_base_moof+separate_moof",
    "delay_moov": "delay_moov+default_base_moof",
    "hybrid": "hybrid_fragmented",
}


def announced(client):
    """Bytes and tags of what the lists name; {} before there is a segment."""
    found = {}
    master = client.get("/live.mp4/hls/master.m3u8").text
    for name in sorted(set(re.findall(r"\b[av]\d\.m3u8", master))):
        text = client.get(f"/live.mp4/hls/{name}").text.partition("#EXT-X-PRELOAD-HINT")[0]
        for one in re.findall(r"[av]\d/[\w-]+\.m(?:4s|p4)", text):
            answer = client.get(f"/live.mp4/hls/{one}")
            assert answer.status_code == 200, one
            found[one] = answer.content, answer.headers["etag"]
    return found


@pytest.mark.parametrize("layout", [*LAYOUTS, "mediamtx"])
def test_what_a_recorder_writes_is_announced_once(tmp_path, layout):
    writes = mediamtx() if layout == "mediamtx" else ffmpeg(LAYOUTS[layout])
    path = tmp_path / "live.mp4"
    step = max(1, len(writes) // 5)
    with serving(Titles(tmp_path, segment_duration=1, growing=FOR_EVER)) as client:
        seen = {}
        with path.open("wb", buffering=0) as file:
            for number, (at, data) in enumerate(writes):
                file.seek(at)
                file.write(data)
                if number % step and number < len(writes) - 2:
                    continue
                now = announced(client)
                assert {name: now[name] for name in seen if name in now} == {
                    name: seen[name] for name in seen if name in now
                }
                seen |= now
        assert len(seen) > 2 * SECONDS
        if layout == "hybrid":
            return  # once it ends, its edit list has cut the sound at the samples of its moov
        # it is killed, or has stopped
        quiet(path)
        assert client.get("/live.mp4/hls/v1.m3u8").text.rstrip().endswith("#EXT-X-ENDLIST")
        for name, (data, _) in seen.items():
            assert client.get(f"/live.mp4/hls/{name}").content == data
    index = fragdex.index(path, exact=True)
    stored = fragdex.package(index, source=path, segment_duration=1)
    assert all(stored[name].read() == data for name, (data, _) in seen.items())


PAGE = Path(__file__).parents[2] / "docs/recorders.md"
FILM = Path(__file__).parents[2] / "fixtures/faststart.mp4"


@pytest.mark.parametrize(
    ("pattern", "names", "starts"),
    [
        ("%Y-%m-%d-%H-%M-%S", ["2026-05-04-17-59-58", "2026-05-04-18-00-05"], [0, 7]),
        ("%Y-%m-%d_%H-%M-%S-%f", ["2026-05-04_17-00-00-25", "2026-05-04_17-09-00-0"], [0, 539.75]),
        ("front-%Y-%m-%d-%H", ["front-2026-05-04-22", "front-2026-05-05-01"], [0, 10_800]),
        ("%M.%S", ["00.00", "00.10", "00.50"], [0, 10, 50]),
    ],
)
def test_files_with_times_as_names_are_listed_and_joined(tmp_path, pattern, names, starts):
    text = PAGE.read_text()
    assert f"`{pattern}`" in text
    (tmp_path / "front").mkdir()
    for name in names:
        shutil.copy(FILM, tmp_path / f"front/{name}.mp4")
    with serving(Titles(tmp_path)) as client:
        listed = client.get("/", headers={"accept": "application/json"}).json()["films"]
        assert [one["name"] for one in listed] == [f"front/{name}.mp4" for name in names]
    (block,) = re.findall(r"^```py\n(.*?)^as_one\(", text, re.DOTALL | re.MULTILINE)
    page = {}
    exec(block, page)
    page["as_one"](tmp_path / "front", pattern).save(tmp_path / "whole.mp4")
    track = fragdex.index(tmp_path / "whole.mp4", exact=True).video
    one = fragdex.index(FILM, exact=True).video
    assert len(track.samples) == len(names) * len(one.samples)
    firsts = [float(track.seek(start).time) for start in starts]
    assert firsts == pytest.approx([start + firsts[0] for start in starts], abs=1e-3)
