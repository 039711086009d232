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
