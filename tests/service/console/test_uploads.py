"""Files given to the console: each goes where it belongs; no byte that arrived is sent again."""

import hashlib
import struct

import pytest

pytestmark = pytest.mark.slow

CHUNK = 4 * 2**20
PADDING = 9 * 2**20
CAPTIONS = "WEBVTT\n\n00:01.000 --> 00:02.000\nSaid here.\n"
DROP = """
([name, type, text]) => {
  const held = new DataTransfer();
  held.items.add(new File([text], name, { type }));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: held, bubbles: true }));
  }
}
"""
# The page keeps as much room as its list of uploads is high, from the next frame on.
ROOM_IS_KEPT = """
() => getComputedStyle(document.documentElement).getPropertyValue("--tray")
  === `${document.querySelector("#tray").offsetHeight}px`
"""
# Controls that cannot be pressed once they are scrolled to, or at the end of the view.
COVERED = """
() => {
  const inside = (one) => {
    const { left, right, top, bottom } = one.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    return document.elementFromPoint(x, y); // null: outside of the window
  };
  const all = [...document.querySelectorAll("main button, main summary, main td a")]
    .filter((one) => one.checkVisibility() && !one.closest("[aria-hidden=true]"));
  const wrong = [];
  scrollTo(0, document.documentElement.scrollHeight);
  const still = all.filter((one) => !one.closest("#said")); // what does not scroll by itself
  for (const one of still) {
    if (inside(one)?.closest("#tray")) wrong.push(`at the end: ${one.textContent}`);
  }
  for (const one of all) {
    one.scrollIntoView({ block: "nearest" });
    const hit = inside(one);
    if (!one.contains(hit)) wrong.push(`${one.textContent}: ${hit?.outerHTML.slice(0, 80)}`);
  }
  return [all.map((one) => one.textContent), wrong];
}
"""


def test_what_is_dropped_goes_where_it_belongs_and_the_film_stays(opened, film):
    opened.send(film.fragmented)
    opened.go_to("7.5")
    page = opened.page
    page.evaluate(DROP, ["talk.vtt", "text/vtt", CAPTIONS])
    page.evaluate(
        DROP, ["mark.svg", "", '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>']
    )
    page.get_by_text("File ready.").wait_for()
    page.get_by_text("Captions stored.").wait_for()
    assert opened.shown()[0] == 7.5
    kept = opened.served.client.get("/api/v1/files?limit=2").json()["files"]
    files = {one["filename"]: (one["type"], one["status"]) for one in kept}
    # captions have the name of the film that is open, and so belong to it
    assert files == {
        "fragmented.talk.vtt": ("caption", "ready"),
        "mark.svg": ("image", "ready"),
    }


def test_the_list_of_uploads_covers_nothing_that_can_be_pressed(opened, film):
    page = opened.page
    opened.send(film.fragmented)
    texts = [
        {"name": f"{n}.vtt", "mimeType": "text/vtt", "buffer": f"{CAPTIONS}\n{n}".encode()}
        for n in range(8)
    ]
    page.set_input_files("#file", texts)
    page.wait_for_function(
        "() => document.querySelectorAll('#tray button').length === 8"
        " && !document.querySelector('#tray progress')"
    )
    for view, wanted in (("Captions", {"Download", "Rename", "Delete"}), ("", {"Delete", "Edit"})):
        if view:
            opened.view(view)
        else:
            page.evaluate("history.back()")
            page.locator("#film[data-state=ready]").wait_for()
            page.locator("#said li").first.wait_for()
        for width, height in ((390, 700), (1280, 700), (1280, 460)):
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_function(ROOM_IS_KEPT)
            names, covered = page.evaluate(COVERED)
            assert covered == [], (view, width, height, covered)
            assert wanted <= set(names)
    for button in page.locator("#tray").get_by_role("button", name="Dismiss").all()[::-1]:
        button.click()
    space = "parseFloat(getComputedStyle(document.querySelector('main')).paddingBottom)"
    page.wait_for_function(f"() => {space} < 100")  # no room is kept for what is not there


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
    opened.send(padded)
    assert road.firsts == [0, CHUNK, CHUNK, CHUNK, 2 * CHUNK]
    record = opened.served.client.get("/api/v1/files?limit=1").json()["files"][0]
    assert record["md5"].replace("-", "") == hashlib.md5(padded.read_bytes()).hexdigest()
    opened.wrong.clear()  # the browser tells of the lost requests, and of the 404 with next_byte


def test_an_upload_that_was_stopped_goes_on_when_it_is_chosen_again(opened, padded):
    page = opened.page
    road = Road(page, *range(1, 100))
    opened.choose(padded)
    page.get_by_text("· Retrying").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped").wait_for()
    tried = len(road.firsts)
    road.lost = ()
    opened.send(padded)
    assert road.firsts[tried:] == [CHUNK, 2 * CHUNK]
    opened.wrong.clear()


def test_what_is_no_film_is_told_in_words(opened, film):
    path = film.folder / "notes.txt"
    path.write_text("This is a text, and no film.\n" * 20)
    opened.choose(path)
    page = opened.page
    upload = page.locator(".upload", has_text="notes.txt")
    upload.locator(".wrong", has_text="not a media file").wait_for()
    assert "File ready." not in upload.inner_text()
    page.get_by_role("link", name="Open").click()
    alert = page.get_by_role("alert")
    alert.wait_for()
    record = opened.served.client.get("/api/v1/files?limit=1").json()["files"][0]
    assert record["status"] == "failed"
    assert alert.inner_text().lower() == record["problem"]["detail"].lower()
    page.get_by_role("link", name="Library").first.click()
    assert "Failed" in page.get_by_role("link", name="notes.txt").inner_text()
