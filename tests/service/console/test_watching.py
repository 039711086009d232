"""What belongs to a film, beside its player: words, clips, addresses, pictures of its moments."""

import re

import av
import pytest

import fragdex
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.tables import (
    transcription_slices,
    transcription_speakers,
    transcriptions,
)
from fragdex.speech.plan import TranscriptionPlan
from fragdex.speech.words import SliceTranscript, Word
from service.console import films
from service.console.test_film import number_at, upload
from service.serving import API
from service.working import uploaded

pytestmark = pytest.mark.slow

# SubRip as it is found: short hours and fractions, empty lines, tags, overrides, and a bare <.
CAPTIONS = """1
0:00:02,000 --> 00:00:05,0
{\\an8}The <i>first</i> words & more

2
00:00:05.5 --> 0:0:6,25
<font color="#fff">if 5 < 6</font> then

3
00:00:10,000 --> 00:00:14,000
Then others

after an empty line

00:00:14,000 --> 00:00:14,000
"""
MINUTE = 60  # seconds
MINUTES = 120
MOST_REQUESTS = 3
MOST_BYTES = 2_000_000


@pytest.fixture
def captioned(opened, film):
    """The processed film, open, and captions of its name."""
    upload(opened.served, film.progressive)
    client = opened.served.client
    data = CAPTIONS.encode()
    new = {"filename": "progressive.en.srt", "type": "caption", "byte_size": len(data)}
    record = client.post(f"{API}/files", json=new).raise_for_status().json()
    client.post(f"{API}/files/{record['id']}/upload", content=data).raise_for_status()
    opened.open("progressive.mp4")
    opened.page.locator("#said li").nth(1).wait_for()
    yield opened
    for one in client.get(f"{API}/caption_files").json()["caption_files"]:
        client.delete(f"{API}/caption_files/{one['id']}")


def test_what_is_said_leads_to_its_moment_and_is_corrected(captioned):
    page = captioned.page
    phrases = page.get_by_label("Phrases", exact=True)
    assert phrases.locator(".text").all_text_contents() == [
        "The first words & more", "if 5 < 6 then", "Then others\nafter an empty line", ""
    ]  # fmt: skip
    phrases.get_by_text("Then others").click()
    assert captioned.shown() == (10, number_at(10))
    phrases.locator("[aria-current]", has_text="Then others").wait_for()
    page.get_by_label("Search the transcript").fill("FIRST")
    page.get_by_text("1 of 4").wait_for()
    assert phrases.locator("li:visible").count() == 1
    page.get_by_label("Search the transcript").fill("")
    page.keyboard.press("Escape")
    page.get_by_label("Captions", exact=True).select_option("en")
    showing = "document.querySelector('track')?.track.mode"
    page.wait_for_function(f"() => {showing} === 'showing'")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text at 0:10").fill("Then <others> --> & new")
    page.get_by_role("button", name="Save").click()
    phrases.get_by_text("Then <others> --> & new").wait_for()
    client = captioned.served.client
    newest = client.get(f"{API}/caption_files?limit=1").json()["caption_files"][0]
    assert newest["filename"] == "progressive.edited.vtt"
    cues = client.get(f"{API}/caption_files/{newest['id']}").text
    # what was not touched is as it was
    assert cues == (
        "WEBVTT\n\n00:00:02.000 --> 00:00:05.000\nThe <i>first</i> words &amp; more\n\n"
        "00:00:05.500 --> 00:00:06.250\nif 5 &lt; 6 then\n\n"
        "00:00:10.000 --> 00:00:14.000\nThen &lt;others&gt; --&gt; &amp; new\n\n"
        "00:00:14.000 --> 00:00:14.000\n"
    )
    # the newest are read first, also by who comes later
    page.reload()
    phrases.get_by_text("Then <others> --> & new").wait_for()


def test_a_lost_connection_is_not_the_end_of_watching(captioned):
    page = captioned.page
    captioned.go_to("3")
    page.context.set_offline(True)
    page.get_by_label("Go to", exact=True).fill("31")
    page.get_by_role("button", name="Seek").click()
    page.locator("#film[data-state=failed]").wait_for()
    assert page.get_by_role("alert").is_hidden(), "a line says it"
    page.context.set_offline(False)
    assert captioned.shown() == (31, number_at(31))
    captioned.wrong.clear()  # the browser tells of requests that failed


REACHABLE = "a[href], button, input, select, textarea, summary, [tabindex]"
REACH = "() => { document.activeElement.dataset.reached = 'yes'; }"
MISSED = """(wanted) => [...document.querySelectorAll(wanted)]
  .filter((one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility())
  .filter((one) => !one.dataset.reached)
  .map((one) => one.outerHTML)"""


def test_a_film_is_watched_with_the_keyboard_alone(captioned):
    page = captioned.page
    page.evaluate("document.activeElement.blur()")
    for _ in range(page.locator(REACHABLE).count()):
        page.keyboard.press("Tab")
        page.evaluate(REACH)
    assert page.evaluate(MISSED, REACHABLE) == []
    page.locator("#film-title").focus()
    page.keyboard.press("Space")
    page.wait_for_function("() => document.querySelector('video').currentTime > 0.2")
    page.keyboard.press("Space")
    page.wait_for_function("() => document.querySelector('video').paused")
    page.get_by_role("tab", name="Index").press("Home")
    assert page.evaluate("document.activeElement.textContent") == "Clip"
    page.get_by_role("button", name="Go to 0:10").press("Enter")
    assert captioned.shown() == (10, number_at(10))


def test_a_clip_from_point_to_point(captioned):
    page = captioned.page
    captioned.go_to("3")
    page.keyboard.press("Escape")
    page.locator("#film-title").focus()
    page.keyboard.press("i")
    page.get_by_role("tab", name="Index").click()
    captioned.go_to("0:08.5")
    page.locator("#film-title").focus()
    page.keyboard.press("o")
    assert page.get_by_label("Out point").input_value() == "0:08.500"
    with page.expect_download() as coming:
        page.get_by_role("button", name="Download clip").click()
    clip = fragdex.index(coming.value.path())
    assert coming.value.suggested_filename == "progressive 0.03.0-0.08.5.mp4"
    assert clip.tracks[0].stop.seconds - max(clip.tracks[0].start.seconds, 0) == pytest.approx(
        5.5, abs=0.1
    )


def test_links_open_the_film_without_a_key(captioned):
    page = captioned.page
    page.get_by_role("tab", name="Links").click()
    for row, kind in (("HLS", "#EXTM3U"), ("DASH", "<MPD")):
        item = page.locator(".links li", has_text=row)
        item.get_by_role("button").click()
        address = item.get_by_role("textbox")
        address.wait_for()
        assert kind in captioned.served.anyone.get(address.input_value()).text
    box = page.get_by_label("Position", exact=True).bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 8)
    picture = page.locator(".peek .picture")
    picture.wait_for()
    style = picture.evaluate("(one) => one.style.backgroundImage")
    address = re.search(r'url\("(.+)"\)', style)[1]
    answer = captioned.served.anyone.get(address)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")


def long_film(folder):
    """Two hours, whose fragments need no processing: a minute of pictures, again and again."""
    source = films.film(folder / "minute.mp4", MINUTE * films.RATE)
    path = folder / "two hours.mp4"
    with (
        av.open(source) as minute,
        av.open(
            path, "w", options={"movflags": "+frag_keyframe+empty_moov+default_base_moof"}
        ) as out,
    ):
        stream = out.add_stream_from_template(minute.streams.video[0])
        places = [
            (bytes(one), one.pts, one.dts, one.is_keyframe, one.duration)
            for one in minute.demux(video=0)
            if one.dts is not None
        ]
        for turn in range(MINUTES):
            shift = round(turn * MINUTE / stream.time_base)
            for data, pts, dts, key, duration in places:
                packet = av.Packet(data)
                packet.pts, packet.dts, packet.duration = pts + shift, dts + shift, duration
                packet.time_base, packet.is_keyframe = stream.time_base, key
                packet.stream = stream
                out.mux(packet)
    return path


def test_a_seek_in_two_hours_asks_for_little(opened, film):
    path = long_film(film.folder)
    upload(opened.served, path)
    opened.open("two hours.mp4")
    start = fragdex.index(path).tracks[0].start.seconds
    # at the last, the next fragment is needed as well: nearly no pictures are left in the first
    for minute, second in ((100, 20.3), (7, 20.3), (61, 30.0)):
        asked = len(opened.media())
        _, number = opened.go_to(f"{minute}:{second}")
        assert number == number_at(second, start)
        ranges = [one.headers["range"] for one in opened.media()[asked:]]
        assert len(ranges) <= MOST_REQUESTS
        spans = [map(int, one.removeprefix("bytes=").split("-")) for one in ranges]
        assert sum(last - first + 1 for first, last in spans) <= MOST_BYTES


def transcription(served, file_id, words=(), turns=None, **more):
    """Rows as the worker leaves them; the id.

    `turns`: who speaks when, where somebody asked; `more`: of the row.
    """
    row = {
        "id": new_id(), "tenant_id": served.tenant, "file_id": file_id, "track_id": 2,
        "status": "complete", "engine": "pocketsphinx", "language": "en", "work_slice_ms": 30_000,
        "duration_ms": 1000, "slices": 1, "words": len(words), "created_at": instant(),
        "completed_at": instant(), **more,
    }  # fmt: skip
    heard = SliceTranscript(0, tuple(words)).as_json()
    mine = {"transcription_id": row["id"]}
    with served.context.database.write() as connection:
        connection.execute(transcriptions.insert().values(**row))
        new = {"number": 0, "attempts": 1, "heard": heard, "completed_at": instant()}
        connection.execute(transcription_slices.insert().values(**mine, **new))
        if turns is not None:
            speakers = {"turns": turns, "speakers": len({turn[2] for turn in turns})}
            connection.execute(transcription_speakers.insert().values(**mine, **speakers))
    return row["id"]


def test_languages_are_told_and_words_without_a_speaker(opened, film):
    served, page = opened.served, opened.page
    own = upload(served, film.progressive)
    opened.open("progressive.mp4")  # once it is processed
    page.get_by_role("link", name="Library").first.click()
    words = [
        Word(text, 4_000 * n, 4_000 * n + 900, language=language)
        for n, (text, language) in enumerate(
            [("Hello.", "en"), ("There.", "en"), ("Guten", "de"), ("Abend.", "de")]
        )
    ]
    plan = TranscriptionPlan(2, 30_000, 0, 800, 0.0, "en", (0,), languages=((0, "en"), (1, "de")))
    id = transcription(served, own, words, [[0, 900, 0], [12_000, 13_000, 1]], plan=plan.as_json())
    try:
        opened.open("progressive.mp4")
        phrases = page.locator("#said li")
        phrases.nth(3).wait_for()
        assert phrases.locator(".text").all_text_contents() == [
            "en S1: Hello. ", "?: There. ", "de Guten ", "S2: Abend. ",
        ]  # fmt: skip
        langs = [one.get_attribute("lang") for one in phrases.all()]
        assert langs == ["en", "en", "de", "de"]
        page.get_by_text("Phrases with ? have no speaker").wait_for()
        page.locator("#captions option", has_text="Transcription · en, de").wait_for(
            state="attached"
        )
        opened.view("Transcriptions")
        page.get_by_role("row", name="progressive.mp4").get_by_text("en, de").wait_for()
    finally:
        served.client.delete(f"{API}/transcriptions/{id}")


def test_words_older_than_a_page_of_those_of_others_are_found(opened, film):
    """The service lists 200 at once; a film's own captions and transcription came before them."""
    served, client = opened.served, opened.served.client
    own = upload(served, film.progressive)
    opened.open("progressive.mp4")  # once it is processed
    opened.page.get_by_role("link", name="Library").first.click()
    other = client.post(f"{API}/isobmff_files", json={"filename": "o", "md5": "0" * 32}).json()
    name = "progressive.fr.srt"
    first = uploaded(client, CAPTIONS.encode(), name, "caption_files")
    transcription(served, own)
    made = [first["id"]]
    for number in range(201):
        transcription(served, other["id"])
        words = f"WEBVTT\n\nNOTE {number}\n".encode()
        made.append(uploaded(client, words, f"{number}.vtt", "caption_files")["id"])
    try:
        opened.requests.clear()
        opened.open("progressive.mp4")
        choice = opened.page.get_by_label("Captions", exact=True)
        choice.locator("option", has_text="fr").wait_for(state="attached")
        choice.locator("option", has_text="Transcription · en").wait_for(state="attached")
        listed = [one.url for one in opened.requests if "limit=200" in one.url]
        assert len([url for url in listed if "type=caption" in url]) == 2
    finally:
        for id in made:
            client.delete(f"{API}/caption_files/{id}")
        for one in client.get(f"{API}/transcriptions?limit=200").json()["transcriptions"]:
            client.delete(f"{API}/transcriptions/{one['id']}")
