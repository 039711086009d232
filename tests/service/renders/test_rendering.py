"""Renders from the request to the film, on a real browser: what a client sees of them."""

import base64
import io
import re
import zipfile

import av
import numpy as np
import pytest
from PIL import Image

import fragdex
from fragdex.rendering.plan import ONE_BROWSER
from fragdex.service.records.tenant_limits import set_limits
from fragdex.testing import check_bmff
from rendering.frames.numbers import read_rows
from rendering.frames.test_asked import ASKED, loudness, numbers_of_asked, sound_of
from rendering.page_media.films import number_at, numbered, wav
from rendering.pages.looking import animation
from rendering.test_archives import tar_of, zip_of
from service.descendants import browsers, gone
from service.renders.working import numbers, numbers_of
from service.serving import API
from service.working import fixture_bytes, uploaded

pytestmark = pytest.mark.slow


def get(renderer, record, suffix, **more):
    return renderer.client.get(f"{API}/renders/{record['id']}{suffix}", **more)


@pytest.fixture(scope="module")
def film(renderer):
    """A film of three slices: (record, bytes)."""
    return renderer.rendered(numbers(), duration_ms=3000, work_slice_ms=1000, md5="0" * 32)


def test_every_frame_is_there_and_the_record_tells_what_it_took(renderer, film):
    record, data = film
    assert numbers_of(data) == list(range(90))
    assert (record["width"], record["height"], record["frames"]) == (320, 180, 90)
    assert [one["frames"] for one in record["slices"]] == [30, 30, 30]
    assert all(one["frames_done"] == 30 and not one["reused"] for one in record["slices"])
    assert all(one["attempts"] == 1 and one["seconds"]["capture"] > 0 for one in record["slices"])
    assert {"wait", "plan", "slices", "join", "whole", "capture", "encode"} <= set(
        record["seconds"]
    )
    assert record["byte_size"] == len(data)
    assert record["created_at"] <= record["started_at"] <= record["completed_at"]
    assert (record["problem"], record["console"], record["blocked"]) == (None, [], [])
    (version,) = record["browser_versions"]
    assert re.fullmatch(r"\w*Chrome/\d+(\.\d+){3}", version)
    record_by_md5 = renderer.client.get(f"{API}/renders/md5/{'0' * 32}").json()
    assert record_by_md5["id"] == record["id"]


def test_the_film_is_fetched_by_ranges_and_indexed_by_the_library(renderer, film):
    record, data = film
    whole = get(renderer, record, ".mp4")
    assert whole.headers["content-type"] == "video/mp4"
    assert whole.headers["accept-ranges"] == "bytes"
    part = get(renderer, record, ".mp4", headers={"Range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, data[100:200])
    head = renderer.client.head(f"{API}/renders/{record['id']}.mp4")
    assert (head.headers["content-length"], head.content) == (str(len(data)), b"")
    etag = whole.headers["etag"]
    assert get(renderer, record, ".mp4", headers={"If-None-Match": etag}).status_code == 304
    for suffix in (".png", ".jpeg", ".webp"):
        assert get(renderer, record, suffix).status_code == 404
    assert check_bmff(data) == []
    index = fragdex.index(data)
    assert index.complete
    assert float(index.tracks[0].stop) == 3.0


def test_the_same_again_is_answered_from_the_store(renderer, film):
    record, data = renderer.rendered(numbers(), duration_ms=3000, work_slice_ms=1000)
    assert record["id"] != film[0]["id"]
    assert all(one["reused"] for one in record["slices"])
    assert data == film[1]
    assert record["browser_versions"] == film[0]["browser_versions"] != []


@pytest.mark.parametrize(
    ("output", "suffix", "media_type"),
    [
        ({"container": "webm"}, ".webm", "video/webm"),
        ({"container": "mp4", "video": {"codec": "hevc", "crf": 25}}, ".mp4", "video/mp4"),
        ({"container": "mov", "video": {"codec": "prores"}}, ".mov", "video/quicktime"),
        ({"container": "mkv", "video": {"codec": "av1"}}, ".mkv", "video/x-matroska"),
        ({"container": "gif"}, ".gif", "image/gif"),
    ],
)
def test_a_film_is_stored_as_it_was_asked_for(renderer, output, suffix, media_type):
    record, data = renderer.rendered(numbers(), duration_ms=2000, work_slice_ms=1000, output=output)
    assert (record["media_type"], record["output"]["container"]) == (
        media_type, output["container"],
    )  # fmt: skip
    with av.open(io.BytesIO(data)) as film:
        pictures = [frame.to_ndarray(format="gray") for frame in film.decode(video=0)]
    assert [read_rows(picture)[0] for picture in pictures] == list(range(60))
    response = get(renderer, record, suffix)
    assert (response.status_code, response.headers["content-type"]) == (200, media_type)
    assert response.content == data
    assert get(renderer, record, ".png").status_code == 404


def test_an_image_sequence_is_a_zip_of_pictures_named_by_their_frames(renderer):
    output = {"container": "zip", "image": "webp", "quality": 90}
    record, data = renderer.rendered(
        numbers(), duration_ms=1500, from_ms=900, work_slice_ms=1000, output=output
    )
    assert (record["media_type"], record["output"]) == ("application/zip", output)
    assert get(renderer, record, ".zip").content == data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.namelist() == [f"{i:05}.webp" for i in range(27, 45)]
        for i in (27, 44):
            with Image.open(io.BytesIO(archive.read(f"{i:05}.webp"))) as picture:
                assert read_rows(np.array(picture.convert("L")))[0] == i


def test_a_sound_alone_is_one_slice_without_pictures(renderer):
    data = base64.b64encode(tone_wav(0.4)).decode()
    html = f"<audio autoplay src='data:audio/wav;base64,{data}'></audio>"
    output = {"container": "flac", "audio": {"loudness": -20}}
    record, sound = renderer.rendered(html, duration_ms=2500, work_slice_ms=1000, output=output)
    assert (record["media_type"], len(record["slices"]), record["frames"]) == ("audio/flac", 1, 75)
    assert get(renderer, record, ".flac").content == sound
    with av.open(io.BytesIO(sound)) as container:
        heard = np.concatenate([frame.to_ndarray()[0, ::2] for frame in container.decode(audio=0)])
    assert len(heard) == 2.5 * 48_000
    sound_levels = record["loudness"]
    assert abs(sound_levels["true_peak"] + 6) < 0.1
    assert sound_levels["gain"] == pytest.approx(-20 - sound_levels["integrated"], abs=0.01)
    loudest = 20 * np.log10(abs(heard[:19_000]).max() / 32768)
    assert abs(loudest - (-6.02 + sound_levels["gain"])) < 0.05
    assert abs(heard[19_300:]).max() == 0
    again, _ = renderer.rendered(html, duration_ms=2500, output={"container": "wav"})
    assert (again["slices"][0]["reused"], again["loudness"]) == (True, None)


def tone_wav(seconds):
    """A tone at half of full scale."""
    return wav(0.5 * np.sin(np.arange(round(seconds * 48_000)) * 2 * np.pi * 1000 / 48_000))


def test_an_animated_webp_may_be_transparent(renderer):
    html = "<body><style>p { animation: go 1s linear both } @keyframes go { to { opacity: 0 } }"
    output = {"container": "animated-webp", "transparency": True}
    record, data = renderer.rendered(html + "</style><p>x", fps=5, output=output)
    assert get(renderer, record, ".webp").content == data
    with Image.open(io.BytesIO(data)) as picture:
        assert (picture.format, picture.n_frames) == ("WEBP", 5)
        assert picture.convert("RGBA").getpixel((300, 170))[3] == 0


LATE = """<body style="margin:0;background:#fff"><canvas id=c width=320 height=180></canvas><script>
const draw = (t) => {
  if (t >= 1000 && !window.asked) { window.asked = new Image(); asked.src = "late.svg" }
  if (window.asked) c.getContext("2d").drawImage(asked, 0, 0);
  requestAnimationFrame(draw);
};
requestAnimationFrame(draw);
</script>"""


def svg(colour):
    shape = f'<rect width="320" height="180" fill="{colour}"/>'
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="320" height="180">'
    return f"{head}{shape}</svg>".encode()


def test_only_what_changed_is_rendered_again(renderer):
    """A picture that is asked for in the second slice alone: the first one stays as it was."""
    how = {"duration_ms": 2000, "work_slice_ms": 1000}
    colours = []
    for colour in ("#0000ff", "#ff0000"):
        site = tar_of(("index.html", LATE.encode()), ("late.svg", svg(colour)))
        record, data = renderer.rendered(site=site, **how)
        with av.open(io.BytesIO(data)) as container:
            *_, last = container.decode(video=0)
        colours.append(last.to_image().getpixel((100, 100)))
    assert colours[0][2] > 200 > 50 > colours[0][0]
    assert colours[1][0] > 200 > 50 > colours[1][2]
    assert [one["reused"] for one in record["slices"]] == [True, False]
    # another file of the site, that nobody reads, changes nothing
    site = zip_of(("index.html", LATE.encode()), ("late.svg", svg(colour)), ("more.txt", b"more"))
    record, again = renderer.rendered(site=site, **how)
    assert [one["reused"] for one in record["slices"]] == [True, True]
    assert again == data


def test_what_a_page_missed_for_now_is_not_taken_again(renderer):
    """The operator may allow the host, or its name may resolve, before the next render."""
    how = {"duration_ms": 1000, "work_slice_ms": 1000, "width": 64, "height": 64}
    for url, reused in (
        ("https://not-yet-allowed.example/x.png", False),
        ("http://not-even-https.example/x.png", True),
    ):
        for again in (False, True):
            record, _ = renderer.rendered(f"<body>missed <img src={url}>", **how)
            assert [one["url"] for one in record["blocked"]] == [url]
            assert [one["reused"] for one in record["slices"]] == [again and reused]


HALF = "<body style='margin:0'><div style='width:50px;height:100px;background:#00f'></div>"


@pytest.mark.parametrize(
    ("output", "mode"),
    [
        ({"container": "jpeg", "quality": 90}, "RGB"),
        ({"container": "png"}, "RGB"),
        ({"container": "png", "transparency": True}, "RGBA"),
        ({"container": "webp", "transparency": True}, "RGBA"),
    ],
)
def test_stills(renderer, output, mode):
    kind = output["container"]
    record, data = renderer.rendered(HALF, output=output, width=100, height=100)
    assert record["frames"] == 1
    answer = get(renderer, record, f".{kind}")
    assert answer.headers["content-type"] == record["media_type"] == f"image/{kind}"
    assert get(renderer, record, ".mp4").content == answer.content == data
    picture = Image.open(io.BytesIO(data))
    assert (picture.format.lower(), picture.size, picture.mode) == (kind, (100, 100), mode)
    blue, ground = picture.getpixel((20, 50)), picture.getpixel((80, 50))
    assert blue[2] > 250 > 5 > blue[0]
    assert ground[3] == 0 if mode == "RGBA" else min(ground) > 250


def test_a_still_of_a_later_moment(renderer):
    record, data = renderer.rendered(numbers(), output={"container": "png"}, time_ms=500)
    assert record["time_ms"] == 500
    assert read_rows(np.asarray(Image.open(io.BytesIO(data)).convert("L")))[0] == 15


def test_what_the_request_leaves_open_the_page_decides(renderer):
    html = """<html style="width:201px;height:100px"><style>div{animation:a 700ms}
    @keyframes a{to{opacity:0}}</style><body><div>Hi"""
    record, _ = renderer.rendered(html, width=None, height=None)
    assert (record["width"], record["height"]) == (202, 100)  # even, for H.264
    assert (record["duration_ms"], record["frames"]) == (700, 21)


def test_files_of_this_service_are_seen_by_their_own_tenant_alone(renderer):
    out = io.BytesIO()
    Image.new("RGB", (100, 100), "#f00").save(out, "PNG")
    ours = uploaded(renderer.client, out.getvalue(), "a.png", "image_files")["id"]
    theirs = uploaded(renderer.served.stranger, out.getvalue(), "a.png", "image_files")["id"]
    places = [
        f"/api/v1/files/{ours}",
        f"/api/v1/image_files/{ours}",
        f"/api/v1/image_files/{theirs}",
    ]
    pictures = "".join(f'<img src="{place}" width=100 height=100>' for place in places)
    html = f"<body style='margin:0;background:#fff'><div style='display:flex'>{pictures}"
    how = {"output": {"container": "png"}, "width": 300, "height": 100}
    record, data = renderer.rendered(html, **how)
    picture = Image.open(io.BytesIO(data))
    assert [picture.getpixel((x, 50))[1] < 50 for x in (50, 150)] == [True, True]
    assert picture.getpixel((290, 50))[1] > 200
    assert any("404" in line for line in record["console"])
    again, _ = renderer.rendered(html, **how)
    assert again["slices"][0]["reused"]


def test_a_film_of_this_service_plays_in_a_page_and_its_render_in_another(renderer):
    film = numbered(60, 30, size=(320, 180))
    id = uploaded(renderer.client, film, "numbers.mp4")["id"]
    how = {"duration_ms": 1000, "work_slice_ms": 1000}
    html = "<body style='margin:0'><video src='{}' autoplay width=320 height=180></video>"
    record, first = renderer.rendered(html.format(f"{API}/files/{id}"), **how)
    assert shown(first) == list(range(30))
    assert record["blocked"] == []
    _, again = renderer.rendered(html.format(f"{API}/renders/{record['id']}.mp4"), **how)
    assert shown(again) == list(range(30))


def test_a_page_that_renders_itself_reads_this_service_and_is_asked_for_each_frame(renderer):
    film = uploaded(renderer.client, fixture_bytes("frag-global-sidx-video.mp4", salt="asked"))
    renderer.client.post(f"{API}/unprocessed_files/{film['id']}/process")
    site = tar_of(*((path.name, path.read_bytes()) for path in ASKED.path.iterdir()))
    data = {"film": film["id"], "waits": ["service"], "durationMs": 2000}
    record, video = renderer.rendered(
        site=site, data=data, width=None, height=None, work_slice_ms=1000
    )
    assert (record["width"], record["height"], record["duration_ms"]) == (160, 90, 2000)
    assert [one["frames"] for one in record["slices"]] == [30, 30]
    assert (record["blocked"], record["refused"], record["console"]) == ([], [], [])
    assert numbers_of_asked(io.BytesIO(video)) == list(range(60))
    assert loudness(sound_of(io.BytesIO(video))[4800:90_000]) > 0.3
    again, same = renderer.rendered(
        site=site, data=data, width=None, height=None, work_slice_ms=1000
    )
    assert same == video
    assert all(one["reused"] for one in again["slices"])


def shown(film):
    """The numbers in the pictures of a film within a page."""
    with av.open(io.BytesIO(film)) as container:
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return [number_at(picture, y=90, width=320) for picture in pictures]


def test_a_page_that_fails_says_why_and_the_renders_beside_it_go_on(renderer):
    endless = (
        "<script>console.error('before'); throw Error('before the endless')</script>"
        "<script>while (true);</script>"
    )
    hostile = [renderer.begin(endless, duration_ms=1000) for _ in range(2)]
    _, data = renderer.rendered(numbers(10), duration_ms=1100, fps=10)
    assert numbers_of(data) == list(range(11))
    for id in hostile:
        failed = renderer.ended(id)
        assert failed["status"] == "failed"
        assert failed["problem"]["type"] == "/docs#page-failed"
        assert failed["failed_at"]
        assert "before the endless" in " ".join(failed["incomplete"])
        answer = get(renderer, failed, ".mp4")
        assert (answer.status_code, answer.json()["state"]) == (409, "failed")


@pytest.mark.parametrize("name", ["max_render_cost", "max_render_seconds"])
def test_a_render_ends_at_the_limits_of_its_tenant(renderer, working, name):
    set_limits(working.context.database, working.tenant, {name: 0.2})
    try:
        id = renderer.begin(numbers(), duration_ms=4000, metadata={"limit": name})
        record = renderer.ended(id)
    finally:
        set_limits(working.context.database, working.tenant, {name: None})
    assert record["status"] == "failed"
    assert (
        f"more than 0.2 s of {'processor time' if 'cost' in name else 'work'} ({name})"
        in (record["problem"]["detail"])
    )
    assert "of 120 frames were done" in record["problem"]["detail"]


def test_a_page_that_does_not_say_how_long_it_is(renderer):
    record = renderer.ended(renderer.begin("<p>Hi"))
    assert record["status"] == "failed"
    assert "duration_ms" in record["problem"]["detail"]


def test_what_a_page_was_refused_stands_in_the_record(renderer):
    html = """<script>
    fetch("http://169.254.169.254/latest/meta-data/").catch(() => {});
    console.error("a word of the page");
    throw Error("in a script");
    </script><script src=missing.js></script>"""
    record, _ = renderer.rendered(html, duration_ms=100)
    assert len(record["incomplete"]) == 2
    assert "in a script" in " ".join(record["incomplete"])
    assert "missing.js" in " ".join(record["incomplete"])
    assert [one["url"] for one in record["blocked"]] == ["http://169.254.169.254/latest/meta-data/"]
    assert record["blocked"][0]["reason"]
    assert "a word of the page" in " ".join(record["console"])


def test_cancelling_ends_the_browsers(renderer):
    pid = renderer.served.server.pid
    html = numbers(60) + "<script>requestAnimationFrame(function f() {"
    html += (
        " const t = Date.now(); for (let i = 0; i < 3e7; i++); requestAnimationFrame(f) })</script>"
    )
    id = renderer.begin(html, duration_ms=60_000, fps=60)
    renderer.until(id, lambda record: record["frames_done"] > 0)
    running = browsers(pid)
    assert running
    answer = renderer.client.post(f"{API}/renders/{id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    gone(running)
    assert renderer.ended(id)["status"] == "cancelled"
    assert renderer.record(id)["frames_done"] < 3600
    folder = renderer.served.context.settings.data / "work"
    renderer.until(id, lambda _: not list(folder.glob(f"{id}.*")))


def test_a_deleted_render_is_ended(renderer):
    id = renderer.begin(numbers(), duration_ms=60_000)
    renderer.until(id, lambda record: record["status"] == "rendering")
    assert renderer.client.delete(f"{API}/renders/{id}").status_code == 204
    renderer.rendered(numbers(), duration_ms=1000)
    assert renderer.client.get(f"{API}/renders/{id}").status_code == 404


def test_a_film_whose_slices_do_not_fit_is_drawn_by_one_browser(renderer):
    """It is then the film of one slice; and who asks for it again gets that at once."""
    picture = base64.b64encode(animation("GIF")).decode()
    html = f"<body style='margin:0'><img src='data:image/gif;base64,{picture}'>"
    _, alone = renderer.rendered(html + "<!-- alone -->", duration_ms=3000, work_slice_ms=3000)
    for reused in (False, True):
        record, film = renderer.rendered(html, duration_ms=3000, work_slice_ms=1000)
        (slice_,) = record["slices"]
        assert (slice_["frames"], slice_["reused"], record["frames_done"]) == (90, reused, 90)
        assert [line for line in record["browser"] if line.startswith(ONE_BROWSER)]
        assert ("discarded" in record["seconds"]) is not reused
        assert film == alone
    # a range of it needs the frames before it as well
    for work_slice_ms in (1000, 3000):
        part, film = renderer.rendered(
            html, duration_ms=3000, from_ms=1000, to_ms=3000, work_slice_ms=work_slice_ms
        )
        assert [line for line in part["browser"] if line.startswith(ONE_BROWSER)]
        assert (part["frames"], len(part["slices"])) == (60, 1)
        for one, other in zip(grey(alone)[30:], grey(film), strict=True):
            assert abs(one - other).mean() < 1
    # a film of one slice is drawn by one browser anyway
    record, _ = renderer.rendered(html, duration_ms=1000, work_slice_ms=1000)
    assert not [line for line in record["browser"] if line.startswith(ONE_BROWSER)]


def grey(film):
    """The pictures of a film."""
    with av.open(io.BytesIO(film)) as container:
        return [frame.to_ndarray(format="gray").astype(int) for frame in container.decode(video=0)]


def test_a_range_is_made_of_the_slices_that_the_film_has(renderer, film):
    record, data = renderer.rendered(
        numbers(), duration_ms=3000, from_ms=1000, to_ms=3000, work_slice_ms=1000
    )
    assert numbers_of(data) == list(range(30, 90))
    assert (record["frames"], record["from_ms"], record["to_ms"]) == (60, 1000, 3000)
    assert [(one["first_frame"], one["reused"]) for one in record["slices"]] == [
        (30, True), (60, True),
    ]  # fmt: skip


def test_small_sizes_and_durations(renderer):
    record, _ = renderer.rendered(HALF, width=2, height=2, duration_ms=1)
    assert (record["frames"], record["status"]) == (1, "complete")
