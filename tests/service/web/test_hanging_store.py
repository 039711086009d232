"""A store that takes connections and never answers holds up nothing but what asks it."""

import select
import socket
import threading
from contextlib import contextmanager

import pytest
from obstore.store import S3Store

from fragdex.service.isobmff.opened import OpenIndexes
from fragdex.service.store.objects import ObjectStore
from service.isobmff.conftest import FILM, index_json
from service.serving import API, serving
from service.working import announced, md5_of, uploaded

WEBVTT = b"WEBVTT\n\n00:00.000 --> 00:01.000\nhi\n"
THREADS = 4
ASKING = 60


class HangingStore:
    """A store that never answers; `asked` is set once `count` requests have come to it."""

    def __init__(self, count):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._held, self._count, self.asked = [], count, threading.Event()
        threading.Thread(target=self._take, daemon=True).start()
        self.address = "http://{}:{}".format(*self._listener.getsockname())

    def _take(self):
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            self._held.append(taken)
            if len(self._held) >= self._count:
                self.asked.set()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._held:
            one.close()


@contextmanager
def hanging(served, count):
    """Have the store of a service hang; it is the one that it was after that."""
    store, hung = served.context.store, HangingStore(count)
    bucket = S3Store(
        "bucket",
        endpoint=hung.address,
        region="us-east-1",
        skip_signature=True,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    plain, store.plain = store.plain, ObjectStore(bucket)
    try:
        yield hung
    finally:
        hung.close()
        store.plain = plain


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A service with few threads, and paths of its records."""
    with serving(tmp_path_factory.mktemp("hanging"), threads=THREADS) as served:
        client = served.client
        caption = uploaded(client, WEBVTT, "a.vtt", "caption_files")
        film = client.post(f"{API}/isobmff_files", json={"md5": md5_of(FILM), "filename": "a.mp4"})
        path = f"{API}/isobmff_files/{film.json()['id']}"
        track = {"file_id": film.json()["id"], "track_id": 1, "type": "video"}
        track["byte_size"] = len(FILM)
        assert client.post(f"{API}/isobmff_tracks", json=track).status_code == 201
        upload = f"{API}/isobmff_tracks/{track['file_id']}/1/upload"
        assert client.post(upload, content=FILM).status_code == 201
        assert client.post(f"{path}/index/upload", json=index_json()).status_code == 201
        assert client.get(f"{path}/seek?time_ms=0").status_code == 200
        yield served, f"{API}/caption_files/{caption['id']}", path


def sent(served, head, body=b""):
    """A connection on which a request was sent."""
    connection = socket.create_connection(served.address)
    fields = f"Host: a\r\nAuthorization: Bearer {served.key}\r\nContent-Length: {len(body)}"
    connection.sendall(f"{head} HTTP/1.1\r\n{fields}\r\n\r\n".encode() + body)
    return connection


@pytest.mark.parametrize("way", ["download", "captions", "index", "seek", "verified", "upload"])
def test_what_needs_no_store_is_answered_while_the_store_hangs(filled, way):
    served, caption, film = filled
    client = served.client
    requests = {
        "download": [(f"GET {caption}", b"")] * ASKING,
        "captions": [(f"GET {caption}.vtt", b"")] * ASKING,
        "index": [(f"GET {film}/index?format=arrow", b"")] * ASKING,
        "seek": [(f"GET {film}/seek?time_ms=2000&end_ms=3000", b"")] * ASKING,
        "verified": [(f"GET {film}/seek?time_ms=2000&verified=true", b"")] * ASKING,
        "upload": uploads(client, 2 * THREADS) if way == "upload" else [],
    }[way]
    others = ["/healthz", f"{API}/files", f"{API}/caption_files", f"{caption}.json"]
    if way in ("index", "seek"):
        served.context.part(OpenIndexes).close()
    else:  # what is open needs no store
        others += [film, f"{film}/seek?time_ms=2000&end_ms=3000"]
        assert client.get(others[-1]).status_code == 200
    # bytes that come are stored by two threads at least, whoever sends them
    with hanging(served, 2 if way == "upload" else THREADS) as hung:
        asking = [sent(served, head, body) for head, body in requests]
        try:
            assert hung.asked.wait(60)
            assert [client.get(path).status_code for path in others] == [200] * len(others)
            announced(client, b"y" * 9, f"{way}.mp4")
            assert select.select(asking, [], [], 0)[0] == []
        finally:
            for one in asking:
                one.close()


def uploads(client, count):
    """Requests that send the bytes of captions that are announced."""
    for number in range(count):
        record = announced(client, b"x" * (1000 + number), "a.vtt", "caption_files")
        yield f"POST {API}/caption_files/{record['id']}/upload", b"x" * (1000 + number)
