"""The console's other views, against the service as it works: what is made, watched and undone."""

import json
import random
import re

import pytest

from fragdex.service.records.keys import ADMIN, create_key
from service.console.conftest import Opened
from service.serving import API, client_of
from service.transcriptions.working import SPEECH
from service.working import announced, fixture_bytes, uploaded

pytestmark = pytest.mark.slow

FILM = {"family": "files", "type": "video"}
PAGE = """<!doctype html><title>A page</title><body style="margin:0;background:#134">
<style>h1 { color: #fff; animation: comes 2s both } @keyframes comes { from { opacity: 0 } }</style>
<h1>Written here</h1><img src="http://example.com/none.png"><script>console.warn("it ran")</script>
"""
SITE = {
    "index.html": "<!doctype html><link rel=stylesheet href=look/style.css><img src=look/mark.svg>"
    "<p>From a folder",
    "look/style.css": "body { margin: 0; background: rgb(10, 120, 30) url('mark.svg') }",
    "look/mark.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"/>',
}


def test_a_page_is_written_seen_and_rendered(opened):
    page = opened.page
    opened.view("Renders")
    page.get_by_role("link", name="New render").click()
    page.get_by_label("Page", exact=True).fill(PAGE)
    preview = page.frame_locator("iframe")
    preview.get_by_role("heading", name="Written here").wait_for()
    # what is previewed has an origin of its own, that nothing of the console is in
    assert preview.locator("body").evaluate("() => self.origin") == "null"
    for label, value in (("Width", "320"), ("Height", "180"), ("Seconds", "2"), ("Name", "Mine")):
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_label("Frames a second").fill("10")
    page.get_by_role("button", name="Render").click()
    page.get_by_role("heading", level=1, name="Mine").wait_for()
    page.locator(".chip.complete").wait_for()
    page.get_by_text("20 of 20 frames ·").wait_for()
    assert "Slice 1: 20 of 20 frames" in page.get_by_label("Slices").inner_text()
    assert "it ran" in page.get_by_label("Console of the page").inner_text()
    assert "http://example.com/none.png" in page.get_by_label("Blocked requests").inner_text()
    sheet = page.get_by_label("Contact sheet")
    sheet.get_by_role("button").nth(11).click()
    assert page.evaluate("document.querySelector('.result video').currentTime") > 1.8
    pictures = sheet.locator("canvas").evaluate_all("(all) => all.map((one) => one.toDataURL())")
    assert pictures[0] != pictures[11], "the words appear"
    with page.expect_download() as coming:
        page.get_by_role("link", name="Download").click()
    assert coming.value.suggested_filename == "Mine.mp4"
    # what the preview asked for, and was refused as the render was
    opened.wrong.clear()
    opened.requests = [one for one in opened.requests if "example.com" not in one.url]
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete for good").click()
    page.get_by_role("heading", level=1, name="Renders").wait_for()
    assert opened.served.client.get(f"{API}/renders").json()["renders"] == []


def test_a_folder_is_seen_and_rendered(opened, tmp_path):
    for name, text in SITE.items():
        path = tmp_path / "my site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    page = opened.page
    page.goto(f"{opened.served.url}/renders/new")
    page.get_by_label("A folder with a page").set_input_files(tmp_path / "my site")
    page.get_by_text("my site: 3 files").wait_for()
    image = page.frame_locator("iframe").locator("img")
    image.wait_for()
    assert image.evaluate("(one) => one.decode().then(() => one.naturalWidth)") == 40
    look = (
        page.frame_locator("iframe")
        .locator("body")
        .evaluate(
            "(one) => ['Color', 'Image'].map((of) => getComputedStyle(one)[`background${of}`])"
        )
    )
    assert look[0] == "rgb(10, 120, 30)"
    assert look[1].startswith('url("blob:')
    page.get_by_label("Container").select_option("png")
    page.get_by_role("button", name="Render").click()
    page.locator(".chip.complete").wait_for()
    shown = page.get_by_role("img", name="Result")
    assert shown.evaluate("(one) => one.decode().then(() => one.naturalWidth)") == 1280


def test_speech_is_transcribed_and_the_spoken_word_is_marked(opened):
    pytest.importorskip("pocketsphinx")
    page = opened.page
    uploaded(opened.served.client, (SPEECH / "pauses-flac.mp4").read_bytes(), "speech.mp4", **FILM)
    opened.open("speech.mp4")
    page.get_by_role("button", name="Transcribe").click()
    word = page.locator("#said span[data-end]", has_text=re.compile("^river$"))
    word.click()
    page.locator("#said .spoken", has_text="river").wait_for()
    start = float(word.get_attribute("data-start"))
    assert page.evaluate("document.querySelector('video').currentTime") == pytest.approx(
        start, abs=1e-3
    )
    again = page.get_by_text("Transcribe again").first
    again.click()
    page.get_by_label("Spoken language").fill("de")
    page.get_by_label("Engine").select_option("pocketsphinx")
    page.get_by_role("button", name="Transcribe again").click()
    page.get_by_role("alert").get_by_text("does not know this language").wait_for()
    opened.wrong.clear()  # the browser tells of the 422
    page.get_by_label("Spoken language").fill("en")
    page.get_by_label("Tell who speaks").check()
    page.get_by_label("Names and terms").fill("Ada Lovelace\n\n fragdex")
    with page.expect_response("**/transcriptions") as answer:
        page.get_by_role("button", name="Transcribe again").click()
    assert answer.value.status == 201
    assert answer.value.json()["vocabulary"] == ["Ada Lovelace", "fragdex"]
    page.wait_for_function("() => document.querySelectorAll('#captions option').length === 3")
    assert page.get_by_role("alert").is_hidden(), "what was wrong before is over"
    name = page.get_by_label("Name of S1")
    name.fill("Ada <b>")
    name.press("Enter")
    page.locator("#said .who", has_text="Ada <b>: ").first.wait_for()
    assert page.locator("#said li.voice1").count(), "another one has another colour"
    languages = [
        one["language"]
        for one in opened.served.client.get(f"{API}/transcriptions").json()["transcriptions"]
    ]
    assert languages == ["en", "en"]
    opened.view("Transcriptions")
    row = page.get_by_role("row", name="speech.mp4").first
    with page.expect_download() as coming:
        row.get_by_role("button", name="Download json").click()
    assert json.loads(coming.value.path().read_text())["word_segments"]
    # another upload of the same bytes has them too
    data = (SPEECH / "pauses-flac.mp4").read_bytes()
    new = {"filename": "again.mp4", "type": "video", "byte_size": len(data)}
    id = opened.served.client.post(f"{API}/files", json=new).json()["id"]
    opened.served.client.post(f"{API}/files/{id}/upload", content=data)
    page.goto(f"{opened.served.url}/files/{id}")
    page.get_by_text("The same bytes as speech.mp4").wait_for()
    word.first.wait_for()


def test_what_failed_is_listed_with_its_problem_and_tried_again(opened):
    client = opened.served.client
    record = uploaded(client, random.Random(7).randbytes(9_000), "noise.mp4", **FILM)
    page = opened.page
    opened.view("Jobs")
    row = page.get_by_role("row", name="noise.mp4").first
    row.locator(".chip.failed").wait_for()
    assert "Make playable" in row.inner_text()
    assert "not a media file" in row.inner_text()
    # while it is tried again, once is enough
    ended = client.get(f"{API}/process_isobmff?status=failed").json()
    (failed,) = [one for one in ended["processes"] if one["unprocessed_file_id"] == record["id"]]
    going = {**failed, "id": record["id"], "status": "processing", "problem": None}
    address = "**/process_isobmff?status=processing*"
    page.route(address, lambda route: route.fulfill(json={**ended, "processes": [going]}))
    page.locator(".chip.processing").wait_for()
    assert page.get_by_role("row", name="noise.mp4").count() == 2
    assert page.get_by_role("button", name="Try again").count() == 0
    page.unroute(address)
    page.locator(".chip.processing").wait_for(state="detached")
    with page.expect_response("**/process") as answer:
        row.get_by_role("button", name="Try again").click()
    assert answer.value.ok
    row.locator(".chip.failed").wait_for()
    row.get_by_role("link", name="noise.mp4").click()
    page.get_by_role("heading", name="noise.mp4").wait_for()
    client.delete(f"{API}/files/{record['id']}")


def test_a_film_without_its_index_is_repaired(opened, tmp_path):
    """By a button, and what a view then shows is what the records say, after a reload too."""
    page, client = opened.page, opened.served.client
    uploaded(client, fixture_bytes("moov-last.mp4"), "GX010001.MP4", **FILM)
    (tmp_path / "GX010002.MP4").write_bytes(fixture_bytes("cut-moov-last.mp4"))
    opened.choose(tmp_path / "GX010002.MP4")
    tray = page.locator(".upload", has_text="GX010002.MP4")
    tray.get_by_role("button", name="Repair").wait_for()
    told = tray.inner_text()
    assert not re.search("/|POST|fragdex", told), "a button, and no route"
    tray.get_by_role("button", name="Repair").click()
    page.get_by_role("heading", level=1, name="GX010002.MP4").wait_for()
    made = page.locator("#repair-state").get_by_role("link", name="GX010002.repaired.mp4")
    made.wait_for()
    shown = page.locator("#repairing").inner_text()
    assert "nothing lost" in shown
    assert "avc1.64000A: 50 samples, 50 of them proved, 2.0 s" in shown
    assert page.get_by_role("button", name="Repair").is_hidden()
    page.reload()
    made.wait_for()
    assert page.locator("#repairing").inner_text() == shown

    listed = client.get(f"{API}/files/{page.url.rpartition('/')[2]}/repairs").json()
    (record,) = listed["repairs"]
    going = {**record, "status": "repairing", "progress": 0.4, "repaired_file_id": None}
    failed = {**going, "status": "failed", "problem": {"detail": "no sample was found"}}
    answer = {**listed, "repairs": [going]}
    page.route("**/repairs?*", lambda route: route.fulfill(json=answer))
    page.reload()
    page.get_by_text("Repairing: 40 %.").wait_for()
    assert page.get_by_label("Repairing").get_attribute("value") == "0.4"
    answer["repairs"] = [failed]
    page.get_by_text("No sample was found").wait_for()
    # an earlier one that is complete counts more
    answer["repairs"] = [{**failed, "id": "x"}, record]
    made.click()
    page.get_by_role("heading", name="GX010002.repaired.mp4").wait_for()
    page.locator("#film[data-state=ready]").wait_for()
    client.delete(f"{API}/files/{record['repaired_file_id']}")
    page.goto(f"{opened.served.url}/files/{record['file_id']}")
    page.get_by_text("the repaired one has been deleted").wait_for()
    page.get_by_role("button", name="Repair").wait_for()
    opened.wrong.clear()  # the browser tells of the 404


def test_keys_are_made_rotated_and_revoked(opened, browser):
    page = opened.page
    opened.view("Keys")
    page.get_by_label("Name", exact=True).fill("A web site")
    page.get_by_label("May").select_option("Read")
    page.get_by_label("Ends").select_option("In 30 days")
    page.get_by_role("button", name="Create key").click()
    new_key = page.locator(".secret code").inner_text()
    row = page.get_by_role("row", name="A web site")
    kept = opened.served.client.get(f"{API}/keys").json()["keys"][0]
    assert (kept["name"], kept["scope"]) == ("A web site", "read")
    assert kept["expires_at"] is not None
    with browser.new_context() as context:
        reader = Opened(context.new_page(), opened.served).unlock(new_key)
        hidden = [
            reader.page.get_by_role("button", name="Upload"),
            reader.page.get_by_text("Keys", exact=True),
        ]
        assert all(one.is_hidden() for one in hidden), "a key that may only read"
    row.get_by_role("button", name="Revoke").click()
    row.get_by_role("button", name="Revoke for good").click()
    row.locator(".chip.revoked").wait_for()
    listed = opened.served.client.get(f"{API}/keys").json()["keys"]
    assert {one["name"]: one["status"] for one in listed}["A web site"] == "revoked"
    own = page.get_by_role("row", name="This key")
    own.get_by_role("button", name="Rotate").click()
    own.get_by_role("button", name="Rotate now").click()
    page.get_by_text("Old key:").wait_for()
    asked = page.evaluate("sessionStorage.getItem('fragdex.key')")
    assert asked == page.locator(".secret code").inner_text() != opened.served.key
    opened.view("Storage")


def test_deleting_frees_storage(browser, served):
    """In a tenant of its own: what work of other tests stores meanwhile is not counted."""
    key = create_key(served.context.database, "of its own", scope=ADMIN)
    with client_of(served.url, key) as client:
        uploaded(client, bytes(64_000), "freed.bin")
    with browser.new_context() as context:
        page = Opened(context.new_page(), served).unlock(key).view("Storage")
        row = page.get_by_role("row", name="freed.bin")
        row.get_by_role("button", name="Delete").click()
        row.get_by_role("button", name="Delete for good").click()
        row.wait_for(state="detached")
        page.get_by_text("62.5 KiB freed").wait_for()


def test_webhooks_are_made_pinged_and_switched_off(opened):
    page = opened.page
    opened.view("Webhooks")
    page.get_by_text("No webhooks yet").wait_for()
    page.get_by_label("URL").fill("https://hook.invalid/told")
    page.get_by_label("Events").fill("nothing.*")
    page.get_by_role("button", name="Add webhook").click()
    page.get_by_role("alert").wait_for()
    opened.wrong.clear()  # the browser tells of the 422
    page.get_by_label("Events").fill("file.*, render.completed")
    page.get_by_role("button", name="Add webhook").click()
    secret = page.locator(".secret code", has_text="whsec_")
    secret.wait_for()
    assert page.get_by_role("alert").is_hidden()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == secret.inner_text()
    row = page.get_by_role("row", name="https://hook.invalid/told")
    assert "file.*, render.completed" in row.inner_text()
    row.get_by_role("button", name="Disable").click()
    row.get_by_role("button", name="Enable").click()
    row.get_by_text("Enabled").wait_for()
    row.get_by_role("button", name="Ping").click()
    page.get_by_text("A ping is on its way.").wait_for()
    row.get_by_role("link").click()
    page.get_by_role("heading", name="Deliveries").wait_for()
    ping = page.get_by_role("row", name="webhook.ping")
    ping.get_by_text("hook.invalid has no address, or one which is not public").wait_for()
    ping.get_by_role("button", name="Send again").click()
    page.get_by_role("link", name="Webhooks").last.click()
    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name="Delete for good").click()
    page.get_by_text("No webhooks yet").wait_for()


def test_images_and_captions_are_listed_fetched_and_deleted(opened):
    client = opened.served.client
    picture = b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"/>'
    uploaded(client, picture, "mark.svg", "image_files")
    announced(client, b"WEBVTT\n\n", "later.vtt", "caption_files")
    page = opened.page
    opened.view("Images")
    row = page.get_by_role("row", name="mark.svg")
    assert "90 × 60" in row.inner_text()
    with page.expect_download() as coming:
        row.get_by_role("button", name="Download").click()
    assert coming.value.path().read_bytes() == picture
    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name="Delete for good").click()
    page.get_by_text("No images yet").wait_for()
    opened.view("Captions")
    row = page.get_by_role("row", name="later.vtt")
    row.get_by_text("Incomplete").wait_for()
    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name="Delete for good").click()
    row.wait_for(state="detached")


def test_captions_are_found_by_name_and_many_go_at_once(opened):
    page, client = opened.page, opened.served.client
    names = ["Holiday.en.vtt", "holiday.de.vtt", "talk.vtt"]
    for name in names:
        uploaded(client, f"WEBVTT\n\nNOTE {name}\n".encode(), name, "caption_files")
    opened.view("Captions")
    rows = page.locator("tbody tr")
    page.get_by_role("searchbox").fill("HOLIDAY")
    page.wait_for_url("**/captions?q=HOLIDAY")
    rows.filter(has_text="talk.vtt").wait_for(state="detached")
    assert rows.count() == 2
    page.reload()
    page.get_by_role("button", name="Select").click()
    for name in names[:2]:
        page.get_by_label(f"Select {name}", exact=True).check()
    page.get_by_role("button", name="Delete 2").click()
    page.get_by_text("No name of those that are loaded matches.").wait_for()
    page.get_by_role("button", name="Undo").click()
    rows.filter(has_text=names[0]).wait_for()
    page.get_by_role("button", name="Select").click()
    page.get_by_label(f"Select {names[1]}", exact=True).check()
    page.get_by_role("button", name="Delete 1").click()
    page.get_by_role("searchbox").fill("")
    rows.filter(has_text="talk.vtt").wait_for()
    page.reload()  # who leaves has not undone it
    rows.filter(has_text=names[0]).wait_for()
    rows.filter(has_text=names[1]).wait_for(state="detached")
    left = client.get(f"{API}/caption_files").json()["caption_files"]
    assert {one["filename"] for one in left} & set(names) == {names[0], names[2]}


def test_an_address_of_nothing_says_so(opened):
    page = opened.page
    page.goto(f"{opened.served.url}/renders/01890a5d-ac96-774b-bcce-b302099a8057")
    page.get_by_role("heading", level=1, name="Not found").wait_for()
    opened.wrong.clear()  # the browser tells of the 404
    page.get_by_role("main").get_by_role("link", name="Library").click()
    page.get_by_role("heading", level=1, name="Library").wait_for()
