"""draft-ietf-httpbis-resumable-upload-12 as its document says, spoken on a real socket."""

import base64
import hashlib
import json
import os
import socket
import time
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.service.resumable import appending, draft
from fragdex.service.uploads import upload_session
from service.killing import service
from service.serving import API, serving

PART = "application/partial-upload"
REGISTRY = "https://iana.org/assignments/http-problem-types#"
SIZE = 300_000
DATA = os.urandom(SIZE)
VERSION = {"Upload-Draft-Interop-Version": "8"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("data"), cors_origins=("https://a.example",)) as one:
        yield one


class Wire:
    """A connection: requests are written as bytes, responses read one by one, interim ones too."""

    def __init__(self, address, key):
        self.socket = socket.create_connection(address, 30)
        self.file = self.socket.makefile("rb")
        self.key = key

    def send(self, method, path, body=b"", *, http="1.1", length=None, **fields):
        size = len(body) if length is None else length
        head = {"Host": "x", "Authorization": f"Bearer {self.key}", "Content-Length": size}
        head |= {name.replace("_", "-"): text for name, text in fields.items()}
        lines = [f"{method} {path} HTTP/{http}", *(f"{n}: {v}" for n, v in head.items())]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def answer(self, method=""):
        """(status, fields by their lower names, body) of the next response."""
        status = int(self.file.readline().split()[1])
        fields = {}
        while line := self.file.readline().strip():
            name, _, value = line.decode().partition(": ")
            fields[name.lower()] = value
        bare = status < 200 or status == 204 or method == "HEAD"
        return status, fields, b"" if bare else self.file.read(int(fields["content-length"]))

    def close(self):
        self.file.close()
        self.socket.close()


@contextmanager
def wire(address, key):
    one = Wire(address, key)
    try:
        yield one
    finally:
        one.close()


@pytest.fixture
def line(served):
    with wire(served.address, served.key) as one:
        yield one


def begin(served, size=SIZE, complete="?0", content=b"", **fields):
    headers = {"Upload-Complete": complete, "Upload-Length": str(size), **fields}
    return served.client.post(f"{API}/uploads", content=content, headers=headers)


def patch(served, url, offset, content, complete="?0", **fields):
    headers = {"Upload-Offset": str(offset), "Upload-Complete": complete, "Content-Type": PART}
    return served.client.patch(url, content=content, headers={**headers, **fields})


def offset_of(served, url):
    return int(served.client.head(url).headers["Upload-Offset"])


def need_problem(answer, status, type_):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == REGISTRY + type_
    return answer.json()


# ---- what works -----------------------------------------------------------------------------


def test_what_can_be_done_is_told_before(served):
    for path in ("", "/any"):
        answer = served.client.options(f"{API}/uploads{path}")
        assert answer.headers["Accept-Patch"] == PART
        most = served.context.settings.max_unprocessed_bytes
        assert answer.headers["Upload-Limit"] == f"max-size={most}"


def test_an_upload_in_parts(served):
    name = "inline; filename=\"x.bin\"; filename*=UTF-8''f%C3%BCnf.bin"
    answer = begin(served, content=DATA[:100_000], **{"Content-Disposition": name})
    url = answer.headers["Location"]
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (201, "100000")
    assert answer.headers["Upload-Complete"] == "?0"
    assert "max-age=" in answer.headers["Upload-Limit"]
    more = patch(served, url, 100_000, DATA[100_000:200_000])
    assert (more.status_code, more.headers["Upload-Complete"]) == (204, "?0")
    state = served.client.head(url)
    assert (state.status_code, state.headers["Upload-Offset"]) == (204, "200000")
    assert state.headers["Upload-Complete"] == "?0"
    assert state.headers["Upload-Length"] == str(len(DATA))
    assert state.headers["Cache-Control"] == "no-store"
    last = patch(served, url, 200_000, DATA[200_000:], "?1")
    assert (last.status_code, last.headers["Upload-Complete"]) == (201, "?1")
    record = served.client.get(last.headers["Location"]).json()
    assert record == last.json()
    assert record["filename"] == "fünf.bin"
    assert record["md5"].replace("-", "") == hashlib.md5(DATA).hexdigest()
    assert served.client.head(url).headers["Upload-Complete"] == "?1"


def test_an_upload_in_one_request_and_one_of_no_bytes(served):
    for content in (DATA[:5000], b""):
        headers = {"Upload-Complete": "?1"}
        answer = served.client.post(f"{API}/uploads", content=content, headers=headers)
        assert (answer.status_code, answer.headers["Upload-Complete"]) == (201, "?1")
        record = served.client.get(answer.headers["Location"]).json()
        assert record["md5"].replace("-", "") == hashlib.md5(content).hexdigest()


def test_the_last_byte_completes_nothing_until_the_client_says_so(served):
    url = begin(served, 10, content=b"0123456789").headers["Location"]
    state = served.client.head(url).headers
    assert (state["Upload-Offset"], state["Upload-Complete"]) == ("10", "?0")
    assert patch(served, url, 10, b"", "?1").headers["Upload-Complete"] == "?1"
    assert served.client.head(url).headers["Upload-Complete"] == "?1"


def test_a_body_of_no_announced_length(served):
    url = begin(served).headers["Location"]
    assert patch(served, url, 0, iter([DATA[:70_000], DATA[70_000:90_000]])).status_code == 204
    assert offset_of(served, url) == 90_000
    assert patch(served, url, 90_000, iter([DATA[90_000:]]), "?1").status_code == 201


def test_a_file_that_is_here_is_not_sent_again(served):
    content = b"here already"
    digest = base64.b64encode(hashlib.md5(content).digest()).decode()
    headers = {"Repr-Digest": f"md5=:{digest}:"}
    first = begin(served, len(content), "?1", content, **headers)
    again = begin(served, len(content), **headers)
    assert again.headers["Upload-Offset"] == str(len(content))
    assert again.json()["id"] == first.json()["id"]


def test_cancelled_it_is_gone(served):
    url = begin(served, content=DATA[:1000]).headers["Location"]
    assert served.client.delete(url).status_code == 204
    assert served.client.head(url).status_code == 404
    assert patch(served, url, 1000, b"x").status_code == 404


def test_a_page_of_another_origin_may_read_the_fields(served):
    origin = {"Origin": "https://a.example"}
    asked = {**origin, "Access-Control-Request-Method": "PATCH"}
    asked["Access-Control-Request-Headers"] = "upload-complete,upload-draft-interop-version"
    assert served.anyone.options(f"{API}/uploads", headers=asked).status_code == 200
    exposed = begin(served, **origin).headers["Access-Control-Expose-Headers"]
    needed = {"Upload-Offset", "Upload-Complete", "Upload-Length", "Upload-Limit", "Location"}
    assert needed <= {*exposed.split(", ")}


# ---- interim responses, broken connections --------------------------------------------------


def test_a_104_gives_the_url_before_the_bytes(served, line):
    line.send("POST", f"{API}/uploads", length=len(DATA), Upload_Complete="?1", **VERSION)
    status, fields, _ = line.answer()
    assert (status, fields["upload-draft-interop-version"]) == (104, "8")
    assert fields["upload-limit"].startswith("max-size=")
    line.socket.sendall(DATA)
    status, last, body = line.answer()
    assert (status, last["upload-complete"]) == (201, "?1")
    assert fields["location"] == f"{API}/uploads/{json.loads(body)['id']}"


@pytest.mark.parametrize(
    ("http", "fields"),
    [
        ("1.1", {}),
        ("1.1", {"Upload_Draft_Interop_Version": "6"}),
        ("1.1", {**VERSION, "Via": "1.1 proxy"}),
        ("1.1", {**VERSION, "X_Forwarded_For": "192.0.2.1"}),
        ("1.0", VERSION),
    ],
)
def test_no_104_where_it_may_break_something(line, http, fields):
    line.send("POST", f"{API}/uploads", b"12345", http=http, Upload_Complete="?1", **fields)
    assert line.answer()[0] == 201


def test_the_offset_is_told_while_bytes_come(served, line, monkeypatch):
    monkeypatch.setattr(appending, "SECONDS", 0.05)
    monkeypatch.setattr(upload_session, "SYNC_BYTES", 1 << 20)
    size = 8 << 20
    url = begin(served, size).headers["Location"]
    more = {"Upload_Offset": "0", "Upload_Complete": "?1", "Content_Type": PART, **VERSION}
    line.send("PATCH", url, bytes(size - 1), length=size, **more)
    status, fields, _ = line.answer()
    assert status == 104
    assert "location" not in fields
    assert 0 < int(fields["upload-offset"]) < size
    line.socket.sendall(b"\0")
    while status == 104:
        status, fields, _ = line.answer()
    assert (status, fields["upload-complete"]) == (201, "?1")


def test_a_broken_connection_costs_nothing_and_one_that_only_sleeps_is_ended(served):
    """Each connection dies after some bytes; the last one before is still open when it is asked."""
    lines, url, offset = [], begin(served).headers["Location"], 0
    for stop, closes in ((80_000, True), (200_000, False), (250_000, False)):
        one = Wire(served.address, served.key)
        lines.append(one)
        more = {"Upload_Offset": offset, "Upload_Complete": "?1", "Content_Type": PART}
        one.send("PATCH", url, DATA[offset:stop], length=len(DATA) - offset, **more)
        time.sleep(0.5)  # so long the bytes may be on their way
        if closes:
            one.close()
        # the offset that is told is taken in the next request
        start, offset = offset, offset_of(served, url)
        assert start <= offset <= stop
    assert offset > 0
    last = patch(served, url, offset, DATA[offset:], "?1")
    assert last.json()["md5"].replace("-", "") == hashlib.md5(DATA).hexdigest()
    for one in lines[1:]:
        assert one.answer()[0] == 409
        one.close()


def test_an_upload_outlives_kills(tmp_path):
    data = os.urandom(6 << 20)
    with service(tmp_path / "data") as killed:
        address = ("127.0.0.1", killed.port)
        with wire(address, killed.key) as one:
            one.send("POST", f"{API}/uploads", length=len(data), Upload_Complete="?1", **VERSION)
            status, fields, _ = one.answer()
            assert status == 104
            one.socket.sendall(data[: 4 << 20])
            killed.kill()
        killed.start()
        with wire(address, killed.key) as one:
            one.send("HEAD", fields["location"])
            _, state, _ = one.answer("HEAD")
            offset = int(state["upload-offset"])
            assert state["upload-complete"] == "?0"
            status, ends = 409, time.monotonic() + 60
            while status == 409 and time.monotonic() < ends:  # until the lease of the dead ends
                more = {"Upload_Offset": offset, "Upload_Complete": "?1", "Content_Type": PART}
                one.send("PATCH", fields["location"], data[offset:], **more)
                status, _, body = one.answer()
                if status == 409:
                    one.close()
                    time.sleep(0.5)
                    one.__init__(address, killed.key)
        assert status == 201
        assert json.loads(body)["md5"].replace("-", "") == hashlib.md5(data).hexdigest()


# ---- no length ------------------------------------------------------------------------------


def begun_unmeasured(served, content=b"", complete="?0", **fields):
    headers = {"Upload-Complete": complete, **fields}
    return served.client.post(f"{API}/uploads", content=content, headers=headers)


@pytest.mark.parametrize("unreadable", [{}, {"Upload-Length": "5.0"}, {"Upload-Length": "-5"}])
def test_the_length_may_be_said_with_the_last_bytes(served, unreadable):
    url = begun_unmeasured(served, DATA[:1000], **unreadable).headers["Location"]
    state = served.client.head(url)
    assert (state.headers["Upload-Offset"], state.headers["Upload-Complete"]) == ("1000", "?0")
    assert "Upload-Length" not in state.headers
    assert patch(served, url, 1000, iter([DATA[1000:1500], DATA[1500:2000]])).status_code == 204
    last = patch(served, url, 2000, DATA[2000:3000], "?1")
    assert (last.status_code, last.headers["Upload-Complete"]) == (201, "?1")
    assert last.json()["byte_size"] == 3000
    assert served.client.head(url).headers["Upload-Length"] == "3000"


@pytest.mark.parametrize("last", [b"", iter([]), iter([b"ab", b"c"])])
def test_an_upload_of_no_length_ends_where_its_last_body_ends(served, last):
    url = begun_unmeasured(served, b"12345").headers["Location"]
    answer = patch(served, url, 5, last, "?1")
    assert (answer.status_code, answer.headers["Upload-Complete"]) == (201, "?1"), answer.text
    assert served.client.head(url).headers["Upload-Length"] == answer.headers["Upload-Offset"]


@pytest.mark.parametrize("content", [b"", iter([]), DATA[:2000], iter([DATA[:999], DATA[999:]])])
def test_one_request_of_no_length(served, content):
    answer = begun_unmeasured(served, content, "?1")
    assert (answer.status_code, answer.headers["Upload-Complete"]) == (201, "?1"), answer.text
    assert answer.json()["byte_size"] == int(answer.headers["Upload-Offset"])


def test_a_length_that_was_said_holds(served):
    url = begun_unmeasured(served, b"12345").headers["Location"]
    need_problem(patch(served, url, 5, b"", **{"Upload-Length": "4"}), 400,
                 "inconsistent-upload-length")  # fmt: skip
    assert patch(served, url, 5, b"6", **{"Upload-Length": "10"}).status_code == 204
    assert served.client.head(url).headers["Upload-Length"] == "10"
    need_problem(patch(served, url, 6, b"", **{"Upload-Length": "11"}), 400,
                 "inconsistent-upload-length")  # fmt: skip
    assert patch(served, url, 6, b"7890", "?1").status_code == 201


# ---- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "content", "status"),
    [
        ({"Upload-Length": "5"}, b"", 422),
        ({"Upload-Length": "5", "Upload-Complete": "true"}, b"", 422),
        ({"Upload-Complete": "?0", "Upload-Length": str(10 << 40)}, b"", 413),
        ({"Upload-Complete": "?1", "Upload-Length": "6"}, b"12345", 400),
        ({"Upload-Complete": "?0", "Upload-Length": "4"}, b"12345", 400),
        ({"Upload-Complete": "?1", "Upload-Length": "6"}, iter([b"12345"]), 400),
    ],
)
def test_creations_that_break_a_rule(served, fields, content, status):
    answer = served.client.post(f"{API}/uploads", content=content, headers=fields)
    assert answer.status_code == status, answer.text
    if status == 400:
        need_problem(answer, 400, "inconsistent-upload-length")
    if status == 413:
        assert answer.headers["Upload-Limit"].startswith("max-size=")


def test_bytes_that_break_a_rule(served):
    url = begin(served, 10, content=b"01234").headers["Location"]
    wrong = patch(served, url, 7, b"x")
    problem = need_problem(wrong, 409, "mismatching-upload-offset")
    assert (problem["expected-offset"], problem["provided-offset"]) == (5, 7)
    assert wrong.headers["Upload-Offset"] == "5"
    need_problem(patch(served, url, 5, b"567890"), 400, "inconsistent-upload-length")
    need_problem(patch(served, url, 5, b"567", "?1"), 400, "inconsistent-upload-length")
    length = {"Upload-Length": "11"}
    need_problem(patch(served, url, 5, b"56", **length), 400, "inconsistent-upload-length")
    other = patch(served, url, 5, b"56", **{"Content-Type": "application/octet-stream"})
    assert (other.status_code, other.headers["Accept-Patch"]) == (415, PART)
    for fields in ({"Upload-Offset": "5, 5"}, {"Upload-Complete": "1"}):
        assert patch(served, url, 5, b"56", **fields).status_code == 422
    assert offset_of(served, url) == 5


def test_a_complete_upload_takes_nothing(served):
    url = begin(served, 5).headers["Location"]
    patch(served, url, 0, b"01234", "?1")
    need_problem(patch(served, url, 5, b"", "?1"), 400, "completed-upload")
    need_problem(patch(served, url, 0, b"01234", "?1"), 400, "inconsistent-upload-length")


def test_an_upload_whose_bytes_pass_its_length_is_no_more(served):
    url = begin(served, 100_000).headers["Location"]
    answer = patch(served, url, 0, iter([DATA[:90_000], DATA[90_000:110_000]]))
    need_problem(answer, 400, "inconsistent-upload-length")
    assert served.client.head(url).status_code == 404


def test_bytes_that_are_not_those_announced_end_the_upload(served):
    digest = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    url = begin(served, 5, **{"Repr-Digest": f"md5=:{digest}:"}).headers["Location"]
    refused = patch(served, url, 0, b"01234", "?1")
    # the client knows by the field that to resume is of no use
    assert (refused.status_code, refused.headers["Upload-Complete"]) == (422, "?1")
    assert served.client.head(url).status_code == 404


@pytest.mark.parametrize("name", ["sha-256", "sha-512"])
def test_content_of_a_wrong_digest_is_not_taken(served, name):
    url = begin(served).headers["Location"]
    right = base64.b64encode(hashlib.new(name.replace("-", ""), DATA[:5000]).digest()).decode()
    fields = {"Content-Digest": f"{name}=:{right}:"}
    wrong = patch(served, url, 0, DATA[1:5001], **fields)
    assert (wrong.status_code, offset_of(served, url)) == (460, 0)
    assert patch(served, url, 0, DATA[:5000], **fields).headers["Upload-Offset"] == "5000"


def test_nothing_without_a_key_and_nothing_of_others(served):
    url = begin(served).headers["Location"]
    fields = {"Upload-Complete": "?1", "Upload-Offset": "0", "Content-Type": PART}
    for method, place in (("POST", f"{API}/uploads"), *((m, url) for m in ("PATCH", "DELETE"))):
        refused = served.anyone.request(method, place, headers=fields)
        assert refused.status_code == 401, method
    for method in ("HEAD", "PATCH", "DELETE"):
        assert served.stranger.request(method, url, headers=fields).status_code == 404


@given(st.text(max_size=60), st.integers(0, 999_999_999_999_999), st.booleans())
def test_fields_are_read_as_they_were_written(text, number, truth):
    assert draft.integer(draft.item(number)) == number
    assert draft.boolean(draft.item(truth)) is truth
    with suppress(UnicodeEncodeError):
        for read in (
            draft.content_digest,
            draft.md5_of,
            draft.filename_of,
        ):
            read(text)
