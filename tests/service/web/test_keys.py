"""Keys are administered over HTTP by a key of their tenant; what is kept gives none away."""

import logging
import re
import threading

import pytest
import sqlalchemy as sa

from fragdex.service.records import keys, tables
from fragdex.service.records.keys import KeyUses
from service.serving import API, client_of
from service.web.conftest import web_service

KEYS = f"{API}/keys"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(request, tmp_path_factory):
    """The service with the routes of these tests, over each kind of database in turn."""
    with web_service(request.param, request, tmp_path_factory) as served:
        yield served


def status(server, key):
    with client_of(server.url, key) as client:
        return client.get(f"{API}/usage").status_code


def made(client, **new):
    answer = client.post(KEYS, json=new)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_key_is_shown_once_and_opens_what_its_scope_says(server, caplog):
    caplog.set_level(logging.INFO, "fragdex.audit")
    new = {"name": "the web site", "scope": "read", "expires_at": "2099-01-01T00:00:00Z"}
    sent = {"Idempotency-Key": "one"}
    answer = server.client.post(KEYS, json=new, headers=sent)
    key = answer.json()
    again = server.client.post(KEYS, json=new, headers=sent)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    assert again.json() == key
    assert again.headers["location"] == answer.headers["location"]
    assert re.fullmatch(r"(ef_[^_]+)_(.+)", key["key"])[2] == key["id"]
    shown_key = server.client.get(answer.headers["location"]).json()
    assert shown_key == {name: value for name, value in key.items() if name != "key"}
    assert (shown_key["name"], shown_key["scope"], shown_key["status"]) == (
        "the web site",
        "read",
        "valid",
    )
    assert shown_key["expires_at"] == "2099-01-01T00:00:00.000Z"
    assert shown_key["last_used_at"] is None
    assert status(server, key["key"]) == 200
    rotated = server.client.post(f"{KEYS}/{key['id']}/rotate", json={"previous_seconds": 0})
    assert rotated.json()["id"] == key["id"]
    assert status(server, rotated.json()["key"]) == 200
    assert server.client.delete(f"{KEYS}/{key['id']}").status_code == 204
    assert server.client.get(f"{KEYS}/{key['id']}").json()["status"] == "revoked"
    with pytest.raises(keys.Unauthenticated):
        keys.find_key(server.context.database, rotated.json()["key"])
    secrets = {key["key"].split("_")[1], rotated.json()["key"].split("_")[1]}
    assert len(secrets) == 2
    with server.context.database.read() as connection:
        stored = repr([connection.execute(sa.select(one)).all() for one in
                       (tables.keys, tables.replays)])  # fmt: skip
    listed = server.client.get(KEYS).text
    for secret in secrets:
        assert secret not in stored + listed + caplog.text
    asked = server.key.rpartition("_")[2]
    lines = [record.fields for record in caplog.records if record.name == "fragdex.audit"]
    assert [line["action"] for line in lines] == ["key.create", "key.rotate", "key.revoke"]
    assert {(line["event"], line["tenant"], line["key"]) for line in lines} == {
        ("audit", server.tenant, asked)
    }
    assert [line["object"] for line in lines] == [key["id"]] * 3


def test_a_key_is_given_again_to_who_asked_for_it_as_long_as_it_opens(server):
    """No secret is stored: it comes of the bearer and of the Idempotency-Key."""
    other = made(server.client, scope="admin")["key"]
    sent = {"Idempotency-Key": "again"}
    first = server.client.post(KEYS, json={}, headers=sent).json()
    assert server.client.post(KEYS, json={"name": "b"}, headers=sent).status_code == 422
    with client_of(server.url, other) as stranger:
        refused = stranger.post(KEYS, json={}, headers=sent)
        assert (refused.status_code, refused.json()["id"]) == (409, first["id"])
        theirs = stranger.post(KEYS, json={}, headers={"Idempotency-Key": "theirs"}).json()
    assert theirs["key"] != first["key"]
    assert server.client.post(KEYS, json={}, headers=sent).json() == first
    server.client.post(f"{KEYS}/{first['id']}/rotate", json={"previous_seconds": 0})
    refused = server.client.post(KEYS, json={}, headers=sent)
    assert refused.status_code == 409
    assert "rotate" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("new", "pointer"),
    [
        ({"scope": "all"}, "#/scope"),
        ({"expires_at": "2001-01-01T00:00:00Z"}, "#/expires_at"),
        ({"name": "\0"}, "#/name"),
    ],
)
def test_what_is_no_key_is_422(server, new, pointer):
    answer = server.client.post(KEYS, json=new)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


def test_the_last_key_for_administration_stays_though_two_end_each_other(server):
    database = server.context.database
    first, second = (keys.create_key(database, "two", scope=keys.ADMIN) for _ in range(2))
    made_of = [key.rpartition("_")[2] for key in (first, second)]
    together, answers = threading.Barrier(2), []

    def revoke(own, other):
        with client_of(server.url, own) as client:
            client.get(KEYS)
            together.wait(30)
            answers.append(client.delete(f"{KEYS}/{other}"))

    threads = [
        threading.Thread(target=revoke, args=(first, made_of[1])),
        threading.Thread(target=revoke, args=(second, made_of[0])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) in ([204, 409], [204, 401])
    left = [key for key in (first, second) if _opens(database, key)]
    assert len(left) == 1
    with client_of(server.url, left[0]) as client:
        made(client)  # another one, which administers nothing
        refused = client.delete(f"{KEYS}/{left[0].rpartition('_')[2]}")
        assert refused.status_code == 409
        assert "create another one first" in refused.json()["detail"]


def _opens(database, key):
    try:
        return keys.find_key(database, key)
    except keys.Unauthenticated:
        return None


def test_a_tenant_has_a_number_of_keys_at_most(server, monkeypatch):
    key = keys.create_key(server.context.database, "many", scope=keys.ADMIN)
    monkeypatch.setattr(keys, "MOST_KEYS", 3)
    with client_of(server.url, key) as client:
        first = made(client)["id"]
        made(client)
        refused = client.post(KEYS, json={})
        assert (refused.status_code, refused.json()["limit"]) == (409, 3)
        client.delete(f"{KEYS}/{first}")
        made(client)
        page = client.get(KEYS, params={"limit": 2}).json()
        rest = client.get(KEYS, params={"cursor": page["next_cursor"]}).json()
        ids = [one["id"] for one in page["keys"] + rest["keys"]]
        assert len(set(ids)) == 4
        assert ids == sorted(ids, reverse=True)


def test_when_a_key_was_used_is_written_now_and_then(server):
    database, uses = server.context.database, server.context.part(KeyUses)
    one, other = made(server.client), made(server.client)
    writes = []
    sa.event.listen(
        database.engine, "before_cursor_execute", lambda *arguments: writes.append(arguments[2])
    )
    assert status(server, one["key"]) == status(server, one["key"]) == 200
    assert not any("last_used_at" in text for text in writes if text.startswith("UPDATE"))
    with client_of(server.url, other["key"]) as client:
        token = client.post(f"{API}/url-token", json={"url": f"{API}/usage"}).json()["token"]
    uses.close()
    assert status(server, token) == 200
    uses.note(one["id"])
    uses.write(database)
    for key in (one, other):
        record = server.client.get(f"{KEYS}/{key['id']}").json()
        assert record["last_used_at"] >= record["created_at"]
