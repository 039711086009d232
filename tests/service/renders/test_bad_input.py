"""Every row of the table of bad input in docs/pages.md, rendered side by side with a good page.

All of them are asked for at once; each has to come to the answer that the table tells.
"""

import re
import tarfile
from pathlib import Path

import pytest

from rendering.browser.test_hostile import png_bomb
from rendering.test_archives import special, tar_of, zip_of
from service.renders.working import Renderer, numbers, numbers_of
from service.serving import API
from service.working import working

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[3] / "docs" / "pages.md"
INDEX = ("index.html", b"<h1>Hi")


def script(text):
    return f"<body><script>{text}</script>"


def page(html, pattern="", kind="", **more):
    """A page of a second in ten frames, and what its record has to tell under a name."""
    how = {"duration_ms": 1000, "fps": 10, **more}
    return {"html": html, **how}, pattern, kind


def site(data, pattern):
    return data, pattern, ""


def blocked(url, reason=""):
    return page(script(f"fetch('{url}').catch(() => 0)"), f"{url}.*{reason}", "blocked")


BOMB = "<img src=bomb.png style='width:100px'>"
INPUTS = {
    "endless script": page(script("for (;;);"), "did not end within 5 s"),
    "heap bomb": page(
        script("const a = []; for (;;) a.push(new Array(1e6).fill(Math.random()))"),
        "memory|crashed",
    ),
    "alert()": page(script("alert('hello')"), 'alert.*hello', "refused"),
    "beforeunload": page(
        script("onbeforeunload = (e) => e.preventDefault();"
               "setTimeout(() => { location = 'http://127.0.0.1/x' }, 50)"),
        "navigation to http://127.0.0.1/x", "refused",
    ),
    "redirect": page(
        "<meta http-equiv=refresh content='0;url=http://127.0.0.1/x'>",
        "navigation to http://127.0.0.1/x", "refused",
    ),
    "file://": page("<iframe src='file:///etc/passwd'></iframe>", "file:///etc/passwd", "blocked"),
    "http to loopback": blocked("http://127.0.0.1/x"),
    "http to a link-local address": blocked("http://169.254.1.1/x"),
    "http to the metadata address": blocked("http://169.254.169.254/latest/meta-data/"),
    "https to an allowed name with a private address": blocked(
        "https://localhost/x", "not public"
    ),
    "DNS rebinding": blocked("https://localhost/y", "not public"),
    "WebSocket": page(script("new WebSocket('ws://127.0.0.1/x')"), "ws://127.0.0.1/x", "blocked"),
    "WebRTC": page(
        script("try { new RTCPeerConnection() } catch (e) {}"), "RTCPeerConnection", "refused"
    ),
    "worker fetch": page(
        script("new Worker(URL.createObjectURL(new Blob(["
               "\"fetch('http://127.0.0.1/w').catch(() => 0)\"])))"),
        "http://127.0.0.1/w", "blocked",
    ),
    "service worker": page(
        script("navigator.serviceWorker.register('x.js').catch(() => 0)"),
        "navigator.serviceWorker.register", "refused",
    ),
    "window.open": page(script("window.open('http://127.0.0.1/x')"), "window.open", "refused"),
    "16,384 pixels wide, as asked": page("<p>", "width", width=16_384),
    "16,384 pixels wide, as the page says": page(
        "<html style='width:16384px;height:100px'>", "7680", width=None, height=None
    ),
    "16,384 pixels wide, within a smaller frame": page(
        "<div style='width:16384px;height:16384px;background:red'></div>"
    ),
    "archive bomb": site(tar_of(("index.html", bytes(64 << 20))), "times its size"),
    "archive with ../": site(zip_of(INDEX, ("../x", b"")), "'../x'"),
    "archive with a symbolic link": site(
        tar_of(INDEX, (special("a", tarfile.SYMTYPE, "/etc/passwd"), b"")), "'a'.*link"
    ),
    "archive with a device": site(
        tar_of(INDEX, (special("a", tarfile.CHRTYPE), b"")), "'a'.*not a regular file"
    ),
    "index.html missing": site(tar_of(("site/index.html", b"")), "index.html.*'site'"),
    "invalid HTML": page("<<<>>>&&&;;;</body></html></nothing><p <b></i>"),
    "1 ms duration": page("<p>", duration_ms=1, fps=30),
    "1 h duration, static, 1 fps": page("<h1>still", duration_ms=3_600_000, fps=1),
    "fps 120": page(numbers(120), fps=120),
    "font that never loads": page(
        "<style>@font-face{font-family:f;src:url(https://fonts.example/f)}"
        "p{font:9px f}</style><p>x",
        "https://fonts.example/f", "blocked",
    ),
    "image of 1 GB": ((BOMB, png_bomb(16_384)), "", ""),
    "page that throws": page(script("throw new TypeError('ouch')"), "TypeError: ouch", "console"),
    "no duration anywhere": page("<p>", "duration_ms", duration_ms=None),
}  # fmt: skip
FRAMES = {"1 ms duration": 1, "1 h duration, static, 1 fps": 3600, "fps 120": 120}


def table():
    """{input: answer} of the page."""
    rows = DOCS.read_text().partition("## Bad input")[2].splitlines()
    cells = [row.strip("|").split("|") for row in rows if row.startswith("| ")]
    return {name.strip(): answer.strip() for name, answer, *_ in cells[1:]}


TABLE = table()


def test_every_row_is_tried():
    assert list(TABLE) == list(INPUTS)


@pytest.fixture(scope="module")
def renders(chromium, tmp_path_factory):
    """A service that works on all of it at once: {input: answer to its request}, and a good one."""
    folder = tmp_path_factory.mktemp("bad")
    config = folder / "fragdex.toml"
    config.write_text('render_hosts = ["localhost"]\n')
    with working(folder / "data", "--config", str(config)) as served:
        renderer = Renderer(served.client, served)
        asked = {name: begun(renderer, given) for name, (given, *_) in INPUTS.items()}
        good = renderer.begin(numbers(), duration_ms=3000, work_slice_ms=1000)
        yield renderer, asked, good


def begun(renderer, given):
    client = renderer.client
    if isinstance(given, dict):
        return client.post(f"{API}/renders", json={"width": 320, "height": 180, **given})
    body = {"width": 320, "height": 180, "duration_ms": 100}
    id = client.post(f"{API}/renders", json=body).json()["id"]
    if isinstance(given, tuple):
        html, picture = given
        given = tar_of(("index.html", html.encode()), ("bomb.png", picture))
    return client.post(f"{API}/renders/{id}/upload", content=given)


def test_the_renders_beside_them_go_on(renders):
    renderer, _, good = renders
    record = renderer.ended(good)
    assert record["status"] == "complete"
    film = renderer.client.get(f"{API}/renders/{good}.mp4").content
    assert numbers_of(film) == list(range(90))


@pytest.mark.parametrize("name", INPUTS)
def test_what_becomes_of_it(renders, name):
    renderer, asked, _ = renders
    _, pattern, kind = INPUTS[name]
    answer, _, detail = TABLE[name].partition(": ")
    response = asked[name]
    if answer == "refused":
        assert response.status_code == int(detail)
        assert re.search(pattern, response.json()["detail"] + str(response.json()), re.DOTALL)
        return
    assert response.status_code == 201, response.text
    record = renderer.ended(response.json()["id"])
    if answer == "failed":
        assert record["status"] == "failed", record
        assert record["problem"]["type"] == f"/docs#{detail}"
        assert re.search(pattern, record["problem"]["detail"])
        return
    assert record["status"] == "complete", record["problem"]
    if kind:
        assert any(re.search(pattern, str(line)) for line in record[kind]), record[kind]
    film = renderer.client.get(f"{API}/renders/{record['id']}.mp4").content
    if name == "fps 120":
        assert numbers_of(film) == list(range(120))
    assert record["frames"] == FRAMES.get(name, record["frames"])
