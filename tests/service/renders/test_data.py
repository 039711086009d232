"""Pages that are given data: one film, or a film for each row."""

import hashlib
import io
import json

import av
import pytest

from fragdex.errors import PageFailed
from fragdex.rendering.browser.requests import check_data
from service.serving import API

LEVEL = """<!doctype html>%s<style>body { margin: 0 }</style><script>
const level = window.fragdex?.data?.level ?? 255;
document.documentElement.style.background = `rgb(${level}, ${level}, ${level})`;
</script>"""
SCHEMA = """<script type="application/schema+json">%s</script>"""


def page(schema=None):
    """A page as bright as its data say."""
    return LEVEL % ("" if schema is None else SCHEMA % json.dumps(schema))


def level_of(film):
    """The brightness of a film's first frame."""
    with av.open(io.BytesIO(film)) as container:
        return int(next(container.decode(video=0)).to_ndarray(format="gray")[90, 160])


@pytest.mark.slow
def test_other_data_make_another_film_and_the_same_the_same(renderer):
    one, dark = renderer.rendered(page(), duration_ms=200, data={"level": 40})
    two, bright = renderer.rendered(page(), duration_ms=200, data={"level": 180})
    assert abs(level_of(dark) - 40) <= 2
    assert abs(level_of(bright) - 180) <= 2
    again, same = renderer.rendered(page(), duration_ms=200, data={"level": 180})
    content = json.dumps({"level": 180}).encode()
    assert (two["data"], two["data_sha256"]) == (
        {"level": 180},
        hashlib.sha256(content).hexdigest(),
    )
    assert [one["slices"][0]["reused"], two["slices"][0]["reused"]] == [False, False]
    assert again["slices"][0]["reused"]
    assert same == bright


@pytest.mark.slow
def test_data_that_the_page_does_not_take_fail_the_render(renderer):
    wants = page({"properties": {"level": {"maximum": 100}}})
    record = renderer.ended(renderer.begin(wants, duration_ms=200, data={"level": 180}))
    assert record["status"] == "failed"
    assert "/level: 180 is greater than the maximum of 100" in record["problem"]["detail"]


@pytest.mark.slow
def test_a_batch_is_a_render_for_each_row(renderer):
    rows = [{"level": level} for level in (30, 120, 220)]
    size = {"width": 320, "height": 180, "duration_ms": 100}
    answer = renderer.client.post(
        f"{API}/renders/batch", json={"html": page(), "rows": rows, **size}
    )
    assert answer.status_code == 201, answer.text
    records = answer.json()["renders"]
    for record, row in zip(records, rows, strict=True):
        assert renderer.ended(record["id"])["status"] == "complete"
        film = renderer.client.get(f"{API}/renders/{record['id']}.mp4").content
        assert abs(level_of(film) - row["level"]) <= 2


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("/renders", {"data": [1]}, "#/data"),
        ("/renders", {"data": "x"}, "#/data"),
        ("/renders/batch", {"rows": [{}]}, "#/html"),
        ("/renders/batch", {"html": "a"}, "#/rows"),
        ("/renders/batch", {"html": "a", "rows": []}, "#/rows"),
        ("/renders/batch", {"html": "a", "rows": [{}] * 501}, "#/rows"),
        ("/renders/batch", {"html": "a", "rows": [{}], "data": {}}, "#/data"),
        ("/renders/batch", {"html": "a", "rows": [{}], "fps": 0}, "#/fps"),
    ],
)
def test_what_is_refused_is_named(client, path, body, pointer):
    # as a careless client writes it
    answer = client.post(
        f"{API}{path}", content=json.dumps(body), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize("value", ["1e999", "Infinity", "NaN", r'"\ud800"'])
def test_values_that_no_page_could_be_given_are_refused(client, value):
    body = f'{{"data": {{"a": {value}}}}}'
    answer = client.post(
        f"{API}/renders", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422, answer.text


def test_long_data_are_told_by_their_digest(client):
    data = {"text": "é" * 1000}
    record = client.post(f"{API}/renders", json={"data": data}).json()
    assert record["data"] is None
    assert record["data_sha256"] == hashlib.sha256(json.dumps(data).encode()).hexdigest()
    record = client.post(f"{API}/renders", json={}).json()
    assert (record["data"], record["data_sha256"]) == (None, None)


def test_a_batch_is_made_whole_or_not_at_all(client):
    before = client.get(f"{API}/renders").json()["renders"]
    rows = [{}, {"deep": json.loads("[" * 150 + "]" * 150)}]
    body = {"html": "a", "rows": rows, "output": {"video": {"crf": 99}}}
    assert client.post(f"{API}/renders/batch", json=body).status_code == 422
    assert client.get(f"{API}/renders").json()["renders"] == before


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        '{"type": 7}',
        '{"$ref": "http://169.254.169.254/schema.json"}',
        '{"$ref": "#"}',
        "[" * 100_000,
    ],
)
def test_a_schema_that_cannot_be_used_is_the_page_s_fault(schema):
    with pytest.raises(PageFailed, match="schema cannot be used"):
        check_data((SCHEMA % schema).encode(), b'{"level": 1}')
