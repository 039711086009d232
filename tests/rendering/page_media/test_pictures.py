"""A film on a page shows the picture of the frame's time: on the page, in canvases, in textures."""

from __future__ import annotations

import io
from fractions import Fraction

import av
import numpy as np
import pytest

from rendering.page_media.films import number_at, numbered, one_colour

READ_EVERYWHERE = """
<video id=v src=film.mp4 autoplay muted style="position:absolute;left:0;top:0"></video>
<canvas id=c width=256 height=48 style="position:absolute;left:0;top:60px"></canvas>
<canvas id=g width=256 height=48 style="position:absolute;left:0;top:120px"></canvas>
<script>
const gl = g.getContext('webgl', {preserveDrawingBuffer: true});
const make = (kind, text) => { const s = gl.createShader(kind); gl.shaderSource(s, text); gl.compileShader(s); return s };
const p = gl.createProgram();
gl.attachShader(p, make(gl.VERTEX_SHADER, 'attribute vec2 a; varying vec2 t; void main() { t = vec2(a.x, 1. - a.y); gl_Position = vec4(a * 2. - 1., 0, 1); }'));
gl.attachShader(p, make(gl.FRAGMENT_SHADER, 'precision mediump float; uniform sampler2D s; varying vec2 t; void main() { gl_FragColor = texture2D(s, t); }'));
gl.linkProgram(p); gl.useProgram(p);
gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([0, 0, 1, 0, 0, 1, 1, 1]), gl.STATIC_DRAW);
gl.enableVertexAttribArray(0); gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
for (const k of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, k, gl.NEAREST);
for (const k of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, k, gl.CLAMP_TO_EDGE);
function draw() {
  c.getContext('2d').drawImage(v, 0, 0);
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, v);
  gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  requestAnimationFrame(draw);
}
requestAnimationFrame(draw);
</script>"""  # noqa: E501


@pytest.mark.parametrize("fps", [Fraction(30), Fraction(60), Fraction(30000, 1001)])
def test_page_canvas_and_texture_show_the_picture_of_the_frame(show, fps):
    page = show(READ_EVERYWHERE, {"film.mp4": numbered(120, fps)}, fps)
    for i in range(40):
        picture = page.frame(i)
        assert [number_at(picture, y=y) for y in (24, 84, 144)] == [i, i, i]
    page.stage.skip(40, 90)
    for i in range(90, 100):
        picture = page.frame(i)
        assert [number_at(picture, y=y) for y in (24, 84, 144)] == [i, i, i]
    assert page.player.refused() == []


@pytest.mark.parametrize("codec", ["libvpx-vp9", "libvpx"])
def test_webm_shows_its_pictures_too(show, codec):
    film = numbered(60, Fraction(30), codec=codec)
    page = show("<video src=film.webm autoplay muted>", {"film.webm": film})
    assert [number_at(page.frame(i)) for i in range(40)] == list(range(40))


def test_rates_of_film_and_render_need_not_be_equal(show):
    page = show("<video src=a.mp4 autoplay muted>", {"a.mp4": numbered(60, Fraction(25))}, 60)
    assert [number_at(page.frame(i)) for i in range(60)] == [i * 25 // 60 for i in range(60)]


def test_a_page_that_sets_the_time_in_each_frame_gets_that_frame(show):
    html = """<video id=v src=a.mp4 muted></video><script>
    function seek(t) { v.currentTime = 1.5 - t / 1000; requestAnimationFrame(seek) }
    requestAnimationFrame(seek)</script>"""
    page = show(html, {"a.mp4": numbered(60, Fraction(20))}, 20)
    shown = [number_at(page.frame(i)) for i in range(20)]
    assert shown == [30 - i for i in range(20)]


# Each way to show picture 2 n of a film in frame n, in a row of its own.
CUTS = {
    "new element": "put(row, n)",
    "playing": "put(row, n).play()",
    "autoplay": "row.innerHTML = `<video muted autoplay src='a.mp4#t=${2 * n / 20}'>`",
    "a source": "row.innerHTML = `<video muted><source src='a.mp4#t=${2 * n / 20}'></video>`",
    "another src": """{ const v = row.firstChild ?? row.appendChild(make());
        v.src = `a.mp4?${n}`; v.currentTime = 2 * n / 20 }""",
    "in a task after the frame": "later(() => { put(row, n) })",
    "another time, in a task after the frame": """{ const v = row.firstChild ?? put(row, n);
        later(() => { v.currentTime = 2 * n / 20 }) }""",
    "after a fetch": "fetch('a.mp4').then((told) => told.blob()).then(() => { put(row, n) })",
    "blob:": """fetch('a.mp4').then((told) => told.blob())
        .then((one) => { put(row, n, URL.createObjectURL(one)) })""",
    "in a shadow": """{ const inner = document.createElement("p"); inner.style.margin = 0;
        row.replaceChildren(inner); put(inner.attachShadow({ mode: "open" }), n) }""",
    "when it has loaded": """{ const v = make(); v.src = "a.mp4";
        v.onloadeddata = () => { v.currentTime = 2 * n / 20 };
        v.onseeked = () => { row.replaceChildren(v) } }""",
}
MOUNTED = """<style>div { height: 16px; overflow: hidden } video { display: block }</style><script>
  let k = 0;
  const make = () => Object.assign(document.createElement("video"), { muted: true });
  const put = (row, n, url = "a.mp4") => { const v = make();
    v.src = url; v.currentTime = 2 * n / 20; row.replaceChildren(v); return v };
  const { port1, port2 } = new MessageChannel(); const tasks = [];
  port1.onmessage = () => tasks.shift()();
  const later = (run) => { tasks.push(run); port2.postMessage(0) };
  const add = () => document.body.appendChild(document.createElement("div"));
  const rows = [WAYS].map((show) => [add(), show]);
  const cut = (n) => { for (const [row, show] of rows) show(row, n) };
  DRIVE
</script>"""
DRIVES = {
    "frames": "requestAnimationFrame(function f() { cut(k++); requestAnimationFrame(f) })",
    "timers": "requestAnimationFrame(() => { cut(k++); setInterval(() => cut(k++), 50) })",
}


@pytest.mark.parametrize(
    ("drive", "begin_frames"), [("frames", True), ("timers", True), ("frames", False)]
)
def test_a_film_that_is_put_in_while_the_page_runs_is_in_that_frame(show, drive, begin_frames):
    html = MOUNTED.replace("DRIVE", DRIVES[drive]).replace(
        "WAYS", ", ".join(f"(row, n) => {{ {way} }}" for way in CUTS.values())
    )
    film = {"a.mp4": numbered(20, Fraction(20), size=(256, 16))}
    size = (256, 16 * len(CUTS))
    page = show(html, film, 20, size=size, begin_frames=begin_frames)
    frames = page.frames(0, 6)
    for i, picture in enumerate(frames):
        shown = {way: number_at(picture, y=16 * n + 8) for n, way in enumerate(CUTS)}
        assert shown == dict.fromkeys(CUTS, 2 * i), i
    assert page.stage.notes.late == page.stage.notes.console == []
    if begin_frames:
        again = show(html, film, 20, size=size)
        again.stage.skip(0, 3)
        assert all(np.array_equal(again.frame(i), frames[i]) for i in range(3, 6))


def test_thumbnails_are_made_one_after_the_other(show):
    html = """<video id=v src=a.mp4 muted style="display:none"></video><script>
    const wanted = [1.5, .2, .9, 0];
    v.onloadeddata = () => { v.currentTime = wanted[0] };
    v.onseeked = () => {
      const c = document.body.appendChild(document.createElement('canvas'));
      [c.width, c.height] = [256, 40]; c.style.display = 'block';
      c.getContext('2d').drawImage(v, 0, 0);
      wanted.shift();
      if (wanted.length) v.currentTime = wanted[0];
    }</script>"""
    page = show(html, {"a.mp4": numbered(60, Fraction(30))})
    page.frame(0)
    picture = page.frame(5)
    assert [number_at(picture, y=20 + 40 * n) for n in range(4)] == [45, 6, 27, 0]


def test_bitmaps_frames_and_patterns_are_of_the_same_picture(show):
    html = """<video id=v src=a.mp4 muted style="display:none"></video>
    <canvas id=c width=256 height=150></canvas><script>
    const to = c.getContext('2d');
    fragdex = {ready: new Promise(done => v.onseeked = async () => {
      to.drawImage(await createImageBitmap(v), 0, 0);
      const f = new VideoFrame(v); to.drawImage(f, 0, 50);
      window.told = [f.displayWidth, f.timestamp, f instanceof VideoFrame]; f.close();
      to.fillStyle = to.createPattern(v, 'repeat-x');
      to.translate(0, 100); to.fillRect(0, 0, 256, 48);
      done();
    })};
    v.onloadeddata = () => { v.currentTime = 1 }</script>"""
    page = show(html, {"a.mp4": numbered(60, Fraction(30))})
    picture = page.frame(0)
    assert [number_at(picture, y=24 + 50 * n) for n in range(3)] == [30, 30, 30]
    assert page.ask("told") == [256, 1_000_000, True]


def test_frame_callbacks_come_once_a_picture(show):
    html = """<video id=v src=a.mp4 muted autoplay></video><script>
    const seen = [];
    function next(now, told) { seen.push([now, told.mediaTime, told.presentedFrames]); v.requestVideoFrameCallback(next) }
    v.requestVideoFrameCallback(next)</script>"""  # noqa: E501
    page = show(html, {"a.mp4": numbered(30, Fraction(10))}, 20)
    page.frames(0, 5)
    page.stage.skip(5, 9)
    seen = page.ask("seen")
    assert [one[1:] for one in seen] == [[n / 10, n + 1] for n in range(5)]
    assert [one[0] for one in seen] == pytest.approx([100 * n for n in range(5)], abs=0.001)


def test_the_box_is_the_browsers_own(show):
    """Size, fit, corners, order, opacity, filters and transforms of the element hold."""
    html = """<style>body { background: #fff } video { position: absolute }</style>
    <video src=a.mp4 style="left:0;top:0;width:100px;height:100px;background:#00f"></video>
    <video src=a.mp4 style="left:110px;top:0;width:100px;height:100px;object-fit:fill;border-radius:50%"></video>
    <video src=a.mp4 style="left:220px;top:0;opacity:.5;transform:scale(.5);transform-origin:0 0"></video>
    <video src=a.mp4 style="left:0;top:110px;filter:grayscale(1)"></video>
    <div style="position:absolute;left:110px;top:110px;width:20px;height:20px;background:#0f0;z-index:1"></div>
    <video src=a.mp4 style="left:110px;top:110px"></video>"""  # noqa: E501
    page = show(html, {"a.mp4": one_colour((200, 40, 30))})
    picture = page.frame(0)

    def at(x, y):
        return tuple(picture[y, x].tolist())

    def near(pixel, rgb):
        return np.abs(np.array(pixel) - rgb).max() <= 6

    red, white, blue = (200, 40, 30), (255, 255, 255), (0, 0, 255)
    assert near(at(50, 50), red)
    assert near(at(50, 5), blue)
    assert near(at(50, 95), blue)
    assert near(at(160, 50), red)
    assert near(at(112, 2), white)
    assert near(at(230, 10), (228, 148, 142))
    assert near(at(260, 30), white)
    level = at(20, 130)
    assert max(level) - min(level) <= 2
    assert near(at(115, 115), (0, 255, 0))
    assert near(at(150, 140), red)
    assert near(at(180, 120), white)


def test_a_poster_stands_until_the_film_begins(show):
    html = """<video id=v src=a.mp4 muted poster="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='64' height='48'><rect width='64' height='48' fill='lime'/></svg>" style="display:block"></video>
    <script>at(500, () => v.play())</script>"""  # noqa: E501
    page = show(html, {"a.mp4": one_colour((200, 40, 30))}, 20)
    shown = page.frames(0, 12)
    before, after = shown[8][20, 20], shown[11][20, 20]
    assert before.tolist() == [0, 255, 0]
    assert np.abs(after - (200, 40, 30)).max() <= 6
    assert page.ask("v.poster").startswith("data:image/svg")
    assert page.ask("[v.offsetWidth, v.offsetHeight]") == [64, 48]


def test_many_films_play_side_by_side(show):
    tags = "".join(f"<video src=a.mp4#t={n / 10} autoplay muted></video>" for n in range(3))
    page = show(
        f"<style>video {{ display: block }}</style>{tags}", {"a.mp4": numbered(60, Fraction(30))}
    )
    for i in (0, 1, 7, 12):
        picture = page.frame(i)
        assert [number_at(picture, y=24 + 48 * n) for n in range(3)] == [i, i + 3, i + 6]


def turned(angle, size=(64, 32)):
    """A film that is red on its left and blue on its right, to be turned by its display matrix."""
    file = io.BytesIO()
    container = av.open(file, "w", format="mp4")
    stream = container.add_stream("libx264", rate=10, options={"preset": "ultrafast", "crf": "5"})
    stream.width, stream.height = size
    stream.pix_fmt = "yuv420p"
    stream.set_display_rotation(angle)
    array = np.zeros((size[1], size[0], 3), np.uint8)
    array[:, : size[0] // 2, 0] = array[:, size[0] // 2 :, 2] = 220
    for _ in range(10):
        container.mux(stream.encode(av.VideoFrame.from_ndarray(array, format="rgb24")))
    container.mux(stream.encode())
    container.close()
    return file.getvalue()


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_films_stand_upright(show, angle):
    """As the browser shows them when it plays by itself: the display matrix is applied."""
    html = """<video id=v src=a.mp4 autoplay muted style="display:block"></video>
    <canvas id=c width=64 height=64></canvas><script>requestAnimationFrame(function f() {
      c.getContext('2d').drawImage(v, 0, 0); requestAnimationFrame(f) })</script>"""
    page = show(html, {"a.mp4": turned(angle)}, 10)
    picture = page.frame(3)
    wide, high = (32, 64) if angle % 180 else (64, 32)
    assert page.ask("[v.videoWidth, v.videoHeight, v.offsetWidth]") == [wide, high, wide]
    # red is left; turned against the clock by 90 degrees left is below
    red = {90: (16, 56), 180: (56, 16), 270: (16, 8)}[angle]
    blue = {90: (16, 8), 180: (8, 16), 270: (16, 56)}[angle]
    for top in (0, high):
        assert picture[top + red[1], red[0]].argmax() == 0
        assert picture[top + blue[1], blue[0]].argmax() == 2


def test_pixels_that_are_not_square_are_stretched(show):
    file = io.BytesIO()
    container = av.open(file, "w", format="mp4")
    stream = container.add_stream("libx264", rate=10, options={"preset": "ultrafast"})
    stream.width, stream.height = 32, 32
    stream.pix_fmt = "yuv420p"
    stream.codec_context.sample_aspect_ratio = Fraction(2)
    for _ in range(5):
        frame = av.VideoFrame.from_ndarray(np.full((48, 32), 128, np.uint8), format="yuv420p")
        container.mux(stream.encode(frame))
    container.mux(stream.encode())
    container.close()
    page = show("<video id=v src=a.mp4 autoplay muted>", {"a.mp4": file.getvalue()}, 10)
    page.frame(0)
    assert page.ask("[v.videoWidth, v.videoHeight, v.offsetWidth]") == [64, 32, 64]


def test_transparent_films_let_the_page_through(show):
    file = io.BytesIO()
    container = av.open(file, "w", format="mov")
    stream = container.add_stream("qtrle", rate=10)
    stream.width, stream.height, stream.pix_fmt = 64, 48, "argb"
    array = np.zeros((48, 64, 4), np.uint8)
    array[:, :32] = (220, 30, 30, 255)
    for _ in range(5):
        frame = av.VideoFrame.from_ndarray(array, format="rgba").reformat(format="argb")
        container.mux(stream.encode(frame))
    container.mux(stream.encode())
    container.close()
    html = """<style>body { background: #0a0 }</style><video id=v src=a.mov autoplay muted
    style="display:block"></video><canvas id=c width=64 height=48></canvas><script>
    requestAnimationFrame(() => c.getContext('2d').drawImage(v, 0, 0))</script>"""
    page = show(html, {"a.mov": file.getvalue()}, 10)
    picture = page.frame(0)
    for y in (24, 72):
        assert np.abs(picture[y, 10] - (220, 30, 30)).max() <= 8
        assert np.abs(picture[y, 50] - (0, 170, 0)).max() <= 2


def test_the_page_and_its_canvas_agree_on_colours(show):
    """What is shown went through JPEG, what is read did not: both are the film's colours."""
    for size in ((64, 48), (1280, 720)):
        html = """<video id=v src=a.mp4 autoplay muted style="position:absolute;left:0;top:0;
        width:64px;height:48px"></video><canvas id=c width=64 height=48 style="position:absolute;
        left:100px;top:0"></canvas><script>requestAnimationFrame(() =>
        c.getContext('2d').drawImage(v, 0, 0, 64, 48))</script>"""
        page = show(html, {"a.mp4": one_colour((180, 90, 30), size, 1, 5)}, 5)
        picture = page.frame(0)
        # Chromium's own conversion is off by up to 6 in blue (a factor of 2.11 is taken for 2).
        assert np.abs(picture[24, 30] - picture[24, 130]).max() <= 6


def test_any_slice_shows_what_the_whole_shows(show):
    """Pixel by pixel, also where the page reads its film in every frame."""
    files = {"film.mp4": numbered(60, 30)}
    whole = show(READ_EVERYWHERE, files).frames(0, 36)
    for first in (9, 30):
        page = show(READ_EVERYWHERE, files)
        page.stage.skip(0, first)
        for i in range(first, first + 6):
            assert np.array_equal(page.frame(i), whole[i])


def test_a_browser_without_frames_on_request_shows_the_same(show):
    page = show(READ_EVERYWHERE, {"film.mp4": numbered(60, 30)}, begin_frames=False)
    for i in range(12):
        assert [number_at(page.frame(i), y=y) for y in (24, 84, 144)] == [i, i, i]


@pytest.mark.parametrize("codec", ["libx264", "libvpx-vp9"])
def test_a_film_that_begins_late_plays_at_once(show, codec):
    """As browsers do: from the first thing that is in it, and round from there."""
    film = numbered(20, 20, codec=codec, late=2, options={})
    html = """<video id=v autoplay loop src=v></video><video id=once src=v></video><script>
    once.onplaying = () => { once.began = once.currentTime };
    at(0, () => once.play());
    once.onended = () => { once.over = once.currentTime }</script>"""
    page = show(html, {"v": film}, 20, size=(600, 200))
    numbers = []
    for i in range(30):
        numbers.append(number_at(page.frame(i)))
        assert page.ask("v.currentTime") == pytest.approx(2 + i % 20 / 20, abs=0.001)
    assert numbers == [*range(20), *range(10)]
    assert page.ask("[once.began, once.over]") == pytest.approx([2, 3], abs=0.001)
    page.ask("v.currentTime = 0.5, v.pause()")
    assert page.ask("v.currentTime") == 2


@pytest.mark.parametrize("codec", ["libvpx", "libvpx-vp9"])
def test_what_a_film_leaves_open_is_seen_through(show, codec):
    """Its left half is red, its right half clear, and so in canvases."""
    file = io.BytesIO()
    with av.open(file, "w", format="webm") as container:
        options = {"deadline": "realtime", "auto-alt-ref": "0"}
        stream = container.add_stream(codec, rate=20, options=options)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuva420p"
        stream.metadata["alpha_mode"] = "1"
        array = np.zeros((48, 64, 4), np.uint8)
        array[:, :32] = (255, 0, 0, 255)
        for number in range(40):
            frame = av.VideoFrame.from_ndarray(array, format="rgba").reformat(format="yuva420p")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    html = """<style>body { background: #0f0 }</style><video id=v autoplay src=v></video>
    <canvas id=c width=64 height=48></canvas><script>
    at(100, () => c.getContext("2d").drawImage(v, 0, 0));
    at(150, () => { v.currentTime = 1 })</script>"""
    page = show(html, {"v": file.getvalue()}, 20, size=(200, 60))
    for i in range(6):
        seen = page.frame(i)
        assert abs(seen[20, 10] - (255, 0, 0)).max() < 9
        assert abs(seen[20, 50] - (0, 255, 0)).max() < 2
    drawn = "[...c.getContext('2d').getImageData(%d, 20, 1, 1).data]"
    assert page.ask(drawn % 10) == pytest.approx([255, 0, 0, 255], abs=9)
    assert page.ask(drawn % 50)[3] == 0


def test_what_is_not_shown_as_a_browser_shows_it_is_said(show):
    """A browser maps the brightness of HDR to that of the page."""
    transfers = {"sdr": 1, "pq": 16, "hlg": 18}
    films = {f"{name}.mp4": one_colour((200, 0, 0), seconds=1, transfer=number)
             for name, number in transfers.items()}  # fmt: skip
    page = show("".join(f"<video src={name} autoplay muted></video>" for name in films), films)
    page.frame(0)
    lines = sorted(page.player.refused())
    assert [line.partition(": ")[0] for line in lines] == ["HDR (HLG)", "HDR (PQ)"]
    assert ["hlg.mp4" in lines[0], "pq.mp4" in lines[1]] == [True, True]
