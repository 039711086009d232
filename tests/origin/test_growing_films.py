"""Films that somebody still writes, through the origin and its command."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import fragdex
from fragdex.boxes import parse

httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from fragdex.origin.titles import IndexFiles, Titles, Writes  # noqa: E402
from fragdex.sources import open_source  # noqa: E402
from fragdex.testing import movie  # noqa: E402
from origin.serving import serving  # noqa: E402

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOR_EVER = 1e6


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def quiet(path):
    """Nothing was written for long."""
    os.utime(path, ns=(1, path.stat().st_mtime_ns - 10**18))


@contextmanager
def command(folder):
    """The address that `fragdex origin` serves at."""
    asked = [sys.executable, "-m", "fragdex", "origin", str(folder), "--port", "0"]
    asked += ["--segment-duration", "1", "--growing", str(FOR_EVER), "--log", "none"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) as process:
        try:
            base = re.search(r"http://\S+(?=/)", process.stdout.readline())[0]
            with httpx.Client(base_url=base, timeout=30, verify=False) as client:
                yield client
        finally:
            process.terminate()


def named(client):
    """The segments and initialization segments that the HLS playlists name."""
    master = client.get("/live.mp4/hls/master.m3u8")
    assert master.headers["cache-control"] == "public, max-age=1"
    segments = {}
    for name in set(re.findall(r"\b[av]\d\.m3u8", master.text)):
        text = client.get(f"/live.mp4/hls/{name}").text
        assert "#EXT-X-PLAYLIST-TYPE:EVENT" in text
        assert "#EXT-X-ENDLIST" not in text
        for segment in re.findall(r"[av]\d/\w+\.m(?:4s|p4)", text):
            answer = client.get(f"/live.mp4/hls/{segment}")
            assert answer.status_code == 200
            segments[segment] = answer.content, answer.headers["etag"]
    return segments


def manifest(client):
    return ET.fromstring(client.get("/live.mp4/dash/manifest.mpd").content)


def test_what_is_announced_stays_until_the_end(tmp_path):
    whole = movie(8, tracks=2, samples=5, fps=5)
    path = tmp_path / "live.mp4"
    seen, steps = {}, []
    with command(tmp_path) as client:
        for size in range(len(whole) // 6, len(whole) + 1, len(whole) // 6):
            append(path, whole[path.stat().st_size if path.exists() else 0 : size])
            master = client.get("/live.mp4/hls/master.m3u8")
            if master.status_code == 503:
                assert "still being written" in master.text
                assert master.headers["retry-after"] == "1"
                continue
            now = named(client)
            assert seen.items() <= now.items()
            seen = now
            steps.append(len(now))
            assert manifest(client).get("type") == "dynamic"
        assert len(set(steps)) > 3
        append(path, whole[path.stat().st_size :])
        quiet(path)
        ended = client.get("/live.mp4/hls/v1.m3u8").text
        assert ended.rstrip().endswith("#EXT-X-ENDLIST")
        assert manifest(client).get("type") == "static"
        for segment, (content, tag) in seen.items():
            answer = client.get(f"/live.mp4/hls/{segment}", headers={"if-none-match": tag})
            assert answer.status_code == 304
            assert client.get(f"/live.mp4/dash/{segment}").content == content
    package = fragdex.package(fragdex.index(path, exact=True), segment_duration=1)
    assert {segment: package[segment].read() for segment in seen} == {
        segment: content for segment, (content, _) in seen.items()
    }


@pytest.mark.parametrize("size", [0, 20, 300])
def test_films_that_only_begin(size, tmp_path):
    path = tmp_path / "live.mp4"
    path.write_bytes(movie(4)[:size])
    with serving(Titles(tmp_path, growing=FOR_EVER)) as client:
        for address in ("hls/master.m3u8", "dash/v1/0.m4s"):
            assert client.get(f"/live.mp4/{address}").status_code == 503
        quiet(path)  # nothing comes any more
        assert client.get("/live.mp4/hls/master.m3u8").status_code == 422


def test_an_mfra_ends_a_film(tmp_path):
    whole = movie(4, samples=5, fps=5)
    path = tmp_path / "live.mp4"
    path.write_bytes(whole)
    index = fragdex.index(path, exact=True)
    with serving(Titles(tmp_path, segment_duration=1, growing=FOR_EVER)) as client:
        assert manifest(client).get("type") == "dynamic"
        append(path, index.export("mfra"))
        assert manifest(client).get("type") == "static"


def test_another_film_of_the_same_name_is_indexed_anew(tmp_path):
    path = tmp_path / "live.mp4"
    path.write_bytes(movie(4, samples=5, fps=5))
    with serving(Titles(tmp_path, segment_duration=1, growing=FOR_EVER)) as client:
        first = named(client)
        # larger, in place, and of the same moov
        path.write_bytes(movie(9, samples=6, fps=6))
        second = named(client)
    package = fragdex.package(fragdex.index(path, exact=True), segment_duration=1)
    assert {name: package[name].read() for name in second} == {n: c for n, (c, _) in second.items()}
    (one, tag), (other, new) = first["v1/0.m4s"], second["v1/0.m4s"]
    assert one != other
    assert tag != new


def test_what_grows_is_indexed_from_where_it_ended(tmp_path, monkeypatch):
    whole = movie(8, samples=5, fps=5)
    path = tmp_path / "live.mp4"
    path.write_bytes(whole[: len(whole) // 2])
    titles = Titles(
        tmp_path, segment_duration=1, growing=FOR_EVER, indexes=IndexFiles(tmp_path / "kept")
    )
    first = titles.open(("live.mp4",))
    assert (first.growing, (tmp_path / "kept").exists()) == (True, False)
    append(path, whole[len(whole) // 2 :])
    with monkeypatch.context() as without:
        without.delattr("fragdex.index")  # nothing is indexed anew
        second = titles.open(("live.mp4",))
    assert second.indexes[0].track(1).sample_count == 40
    quiet(path)
    last = titles.open(("live.mp4",))
    assert last.growing == "ended"
    assert len(list((tmp_path / "kept").iterdir())) == 1
    assert titles.open(("live.mp4",)) is last


def test_progressive_films_do_not_grow_and_others_not_for_ever(tmp_path):
    path = tmp_path / "film.mp4"
    path.write_bytes((FIXTURES / "faststart.mp4").read_bytes())
    titles = Titles(tmp_path, segment_duration=1, growing=FOR_EVER)
    assert titles.open(("film.mp4",)).growing is False
    written = time.time() + 10 * FOR_EVER  # by a clock that is wrong
    (tmp_path / "future.mp4").write_bytes(movie(4))
    os.utime(tmp_path / "future.mp4", (written, written))
    ends = Titles(tmp_path, segment_duration=1, growing=0.5)
    assert ends.open(("future.mp4",)).growing is True
    time.sleep(0.6)
    assert ends.open(("future.mp4",)).growing == "ended"


def bytes_of(data, track):
    places = zip(track.samples.offset, track.samples.size, strict=True)
    return [data[start : start + size] for start, size in places]


def test_a_classic_file_has_what_is_there(tmp_path):
    whole = movie(6, tracks=2, samples=5, fps=5)
    rows = fragdex.index(whole).tracks[0].fragments.offset.tolist()
    tags = set()
    with serving(Titles(tmp_path, growing=FOR_EVER)) as client:
        for size in (rows[1] + 60, rows[3] + 10, len(whole)):
            (tmp_path / "live.mp4").write_bytes(whole[:size])
            answer = client.get("/live.mp4/faststart.mp4")
            assert answer.headers["cache-control"] == "public, max-age=1"
            tags.add(answer.headers["etag"])
            assert [box.type for box in parse(answer.content)] == [
                "ftyp",
                "moov",
                "mdat",
            ]
            known = fragdex.index(whole[:size], exact=True, partial=True)
            index = fragdex.index(answer.content, exact=True)
            for old, new in zip(known.tracks, index.tracks, strict=True):
                assert len(old.samples) == len(new.samples)
                assert bytes_of(answer.content, new) == bytes_of(whole, old)
    assert len(tags) == 3


def test_what_is_complete_is_served_while_more_is_written(tmp_path):
    """Between an index and an answer the file has grown: all that was announced is still there."""
    whole = movie(30, tracks=2, samples=5, fps=5)
    places = fragdex.index(whole, exact=True).track(1).fragments.moof_offset.tolist()
    film = tmp_path / "live.mp4"
    film.write_bytes(whole[: places[20]])
    titles = Titles(tmp_path, segment_duration=1, growing=FOR_EVER)
    opened = titles.open(("live.mp4",))
    copies = [opened.view("fragmented"), opened.view("faststart"), opened.view("clip", stop=3)]
    names = list(opened.package)
    append(film, whole[places[20] :])
    for view in copies:
        assert len(view.read()) == view.size
    for name in names:
        assert len(opened.package[name].read()) == opened.package[name].size
    assert titles.open(("live.mp4",)) is not opened


def test_what_is_complete_is_read_without_opening_the_film_again(tmp_path, monkeypatch):
    whole = movie(12, tracks=2, samples=5, fps=5)
    path = tmp_path / "live.mp4"
    path.write_bytes(whole[: len(whole) // 2])
    titles = Titles(tmp_path, segment_duration=1, growing=FOR_EVER)
    with serving(titles) as client:
        before = named(client)
        parts = [client.get(f"/live.mp4/hls/v1/part-{number}.m4s").content for number in range(3)]
        film = titles.latest(("live.mp4",))
        append(path, whole[len(whole) // 2 :])
        with monkeypatch.context() as without:
            without.delattr(Titles, "_made")
            for name, (content, tag) in before.items():
                for headers, status in (({}, 200), ({"if-none-match": tag}, 304)):
                    answer = client.get(f"/live.mp4/hls/{name}", headers=headers)
                    assert (answer.status_code, answer.headers["etag"]) == (status, tag)
                    assert status == 304 or answer.content == content
            for number, content in enumerate(parts):
                assert client.get(f"/live.mp4/hls/v1/part-{number}.m4s").content == content
        assert titles.latest(("live.mp4",)) is film
        # larger, in place, and with the same inode: not the film that was opened
        path.write_bytes(movie(15, tracks=2, samples=6, fps=6))
        assert titles.beginning(("live.mp4",)) is None
        content, tag = before["v1/5000.m4s"]
        answer = client.get("/live.mp4/hls/v1/5000.m4s", headers={"if-none-match": tag})
        assert answer.status_code != 304
        assert answer.content != content


def test_who_opened_a_file_earlier_takes_nothing_away_that_came_later(tmp_path):
    whole = movie(30, tracks=2, samples=5, fps=5)
    path = tmp_path / "live.mp4"
    path.write_bytes(whole[: len(whole) // 3])
    titles = Titles(tmp_path, segment_duration=1, growing=FOR_EVER)
    film = titles.open(("live.mp4",))
    with open_source(path) as early:
        append(path, whole[len(whole) // 3 :])
        latest = titles.open(("live.mp4",)).package
        _, package = film.live.grow([early])
    for one in latest.title.renditions:
        assert package[f"{one.name}.m3u8"].read() == latest[f"{one.name}.m3u8"].read()


@pytest.mark.parametrize("again", [5, 6], ids=["the same moov", "another moov"])
def test_a_recorder_that_begins_again_costs_what_it_writes(tmp_path, again):
    parts = [movie(20, tracks=2, samples=5, fps=5), movie(30, tracks=2, samples=again, fps=again)]
    whole, path = b"".join(parts), tmp_path / "live.mp4"
    titles = Titles(tmp_path, segment_duration=1, growing=FOR_EVER)
    moofs = [int(at) for at in fragdex.index(whole, exact=True).tracks[0].fragments.moof_offset]
    seen = {}
    for size in [*moofs[10:30:3], len(parts[0]), len(parts[0]) + 100, *moofs[-30::5], len(whole)]:
        if path.exists() and size <= path.stat().st_size:
            continue
        append(path, whole[path.stat().st_size if path.exists() else 0 : size])
        film = titles.open(("live.mp4",))
        assert film.live is not None
        package = film.package
        now = {name: package[name] for name in package if name.endswith((".m4s", "init.mp4"))}
        now = {name: (view.read(), view.etag) for name, view in now.items()}
        assert seen.items() <= now.items()
        seen = now
    assert len(package.title.periods) == 2
    quiet(path)
    ended = titles.open(("live.mp4",)).package
    assert ended.title.growth.ended
    assert seen.items() <= {name: (ended[name].read(), ended[name].etag) for name in seen}.items()


def test_a_film_that_is_opened_before_its_first_fragment_costs_what_is_written(tmp_path):
    whole, path = movie(20, samples=5, fps=5), tmp_path / "live.mp4"
    titles = Titles(tmp_path, segment_duration=1, growing=FOR_EVER)
    moofs = [int(at) for at in fragdex.index(whole, exact=True).track(1).fragments.moof_offset]
    for size in (moofs[0], moofs[1], len(whole)):
        append(path, whole[path.stat().st_size if path.exists() else 0 : size])
        film = titles.open(("live.mp4",))
    assert film.live is not None


def test_another_film_of_the_same_name_gives_none_of_its_bytes(tmp_path):
    whole = movie(30, samples=5, fps=5)
    film = tmp_path / "live.mp4"
    film.write_bytes(whole)
    opened = Titles(tmp_path, segment_duration=1, growing=FOR_EVER).open(("live.mp4",))
    view = opened.view("fragmented")
    assert view.read()
    other = tmp_path / "other.mp4"
    other.write_bytes(whole + movie(1))
    other.rename(film)
    with pytest.raises(fragdex.errors.SourceChanged, match="another file"):
        view.read()
    film.write_bytes(whole[:-100])
    with pytest.raises(fragdex.errors.SourceChanged):
        view.read()


def test_a_tag_names_one_sequence_of_bytes(tmp_path):
    """Whatever happens to a file: equal tags of an address mean equal bytes."""
    whole = movie(40, samples=5, fps=5)
    track = fragdex.index(whole, exact=True).track(1)
    places = track.fragments.moof_offset.tolist()
    changed = bytearray(whole)
    for start, size in zip(track.samples.offset.tolist(), track.samples.size.tolist(), strict=True):
        if start > places[20]:
            changed[start : start + size] = bytes(size)
    film, new = tmp_path / "live.mp4", tmp_path / "new.mp4"
    seen = {}

    def look(growing):
        titles = Titles(tmp_path, segment_duration=4, growing=growing)
        package = titles.open(("live.mp4",)).package
        for name in package:
            key = name, package[name].etag
            body = package[name].read()
            assert seen.setdefault(key, body) == body, name

    for growing in (0, FOR_EVER):
        for stop in (22, 30, 36):
            film.write_bytes(whole[: places[stop]])
            look(growing)
        for data in (changed[: places[36]], whole, changed):
            new.write_bytes(data)
            new.rename(film)
            look(growing)


@pytest.mark.parametrize(
    "head", [b"\x47" + bytes(187), b"\x1aE\xdf\xa3\x9fB\x86\x81" + bytes(60), b"ID3" + bytes(99)]
)
def test_a_format_that_more_bytes_do_not_change_is_refused_for_good(tmp_path, head):
    """Transport streams, Matroska and others: nobody is told to come again."""
    path = tmp_path / "live.mp4"
    for length in (8, len(head)):
        path.write_bytes(head[:length])
        with serving(Titles(tmp_path, growing=FOR_EVER)) as client:
            answer = client.get("/live.mp4/hls/master.m3u8")
        assert answer.status_code == 422
        assert "not an ISO base media file" in answer.text
        assert "retry-after" not in answer.headers


@pytest.mark.parametrize("head", [b"", b"\0\0\0", bytes(64), b"\0\0\0\x18ftypiso5"])
def test_a_beginning_that_may_become_a_film_is_still_being_written(tmp_path, head):
    (tmp_path / "live.mp4").write_bytes(head)
    with serving(Titles(tmp_path, growing=FOR_EVER)) as client:
        answer = client.get("/live.mp4/hls/master.m3u8")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


def test_a_film_without_a_date_began_when_its_file_was_born(tmp_path):
    """And all who serve it say the same, now and later; the time of day is that of its server."""
    whole = movie(6, samples=5, fps=5)
    path = tmp_path / "live.mp4"
    before = time.time()
    path.write_bytes(whole)
    ends = [int(row) for row in fragdex.index(path, exact=True).track(1).fragments.offset]
    said = set()
    for stop in (ends[3], ends[4], len(whole)):
        path.write_bytes(whole[:stop])  # the file stays; nothing else is kept of it
        for _ in range(2):
            with serving(Titles(tmp_path, segment_duration=1, growing=FOR_EVER)) as client:
                mpd = manifest(client)
                said.add(mpd.get("availabilityStartTime"))
                clocks = {one.get("schemeIdUri"): one for one in mpd.findall("{*}UTCTiming")}
                clock = clocks["urn:mpeg:dash:utc:http-head:2014"]
                answer = client.head(f"/live.mp4/dash/{clock.get('value')}")
                assert answer.status_code == 200
                assert "Date" in answer.headers["access-control-expose-headers"]
                assert answer.headers["date"]
    began = [datetime.fromisoformat(one).timestamp() for one in said]
    assert all(before - 10 <= one <= time.time() for one in began)  # ten seconds long, at once


@pytest.mark.parametrize("ahead", [-3600, -60, 0, 60, 3600])
def test_a_share_whose_clock_is_wrong_is_watched_as_others_are(tmp_path, ahead):
    path, writes = tmp_path / "live.mp4", Writes(30)
    for step in range(3):
        append(path, b"more")
        at = time.time() + ahead + step / 100
        os.utime(path, (at, at))
        seen = writes.until(str(path))
        # that a clock is behind is known once a file is seen to change
        assert (seen > 0) == (step > 0 or ahead > -30), step
    assert writes.until(str(path)) == seen
    quiet(path)
    assert writes.until(str(path)) == 0
    assert Writes(0).until(str(path)) == 0
    assert writes.until(str(tmp_path / "none")) == 0
