"""The client against a running service, over connections that break."""

import asyncio
import contextlib
import hashlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import fragdex
from client.breaking import breaking
from fragdex import client as client_room
from fragdex.client import (
    AsyncClient,
    Client,
    Conflict,
    InvalidRequest,
    JobFailed,
    NotFound,
    Retries,
    ServiceUnreachable,
    TooManyRequests,
    Unauthenticated,
    UnexpectedResponse,
    api,
)
from fragdex.errors import SourceChanged
from service.serving import serving

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
DOCUMENT = json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8"))
QUICK = Retries(first=0.01, longest=0.05)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("data"), job_workers=1) as one:
        yield one


@pytest.fixture
def client(served):
    with Client(served.url, served.key, retries=QUICK, trust_env=False) as one:
        yield one


def big(tmp_path, size=3_000_000, name="big.bin"):
    path = tmp_path / name
    path.write_bytes(os.urandom(size))
    return path


# ---- the operations -------------------------------------------------------------------------


def documented():
    """Name of each operation → its name without the suffix of its path."""
    return {
        one["operationId"]: one["operationId"].removesuffix(f"_{path.rpartition('.')[2]}")
        for path, methods in DOCUMENT["paths"].items()
        for name, one in methods.items()
        if name != "parameters"
    }


def test_every_operation_of_the_document_is_a_function():
    """By its name, or as one that is given the suffix."""
    functions = {name for name in api.__all__ if inspect.isfunction(getattr(api, name))}
    names = documented()
    assert functions <= {*names, *names.values()}
    for name, stem in names.items():
        merged = stem not in names and stem in functions
        assert (name in functions) != merged, name


def test_the_operations_are_those_of_the_document():
    """Written anew, they would be the same; `./dev docs` writes them."""
    code = "import make_client; print(__import__('json').dumps(make_client.written()))"
    modules = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    here = {p.name: p.read_text("utf-8") for p in Path(api.__file__).parent.glob("*.py")}
    assert json.loads(modules) == here, "./dev docs writes them anew"


def test_the_face_is_sorted_and_complete():
    assert client_room.__all__ == sorted(client_room.__all__, key=lambda n: (n.islower(), n))
    assert all(hasattr(client_room, name) for name in client_room.__all__)


# ---- requests -------------------------------------------------------------------------------


def test_records_are_typed(client, tmp_path):
    path = tmp_path / "words.vtt"
    path.write_text("WEBVTT\n\n00:00.000 --> 00:01.000\nword\n")
    record = client.push(path)
    assert (record.type, record.status, record.filename) == ("caption", "ready", "words.vtt")
    assert client.send(api.get_file(record.id)) == record
    assert client.send(api.download_caption_file(record.id)) == path.read_bytes()
    assert client.send(api.delete_file(record.id)) is None
    with pytest.raises(NotFound, match="no such"):
        client.send(api.get_file(record.id))


def test_lists_are_gone_through_page_by_page(client, tmp_path):
    names = set()
    for number in range(5):
        path = tmp_path / f"list-{number}.vtt"
        path.write_text(f"WEBVTT\n\n00:00.000 --> 00:01.000\nword {number}\n")
        names.add(client.push(path).filename)
    pages = list(client.pages(api.list_files(limit=2, type="caption")))
    assert len(pages) >= 3
    assert names <= {one.filename for page in pages for one in page.files}


def test_problems_are_errors_of_our_own(served, client):
    with (
        Client(served.url, "ef_wrong_key", trust_env=False) as stranger,
        pytest.raises(Unauthenticated) as refused,
    ):
        stranger.send(api.list_files())
    assert refused.value.status == 401
    with pytest.raises(InvalidRequest, match="byte_size") as refused:
        client.send(api.create_file(filename="a.mp4", type="video", byte_size=-1))
    assert refused.value.problem["errors"][0]["pointer"] == "#/byte_size"


def test_a_server_that_is_none_of_ours_is_told_apart(client):
    def other(request):
        return httpx.Response(200, headers={"Content-Type": "text/html"}, text="<h1>Hello</h1>")

    with (
        Client("http://x", transport=httpx.MockTransport(other)) as one,
        pytest.raises(UnexpectedResponse, match="/api/v1/files"),
    ):
        one.send(api.list_files())


def test_a_creation_is_repeated_with_one_key():
    keys = []

    def broken_once(request):
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) == 1:
            raise httpx.ReadError("gone")
        body = {"id": "a", "status": "created"}
        return httpx.Response(201, json=body)

    with (
        Client("http://x", retries=QUICK, transport=httpx.MockTransport(broken_once)) as one,
        pytest.raises(UnexpectedResponse),
    ):
        one.send(api.create_render(html="x"))  # the record lacks most of its members
    assert len(keys) == 2
    assert len(set(keys)) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_refusal_for_now_is_tried_again(status):
    asked = []

    def busy_twice(request):
        asked.append(request.method)
        if len(asked) < 3:
            return httpx.Response(status, headers={"Retry-After": "0"}, json={"detail": "later"})
        return httpx.Response(200, json={"files": [], "next_cursor": None})

    with Client("http://x", retries=QUICK, transport=httpx.MockTransport(busy_twice)) as one:
        assert one.send(api.list_files()).files == ()
    assert len(asked) == 3


def test_retries_end():
    def always(request):
        return httpx.Response(429, json={"detail": "later"})

    with (
        Client("http://x", retries=QUICK, transport=httpx.MockTransport(always)) as one,
        pytest.raises(TooManyRequests, match="later"),
    ):
        one.send(api.list_files())
    with (
        Client("http://127.0.0.1:9", retries=QUICK, trust_env=False) as one,
        pytest.raises(ServiceUnreachable),
    ):
        one.send(api.list_files())


# ---- uploads and downloads ------------------------------------------------------------------


def test_a_network_that_breaks_costs_no_byte_twice_beyond_a_chunk(served, tmp_path):
    path = big(tmp_path)
    size, chunk = path.stat().st_size, 256 << 10
    seen = []
    with (
        breaking(served.address) as proxy,
        Client(proxy.url, served.key, retries=QUICK, trust_env=False) as one,
    ):
        proxy.up = 700_000
        record = one.push(path, chunk=chunk, progress=lambda done, size: seen.append((done, size)))
        assert proxy.breaks >= 4
        assert proxy.sent <= size + chunk * proxy.breaks
    assert record.next_byte == size
    assert seen[-1] == (size, size)
    assert record.md5.replace("-", "") == hashlib.md5(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("hash_first", [True, False])
def test_a_push_that_was_ended_is_continued(served, client, tmp_path, hash_first):
    path = big(tmp_path)
    size, chunk = path.stat().st_size, 512 << 10

    class Ended(Exception):
        pass

    def end(done, size):
        if done >= 2 * chunk:
            raise Ended

    with pytest.raises(Ended):
        client.push(path, chunk=chunk, progress=end)
    seen = []
    record = client.push(
        path, chunk=chunk, hash_first=hash_first, progress=lambda done, _: seen.append(done)
    )
    assert record.next_byte == size
    # known by its md5, it goes on; without it, it is another file
    assert seen[0] == (3 * chunk if hash_first else chunk)


def test_bytes_that_are_there_are_not_sent_again(served, client, tmp_path):
    path = big(tmp_path)
    first = client.push(path)
    with (
        breaking(served.address) as proxy,
        Client(proxy.url, served.key, trust_env=False) as one,
    ):
        assert one.push(path).id == first.id
        assert proxy.sent < 10_000


def test_a_file_that_becomes_shorter_is_named(client, tmp_path):
    path = big(tmp_path)

    def shorter(done, size):
        os.truncate(path, 10)

    with pytest.raises(SourceChanged, match="shorter"):
        client.push(path, chunk=100_000, progress=shorter)


def test_a_download_is_continued(served, tmp_path):
    source = FIXTURES / "frag-default-base.mp4"
    with Client(served.url, served.key, trust_env=False) as one:
        record = one.push(source)
        list(one.events(api.get_file_progress(record.id)))
        track = one.send(api.list_file_tracks(record.id)).isobmff_tracks[0]
        whole = one.send(api.download_file_track(record.id, track.track_id))
    seen = []
    with (
        breaking(served.address) as proxy,
        Client(proxy.url, served.key, retries=QUICK, trust_env=False) as one,
    ):
        proxy.down = len(whole) // 2
        size = one.download(
            api.download_file_track(record.id, track.track_id),
            tmp_path / "track.mp4",
            progress=lambda done, size: seen.append((done, size)),
        )
        assert proxy.breaks >= 1
    assert size == len(whole)
    assert (tmp_path / "track.mp4").read_bytes() == whole
    assert seen[-1] == (size, size)
    assert os.listdir(tmp_path) == ["track.mp4"]


def test_a_download_that_fails_leaves_what_was_there(client, tmp_path):
    path = tmp_path / "film.mp4"
    path.write_bytes(b"before")
    with pytest.raises(NotFound):
        client.download(api.download_render("none", "mp4"), path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["film.mp4"]


def test_what_was_pushed_is_waited_for_and_pulled(client, tmp_path):
    source = FIXTURES / "frag-default-base.mp4"
    sent = client.push(source)
    ready = client.wait(sent)
    assert (ready.id, ready.status) == (sent.id, "ready")
    assert client.wait(sent.id) == ready
    size = client.pull(sent.id, tmp_path / "film.mp4")
    assert (tmp_path / "film.mp4").stat().st_size == size
    kinds = [track.kind for track in fragdex.index(tmp_path / "film.mp4").tracks]
    assert kinds == [track.kind for track in fragdex.index(source).tracks]
    words = tmp_path / "words.vtt"
    words.write_text("WEBVTT\n\n00:00.000 --> 00:01.000\nword\n")
    client.pull(client.wait(client.push(words)), tmp_path / "again.vtt")
    assert (tmp_path / "again.vtt").read_bytes() == words.read_bytes()
    heard = client.transcribe(sent)
    assert heard.id != sent.id
    assert client.transcribe(sent.id, language="en").isobmff_track == heard.isobmff_track
    for id in {heard.id, client.transcribe(sent).id}:
        with contextlib.suppress(Conflict):  # it is complete
            client.send(api.cancel_transcription(id))


def test_what_failed_is_said_by_waiting(client, tmp_path):
    sent = client.push(big(tmp_path, 1000, "broken.mp4"))
    with pytest.raises(JobFailed):
        client.wait(sent)
    with pytest.raises(NotFound):
        client.wait("none")


class Stream(httpx.SyncByteStream):
    def __init__(self, data, *, breaks):
        self.data, self.breaks = data, breaks

    def __iter__(self):
        yield self.data
        if self.breaks:
            raise httpx.ReadError("gone")


def test_versions_are_never_mixed(tmp_path):
    asked = []

    def replaced(request):
        asked.append(request.headers.get("If-Range"))
        if len(asked) == 1:
            headers = {"ETag": '"a"', "Content-Length": "10"}
            return httpx.Response(200, headers=headers, stream=Stream(b"first", breaks=True))
        return httpx.Response(200, headers={"ETag": '"b"'}, stream=Stream(b"other", breaks=False))

    with (
        Client("http://x", retries=QUICK, transport=httpx.MockTransport(replaced)) as one,
        pytest.raises(SourceChanged),
    ):
        one.download(api.download_render("id", "mp4"), tmp_path / "a.mp4")
    assert asked == [None, '"a"']


# ---- events ---------------------------------------------------------------------------------


def test_events_are_continued_behind_the_last_one(served, tmp_path):
    with (
        breaking(served.address) as proxy,
        Client(proxy.url, served.key, retries=QUICK, trust_env=False) as one,
    ):
        record = one.push(FIXTURES / "faststart.mp4")
        proxy.down = 700  # the head of a response and a few events
        events = list(one.events(api.get_file_progress(record.id)))
    assert events[-1].event == "complete"
    progress = [one.data.progress for one in events if one.event == "progress"]
    assert progress == sorted(progress)


def test_a_job_that_fails_is_an_error(client, tmp_path):
    path = tmp_path / "broken.mp4"
    path.write_bytes(b"\0\0\0\x18ftypisom" + bytes(5000))
    record = client.push(path)
    with pytest.raises(JobFailed) as failed:
        list(client.events(api.get_file_progress(record.id)))
    assert failed.value.problem["status"] == 422
    assert client.send(api.get_file(record.id)).status == "failed"


def test_a_stream_that_never_answers_ends():
    def nothing(request):
        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, content=b"")

    with (
        Client("http://x", retries=QUICK, transport=httpx.MockTransport(nothing)) as one,
        pytest.raises(ServiceUnreachable),
    ):
        list(one.events(api.get_render_progress("id")))


# ---- asyncio --------------------------------------------------------------------------------


def test_the_same_is_awaited(served, tmp_path):
    path = big(tmp_path)

    async def story():
        with breaking(served.address) as proxy:
            proxy.up = 1_000_000
            async with AsyncClient(proxy.url, served.key, retries=QUICK, trust_env=False) as one:
                record = await one.push(path, chunk=256 << 10)
                proxy.up = None
                film = await one.push(FIXTURES / "frag-default-base.mp4")
                events = [e async for e in one.events(api.get_file_progress(film.id))]
                tracks = (await one.send(api.list_file_tracks(film.id))).isobmff_tracks
                size = await one.download(
                    api.download_file_track(film.id, tracks[0].track_id), tmp_path / "t.mp4"
                )
                assert (await one.wait(film)).status == "ready"
                assert await one.pull(film.id, tmp_path / "whole.mp4") >= size
                listed = [f.id async for p in one.pages(api.list_files(limit=1)) for f in p.files]
                assert proxy.breaks
        assert record.next_byte == path.stat().st_size
        assert events[-1].event == "complete"
        assert (tmp_path / "t.mp4").stat().st_size == size
        assert {record.id, film.id} <= set(listed)

    asyncio.run(story())


def test_two_senders_do_not_mix_bytes(served, client, tmp_path):
    path = big(tmp_path)

    async def both():
        async with AsyncClient(served.url, served.key, trust_env=False) as one:
            return await asyncio.gather(*(one.push(path, chunk=64 << 10) for _ in range(2)))

    first, second = asyncio.run(both())
    assert first.id == second.id
    assert first.next_byte == second.next_byte == path.stat().st_size


# ---- renders --------------------------------------------------------------------------------


def test_a_folder_is_packed_and_sent(client, tmp_path):
    site = tmp_path / "site"
    (site / "inner").mkdir(parents=True)
    (site / "index.html").write_text("<h1>Hello</h1>")
    (site / "inner" / "a.css").write_text("h1 { color: red }")
    (site / ".secret").write_text("no")
    record = client.render(site, width=64, height=64, fps=10, duration_ms=200)
    assert record.status in ("pending", "rendering", "complete")
    assert client.send(api.get_render(record.id)).id == record.id


def test_a_site_that_is_refused_leaves_no_render(client, tmp_path):
    broken = tmp_path / "site.zip"
    broken.write_bytes(b"PK no archive" * 100)
    before = {one.id for one in client.send(api.list_renders()).renders}
    with pytest.raises(client_room.InvalidRequest):
        client.render(broken, width=64, height=64)
    assert {one.id for one in client.send(api.list_renders()).renders} == before
