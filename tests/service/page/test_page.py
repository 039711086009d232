"""The page at `/`, in a real browser, by its own controls."""

import hashlib
import json
import struct

import numpy as np
import pytest

import fragdex
from service.page import films
from service.working import events_of

pytestmark = pytest.mark.slow

CHUNK = 4 * 2**20
PADDING = 9 * 2**20
PLACES = ("25.1", "1.3", "0:37.62")


def number_at(time, start=0):
    """The picture that stands at a time."""
    return int((time - start) * films.RATE + 1e-6)


def test_a_fragmented_film_is_shown_from_its_own_bytes(opened, film):
    """Nothing is processed: its fragments are its own, and so are the bytes that are fetched."""
    opened.choose(film.fragmented)
    opened.ready("fragmented.mp4")
    track = fragdex.index(film.fragmented).tracks[0]
    start = track.start.seconds
    assert start > 0, "the pictures are in another order than coded, and no edit list says so"
    for place in PLACES:
        time, number = opened.go_to(place)
        assert abs(time - float(place.rpartition(":")[2])) < 1e-6
        assert number == number_at(time, start)
    told = opened.page.locator("#fetched tr").all_inner_texts()
    client = opened.served.client
    record = client.get("/api/v1/files?limit=1").json()["files"][0]
    seek = client.get(f"/api/v1/isobmff_files/{record['id']}/seek?time_ms=37620").json()
    first, last = places(told)
    assert first <= seek["offset"] < seek["offset"] + seek["size"] - 1 <= last
    assert last - first < film.fragmented.stat().st_size / 15


def test_a_film_with_sound_is_processed_and_shown(opened, film):
    opened.choose(film.progressive)
    opened.ready("progressive.mp4")
    for place in PLACES:
        time, number = opened.go_to(place)
        assert number == number_at(time)
    # each track from its own file, by ranges alone; a read that a seek gave up has no answer
    answers = {
        (one.url, one.headers["range"]): answer.status
        for one in opened.media()
        if (answer := one.response()) is not None
    }
    assert set(answers.values()) == {206}
    assert {url.rpartition("/")[2] for url, _ in answers} == {"1", "2"}
    page = opened.page
    buffered = page.evaluate("document.querySelector('video').buffered.length")
    assert buffered > 1, "what lies between the places was not fetched"
    assert page.locator("#tracks strong").all_inner_texts() == ["video 1", "audio 2", "scrub"]


def places(rows):
    """First and last byte that the only row tells."""
    (row,) = rows
    return [int(part.replace(",", "")) for part in row.split("\t")[3].split("–")]


@pytest.fixture
def shown(opened, film):
    """The page with the processed film, chosen from the list of files."""
    upload(opened.served, film.progressive)
    opened.page.get_by_role("button", name="Refresh").click()
    opened.page.get_by_role("button", name="progressive.mp4").first.click()
    opened.ready("progressive.mp4")
    return opened


def upload(served, path):
    """By the interface; one that is there already is taken."""
    data = path.read_bytes()
    new = {
        "filename": path.name, "type": "video", "byte_size": len(data),
        "md5": hashlib.md5(data).hexdigest(),
    }  # fmt: skip
    record = served.client.post("/api/v1/files", json=new).raise_for_status().json()
    if record["next_byte"] < len(data):
        place = f"/api/v1/files/{record['id']}/upload"
        served.client.post(place, content=data).raise_for_status()
    return record["id"]


def test_a_click_on_the_timeline_seeks(shown):
    timeline = shown.page.get_by_role("slider", name="Position in the timeline of fragments")
    box = timeline.bounding_box()
    for part in (0.81, 0.12, 0.57):
        timeline.click(position={"x": part * box["width"], "y": 30})
        time, number = shown.shown()
        assert abs(time - part * 40) < 0.2
        assert number == number_at(time)
        assert float(timeline.get_attribute("aria-valuenow")) == pytest.approx(time, abs=0.001)
    assert "segment 12 of 20" in timeline.get_attribute("aria-valuetext")


def test_keys_go_from_fragment_to_fragment(shown):
    timeline = shown.page.get_by_role("slider", name="Position in the timeline of fragments")
    timeline.focus()
    for key, number in (("PageDown", 500), ("ArrowRight", 550), ("ArrowLeft", 500), ("Home", 0)):
        timeline.press(key)
        assert shown.shown()[1] == number
    timeline.press("End")
    assert shown.shown()[1] == 999


def test_the_last_of_many_seeks_wins(shown):
    timeline = shown.page.get_by_role("slider", name="Position in the timeline of fragments")
    box = timeline.bounding_box()
    x = box["x"] + box["width"] * np.linspace(0.95, 0.4, 15)
    for one in x:
        shown.page.mouse.click(one, box["y"] + 30)
    time, number = shown.shown()
    assert abs(time - 16) < 0.2
    assert number == number_at(time)


def test_fragments_that_need_the_ones_before_them(opened, film):
    """A client sent them with their index; what a moment needs is found by going back."""
    path = films.film(film.folder / "short.mp4", 300, fragments="0.4")
    index, data = fragdex.index(path), path.read_bytes()
    assert len(index.tracks[0].fragments) > 25
    client = opened.served.client
    md5 = hashlib.md5(data).hexdigest()
    new = {"md5": md5, "filename": "short.mp4"}
    record = client.post("/api/v1/isobmff_files", json=new).raise_for_status().json()
    track = {"file_id": record["id"], "track_id": 1, "type": "video", "byte_size": len(data)}
    client.post("/api/v1/isobmff_tracks", json=track).raise_for_status()
    place = f"/api/v1/isobmff_tracks/{record['id']}/1/upload"
    client.post(place, content=data).raise_for_status()
    place = f"/api/v1/isobmff_files/{record['id']}/index/upload"
    client.post(place, json=every_fragment(index)).raise_for_status()
    opened.page.get_by_role("button", name="Refresh").click()
    opened.page.get_by_role("button", name="short.mp4").click()
    opened.ready("short.mp4")
    start = index.tracks[0].start.seconds
    for place in ("5.75", "9.9", "2.97"):
        time, number = opened.go_to(place)
        assert number == number_at(time, start)


def every_fragment(index):
    """The index as JSON, each fragment a segment, also where players cannot begin with it."""
    told = json.loads(index.export("json"))
    table = index.tracks[0].fragments
    starts = [int(cts) for cts in table.cts_min]
    ends = [*starts[1:], int(table.cts_end.max())]
    columns = zip(starts, ends, table.dts, table.moof_offset, table.size, strict=True)
    told["1"]["segments"] = [
        {"cts": cts, "dts": int(dts), "duration": end - cts, "offset": int(at), "size": int(size)}
        for cts, end, dts, at, size in columns
    ]
    return told


def test_sound_alone_is_played(opened, film):
    path = films.film(film.folder / "sound.m4a", 500, picture=False, sound=True)
    opened.choose(path)
    opened.page.get_by_role("heading", name="sound.m4a").wait_for()
    opened.page.locator("#film[data-state=ready]").wait_for()
    opened.page.get_by_label("Go to").fill("12")
    opened.page.get_by_role("button", name="Seek").click()
    opened.page.wait_for_function("() => !document.querySelector('video').seeking")
    assert opened.page.evaluate("document.querySelector('video').currentTime") == 12
    assert opened.page.locator("#tracks strong").all_inner_texts() == ["audio 1"]


HEAR = """
async () => {
  const video = document.querySelector("video");
  const context = new AudioContext({ sampleRate: 48000 });
  const ear = context.createAnalyser();
  ear.fftSize = 4096;
  context.createMediaElementSource(video).connect(ear);
  window.loudest = async () => {
    const levels = new Float32Array(ear.frequencyBinCount);
    const begun = video.currentTime;
    await video.play();
    while (video.currentTime < begun + 1) await new Promise((done) => setTimeout(done, 50));
    ear.getFloatFrequencyData(levels);
    video.pause();
    return levels.indexOf(Math.max(...levels)) * context.sampleRate / ear.fftSize;
  };
}
"""


def test_another_language_is_heard_from_the_moment_that_is_shown(opened, film):
    path = films.film(film.folder / "two languages.mp4", 500, sound=("eng", "deu"))
    opened.choose(path)
    opened.ready("two languages.mp4")
    page = opened.page
    sound = page.get_by_label("Sound")
    assert sound.locator("option").all_inner_texts() == ["audio 2 · English", "audio 3 · German"]
    time, number = opened.go_to("7.3")
    page.evaluate(HEAR)
    assert page.evaluate("loudest()") == pytest.approx(films.TONES[0], abs=25)
    asked = len(opened.media())
    opened.go_to("7.3")
    sound.select_option("audio 3 · German")
    opened.page.wait_for_function("() => document.querySelectorAll('#fetched tr').length > 1")
    assert opened.shown() == (time, number)
    assert "audio 3" in page.locator("#fetched tr").all_inner_texts()[0]
    assert {one.url.rpartition("/")[2] for one in opened.media()[asked:]} <= {"1", "3"}
    assert page.evaluate("loudest()") == pytest.approx(films.TONES[1], abs=25)
    # the other way, in the middle of a seek
    page.evaluate("document.querySelector('video').currentTime = 15")
    sound.select_option("audio 2 · English")
    opened.shown()
    assert page.evaluate("loudest()") == pytest.approx(films.TONES[0], abs=25)


def test_a_browser_plays_the_playlist_by_its_address(browser, served, film):
    """HLS as Chromium reads it itself: from a token in the URL, and no script of ours."""
    file_id = upload(served, film.progressive)
    assert events_of(served.client, f"/files/{file_id}/progress")[-1][0] == "complete"
    place = f"/api/v1/files/{file_id}"
    token = served.client.post("/api/v1/url-token", json={"url": place}).json()["token"]
    url = f"{served.url}{place}/index?format=hls&token={token}"
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(served.url + "/healthz")
        if not page.evaluate(
            "document.createElement('video').canPlayType('application/x-mpegurl')"
        ):
            pytest.skip("this browser reads no HLS")
        page.evaluate(
            """async (url) => {
              const video = document.createElement("video");
              document.body.append(video);
              video.src = url;
              await new Promise((done, failed) => {
                video.onloadeddata = done;
                video.onerror = () => failed(video.error.message);
              });
              video.currentTime = 25.1;
              await new Promise((done) => { video.onseeked = done; });
            }""",
            url,
        )
        assert page.evaluate("document.querySelector('video').duration") == pytest.approx(
            40, abs=0.1
        )
        assert page.evaluate(films.READ_NUMBER) == number_at(25.1)


def test_a_file_is_deleted_at_the_second_click(opened, film):
    path = films.film(film.folder / "gone.mp4", 100, fragments="key")
    opened.choose(path)
    opened.ready("gone.mp4")
    page = opened.page
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete for good").click()
    page.get_by_role("heading", name="gone.mp4").wait_for(state="hidden")
    page.get_by_role("button", name="gone.mp4").wait_for(state="detached")
    names = [one["filename"] for one in opened.served.client.get("/api/v1/files").json()["files"]]
    assert "gone.mp4" not in names


def test_it_plays_on_over_the_edges_of_fragments(shown):
    shown.go_to("13.9")
    page = shown.page
    page.evaluate("document.querySelector('video').play()")
    page.wait_for_function("() => document.querySelector('video').currentTime > 16.5")
    page.evaluate("document.querySelector('video').pause()")
    time, number = shown.shown()
    assert abs(number - number_at(time)) <= 1  # what is shown may be a picture behind the clock


def test_the_key_and_the_files_are_there_after_a_reload(shown):
    shown.page.reload()
    shown.page.get_by_role("button", name="progressive.mp4").first.wait_for()
    shown.page.get_by_role("button", name="Forget key").click()
    shown.page.get_by_label("Key", exact=True).wait_for()
    shown.page.reload()
    shown.page.get_by_label("Key", exact=True).wait_for()


@pytest.fixture
def padded(film):
    """A film of three chunks."""
    path = film.folder / "padded.mp4"
    box = struct.pack(">I4s", PADDING, b"free") + bytes(PADDING - 8)
    path.write_bytes(film.fragmented.read_bytes() + box)
    return path


class Road:
    """The way of chunks to the service; `lost`: which of them do not arrive, counted from 0."""

    def __init__(self, page, *lost):
        self.firsts, self.lost = [], lost
        page.route("**/upload", self.go)

    def go(self, route):
        if route.request.method != "POST":
            route.continue_()
            return
        first = route.request.headers["content-range"].split()[1].partition("-")[0]
        self.firsts.append(int(first))
        if len(self.firsts) - 1 in self.lost:
            route.abort("connectionreset")
        else:
            route.continue_()


def test_an_upload_goes_on_where_it_was_broken_off(opened, padded):
    """The second chunk is lost on its way twice; no byte that arrived is sent again."""
    road = Road(opened.page, 1, 2)
    opened.choose(padded)
    opened.ready("padded.mp4")
    assert road.firsts == [0, CHUNK, CHUNK, CHUNK, 2 * CHUNK]
    record = opened.served.client.get("/api/v1/files?limit=1").json()["files"][0]
    assert record["md5"].replace("-", "") == hashlib.md5(padded.read_bytes()).hexdigest()
    opened.wrong.clear()  # the browser tells of the lost requests, and of the 404 with next_byte


def test_an_upload_that_was_stopped_goes_on_when_it_is_chosen_again(opened, padded):
    page = opened.page
    road = Road(page, *range(1, 100))
    opened.choose(padded)
    page.get_by_text("Trying again").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped").wait_for()
    tried = len(road.firsts)
    road.lost = ()
    opened.choose(padded)
    opened.ready("padded.mp4")
    assert road.firsts[tried:] == [CHUNK, 2 * CHUNK]
    opened.wrong.clear()


def test_what_is_no_film_is_told_in_words(opened, film):
    path = film.folder / "notes.txt"
    path.write_text("This is a text, and no film.\n" * 20)
    opened.choose(path)
    alert = opened.page.get_by_role("alert")
    alert.wait_for()
    record = opened.served.client.get("/api/v1/files?limit=1").json()["files"][0]
    assert record["status"] == "failed"
    assert alert.inner_text().lower() == record["problem"]["detail"].lower()
    assert "failed" in opened.page.get_by_role("button", name="notes.txt").inner_text()


def test_a_wrong_key_is_told_in_words(opened):
    page = opened.page
    page.get_by_role("button", name="Forget key").click()
    page.get_by_label("Key", exact=True).fill("ef_wrong_key")
    page.get_by_role("button", name="Open").click()
    page.get_by_role("alert").get_by_text("key").wait_for()
    assert page.get_by_text("Drop a video here").is_hidden()
    opened.unlock()
    assert page.get_by_role("alert").is_hidden()
    opened.wrong.clear()  # the browser tells of the 401


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_fits_wide_and_narrow_light_and_dark(shown, tmp_path, width, scheme):
    page = shown.page
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    shown.go_to("25.1")
    page.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    # the timeline is drawn: its bars and its words have more than one colour
    colours = page.evaluate(
        """() => {
          const canvas = document.querySelector("#bars");
          const pen = canvas.getContext("2d");
          const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
          return new Set(new Uint32Array(data.buffer)).size;
        }"""
    )
    assert colours > 6
