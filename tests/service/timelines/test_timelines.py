"""Recordings: files one behind the other, streamed as one."""

import io
import uuid

import av
import pytest
from PIL import Image

import fragdex
from fragdex.service.streaming import child
from fragdex.testing import check_hls, movie
from service.console import films
from service.serving import API, serving
from service.streaming.test_streaming import numbers
from service.working import uploaded

PLACE = f"{API}/timelines"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("timelines")) as served:
        yield served


def film(served, path, pictures, **more):
    """The id of a film that is registered with its bytes."""
    films.film(path, pictures, **more)
    record = uploaded(served.client, path.read_bytes(), path.name)
    new = {"md5": record["md5"], "filename": path.name}
    return served.client.post(f"{API}/isobmff_files", json=new).json()["id"]


@pytest.fixture(scope="module")
def two(served, tmp_path_factory):
    """Two films of other lengths, with sound."""
    folder = tmp_path_factory.mktemp("films")
    return [film(served, folder / f"{n}.mp4", n, sound=True) for n in (50, 75)]


def made(served, files, **more):
    answer = served.client.post(PLACE, json={"files": files, **more})
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"{PLACE}/{answer.json()['id']}"
    return answer.json()


def test_two_files_play_as_one(served, two):
    record = made(served, two, name="the whole day")
    assert (record["files"], record["missing"], record["gaps"]) == (two, [], "close")
    place = f"{PLACE}/{record['id']}"

    def read(name):
        answer = served.client.get(f"{place}/hls/{name}")
        assert answer.status_code == 200, answer.text
        return answer.content

    assert check_hls(read("master.m3u8"), read) == []
    token = served.client.post(f"{API}/url-token", json={"url": place}).json()["token"]
    with av.open(f"{served.url}{place}/hls/master.m3u8?token={token}") as played:
        assert sum(1 for one in played.demux(video=0) if one.size) == 125
    whole = served.client.get(f"{place}/fragmented.mp4").content
    assert [n for _, n in numbers(whole)] == [*range(50), *range(75)]
    clip = served.client.get(f"{place}/clip.mp4?start_ms=1800&end_ms=2200").content
    shown = [n for _, n in numbers(clip)]
    assert shown[:10] == [45, 46, 47, 48, 49, 0, 1, 2, 3, 4]
    assert served.client.get(f"{place}/dash/manifest.mpd").status_code == 200
    still = served.client.get(f"{place}/thumbnail.png?time_ms=3000")
    assert still.status_code == 200, still.text
    pixels = Image.open(io.BytesIO(still.content)).convert("L").load()
    # the second film's second 1
    assert sum(int(pixels[16 + 32 * n, 30] > 127) << (9 - n) for n in range(10)) == 25
    peaks = served.client.get(f"{place}/peaks.json?samples_per_pixel=4800").json()
    assert peaks["length"] >= 50


def test_a_timeline_is_listed_and_deleted_and_its_files_stay(served, two):
    ids = [made(served, two)["id"] for _ in range(3)]
    page = served.client.get(f"{PLACE}?limit=2").json()
    assert [one["id"] for one in page["timelines"]] == ids[:0:-1]
    following = served.client.get(PLACE, params={"cursor": page["next_cursor"]}).json()
    assert following["timelines"][0]["id"] == ids[0]
    assert served.stranger.get(PLACE).json()["timelines"] == []
    assert served.stranger.get(f"{PLACE}/{ids[0]}").status_code == 404
    for one in ids:
        assert served.client.delete(f"{PLACE}/{one}").status_code == 204
    assert served.client.get(f"{PLACE}/{ids[0]}/hls/master.m3u8").status_code == 404
    assert served.client.get(f"{API}/isobmff_files/{two[0]}").status_code == 200


def test_a_member_that_is_deleted_is_named(served, two, tmp_path):
    gone = film(served, tmp_path / "gone.mp4", 30, sound=True)
    place = f"{PLACE}/{made(served, [two[0], gone])['id']}"
    assert served.client.get(f"{place}/hls/master.m3u8").status_code == 200
    served.client.delete(f"{API}/isobmff_files/{gone}")
    assert served.client.get(place).json()["missing"] == [gone]
    for below in ("hls/master.m3u8", "clip.mp4", "thumbnail.jpg"):
        answer = served.client.get(f"{place}/{below}")
        assert (answer.status_code, answer.json()["missing"]) == (409, [gone])


def test_files_that_do_not_go_together_say_why(served, two, tmp_path):
    silent = film(served, tmp_path / "sound.mp4", 30, picture=False, sound=True)
    place = f"{PLACE}/{made(served, [two[0], silent])['id']}"
    answer = served.client.get(f"{place}/hls/master.m3u8")
    assert answer.status_code == 422
    assert "has no video" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"files": []}, "#/files"),
        ({"files": ["nonsense"]}, "#/files/0"),
        ({"files": [str(uuid.uuid4())]}, "#/files/0"),
        ({"files": ["x"] * 101}, "#/files"),
        ({"files": ["x"], "gaps": "odd"}, "#/gaps"),
    ],
)
def test_what_is_no_timeline(served, body, pointer):
    answer = served.client.post(PLACE, json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_files_of_another_tenant_are_not_joined(served, two):
    answer = served.stranger.post(PLACE, json={"files": two})
    assert answer.status_code == 422


def test_members_are_indexed_where_they_lie(tmp_path, monkeypatch):
    """What the child does, in this process: the indexes are those of the library."""
    monkeypatch.chdir(tmp_path)
    films = [movie(fragments=3), movie(fragments=5)]
    whole = fragdex.join([fragdex.index(one) for one in films], source=films)
    with fragdex.open_source(b"".join(films)) as source:
        answer = child.indexes(source, sizes=[len(one) for one in films], starts=None)
    wanted = [*films, whole.read(source=films)]
    for name, data in zip(answer["files"], wanted, strict=True):
        index, known = fragdex.open_index(name), fragdex.index(data, exact=True)
        for ours, theirs in zip(index.tracks, known.tracks, strict=True):
            assert ours.samples.offset.tolist() == theirs.samples.offset.tolist()
            assert ours.samples.size.tolist() == theirs.samples.size.tolist()
