"""The console at `/`: signing in, the library as it is now, and how all of it looks."""

import base64
import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from fragdex.service import console
from service.console.test_film import upload
from service.serving import API
from service.working import announced, events_of, uploaded

pytestmark = pytest.mark.slow

AXE = Path(__file__).parent / "node/node_modules/axe-core/axe.min.js"
HOSTILE = "<img src=x onerror=alert(1)>&amp;\u202e.mp4"
SHIFTS = """
() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
  }).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 100);
})
"""
# How wide `/docs` is with all of it open. The first of a kind then stands for its hundreds.
OPEN = """
() => {
  const all = [...document.querySelectorAll("details")];
  for (const one of all) one.open = true;
  const width = document.documentElement.scrollWidth;
  const kinds = new Set();
  for (const one of all) {
    const kind = [...one.children].map(({ tagName }) => tagName).join();
    if (kinds.has(kind)) one.remove();
    kinds.add(kind);
  }
  return width;
}
"""


def test_the_library_shows_what_comes_and_goes_by_itself(opened, film):
    page = opened.page
    client = opened.served.client
    record = announced(client, b"x" * 9, HOSTILE, "files", type="video")
    card = page.locator("#files li", has_text=HOSTILE)
    card.get_by_text("Incomplete").wait_for()
    page.get_by_text("1 file", exact=True).wait_for()
    client.post(f"{API}/files/{record['id']}/upload", content=b"x" * 9)
    card.get_by_text("Failed").wait_for()
    upload(opened.served, film.fragmented)
    ready = page.locator("#files li", has_text="fragmented.mp4").first
    ready.locator(".thumb.there").wait_for()
    page.get_by_text("2 files", exact=True).wait_for()
    assert "0:40" in ready.inner_text()
    page.keyboard.press("/")
    page.keyboard.type("ONERROR")
    assert page.locator("#files .name").all_inner_texts() == [HOSTILE]
    page.wait_for_url("**/*?q=ONERROR")
    card.click()
    page.get_by_role("alert").wait_for()
    assert page.title() == f"{HOSTILE} · fragdex"
    page.go_back()
    assert page.get_by_role("searchbox").input_value() == "ONERROR"
    client.delete(f"{API}/files/{record['id']}")
    page.get_by_text("No file matches.").wait_for()
    page.get_by_role("searchbox").fill("")
    page.get_by_label("State").select_option("Failed")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#files li')]"
        ".every((one) => one.textContent.includes('Failed'))"
    )


def test_a_long_library_is_paged(opened):
    page = opened.page
    for number in range(60):
        announced(opened.served.client, b"%03d" % number, f"{number:03}.mp4", "files", type="video")
    page.wait_for_function("() => document.querySelectorAll('#files li').length === 48")
    page.get_by_role("button", name="Show older files").click()
    page.get_by_role("link", name="000.mp4").wait_for()
    listed = opened.served.client.get(f"{API}/files?type=video&limit=200").json()["files"]
    for one in listed:
        if one["status"] == "created":
            opened.served.client.delete(f"{API}/files/{one['id']}")
    page.get_by_role("link", name="000.mp4").wait_for(state="detached")


def test_it_is_sorted_and_many_go_at_once_unless_it_is_undone(opened):
    page, client = opened.page, opened.served.client
    sizes = {"film 10.mp4": 5, "film 9.mp4": 7, "a.mp4": 6}
    ids = {
        name: announced(client, b"%05d00" % number, name, "files", type="video", byte_size=size)[
            "id"
        ]
        for number, (name, size) in enumerate(sizes.items())
    }
    page.get_by_role("searchbox").fill(".mp4")
    shown = page.locator("#files .name")

    def names():
        return [one for one in shown.all_inner_texts() if one in sizes]

    page.get_by_role("link", name="a.mp4").first.wait_for()
    for order, wanted in (
        ("By name", ["a.mp4", "film 9.mp4", "film 10.mp4"]),
        ("Largest first", ["film 9.mp4", "a.mp4", "film 10.mp4"]),
        ("Oldest first", list(sizes)),
        ("Newest first", list(sizes)[::-1]),
    ):
        page.get_by_label("Order").select_option(order)
        page.wait_for_timeout(50)
        page.wait_for_function(
            "(wanted) => JSON.stringify([...document.querySelectorAll('#files .name')]"
            ".map((one) => one.textContent).filter((one) => wanted.includes(one)))"
            " === JSON.stringify(wanted)",
            arg=wanted,
        )
    page.get_by_role("button", name="Select").click()
    for name in ("a.mp4", "film 10.mp4"):
        page.get_by_label(f"Select {name}", exact=True).check()
    page.get_by_role("button", name="Delete 2").click()
    page.get_by_text("2 files deleted.").wait_for()
    assert names() == ["film 9.mp4"]
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("link", name="a.mp4").first.wait_for()
    assert names() == list(sizes)[::-1]
    page.get_by_role("button", name="Select").click()
    page.get_by_label("Select a.mp4", exact=True).check()
    page.get_by_role("button", name="Delete 1").click()
    page.reload()  # who leaves has not undone it
    page.get_by_role("link", name="film 9.mp4").first.wait_for()
    page.get_by_role("link", name="a.mp4").wait_for(state="detached")
    assert client.get(f"{API}/files/{ids['a.mp4']}").status_code == 404
    for name in ("film 10.mp4", "film 9.mp4"):
        client.delete(f"{API}/files/{ids[name]}")


def test_a_film_is_renamed_and_shared_for_long(opened, film):
    page, client = opened.page, opened.served.client
    id = upload(opened.served, film.progressive)
    page.goto(f"{opened.served.url}/files/{id}")
    opened.ready("progressive.mp4")
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("New name").fill("Mine & <yours>.mp4")
    with page.expect_response(lambda one: one.request.method == "PATCH"):
        page.keyboard.press("Enter")
    page.get_by_label("New name").wait_for(state="detached")
    opened.ready("Mine & <yours>.mp4")
    assert client.get(f"{API}/files/{id}").json()["filename"] == "Mine & <yours>.mp4"
    page.get_by_role("tab", name="Links").click()
    page.get_by_label("Links are valid for").select_option("a week")
    page.get_by_role("button", name="Copy code").click()
    code = page.get_by_label("Address: For a web page")
    code.wait_for()
    html = code.input_value()
    elsewhere = page.context.new_page()
    elsewhere.set_content(html)
    video = elsewhere.locator("video")
    assert video.get_attribute("width") == "320"
    token = parse_qs(urlsplit(video.get_attribute("src")).query)["token"][0]
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["exp"] - claims["iat"] == 7 * 24 * 3600
    loaded = (
        "(one) => new Promise((done) => { one.onloadeddata = () => done(one.videoWidth);"
        " one.preload = 'auto'; one.load() })"
    )
    assert video.evaluate(loaded) == 320
    client.patch(f"{API}/files/{id}", json={"filename": "progressive.mp4"})


def test_tabs_share_one_sign_in(opened):
    page = opened.page
    with page.context.expect_page() as opening:
        page.evaluate("open('files')")
    other = opening.value
    other.get_by_role("heading", name="Library").wait_for()
    other.reload()
    other.get_by_role("button", name="Sign out").click()
    page.get_by_label("Key", exact=True).wait_for()
    page.reload()
    page.get_by_label("Key", exact=True).wait_for()


def test_a_wrong_key_is_told_in_words(opened):
    page = opened.page
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Key", exact=True).fill("ef_wrong_key")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").get_by_text("key").wait_for()
    assert page.get_by_role("navigation").is_hidden()
    opened.unlock()
    assert page.get_by_role("alert").is_hidden()
    opened.wrong.clear()  # the browser tells of the 401


def test_it_says_when_the_service_does_not_answer(opened):
    page = opened.page
    page.context.set_offline(True)
    page.get_by_text("Offline: the service does not answer").wait_for()
    page.get_by_role("link", name="Images").click()
    page.get_by_role("heading", level=1, name="No answer").wait_for()
    late = "import(new URL('api.js', document.querySelector('script[type=module]').src))"
    page.evaluate(late + ".then(({ line }) => line.dispatchEvent(new Event('answered')))")
    page.wait_for_timeout(300)
    page.get_by_role("heading", level=1, name="No answer").wait_for()
    page.context.set_offline(False)
    page.get_by_text("Offline: the service does not answer").wait_for(state="hidden")
    page.get_by_role("heading", level=1, name="Images").wait_for()
    opened.wrong.clear()  # the browser tells of requests that failed


def filled(client):
    """Something in every view; the addresses of a render, of a new one, and of deliveries."""
    uploaded(
        client, b"WEBVTT\n\n00:01.000 --> 00:09.000\nWords\n", "progressive.vtt", "caption_files"
    )
    picture = b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"/>'
    uploaded(client, picture, "mark.svg", "image_files")
    announced(client, b"x" * 9, "never sent.mp4", "files", type="video")
    hook = client.post(f"{API}/webhooks", json={"url": "https://hook.invalid/"}).json()["id"]
    client.post(f"{API}/webhooks/{hook}/ping", json={})
    asked = {"html": "<h1>Hi", "width": 320, "height": 180, "fps": 10, "duration_ms": 1000}
    render = client.post(f"{API}/renders", json=asked).json()["id"]
    assert events_of(client, f"/renders/{render}/progress")[-1][0] == "complete"
    return [f"renders/{render}", "renders/new", f"webhooks/{hook}"]


def test_no_obstacles_in_any_colours_or_width(opened, film):
    """No finding of axe, nothing that moves by itself, nothing wider than the window."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (./dev setup installs it where npm can)")
    page = opened.page
    client = opened.served.client
    upload(opened.served, film.progressive)
    opened.open("progressive.mp4")
    opened.go_to("25.1")
    views = [*console.SECTIONS, page.url, *filled(client), "docs"]
    violations, widths = [], [390, 1280]
    for view in views:
        page.goto(view if "://" in view else f"{opened.served.url}/{view}")
        page.get_by_role("heading", level=1).wait_for()
        page.wait_for_load_state("networkidle")
        assert page.evaluate(SHIFTS) < 0.1, view
        if view == "docs":
            page.set_viewport_size({"width": 390, "height": 900})
            assert page.evaluate(OPEN) <= 390
        page.evaluate(AXE.read_text())
        widths.reverse()  # so that some views come in each width
        for width in [390] if view == "docs" else widths:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                # what a person previews is theirs
                report = page.evaluate("axe.run({ exclude: ['iframe'] }, { iframes: false })")
                violations += [
                    (view, scheme, one["id"], one["nodes"][0]["html"])
                    for one in report["violations"]
                ]
    assert violations == []
    page.goto(views[len(console.SECTIONS)])
    opened.ready("progressive.mp4")
    drawn = """() => {
      const canvas = document.querySelector("#bars");
      const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      return new Set(new Uint32Array(data.buffer)).size;
    }"""
    assert page.evaluate(drawn) > 6, "the timeline's bars and words have more than one colour"


def test_the_colours_that_were_chosen_stay(opened):
    page = opened.page
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.get_by_role("button", name="Colours: Auto").click()
    page.get_by_role("button", name="Colours: Light").click()
    assert page.evaluate(ground) != before
    page.reload()
    page.get_by_role("button", name="Colours: Dark").wait_for()
    assert page.evaluate(ground) != before
