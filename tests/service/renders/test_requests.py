"""What a render may be asked for, over HTTP: defaults, limits, and fields that are named."""

import json

import pytest

from service.serving import API, serving

STILL = {"container": "png"}


def test_nothing_has_to_be_said(begun):
    record = begun()
    assert record["status"] == "created"
    assert (record["md5"], record["metadata"]) == (None, {})
    assert record["output"] == {
        "container": "mp4",
        "video": {"codec": "h264"},
        "audio": {"codec": "aac"},
    }
    assert (record["fps"], record["work_slice_ms"], record["strategy"]) == (30, 4000, "v1")
    assert (record["width"], record["height"], record["duration_ms"]) == (None, None, None)
    assert record["frames"] is None
    assert record["slices"] == []


def test_not_even_a_body_has_to_be_sent(client):
    answer = client.post(f"{API}/renders")
    assert (answer.status_code, answer.json()["status"]) == (201, "created")
    assert answer.headers["Location"] == f"{API}/renders/{answer.json()['id']}"


def test_null_is_as_good_as_nothing(begun):
    fields = ("html", "width", "height", "fps", "duration_ms", "work_slice_ms", "md5", "metadata")
    more = ("strategy", "backend", "output", "time_ms")
    assert begun(**dict.fromkeys([*fields, *more]))["status"] == "created"


def test_what_is_said_is_told_again(begun):
    fields = {
        "width": 640,
        "height": 360,
        "scale": 1.5,
        "crop": {"x": 2, "y": 0, "width": 64, "height": 48},
        "fps": 25,
        "duration_ms": 1234,
        "from_ms": 100,
        "to_ms": 2000,
        "work_slice_ms": 1000,
        "metadata": {"film": "Ä"},
        "strategy": "v1",
    }
    record = begun(**fields, md5="D41D8CD98F00B204E9800998ECF8427E", backend="gpu")
    assert {name: record[name] for name in fields} == fields
    assert record["md5"] == "d41d8cd9-8f00-b204-e980-0998ecf8427e"


@pytest.mark.parametrize(
    ("said", "exactly"),
    [(29.97, "30000/1001"), (23.976, "24000/1001"), ("60000/1001", "60000/1001"), (12.5, "25/2")],
)
def test_rates_are_exact(begun, said, exactly):
    assert begun(fps=said)["frame_rate"] == exactly


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ({"container": "jpeg"}, {"container": "jpeg", "quality": 80}),
        ({"container": "png"}, {"container": "png", "compression": 80, "transparency": False}),
        (
            {"container": "webp", "transparency": True},
            {"container": "webp", "quality": 80, "compression": 4, "transparency": True},
        ),
        (
            {"video": {}},
            {"container": "mp4", "video": {"codec": "h264"}, "audio": {"codec": "aac"}},
        ),
        (
            {"container": "webm", "transparency": True},
            {
                "container": "webm",
                "video": {"codec": "vp9"},
                "audio": {"codec": "opus"},
                "transparency": True,
            },
        ),
        (
            {"container": "mov", "video": {"codec": "prores", "preset": "4444"}, "silent": True},
            {
                "container": "mov",
                "video": {"codec": "prores", "preset": "4444"},
                "audio": {"codec": "aac"},
                "silent": True,
            },
        ),
        ({"container": "gif"}, {"container": "gif"}),
        ({"container": "zip"}, {"container": "zip", "image": "png"}),
        ({"container": "m4a"}, {"container": "m4a", "audio": {}}),
        (
            {"audio": {"loudness": -16.5}},
            {
                "container": "mp4",
                "video": {"codec": "h264"},
                "audio": {"codec": "aac", "loudness": -16.5},
            },
        ),
    ],
)
def test_outputs_have_their_defaults(begun, output, told):
    assert begun(output=output)["output"] == told


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"width": 1}, "#/width"),
        ({"width": 7681}, "#/width"),
        ({"height": 7682}, "#/height"),
        ({"width": "640"}, "#/width"),
        ({"width": 641}, "#/width"),
        ({"width": 640, "height": 361}, "#/height"),
        ({"width": 7680, "height": 7680, "output": STILL}, "#/width"),
        ({"crop": [0, 0, 2, 2]}, "#/crop"),
        ({"crop": {"width": 2}}, "#/crop/height"),
        ({"crop": {"x": -1, "width": 2, "height": 2}}, "#/crop/x"),
        ({"crop": {"width": 2, "height": 2, "top": 1}}, "#/crop/top"),
        ({"fps": 25, "page_fps": 60}, "#/page_fps"),
        ({"page_fps": 121}, "#/page_fps"),
        ({"crop": {"width": 3, "height": 2}}, "#/crop"),
        ({"crop": {"x": 1, "width": 2, "height": 2}, "width": 2}, "#/crop"),
        ({"crop": {"y": 1, "width": 8, "height": 8}, "scale": 1.25}, "#/crop"),
        ({"scale": 0.4}, "#/scale"),
        ({"scale": 1.1}, "#/scale"),
        ({"scale": "2"}, "#/scale"),
        ({"width": 3842, "scale": 2}, "#/width"),
        ({"width": 4320, "height": 3840, "scale": 1.75, "output": STILL}, "#/width"),
        ({"width": 642, "scale": 1.5}, "#/width"),
        ({"fps": 0}, "#/fps"),
        ({"fps": 121}, "#/fps"),
        ({"fps": "1/0"}, "#/fps"),
        ({"fps": True}, "#/fps"),
        ({"duration_ms": 0}, "#/duration_ms"),
        ({"duration_ms": 3_600_001}, "#/duration_ms"),
        ({"work_slice_ms": 999}, "#/work_slice_ms"),
        ({"work_slice_ms": 10_001}, "#/work_slice_ms"),
        ({"md5": "xyz"}, "#/md5"),
        ({"metadata": {"a": 1}}, "#/metadata/a"),
        ({"metadata": ["a"]}, "#/metadata"),
        ({"strategy": "v2"}, "#/strategy"),
        ({"backend": "tpu"}, "#/backend"),
        ({"html": 7}, "#/html"),
        ({"html": "a\0b"}, "#/html"),
        ({"time_ms": -1, "output": STILL}, "#/time_ms"),
        ({"time_ms": 5}, "#/time_ms"),
        ({"from_ms": 5, "output": STILL}, "#/from_ms"),
        ({"to_ms": 5, "output": STILL}, "#/to_ms"),
        ({"to_ms": 3_600_001}, "#/to_ms"),
        ({"from_ms": 500, "to_ms": 500}, "#/from_ms"),
        ({"from_ms": 500, "duration_ms": 500}, "#/from_ms"),
        ({"to_ms": 0}, "#/to_ms"),
        ({"output": "mp4"}, "#/output"),
        ({"output": {"container": "avi"}}, "#/output/container"),
        ({"output": {"container": "mp4", "video": {"codec": "prores"}}}, "#/output/video/codec"),
        ({"output": {"container": "webm", "video": {"codec": "h264"}}}, "#/output/video/codec"),
        ({"output": {"container": "webm", "audio": {"codec": "aac"}}}, "#/output/audio/codec"),
        ({"output": {"video": {"crf": 52}}}, "#/output/video/crf"),
        ({"output": {"video": {"crf": 5, "bit_rate": 9000}}}, "#/output/video/crf"),
        ({"output": {"video": {"preset": "best"}}}, "#/output/video/preset"),
        ({"output": {"video": {"pixel_format": "rgb24"}}}, "#/output/video/pixel_format"),
        ({"output": {"video": {"gop": 0}}}, "#/output/video/gop"),
        ({"output": {"video": {"color": "p3"}}}, "#/output/video/color"),
        ({"output": {"video": {"color": "bt2020-pq"}}}, "#/output/video/color"),
        (
            {"output": {"video": {
                "codec": "hevc", "color": "bt2020-pq", "pixel_format": "yuv420p",
            }}},
            "#/output/video/pixel_format",
        ),
        ({"output": {"audio": {"bit_rate": 1}}}, "#/output/audio/bit_rate"),
        ({"output": {"container": "mkv", "transparency": True}}, "#/output/transparency"),
        ({"output": {"container": "mp4", "transparency": True}}, "#/output/transparency"),
        ({"output": {"container": "gif", "video": {}}}, "#/output/video"),
        ({"output": {"container": "zip", "image": "tiff"}}, "#/output/image"),
        ({"output": {"container": "zip", "quality": 9}}, "#/output/quality"),
        ({"output": {"container": "wav", "audio": {"bit_rate": 1000}}}, "#/output/audio/bit_rate"),
        ({"output": {"container": "wav", "audio": {"bit_rate": 64000}}}, "#/output/audio/bit_rate"),
        ({"output": {"container": "wav", "video": {}}}, "#/output/video"),
        ({"output": {"container": "wav", "audio": {"loudness": -4}}}, "#/output/audio/loudness"),
        ({"output": {"audio": {"loudness": "-23"}}}, "#/output/audio/loudness"),
        ({"output": {"container": "ogg"}, "crop": {"width": 2, "height": 2}}, "#/crop"),
        (
            {"output": {"container": "zip", "image": "jpeg", "transparency": True}},
            "#/output/transparency",
        ),
        ({"output": {"container": "gif"}, "fps": 60}, "#/fps"),
        ({"output": {"container": "mp4", "quality": 3}}, "#/output/quality"),
        ({"output": {"container": "jpeg", "quality": 0}}, "#/output/quality"),
        ({"output": {"container": "jpeg", "transparency": True}}, "#/output/transparency"),
        ({"output": {"container": "png", "compression": 101}}, "#/output/compression"),
        ({"output": {"container": "webp", "compression": 7}}, "#/output/compression"),
        ({"output": {"container": "webp", "transparency": "yes"}}, "#/output/transparency"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named(client, body, pointer):
    answer = client.post(f"{API}/renders", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_odd_sides_are_for_stills(begun):
    assert begun(width=641, height=361, output=STILL)["width"] == 641


def test_html_has_a_limit_of_its_own(client, server):
    limit = server.context.settings.max_html_bytes
    large = "<p>" + "é" * (limit // 2)
    answer = client.post(f"{API}/renders", json={"html": large})
    assert answer.status_code == 413
    assert answer.json()["limit"] == limit
    assert answer.json()["errors"][0]["pointer"] == "#/html"
    html = "é" * (limit // 2)
    answer = client.post(f"{API}/renders", content=json.dumps({"html": html}))
    assert answer.status_code == 201, answer.text[:200]
    assert answer.json()["status"] == "pending"


def test_an_operator_may_allow_less(tmp_path):
    from service.serving import serving

    less = {"max_render_side": 100, "max_render_fps": 10, "max_render_ms": 1000}
    with serving(tmp_path, **less) as served:
        for body, limit in (
            ({"width": 102}, 100),
            ({"fps": 11}, 10),
            ({"duration_ms": 1001}, 1000),
        ):
            answer = served.client.post(f"{API}/renders", json=body)
            assert (answer.status_code, answer.json()["limit"]) == (422, limit)


def test_too_many_jobs_in_progress_are_refused_and_those_of_others_are_not(tmp_path):
    with serving(tmp_path, max_tenant_jobs=2) as served:
        answers = [served.client.post(f"{API}/renders", json={"html": "<p>"}) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [201, 201]

        refused = served.client.post(f"{API}/renders", json={"html": "<p>"})
        assert refused.status_code == 429
        assert refused.headers["Retry-After"] == "10"
        problem = refused.json()
        assert problem["type"].endswith("too-many-requests")
        assert problem["limit"] == 2
        assert served.stranger.post(f"{API}/renders", json={"html": "<p>"}).status_code == 201

        cancelled = served.client.post(f"{API}/renders/{answers[0].json()['id']}/cancel")
        assert cancelled.status_code == 200
        assert served.client.post(f"{API}/renders", json={"html": "<p>"}).status_code == 201
