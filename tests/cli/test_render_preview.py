"""`fragdex render --preview`: the film in a browser, before it is made."""

import http.client
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import wave
from contextlib import contextmanager
from functools import partial
from urllib.parse import urlsplit

import pytest
from PIL import Image

# A box that is 2 × frame from the left, and a tone.
MOVING = """<!doctype html><style>
html { width: 160px; height: 90px; overflow: hidden } body { margin: 0; background: #000 }
p { margin: 0; width: 40px; height: 90px; background: #fff; animation: go 2s linear both }
@keyframes go { to { transform: translateX(120px) } }
</style><p></p><script src="missing.js"></script>
<script>
const context = new AudioContext(), tone = context.createOscillator();
tone.connect(context.destination); tone.start(); tone.stop(1);
</script>"""
PATIENCE = 60


class Preview:
    """A preview that runs, as its address says."""

    def __init__(self, page, start):
        self.page, self.url = page, start["url"]
        parts = urlsplit(self.url)
        self.port, self.path = parts.port, parts.path

    def get(self, path="", **headers):
        """Status and body; `path` below the secret, or as it is where it begins with a slash."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        path = path if path.startswith("/") else self.path + path
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def state(self, until):
        """The state, when it is as `until` says."""
        stop = time.monotonic() + PATIENCE
        while time.monotonic() < stop:
            state = json.loads(self.get("state")[1])
            if until(state):
                return state
            time.sleep(0.05)
        raise AssertionError(f"not in time: {state}")

    def frame(self, i):
        state = self.state(lambda state: state["status"] == "ready")
        status, body = self.get(f"frames/{i}.png?version={state['version']}")
        assert status == 200, body
        return body


@contextmanager
def previewing(page, *arguments):
    command = [sys.executable, "-m", "fragdex", "render", "--preview", str(page), "--json"]
    with subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, text=True,
        # started in the background, the tests have SIGINT ignored, and so would their children
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as process:  # fmt: skip
        try:
            yield Preview(page, json.loads(process.stdout.readline()))
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


@pytest.fixture(scope="module")
def preview(tmp_path_factory, chromium):
    page = tmp_path_factory.mktemp("preview") / "page.html"
    page.write_text(MOVING)
    with previewing(page) as preview:
        yield preview


def left_of(png):
    """The first column of the box."""
    with Image.open(io.BytesIO(png)) as picture:
        gray = picture.convert("L")
    assert gray.size == (160, 90)
    return next(x for x in range(160) if gray.getpixel((x, 45)) > 128)


def test_frames_are_those_of_the_film_in_any_order(preview):
    state = preview.state(lambda state: state["status"] == "ready")
    facts = [state[name] for name in ("width", "height", "fps", "first", "frames", "endless")]
    assert facts == [160, 90, 30.0, 0, 60, False]
    order = (0, 1, 40, 20, 41, 19)
    pictures = {i: preview.frame(i) for i in order}
    assert {i: left_of(picture) for i, picture in pictures.items()} == {i: 2 * i for i in order}
    assert preview.frame(20) == pictures[20]
    assert preview.get("frames/60.png?version=1")[0] == 409
    assert preview.get("frames/1.png?version=99")[0] == 409


def test_the_sound_is_that_of_the_film(preview):
    preview.state(lambda state: state["sound"] == "ready")
    with wave.open(io.BytesIO(preview.get("sound.wav")[1])) as sound:
        assert (sound.getframerate(), sound.getnframes()) == (48_000, 96_000)
        assert any(sound.readframes(100))


def test_nobody_else_gets_in(preview):
    assert preview.get()[0] == 200
    for path in ("/", "/state", "/x" + preview.path[1:], preview.path[:-2] + "/", "/%ff/state"):
        assert preview.get(path)[0] == 404
    # a name that was made to lead here, and another site's page
    assert preview.get(Host=f"evil.example:{preview.port}")[0] == 403
    assert preview.get(Host="127.0.0.1")[0] == 403
    assert preview.get("state", **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert preview.get("state", **{"Sec-Fetch-Site": "same-site"})[0] == 403
    assert preview.get("../../etc/passwd")[0] == 404


@pytest.fixture(scope="module")
def tab(preview):
    """The preview in a browser, as its person sees it; and what went wrong there."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    names = ("chromium-headless-shell", "chromium")
    path = os.environ.get("FRAGDEX_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with (
        playwright.sync_playwright() as running,
        running.chromium.launch(executable_path=path) as browser,
    ):
        tab = browser.new_page()
        tab.set_default_timeout(PATIENCE * 1000)
        tab.wrong = []
        tab.on("pageerror", lambda error: tab.wrong.append(str(error)))
        tab.goto(preview.url)
        yield tab


def test_it_is_used_by_keys_and_read_aloud(preview, tab):
    def shows(frame):
        tab.locator(f'img[alt="Frame {frame} of {preview.page}"]').wait_for()
        line = tab.get_by_role("slider", name="Frame")
        assert line.get_attribute("aria-valuetext").startswith(f"frame {frame}, ")

    shows(0)
    assert "160×90, 2.000 s, 60 frames, 30 a second" in tab.locator("header").inner_text()
    for key, frame in (
        ("ArrowRight", 1), ("Shift+ArrowRight", 31), ("ArrowLeft", 30), ("End", 59), ("Home", 0),
    ):  # fmt: skip
        tab.keyboard.press(key)
        shows(frame)
    tab.get_by_role("button", name="One frame on").click()
    shows(1)
    assert "missing.js" in tab.get_by_role("list").inner_text()
    tab.get_by_role("button", name="Play").click()
    tab.get_by_role("button", name="Pause").wait_for()
    # it plays to the end by itself
    tab.get_by_role("button", name="Play").wait_for()
    shows(59)
    assert tab.wrong == []


def test_a_change_is_seen_and_a_page_that_fails_says_why(preview, tab):
    preview.page.write_text(
        "<script>fragdex = {ready: Promise.reject(Error('not today'))}</script>"
    )
    tab.get_by_role("alert").get_by_text("not today").wait_for()
    assert tab.get_by_role("button", name="Play").is_disabled()
    preview.page.write_text(MOVING.replace("width: 160px", "width: 200px").replace("2s", "1s"))
    tab.get_by_text("200×90, 1.000 s, 30 frames").wait_for()
    tab.get_by_role("alert").wait_for(state="hidden")
    assert tab.get_by_role("img").is_visible()
    assert tab.wrong == []


def test_what_does_not_go_together_is_said(call, tmp_path, preview):
    (tmp_path / "page.html").write_text(MOVING)
    ran = call("render", "--preview", "page.html", "-o", "a.mp4")
    assert (ran.code, ran.err) == (2, "fragdex: --preview and -o do not go together\n")
    ran = call("render", "page.html", "-o", "a.mp4", "--port", "1234")
    assert (ran.code, ran.err) == (2, "fragdex: --port is for --preview\n")
    ran = call("render", "--preview", "page.html", "--port", preview.port)
    assert ran.code == 2
    assert f"port {preview.port} is unavailable" in ran.err
