"""The index of a file: sent in two forms, answered in five, asked for moments."""

import json
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

import fragdex
from forged_indexes import forged_columns, forged_values
from fragdex.errors import FormatError
from fragdex.formats import fidx, wire
from fragdex.indexing.scan import Scan
from fragdex.service.indexing.child import true_time
from fragdex.service.indexing.isolated import IN_THREAD
from fragdex.service.isobmff import tracks
from fragdex.testing import movie
from service.isobmff.conftest import FILM, fresh_md5, index_json
from service.serving import API, serving

FILES = f"{API}/isobmff_files"
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
FIDX = "application/vnd.fragdex.index"


def send(client, file, content, **more):
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    path = f"{FILES}/{file['id']}/index/upload"
    return client.post(path, content=content, **more)


def in_pieces(content, size=1000):
    """A body without Content-Length, as published clients stream it."""
    return (content[start : start + size] for start in range(0, len(content), size))


def test_json_is_taken_as_it_streams_in(client, new_file):
    file = new_file()
    sent = json.dumps(index_json()).encode()
    path = f"{FILES}/{file['id']}/index/upload"
    headers = {"Content-Type": "application/json"}
    answer = client.post(path, content=in_pieces(sent), headers=headers)
    assert answer.status_code == 201
    assert answer.json()["id"] == file["id"]
    assert answer.json()["fragment_index_complete"] is True
    response = client.get(f"{FILES}/{file['id']}/index")
    assert response.headers["content-type"] == "application/json"
    assert response.content == sent
    assert client.get(f"{FILES}/md5/{file['md5']}").json()["fragment_index_complete"] is True


def test_unknown_keys_are_kept(client, new_file):
    file = new_file()
    sent = index_json()
    sent["made_by"] = {"name": "ä"}
    sent["1"]["colour"] = "green"
    sent["1"]["segments"][2]["mood"] = None
    assert send(client, file, sent).status_code == 201
    assert client.get(f"{FILES}/{file['id']}/index").json() == sent


FORGED_VALUES = (2**63 - 1, 2**62, -1, "\ud800", '"\n')
FORGED_NUMBERS = (2**63 - 1, -(2**63), 2**62 - 1, -1)


def forged():
    """Indexes with right checksums: another value or number in one place each, none twice."""
    data = fidx.write(fragdex.index(movie(fragments=2, samples=3), exact=True), samples=True)
    seen = {data}
    for name, sent in chain(forged_values(data), forged_columns(data)):
        value = name.rpartition("=")[2]
        chosen = FORGED_NUMBERS if " of " in name else FORGED_VALUES
        wanted = value in map(ascii, chosen) or "every row" in name
        if wanted and sent not in seen:
            seen.add(sent)
            yield name, sent


def refusal(sent):
    """Why the library refuses an index, in a few words; None where it takes it."""
    try:
        fidx.verify(sent)
        fidx.read(sent)
    except FormatError as error:
        return error.message, str(error.expected)
    return None


def test_forged_indexes_are_refused_and_no_route_fails_on_one(tmp_path):
    """Right checksums make an index whole, and not true: none may give an answer of 500.

    The service refuses what the library does: of each refusal, one index is sent.
    """
    refusals, stored = Counter(), 0
    with serving(tmp_path) as served:
        client = served.client
        body = {"md5": fresh_md5("forged"), "filename": "film.mp4"}
        file = client.post(FILES, json=body).json()
        path = f"{FILES}/{file['id']}"
        for name, sent in forged():
            refused = refusal(sent)
            if refused is not None:
                refusals[refused] += 1
                if refusals[refused] == 1:
                    assert send(client, file, sent).status_code == 422, name
                continue
            stored += 1
            assert send(client, file, sent).status_code in (201, 422), name
            for form in ("json", "fidx", "arrow", "sidx", "hls"):
                answer = client.get(f"{path}/index", params={"format": form})
                assert answer.status_code < 500, (name, form, answer.text)
            for asked in ({"time_ms": 0}, {"time_ms": 1e9}, {"time_ms": 1, "end_ms": 1e15}):
                answer = client.get(f"{path}/seek", params=asked)
                assert answer.status_code < 500, (name, asked, answer.text)
    assert refusals.total() > 200
    assert stored > 50


def test_a_scrub_track_is_taken_and_never_chosen_by_itself(client, new_file):
    file = new_file()
    sent = {"-1": index_json()["1"] | {"track": -1}} | index_json()
    assert send(client, file, sent).status_code == 201
    seek = f"{FILES}/{file['id']}/seek"
    assert client.get(seek, params={"time_ms": 0}).json()["track"] == 1
    assert client.get(seek, params={"time_ms": 0, "track": -1}).json()["track"] == -1
    tracks = client.get(f"{FILES}/{file['id']}").json()["tracks"]
    assert [track["track_id"] for track in tracks] == [-1, 1]


def test_our_binary_form_is_taken(client, new_file):
    file = new_file()
    sent = fidx.write(fragdex.index(FILM), samples=True)
    assert send(client, file, sent).status_code == 201
    answer = client.get(f"{FILES}/{file['id']}/index", headers={"Accept": FIDX})
    assert answer.content == sent
    assert answer.headers["content-type"] == FIDX
    assert client.get(f"{FILES}/{file['id']}/index").json() == index_json()


WRONG = {
    "no JSON": (lambda index: b"{nonsense", None),
    "no object": (lambda index: b"[]", None),
    "no track": (lambda index: b"{}", None),
    "cut off": (lambda index: json.dumps(index).encode()[:-20], None),
    "times out of order": (lambda index: swapped(index, "cts"), "#/1/segments/3/cts"),
    "decode times out of order": (lambda index: swapped(index, "dts"), "#/1/segments/3/dts"),
    "offsets out of order": (lambda index: swapped(index, "offset"), "#/1/segments/3/offset"),
    "text for a number": (lambda index: put(index, "size", "12"), "#/1/segments/2/size"),
    "a negative size": (lambda index: put(index, "size", -1), "#/1/segments/2/size"),
    "a number over 64 bits": (lambda index: put(index, "offset", 2**70), "#/1/segments/2/offset"),
    "a timescale of more than 32 bits": (lambda i: told(i, "timescale", 2**32), "#/1/timescale"),
    "a track id of more than 32 bits": (lambda i: i | {str(2**32): i["1"]}, f"#/{2**32}"),
    "a codec that is not a Unicode": (lambda i: told(i, "codec", "\ud800"), "#/1/codec"),
    "a number without end": (lambda i: b'{"more": 1e999, ' + json.dumps(i).encode()[1:], "#/more"),
    "another type": (lambda index: index | {"1": index["1"] | {"type": "text"}}, "#/1/type"),
    "a damaged binary": (lambda index: fidx.write(fragdex.index(FILM))[:-1] + b"\xff", None),
    "a binary cut off": (lambda index: fidx.write(fragdex.index(FILM))[:-100], None),
}


def told(index, name, value):
    return index | {"1": index["1"] | {name: value}}


def put(index, name, value):
    index["1"]["segments"][2][name] = value
    return index


def swapped(index, name):
    segments = index["1"]["segments"]
    segments[2][name], segments[3][name] = segments[3][name], segments[2][name]
    return index


@pytest.mark.parametrize(("spoil", "pointer"), WRONG.values(), ids=WRONG.keys())
def test_an_index_that_breaks_a_rule_is_refused_and_the_old_one_stays(
    client, new_file, spoil, pointer
):
    file = new_file()
    old = json.dumps(index_json()).encode()
    assert send(client, file, old).status_code == 201
    answer = send(client, file, spoil(index_json()))
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    if pointer:
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert client.get(f"{FILES}/{file['id']}/index").content == old


def test_an_index_over_the_limit_is_refused(tmp_path):
    with serving(tmp_path, max_index_bytes=10_000) as served:
        body = {"md5": "0" * 32, "filename": "a.mp4"}
        file = served.client.post(FILES, json=body).json()
        long = index_json()
        long["1"]["more"] = "x" * 20_000
        content = json.dumps(long).encode()
        answer = served.client.post(
            f"{FILES}/{file['id']}/index/upload", content=in_pieces(content)
        )
        assert answer.status_code == 413
        assert answer.json()["limit"] == 10_000
        assert send(served.client, file, index_json()).status_code == 201


def test_offsets_have_to_lie_inside_of_the_tracks_that_are_known(client, new_file):
    file = new_file()
    track = {"file_id": file["id"], "track_id": 1, "type": "video", "byte_size": len(FILM)}
    assert client.post(f"{API}/isobmff_tracks", json=track).status_code == 201
    assert send(client, file, index_json()).status_code == 201
    beyond = index_json()
    beyond["1"]["segments"][-1]["size"] += 1
    answer = send(client, file, beyond)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "#/1/segments/5/size"
    longer = movie(fragments=7, samples=50, fps=25)
    answer = send(client, file, fidx.write(fragdex.index(longer)))
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "#/tracks/0"
    assert send(client, file, fidx.write(fragdex.index(FILM))).status_code == 201


def test_the_binary_index_of_another_file_is_refused(client, new_file):
    index = fragdex.index(FILM, md5=True)
    assert index.file.md5
    answer = send(client, new_file(), fidx.write(index))
    assert answer.status_code == 422
    assert answer.json()["type"].endswith("#index-mismatch")


# ---- forms ----------------------------------------------------------------------------------


@pytest.fixture
def indexed(client, new_file):
    file = new_file()
    assert send(client, file, fidx.write(fragdex.index(FILM))).status_code == 201
    return f"{FILES}/{file['id']}"


ACCEPTED = {
    "json": "application/json",
    "fidx": FIDX,
    "arrow": "application/vnd.apache.arrow.stream",
    "sidx": "application/octet-stream",
    "hls": "application/vnd.apple.mpegurl",
}


@pytest.mark.parametrize("form", ACCEPTED)
def test_every_form_has_its_own_etag(client, indexed, form):
    by_query = client.get(f"{indexed}/index", params={"format": form})
    assert by_query.status_code == 200
    by_accept = client.get(f"{indexed}/index", headers={"Accept": ACCEPTED[form]})
    assert by_accept.content == by_query.content
    for answer in (by_query, by_accept):
        assert answer.headers["content-type"].startswith(ACCEPTED[form])
        assert "Accept" in answer.headers["vary"].split(", ")
    etag = by_query.headers["etag"]
    assert not etag.startswith("W/")
    again = client.get(f"{indexed}/index", params={"format": form}, headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    others = {
        client.get(f"{indexed}/index", params={"format": other}).headers["etag"]
        for other in ACCEPTED
    }
    assert len(others) == len(ACCEPTED)


def test_the_forms_tell_the_same(client, indexed):
    import io

    import pyarrow.ipc

    index = fragdex.index(FILM)
    answers = {
        form: client.get(f"{indexed}/index", params={"format": form}).content for form in ACCEPTED
    }
    assert answers["json"] == index.export("json")
    assert answers["fidx"] == index.export("fidx")
    assert answers["sidx"] == index.export("sidx", track=1)
    table = pyarrow.ipc.open_stream(io.BytesIO(answers["arrow"])).read_all()
    assert table["offset"].to_pylist() == index.track(1).fragments.offset.tolist()
    lines = answers["hls"].decode().splitlines()
    assert lines[0] == "#EXTM3U"
    file_id = indexed.rpartition("/")[2]
    assert lines.count(f"../../isobmff_tracks/{file_id}/1.mp4") == 6


def test_an_etag_changes_with_the_index(client, new_file):
    file = new_file()
    send(client, file, index_json())
    before = client.get(f"{FILES}/{file['id']}/index").headers["etag"]
    send(client, file, index_json(movie(fragments=2, samples=50, fps=25)))
    headers = {"If-None-Match": before}
    after = client.get(f"{FILES}/{file['id']}/index", headers=headers)
    assert after.status_code == 200
    assert after.headers["etag"] != before


def test_a_form_that_is_none_is_refused(client, indexed):
    assert client.get(f"{indexed}/index", params={"format": "nonsense"}).status_code == 422
    assert client.get(f"{indexed}/index", headers={"Accept": "image/png"}).status_code == 406
    assert client.get(f"{indexed}/index?format=hls&track=9").status_code == 404


# ---- seek -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "fidx"])
def test_seek_answers_as_the_library_does(client, new_file, form):
    film = movie(fragments=6, samples=50, fps=25, edit=3, reordered=True)
    index = fragdex.index(film)
    file = new_file()
    assert send(client, file, index.export(form)).status_code == 201
    track = json.loads(index.export("json"))["1"]
    for time_ms in (-5, 0, 1, 1999.9, 2000, 2000.5, 3999, 4000, 7777.7, 11999, 1e9):
        answer = client.get(f"{FILES}/{file['id']}/seek", params={"time_ms": time_ms})
        assert answer.status_code == 200
        place = answer.json()
        hit = index.track(1).seek(time_ms / 1000)
        assert (place["offset"], place["size"]) == (hit.offset, hit.size)
        assert place["fragment"] == hit.fragment
        assert place["time_ms"] == pytest.approx(hit.time.seconds * 1000, abs=1e-3)
        assert place["init"] == track["initSegment"]
        segment = track["segments"][hit.fragment]
        assert place["cts"] == segment["cts"]
        assert place["dts"] == segment["dts"]
        assert set(place) == {
            *("track", "fragment", "cts", "dts", "duration", "timescale", "time_ms"),
            *("offset", "size", "init"),
        }


def test_seek_finds_the_bytes_of_a_span(client, indexed):
    index = fragdex.index(FILM)
    span = {"time_ms": 2500, "end_ms": 6500}
    place = client.get(f"{indexed}/seek", params=span).json()
    ranges = [fragdex.ByteRange.of(one["offset"], one["size"]) for one in place["ranges"]]
    assert ranges == [*index.span(2.5, 6.5).media]
    assert place["time_ms"] == 2000
    for wrong in (
        {"time_ms": 2000, "end_ms": 1999},
        {"time_ms": "nan"},
        {"time_ms": "inf"},
        {"time_ms": 1e300},
        {"time_ms": "soon"},
        {},
    ):
        assert client.get(f"{indexed}/seek", params=wrong).status_code == 422
    for track in (2, -1):
        parameters = {"time_ms": 0, "track": track}
        assert client.get(f"{indexed}/seek", params=parameters).status_code == 404


@pytest.mark.parametrize("form", ["json", "fidx"])
@pytest.mark.parametrize("name", ["all-sync.mp4", "frag-all-sync.mp4"])
@pytest.mark.parametrize("large", [False, True])
def test_a_verified_seek_looks_at_the_pictures(client, new_file, monkeypatch, form, name, large):
    film = (FIXTURES / name).read_bytes()
    if large:
        film += (8 + IN_THREAD).to_bytes(4, "big") + b"free" + bytes(IN_THREAD)
        monkeypatch.setattr(tracks, "IN_THREAD", 64)
    index = fragdex.index(film, exact=True)
    file = new_file()
    assert send(client, file, index.export(form)).status_code == 201
    seek = f"{FILES}/{file['id']}/seek"
    asked = {"time_ms": 1700, "track": 1, "verified": True}
    missing = client.get(seek, params=asked)
    assert missing.status_code == 409
    assert missing.json()["type"].endswith("bytes-missing")
    track = {"file_id": file["id"], "track_id": 1, "type": "video", "byte_size": len(film)}
    assert client.post(f"{API}/isobmff_tracks", json=track).status_code == 201
    upload = f"{API}/isobmff_tracks/{file['id']}/1/upload"
    assert client.post(upload, content=film).status_code == 201
    hit = index.track(1).seek(1.7, verified=True, source=film)
    parsed = []
    with monkeypatch.context() as patch:
        feed = Scan.feed
        patch.setattr(Scan, "feed", lambda self, *data: parsed.append(1) or feed(self, *data))
        patch.setattr(tracks, "true_time", lambda *of: parsed.append(1) or true_time(*of))
        place = client.get(seek, params=asked).json()
    if large:  # one small read of the pictures is tried where their places are known
        assert len(parsed) == (form == "fidx")
    else:
        assert parsed
    if form == "json":
        # it knows segments, and answers with the one that holds the picture
        assert place["offset"] <= hit.offset < hit.range.stop <= place["offset"] + place["size"]
        assert place["time_ms"] <= 1440
        return
    assert place["time_ms"] == 1440
    assert (place["offset"], place["size"]) == (hit.offset, hit.size)
    span = client.get(seek, params=asked | {"end_ms": 1900}).json()
    ranges = [fragdex.ByteRange.of(one["offset"], one["size"]) for one in span["ranges"]]
    assert ranges == [*index.span("1.44", "1.9", tracks=[1]).media]
    plain = client.get(seek, params=asked | {"verified": False}).json()
    assert plain["time_ms"] == 1680


def test_two_tracks_are_told_apart(client, new_file):
    film = movie(fragments=4, samples=25, fps=25, tracks=2)
    file = new_file()
    index = fragdex.index(film)
    assert send(client, file, index.export("fidx")).status_code == 201
    for track in index.tracks:
        place = client.get(
            f"{FILES}/{file['id']}/seek", params={"time_ms": 1500, "track": track.id}
        ).json()
        assert place["offset"] == track.seek(1.5).offset
        assert place["track"] == track.id
    assert [*wire.read(client.get(f"{FILES}/{file['id']}/index").content).tracks]
