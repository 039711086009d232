"""Uploads outlive the process that receives them, and never mix."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from processes import (
    MIB,
    announced_track,
    emptied,
    md5_of,
    next_byte,
    noise,
    plain,
    send,
    span,
    until,
)

pytestmark = pytest.mark.slow

PIECE = 128 << 10


class Vanished(Exception):
    """The client's own end."""


class Held:
    """A client that sends part of a chunk, then nothing, until it is told to go on."""

    def __init__(self, site, client, path, data, start, stop, sent):
        self.going_on, self.is_sent = threading.Event(), threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self._vanished = False

        def pieces():
            yield from (data[at : min(at + PIECE, sent)] for at in range(start, sent, PIECE))
            self.is_sent.set()
            assert self.going_on.wait(120)
            if self._vanished:
                raise Vanished
            yield data[sent:stop]

        self.answer = self._pool.submit(
            client.post,
            f"{path}/upload",
            content=pieces(),
            headers={**span(start, stop, len(data)), "Content-Length": str(stop - start)},
        )
        assert self.is_sent.wait(120)
        until(lambda: site.receives(path))

    def go_on(self):
        self.going_on.set()
        try:
            return self.answer.result(120)
        except (httpx.TransportError, Vanished):
            return None
        finally:
            self._pool.shutdown()

    def vanish(self):
        """The connection ends in the middle: less was sent than its head told."""
        self._vanished = True
        assert self.go_on() is None


def test_an_upload_goes_on_after_kill_9(site):
    data = noise(12 * MIB)
    serving = site.serve(job_workers=0)
    with site.client(serving) as client:
        path = announced_track(client, data)
        assert next_byte(client, path) == 0
        send(client, path, data, 0, 4 * MIB)
    serving.kill()  # between two chunks

    serving = site.serve(job_workers=0)
    with site.client(serving) as client:
        assert next_byte(client, path) == 4 * MIB
        held = Held(site, client, path, data, 4 * MIB, 8 * MIB, 6 * MIB)
        serving.kill()  # within one
        assert held.go_on() is None

    serving = site.serve(job_workers=0)
    with site.client(serving) as client:
        offset = next_byte(client, path)
        assert 4 * MIB <= offset <= 6 * MIB
        send(client, path, data, 0, 5 * MIB)  # a client that knows no better: passed over
        assert next_byte(client, path) == max(offset, 5 * MIB)
        assert send(client, path, data, 5 * MIB, 12 * MIB)["complete"]
        track = client.get(f"{path}/upload").json()
        assert plain(track["md5"]) == md5_of(data)
        assert client.get(path).content == data
        emptied(site, client)


def test_of_two_live_uploaders_one_is_told_to_wait(site):
    data = noise(3 * MIB)
    serving = site.serve(job_workers=0)
    with site.client(serving) as first, site.client(serving) as second:
        path = announced_track(first, data)
        held = Held(site, first, path, data, 0, len(data), MIB)
        other = {"content": bytes(len(data)), "headers": span(0, len(data), len(data))}
        refused = second.post(f"{path}/upload", **other)
        assert refused.status_code == 409
        assert refused.json()["next_byte"] == 0
        assert int(refused.headers["retry-after"]) >= 1
        assert held.go_on().status_code == 201
        assert first.get(path).content == data

        # Who only goes away gives back at once what he held, and what he sent stays.
        path = announced_track(first, data, track_id=2)
        with site.client(serving) as gone:
            leaving = Held(site, gone, path, data, 0, len(data), MIB)
            assert second.post(f"{path}/upload", **other).status_code == 409
            leaving.vanish()
        until(lambda: next_byte(second, path) == MIB)
        assert send(second, path, data, MIB, len(data))["complete"]
        assert second.get(path).content == data


def test_an_uploader_that_froze_loses_its_place_and_spoils_nothing(site):
    """Two processes serve; one sleeps with half a chunk, and wakes when all is done."""
    data = noise(4 * MIB)
    sleeper, other = site.serve(job_workers=0), site.serve(job_workers=0)
    with site.client(sleeper) as first, site.client(other) as second:
        path = announced_track(second, data)
        wrong = data[: 2 * MIB] + bytes(2 * MIB)
        held = Held(site, first, path, wrong, 0, len(data), 3 * MIB)
        sleeper.freeze()
        assert send(second, path, data, 0, len(data))["complete"]
        sleeper.thaw()
        answer = held.go_on()
        # It came too late: told so, or that the upload is complete without it.
        assert answer is None or answer.status_code in (201, 409), answer.text
        for client in (first, second):
            assert client.get(path).content == data
        emptied(site, second)


def test_fifty_uploads_at_once(site):
    serving = site.serve(job_workers=0)
    with site.client(serving) as client:

        def uploaded(seed):
            data = noise(MIB, seed)
            path = announced_track(client, data)
            answer = client.post(f"{path}/upload", content=data)
            assert answer.status_code == 201, answer.text
            return answer.json()["complete"] and client.get(path).content == data

        with ThreadPoolExecutor(50) as pool:
            assert all(pool.map(uploaded, range(50)))
        emptied(site, client)
