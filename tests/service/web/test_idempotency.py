"""The same Idempotency-Key and body: the same answer; another body: 422."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa

from fragdex.errors import Unavailable
from fragdex.service.records.tables import replays
from fragdex.service.web import idempotency
from service.serving import client_of
from service.web.conftest import web_service

THINGS = "/api/v1/test/things"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(request, tmp_path_factory):
    """The service with the routes of these tests, over each kind of database in turn."""
    with web_service(request.param, request, tmp_path_factory) as served:
        yield served


def post(client, key, body, path=THINGS):
    return client.post(path, json=body, headers={"Idempotency-Key": key})


def test_POST_again_gives_the_first_answer(client):
    first = post(client, "again", {"name": "a"})
    second = post(client, "again", {"name": "a"})
    assert first.status_code == second.status_code == 201
    assert first.content == second.content
    assert second.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert first.headers["content-type"] == second.headers["content-type"]
    assert post(client, "once more", {"name": "a"}).json() != first.json()


def test_POST_of_something_else_is_422(client):
    post(client, "other", {"name": "a"})
    answer = post(client, "other", {"name": "b"})
    assert answer.status_code == 422
    assert answer.json()["type"].endswith("idempotency-mismatch")


def test_a_key_belongs_to_its_tenant(server):
    ours = post(server.client, "shared", {"name": "a"}).json()
    theirs = post(server.stranger, "shared", {"name": "b"})
    assert theirs.status_code == 201
    assert theirs.json()["tenant"] != ours["tenant"]


def test_a_refused_POST_can_be_put_right(client):
    assert post(client, "right", {"name": "bad"}).status_code == 422
    assert post(client, "right", {"name": 1}).status_code == 422
    assert post(client, "right", {"name": "good"}).status_code == 201


def test_POST_while_the_first_one_runs_is_409(server):
    def one(_):
        with client_of(server.url, server.key) as client:
            return post(client, "slow", None, "/api/v1/test/slow")

    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(one, range(3)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409]
    assert all("retry-after" in answer.headers for answer in answers if answer.status_code == 409)
    again = post(server.client, "slow", None, "/api/v1/test/slow")
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")


def test_a_first_request_whose_process_died_is_taken_over(server):
    post(server.client, "dead", {"name": "a"})
    row = replays.update().where(replays.c.key == "dead")
    with server.context.database.write() as connection:
        now = server.context.database.now(connection)
        connection.execute(row.values(status=None, alive_until=now + timedelta(seconds=30)))
    assert post(server.client, "dead", {"name": "a"}).status_code == 409
    with server.context.database.write() as connection:
        connection.execute(row.values(alive_until=now - timedelta(seconds=1)))
    assert post(server.client, "dead", {"name": "a"}).status_code == 201


def test_a_first_request_that_met_an_outage_is_answered_again_at_once(server, monkeypatch):
    """The database was away when the claim was to be dropped."""
    database, write, begun = type(server.context.database), type(server.context.database).write, []

    def away(self, **how):
        begun.append(None)
        if len(begun) > 1:  # the claim is written, and nothing after it
            raise Unavailable("the database does not answer", retry_after=1)
        return write(self, **how)

    with monkeypatch.context() as outage:
        outage.setattr(database, "write", away)
        assert post(server.client, "outage", {"name": "bad"}).status_code == 422
    assert len(begun) == 2
    assert post(server.client, "outage", {"name": "bad"}).status_code == 422


def test_a_claim_is_taken_by_nobody_while_its_request_runs(server):
    """However long ago its process could say so last: the database may have been away."""
    with ThreadPoolExecutor(1) as threads, client_of(server.url, server.key) as other:
        first = threads.submit(post, other, "long", None, "/api/v1/test/slow")
        with server.context.database.read() as connection:
            while (
                connection.scalar(sa.select(replays.c.key).where(replays.c.key == "long")) is None
            ):
                connection.rollback()
        with server.context.database.write() as connection:
            row = replays.update().where(replays.c.key == "long")
            connection.execute(row.values(alive_until=None))
        assert post(server.client, "long", None, "/api/v1/test/slow").status_code == 409
        assert first.result().status_code == 201


def test_old_answers_are_forgotten(server):
    post(server.client, "old", {"name": "a"})
    with server.context.database.write() as connection:
        now = server.context.database.now(connection)
        day = replays.update().where(replays.c.key == "old")
        connection.execute(day.values(created_at=now - timedelta(hours=25)))
    assert idempotency.forget(server.context) == 1
    with server.context.database.read() as connection:
        assert connection.execute(sa.select(replays).where(replays.c.key == "old")).first() is None


def test_a_key_without_end_is_422(client):
    assert post(client, "x" * 300, {"name": "a"}).status_code == 422


def test_without_a_bearer_nothing_is_kept(server):
    assert post(server.anyone, "nobody", {"name": "a"}).status_code == 401
