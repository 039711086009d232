"""`fragdex render`: a page on the command line, without any service."""

import hashlib
import json
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import av
import pytest
from PIL import Image

import fragdex

MOVING = """<!doctype html><style>
html { width: 160px; height: 90px; overflow: hidden } body { margin: 0; background: #000 }
p { margin: 0; width: 40px; height: 90px; background: #fff; animation: go 1s linear both }
@keyframes go { to { transform: translateX(120px) } }
</style><p></p>"""


@pytest.fixture(scope="session")
def _chromium():
    finding = pytest.importorskip("fragdex.rendering.browser.finding")
    from fragdex.errors import EngineUnavailable

    try:
        finding.find_engine()
    except EngineUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def page(tmp_path, _chromium):
    path = tmp_path / "page.html"
    path.write_text(MOVING)
    return path


def test_the_page_says_what_is_not_asked_for(call, page):
    ran = call("render", "page.html", "-o", "film.mp4")
    assert ran.code == 0
    assert ran.out.startswith("film.mp4: ")
    assert "1.000 s, 160×90, 30 frames, rendered in" in ran.out
    assert ran.err == ""
    (track,) = fragdex.index(page.parent / "film.mp4", exact=True).tracks
    assert track.sample_count == 30


def test_what_is_asked_for_is_made(call, page):
    ran = call(
        "render", "page.html", "-o", "film.mp4", "--size", "200x100", "--fps", "29.97",
        "--duration", "0.5", "--slices", "2", "--processes", "1", "--json",
    )  # fmt: skip
    assert ran.code == 0
    report = json.loads(ran.out)
    assert (report["width"], report["height"], report["frame_rate"]) == (200, 100, "30000/1001")
    assert (report["frames"], len(report["slices"])) == (15, 2)
    (version,) = report["browser_versions"]
    assert "Chrome/" in version
    with av.open(str(page.parent / "film.mp4")) as film:
        (stream,) = film.streams
        assert (stream.width, stream.height) == (200, 100)
        assert len(list(film.decode(stream))) == 15


CHANCE = """<script>
const make = crypto.subtle.generateKey({ name: "AES-GCM", length: 128 }, true, ["encrypt"]);
make.then((key) => crypto.subtle.exportKey("raw", key)).then((bytes) => {
  const [red, green, blue] = new Uint8Array(bytes);
  document.body.style.background = `rgb(${red}, ${green}, ${blue})`;
})</script>"""


def test_a_page_that_two_browsers_show_differently_is_drawn_by_one(call, page):
    page.write_text(MOVING + CHANCE)
    ran = call(
        "render", "page.html", "-o", "film.mp4", "--slices", "2", "--processes", "2", "--json"
    )  # fmt: skip
    assert ran.code == 0
    (line,) = [line for line in json.loads(ran.out)["browser"] if "by one browser" in line]
    assert f"browser: {line}" in ran.err


def test_a_range_of_the_film_is_made(call, page):
    ran = call("render", "page.html", "-o", "a.mp4", "--start", "0.5", "--stop", "0.7", "--json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert (report["first_frame"], report["frames"], report["duration"]) == (15, 6, 0.2)
    with av.open(str(page.parent / "a.mp4")) as film:
        picture = next(film.decode(video=0)).to_ndarray(format="gray")
    assert [picture[45, x] > 128 for x in (55, 65, 95, 105)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("name", "more", "first"),
    [
        ("%05d.png", ["--transparent"], "00015.png"),
        ("a-%d.jpg", ["--quality", "95"], "a-15.jpg"),
        ("%03d b.webp", [], "015 b.webp"),
    ],
)
def test_a_file_for_each_frame_is_named_by_its_number(call, page, name, more, first):
    (page.parent / "frames").mkdir()
    ran = call(
        "render", "page.html", "-o", f"frames/{name}", "--start", "0.5", "--stop", "0.6", *more
    )
    assert (ran.code, ran.err) == (0, "")
    assert "0.100 s, 160×90, 3 frames" in ran.out
    names = sorted(path.name for path in (page.parent / "frames").iterdir())
    assert names == [first, first.replace("15", "16"), first.replace("15", "17")]
    with Image.open(page.parent / "frames" / first) as picture:
        row = [picture.convert("L").getpixel((x, 45)) > 128 for x in (55, 65, 95, 105)]
    assert row == [False, True, True, False]


@pytest.mark.parametrize(
    ("name", "codec"),
    [("a.m4a", "aac"), ("a.mp3", "mp3float"), ("a.wav", "pcm_s16le"), ("a.opus", "opus")],
)
def test_the_sound_alone_is_made(call, page, name, codec):
    page.write_text(BEEP)
    ran = call("render", "page.html", "-o", name, "--loudness", "-23")
    assert (ran.code, ran.err) == (0, "")
    assert ", 0.500 s, sound, 15 frames, -23.0 LUFS by -" in ran.out
    with av.open(str(page.parent / name)) as film:
        (stream,) = film.streams
        assert stream.codec_context.name == codec
        assert abs(film.duration / 1e6 - 0.5) < 0.06


def test_a_page_that_plays_nothing_is_silent(call, page):
    ran = call("render", "page.html", "-o", "a.wav")
    assert "1.000 s, silence, as the page plays nothing, 30 frames" in ran.out
    assert (page.parent / "a.wav").stat().st_size > 192_000


BEEP = """<script>
const tone = new OscillatorNode(new AudioContext(), { frequency: 440 });
tone.connect(tone.context.destination);
tone.start(0.1);
window.fragdex = { duration: 500 };
</script>"""


@pytest.mark.parametrize("name", ["film.mp4", "film.gif", "still.png", "still.jpeg"])
@pytest.mark.parametrize("scale", ["1", "1.5"])
def test_a_part_of_the_window_is_kept(call, page, name, scale):
    """The box stands at 60 of 160 pixels then, 40 wide."""
    if name == "still.png" and scale == "1":
        at = ["--transparent", "--at", "0.5"]
    else:
        at = ["--at", "0.5"] if name.startswith("still") else ["--start", "0.5", "--stop", "0.6"]
    ran = call(
        "render", "page.html", "-o", name, "--crop", "52,10,60,72", "--scale", scale, "--json",
        *at, *(["--fps", "20"] if name.endswith("gif") else []),
    )  # fmt: skip
    assert ran.code == 0, ran.err
    size = (60 * float(scale), 72 * float(scale))
    report = json.loads(ran.out)
    assert (report["width"], report["height"]) == size
    with av.open(str(page.parent / name)) as container:
        picture = next(container.decode(video=0)).to_ndarray(format="rgb24")[:, :, 1]
    assert picture.shape == size[::-1]
    row = [picture[20, round(x * float(scale))] > 128 for x in (4, 12, 44, 54)]
    assert row == [False, True, True, False]


@pytest.mark.parametrize("name", ["film.mp4", "still.webp"])
def test_more_pixels_than_the_page_has_are_asked_for_by_scale(call, page, name):
    ran = call("render", "page.html", "-o", name, "--scale", "2", "--json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert (report["width"], report["height"], report["scale"]) == (320, 180, 2)
    with av.open(str(page.parent / name)) as container:
        picture = next(container.decode(video=0)).to_ndarray(format="gray")
    assert picture.shape == (180, 320)
    assert [picture[90, x] > 128 for x in (70, 90)] == [True, False]


@pytest.mark.parametrize("name", ["still.png", "still.jpeg", "still.jpg", "still.webp"])
def test_a_still_is_what_its_name_says(call, page, name):
    ran = call("render", "page.html", "-o", name, "--at", "0.5")
    assert ran.code == 0, ran.err
    with Image.open(page.parent / name) as picture:
        assert picture.format == {"jpg": "JPEG"}.get(name[6:], name[6:].upper())
        assert picture.size == (160, 90)
        # half of the way
        row = [picture.convert("L").getpixel((x, 45)) for x in (30, 80, 130)]
    assert row[1] > 200
    assert max(row[0], row[2]) < 50


def test_a_still_may_be_transparent(call, page):
    page.write_text("<html style='width:64px;height:64px'><p>x")
    assert call("render", "page.html", "-o", "still.png", "--transparent").code == 0
    with Image.open(page.parent / "still.png") as picture:
        assert picture.getpixel((60, 60))[3] == 0


@pytest.mark.parametrize(
    ("name", "options", "codec", "pixels"),
    [
        ("film.webm", ["--transparent", "--crf", "30"], "vp9", "yuv420p"),
        ("film.mov", ["--codec", "prores", "--preset", "4444"], "prores", "yuv444p10le"),
        ("film.mkv", ["--codec", "ffv1"], "ffv1", "bgr0"),
        ("film.mp4", ["--codec", "hevc", "--bit-rate", "300k", "--fragmented"], "hevc", "yuv420p"),
        ("film.gif", ["--fps", "10"], "gif", None),
    ],
)
def test_a_film_is_stored_as_asked_for(call, page, name, options, codec, pixels):
    ran = call("render", "page.html", "-o", name, *options)
    assert (ran.code, ran.err) == (0, "")
    with av.open(str(page.parent / name)) as film:
        stream = film.streams.video[0]
        assert stream.codec_context.name == codec
        assert pixels in (stream.codec_context.pix_fmt, None)
        assert len(list(film.decode(stream))) == (10 if codec == "gif" else 30)


def test_a_webp_moves_where_that_is_asked_for(call, page):
    ran = call("render", "page.html", "-o", "a.webp", "--animated", "--fps", "10")
    assert ran.code == 0, ran.err
    with Image.open(page.parent / "a.webp") as picture:
        assert (picture.n_frames, picture.size) == (10, (160, 90))


def test_a_folder_is_a_site(call, page):
    site = page.parent / "site"
    site.mkdir()
    (site / "index.html").write_text(MOVING + "<link rel=stylesheet href=style/a.css>")
    (site / "style").mkdir()
    (site / "style" / "a.css").write_text("p { background: #888 !important }")
    assert call("render", "site", "-o", "still.png").code == 0
    with Image.open(page.parent / "still.png") as picture:
        assert picture.convert("L").getpixel((20, 45)) == 0x88


def test_files_beside_a_page_are_read_but_no_hidden_ones(call, page):
    (page.parent / ".secret.css").write_text("p { background: #f00 !important }")
    (page.parent / "a.css").write_text("p { background: #888 }")
    page.write_text(
        MOVING + "<link rel=stylesheet href=a.css><link rel=stylesheet href=.secret.css>"
    )
    assert call("render", "page.html", "-o", "still.png").code == 0
    with Image.open(page.parent / "still.png") as picture:
        assert picture.convert("RGB").getpixel((20, 45)) == (0x88, 0x88, 0x88)


def test_html_comes_through_a_pipe_and_goes_out_through_one(run, page):
    ran = run("render", "-", "-o", "-", "--duration", "0.2", stdin=MOVING.encode())
    assert ran.code == 0
    assert ran.data[4:8] == b"ftyp"
    assert fragdex.index(ran.data, exact=True).tracks[0].sample_count == 6
    assert "6 frames" in ran.err


class _Served(BaseHTTPRequestHandler):
    def __init__(self, asked, *arguments):
        self.asked = asked
        super().__init__(*arguments)

    def do_GET(self):
        key = self.headers.get("Authorization")
        self.asked.append((self.path, key))
        pages = {
            "/pages/title.html": ("text/html", MOVING + "<link rel=stylesheet href=a.css>"
                                  "<link rel=stylesheet href=/root.css>"),
            "/pages/a.css": ("text/css", "p { background: #888 !important }"),
            "/root.css": ("text/css", "body { background: #333 !important }"),
        }  # fmt: skip
        kind, text = pages.get(self.path, ("text/plain", ""))
        if key != "Bearer ef_key":
            self.send_error(401)
        elif not text:
            self.send_error(404)
        else:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def served():
    """(URL, what was asked for) of a site that wants a key."""
    asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Served, asked)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_a_url_is_read_with_its_own_host_alone(run, page, served):
    url, asked = served
    ran = run("render", f"{url}/pages/title.html", "-o", "still.png", "--key", "ef_key")
    assert ran.code == 0, ran.err
    with Image.open(page.parent / "still.png") as picture:
        pixels = picture.convert("L")
        assert (pixels.getpixel((20, 45)), pixels.getpixel((120, 45))) == (0x88, 0x33)
    assert {"/pages/title.html", "/pages/a.css", "/root.css"} <= {path for path, _ in asked}
    again = run("render", f"{url}/pages/title.html", "-o", "b.png", env={"FRAGDEX_KEY": "ef_key"})
    assert again.code == 0
    refused = run("render", f"{url}/pages/title.html", "-o", "c.png")
    assert refused.code == 2
    assert "--key" in refused.err


def test_what_is_blocked_and_thrown_is_told(call, page):
    page.write_text(
        MOVING + "<img src=https://example.org/a.png><img src=http://169.254.169.254/x>"
        "<script>throw Error('of the page')</script>"
    )
    ran = call("render", "page.html", "-o", "film.mp4")
    assert ran.code == 3
    assert "fragdex: blocked: https://example.org/a.png: " in ran.err
    assert "http://169.254.169.254/x" in ran.err
    assert ran.err.count("of the page") == 1


@pytest.mark.parametrize(
    ("html", "told"),
    [
        ("<script>throw Error('no data')</script>", "Error: no data"),
        ("<script>Promise.reject(Error('no data'))</script>", "Error: no data"),
        ("<script src=https://example.org/a.js></script>", "https://example.org/a.js"),
        ("<script src=missing.js></script>", "missing.js (status 404)"),
        ("<script type=module>import './missing.js'</script>", "missing.js (status 404)"),
        ("<script type=module>import 'library'</script>", 'specifier "library"'),
        ("<script type=module src=notes.txt></script>", "notes.txt"),
        ("<script>new Worker('worker.js')</script>", "Error: of the worker"),
        ("<script>new Worker('missing.js')</script>", "missing.js (status 404)"),
        ("<script>setTimeout(() => { throw Error('no data') }, 500)</script>", "Error: no data"),
        ("<script>for (</script>", "SyntaxError"),
    ],
)
def test_a_script_that_the_page_could_not_have_makes_the_exit_code_3(call, page, html, told):
    (page.parent / "notes.txt").write_text("no script")
    (page.parent / "worker.js").write_text("throw Error('of the worker')")
    page.write_text(MOVING + html)
    ran = call("render", "page.html", "-o", "film.mp4", "--json")
    assert ran.code == 3
    (line,) = json.loads(ran.out)["incomplete"]
    assert told in line
    assert f"fragdex: incomplete: {line}" in ran.err
    assert fragdex.index(page.parent / "film.mp4", exact=True).tracks[0].sample_count == 30


def test_a_film_without_a_script_is_made_where_that_is_allowed(call, page):
    page.write_text(MOVING + "<script src=missing.js></script>")
    allowed = call("render", "page.html", "-o", "film.mp4", "--allow-incomplete")
    assert allowed.code == 0
    assert "incomplete: " in allowed.err


@pytest.mark.parametrize(
    "html",
    [
        "<script>console.error('only words')</script><img src=missing.png>",
        "<script>const late = Promise.reject(Error('x')); setTimeout(() => late.catch(() => 0), 50)"
        "</script>",
        "<script>addEventListener('error', (event) => event.preventDefault());"
        "throw Error('handled by the page')</script>",
    ],
    ids=["words and a picture", "handled later", "handled"],
)
def test_a_page_whose_scripts_all_ran_is_whole(call, page, html):
    page.write_text(MOVING + html)
    assert call("render", "page.html", "-o", "film.mp4").code == 0


def test_a_page_that_hangs_is_told_as_its_own_fault(call, page):
    page.write_text(MOVING + "<script>for (;;);</script>")
    ran = call("render", "page.html", "-o", "film.mp4")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert not (page.parent / "film.mp4").exists()


def test_a_crop_beyond_the_window_that_the_page_chooses_is_said(call, page):
    ran = call("render", "page.html", "-o", "film.mp4", "--crop", "0,0,200,20")
    assert ran.code == 2
    assert "crop: 0,0,200,20 goes beyond the window of 160 × 90" in ran.err


def test_a_page_that_does_not_say_how_long_says_what_to_do(call, page):
    page.write_text("<p>still")
    ran = call("render", "page.html", "-o", "film.mp4")
    assert ran.code == 2
    assert "--duration" in ran.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["page.html"], "an output is needed"),
        (["page.html", "-o", "film.avi"], ".mp4, .m4v, .mov"),
        (["page.html", "-o", "film.mp4", "--size", "big"], "1280x720"),
        (["page.html", "-o", "film.mp4", "--size", "0x7"], "1280x720"),
        (["page.html", "-o", "film.mp4", "--fps", "500"], "1 to 120"),
        (
            ["page.html", "-o", "a.mp4", "--start", "2", "--stop", "1"],
            "no frame is between 2000 and",
        ),
        (["page.html", "-o", "a.mp4", "--stop", "0"], "--stop 0: a time of at least 1 ms"),
        (["page.html", "-o", "a.png", "--start", "1"], "--start does not apply to a still"),
        (["page.html", "-o", "%d.png", "--at", "1"], "--at does not apply to a video"),
        (["page.html", "-o", "%d.png", "--quality", "1"], "--quality: png has none"),
        (["page.html", "-o", "%d.jpg", "--transparent"], "--transparent: jpeg has none"),
        (["page.html", "-o", "%d.jpg", "--codec", "h264"], "--codec: does not apply to"),
        (["page.html", "-o", "missing/%d.jpg"], "no such folder"),
        (["page.html", "-o", "a.wav", "--crf", "5"], "--crf: .wav has no pictures"),
        (["page.html", "-o", "a.mp4", "--loudness", "-4"], "--loudness: -70 to -5 LUFS"),
        (
            ["page.html", "-o", "a.mp4", "--color", "bt2020-pq"],
            "--color: bt2020-pq is for hevc",
        ),
        (["page.html", "-o", "a.png", "--color", "bt709"], "--color does not apply to a still"),
        (["page.html", "-o", "a.gif", "--loudness", "-23"], "--loudness: does not apply to gif"),
        (["page.html", "-o", "a.png", "--loudness", "-23"], "--loudness does not apply to a still"),
        (["page.html", "-o", "a.wav", "--no-sound"], "--no-sound: .wav has nothing else"),
        (["page.html", "-o", "a.ogg", "--audio-codec", "aac"], "--audio-codec: .ogg holds opus"),
        (
            ["page.html", "-o", "a.mp4", "--fps", "24", "--page-fps", "60"],
            "not a whole multiple of 24",
        ),
        (["page.html", "-o", "a.mp4", "--page-fps", "0"], "--page-fps 0"),
        (["page.html", "-o", "a.mp4", "--crop", "1,2"], "X,Y,WIDTH,HEIGHT are expected"),
        (["page.html", "-o", "a.mp4", "--crop", "0,0,3,2"], "a video has even sides, not 3 × 2"),
        (["page.html", "-o", "a.png", "--crop", "0,0,900,9", "--size", "9x9"], "beyond the window"),
        (["page.html", "-o", "film.mp4", "--scale", "5"], "0.5 to 4 are expected"),
        (["page.html", "-o", "film.mp4", "--scale", "1.1"], "in steps of 0.25"),
        (["page.html", "-o", "a.png", "--size", "4000x9", "--scale", "2"], "7680"),
        (["page.html", "-o", "film.mp4", "--fps", "x"], "--fps x"),
        (["page.html", "-o", "film.mp4", "--duration", "0"], "at least 1 ms"),
        (["page.html", "-o", "film.mp4", "--duration", "-1"], "at least 1 ms"),
        (["page.html", "-o", "film.mp4", "--duration", "end"], "at least 1 ms"),
        (["page.html", "-o", "film.mp4", "--at", "1"], "does not apply to a video"),
        (
            ["page.html", "-o", "film.mp4", "--transparent"],
            "--transparent: h264 has none here",
        ),
        (["page.html", "-o", "a.webm", "--codec", "h264"], "--codec: .webm holds av1, vp9, not"),
        (["page.html", "-o", "film.mp4", "--crf", "60"], "--crf: 0 to 51 with h264"),
        (["page.html", "-o", "film.mp4", "--bit-rate", "fast"], "--bit-rate fast: bits a second"),
        (["page.html", "-o", "a.mov", "--audio-codec", "opus"], "--audio-codec: .mov holds aac"),
        (["page.html", "-o", "a.gif", "--fps", "60"], "--fps: a GIF has at most 50"),
        (["page.html", "-o", "a.gif", "--crf", "5"], "--crf: does not apply to gif"),
        (["page.html", "-o", "a.png", "--codec", "h264"], "--codec does not apply to a still"),
        (["page.html", "-o", "a.png", "--no-sound"], "--no-sound does not apply to a still"),
        (["page.html", "-o", "film.mp4", "--animated"], "--animated is for .webp"),
        (["page.html", "-o", "a.png", "--duration", "1"], "--at"),
        (["page.html", "-o", "a.png", "--quality", "1"], "does not apply to .png"),
        (["page.html", "-o", "a.jpeg", "--transparent"], "cannot be transparent"),
        (["missing.html", "-o", "film.mp4"], "no page to render"),
        (["page.html", "-o", "missing/film.mp4"], "no such folder"),
        (["page.html", "-o", "film.mp4", "--size", "16384x16384"], "7680"),
        (["http://127.0.0.1:9/", "-o", "film.mp4"], "no page at that URL"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(call, tmp_path, arguments, told):
    (tmp_path / "page.html").write_text(MOVING)
    ran = call("render", *arguments)
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


CARD = """<!doctype html><script type="application/schema+json">
{"required": ["level"], "properties": {"level": {"type": ["string", "integer"]}}}</script>
<style>html { width: 64px; height: 64px } body { margin: 0 }</style>
<script>
window.fragdex = { duration: 200 };
const level = Number(window.fragdex.data?.level ?? 0);
document.documentElement.style.background = `rgb(${level}, ${level}, ${level})`;
</script>"""


def level_of(path):
    """The brightness of the first frame of a film."""
    with av.open(str(path)) as film:
        return int(next(film.decode(video=0)).to_ndarray(format="gray")[32, 32])


def test_a_page_is_given_data(call, page):
    page.write_text(CARD)
    (page.parent / "data.json").write_text('{"level": 200}')
    ran = call("render", "page.html", "-o", "film.mp4", "--page-data", "data.json", "--json")
    assert (ran.code, ran.err) == (0, "")
    report = json.loads(ran.out)
    assert report["data"] == {"level": 200}
    assert report["data_sha256"] == hashlib.sha256(b'{"level": 200}').hexdigest()
    assert abs(level_of(page.parent / "film.mp4") - 200) <= 2


def test_data_that_the_page_does_not_take_are_refused_before_anything_is_drawn(call, page):
    page.write_text(CARD)
    (page.parent / "data.json").write_text('{"title": "Hi"}')
    ran = call("render", "page.html", "-o", "film.mp4", "--page-data", "data.json")
    assert ran.code == 2
    assert "'level' is a required property" in ran.err
    assert not (page.parent / "film.mp4").exists()


def test_rows_become_films_and_what_was_made_is_not_made_again(call, page):
    page.write_text(CARD)
    table = page.parent / "rows.csv"
    table.write_text("name,level\na,50\nb,100\nc,150\n")
    command = ("render", "page.html", "-o", "film-{name}.mp4", "--page-data", "rows.csv", "--json")
    first = call(*command)
    assert (first.code, first.err) == (0, "")
    reports = [json.loads(line) for line in first.out.splitlines()]
    assert [one["file"] for one in reports] == ["film-a.mp4", "film-b.mp4", "film-c.mp4"]
    assert reports[1]["data"] == {"name": "b", "level": "100"}
    for name, level in (("a", 50), ("b", 100), ("c", 150)):
        assert abs(level_of(page.parent / f"film-{name}.mp4") - level) <= 2
    table.write_text("name,level\na,50\nb,101\nc,150\n")
    (page.parent / "film-c.mp4").unlink()
    again = [json.loads(line) for line in call(*command).out.splitlines()]
    assert ["made_before" in one for one in again] == [True, False, False]
    page.write_text(CARD + "<p>")
    changed = [json.loads(line) for line in call(*command).out.splitlines()]
    assert not any("made_before" in one for one in changed)


def test_a_row_that_fails_stops_no_other(call, page):
    page.write_text(CARD)
    (page.parent / "rows.json").write_text('[{"level": 1}, {"level": []}, {"level": 3}]')
    ran = call(
        "render", "page.html", "-o", "{row}.mp4", "--page-data", "rows.json", "--processes", "1"
    )
    assert ran.code == 2
    assert "2.mp4: " in ran.err
    assert [(page.parent / f"{n}.mp4").exists() for n in (1, 2, 3)] == [True, False, True]


@pytest.mark.parametrize(
    ("name", "text", "output", "told"),
    [
        ("rows.csv", "a,b\n1,2\n3,4\n", "film.mp4", "rows 1 and 2 would both be film.mp4"),
        ("rows.csv", "a,b\n1,2\n", "{c}.mp4", "c is not there in row 1; its columns are 'a', 'b'"),
        ("rows.csv", "a;b\n1;2\n", "{a}.mp4", "one column was found, 'a;b': columns are separated"),
        ("rows.csv", "a\tb\n1\t2\n", "{a}.mp4", "separated by ',', not by '\\t'"),
        ("rows.tsv", "a,b\n1,2\n", "{a}.mp4", "separated by '\\t', not by ','"),
        ("rows.csv", "a,b\n../x,2\n", "{a}.mp4", "a cannot be part of a name in row 1"),
        ("rows.csv", "a,b\n1,2,3\n", "{a}.mp4", "number of columns"),
        ("rows.csv", "a,b\n", "{a}.mp4", "no rows"),
        ("data.json", "{", "film.mp4", "no JSON"),
        ("data.json", "7", "film.mp4", "an object is expected"),
        ("data.json", '{"a": NaN}', "film.mp4", "no JSON"),
        ("data.json", "[" * 100_000, "film.mp4", "no JSON"),
        ("rows.csv", 'a\n"x', "{a}.mp4", "no table"),
        ("data.json", "[1]", "film.mp4", "an object is expected"),
    ],
)
def test_data_that_are_none_are_said_in_one_line(call, tmp_path, name, text, output, told):
    (tmp_path / "page.html").write_text(CARD)
    (tmp_path / name).write_text(text)
    ran = call("render", "page.html", "-o", output, "--page-data", name)
    assert ran.code == 2
    assert told in " ".join(ran.err.split())
