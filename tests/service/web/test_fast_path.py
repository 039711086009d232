"""The fast path of a route answers what the route answers, and leaves to it what is unusual."""

import hashlib
import re
import time
from pathlib import Path

import pytest
from starlette.routing import Match

import fragdex
from fragdex.service.app import ROUTERS
from fragdex.service.isobmff import tracks
from service.serving import API, serving

FILM = (Path(__file__).parents[3] / "fixtures" / "frag-default-base.mp4").read_bytes()
MD5 = hashlib.md5(FILM).hexdigest()

FAST = {
    f"{API}/isobmff_files/{{id}}",
    f"{API}/isobmff_files/{{id}}/seek",
    f"{API}/isobmff_files/md5/{{md5}}",
    f"{API}/isobmff_tracks/{{file_id}}/{{track_id}}",
    f"{API}/isobmff_files/{{id}}/hls/{{playlist}}",
    f"{API}/isobmff_files/{{id}}/hls/{{rendition}}/{{part}}",
    f"{API}/isobmff_files/{{id}}/dash/manifest.mpd",
}
"""The routes that are asked below; other families have some by the same words."""

TEXTS = ("hls/master.m3u8", "hls/v1.m3u8", "dash/manifest.mpd")
CONDITIONS = (
    {},
    {"Range": "bytes=1-9"},
    {"Range": "bytes=99999999-"},
    {"Range": "bytes=1-9", "If-Range": '"other"'},
    {"If-None-Match": "*"},
    {"If-None-Match": '"other"'},
    {"If-Match": '"other"'},
)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A data folder with one film, and the id of its file."""
    folder = tmp_path_factory.mktemp("fast-path")
    with serving(folder) as served:
        client = served.client
        new = {"md5": MD5, "filename": "film.mp4"}
        file_id = client.post(f"{API}/isobmff_files", json=new).json()["id"]
        index = folder / "film.fidx"
        fragdex.index(FILM).save(index)
        place = f"{API}/isobmff_files/{file_id}/index/upload"
        assert client.post(place, content=index.read_bytes()).status_code == 201
        track = {"file_id": file_id, "track_id": 1, "type": "video", "byte_size": len(FILM)}
        assert client.post(f"{API}/isobmff_tracks", json=track).status_code == 201
        place = f"{API}/isobmff_tracks/{file_id}/1"
        assert client.post(f"{place}/upload", content=FILM).status_code == 201
        open_track = track | {"track_id": 2, "byte_size": 7}
        assert client.post(f"{API}/isobmff_tracks", json=open_track).status_code == 201
    return folder, file_id


def requests(file_id):
    files, tracks = f"{API}/isobmff_files/{file_id}", f"{API}/isobmff_tracks/{file_id}"
    other = "01a1fccb-da24-74f1-acb1-71a165f56055"
    etag = f'"{MD5}"'
    return [
        (files, {}),
        (f"{files}?verified=1", {}),
        (f"{files}/seek?time_ms=0", {}),
        (f"{files}/seek?time_ms=1500.25&track=1", {}),
        (f"{files}/seek?track=1&time_ms=99999999", {}),
        (f"{files}/seek?track=9&time_ms=1", {}),
        (f"{files}/seek?track=1&time_ms=1&track=2", {}),
        (f"{files}/seek?track=01&time_ms=%31", {}),
        (f"{files}/seek?time_ms=-3", {}),
        (f"{files}/seek?time_ms=0&end_ms=2000", {}),
        (f"{files}/seek?time_ms=1&time_ms=2", {}),
        (f"{files}/seek?time_ms=nan", {}),
        (f"{files}/seek?track=x&time_ms=1", {}),
        (f"{files}/seek?track=99999999999999999999&time_ms=1", {}),
        (f"{files}/seek", {}),
        (f"{API}/isobmff_files/{other}/seek?time_ms=0", {}),
        (f"{API}/isobmff_files/md5/{MD5}", {}),
        (f"{API}/isobmff_files/md5/{MD5.upper()}", {}),
        (f"{API}/isobmff_files/md5/{MD5[:-1]}0", {}),
        (f"{API}/isobmff_files/md5/{'-' * 36}", {}),
        (f"{tracks}/1", {}),
        (f"{tracks}/1", {"Range": "bytes=10-99"}),
        (f"{tracks}/1", {"Range": "bytes=0-1,5-8"}),
        (f"{tracks}/1", {"Range": "bytes=99999999-"}),
        (f"{tracks}/1", {"Range": "bytes=1-4", "If-Range": '"no"'}),
        (f"{tracks}/1", {"If-None-Match": etag}),
        (f"{tracks}/2", {}),
        (f"{tracks}/9", {}),
        (f"{tracks}/01", {}),
        (f"{tracks}/9999999999", {}),
        (f"{files}/hls/v1/1024.m4s", {}),
        (f"{files}/hls/v1/1024.m4s?CMCD=bl%3D1", {}),
        (f"{files}/hls/v1/1024.m4s?start=1", {}),
        (f"{files}/hls/v1/1024.m4s", {"Range": "bytes=10-99"}),
        (f"{files}/hls/v1/1024.m4s", {"If-None-Match": "*"}),
        (f"{files}/hls/v1/1024.m4s", {"If-Match": '"other"'}),
        (f"{files}/hls/v1/1.m4s", {}),
        (f"{files}/hls/v1/init.mp4", {}),
        (f"{API}/isobmff_files/{other}/hls/v1/1024.m4s", {}),
        *((f"{files}/{text}", headers) for text in TEXTS for headers in CONDITIONS),
        (f"{files}/hls/master.m3u8?CMCD=bl%3D1", {}),
        (f"{files}/hls/master.m3u8?start=1", {}),
        (f"{files}/hls/manifest.mpd", {}),
        (f"{files}/hls/v9.m3u8", {}),
        (f"{API}/isobmff_files/{other}/hls/master.m3u8", {}),
    ]


def answers_of(served, file_id, who):
    answers = []
    for path, headers in requests(file_id):
        # the first request of a key is never short, nor is the first look into an index
        for _ in range(2):
            answer = getattr(served, who).get(path, headers={"Origin": "http://a.test"} | headers)
        own = ("date", "x-request-id")
        kept = {name: value for name, value in answer.headers.items() if name not in own}
        body = answer.content
        boundary = kept.get("content-type", "").partition("boundary=")[2]
        if boundary:
            body = body.replace(boundary.encode(), b"-")
            kept["content-type"] = kept["content-type"].replace(boundary, "-")
        answers.append((path, answer.status_code, kept, body))
    return answers


def watched(served):
    """Have the routes of a service told that answer by their fast path."""
    taken = set()

    def watch(route):
        answer, query = route.fast_path

        def counted(*asked):
            response = answer(*asked)
            taken.add(route.path)
            return response

        route.fast_path = counted, query

    for route in routes_of(served):
        watch(route)
    return taken


def without_fast_path(served):
    for route in routes_of(served):
        route.fast_path = None


def routes_of(served):
    return [route for route in served.app.routes if getattr(route, "fast_path", None)]


@pytest.fixture(autouse=True)
def _as_they_were():
    """Applications of one process share their routes."""
    routes = [route for router in ROUTERS for route in router.routes]
    before = [(route, route.fast_path) for route in routes if hasattr(route, "fast_path")]
    yield
    for route, fast_path in before:
        route.fast_path = fast_path


@pytest.mark.parametrize("who", ["client", "stranger", "anyone"])
def test_fast_and_long_answers_are_equal(file, who):
    folder, file_id = file
    with serving(folder) as served:
        taken = watched(served)
        fast = answers_of(served, file_id, who)
        metrics = served.anyone.get("/metrics").text
        without_fast_path(served)
        long = answers_of(served, file_id, who)
    assert fast == long
    assert taken == (FAST if who == "client" else set())
    for route in taken:
        assert f'route="{route}"' in metrics


@pytest.mark.parametrize("origins", ["*", "http://a.test https://c.test", "https://c.test", ""])
@pytest.mark.parametrize("origin", [None, "http://a.test", "null"])
def test_pages_of_other_origins_are_told_the_same(file, origins, origin):
    folder, _ = file
    path, headers = f"{API}/isobmff_files/md5/{MD5}", {"Origin": origin} if origin else {}
    with serving(folder, cors_origins=origins) as served:
        fast = served.client.get(path, headers=headers).headers
        without_fast_path(served)
        long = served.client.get(path, headers=headers).headers
    for one in (fast, long):
        del one["date"], one["x-request-id"]
    assert fast == long


def test_the_rate_of_a_key_holds_for_each_request_once(file):
    folder, file_id = file
    seek = f"{API}/isobmff_files/{file_id}/seek?time_ms=0"
    with serving(folder, rate_limit=0.001, rate_burst=4) as served:
        taken = watched(served)
        # the index is not open yet: the fast path gives up, and the long way is no other request
        asked = [seek, f"{seek}&end_ms=1", seek, f"{API}/isobmff_files/md5/{MD5}", seek]
        answers = [served.client.get(path) for path in asked]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 429]
    assert int(answers[-1].headers["Retry-After"]) > 1
    assert len(taken) == 2


def test_what_would_have_to_wait_takes_the_long_way(file):
    folder, file_id = file
    with serving(folder) as served:
        nonblocking = served.context.nonblocking()
        with pytest.raises(BlockingIOError), nonblocking.database.read():
            pass
        with pytest.raises(BlockingIOError), nonblocking.database.write():
            pass
        with pytest.raises(BlockingIOError):
            tracks.seek(nonblocking, served.tenant, file_id, None, 0)
        tracks.seek(served.context, served.tenant, file_id, None, 0)
        assert tracks.seek(nonblocking, served.tenant, file_id, None, 0).track == 1


def test_a_revoked_key_opens_nothing_for_long(file, monkeypatch):
    from fragdex.service.records import keys
    from fragdex.service.web import auth

    folder, _ = file
    monkeypatch.setattr(auth, "REMEMBER_SECONDS", 0.2)
    with serving(folder) as served:
        path = f"{API}/isobmff_files/md5/{MD5}"
        key = keys.create_key(served.context.database, "passing")
        with type(served.client)(
            base_url=served.url, headers={"Authorization": f"Bearer {key}"}, trust_env=False
        ) as client:
            assert client.get(path).status_code == 404
            keys.revoke_key(served.context.database, keys.find_key(served.context.database, key).id)
            time.sleep(0.3)
            assert client.get(path).status_code == 401


def test_bytes_that_are_gone_are_told_by_the_route(file):
    folder, file_id = file
    with serving(folder) as served:
        path = f"{API}/isobmff_tracks/{file_id}/1"
        assert served.client.get(path).status_code == 200
        files = (candidate for candidate in (folder / "store").rglob("*") if candidate.is_file())
        blob = next(candidate for candidate in files if candidate.read_bytes() == FILM)
        moved = blob.rename(blob.with_name("away"))
        try:
            short = served.client.get(path)
            assert short.status_code >= 400
            assert short.headers["content-type"] == "application/problem+json"
        finally:
            moved.rename(blob)


def test_of_two_routes_that_match_the_one_declared_first_answers(file):
    folder, _ = file
    with serving(folder) as served:
        asked = served.app.routes
    for router in ROUTERS:
        assert [route for route in asked if route in router.routes] == router.routes
    table, *declared = asked
    below = [route for route in declared if getattr(route, "path", "").startswith(API)]
    for route in below:
        for method in ("GET", "HEAD", "DELETE", "POST"):
            path = re.sub(r"\{\w+\}", "1", route.path)
            scope = {"type": "http", "method": method, "path": path, "root_path": ""}
            first = next((one for one in below if one.matches(scope)[0] is Match.FULL), None)
            assert table.matches(scope)[1].get("route") is first, (method, path)
