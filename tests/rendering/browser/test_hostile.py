"""Pages that mean harm, or do it: each ends as docs/pages.md says, and nothing gets out."""

import contextlib
import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from dataclasses import replace

import pytest

from fragdex.errors import BrowserGone, EngineUnavailable, PageFailed, TooLarge
from fragdex.rendering.browser import pipe, process
from fragdex.rendering.browser.model import Limits, Notes, PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.site import DATA, Answer, Asset, Blocked, Folder, Page
from rendering.pages.looking import Moving, pixels

SMALL = PageView(320, 180)
HEAD = "<!doctype html><meta charset=utf-8><body style='background:#0f0'>"
HASTY = Limits(script_seconds=0.5)


@pytest.fixture(scope="module")
def loopback():
    """A server that nobody may reach: (address, what it was asked for)."""
    hits = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            hits.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"SECRET")

        do_POST = do_GET

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}", hits
    server.shutdown()
    thread.join()
    server.server_close()


def is_green(picture):
    return tuple(pixels(picture)[170, 310]) == (0, 255, 0)


def rendered(html, frames=4, green=True, **options):
    """Notes of a page that is rendered, and is green in its corner at the end."""
    with Stage(Page(HEAD + html), SMALL, **options) as stage:
        given = [picture for picture in map(stage.frame, range(frames)) if picture is not None]
        assert is_green(given[-1]) or not green
        assert stage.evaluate("location.href") == "http://site.localhost/"
        return stage.notes


def outcome(html, **options):
    """The same for pages that may be rendered or fail: (notes, None) or (None, why)."""
    try:
        return rendered(html, **options), None
    except PageFailed as error:
        return None, str(error)


def watch(stage, frames=100):
    return [stage.frame(i) for i in range(1, frames)]


# ---- ways out -------------------------------------------------------------------------------


OUT = {
    "image": "<img src='http://HOST/x'>",
    "frame": "<iframe src='http://HOST/x'></iframe>",
    "style": "<style>p{background:url(http://HOST/x)}</style><p>x",
    "font": "<style>@font-face{font-family:f;src:url(http://HOST/x)}p{font:9px f}</style><p>x",
    "script": "<script src='http://HOST/x'></script>",
    "module": "<script type=module>import 'http://HOST/x'</script>",
    "prefetch": "<link rel=prefetch href='http://HOST/x'>",
    "preload": "<link rel=preload as=image href='http://HOST/x'>",
    "fetch": "<script>fetch('http://HOST/x').catch(() => 0)</script>",
    "xhr": "<script>const r=new XMLHttpRequest();r.open('GET','http://HOST/x');r.send()</script>",
    "beacon": "<script>navigator.sendBeacon('http://HOST/x', 'y')</script>",
    "events": "<script>new EventSource('http://HOST/x')</script>",
    "worker": """<script>new Worker(URL.createObjectURL(new Blob([
        "fetch('http://HOST/x').catch(() => 0)"])))</script>""",
    "nested worker": """<script>const make = (t) => `new Worker(URL.createObjectURL(new Blob([${
        JSON.stringify(t)}])))`; eval(make(make("importScripts('http://HOST/x')")))</script>""",
    "sandboxed frame": """<iframe sandbox=allow-scripts srcdoc="<script>fetch('http://HOST/x')
        </script>"></iframe>""",
    "css import": "<style>@import 'http://HOST/x';</style>",
    "video": "<video src='http://HOST/x' autoplay></video>",
    "object": "<object data='http://HOST/x'></object>",
    "svg": "<svg><image href='http://HOST/x' /></svg>",
}  # fmt: skip


def test_no_request_leaves_the_page_and_each_is_listed(loopback):
    host, hits = loopback
    html = "".join(text.replace("HOST", f"{host}/{i}") for i, text in enumerate(OUT.values()))
    notes = rendered(html, frames=20, green=False)
    assert hits == []
    listed = [one.url for one in notes.blocked]
    missing = [
        name for i, name in enumerate(OUT) if not any(f"{host}/{i}/x" in url for url in listed)
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1/", "no network"),
        ("http://[::1]/", "no network"),
        ("http://localhost/", "no network"),
        ("http://169.254.169.254/latest/meta-data/", "no network"),
        ("http://10.0.0.1/", "no network"),
        ("http://site.localhost/api/v1/files/1", "no network"),
        ("file:///etc/passwd", "not served"),
        ("chrome://version/", "not served"),
    ],
)
def test_addresses_inside_and_files_are_blocked_and_listed(url, reason):
    notes = rendered(f"<iframe src='{url}'></iframe>")
    assert [one.reason for one in notes.blocked if one.url == url and reason in one.reason]


def test_sockets_of_pages_and_workers_fail_and_are_listed(loopback):
    host, hits = loopback
    notes = rendered(
        f"""<script>
        const socket = new WebSocket('ws://{host}/page');
        socket.onerror = () => {{ document.title = "failed"; }};
        new Worker(URL.createObjectURL(new Blob(["new WebSocket('ws://{host}/worker')"])));
        const inner = document.createElement("iframe");
        document.body.append(inner);
        new inner.contentWindow.WebSocket('ws://{host}/inner');
        for (const Kind of [RTCPeerConnection]) try {{ new Kind() }} catch (e) {{}}
        </script>""",
        frames=20,
    )
    assert hits == []
    assert {one.url for one in notes.blocked} >= {
        f"ws://{host}/page", f"ws://{host}/worker", f"ws://{host}/inner",
    }  # fmt: skip
    assert "RTCPeerConnection" in notes.refused


def test_no_datagram_leaves_by_webrtc():
    """Even with the constructor found in another place, the browser's own policy holds."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(0.5)
        port = listener.getsockname()[1]
        rendered(
            f"""<script>const inner = document.createElement("iframe");
            document.body.append(inner);
            for (const Kind of [window.RTCPeerConnection, inner.contentWindow.RTCPeerConnection])
              try {{ const peer = new Kind({{iceServers:
                  [{{urls: 'stun:127.0.0.1:{port}'}}]}});
                peer.createDataChannel('x');
                peer.createOffer().then((o) => peer.setLocalDescription(o)) }} catch (e) {{}}
            </script>""",
            frames=30,
        )
        with pytest.raises(TimeoutError):
            listener.recv(1)


@pytest.mark.parametrize(
    ("leave", "told"),
    [
        ("location = 'http://HOST/x'", "navigation to http://HOST/x"),
        ("location.replace('other.html')", "navigation to http://site.localhost/other.html"),
        ("document.forms[0].submit()", "navigation to http://HOST/form"),
        ("document.links[0].click()", None),
        ("window.open('http://HOST/x')", 'window.open("http://HOST/x")'),
        ("location = 'file:///etc/passwd'", None),
        ("location = 'data:text/html,<h1>gone'", None),
        ("location.reload()", "navigation to http://site.localhost/"),
        ("history.pushState({}, '', 'x'); history.back()", None),
    ],
)
def test_a_page_cannot_leave(loopback, leave, told):
    host, hits = loopback
    leave = leave.replace("HOST", host)
    html = f"""<form action='http://{host}/form' method=post></form><a target=_blank
    href='http://{host}/blank'></a><script>
    addEventListener("beforeunload", (e) => e.preventDefault());
    setTimeout(() => {{ {leave} }}, 40)</script>"""
    notes = rendered(html)
    if told is not None:
        assert told.replace("HOST", host) in notes.refused
    assert hits == []


@pytest.mark.parametrize("when", [0, 40])
@pytest.mark.parametrize("where", ["'about:blank'", "URL.createObjectURL(new Blob(['x']))"])
def test_a_page_that_replaces_itself_without_a_request_fails(where, when):
    html = f"<script>setTimeout(() => {{ location = {where} }}, {when})</script>"
    with pytest.raises(PageFailed, match=r"the page left for (about:blank|blob:)"):
        rendered(html, frames=30)


def test_a_meta_refresh_stays_where_it_is(loopback):
    host, hits = loopback
    notes = rendered(f"<meta http-equiv=refresh content='0;url=http://{host}/x'>")
    assert f"navigation to http://{host}/x" in notes.refused
    assert hits == []


def test_service_workers_and_live_input_are_refused_by_name():
    html = """<style>iframe { display: none }</style><iframe srcdoc="x"></iframe><script>
      const frame = document.body.appendChild(document.createElement("iframe"));
      const {register} = frame.contentWindow.ServiceWorkerContainer.prototype;
      for (const ask of [() => navigator.serviceWorker.register('x.js'),
        () => frames[0].navigator.serviceWorker.register('x.js'),
        () => register.call(navigator.serviceWorker, 'x.js'),
        () => new SharedWorker('x'), () => new WebTransport('https://127.0.0.1')])
        try { ask()?.catch?.(() => 0) } catch (e) {}
    </script>"""
    notes = rendered(html)
    assert sorted(notes.refused) == [
        "SharedWorker", "WebTransport", "navigator.serviceWorker.register"
    ]  # fmt: skip


def test_a_service_worker_that_gets_in_has_no_way_out(loopback, tmp_path):
    """By the browser's own function, which only worlds without our scripts have."""
    host, hits = loopback
    (tmp_path / "index.html").write_text(HEAD)
    (tmp_path / "sw.js").write_text(
        f"""const ask = (path) => fetch("http://{host}/" + path).catch(() => 0);
        ask("begun");
        oninstall = () => {{
          skipWaiting();
          try {{ importScripts("http://{host}/imported") }} catch (error) {{}}
        }};
        onactivate = () => ask("active");"""
    )
    wanted = {f"http://{host}/{path}" for path in ("begun", "imported", "active")}
    with Stage(Folder(tmp_path), SMALL) as stage:
        pipe, session = stage._pipe, stage._session
        frame = pipe.call("Page.getFrameTree", session)["frameTree"]["frame"]["id"]
        world = pipe.call("Page.createIsolatedWorld", session, frameId=frame)
        pipe.call(
            "Runtime.evaluate", session, contextId=world["executionContextId"],
            expression="navigator.serviceWorker.register('sw.js')",
        )  # fmt: skip
        stop, i = time.monotonic() + 60, 0
        while {one.url for one in stage.notes.blocked} != wanted and time.monotonic() < stop:
            stage.skip(i, i + 1)
            i += 1
        assert {one.url for one in stage.notes.blocked} == wanted
        assert is_green(stage.frame(i))
    assert hits == []


class OneHost:
    """An outside that knows one picture."""

    def __init__(self):
        self.asked = []

    def fetch(self, url, headers):
        self.asked.append(url)
        if url.startswith("https://pictures.example/"):
            return Answer(
                200,
                {"content-type": "image/svg+xml"},
                b"""<svg width="320" height="180" xmlns="http://www.w3.org/2000/svg">
                <rect width="320" height="180" fill="#00f"/></svg>""",
            )
        raise Blocked("not on the list")


def test_what_the_operator_allows_is_asked_for_and_told_apart():
    outside = OneHost()
    html = """<style>body{margin:0}img{position:absolute}</style>
    <img src='https://pictures.example/a.svg#x'><img src='https://others.example/b.png'>"""
    with Stage(Page(HEAD + html), SMALL, outside=outside) as stage:
        assert tuple(pixels(stage.frame(0))[90, 160]) == (0, 0, 255)
        assert [one.url for one in stage.notes.blocked] == ["https://others.example/b.png"]
    assert outside.asked[0] == "https://pictures.example/a.svg"


def test_reads_tell_what_was_looked_for(tmp_path):
    (tmp_path / "index.html").write_text(
        HEAD + "<link rel=stylesheet href='a%20b.css'><img src='none.png'>"
        "<script>fetch('..%2f..%2fetc/passwd'); fetch('/sub/../x?y#z')</script>"
    )
    (tmp_path / "a b.css").write_text("p{}")
    with Stage(Folder(tmp_path), SMALL) as stage:
        stage.frame(0)
        looked_for = {"", "a b.css", "none.png", "../../etc/passwd", "x"}
        assert set(stage.reads) == looked_for | {DATA}
        assert [path for path, digest in stage.reads.items() if digest] == ["", "a b.css"]


# ---- pages that do not end ------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        "for (;;);",
        "setTimeout(() => { for (;;); }, 40)",
        "requestAnimationFrame(() => { for (;;); })",
        "const again = () => Promise.resolve().then(again); again()",
        "for (;;) console.error('x')",
        "for (;;) window.alert('x')",
        "document.body.innerHTML = '<style>' + 'a{}'.repeat(1e3); for (;;) document.body.offsetTop",
    ],
)
def test_an_endless_script_fails_the_page(script):
    began = time.monotonic()
    with pytest.raises(PageFailed, match=r"did not end within 0\.5 s"):
        rendered(f"<script>{script}</script>", limits=HASTY)
    assert time.monotonic() - began < 60


def test_an_endless_script_is_not_taken_for_a_broken_browser_on_a_busy_machine(monkeypatch):
    """Where the first look comes late, what the page did until then is not known."""
    monkeypatch.setattr(process, "_SILENT_SECONDS", 1.0)
    monkeypatch.setattr(pipe, "_POLL_SECONDS", 1.5)
    with pytest.raises(PageFailed, match=r"did not end within 0\.5 s"):
        rendered("<script>for (;;);</script>", limits=HASTY)


def test_an_endless_load_fails_the_page():
    html = """<script>const ask = () => { const image = new Image();
      image.onerror = ask; image.src = Math.random() }; ask()</script>"""
    with pytest.raises(PageFailed, match="not loaded after 1 s"):
        rendered(html, limits=Limits(load_seconds=1))


def test_a_font_that_never_comes_is_blocked_and_the_page_goes_on():
    class Slow:
        def fetch(self, url, headers):
            time.sleep(1.5)
            raise Blocked("fonts.example took more than 1.5 s")

    html = (
        "<style>@font-face{font-family:f;src:url(https://fonts.example/f)}p{font:9px f}</style><p>x"
    )
    notes = rendered(html, outside=Slow(), limits=HASTY)
    assert [one.reason for one in notes.blocked] == ["fonts.example took more than 1.5 s"]


# ---- pages that take too much ---------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        "const a = []; for (;;) a.push(new Array(1e6).fill(Math.random()))",
        "const a = []; for (;;) a.push(new Uint8Array(1e8).fill(1))",
        "let s = 'x'; for (;;) s += s + Math.random()",
        "const w = new Worker(URL.createObjectURL(new Blob(["
        "'const a=[];for(;;)a.push(new Uint8Array(1e8).fill(1))'])));"
        "window.fragdex={ready:new Promise(() => 0)}",
    ],
)
def test_a_heap_bomb_ends_its_own_browser_alone(script):
    notes, why = outcome(
        f"<script>{script}</script>", limits=Limits(memory_bytes=700 << 20, ready_ms=1000)
    )
    if notes is not None:
        # what a script cannot have it is refused, and may live on
        assert "RangeError" in notes.console[0]
    else:
        assert any(word in why for word in ("memory", "crashed", "ready"))
    rendered("fine")


# Waits while it writes a MiB after the other: until it is refused, or all of them are written.
KEEPING = """<script>window.fragdex = {ready: (async () => {
  const piece = new Uint8Array(1 << 20)
  for (let at = 0; at < piece.length; at += 65536)
    crypto.getRandomValues(piece.subarray(at, at + 65536))
  try { for (let i = 0; i < %d; i += 1) await (%s)(i, piece); console.error("kept all") }
  catch (error) { console.error(error.name) }
})()}</script>"""
KEEPERS = {
    "files": """async (i, piece) => {
        const root = await navigator.storage.getDirectory()
        const file = await (await root.getFileHandle(`${i}`, {create: true})).createWritable()
        await file.write(piece); await file.close()
    }""",
    "a database": """(i, piece) => new Promise((done, failed) => {
        const opening = indexedDB.open("kept")
        opening.onupgradeneeded = () => opening.result.createObjectStore("pieces")
        opening.onsuccess = () => {
            const adding = opening.result.transaction("pieces", "readwrite")
            adding.onabort = () => failed(adding.error); adding.oncomplete = done
            adding.objectStore("pieces").put(piece, i)
        }
    })""",
    "a cache": """async (i, piece) =>
        (await caches.open("kept")).put(`/${i}`, new Response(piece))""",
}


@pytest.mark.parametrize("keeper", KEEPERS)
def test_what_a_page_keeps_on_the_disk_is_bounded(keeper):
    notes, why = outcome(
        KEEPING % (64, KEEPERS[keeper]), limits=Limits(storage_bytes=8 << 20, ready_ms=300_000)
    )
    assert why is None
    assert notes.console == ["error: QuotaExceededError"]


def test_a_page_that_keeps_much_in_many_places_is_ended(monkeypatch):
    monkeypatch.setattr(process, "_BROWSERS_OWN", -(1 << 30))
    notes, why = outcome("<p>" * 10, limits=Limits(storage_bytes=8 << 20))
    assert notes is None
    assert "more on the disk" in why


def png_bomb(side):
    """A small file that is side × side pixels: 4 bytes each, when it is decoded."""
    import struct

    def chunk(kind, data):
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    packed = zlib.compressobj(9)
    row = bytes(1 + side // 8)
    data = b"".join([*(packed.compress(row) for _ in range(side)), packed.flush()])
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
        + chunk(b"IDAT", data)
        + chunk(b"IEND", b"")
    )


def test_an_image_of_a_gigabyte_does_not_take_the_machine(tmp_path):
    (tmp_path / "bomb.png").write_bytes(png_bomb(16384))

    class Bomb(Page):
        def read(self, path):
            return super().read(path) or Folder(tmp_path).read(path)

    html = HEAD + "<img src='bomb.png' style='width:100px'>"
    stage = Stage(Bomb(html), SMALL, limits=Limits(memory_bytes=900 << 20))
    with stage, contextlib.suppress(PageFailed):
        assert is_green(stage.frame(0))


@pytest.fixture
def bombs(tmp_path):
    """A page of two pictures that take a second each to decode."""
    images = [f"<img src='bomb.png?{i}' style='width:100px'>" for i in range(2)]
    (tmp_path / "index.html").write_text(HEAD + "".join(images))
    (tmp_path / "bomb.png").write_bytes(png_bomb(16384))
    return Folder(tmp_path)


def test_a_picture_may_take_longer_than_a_script(bombs):
    """How long a picture is decoded says nothing about the page's scripts."""
    with Stage(bombs, SMALL, limits=replace(HASTY, beside_seconds=1000)) as stage:
        assert is_green(stage.frame(0))


def test_a_picture_that_takes_too_long_fails_the_page(bombs):
    with (
        Stage(bombs, SMALL, limits=Limits(beside_seconds=0.5)) as stage,
        pytest.raises(PageFailed, match=r"pictures or workers .* more than 0\.5 s"),
    ):
        stage.frame(0)


@pytest.mark.parametrize("view", [PageView(16384, 16384), PageView(7680, 7680), PageView(8000, 10)])
def test_pixels_are_counted_before_anything_starts(view):
    with pytest.raises(TooLarge) as caught:
        Stage(Page(HEAD), view)
    assert caught.value.more["limit"]


def test_a_page_of_16384_pixels_is_seen_through_its_window():
    notes = rendered("<div style='width:16384px;height:16384px'></div>")
    assert notes == Notes(browser=notes.browser, browser_versions=notes.browser_versions)


def test_an_asset_over_the_limit_is_blocked():
    class Large(Page):
        def read(self, path):
            return super().read(path) or Asset(bytes(2000), "image/png", b"")

    with Stage(Large(HEAD + "<img src=x.png>"), SMALL, limits=Limits(asset_bytes=1000)) as stage:
        assert [one.reason for one in stage.notes.blocked] == ["larger than 1000 bytes"]


def test_thousands_of_frames_and_elements_are_rendered_or_fail():
    html = "<script>for (let i = 0; i < 300; i += 1) document.body.append(document.createElement("
    notes, why = outcome(html + "'iframe'))</script>", green=False)
    assert notes is not None or "memory" in why or "end" in why


# ---- pages that are broken, or talk too much ------------------------------------------------


def test_a_request_whose_body_is_no_text_is_blocked_and_listed():
    """It ended the browser."""
    script = "fetch('/x', { method: 'POST', body: new Uint8Array([255, 200, 0]) }).catch(() => {})"
    notes = rendered(f"{HEAD}<script>{script}</script>")
    assert [one.reason for one in notes.blocked] == ["POST: pages may only read"]


def test_dialogs_are_dismissed_and_listed():
    notes = rendered(
        """<script>alert("hello"); document.title = `${confirm("really?")} ${prompt("name?")}`;
        console.error(document.title); print()</script>"""
    )
    assert notes.refused == ['alert("hello")', 'confirm("really?")', 'prompt("name?")', "print()"]
    assert notes.console == ["error: false null"]


def test_what_a_page_throws_is_listed_and_the_rest_is_rendered():
    notes = rendered(
        """<script>console.error("one", {a: 1}, 2); console.warn("two"); console.log("three");
        setTimeout(() => { throw new TypeError("four") }, 20); Promise.reject(new Error("five"));
        </script><script>syntax error</script>"""
    )
    console = "\n".join(notes.console)
    for words in ("error: one Object 2", "warning: two", "TypeError: four", "five", "SyntaxError"):
        assert words in console
    assert "three" not in console


def test_notes_are_bounded():
    notes = rendered(
        "<script>for (let i = 0; i < 2000; i += 1) console.error(i, 'x'.repeat(5000))</script>"
    )
    assert len(notes.console) == Notes.MOST
    assert max(map(len, notes.console)) <= Notes.LONGEST


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<<<>>>&&&;;;</body></html></nothing><p <b></i>",
        "\0\0\ud800\uffff",
        "<!doctype html><html><head><body><table><tr><p><svg><foreignObject><math>",
        "<frameset><frame src=x></frameset>",
        "<plaintext><script>",
    ],
)
def test_broken_html_is_rendered_as_browsers_do(html):
    with Stage(Page(html), SMALL) as stage:
        assert stage.frame(0) is not None


def test_without_an_index_there_is_nothing_to_render(tmp_path):
    with pytest.raises(PageFailed, match=r"no index\.html"):
        Stage(Folder(tmp_path), SMALL)


def test_a_page_may_overwrite_what_it_likes():
    notes = rendered(
        """<script>for (const name of ["JSON", "Promise", "Date", "performance", "Map", "Object",
        "requestAnimationFrame", "setTimeout", "document", "__fragdexBegin", "Array", "Math"])
        try { delete window[name]; window[name] = undefined } catch (e) {}
        Array.prototype.map = Function.prototype.call = null;</script>"""
    )
    assert notes.blocked == []


# ---- browsers that end ----------------------------------------------------------------------


def test_a_browser_that_is_killed_is_gone_and_leaves_nothing():
    stage = Stage(Moving("raf.html"), SMALL)
    chromium = stage._running._chromium
    os.killpg(chromium.pid, signal.SIGKILL)
    with pytest.raises(BrowserGone):
        watch(stage)
    stage.close()
    assert chromium._processes(all_of_them=True) == []
    assert not chromium.folder.exists()


def test_a_page_process_that_is_killed_is_no_fault_of_the_page():
    with Stage(Moving("raf.html"), SMALL) as stage:
        stage.frame(0)
        for pid, _ in stage._running._chromium._processes(all_of_them=True):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"--type=renderer" in file.read():
                    os.kill(pid, signal.SIGKILL)
        with pytest.raises(BrowserGone):
            watch(stage)


OWNER = """
import os, signal, sys
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.site import Page
stage = Stage(Page("<script>setTimeout(() => { for (;;); }, 50)</script>"), PageView(320, 180))
print(stage._running._chromium.pid, stage._running._chromium.folder, flush=True)
try:
    stage._clock.advance(0)
    stage._pipe.send("Emulation.setVirtualTimePolicy", stage._session, policy="advance", budget=90)
finally:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_browser_whose_owner_is_killed_ends_itself():
    owner = subprocess.run(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, check=False, timeout=60
    )
    pid, folder = owner.stdout.decode().split()
    deadline = time.monotonic() + 90
    while alive := session_of(int(pid)):
        assert time.monotonic() < deadline, alive
        time.sleep(0.1)
    subprocess.run(["rm", "-rf", folder], check=True)


def session_of(leader):
    ids = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[3] == str(leader) and fields[0] not in "ZX":
            ids.append(int(name))
    return ids


def test_without_a_chromium_the_error_says_how_to_get_one(monkeypatch):
    monkeypatch.setenv("FRAGDEX_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(EngineUnavailable, match="names no program") as caught:
        Stage(Page(HEAD), SMALL)
    assert "chromium-headless-shell" in caught.value.advice


def test_a_program_that_is_no_chromium_is_told(monkeypatch):
    monkeypatch.setenv("FRAGDEX_CHROMIUM", "/bin/true")
    with pytest.raises(BrowserGone):
        Stage(Page(HEAD), SMALL)


def test_a_page_that_leaves_much_behind_is_told_to_let_go():
    html = """<canvas id=c width=1500 height=1500 style="width:9px"></canvas><script>
    const draw = async () => {
      requestAnimationFrame(draw);
      c.getContext("2d").fillRect(0, 0, 9, 9);
      globalThis.last = await createImageBitmap(c);
      await new Response(new Blob([new Uint8Array(2e6)])).arrayBuffer();
    };
    draw();
    </script>"""
    limits = Limits(memory_bytes=600 << 20)
    with Stage(Page(HEAD + html), SMALL, limits=limits) as stage:
        for i in range(150):
            stage.frame(i)
            if i % 50 == 49:
                stage.relieve()
        assert stage._running._chromium.memory_bytes() < limits.memory_bytes
        assert stage.evaluate("last.width") == 1500
