"""A video is played while it is uploaded."""

import base64
import re
import threading
import time
from functools import partial
from types import MappingProxyType
from xml.etree import ElementTree as ET

import httpx
import pytest

import fragdex
from fragdex.service.uploads.model import Arrival
from fragdex.service.uploads.operations import receive
from fragdex.testing import movie
from origin.stepping import Stepping
from origin.test_waiting import later, reached
from service.serving import API, serving
from service.working import announced
from strategies.recordings import fragment_starts

TUS = {"Tus-Resumable": "1.0.0"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("data")) as one:
        yield one


class Chunks:
    """Sends a file by chunks."""

    def __init__(self, client, data):
        self.client, self.data, self.sent = client, data, 0
        self.id = self.begin()

    def begin(self):
        return announced(self.client, self.data, "live.mp4", "files", type="video")["id"]

    def send(self, stop):
        part = self.data[self.sent : stop]
        answer = self.sending(part, f"bytes {self.sent}-{stop - 1}/{len(self.data)}")
        assert answer.status_code in (200, 201, 202, 204), answer.text
        self.sent = stop

    def sending(self, part, content_range):
        address = f"{API}/files/{self.id}/upload"
        return self.client.post(address, content=part, headers={"Content-Range": content_range})


class Tus(Chunks):
    """Sends a file by tus."""

    is_measured = True
    told = MappingProxyType({})

    def begin(self):
        name = base64.b64encode(b"live.mp4").decode()
        length = {"Upload-Length": str(len(self.data))}
        if not self.is_measured:
            length = {"Upload-Defer-Length": "1"}
        headers = {**TUS, **length, "Upload-Metadata": f"filename {name}"}
        answer = self.client.post(f"{API}/tus", headers=headers)
        assert answer.status_code == 201, answer.text
        return answer.headers["Location"].rpartition("/")[2]

    def sending(self, part, content_range):
        kind = {"Content-Type": "application/offset+octet-stream"}
        headers = {**TUS, **kind, "Upload-Offset": str(self.sent), **self.told}
        return self.client.patch(f"{API}/tus/{self.id}", content=part, headers=headers)


class Draft(Chunks):
    """Sends a file by the draft of the IETF."""

    is_measured = True

    def begin(self):
        length = {"Upload-Complete": "?0"}
        if self.is_measured:
            length["Upload-Length"] = str(len(self.data))
        disposition = {"Content-Disposition": 'attachment; filename="live.mp4"'}
        answer = self.client.post(f"{API}/uploads", headers=length | disposition)
        assert answer.status_code == 201, answer.text
        return answer.headers["Location"].rpartition("/")[2]

    def sending(self, part, content_range):
        is_last = self.sent + len(part) == len(self.data)
        if not self.is_measured:
            part = iter([part])
        headers = {
            "Content-Type": "application/partial-upload",
            "Upload-Offset": str(self.sent),
            "Upload-Complete": f"?{int(is_last)}",
        }
        return self.client.patch(f"{API}/uploads/{self.id}", content=part, headers=headers)


class ChunksOfNoLength(Chunks):
    """Sends a file whose length its last chunk says."""

    def begin(self):
        new = {"filename": "live.mp4", "type": "video", "byte_size": None}
        return self.client.post(f"{API}/files", json=new).json()["id"]

    def sending(self, part, content_range):
        if self.sent + len(part) < len(self.data):
            content_range = content_range.partition("/")[0] + "/*"
        return super().sending(part, content_range)


class TusOfNoLength(Tus):
    """Sends a file by tus, and says its length when it has ended."""

    is_measured = False

    def send(self, stop):
        super().send(stop)
        if stop == len(self.data):
            self.told = {"Upload-Length": str(stop)}
            super().send(stop)


class DraftOfNoLength(Draft):
    """Sends a file by the draft of the IETF, in bodies of no length, the last one as well."""

    is_measured = False


SENDERS = [Chunks, Tus, Draft, ChunksOfNoLength, TusOfNoLength, DraftOfNoLength]


@pytest.mark.parametrize("sender", SENDERS)
def test_an_upload_is_played_while_it_arrives_and_stays_where_it_is(served, sender):
    # 12 s; each has other bytes, so that none is known before
    whole = movie(12, tracks=2, samples=10 + len(sender.__name__), fps=10 + len(sender.__name__))
    index = fragdex.index(whole, exact=True)
    starts = fragment_starts(index)
    client = served.client
    upload = sender(client, whole)
    place = f"{API}/files/{upload.id}"
    assert client.get(f"{place}/hls/master.m3u8").status_code in (404, 409)
    upload.send(starts[6])
    assert "#EXT-X-STREAM-INF" in client.get(f"{place}/hls/master.m3u8").text
    listing = f"{place}/hls/v1.m3u8"
    before = client.get(listing).text
    assert "#EXT-X-ENDLIST" not in before
    segment, part = reached(before)
    assert segment >= 1
    hinted = re.search(r'PRELOAD-HINT:TYPE=PART,URI="(.+)"', before)[1]
    refused = client.get(f"{listing}?_HLS_msn=99")
    assert (refused.status_code, "_HLS_msn" in refused.text) == (422, True)
    mpd = ET.fromstring(client.get(f"{place}/dash/manifest.mpd").content)
    assert mpd.get("type") == "dynamic"
    clock = mpd.find("{*}UTCTiming").get("value")
    assert client.get(f"{place}/dash/{clock}").headers["cache-control"] == "no-store"
    token = client.post(f"{API}/url-token", json={"url": place}).json()["token"]
    marked = served.anyone.get(f"{place}/dash/manifest.mpd?token={token}").text
    assert f'value="{clock}?token={token}"' in marked
    assert f'm4s?token={token}"' in marked
    times, at = [], 0
    for run in mpd.find(".//{*}SegmentTimeline"):
        at = int(run.get("t", at))
        for _ in range(int(run.get("r", 0)) + 1):
            times.append(at)
            at += int(run.get("d"))
    begun = f"{place}/dash/v1/{times[-1]}.m4s"
    waiting = [
        later(client.get, f"{listing}?_HLS_msn={segment}&_HLS_part={part}"),
        later(client.get, f"{place}/hls/{hinted}"),
    ]
    with client.stream("GET", begun) as answer:
        pieces = answer.iter_raw()
        first = next(pieces)
        assert "content-length" not in answer.headers
        upload.send(starts[11])
        segment_bytes = first + b"".join(pieces)
    for thread, _ in waiting:
        thread.join()
    (again,), (part_bytes,) = (answers for _, answers in waiting)
    assert (again.status_code, part_bytes.status_code) == (200, 200), again.text
    assert hinted in again.text
    names = re.findall(r"^v1/\d+\.m4s$", again.text, re.MULTILINE)
    seen = {name: client.get(f"{place}/hls/{name}").content for name in names}
    upload.send(len(whole))
    ended = client.get(listing)
    assert ended.text.rstrip().endswith("#EXT-X-ENDLIST"), ended.text
    assert client.get(begun).content == segment_bytes
    for name, data in seen.items():
        assert client.get(f"{place}/hls/{name}").content == data
    stored = fragdex.package(index, source=whole)
    assert stored[f"v1/{times[-1]}.m4s"].read() == segment_bytes
    assert stored[hinted].read() == part_bytes.content


def test_players_come_to_the_end_of_an_upload_part_by_part(served):
    """And what they have keeps its tag."""
    whole = movie(12, tracks=2, samples=10, fps=12)
    starts = fragment_starts(fragdex.index(whole, exact=True))
    client, upload = served.client, Chunks(served.client, whole)
    place = f"{API}/files/{upload.id}/hls"
    player = Stepping("v1.m3u8")

    def load(**asked):
        queries = [asked, asked | {"_HLS_skip": "YES"}]
        answers = [client.get(f"{place}/v1.m3u8", params=query) for query in queries]
        player.take(*(answer.raise_for_status().text for answer in answers))

    upload.send(starts[8])
    load()
    names = [*re.findall(r"^v1/\d+\.m4s$", player.text, re.MULTILINE), *player.named, "v1/init.mp4"]
    seen = {name: client.get(f"{place}/{name}") for name in names}
    upload.send(len(whole))
    first = int(player.named[0].partition("part-")[2].removesuffix(".m4s"))
    while not player.ended:
        asked = player.asks()
        load(_HLS_msn=asked.segment, _HLS_part=asked.part)
    for name, known in seen.items():
        answer = client.get(f"{place}/{name}", headers={"If-None-Match": known.headers["etag"]})
        assert (answer.status_code, answer.headers["etag"]) == (304, known.headers["etag"])
        assert client.get(f"{place}/{name}").content == known.content
    stored = fragdex.package(fragdex.index(whole, exact=True), source=whole)
    total = stored.title.of("video")[0].part_count
    assert player.named == [f"v1/part-{n}.m4s" for n in range(first, total)]
    assert player.text == client.get(f"{place}/v1.m3u8").text


def test_what_was_listed_is_there_while_an_upload_is_completed(served):
    """Between the object and the record, also where that is never written (kill -9)."""
    whole = movie(12, tracks=2, samples=10, fps=11)
    index = fragdex.index(whole, exact=True)
    starts = fragment_starts(index)
    upload = Chunks(served.client, whole)
    upload.send(starts[8])
    place = f"{API}/files/{upload.id}/hls"
    names = re.findall(r"^v1/\d+\.m4s$", served.client.get(f"{place}/v1.m3u8").text, re.MULTILINE)
    before = [served.client.get(f"{place}/{name}").content for name in names]

    class Killed(Exception):
        pass

    def finished(connection, arrived):
        raise Killed

    rest = f"bytes {starts[8]}-{len(whole) - 1}/{len(whole)}"
    with pytest.raises(Killed):
        receive(
            served.context, served.tenant, "video", upload.id, rest, [whole[starts[8] :]],
            arrival=Arrival(finished=finished),
        )  # fmt: skip
    assert list(served.context.store.drafts()) == []
    after = [served.client.get(f"{place}/{name}") for name in names]
    assert [one.status_code for one in after] == [200] * len(names)
    assert [one.content for one in after] == before
    upload.send(len(whole))
    assert [served.client.get(f"{place}/{name}").content for name in names] == before


def test_a_file_that_cannot_grow_says_what_is_missing(served):
    whole = movie(3, fragmented=False)
    upload = Chunks(served.client, whole)
    upload.send(len(whole) - 10)
    answer = served.client.get(f"{API}/files/{upload.id}/hls/master.m3u8")
    assert (answer.status_code, answer.json().get("state")) == (409, "uploading"), answer.text


def test_an_upload_of_one_body_without_an_end_is_played_while_it_is_sent(served):
    whole = movie(12, tracks=2, samples=10, fps=10)
    index = fragdex.index(whole, exact=True)
    starts = fragment_starts(index)
    upload = DraftOfNoLength(served.client, whole)
    place = f"{API}/files/{upload.id}"
    may_end = threading.Event()

    def body():
        yield whole[: starts[6]]
        at = starts[6]
        while not may_end.wait(0.05):  # as a recorder goes on
            yield whole[at : at + 1]
            at += 1
        yield whole[at:]

    headers = {
        "Content-Type": "application/partial-upload", "Upload-Offset": "0", "Upload-Complete": "?1",
    }  # fmt: skip
    with httpx.Client(base_url=served.url, headers=served.client.headers, timeout=120) as recorder:
        address = f"{API}/uploads/{upload.id}"
        send = partial(recorder.patch, address, content=body(), headers=headers)
        thread, answers = later(send)
        try:
            while not reached((listing := served.client.get(f"{place}/hls/v1.m3u8")).text)[0]:
                assert thread.is_alive(), listing.text
                time.sleep(0.05)
            assert "#EXT-X-ENDLIST" not in listing.text
        finally:
            may_end.set()
        thread.join()
    assert answers[0].status_code == 201, answers[0].text
    assert served.client.get(f"{place}/hls/v1.m3u8").text.rstrip().endswith("#EXT-X-ENDLIST")
