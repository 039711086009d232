"""Renders from the request to the film, on a real browser: what a client sees of them."""

import base64
import io

import av
import numpy as np
import pytest
from PIL import Image

import fragdex
from fragdex.service.renders.seams import ALONE
from service.descendants import browsers, gone
from service.renders.frames.numbers import read_rows
from service.renders.frames.test_seams import pictures
from service.renders.page_media.films import number_at, numbered
from service.renders.test_archives import tar_of, zip_of
from service.renders.working import numbers, numbers_of
from service.serving import API
from service.working import uploaded

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
    found = renderer.client.get(f"{API}/renders/md5/{'0' * 32}").json()
    assert found["id"] == record["id"]


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
    index = fragdex.index(data)
    assert index.complete
    assert float(index.tracks[0].end) == 3.0


def test_the_same_again_is_answered_from_the_store(renderer, film):
    record, data = renderer.rendered(numbers(), duration_ms=3000, work_slice_ms=1000)
    assert record["id"] != film[0]["id"]
    assert all(one["reused"] for one in record["slices"])
    assert data == film[1]


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
    found = get(renderer, record, suffix)
    assert (found.status_code, found.headers["content-type"]) == (200, media_type)
    assert found.content == data
    assert get(renderer, record, ".png").status_code == 404


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


def shown(film):
    """The numbers in the pictures of a film within a page."""
    with av.open(io.BytesIO(film)) as container:
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return [number_at(picture, y=90, width=320) for picture in pictures]


def test_a_page_that_fails_says_why_and_the_renders_beside_it_go_on(renderer):
    endless = "<script>console.error('before'); while (true);</script>"
    hostile = [renderer.begin(endless, duration_ms=1000) for _ in range(2)]
    _, data = renderer.rendered(numbers(10), duration_ms=1100, fps=10)
    assert numbers_of(data) == list(range(11))
    for id in hostile:
        failed = renderer.ended(id)
        assert failed["status"] == "failed"
        assert failed["problem"]["type"] == "/docs#page-failed"
        assert failed["failed_at"]
        answer = get(renderer, failed, ".mp4")
        assert (answer.status_code, answer.json()["state"]) == (409, "failed")


def test_a_page_that_does_not_say_how_long_it_is(renderer):
    record = renderer.ended(renderer.begin("<p>Hi"))
    assert record["status"] == "failed"
    assert "duration_ms" in record["problem"]["detail"]


def test_what_a_page_was_refused_stands_in_the_record(renderer):
    html = """<script>
    fetch("http://169.254.169.254/latest/meta-data/").catch(() => {});
    console.error("a word of the page");
    </script>"""
    record, _ = renderer.rendered(html, duration_ms=100)
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
    picture = base64.b64encode(pictures("GIF")).decode()
    html = f"<body style='margin:0'><img src='data:image/gif;base64,{picture}'>"
    _, alone = renderer.rendered(html + "<!-- alone -->", duration_ms=3000, work_slice_ms=3000)
    for reused in (False, True):
        record, film = renderer.rendered(html, duration_ms=3000, work_slice_ms=1000)
        (slice_,) = record["slices"]
        assert (slice_["frames"], slice_["reused"], record["frames_done"]) == (90, reused, 90)
        assert [line for line in record["browser"] if line.startswith(ALONE)]
        assert ("discarded" in record["seconds"]) is not reused
        assert film == alone
    # a film of one slice is drawn by one browser anyway
    record, _ = renderer.rendered(html, duration_ms=1000, work_slice_ms=1000)
    assert not [line for line in record["browser"] if line.startswith(ALONE)]


def test_small_sizes_and_durations(renderer):
    record, _ = renderer.rendered(HALF, width=2, height=2, duration_ms=1)
    assert (record["frames"], record["status"]) == (1, "complete")
