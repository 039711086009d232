"""A folder of files that a recorder began one after the other, as one title that grows."""

import os
import re
import time
from datetime import datetime, timedelta
from itertools import pairwise
from urllib.parse import urljoin
from xml.etree import ElementTree as ET

import pytest

import fragdex

httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from fragdex.origin.addresses import signed  # noqa: E402
from fragdex.origin.application import OriginSettings  # noqa: E402
from fragdex.origin.titles import IndexFiles, Titles  # noqa: E402
from fragdex.testing import movie  # noqa: E402
from origin.serving import serving  # noqa: E402
from origin.test_growing_films import FIXTURES, FOR_EVER, append, quiet  # noqa: E402
from origin.test_waiting import later  # noqa: E402
from strategies.recordings import fragment_starts  # noqa: E402

PATTERN = "/cam/*.mp4"
WHOLE = movie(6, tracks=2, samples=10, fps=10)
STARTS = fragment_starts(fragdex.index(WHOLE, exact=True))
STILL = 0.6
"""Seconds after which a file is over that another one follows."""


@pytest.fixture
def cam(tmp_path):
    folder = tmp_path / "films" / "cam"
    folder.mkdir(parents=True)
    return folder


def recorded(path, ago, data=WHOLE):
    """A file that was complete so many seconds ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    at = time.time() - ago
    os.utime(path, (at, at))


def served(cam, growing=FOR_EVER, settings=None, notes=None):
    return serving(Titles(cam.parent, segment_duration=1, growing=growing, notes=notes), settings)


class MediaList:
    """A media playlist: what it says of each segment, by its number."""

    def __init__(self, client, address):
        answer = client.get(address)
        assert answer.status_code == 200, answer.text
        self.text, self.findings = answer.text, answer.headers.get("x-findings", "")
        self.target = int(re.search(r"TARGETDURATION:(\d+)", self.text)[1])
        self.first = int(re.search(r"MEDIA-SEQUENCE:(\d+)", self.text)[1])
        self.turn = int(re.search(r"DISCONTINUITY-SEQUENCE:(\d+)", self.text)[1])
        self.ended = self.text.endswith("#EXT-X-ENDLIST\n")
        self.segments, self.parts, self.dates, self.gaps = {}, [], {}, set()
        number, turn, lasts, init = self.first, self.turn, None, None
        for line in self.text.splitlines():
            name, _, value = line.partition(":")
            if name == "#EXT-X-DISCONTINUITY":
                turn += 1
            elif name == "#EXT-X-PROGRAM-DATE-TIME":
                self.dates[number] = datetime.fromisoformat(value)
            elif name == "#EXT-X-GAP":
                self.gaps.add(number)
            elif name == "#EXT-X-MAP":
                init = urljoin(address, re.search('URI="(.*?)"', value)[1])
            elif name == "#EXTINF":
                lasts = float(value[:-1])
            elif name == "#EXT-X-PART":
                self.parts.append(urljoin(address, re.search('URI="(.*?)"', value)[1]))
            elif not line.startswith("#"):
                self.segments[number] = urljoin(address, line), lasts, turn, init
                number += 1
        assert all(lasts < self.target + 0.5 for _, lasts, _, _ in self.segments.values())

    @property
    def next(self):
        return self.first + len(self.segments)


def is_continued(before, after):
    """Whether a list continues another one: nothing changes but its ends."""
    assert after.target == before.target
    assert after.first >= before.first
    assert after.next >= before.next
    for number in range(after.first, before.next):
        assert after.segments[number] == before.segments[number]
    gone = before.segments[after.first - 1][2] if after.first > before.first else before.turn - 1
    assert after.turn in (gone, gone + 1)
    return True


def lists(client, query=""):
    return {name: MediaList(client, f"{PATTERN}/hls/{name}.m3u8{query}") for name in ("v1", "a1")}


def manifest(client, query=""):
    answer = client.get(f"{PATTERN}/dash/manifest.mpd{query}")
    assert answer.status_code == 200
    return ET.fromstring(answer.content)


def test_the_title_goes_on_with_each_file_and_says_the_same_everywhere(cam, tmp_path):
    """What is listed stays, is there, and is what its file has; all processes say the same."""
    notes, seen, before = tmp_path / "notes", {}, None
    with served(cam, notes=notes) as one, served(cam, notes=notes) as other:
        for number in range(3):
            path = cam / f"2026-05-04-{number:02}.mp4"
            for size in (STARTS[2], STARTS[4], len(WHOLE)):
                append(path, WHOLE[path.stat().st_size if path.exists() else 0 : size])
                if size == STARTS[2] and number:
                    time.sleep(STILL)
                again = lists(one, "?_HLS_skip=v2")
                now, same = lists(one), lists(other)
                for name, listed in now.items():
                    assert listed.text == same[name].text
                    assert not listed.ended
                    assert "PRELOAD-HINT" in listed.text
                    assert before is None or is_continued(before[name], listed)
                    for address, *_, init in listed.segments.values():
                        for part in (address, init):
                            if part not in seen:
                                seen[part] = one.get(part).content
                            assert other.get(part).content == seen[part]
                    for part in listed.parts:
                        assert one.get(part).status_code == 200
                    assert again[name].text.count("#EXTINF") <= listed.text.count("#EXTINF")
                before = now
                periods = manifest(one).findall("{*}Period")
                assert len(periods) == number + 1
        assert len(now["v1"].segments) >= 3 * 6 - 1
        quiet(path)
        ended = lists(one)
        assert all(listed.ended and is_continued(before[n], listed) for n, listed in ended.items())
        assert manifest(one).get("type") == "static"
        # what stood still longer than the limit, and goes on
        append(cam / "2026-05-04-03.mp4", WHOLE[: STARTS[3]])
        resumed = lists(one)
        assert not resumed["v1"].ended
        assert is_continued(ended["v1"], resumed["v1"])
    package = fragdex.package(fragdex.index(WHOLE, exact=True), source=WHOLE, segment_duration=1)
    for address, content in seen.items():
        assert package[address.partition("/hls/")[2]].read() == content, address
    with served(cam, notes=notes) as restarted:
        assert lists(restarted)["v1"].text == resumed["v1"].text


def test_who_waits_gets_the_next_file(cam):
    recorded(cam / "1.mp4", 1)
    with served(cam) as client:
        now = lists(client)["v1"]
        address = f"{PATTERN}/hls/v1.m3u8"
        # the rest of this file, and the first segment of the next one
        waiting_for = [
            later(client.get, f"{address}?_HLS_msn={now.next + more}") for more in (0, 1)
        ]
        append(cam / "2.mp4", WHOLE[: STARTS[3]])
        for thread, answers in waiting_for:
            thread.join()
            assert answers[0].status_code == 200
            assert "/2.mp4/hls/v1/0.m4s" in answers[0].text
        assert client.get(f"{address}?_HLS_msn={now.next + 99}").status_code == 400


def test_the_last_segment_of_a_file_is_there_once_the_next_one_begins(cam):
    """Its own title would wait for more until nothing is written for long."""
    append(cam / "1.mp4", WHOLE)
    with served(cam) as client:
        first = lists(client)["v1"]
        time.sleep(STILL)
        append(cam / "2.mp4", WHOLE[: STARTS[3]])
        second = lists(client)["v1"]
        last = [a for a, *_ in second.segments.values() if "/1.mp4/" in a][-1]
        assert last not in [address for address, *_ in first.segments.values()]
        assert client.get(last, timeout=2).status_code == 200
        assert client.get("/cam/1.mp4/hls/v1.m3u8").text.endswith("#EXT-X-ENDLIST\n")


def test_a_recorder_that_stood_still_leaves_a_gap(cam):
    for number, ago in enumerate((7200, 3600, 3594, 10)):
        recorded(cam / f"{number}.mp4", ago)
    with served(cam) as client:
        dates = list(lists(client)["v1"].dates.values())
        mpd = manifest(client)
    between = [(b - a).total_seconds() for a, b in pairwise(dates)]
    assert between == pytest.approx([3600, 6, 3584], abs=0.5)
    # to the microsecond, where no gap is
    seconds = [float(one.get("start")[2:-1]) for one in mpd.findall("{*}Period")]
    assert seconds[2] - seconds[1] == pytest.approx(6.016, abs=1e-5)
    assert seconds[1] - seconds[0] == pytest.approx(3600, abs=0.1)
    began = datetime.fromisoformat(mpd.get("availabilityStartTime"))
    assert abs(began + timedelta(seconds=seconds[0]) - dates[0]) < timedelta(seconds=0.01)


def test_numbers_stay_when_the_recorder_deletes_files(cam, tmp_path):
    for number in range(4):
        recorded(cam / f"{number}.mp4", 600 - 100 * number)
    notes = tmp_path / "notes"
    with served(cam, notes=notes) as client:
        before = lists(client)
        (cam / "0.mp4").unlink()
        after = lists(client)
        assert is_continued(before["v1"], after["v1"])
        assert (after["v1"].first - before["v1"].first, after["v1"].turn) == (
            6,
            before["v1"].turn + 1,
        )
        # in the middle: what is missing is said, and keeps its numbers
        (cam / "2.mp4").unlink()
        holey = lists(client)["v1"]
        assert holey.next == after["v1"].next
        missing = {n for n, (a, *_) in after["v1"].segments.items() if "/2.mp4/" in a}
        assert holey.gaps == missing
        assert len(manifest(client).findall("{*}Period")) == 2
    with served(cam, notes=notes) as restarted:
        assert lists(restarted)["v1"].text == holey.text
        for path in list(cam.iterdir()):
            path.unlink()
        assert restarted.get(f"{PATTERN}/hls/v1.m3u8").status_code == 404
        append(cam / "4.mp4", WHOLE[: STARTS[3]])
        assert lists(restarted)["v1"].first == holey.next


def test_files_that_cannot_join_are_named(cam):
    recorded(cam / "1.mp4", 600)
    recorded(cam / "2.mp4", 500, movie(6, samples=10, fps=10))
    recorded(cam / "3.mp4", 400, WHOLE[: STARTS[0] + 20])
    recorded(cam / "4.mp4", 300, b"not a video, but some text")
    recorded(cam / "5.mp4", 200, movie(12, tracks=2, samples=40, fps=10))
    for number in (6, 7, 8):
        recorded(cam / f"{number}.mp4", 180 - 20 * number)
    with served(cam, growing=10) as client:
        listed = lists(client)["v1"]
    named = {a.split("/")[-4] for a, *_ in listed.segments.values()}
    assert named == {"1.mp4", "6.mp4", "7.mp4", "8.mp4"}
    assert listed.ended
    for number, why in ((2, "other tracks: v1"), (3, ""), (4, ""), (5, "last up to 4 s")):
        assert f"cam/{number}.mp4: " in listed.findings
        assert why in listed.findings


def test_a_file_without_a_moov_joins_when_it_has_one(cam):
    whole = (FIXTURES / "faststart.mp4").read_bytes()
    recorded(cam / "1.mp4", 60, whole)
    recorded(cam / "2.mp4", 1, whole[:20])
    with served(cam) as client:
        before = lists(client)["v1"]
        assert not before.ended
        (cam / "2.mp4").write_bytes(whole)
        after = lists(client)["v1"]
    assert is_continued(before, after)
    assert len(after.segments) == 2 * len(before.segments)


def test_a_window_is_listed_alone_and_with_the_numbers_of_all(cam):
    for number in range(4):
        recorded(cam / f"{number}.mp4", 3600 * (4 - number))
    now = datetime.now().astimezone()
    with served(cam) as client:
        late = lists(client, "?last=4000")["v1"]
        assert [a.split("/")[-4] for a, *_ in late.segments.values()][::6] == ["2.mp4", "3.mp4"]
        master = client.get(f"{PATTERN}/hls/master.m3u8?last=4000").text
        assert "v1.m3u8?last=4000\n" in master
        assert 'a1.m3u8?last=4000"' in master
        assert "a1.m3u8?last=4000" in late.text or late.text.count("REPORT") == 0
        span = (now - timedelta(hours=3.5)).isoformat(), (now - timedelta(hours=2.5)).isoformat()
        early = lists(client, f"?from={span[0]}&to={span[1]}".replace("+", "%2B"))["v1"]
        assert {a.split("/")[-4] for a, *_ in early.segments.values()} == {"1.mp4"}
        assert early.ended
        whole = lists(client)["v1"]
        for part in (late, early):
            assert part.segments.items() <= whole.segments.items()
            assert part.turn - whole.turn == (part.first - whole.first) // 6
        for query, status in (
            ("last=x", 400),
            ("last=60&from=2026-05-04", 400),
            ("from=noon", 400),
            ("to=2001-01-01", 404),
        ):
            assert client.get(f"{PATTERN}/hls/v1.m3u8?{query}").status_code == status


def test_signed_addresses_lead_to_signed_ones(cam):
    for number in range(2):
        recorded(cam / f"{number}.mp4", 100 - 10 * number)
    until = int(time.time()) + 1000
    head = f"/{signed('secret', 'cam/*.mp4', until)}"
    settings = OriginSettings(secret="secret")
    with served(cam, growing=0, settings=settings) as client:
        assert client.get(f"{PATTERN}/hls/v1.m3u8").status_code == 403
        listed = MediaList(client, f"{head}{PATTERN}/hls/v1.m3u8")
        assert len(listed.segments) == 12
        for address, *_, init in listed.segments.values():
            assert address.startswith(f"/{until}/")
            assert client.get(address).status_code == client.get(init).status_code == 200
        mpd = ET.fromstring(client.get(f"{head}{PATTERN}/dash/manifest.mpd").content)
        base = mpd.find("{*}Period/{*}BaseURL").text
        place = urljoin(f"{head}{PATTERN}/dash/manifest.mpd", base)
        assert client.get(f"{place}v1/init.mp4").status_code == 200


def test_folders_by_day_and_what_a_pattern_never_names(cam):
    for day in ("2026-05-04", "2026-05-05"):
        for hour in ("16", "17"):
            recorded(cam / day / hour / "front" / "00.00.mp4", 10)
            recorded(cam / day / hour / "back" / "00.00.mp4", 10)
    recorded(cam / ".hidden" / "17" / "front" / "00.00.mp4", 10)
    outside = cam.parents[1] / "outside.mp4"
    outside.write_bytes(WHOLE)
    (cam / "2026-05-05" / "17" / "front" / "01.00.mp4").symlink_to(outside)
    (cam / "2026-05-06").symlink_to(cam.parents[1])
    with served(cam) as client:
        listed = MediaList(client, "/cam/*/*/front/*.mp4/hls/v1.m3u8")
        named = dict.fromkeys(a.partition("/hls/")[0] for a, *_ in listed.segments.values())
        assert list(named) == [
            f"/cam/{day}/{hour}/front/00.00.mp4"
            for day in ("2026-05-04", "2026-05-05")
            for hour in ("16", "17")
        ]
        assert all(client.get(a).status_code == 200 for a, *_ in listed.segments.values())
        for pattern in ("*", "..%2F*", "cam/../*.mp4", "cam/" + "*a" * 9, "none/*.mp4", ".*/*.mp4"):
            assert client.get(f"/{pattern}/hls/v1.m3u8").status_code == 404, pattern


def test_one_creation_time_for_all_is_that_of_none(cam):
    """FFmpeg's segment muxer gives all files the metadata of its output."""
    created = (int(time.time()) - 3600 + 2_082_844_800).to_bytes(4, "big")
    place = WHOLE.index(b"mvhd") + 8
    same = WHOLE[:place] + created + WHOLE[place + 4 :]
    for number in range(4):
        recorded(cam / f"{number}.mp4", 3600 - 60 * number, same)
    with served(cam) as client:
        dates = list(lists(client)["v1"].dates.values())
    assert all(b > a for a, b in pairwise(dates))


def test_differing_codecs_are_named_together(cam):
    recorded(cam / "1.mp4", 100)
    other = WHOLE.replace(b"\x01\x42\x00\x0a", b"\x01\x4d\x00\x0a", 1)
    assert other != WHOLE
    recorded(cam / "2.mp4", 50, other)
    with served(cam) as client:
        master = client.get(f"{PATTERN}/hls/master.m3u8").text
        (codecs,) = re.findall(r'CODECS="(.*?)"', master)
        assert {"avc1.42000A", "avc1.4D000A"} < set(codecs.split(","))


def test_a_page_and_indexes_that_are_kept(cam, tmp_path):
    for number in range(2):
        recorded(cam / f"{number}.mp4", 100 - 10 * number)
    kept = tmp_path / "kept"
    titles = Titles(cam.parent, segment_duration=1, growing=10, indexes=IndexFiles(kept))
    with serving(titles) as client:
        assert 'href="cam/*.mp4/"' in client.get("/").text
        page = client.get(f"{PATTERN}/").text
        assert "hls/master.m3u8" in page
        assert "clip.mp4" not in page
        assert client.get(f"{PATTERN}/clip.mp4").status_code == 404
        assert lists(client)["v1"].ended
    assert len(list(kept.glob("*.fidx"))) == 2
    assert len(list(kept.glob("*.rotated.json"))) == 1
