"""URL tokens: they reach no log of a running process, and end when they say."""

import logging
import sys
import time

import httpx
import jwt
import pytest

from fragdex.service.logs import SafeFormatter
from fragdex.service.records import tables
from fragdex.service.records.identifiers import instant, new_id
from service.serving import API, client_of, serving
from service.survival.processes import Site
from service.web.conftest import BYTES as DATA
from service.web.conftest import KEY, router

BYTES = f"{API}/test/bytes"


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path, router) as one:
        one.context.store.write(KEY, [DATA])
        yield one


class Clock:
    """The clock of who looks at tokens, set ahead by a test instead of waited for."""

    ahead = 0.0
    monotonic = staticmethod(time.monotonic)

    def time(self):
        return time.time() + self.ahead


@pytest.fixture
def clock(monkeypatch):
    one = Clock()
    monkeypatch.setattr("fragdex.service.web.auth.time", one)
    return one


def token_that(served, **claims):
    """A token of this service for the routes of these tests, with claims of the test's own."""
    signed = served.client.post("/api/v1/url-token", json={"url": "/api/v1/test"}).json()["token"]
    known = jwt.decode(signed, options={"verify_signature": False})
    secret = served.app.state.authenticator.signing_secret()
    return jwt.encode({**known, **claims}, secret, "HS256")


def read_on(pieces, into):
    """Read a stream to its end, which comes before its first heartbeat."""
    for piece in pieces:
        into.append(piece)
        assert b"heartbeat" not in piece, "it goes on"


def test_no_log_of_a_process_shows_a_token_or_a_key(tmp_path):
    site = Site(tmp_path)
    try:
        # debug: the server's own modules write what they can
        child = site.serve(access_log="true", log_level="debug", job_workers=0)
        key = site.key
        with client_of(child.url) as client:
            bearer = {"Authorization": f"Bearer {key}"}
            path = f"{API}/files"
            asked = client.post(f"{API}/url-token", json={"url": path}, headers=bearer)
            token = asked.json()["token"]
            encoded = "".join(f"%{ord(letter):02X}" for letter in token)
            answers = [
                client.get(f"{path}?token={token}"),
                client.get(f"{path}?limit=x&token={token}"),
                client.get(f"{path}?%74oken={encoded}&limit=1"),
                client.get(f"{path}?token={key}"),
                client.get(f"{path}/{new_id()}?token={token}"),
                client.get(f"/api/v1/nowhere/{token}?token={token}"),
                client.get(f"/api/v1/image_files?token={token}"),
                client.delete(f"{path}/1?token={token}"),
            ]
            assert [one.status_code for one in answers] == [200, 422, 200, 401, 404, 404, 403, 403]
            # problems say nothing of it either, and no page that is linked to is told it
            for answer in answers:
                assert token not in answer.text
                assert key not in answer.text
                assert answer.headers["referrer-policy"] == "no-referrer"
            # a fault, with its traceback
            with site.database.write() as connection:
                connection.exec_driver_sql("DROP TABLE fragdex_files")
            assert client.get(f"{path}?token={token}").status_code == 500
        child.end()
        log = child.log.read_text()
        assert f"GET {path}?token=*** 200" in log, "requests are logged"
        assert "limit=1" in log, "the rest of a query is logged"
        for part in (token, token.rsplit(".", 1)[1], encoded, key.split("_")[1]):
            assert part not in log
    finally:
        site.close()


def test_a_traceback_masks_what_it_quotes():
    token = jwt.encode({"exp": 1}, "a secret of thirty-two characters", "HS256")
    message = f"GET /a?x=1&token={token} with Bearer ef_5ecret_{new_id()}"
    try:
        raise RuntimeError(message)
    except RuntimeError:
        record = logging.makeLogRecord(
            {"msg": "fault at %s", "args": (f"?token={token}#a",), "exc_info": sys.exc_info()}
        )
    text = SafeFormatter("%(message)s").format(record)
    assert "RuntimeError: GET /a?x=1&token=*** with Bearer ***" in text
    assert "fault at ?token=***" in text
    assert token not in text
    assert "5ecret" not in text


def test_a_token_that_is_remembered_ends_when_it_says(served, clock):
    # the service remembers for seconds whom it let in
    token = token_that(served, exp=int(time.time()) + 3600)
    with client_of(served.url, token) as client:
        assert client.get(BYTES).status_code == 200
        clock.ahead = 3600
        assert client.get(BYTES).status_code == 401
    answer = served.anyone.get(f"{BYTES}?token={token}")
    assert answer.status_code == 401
    assert "over" in answer.json()["detail"]


def test_a_token_of_a_machine_whose_clock_is_ahead_opens_at_once(served):
    ahead = int(time.time()) + 3
    token = token_that(served, iat=ahead, exp=ahead + 3600)
    with client_of(served.url, token) as client:
        assert client.get(BYTES).status_code == 200


def test_a_stream_of_events_ends_with_its_token(served):
    # long enough for a busy machine to begin the stream
    token = token_that(served, exp=int(time.time()) + 6)
    end = jwt.decode(token, options={"verify_signature": False})["exp"]
    got = []
    with served.anyone.stream("GET", f"{API}/test/events/endless?token={token}") as answer:
        assert answer.status_code == 200
        # broken off, with neither `complete` nor `error`: nothing is said of the record
        with pytest.raises(httpx.RemoteProtocolError):
            read_on(answer.iter_raw(), got)
    assert time.time() >= end
    text = b"".join(got)
    assert b"completion" in text
    assert b"event: error" not in text
    assert b"event: complete\n" not in text
    again = served.anyone.get(f"{API}/test/events/endless?token={token}")
    assert again.status_code == 401


def test_a_download_that_began_in_time_is_sent_to_its_end(served, clock):
    token = token_that(served, exp=int(time.time()) + 3600)
    with served.anyone.stream("GET", f"{BYTES}?token={token}") as answer:
        pieces = answer.iter_raw(4096)
        got = [next(pieces)]
        clock.ahead = 3600
        got += pieces
    assert b"".join(got) == DATA
    # each request is looked at for itself: the next range is not sent
    asked = {"Range": "bytes=0-1"}
    assert served.anyone.get(f"{BYTES}?token={token}", headers=asked).status_code == 401


def test_a_stream_of_events_ends_with_its_key(served, monkeypatch):
    monkeypatch.setattr("fragdex.service.web.auth.REMEMBER_SECONDS", 0)
    monkeypatch.setattr("fragdex.service.web.events.ASK_AGAIN_SECONDS", 0.1)
    with served.stranger.stream("GET", f"{API}/test/events/endless") as answer:
        pieces = answer.iter_raw()
        next(pieces)
        with served.context.database.write() as connection:
            connection.execute(tables.keys.update().values(revoked_at=instant()))
        with pytest.raises(httpx.RemoteProtocolError):
            read_on(pieces, [])
