"""A film's page, in a real browser, by its own controls."""

import hashlib
import json

import numpy as np
import pytest

import fragdex
from service.console import films
from service.working import events_of

pytestmark = pytest.mark.slow

PLACES = ("25.1", "1.3", "0:37.62")


def number_at(time, start=0):
    """The picture that stands at a time."""
    return int((time - start) * films.RATE + 1e-6)


def test_a_fragmented_film_is_shown_from_its_own_bytes(opened, film):
    """Nothing is processed: its fragments are its own, and so are the bytes that are fetched."""
    opened.send(film.fragmented)
    track = fragdex.index(film.fragmented).tracks[0]
    start = track.start.seconds
    assert start > 0, "the pictures are in another order than coded, and no edit list says so"
    for place in PLACES:
        time, number = opened.go_to(place)
        assert abs(time - float(place.rpartition(":")[2])) < 1e-6
        assert number == number_at(time, start)
    rows = opened.page.locator("#fetched tr").all_inner_texts()
    client = opened.served.client
    record = client.get("/api/v1/files?limit=1").json()["files"][0]
    seek = client.get(f"/api/v1/isobmff_files/{record['id']}/seek?time_ms=37620").json()
    first, last = places(rows)
    assert first <= seek["offset"] < seek["offset"] + seek["size"] - 1 <= last
    assert last - first < film.fragmented.stat().st_size / 15


def test_a_film_with_sound_is_processed_and_shown(opened, film):
    opened.send(film.progressive)
    for place in (*PLACES, "13.9"):  # the last is at the end of a segment
        asked = len(opened.media())
        time, number = opened.go_to(place)
        assert number == number_at(time)
        assert len(opened.media()) - asked <= 3
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
    opened.open("progressive.mp4")
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
    opened.open("short.mp4")
    start = index.tracks[0].start.seconds
    for place in ("5.75", "9.9", "2.97"):
        time, number = opened.go_to(place)
        assert number == number_at(time, start)


def every_fragment(index):
    """The index as JSON, each fragment a segment, also where players cannot begin with it."""
    document = json.loads(index.export("json"))
    table = index.tracks[0].fragments
    starts = [int(cts) for cts in table.cts_min]
    ends = [*starts[1:], int(table.cts_end.max())]
    columns = zip(starts, ends, table.dts, table.moof_offset, table.size, strict=True)
    document["1"]["segments"] = [
        {"cts": cts, "dts": int(dts), "duration": end - cts, "offset": int(at), "size": int(size)}
        for cts, end, dts, at, size in columns
    ]
    return document


def test_sound_alone_is_played(opened, film):
    path = films.film(film.folder / "sound.m4a", 500, picture=False, sound=True)
    opened.choose(path)
    opened.page.get_by_role("link", name="Open").click()
    opened.page.get_by_role("heading", name="sound.m4a").wait_for()
    opened.page.locator("#film[data-state=ready]").wait_for()
    opened.page.get_by_role("tab", name="Index").click()
    opened.page.get_by_label("Go to", exact=True).fill("12")
    opened.page.get_by_role("button", name="Seek").click()
    opened.page.wait_for_function("() => !document.querySelector('video').seeking")
    assert opened.page.evaluate("document.querySelector('video').currentTime") == 12
    assert opened.page.locator("#tracks strong").all_inner_texts() == ["audio 1"]
    bars = opened.page.locator(".waveform path").get_attribute("d")
    assert bars.count("M") > 300


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
    opened.send(path)
    page = opened.page
    sound = page.get_by_label("Sound", exact=True)
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
    """It names the earlier one of the same bytes."""
    path = films.film(film.folder / "gone.mp4", 100, fragments="key")
    client, new = opened.served.client, {"filename": "before.mp4", "type": "video"}
    data = path.read_bytes()
    first = client.post("/api/v1/files", json={**new, "byte_size": len(data)}).json()["id"]
    assert client.post(f"/api/v1/files/{first}/upload", content=data).status_code == 201
    second = {**new, "filename": "gone.mp4", "byte_size": len(data)}
    second = client.post("/api/v1/files", json=second).json()["id"]
    assert client.post(f"/api/v1/files/{second}/upload", content=data).status_code == 201
    page = opened.page
    page.goto(f"{opened.served.url}/files/{second}")
    page.get_by_text("The same bytes as before.mp4").wait_for()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete for good").click()
    page.get_by_role("heading", name="gone.mp4").wait_for(state="hidden")
    page.get_by_role("heading", name="Library").wait_for()
    names = [one["filename"] for one in opened.served.client.get("/api/v1/files").json()["files"]]
    assert "gone.mp4" not in names


def test_deleting_a_film_aborts_its_requests(opened, film):
    opened.send(films.film(film.folder / "going.mp4", 1000, fragments="key"))
    page, held, asked = opened.page, [], []

    def hold(route):
        (held if "/tracks/" in route.request.url else asked).append(route)

    page.route("**/tracks/**", hold)
    page.route("**/api/v1/files/*", hold)
    page.get_by_label("Go to", exact=True).fill("35")
    with page.expect_request("**/tracks/**"):
        page.get_by_role("button", name="Seek").click()
    page.get_by_role("button", name="Delete").click()
    with page.expect_request("**/api/v1/files/*"):
        page.get_by_role("button", name="Delete for good").click()
    answer = asked[0].fetch()
    for route in held:
        route.continue_()
    page.wait_for_timeout(300)
    asked[0].fulfill(response=answer)
    page.get_by_role("heading", name="Library").wait_for()
    assert (held != [], answer.status) == (True, 204)


def test_a_film_that_could_not_be_deleted_is_shown_again(opened, film):
    def refused(route):
        if route.request.method == "DELETE":
            route.fulfill(status=503)
        else:
            route.fallback()

    opened.send(films.film(film.folder / "stays.mp4", 100, fragments="key"))
    page = opened.page
    page.route("**/api/v1/files/*", refused)
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete for good").click()
    page.get_by_role("alert").wait_for()
    opened.ready("stays.mp4")
    opened.wrong.clear()  # the browser tells of the 503


def test_a_step_is_one_picture(shown):
    """Over the edges of segments too, whose pictures are told by their own boxes."""
    _, number = shown.go_to("13.9")
    for key, by in ((".", 1),) * 4 + ((",", -1),) * 6:
        shown.page.keyboard.press(key)
        _, after = shown.shown()
        assert after == number + by
        number = after


def test_a_step_back_leaves_a_segment_that_begins_there(shown):
    """The one before it is not fetched yet; the picture is that of the moment, not the nearest."""
    assert shown.go_to("14.01")[1] == 350
    shown.page.keyboard.press(",")
    assert shown.shown()[1] == 349


def test_an_address_tells_the_moment(shown):
    page = shown.page
    shown.go_to("25.1")
    page.wait_for_url("**/files/*?t=25.1")
    page.goto(page.url.replace("t=25.1", "t=0:37.62"))
    shown.ready("progressive.mp4")
    assert shown.shown() == (37.62, number_at(37.62))
    assert page.title() == "progressive.mp4 · fragdex"
    page.go_back()
    page.wait_for_url("**/files/*?t=25.1")
    shown.ready("progressive.mp4")
    assert shown.shown()[1] == number_at(25.1)


def test_it_plays_on_over_the_edges_of_fragments(shown):
    shown.go_to("13.9")
    page = shown.page
    page.evaluate("document.querySelector('video').play()")
    page.wait_for_function("() => document.querySelector('video').currentTime > 16.5")
    page.evaluate("document.querySelector('video').pause()")
    time, number = shown.shown()
    assert abs(number - number_at(time)) <= 1  # what is shown may be a picture behind the clock
