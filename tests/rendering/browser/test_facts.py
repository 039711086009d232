"""What a page tells about itself where the request is silent, and how it is waited for."""

import pytest

from fragdex.errors import PageFailed
from fragdex.rendering.browser.model import Limits, PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.site import Page
from fragdex.rendering.spec import RenderSpec, frames_of, settled
from rendering.pages.looking import pixels

SMALL = PageView(320, 180)
HEAD = "<!doctype html><meta charset=utf-8>"


GROWS = """<style>@keyframes grow { to { width: 300px } } @keyframes turn { to { rotate: 9deg } }
@keyframes fade { to { opacity: 0 } } #grows { animation: grow 2s } #turns { animation: turn 2s }
#fades { animation: fade 2s }</style>"""


def facts(html):
    with Stage(Page(HEAD + html), SMALL) as stage:
        return stage.facts


@pytest.mark.parametrize(
    ("html", "size"),
    [
        ("<style>html{width:640px;height:360px}</style>", (640, 360)),
        ("<style>body{margin:0;width:500px;height:300px}</style>", (500, 300)),
        ("<div style='width:1920px;height:1080px'></div><script></script>", (1920, 1080)),
        ("<svg width=200 height=100></svg>", (200, 100)),
        ("<div style='width:90px;height:90px'></div><p>and more", (None, None)),
        ("<p>fits any window", (None, None)),
        (f"{GROWS}<div id=grows style='width:90px;height:90px'></div>", (None, None)),
        (f"{GROWS}<div id=turns style='width:90px;height:90px'></div>", (None, None)),
        (f"{GROWS}<div id=fades style='width:90px;height:80px'></div>", (90, 80)),
        (
            "<svg width=200 height=100><animate attributeName=width to=300 dur=2s /></svg>",
            (None, None),
        ),
        ("<script>window.fragdex={width:400,height:200}</script>", (400, 200)),
    ],
)
def test_the_size_is_the_root_elements_own(html, size):
    page_facts = facts(html)
    assert (page_facts.width, page_facts.height) == size


@pytest.mark.parametrize(
    ("html", "duration_ms"),
    [
        ("<style>@keyframes a{to{opacity:0}}p{animation:a 2s 500ms 3}</style><p>x", 6500),
        ("<style>@keyframes a{to{opacity:0}}p{animation:a 2s infinite}</style><p>x", None),
        ("<p id=p>x<script>p.animate({opacity:[0,1]},{duration:1200,endDelay:300})</script>", 1500),
        ("<svg><rect><animate attributeName=x to=9 begin=1s dur=2s repeatCount=2 /></svg>", 5000),
        ("<svg><rect><animate attributeName=x to=9 dur=2s repeatCount=indefinite /></svg>", None),
        ("<script>window.fragdex={duration:4321}</script>", 4321),
        ("<script>window.fragdex.duration = 500</script>", 500),
        ("<iframe srcdoc='<script>top.fragdex.duration = 600; fragdex.x = 1</script>'>", 600),
        ("<p>still", None),
    ],
)  # fmt: skip
def test_the_duration_is_that_of_the_longest_animation_that_ends(html, duration_ms):
    assert facts(html).duration_ms == duration_ms


def test_a_page_whose_scripts_failed_says_so_where_nobody_knows_its_duration():
    def look(view):
        with Stage(Page("<script>window.absent.duration = 500</script>"), view) as stage:
            return stage.facts

    one = settled(RenderSpec(), Limits(), look)
    with pytest.raises(PageFailed, match=r"how long it lasts.*TypeError: Cannot set properties"):
        frames_of(RenderSpec(), one.duration_ms, one.because)


def test_facts_tell_the_browser():
    page_facts = facts("")
    assert "Chrome" in page_facts.browser_version
    assert not page_facts.seekable


def test_a_page_is_waited_for_until_it_says_that_it_is_ready():
    html = """<body><script>window.fragdex = {ready: new Promise((done) => setTimeout(() => {
    document.body.style.background = "#0f0"; done(); }, 700))}</script>"""
    with Stage(Page(HEAD + html), SMALL) as stage:
        assert tuple(pixels(stage.frame(0))[90, 160]) == (0, 255, 0)


def test_pages_find_what_browsers_keep_for_secure_contexts():
    html = """<script>fragdex = {ready: (async () => {
      const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode("abc"));
      const kept = await caches.open("kept");
      await kept.put("/a", new Response("stays"));
      const chunks = [];
      const encoder = new VideoEncoder({output: (one) => chunks.push(one), error: console.error});
      encoder.configure({codec: "vp8", width: 64, height: 64});
      const canvas = new OffscreenCanvas(64, 64);
      canvas.getContext("2d").fillRect(0, 0, 9, 9);
      const frame = new VideoFrame(canvas, {timestamp: 0});
      encoder.encode(frame);
      frame.close();
      await encoder.flush();
      window.found = [isSecureContext, new Uint8Array(hash)[0],
        await (await kept.match("/a")).text(), chunks.length, crypto.randomUUID().length,
        await navigator.gpu.requestAdapter()];
    })()}</script>"""
    with Stage(Page(HEAD + html), SMALL) as stage:
        assert stage.evaluate("found") == [True, 0xBA, "stays", 1, 36, None]
        assert stage.notes.console == []


def test_a_page_that_is_never_ready_fails_and_says_so():
    html = (
        "<script>window.fragdex = {ready: new Promise(() => 0)}; console.error('working')</script>"
    )
    with pytest.raises(PageFailed, match="not ready after 200 ms") as caught:
        Stage(Page(HEAD + html), SMALL, limits=Limits(ready_ms=200))
    assert caught.value.more["console"] == ["error: working"]


def test_a_page_that_rejects_its_promise_fails_with_the_reason():
    html = "<script>window.fragdex = {ready: Promise.reject(new Error('no data'))}</script>"
    with pytest.raises(PageFailed, match="will not be ready") as caught:
        Stage(Page(HEAD + html), SMALL)
    assert "no data" in str(caught.value)


def test_a_seek_that_throws_fails_the_page():
    html = "<script>window.fragdex = {seek: (ms) => { throw new Error('not ' + ms) }}</script>"
    with Stage(Page(HEAD + html), SMALL) as stage, pytest.raises(PageFailed, match="not 0"):
        stage.frame(0)


def test_transparent_pages_keep_their_holes():
    html = "<body style='margin:0'><div style='width:50px;height:50px;background:#f008'></div>"
    with Stage(Page(HEAD + html), PageView(100, 100, transparent=True)) as stage:
        seen = pixels(stage.frame(0), "RGBA")
        assert abs(seen[20, 20] - (255, 0, 0, 136)).max() <= 1
        assert seen[80, 80, 3] == 0
    with Stage(Page(HEAD + html), PageView(100, 100)) as stage:
        seen = pixels(stage.frame(0), "RGBA")
        assert tuple(seen[80, 80]) == (255, 255, 255, 255)
