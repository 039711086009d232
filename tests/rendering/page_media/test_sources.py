"""Where media come from: the site, this service, a host outside; and how little of them is read."""

from __future__ import annotations

import hashlib
import json
import re
from fractions import Fraction
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from fragdex.errors import SourceError
from fragdex.rendering.page_media.medium import Medium
from fragdex.rendering.page_media.opening import Opener, OutsideSource
from fragdex.rendering.page_media.player import Answers
from fragdex.rendering.site import Answer, Blocked, Folder, Page
from rendering.page_media.films import RATE, beeps, number_at, numbered, onsets


class Served:
    """An `Outside` that serves ranges of files by path, and counts."""

    def __init__(self, files):
        self.files, self.asked = files, []

    def fetch(self, url, headers):
        parts = urlsplit(url)
        kind = parse_qs(parts.query).get("type", [""])[0]
        data = self.files.get((parts.path, kind), self.files.get(parts.path))
        if data is None:
            raise Blocked("not this one")
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", headers["Range"]).groups())
        self.asked.append((url, first, last))
        if first >= len(data):
            return Answer(416, {"content-range": f"bytes */{len(data)}"}, b"")
        last = min(last, len(data) - 1)
        fields = {"content-range": f"bytes {first}-{last}/{len(data)}", "etag": '"1"'}
        return Answer(206, fields, data[first : last + 1])


def test_files_of_this_service_play(show):
    outside = Served({"/api/v1/isobmff_tracks/7/1": numbered(30, 30)})
    page = show(
        "<video src=/api/v1/isobmff_tracks/7/1 autoplay muted>", {}, outside=outside, fps=30
    )
    assert [number_at(page.frame(i)) for i in range(6)] == list(range(6))


def test_a_file_whose_tracks_are_files_of_their_own_plays_both(show):
    path = "/api/v1/files/7"
    outside = Served({(path, "video"): numbered(60, 30), (path, "audio"): beeps(2)})
    page = show(f"<video src={path} autoplay>", {}, outside=outside)
    assert number_at(page.frames(0, 30)[-1]) == 29
    assert onsets(page.sound(0, 30)) == [0.5]


def test_a_picture_an_hour_into_a_film_costs_one_read(show):
    film = numbered(7240, Fraction(2), keys=8, size=(64, 32))
    outside = Served({"/api/v1/files/7": film})
    page = show("<video id=v src=/api/v1/files/7 muted>", {}, outside=outside, fps=2)
    page.frame(0)
    outside.asked.clear()
    page.ask("v.currentTime = 3600")
    assert number_at(page.frame(1), y=16, width=64) == 7200
    assert len(outside.asked) == 1
    [(_, first, last)] = outside.asked
    assert last - first < len(film) / 100


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("data:audio/wav;base64,", False),
        ("data:,", False),
        ("DATA:audio/mpeg, ", False),
        ("data:audio/wav;base64", True),
        ("data:audio/wav;base64,UklGRg==", True),
        ("empty.wav", True),
    ],
)
def test_only_sound_that_was_to_be_is_missed(url, told):
    answers = Answers(Opener(Page("<h1>")))
    asked = json.dumps({"url": url}).encode()
    assert answers.answer("http://site.localhost/facts", asked).status == 404
    assert bool(answers.refused) == told


def test_what_may_not_be_asked_for_is_told(show):
    html = """<video id=v src=https://films.example/a.mp4 autoplay muted></video>
    <audio id=a src=ftp://films.example/a.wav autoplay></audio>"""
    page = show(html)
    page.frame(0)
    assert page.ask("[v.error.code, a.error.code]") == [4, 4]
    refusals = "\n".join(page.player.refused())
    assert "https://films.example/a.mp4: no network for pages" in refusals
    assert "ftp://films.example/a.wav" in refusals


def test_what_is_played_is_part_of_what_was_read(show):
    film = numbered(9, 30)
    page = show("<video src=a.mp4 autoplay muted></video><audio src=b.mp3 autoplay>",
                {"a.mp4": film})  # fmt: skip
    page.frame(0)
    assert page.stage.reads["a.mp4"] == hashlib.sha256(film).hexdigest()
    assert page.stage.reads["b.mp3"] is None


@pytest.mark.parametrize(
    "name",
    ["faststart.mp4", "frag-vp9-opus.mp4", "hevc-aac.mp4", "frag-av1-opus.mp4", "mpeg4-mp3.mp4",
     "mjpeg.mp4", "audio-late.mp4", "frag-start-7s.mp4", "alac.m4a"],
)  # fmt: skip
def test_fixtures_of_many_codecs_can_be_played(name, fixtures):
    medium = Medium(f"http://site.localhost/{name}", Opener(Folder(fixtures)))
    assert medium.duration
    if medium.size is not None:
        pictures = medium.pictures()
        assert pictures.at(0.5).time <= Fraction(1, 2)
        pictures.close()
    if medium.has_sound:
        sound = medium.sound()
        assert sound.read(0, medium.duration).shape == (round(medium.duration * RATE), 2)
        sound.close()
    medium.close()


def test_a_source_tells_what_went_wrong():
    class Broken:
        def fetch(self, url, headers):
            return Answer(500, {}, b"")

    with pytest.raises(SourceError, match="500"):
        Opener(Page(""), Broken())("https://films.example/a.mp4").read_up_to(_part(0, 10))
    whole = OutsideSource(WithoutRanges(), "https://films.example/a.mp4")
    assert (whole.read(_part(3, 5)), whole.size) == (b"34", 10)


class WithoutRanges:
    def fetch(self, url, headers):
        return Answer(200, {}, b"0123456789")


def _part(start, stop):
    from fragdex.byterange import ByteRange

    return ByteRange(start, stop)


def test_flash_and_beep_come_together(show):
    """Every second a white picture and a beep: in the frames, and in the mix."""
    fps = Fraction(30)
    page = show("<video src=a.mp4 autoplay>", {"a.mp4": flashes(6, fps)}, fps)
    lit = [i for i, picture in enumerate(page.frames(0, 180)) if picture[20, 20].mean() > 128]
    sound = page.sound(0, 180)
    begins = [i for i in lit if i - 1 not in lit]
    assert begins == [30 * n + 15 for n in range(6)]
    assert np.array(onsets(sound)) == pytest.approx([n + 0.5 for n in range(6)], abs=0.001)


def flashes(seconds, fps, size=(64, 48)):
    """A film in which each second's middle is lit for a tenth, with a beep that begins with it."""
    import io

    import av

    file = io.BytesIO()
    container = av.open(file, "w", format="mp4")
    video = container.add_stream("libx264", rate=fps, options={"preset": "ultrafast"})
    video.width, video.height = size
    video.pix_fmt = "yuv420p"
    audio = container.add_stream("aac", rate=RATE)
    audio.layout = "mono"
    for number in range(round(seconds * fps)):
        lit = 0.5 <= float(number / fps) % 1 < 0.6
        planes = np.full((size[1] * 3 // 2, size[0]), 128, np.uint8)
        planes[: size[1]] = 235 if lit else 16
        container.mux(video.encode(av.VideoFrame.from_ndarray(planes, format="yuv420p")))
    container.mux(video.encode())
    at = np.arange(seconds * RATE)
    sound = np.cos(2 * np.pi * 1000 * at / RATE) * 0.5 * ((at % RATE) // (RATE // 10) == 5)
    for first in range(0, len(sound), 1024):
        block = np.ascontiguousarray(sound[None, first : first + 1024], np.float32)
        frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="mono")
        frame.sample_rate, frame.pts = RATE, first
        container.mux(audio.encode(frame))
    container.mux(audio.encode(None))
    container.close()
    return file.getvalue()
