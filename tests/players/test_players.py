"""What is packaged is played right: each picture and each sound at its time, in each player."""

import hashlib
import io
import re
from functools import partial
from pathlib import Path

import pytest

import fragdex

pytest.importorskip("av", reason="PyAV is not installed: it makes the films")

from PIL import Image

from players import films
from players.conftest import LENGTH, SCRIPTS, Page, answer, listening, script, serving

DOCS = Path(__file__).parents[2] / "docs" / "players.md"
CLOSE = 0.0015
"""Shaka moves what would begin below 0 by a millisecond."""
PLAYERS = [("hls.js", "hls"), ("shaka", "hls"), ("shaka", "dash"), ("dash.js", "dash")]
ADDRESS = {"hls": "hls/master.m3u8", "dash": "dash/manifest.mpd"}


class Film:
    """What a player has to show."""

    def __init__(self, path):
        self.name, data = path.name, path.read_bytes()
        tracks = fragdex.index(path, exact=True).tracks
        self.types = [f'{t.kind}/mp4; codecs="{t.codec}"' for t in tracks]
        self.start = max(float(track.start) for track in tracks)
        self.end = max(float(track.stop) for track in tracks)
        self.samples, self.pictures = {}, []
        for track in tracks:
            for key, time in samples_of(data, track):
                self.samples.setdefault(key, []).append(time)
            if track.kind == "video":
                self.pictures = sorted(time for _, time in samples_of(data, track))

    def picture_at(self, time):
        return max(n for n, start in enumerate(self.pictures) if start <= time)


def samples_of(data, track):
    """A hash of each sample's bytes, and its presentation time in seconds.

    Pictures that the edit list hides are at 0, just before the one on show there.
    """
    rows = track.samples
    times = (rows.cts + round(track.shift)) / track.timescale
    times = (times.clip(min=0) if track.kind == "video" else times).tolist()
    for at, size, time in zip(rows.offset.tolist(), rows.size.tolist(), times, strict=True):
        yield (track.kind, hashlib.md5(data[at : at + size]).hexdigest()), time


def appended_at(state):
    """Where a player had the browser put each sample."""
    inits = {}
    for one in state["appended"]:
        if b"moof" not in one["bytes"]:
            inits[one["buffer"]] = one["bytes"]
            continue
        data = inits[one["buffer"]] + one["bytes"]
        for track in fragdex.index(data, exact=True).tracks:
            for key, time in samples_of(data, track):
                yield key, time + one["offset"]


@pytest.fixture(scope="module")
def packaged(folder, tmp_path_factory):
    """A folder with a film packaged in single files, served by what knows nothing of films."""
    from starlette.staticfiles import StaticFiles

    index = fragdex.index(folder / "avc-aac.mp4", exact=True)
    package = fragdex.package(index, segment_duration=LENGTH, single_file=True)
    place = tmp_path_factory.mktemp("packaged")
    for name in package:
        (place / name).write_bytes(package[name].read())
    with listening(StaticFiles(directory=place)) as address:
        yield address


@pytest.mark.parametrize(("player", "kind"), PLAYERS)
@pytest.mark.parametrize("name", films.MADE)
def test_it_plays(page, origin, folder, name, player, kind):
    film = Film(folder / f"{name}.mp4")
    plays(page, film, name, player, origin, f"{film.name}/{ADDRESS[kind]}")


@pytest.mark.parametrize(("player", "kind"), PLAYERS)
def test_single_files_play(page, folder, packaged, player, kind):
    film = Film(folder / "avc-aac.mp4")
    plays(page, film, "avc-aac", player, packaged, Path(ADDRESS[kind]).name)


def plays(page, film, name, player, origin, address):
    ask = Page(page, origin, player)
    for one in film.types:
        if not page.evaluate("MediaSource.isTypeSupported", one):
            pytest.skip(f"this browser decodes no {one}")
    ask("start", player, f"{origin}/{address}")
    seen, ranges = ask("play", 3)
    pictures = [] if name in films.PLAYED_ONLY else [37, 25, len(film.pictures) - 2]
    shown = [ask("seek", film.pictures[n] + 0.01) for n in pictures if film.pictures]
    state = ask.state()
    assert state["wrong"] == []
    assert not film.pictures or shown == pictures
    for time, number in seen:
        if name == "trimmed" and time < CLOSE:
            continue  # until it plays, a browser may show the hidden key picture
        # the browser may show a later one before the page looks; seeks wait for theirs
        assert number >= film.picture_at(time + CLOSE)
        assert min(abs(time - start) for start in film.pictures) < CLOSE
    late = {
        (key[0], round(off, 3))
        for key, time in appended_at(state)
        if abs(off := min((time - start for start in film.samples[key]), key=abs)) > CLOSE
    }
    assert late == set()
    ((start, end),) = ranges
    assert start == pytest.approx(film.start, abs=0.005)
    assert end == state["duration"] == pytest.approx(film.end, abs=0.005)


@pytest.mark.parametrize(("player", "kind"), PLAYERS)
def test_a_film_whose_recorder_began_again_plays_to_its_end(page, folder, player, kind):
    film = Film(folder / "avc-aac.mp4")
    # The same fragments again would be taken for a repetition.
    data, again = (
        fragdex.view(folder / "avc-aac.mp4", segment_duration=seconds).read()
        for seconds in (LENGTH, 2 * LENGTH)
    )
    (folder / "again.mp4").write_bytes(data + again[again.index(b"moof") - 4 :])
    package = fragdex.package(folder / "again.mp4")
    first, second = (float(one.seconds) for one in package.title.periods)
    with serving(folder, LENGTH) as origin:
        ask = Page(page, origin, player)
        ask("start", player, f"{origin}/again.mp4/{ADDRESS[kind]}")
        ask("play", 3)
        shown = [
            ask("seek", start + film.pictures[n] + 0.01) for start in (0, first) for n in (7, 25)
        ]
    state = ask.state()
    assert state["wrong"] == []
    assert shown[:2] == [7, 25]
    # HLS says no time at which the other clock begins: it is where what came before is over.
    late = 0 if kind == "dash" else 1
    assert all(abs(number - n) <= late for number, n in zip(shown[2:], (7, 25), strict=True))
    assert state["duration"] == pytest.approx(first + second, abs=0.05)


CUES = [(0.2, 0.9, "one"), (1.1, 1.4, "two"), (1.5, 2.3, "three")]


@pytest.mark.parametrize(("player", "kind"), PLAYERS)
def test_captions_are_shown_at_their_times(page, folder, player, kind):
    film = folder / "captioned.mp4"
    film.write_bytes((folder / "avc-aac.mp4").read_bytes())
    cues = (f"00:0{start:.3f} --> 00:0{end:.3f}\n{text}\n" for start, end, text in CUES)
    film.with_suffix(".fr.vtt").write_text("\n".join(["WEBVTT\n", *cues]))
    with serving(folder, LENGTH) as origin:
        ask = Page(page, origin, player)
        ask("start", player, f"{origin}/{film.name}/{ADDRESS[kind]}")
        shown = ask("captions", player, len(CUES))
    # a cue over the border of two segments is in both
    assert sorted({(round(start, 3), round(end, 3), text) for start, end, text in shown}) == CUES
    assert ask.state()["wrong"] == []


@pytest.mark.parametrize(("player", "kind"), PLAYERS)
def test_the_language_can_be_changed(page, origin, folder, player, kind):
    film = Film(folder / "languages.mp4")
    playlist = page.request.get(f"{origin}/{film.name}/hls/a2.m3u8").text()
    last = re.findall(r"a2/\d+\.m4s", playlist)[-1]
    ask = Page(page, origin, player)
    ask("start", player, f"{origin}/{film.name}/{ADDRESS[kind]}")
    ask("speak", player, "fr", "de", last)
    ask("play", 1)
    state = ask.state()
    assert state["wrong"] == []
    assert state["time"] == pytest.approx(film.end, abs=0.05)


@pytest.mark.parametrize("kind", ["hls", "dash"])
def test_a_protected_film_plays_with_its_key(page, origin, folder, kind):
    ask = Page(page, origin, "shaka")
    ask("decrypt", films.KID, films.KEY)
    ask("start", "shaka", f"{origin}/protected.mp4/{ADDRESS[kind]}")
    # first: Shaka at times leaves out a segment that was on its way when a seek comes
    ask("play", 3)
    for number in (37, 5):
        ask("seek", number / films.RATE + 0.01)
        # scripts may not read what was decrypted; people see it
        assert seen_number(page.locator("video").screenshot()) == number
    assert ask.state()["wrong"] == []


def seen_number(png):
    """The number that a picture of films.py says: ten bits, each with its opposite below."""
    picture = Image.open(io.BytesIO(png)).convert("L").resize((320, 180))
    bits = [picture.getpixel((32 * n + 16, 30)) > 127 for n in range(10)]
    assert [picture.getpixel((32 * n + 16, 90)) > 127 for n in range(10)] == [not b for b in bits]
    return int("".join("01"[bit] for bit in bits), 2)


SNIPPETS = re.findall(r"```html\n(.*?)```", DOCS.read_text(), re.DOTALL)


@pytest.mark.parametrize(
    "snippet", SNIPPETS, ids=lambda text: re.search(r'src[=:]? ?"(.*?)"', text)[1]
)
def test_snippets_of_the_docs(page, origin, snippet):
    files = {}
    for player, place in SCRIPTS.items():
        if f'src="{Path(place).name}"' in snippet:
            files[f"/{Path(place).name}"] = script(player).read_text()
    text = snippet.replace("http://127.0.0.1:8080/film.mp4", f"{origin}/avc-aac.mp4")
    assert text != snippet
    files["/player.html"] = text
    for path, body in files.items():
        kind = "text/html" if path.endswith("html") else "text/javascript"
        page.route(f"{origin}{path}", partial(answer, body, kind))
    page.goto(f"{origin}/player.html")
    played = page.evaluate(
        """async () => {
          const video = document.querySelector("video");
          video.muted = true;
          video.playbackRate = 4;
          const ended = new Promise((resolve) => video.addEventListener("ended", resolve));
          while (video.readyState < 3) await new Promise((again) => setTimeout(again, 20));
          await video.play();
          await ended;
          return [video.currentTime, video.videoWidth];
        }"""
    )
    assert played == [pytest.approx(2.41, abs=0.02), films.WIDTH]
