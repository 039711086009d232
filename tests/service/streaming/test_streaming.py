"""Files as players want them: HLS, DASH, clips and pictures of a stored film."""

import io

import av
import obstore
import pytest
import sqlalchemy as sa
from PIL import Image

import fragdex
from fragdex.errors import StoreFull
from fragdex.service.records import tables
from fragdex.service.web.routing import OTHER_NAMES
from fragdex.testing import check_bmff, check_dash, check_hls
from service.console import films
from service.serving import API, await_housekeeping, serving
from service.working import announced, events_of, fixture_bytes, uploaded


@pytest.fixture(scope="module")
def film(tmp_path_factory, working):
    """A processed film of two languages: its path, its place, and a token of all below it."""
    path = tmp_path_factory.mktemp("films") / "film.mp4"
    films.film(path, 150, sound=("eng", "deu"))
    record = uploaded(working.client, path.read_bytes(), "film.mp4", "files", type="video")
    assert events_of(working.client, f"/files/{record['id']}/progress")[-1][0] == "complete"
    place = f"{API}/files/{record['id']}"
    token = working.client.post(f"{API}/url-token", json={"url": place}).json()["token"]
    return path, place, token


def test_ffmpeg_plays_hls_by_a_token_in_the_url(working, film):
    """It sends no header; each packet that it reads is one of the film."""
    path, place, token = film
    seen = {}
    with av.open(f"{working.url}{place}/hls/master.m3u8?token={token}") as played:
        for packet in played.demux():
            if packet.size:
                key = packet.stream.type, packet.stream.metadata.get("language")
                seen.setdefault(key, []).append(bytes(packet))
    with av.open(str(path)) as source:
        packets = [(one.stream.index, bytes(one)) for one in source.demux() if one.size]
    sent = [[data for stream, data in packets if stream == nth] for nth in range(3)]
    assert seen[("audio", "en")] == sent[1]
    assert seen[("audio", "de")] == sent[2]
    video = next(track_packets for (kind, _), track_packets in seen.items() if kind == "video")
    assert len(video) == len(sent[0])


def numbers(data):
    """What the pictures of a film say, in the order in which they are shown, with their times."""
    with av.open(io.BytesIO(data)) as played:
        stream = played.streams.video[0]
        for frame in played.decode(stream):
            if frame.pts >= 0:
                luma = frame.to_ndarray(format="gray")
                bits = [luma[30, 16 + 32 * n] > 127 for n in range(films.BLOCKS)]
                yield frame.time, sum(int(bit) << (9 - n) for n, bit in enumerate(bits))


@pytest.mark.parametrize("check", [check_hls, check_dash])
def test_playlists_and_manifest_hold_the_rules(working, film, check):
    _, place, token = film
    base, name = ("hls", "master.m3u8") if check is check_hls else ("dash", "manifest.mpd")

    def read(uri):
        answer = working.anyone.get(f"{place}/{base}/{uri}")
        assert answer.status_code == 200, (uri, answer.text)
        return answer.content

    # all addresses have the token, so that players need no header
    assert check(read(f"{name}?token={token}"), read) == []


def test_a_segment_answers_as_stored_bytes_do(working, film):
    _, place, _ = film
    at = f"{place}/hls/v1/init.mp4"
    whole = working.client.get(at)
    assert whole.headers["content-type"].startswith("video/mp4; codecs=")
    assert whole.headers["accept-ranges"] == "bytes"
    tag = whole.headers["etag"]
    assert not tag.startswith("W/")
    part = working.client.get(at, headers={"Range": "bytes=4-7", "If-Range": tag})
    assert (part.status_code, part.content) == (206, b"ftyp")
    stale = working.client.get(at, headers={"Range": "bytes=4-7", "If-Range": '"other"'})
    assert (stale.status_code, stale.content) == (200, whole.content)
    assert working.client.get(at, headers={"If-None-Match": tag}).status_code == 304
    head = working.client.head(at)
    assert (head.content, head.headers["content-length"]) == (b"", str(len(whole.content)))
    behind = working.client.get(at, headers={"Range": "bytes=999999-"})
    assert behind.status_code == 416
    assert behind.headers["content-range"] == f"bytes */{len(whole.content)}"
    assert behind.json()["size"] == len(whole.content)
    changed = working.client.get(at, headers={"If-Match": '"other"'})
    assert (changed.status_code, changed.headers["etag"]) == (412, tag)
    assert changed.json()["type"].endswith("#precondition-failed")
    assert working.client.get(at, headers={"If-Match": tag}).content == whole.content


def test_the_same_from_the_other_family(working, film):
    _, place, _ = film
    other = place.replace("/files/", "/isobmff_files/")
    for below in ("hls/master.m3u8", "dash/manifest.mpd", "hls/a1/init.mp4", "fragmented.mp4"):
        assert working.client.get(f"{place}/{below}").content == (
            working.client.get(f"{other}/{below}").content
        )


def test_a_clip_is_that_of_extract(working, film):
    """Tracks are files of their own in the store; the clip is as if they were one."""
    path, place, _ = film
    answer = working.client.get(f"{place}/clip.mp4?start_ms=1400&end_ms=2200")
    assert answer.status_code == 200
    assert check_bmff(answer.content) == []
    source = path.read_bytes()
    expected = fragdex.clip(fragdex.index(source), source=source, start=1.4, stop=2.2)
    expected = expected.read(source=source)
    # 25 pictures a second, of which each says its number
    shown = list(numbers(answer.content))
    assert [number for _, number in shown] == list(range(35, 55))
    assert shown == list(numbers(expected))
    mine, theirs = fragdex.index(answer.content), fragdex.index(expected)
    assert [track.kind for track in mine.tracks] == ["video", "audio", "audio"]
    assert mine.duration == theirs.duration == 0.8
    for one, other in zip(mine.tracks, theirs.tracks, strict=True):
        assert len(one.samples) == len(other.samples)
        assert (one.start, one.stop) == (other.start, other.stop)


def test_a_clip_of_some_tracks_and_one_in_fragments(working, film):
    _, place, _ = film
    only = working.client.get(f"{place}/clip.mp4?start_ms=1400&end_ms=2200&tracks=1,3").content
    assert [track.kind for track in fragdex.index(only).tracks] == ["video", "audio"]
    missing = working.client.get(f"{place}/clip.mp4?start_ms=1400&end_ms=2200&tracks=9")
    assert (missing.status_code, "no track 9" in missing.text) == (404, True)
    assert working.client.get(f"{place}/clip.mp4?tracks=a").status_code == 422
    loose = working.client.get(f"{place}/clip.mp4?start_ms=1400&end_ms=2200&exact=false").content
    assert b"moof" in loose
    assert [number for _, number in numbers(loose)][:20] == list(range(35, 55))


def test_one_file_of_all_tracks(working, film):
    path, place, _ = film
    answer = working.client.get(f"{place}/fragmented.mp4")
    assert [number for _, number in numbers(answer.content)] == list(range(150))
    before = working.client.get(f"{place}/faststart.mp4").content
    assert before.index(b"moov") < before.index(b"mdat")
    assert len(before) == path.stat().st_size


def test_a_file_uploaded_in_fragments_is_also_a_progressive_one(working):
    data = fixture_bytes("frag-cmaf.mp4", salt="progressive")
    record = uploaded(working.client, data, "film.mp4", "files", type="video")
    assert events_of(working.client, f"/files/{record['id']}/progress")[-1][0] == "complete"
    one = working.client.get(f"{API}/files/{record['id']}/faststart.mp4").content
    codes = [box.type for box in fragdex.boxes.parse(one)]
    assert "moof" not in codes
    assert codes.index("moov") < codes.index("mdat")
    was, now = fragdex.index(data, exact=True), fragdex.index(one)
    assert [len(track.samples) for track in now.tracks] == [len(t.samples) for t in was.tracks]


def test_a_thumbnail_is_the_key_frame_or_the_very_picture(working, film):
    _, place, _ = film

    def shown(query):
        answer = working.client.get(f"{place}/thumbnail.png?{query}")
        assert answer.status_code == 200, answer.text
        pixels = Image.open(io.BytesIO(answer.content)).convert("L").load()
        return sum(int(pixels[16 + 32 * n, 30] > 127) << (9 - n) for n in range(films.BLOCKS))

    assert shown("time_ms=1900") == 50  # a key picture a second
    assert shown("time_ms=1900&exact=true") == 47
    small = working.client.get(f"{place}/thumbnail.jpg?time_ms=1600&w=64")
    assert small.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(small.content)).size == (64, 36)
    # the same key frame: found, not made again
    again = working.client.get(f"{place}/thumbnail.jpg?time_ms=2100&w=64")
    assert again.headers["etag"] == small.headers["etag"]
    assert again.headers["repr-digest"] == small.headers["repr-digest"]
    assert working.client.get(f"{place}/thumbnail.gif").status_code == 404
    assert working.client.get(f"{place}/thumbnail.jpg?time_ms=nan").status_code == 422


EARLIER = [
    ("clip.mp4", {"start": "1.4", "end": "2.2"}, {"start_ms": "1400", "end_ms": "2200"}),
    ("clip.mp4", {"start": "0.0405", "end": "1e0"}, {"start_ms": "40.5", "end_ms": "1000"}),
    ("thumbnail.png", {"t": "1.9", "exact": "true"}, {"time_ms": "1900", "exact": "true"}),
    ("storyboard.vtt", {"every": "2", "w": "64"}, {"every_ms": "2000", "w": "64"}),
    ("storyboard/0.jpg", {"every": "2", "w": "64"}, {"every_ms": "2000", "w": "64"}),
]


def test_every_earlier_name_is_among_them():
    assert {name for _, query, _ in EARLIER for name in query} >= set(OTHER_NAMES)


@pytest.mark.parametrize(("below", "earlier", "now"), EARLIER)
def test_earlier_names_are_taken_in_their_unit(working, film, below, earlier, now):
    """They mean what the names of the document mean; both at once, and wrong values, are 422."""
    _, place, _ = film

    def get(query):
        return working.client.get(f"{place}/{below}", params=query)

    assert get(now).status_code == 200
    assert get(earlier).content == get(now).content
    for name in earlier.keys() & OTHER_NAMES:
        new = OTHER_NAMES[name][0]
        both = get({**now, name: earlier[name]})
        assert (both.status_code, both.json()["errors"][0]["parameter"]) == (422, new)
        for wrong in ("", "x", "nan", "inf", "-1", "1e999999"):
            assert get({**earlier, name: wrong}).status_code == 422, wrong
    # where nothing has such a time, its earlier name is unknown too
    assert working.client.get(f"{place}?start=1").status_code == 422


def test_a_storyboard_names_its_sheets(working, film):
    _, place, token = film
    asked = f"every_ms=1000&w=64&columns=2&rows=2&token={token}"
    board = working.anyone.get(f"{place}/storyboard.vtt?{asked}")
    assert board.headers["content-type"].startswith("text/vtt")
    parts = [line for line in board.text.splitlines() if "#xywh" in line]
    assert len(parts) == 6
    assert parts[1].endswith("#xywh=64,0,64,36")
    sheet = working.anyone.get(f"{place}/{parts[-1].partition('#')[0]}")
    assert sheet.status_code == 200
    assert Image.open(io.BytesIO(sheet.content)).size == (128, 72)
    assert working.client.get(f"{place}/storyboard/9.jpg?every_ms=1000&w=64").status_code == 404
    assert working.client.get(f"{place}/storyboard/vtt.jpg").status_code == 404


def test_peaks_and_loudness_of_the_sound(working, film):
    _, place, _ = film
    peaks = working.client.get(f"{place}/peaks.json?samples_per_pixel=4800").json()
    assert (peaks["version"], peaks["channels"], peaks["samples_per_pixel"]) == (2, 1, 4800)
    assert peaks["length"] == len(peaks["data"]) / 2 >= 59
    assert max(peaks["data"]) > 20
    binary = working.client.get(f"{place}/peaks.dat?samples_per_pixel=4800").content
    assert list(binary[24:]) == [value % 256 for value in peaks["data"]]
    loud = working.client.get(f"{place}/loudness").json()
    assert -40 < loud["integrated"] < 0
    assert working.client.get(f"{place}/peaks.json?bits=12").status_code == 422


def test_a_file_as_it_came_is_served_before_anything_is_made_of_it(tmp_path):
    """No job runs: the original alone is here."""
    path = tmp_path / "film.mp4"
    films.film(path, 60, sound=True)
    with serving(tmp_path / "data") as served:
        record = uploaded(served.client, path.read_bytes(), "film.mp4", "files", type="video")
        place = f"{API}/files/{record['id']}"
        assert served.client.get(f"{place}/hls/master.m3u8").text.count("TYPE=AUDIO") == 1
        clip = served.client.get(f"{place}/clip.mp4?start_ms=1000&end_ms=2000").content
        assert [number for _, number in numbers(clip)] == list(range(25, 50))
        missing = announced(served.client, b"not here", "a.mp4", "files", type="video")
        answer = served.client.get(f"{API}/files/{missing['id']}/hls/master.m3u8")
        assert (answer.status_code, answer.json()["state"]) == (404, "created")
        # what was made goes with the bytes
        assert served.client.get(f"{place}/thumbnail.jpg?w=32").status_code == 200
        assert rows_of(served) == 2
        assert served.client.delete(place).status_code == 204
        assert rows_of(served) == 0
        assert served.client.get(f"{place}/clip.mp4").status_code == 404
        with served.context.database.read() as connection:
            assert connection.scalars(sa.select(tables.blobs.c.sha256)).all() == []


def test_players_of_a_file_that_is_not_made_yet_are_answered_without_a_thread(tmp_path):
    """They ask for segment after segment: each by one look-up, as of a file that is made."""
    path = tmp_path / "film.mp4"
    films.film(path, 200)
    asked = []

    def note(connection, cursor, statement, *_):
        # not the key, which is looked at again after some seconds
        if tables.keys.name not in statement:
            asked.append(statement)

    with serving(tmp_path / "data") as served:
        record = uploaded(served.client, path.read_bytes(), "film.mp4", "files", type="video")
        place = f"{API}/files/{record['id']}/hls"
        playlist = served.client.get(f"{place}/v1.m3u8").text
        names = ["v1.m3u8", *(line for line in playlist.splitlines() if line.endswith(".m4s"))]
        whole = [served.client.get(f"{place}/{name}", headers=WHOLE).content for name in names]
        await_housekeeping(served.url)
        sa.event.listen(sa.engine.Engine, "before_cursor_execute", note)
        try:
            again = [served.client.get(f"{place}/{name}").content for name in names]
        finally:
            sa.event.remove(sa.engine.Engine, "before_cursor_execute", note)
    assert again == whole
    assert asked == []


# a condition, which a thread looks at
WHOLE = {"If-None-Match": '"another"'}


def rows_of(served):
    """How many derived files there are."""
    with served.context.database.read() as connection:
        return len(connection.scalars(sa.select(tables.derived_files.c.id)).all())


@pytest.mark.parametrize("name", ["hello.txt", "noise.mp4"])
def test_what_is_no_film_is_refused(tmp_path, name):
    data = b"hello" if name == "hello.txt" else bytes(range(256)) * 2000
    with serving(tmp_path) as served:
        place = f"{API}/files/{uploaded(served.client, data, name, 'files', type='video')['id']}"
        for below in ("hls/master.m3u8", "clip.mp4", "thumbnail.jpg", "peaks.dat", "faststart.mp4"):
            answer = served.client.get(f"{place}/{below}")
            assert (answer.status_code, answer.json()["status"]) == (422, 422), answer.text


def test_a_segment_is_one_read_of_an_object_store(s3_url, tmp_path, monkeypatch):
    path = tmp_path / "film.mp4"
    films.film(path, 200, sound=True)
    with serving(tmp_path / "data", store_url=s3_url) as served:
        record = uploaded(served.client, path.read_bytes(), "film.mp4", "files", type="video")
        place = f"{API}/files/{record['id']}"
        playlist = served.client.get(f"{place}/hls/v1.m3u8").text
        names = [line for line in playlist.splitlines() if line.endswith(".m4s")]
        asked = []
        for name in ("get", "get_range", "get_ranges", "head"):
            watched(monkeypatch, asked, name)
        segment = served.client.get(f"{place}/hls/{names[1]}")
        assert segment.status_code == 200
        assert len(asked) == 1, asked


def watched(monkeypatch, asked, name):
    """Have calls of obstore noted."""
    real = getattr(obstore, name)

    def noted(*args, **kwargs):
        asked.append((name, args[1:], kwargs))
        return real(*args, **kwargs)

    monkeypatch.setattr(obstore, name, noted)


@pytest.mark.parametrize("where", ["the store", "the database"])
def test_a_full_disk_fails_nothing_that_only_a_cache_needs(tmp_path, monkeypatch, where):
    """What is made is what is made where there is room, twice: nothing of it was cached."""
    path = tmp_path / "film.mp4"
    films.film(path, 60, sound=True)
    below = (
        "faststart.mp4", "clip.mp4?start_ms=1000&end_ms=2000", "hls/master.m3u8",
        "thumbnail.png?w=32", "peaks.json", "loudness", "storyboard.vtt", "storyboard/0.jpg",
    )  # fmt: skip

    def full(*_, **__):
        raise StoreFull("no space is left")

    with serving(tmp_path / "data") as served:
        record = uploaded(served.client, path.read_bytes(), "film.mp4", "files", type="video")
        place = f"{API}/files/{record['id']}"
        with monkeypatch.context() as disk:
            if where == "the store":
                disk.setattr(type(served.context.store), "write", full)
            else:
                disk.setattr(type(served.context.database), "write", full)
            without = [served.client.get(f"{place}/{one}") for one in [*below, *below]]
            part = served.client.get(f"{place}/thumbnail.png?w=32", headers={"Range": "bytes=1-3"})
        assert [answer.status_code for answer in without] == [200] * len(without)
        assert (part.status_code, part.content) == (206, b"PNG")
        assert rows_of(served) == 0
        cached = [served.client.get(f"{place}/{one}") for one in [*below, *below]]
        assert rows_of(served)
        assert [one.content for one in without] == [one.content for one in cached]
