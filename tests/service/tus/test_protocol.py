"""tus 1.0.0 as its document says, on a real socket."""

import base64
import hashlib
import os
from contextlib import suppress
from datetime import timedelta
from email.utils import parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.errors import InvalidRequest
from fragdex.service.records import deletion, tables
from fragdex.service.records.identifiers import instant
from fragdex.service.resumable.operations import expire
from fragdex.service.resumable.tus import parse_checksum, parse_concat, parse_metadata
from service.serving import API, serving

TUS = {"Tus-Resumable": "1.0.0"}
BYTES = {**TUS, "Content-Type": "application/offset+octet-stream"}
DATA = os.urandom(300_000)


def b64(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("data")) as one:
        yield one


def begin(served, size, name="film.bin", **headers):
    metadata = {"Upload-Metadata": f"filename {b64(name)},secret"}
    return served.client.post(
        f"{API}/tus", headers={**TUS, "Upload-Length": str(size), **metadata, **headers}
    )


def patch(served, url, offset, data, **headers):
    return served.client.patch(
        url, content=data, headers={**BYTES, "Upload-Offset": str(offset), **headers}
    )


def head(served, url):
    return served.client.head(url, headers=TUS)


# ---- core -----------------------------------------------------------------------------------


def test_what_is_spoken(served):
    answer = served.client.options(f"{API}/tus")
    assert answer.status_code == 204
    assert answer.headers["Tus-Version"] == "1.0.0"
    assert "concatenation" in answer.headers["Tus-Extension"].split(",")
    assert int(answer.headers["Tus-Max-Size"]) == served.context.settings.max_unprocessed_bytes


def test_an_upload_from_its_creation_to_the_file(served):
    answer = begin(served, len(DATA))
    url = answer.headers["Location"]
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (201, "0")
    assert answer.headers["Tus-Resumable"] == "1.0.0"
    assert "GMT" in answer.headers["Upload-Expires"]
    first = patch(served, url, 0, DATA[:100_000])
    assert (first.status_code, first.headers["Upload-Offset"]) == (204, "100000")
    state = head(served, url)
    assert state.status_code == 200
    assert state.headers["Upload-Offset"] == "100000"
    assert state.headers["Upload-Length"] == str(len(DATA))
    assert state.headers["Cache-Control"] == "no-store"
    assert state.headers["Upload-Metadata"] == f"filename {b64('film.bin')},secret"
    assert patch(served, url, 100_000, DATA[100_000:]).headers["Upload-Offset"] == str(len(DATA))
    record = served.client.get(f"{API}/files/{url.rpartition('/')[2]}").json()
    assert record["filename"] == "film.bin"
    assert record["md5"].replace("-", "") == hashlib.md5(DATA).hexdigest()


# ---- creation-defer-length ------------------------------------------------------------------


def begin_unmeasured(served, name="film.bin", content=b"", **headers):
    headers = {**BYTES, "Upload-Defer-Length": "1", **headers}
    metadata = {"Upload-Metadata": f"filename {b64(name)}"}
    return served.client.post(f"{API}/tus", content=content, headers={**headers, **metadata})


def deferred(served, url):
    sent = head(served, url).headers
    return sent["Upload-Offset"], sent.get("Upload-Defer-Length"), sent.get("Upload-Length")


def test_the_length_of_an_upload_may_be_said_later(served):
    assert "creation-defer-length" in served.client.options(f"{API}/tus").headers["Tus-Extension"]
    url = begin_unmeasured(served, content=DATA[:1000]).headers["Location"]
    file = f"{API}/files/{url.rpartition('/')[2]}"
    assert deferred(served, url) == ("1000", "1", None)
    assert served.client.get(file).json()["byte_size"] is None
    assert patch(served, url, 1000, DATA[1000:5000]).status_code == 204
    assert deferred(served, url) == ("5000", "1", None)
    told = {"Upload-Length": str(len(DATA))}
    assert patch(served, url, 5000, DATA[5000:9000], **told).status_code == 204
    assert deferred(served, url) == ("9000", None, str(len(DATA)))
    assert served.client.get(file).json()["byte_size"] == len(DATA)
    assert patch(served, url, 9000, b"", **{"Upload-Length": "9000"}).status_code == 422
    assert patch(served, url, 9000, DATA[9000:]).headers["Upload-Offset"] == str(len(DATA))
    record = served.client.get(file).json()
    assert record["md5"].replace("-", "") == hashlib.md5(DATA).hexdigest()


@pytest.mark.parametrize("content", [b"", DATA[:1000]])
def test_the_length_alone_completes_an_upload(served, content):
    url = begin_unmeasured(served, content=content).headers["Location"]
    size = len(content)
    for shorter in range(size, 0, -400):
        refused = patch(served, url, size, b"", **{"Upload-Length": str(shorter - 1)})
        assert (refused.status_code, refused.json()["next_byte"]) == (400, size), refused.text
    assert deferred(served, url) == (str(size), "1", None)
    assert patch(served, url, size, b"", **{"Upload-Length": str(size)}).status_code == 204
    assert deferred(served, url) == (str(size), None, str(size))
    record = served.client.get(f"{API}/files/{url.rpartition('/')[2]}").json()
    assert (record["byte_size"], record["next_byte"]) == (size, size)
    assert record["md5"].replace("-", "") == hashlib.md5(content).hexdigest()


def test_parts_of_no_length_are_put_together(served):
    parts = []
    for content in (DATA[:1000], DATA[1000:3000]):
        url = begin_unmeasured(served, **{"Upload-Concat": "partial"}).headers["Location"]
        told = {"Upload-Length": str(len(content))}
        assert patch(served, url, 0, content, **told).status_code == 204
        parts.append(url)
    final = {**TUS, "Upload-Concat": f"final;{' '.join(parts)}"}
    answer = served.client.post(f"{API}/tus", headers=final)
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (201, "3000"), answer.text


def test_a_part_becomes_no_file_by_another_protocol(served):
    """… so that the draft refuses it before it takes bytes."""
    url = begin_unmeasured(served, content=DATA[:9], **{"Upload-Concat": "partial"})
    url = url.headers["Location"]
    sent = {"Upload-Offset": "9", "Upload-Complete": "?1"}
    answer = served.client.patch(
        f"{API}/uploads/{url.rpartition('/')[2]}",
        content=DATA[9:20],
        headers={**sent, "Content-Type": "application/partial-upload"},
    )
    assert (answer.status_code, "/tus" in answer.text) == (404, True)
    assert deferred(served, url) == ("9", "1", None)


def test_an_upload_of_no_length_is_held_to_what_a_file_may_have(tmp_path):
    with serving(tmp_path, max_unprocessed_bytes=5000) as served:
        url = begin_unmeasured(served, content=DATA[:3000]).headers["Location"]
        for content in (DATA[:2001], iter([DATA[:2000], DATA[:1000]])):
            refused = patch(served, url, int(deferred(served, url)[0]), content)
            assert refused.status_code == 413, refused.text
        assert patch(served, url, 3000, b"", **{"Upload-Length": "5001"}).status_code == 413
        offset, later, _ = deferred(served, url)
        assert (int(offset) <= 5000, later) == (True, "1")


def test_an_upload_of_no_length_that_nobody_finishes_expires(tmp_path):
    with serving(tmp_path) as served:
        url = begin_unmeasured(served, content=b"12345").headers["Location"]
        upload, then = tables.uploads, instant() - timedelta(days=2)
        with served.context.database.write() as connection:
            times = {"created_at": then, "written_at": then, "lease_until": None}
            connection.execute(upload.update().values(**times))
            connection.execute(tables.tus_uploads.update().values(expires_at=then))
        assert expire(served.context) == 1
        assert head(served, url).status_code == 404


# ---- refusals -------------------------------------------------------------------------------


def test_an_offset_that_is_not_the_uploads_is_a_conflict(served):
    url = begin(served, len(DATA)).headers["Location"]
    patch(served, url, 0, DATA[:1000])
    for offset in (0, 999, 1001):
        answer = patch(served, url, offset, DATA[offset : offset + 10])
        assert answer.status_code == 409
        assert answer.json()["next_byte"] == 1000
        assert answer.headers["Tus-Resumable"] == "1.0.0"
    assert head(served, url).headers["Upload-Offset"] == "1000"


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"Upload-Length": "5"}, 412),
        ("POST", {"Tus-Resumable": "0.2.2", "Upload-Length": "5"}, 412),
        ("POST", {**TUS}, 422),
        ("POST", {**TUS, "Upload-Length": "-1"}, 422),
        ("POST", {**TUS, "Upload-Length": str(10 << 30)}, 413),
        ("POST", {**TUS, "Upload-Defer-Length": "2"}, 422),
        ("POST", {**TUS, "Upload-Defer-Length": "1", "Upload-Length": "5"}, 422),
        ("POST", {**TUS, "Upload-Length": "5", "Upload-Metadata": "a ???"}, 422),
        ("POST", {**TUS, "Upload-Length": "5", "Upload-Metadata": f"md5 {b64('x')}"}, 422),
        ("POST", {**TUS, "Upload-Concat": "final;"}, 422),
        ("POST", {**TUS, "Upload-Concat": "final;/api/v1/tus/none"}, 404),
    ],
)
def test_creations_that_break_a_rule(served, method, headers, status):
    answer = served.client.request(method, f"{API}/tus", headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["Tus-Resumable"] == "1.0.0"


def test_bytes_that_break_a_rule(served):
    url = begin(served, 10).headers["Location"]
    plain = served.client.patch(url, content=b"x", headers={**TUS, "Upload-Offset": "0"})
    assert plain.status_code == 415
    assert patch(served, url, 0, b"x" * 11).status_code == 413
    assert served.client.patch(url, content=b"x", headers=BYTES).status_code == 422
    assert head(served, url).headers["Upload-Offset"] == "0"


def test_nothing_without_a_key_and_nothing_of_others(served):
    url = begin(served, 10).headers["Location"]
    assert served.anyone.head(url, headers=TUS).status_code == 401
    assert served.stranger.head(url, headers=TUS).status_code == 404
    sent = served.stranger.patch(url, content=b"x", headers={**BYTES, "Upload-Offset": "0"})
    assert sent.status_code == 404
    assert served.stranger.delete(url, headers=TUS).status_code == 404


def test_post_with_another_method_in_a_header(served):
    url = begin(served, 5).headers["Location"]
    override = {"X-HTTP-Method-Override": "PATCH", "Upload-Offset": "0"}
    assert served.client.post(url, content=b"12345", headers={**BYTES, **override}).is_success
    assert head(served, url).headers["Upload-Offset"] == "5"


def test_a_body_of_no_announced_length(served):
    url = begin(served, len(DATA)).headers["Location"]

    def some():
        yield DATA[:70_000]
        yield DATA[70_000:90_000]

    answer = patch(served, url, 0, some())
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, "90000")
    rest = patch(served, url, 90_000, DATA[90_000:])
    assert (rest.status_code, rest.headers["Upload-Offset"]) == (204, str(len(DATA)))


# ---- extensions -----------------------------------------------------------------------------


def test_creation_with_the_first_bytes(served):
    headers = {**BYTES, "Upload-Length": "10", "Upload-Metadata": f"filename {b64('a.bin')}"}
    answer = served.client.post(f"{API}/tus", content=b"12345", headers=headers)
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (201, "5")


def test_what_is_here_already_is_not_sent_again(served):
    first = begin(served, 4, **{"Upload-Metadata": f"filename {b64('a')},md5 {b64(MD5)}"})
    patch(served, first.headers["Location"], 0, b"four")
    again = begin(served, 4, **{"Upload-Metadata": f"filename {b64('a')},md5 {b64(MD5)}"})
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["Upload-Offset"] == "4"


MD5 = hashlib.md5(b"four").hexdigest()


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "md5"])
def test_bytes_of_a_wrong_checksum_are_not_taken(served, algorithm):
    url = begin(served, len(DATA)).headers["Location"]
    right = f"{algorithm} {b64(hashlib.new(algorithm, DATA[:5000]).digest())}"
    wrong = patch(served, url, 0, DATA[1:5001], **{"Upload-Checksum": right})
    assert wrong.status_code == 460
    assert head(served, url).headers["Upload-Offset"] == "0"
    taken = patch(served, url, 0, DATA[:5000], **{"Upload-Checksum": right})
    assert taken.headers["Upload-Offset"] == "5000"
    unknown = patch(served, url, 5000, b"x", **{"Upload-Checksum": f"crc32 {b64('x')}"})
    assert unknown.status_code == 422


def test_an_upload_that_is_ended_is_gone(served):
    url = begin(served, len(DATA)).headers["Location"]
    patch(served, url, 0, DATA[:1000])
    assert served.client.delete(url, headers=TUS).status_code == 204
    assert head(served, url).status_code == 404
    assert patch(served, url, 1000, DATA[1000:]).status_code == 404


def part(served, data):
    url = begin(served, len(data), **{"Upload-Concat": "partial"}).headers["Location"]
    assert patch(served, url, 0, data).status_code == 204
    return url


def test_parts_are_put_together(served):
    urls = [part(served, DATA[start : start + 100_000]) for start in range(0, 300_000, 100_000)]
    listed = served.client.get(f"{API}/files").json()["files"]
    assert not {url.rpartition("/")[2] for url in urls} & {one["id"] for one in listed}
    concat = f"final;{' '.join(urls)}"
    headers = {**TUS, "Upload-Concat": concat, "Upload-Metadata": f"filename {b64('whole.bin')}"}
    answer = served.client.post(f"{API}/tus", headers=headers)
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (201, "300000")
    url = answer.headers["Location"]
    assert head(served, url).headers["Upload-Concat"] == concat
    record = served.client.get(f"{API}/files/{url.rpartition('/')[2]}").json()
    assert record["md5"].replace("-", "") == hashlib.md5(DATA).hexdigest()
    assert all(head(served, one).status_code == 404 for one in urls)


def test_parts_that_are_not_complete_or_not_parts(served):
    unfinished = begin(served, 10, **{"Upload-Concat": "partial"}).headers["Location"]
    assert head(served, unfinished).headers["Upload-Concat"] == "partial"
    file = begin(served, 10).headers["Location"]
    for url, status in ((unfinished, 409), (file, 404)):
        headers = {**TUS, "Upload-Concat": f"final;{url}"}
        assert served.client.post(f"{API}/tus", headers=headers).status_code == status


def test_parts_that_nobody_puts_together_expire(tmp_path):
    with serving(tmp_path, upload_hours=1e-6) as served:
        url = part(served, DATA[:1000])
        deletion.expired(served.context.database)
        expire(served.context)
        assert head(served, url).status_code == 404


def test_a_file_that_nobody_finishes_goes_with_its_upload(tmp_path):
    """Unless somebody announced it otherwise, or its bytes are all here."""
    digest = hashlib.md5(DATA).hexdigest()
    known = {"Upload-Metadata": f"filename {b64('film.bin')},md5 {b64(digest)}"}
    with serving(tmp_path) as served:
        started = begin(served, 10, "a.png").headers["Location"]
        assert patch(served, started, 0, b"12345").status_code == 204
        untouched = begin(served, 10).headers["Location"]
        # the same file again is still this protocol's own
        twice = [begin(served, 9, **{"Upload-Metadata": f"{text},md5 {b64('0' * 32)}"}).headers for
                 text in [f"filename {b64('b.bin')}"] * 2]  # fmt: skip
        assert twice[0]["Location"] == twice[1]["Location"]
        new = {"filename": "film.bin", "type": "video", "byte_size": len(DATA), "md5": digest}
        announced = served.client.post(f"{API}/files", json=new).json()["id"]
        assert begin(served, len(DATA), **known).headers["Location"].endswith(announced)
        complete = begin(served, 5, "c.bin").headers["Location"]
        assert patch(served, complete, 0, b"whole").status_code == 204
        expire(served.context)
        assert head(served, started).headers["Upload-Offset"] == "5"
        upload, then = tables.uploads, instant() - timedelta(days=2)
        with served.context.database.write() as connection:
            times = {"created_at": then, "written_at": then, "lease_until": None}
            connection.execute(upload.update().values(**times))
            connection.execute(tables.tus_uploads.update().values(expires_at=then))
        expire(served.context)
        left = {one["id"] for one in served.client.get(f"{API}/files").json()["files"]}
        assert left == {announced, complete.rpartition("/")[2]}
        for url in (started, untouched, twice[0]["Location"]):
            assert head(served, url).status_code == 404


def test_an_upload_that_still_gets_bytes_does_not_expire(served):
    url = begin(served, 10).headers["Location"]
    mine = tables.tus_uploads.c.id == url.rpartition("/")[2]
    with served.context.database.write() as connection:
        past = tables.tus_uploads.update().where(mine).values(expires_at=instant())
        connection.execute(past)
    assert patch(served, url, 0, b"12345").status_code == 204
    expire(served.context)
    answer = head(served, url)
    assert answer.headers["Upload-Offset"] == "5"
    assert parsedate_to_datetime(answer.headers["Upload-Expires"]) > instant()


# ---- headers --------------------------------------------------------------------------------


@given(st.dictionaries(st.text("abcdefgh_-.", min_size=1), st.text(max_size=20), max_size=5))
def test_metadata_is_read_as_it_was_written(known):
    text = ",".join(f"{key} {b64(value)}".rstrip() for key, value in known.items())
    assert parse_metadata(text) == known


@given(st.text(max_size=60))
def test_no_header_breaks_the_parsers(text):
    for parse in (parse_metadata, parse_checksum, parse_concat):
        with suppress(InvalidRequest):
            parse(text)
