"""Responses of views and spans: RFC 9110 for any request, in any framework."""

import threading
from wsgiref.simple_server import WSGIRequestHandler, make_server

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.byterange import parse_range
from fragdex.errors import SourceChanged, SourceNotFound
from fragdex.responses import respond
from fragdex.testing import movie

MOVIE = movie(8)
INDEX = fragdex.index(MOVIE)
VIEW = fragdex.view(INDEX, source=MOVIE)
SPAN = INDEX.span(0.5, 2)
WHOLE = {"view": VIEW.read(source=MOVIE), "span": SPAN.read(MOVIE)}
OF = {"view": VIEW, "span": SPAN}


def fields_of(etag, size):
    """Requests' fields: valid, stale, invalid and odd ones."""
    position = st.integers(0, size + 9)
    ranges = st.one_of(
        st.builds("bytes={}-{}".format, position, position),
        st.builds("bytes={}-".format, position),
        st.builds("bytes=-{}".format, position),
        st.sampled_from(["bytes=", "lines=1-2", "bytes=0-1,4-5", "bytes=9-2", "BYTES=0-3", "x"]),
    )
    tags = st.sampled_from([etag, f"W/{etag}", '"other"', f'"other", {etag}', "*", ""])
    return st.fixed_dictionaries(
        {},
        optional={
            "Range": ranges, "If-Range": tags, "If-None-Match": tags, "If-Match": tags,
            "Accept": st.just("*/*"),
        },
    )  # fmt: skip


def held(tags, etag, weakly):
    return tags.strip() == "*" or etag in [
        tag.strip().removeprefix("W/") if weakly else tag.strip() for tag in tags.split(",")
    ]


@pytest.mark.parametrize("name", ["view", "span"])
@given(data=st.data(), method=st.sampled_from(["GET", "HEAD", "POST", "OPTIONS"]))
def test_every_request_gets_what_the_standard_says(name, data, method):
    what, whole = OF[name], WHOLE[name]
    etag = what.respond("GET", {}, source=MOVIE).headers["ETag"]
    fields = data.draw(fields_of(etag, len(whole)))
    cased = data.draw(st.sampled_from([str.lower, str.title, str.upper]))
    sent = {cased(key): value for key, value in fields.items()}
    response = what.respond(method, [*sent.items()] if len(sent) % 2 else sent, source=MOVIE)
    body = b"".join(response.chunks)
    if method not in ("GET", "HEAD"):
        assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
        return
    assert response.headers["ETag"] == etag
    if "If-Match" in fields and not held(fields["If-Match"], etag, weakly=False):
        assert response.status == 412
        return
    if "If-None-Match" in fields and held(fields["If-None-Match"], etag, weakly=True):
        assert (response.status, body) == (304, b"")
        assert "Content-Length" not in response.headers
        return
    partial = method == "GET" and fields.get("If-Range", etag) == etag
    answer = parse_range(fields.get("Range") if partial else None, len(whole), max_ranges=1)
    if answer.status == 416:
        assert response.status == 416
        assert response.headers["Content-Range"] == f"bytes */{len(whole)}"
        return
    (part,) = answer.ranges
    assert response.status == answer.status
    assert response.headers["Content-Length"] == str(part.size)
    assert body == (b"" if method == "HEAD" else whole[part.start : part.stop])
    assert ("Content-Range" in response.headers) == (response.status == 206)


def test_what_a_span_reads_plays():
    """Its bytes are a file of the fragments that it touches."""
    assert [*SPAN] == [*SPAN.init, *SPAN.media]
    assert WHOLE["span"] == b"".join(MOVIE[part.start : part.stop] for part in SPAN)
    rows = INDEX.track(1).fragments
    inside = [any(at in part for part in SPAN.media) for at in rows.offset.tolist()]
    assert 0 < sum(inside) < len(inside)
    count = sum(n for n, within in zip(rows.sample_count.tolist(), inside, strict=True) if within)
    assert fragdex.index(WHOLE["span"]).track(1).sample_count == count


def test_a_span_reads_only_the_file_that_was_indexed(tmp_path):
    path = tmp_path / "film.mp4"
    path.write_bytes(MOVIE)
    span = fragdex.index(path).span(0, 1)
    assert span.read() == span.read(path) == span.read(MOVIE)
    path.write_bytes(MOVIE + b"\0" * 8)
    with pytest.raises(SourceChanged):
        span.read()
    with pytest.raises(SourceChanged):
        span.respond("GET", {})
    with pytest.raises(SourceNotFound, match="source="):
        fragdex.index(MOVIE).span(0, 1).read()


def test_a_body_that_nobody_takes_leaves_nothing_open(tmp_path):
    path = tmp_path / "film.mp4"
    path.write_bytes(MOVIE)
    view = fragdex.view(fragdex.index(path))
    response = view.respond("GET", {})
    response.chunks.close()
    assert list(response.chunks) == []


def test_a_view_is_saved_as_a_whole_or_not_at_all(tmp_path):
    path = tmp_path / "view.mp4"
    VIEW.save(path, source=MOVIE)
    assert path.read_bytes() == WHOLE["view"] == b"".join(VIEW.chunks(source=MOVIE))
    with pytest.raises(SourceChanged):
        VIEW.save(path, source=MOVIE[:-1])
    assert path.read_bytes() == WHOLE["view"]
    assert [one.name for one in tmp_path.iterdir()] == ["view.mp4"]


def test_large_files_go_out_in_pieces():
    """No piece is larger than what is read at once, whatever the range."""
    size, seen = 9 << 20, []

    def chunks(part):
        for at in range(part.start, part.stop, 1 << 20):
            seen.append(at)
            yield bytes(min(1 << 20, part.stop - at))

    response = respond("GET", {}, size=size, etag='"a"', media_type="video/mp4", chunks=chunks)
    assert seen == [0]
    assert sum(map(len, response.chunks)) == size


def test_a_wsgi_server_answers_by_it():
    """Flask and Django give headers as mappings, too; WSGI itself as variables of its environ."""

    def application(environ, start_response):
        asked = {
            name[5:].replace("_", "-"): text
            for name, text in environ.items()
            if name.startswith("HTTP_")
        }
        response = VIEW.respond(environ["REQUEST_METHOD"], asked, source=MOVIE)
        start_response(f"{response.status} -", [*response.headers.items()])
        return response.chunks

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        part = httpx.get(url, headers={"Range": "bytes=5-104"}, timeout=60)
        assert (part.status_code, part.content) == (206, WHOLE["view"][5:105])
        again = httpx.get(url, headers={"If-None-Match": part.headers["ETag"]}, timeout=60)
        assert again.status_code == 304
        assert httpx.get(url, timeout=60).content == WHOLE["view"]
        server.shutdown()


def test_the_docs_line_of_starlette_serves_a_view():
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route
    from starlette.testclient import TestClient

    def film(request):
        r = VIEW.respond(request.method, request.headers, source=MOVIE)
        return StreamingResponse(r.chunks, r.status, r.headers)

    with TestClient(Starlette(routes=[Route("/", film)])) as client:
        whole = client.get("/")
        assert (whole.status_code, whole.content) == (200, WHOLE["view"])
        part = client.get("/", headers={"Range": "bytes=-7", "If-Range": whole.headers["etag"]})
        assert (part.status_code, part.content) == (206, WHOLE["view"][-7:])
        assert client.head("/").headers["content-length"] == str(VIEW.size)
