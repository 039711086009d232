"""A segment that is not complete is answered with its parts as they come (LL-DASH)."""

import re
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import pytest

import fragdex

httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from fragdex.testing import check_dash  # noqa: E402
from origin.test_growing_films import append, quiet  # noqa: E402
from origin.test_waiting import STARTS, WHOLE, later, path, served  # noqa: E402, F401

MANIFEST = "/live.mp4/dash/manifest.mpd"
NAMES = {"": "urn:mpeg:dash:schema:mpd:2011"}


def listed(client):
    """Names of the segments that the manifest lists of each representation, and the manifest."""
    mpd = ET.fromstring(client.get(MANIFEST).content)
    names = {}
    for one in mpd.iterfind(".//Representation", NAMES):
        at, times = 0, []
        for run in one.iterfind(".//S", NAMES):
            at = int(run.get("t", at))
            for _ in range(int(run.get("r", 0)) + 1):
                times.append(at)
                at += int(run.attrib["d"])
        names[one.get("id")] = [f"{one.get('id')}/{time}.m4s" for time in times]
    return names, mpd


@pytest.fixture
def stored():
    return fragdex.package(fragdex.index(WHOLE, exact=True), source=WHOLE, segment_duration=1)


def test_the_manifest_lists_it_for_players_that_keep_near_the_end(path, stored):  # noqa: F811
    with served(path) as client:
        assert check_dash(client.get(MANIFEST).text) == []
        names, mpd = listed(client)
        for name, segments in names.items():
            lines = client.get(f"/live.mp4/hls/{name}.m3u8").text
            complete = re.findall(rf"^{name}/\d+\.m4s$", lines, re.MULTILINE)
            assert segments[:-1] == complete
            assert segments[-1] in stored
        for template in mpd.iterfind(".//SegmentTemplate", NAMES):
            assert template.get("availabilityTimeComplete") == "false"
            assert 0 < float(template.get("availabilityTimeOffset")) < 1
        assert float(mpd.find(".//Latency", NAMES).get("target")) > 1000
        clocks = [one.get("value") for one in mpd.iterfind("UTCTiming", NAMES)]
        before = datetime.now(UTC)
        answer = client.get(f"/live.mp4/dash/{clocks[0]}")
        assert answer.headers["cache-control"] == "no-store"
        assert abs((datetime.fromisoformat(answer.text) - before).total_seconds()) < 60
        assert client.head(f"/live.mp4/dash/{clocks[1]}").headers["date"]
        quiet(path)
        names, mpd = listed(client)
        assert all(name in stored for segments in names.values() for name in segments)
        assert mpd.get("type") == "static"
        assert not list(mpd.iterfind("UTCTiming", NAMES))


@pytest.mark.parametrize("track", ["v1", "a1"])
def test_its_parts_come_as_they_are_written_and_are_the_stored_segment(path, stored, track):  # noqa: F811
    with served(path) as client:
        address = f"/live.mp4/dash/{listed(client)[0][track][-1]}"
        wanted = stored[address.removeprefix("/live.mp4/dash/")].read()
        whole = [
            later(client.head, address),
            later(lambda: client.get(address, headers={"range": "bytes=10-99"})),
        ]
        with client.stream("GET", address) as answer:
            assert "content-length" not in answer.headers
            pieces = answer.iter_raw()
            first = next(pieces)
            assert 0 < len(first) < len(wanted)
            append(path, WHOLE[STARTS[6] : STARTS[8]])
            assert first + b"".join(pieces) == wanted
        for thread, _ in whole:
            thread.join()
        (head,), (part,) = (answers for _, answers in whole)
        assert int(head.headers["content-length"]) == len(wanted)
        assert (part.status_code, part.content) == (206, wanted[10:100])
        again = client.get(address)
        assert (again.content, again.headers["etag"]) == (wanted, head.headers["etag"])


def test_it_ends_with_the_recording(path, stored):  # noqa: F811
    with served(path) as client:
        name = listed(client)[0]["v1"][-1]
        with client.stream("GET", f"/live.mp4/dash/{name}") as answer:
            pieces = answer.iter_raw()
            first = next(pieces)
            quiet(path)
            received = first + b"".join(pieces)
        assert received == client.get(f"/live.mp4/dash/{name}").content


def test_it_breaks_off_where_another_recording_takes_the_place(path):  # noqa: F811
    with served(path) as client:
        name = listed(client)[0]["v1"][-1]
        with client.stream("GET", f"/live.mp4/dash/{name}") as answer:
            pieces = answer.iter_raw()
            next(pieces)
            other = path.with_name("other")
            other.write_bytes(WHOLE[: STARTS[2]])
            other.replace(path)
            with pytest.raises(httpx.RemoteProtocolError):
                list(pieces)
