"""Published players show the storyboards and waveforms of the origin, as the docs say."""

import re
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("av", reason="PyAV is not installed: it makes the films")

from players import films
from players.conftest import MODULES, Page, answer

DOCS = Path(__file__).parents[2] / "docs" / "pictures-and-sound.md"
SNIPPETS = {
    re.findall(r'src="([^"]*?)(?:\.min)?\.js"', text)[-1]: text
    for text in re.findall(r"```html\n(.*?)```", DOCS.read_text(), re.DOTALL)
}
FILES = {
    "plyr.css": "plyr/dist",
    "plyr.min.js": "plyr/dist",
    "plyr.svg": "plyr/dist",
    "video.min.js": "video.js/dist",
    "video-js.min.css": "video.js/dist",
    "videojs-vtt-thumbnails.css": "videojs-vtt-thumbnails/dist",
    "videojs-vtt-thumbnails.min.js": "videojs-vtt-thumbnails/dist",
    "wavesurfer.min.js": "wavesurfer.js/dist",
    "peaks.min.js": "peaks.js/dist",
}
EVERY = 0.5
SECONDS = 2.41


def opened(page, origin, name):
    """The snippet of the docs as a page beside the origin; what failed in it is raised."""
    text = SNIPPETS[name].replace("http://127.0.0.1:8080/film.mp4", f"{origin}/avc-aac.mp4")
    text = text.replace("storyboard.vtt", f"storyboard.vtt?every={EVERY}&width=64")
    files = {"page.html": text}
    for file in re.findall(r'(?:src=|href=|iconUrl: )"([\w.-]+)"', text):
        path = MODULES / FILES[file] / file
        if not path.is_file():
            pytest.skip(f"{file} is not installed: ./dev setup installs it where npm is there")
        files[file] = path.read_text()
    kinds = {
        "html": "text/html",
        "js": "text/javascript",
        "css": "text/css",
        "svg": "image/svg+xml",
    }
    for file, body in files.items():
        kind = kinds[file.rpartition(".")[2]]
        page.route(f"{origin}/{file}", partial(answer, body, kind))
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{origin}/page.html")
    return wrong


def test_every_snippet_has_its_test():
    assert set(SNIPPETS) == {"plyr", "videojs-vtt-thumbnails", "wavesurfer", "peaks"}


def test_plyr_takes_the_storyboard(page, origin):
    wrong = opened(page, origin, "plyr")
    frames = page.evaluate(
        """async () => {
          while (!player.previewThumbnails?.loaded) await new Promise((go) => setTimeout(go, 20));
          const [sheet] = player.previewThumbnails.thumbnails;
          const image = new Image();
          image.src = sheet.urlPrefix + sheet.frames[0].text;
          await image.decode();
          const size = [image.naturalWidth, image.naturalHeight];
          return sheet.frames.map((one) => ({ ...one, size }));
        }"""
    )
    assert [one["startTime"] for one in frames] == [0, 0.5, 1, 1.5, 2]
    for one in frames:
        assert int(one["x"]) + int(one["w"]) <= one["size"][0]
        assert int(one["y"]) + int(one["h"]) <= one["size"][1]
    assert wrong == []


def test_video_js_shows_the_tile_below_the_pointer(page, origin):
    wrong = opened(page, origin, "videojs-vtt-thumbnails")
    page.wait_for_function("player.readyState() > 0")
    page.evaluate("player.hasStarted(true)")
    page.locator(".video-js").hover()
    bar = page.locator(".vjs-progress-holder").bounding_box()
    seen = [""]
    for part in (0.1, 0.9):
        # the plugin reckons a tile or so beside the pointer
        page.mouse.move(bar["x"] + part * bar["width"], bar["y"] + bar["height"] / 2)
        tile = page.locator(".vjs-vtt-thumbnail-display").element_handle()
        page.wait_for_function(
            "([tile, before]) => tile.style.background.includes('storyboard-0')"
            " && tile.style.backgroundPosition !== before",
            arg=[tile, seen[-1]],
        )
        seen.append(tile.evaluate("(one) => one.style.backgroundPosition"))
    assert set(seen[1:]) <= {f"{-64 * n}px 0px" for n in range(5)}
    assert wrong == []


def test_shaka_and_dash_js_find_the_storyboard_in_the_lists(page, origin):
    ask = Page(page, origin, "shaka")
    for kind in ("hls/master.m3u8", "dash/manifest.mpd"):
        ask("start", "shaka", f"{origin}/avc-aac.mp4/{kind}")
        tile = page.evaluate(
            "async () => { const [track] = player.getImageTracks();"
            " const one = await player.getThumbnails(track.id, 1);"
            " return { uri: one.uris[0], width: one.width, height: one.height }; }"
        )
        assert page.request.get(tile["uri"]).headers["content-type"] == "image/jpeg"
        assert tile["width"] / tile["height"] == pytest.approx(films.WIDTH / films.HEIGHT, abs=0.03)
    with page.context.new_page() as second:
        ask = Page(second, origin, "dash.js")
        ask("start", "dash.js", f"{origin}/avc-aac.mp4/dash/manifest.mpd")
        url = second.evaluate(
            "new Promise((done) => { const ask = () => player.provideThumbnail(1, (one) =>"
            " one ? done(one.url) : setTimeout(ask, 50)); ask(); })"
        )
        assert second.request.get(url).headers["content-type"] == "image/jpeg"


def test_wavesurfer_draws_the_waveform(page, origin):
    wrong = opened(page, origin, "wavesurfer")
    measures = page.evaluate(
        """async () => {
          const made = await shown;
          while (!made.getDuration()) await new Promise((go) => setTimeout(go, 20));
          let canvas;
          while (!(canvas = made.getWrapper().querySelector("canvas"))?.width)
            await new Promise((go) => setTimeout(go, 20));
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const peaks = made.exportPeaks({ maxLength: 10 })[0];
          return [made.getDuration(), data.some((value) => value > 0), Math.max(...peaks)];
        }"""
    )
    assert measures == [pytest.approx(SECONDS, abs=0.1), True, pytest.approx(0.5, abs=0.5)]
    assert measures[2] > 0
    assert wrong == []


def test_peaks_js_draws_the_waveform(page, origin):
    wrong = opened(page, origin, "peaks")
    drawn = page.evaluate(
        """async () => {
          const made = await shown;
          const canvas = document.querySelector("#waveform canvas");
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return [made.player.getDuration(), data.some((value) => value > 0)];
        }"""
    )
    assert drawn == [pytest.approx(SECONDS, abs=0.1), True]
    assert wrong == []
