"""Keys open their tenant and nothing else; nothing that is stored gives them away."""

import hmac
import re
import threading
from datetime import timedelta

import pytest
import sqlalchemy as sa

from fragdex.errors import InvalidRequest, RecordNotFound, Unauthenticated
from fragdex.service.records import keys, tables
from fragdex.service.records.database import Database
from fragdex.service.records.identifiers import instant
from fragdex.service.records.keys import list_keys

# what published clients insist on
PUBLISHED = re.compile(r"^(ef_[^_]+)_(.+)$")


def everything_stored(database):
    with database.read() as connection:
        return repr([connection.execute(sa.select(table)).all() for table in (tables.keys,)])


def test_a_key_opens_its_tenant(database):
    bearer = keys.create_key(database, "museum", name="the web site")
    other = keys.create_key(database, "theatre")
    own_key = keys.find_key(database, bearer)
    assert PUBLISHED.fullmatch(bearer)[2] == own_key.id
    listed = {key.id: key for key in list_keys(database)}
    assert listed[own_key.id].tenant_name == "museum"
    assert listed[own_key.id].name == "the web site"
    assert keys.find_key(database, other).tenant_id != own_key.tenant_id
    again = keys.create_key(database, "museum")
    assert keys.find_key(database, again).tenant_id == own_key.tenant_id


def test_keys_that_ended_long_ago_are_forgotten(database):
    """Not those that open something, nor those that somebody may still ask after."""
    now = instant()
    valid, ends, expired, revoked = (
        keys.create_key(database, name=name, expires_at=at)
        for name, at in (
            ("valid", None),
            ("ends", now + timedelta(days=60)),
            ("expired", now - timedelta(days=1)),
            ("revoked", None),
        )
    )
    keys.revoke_key(database, revoked.rpartition("_")[2])
    assert keys.forget_ended(database, now - timedelta(days=2)) == []
    tenant = keys.find_key(database, valid).tenant_id
    gone = {(tenant, one.rpartition("_")[2]) for one in (expired, revoked)}
    assert set(keys.forget_ended(database, now + timedelta(days=30))) == gone
    assert keys.forget_ended(database, now + timedelta(days=30)) == []
    assert {key.name for key in list_keys(database)} == {"valid", "ends"}
    assert keys.find_key(database, ends).tenant_id == tenant
    with pytest.raises(Unauthenticated):
        keys.find_key(database, revoked)


def test_only_a_hash_of_the_secret_is_stored(database):
    bearer = keys.create_key(database)
    secret = bearer.split("_")[1]
    assert len(bytes.fromhex(secret)) == 32
    stored = everything_stored(database)
    assert secret not in stored
    assert repr(bytes.fromhex(secret)) not in stored


def test_what_is_no_key_opens_nothing(database):
    bearer = keys.create_key(database)
    _, secret, key_id = bearer.split("_")
    other_id = keys.create_key(database).split("_")[2]
    wrong = [
        "",
        "ef__",
        secret,
        key_id,
        f"ef_{secret}",
        f"ef_{'0' * 64}_{key_id}",
        f"ef_{secret}_{other_id}",
        f"ef_{secret[:-1]}_{key_id}",
        f"ef_{secret}_{'0' * 36}",
        f"{bearer} ",
        bearer.upper(),
        f"ef_{secret}_{key_id}' OR 1=1",
        f"ef_\N{ARABIC-INDIC DIGIT ONE}_{key_id}",
        "ef_" + "a" * 100_000 + "_" + key_id,
    ]
    for text in wrong:
        with pytest.raises(Unauthenticated):
            keys.find_key(database, text)
    keys.find_key(database, bearer)


def test_a_revoked_key_opens_nothing(database):
    bearer = keys.create_key(database)
    key = keys.find_key(database, bearer)
    assert keys.has_keys(database)
    keys.create_key(database, expires_at=instant())
    keys.revoke_key(database, key.id)
    first = list_keys(database)[0].revoked_at
    keys.revoke_key(database, key.id)
    assert list_keys(database)[0].revoked_at == first is not None
    assert not keys.has_keys(database), "one is revoked, one has expired"
    with pytest.raises(Unauthenticated):
        keys.find_key(database, bearer)
    with pytest.raises(RecordNotFound):
        keys.revoke_key(database, "no such key")


def test_a_rotated_key_opens_with_both_secrets_until_the_grace_is_over(database):
    first = keys.create_key(database, scope=keys.READ)
    key = keys.find_key(database, first)
    second = keys.rotate_key(database, key.id)
    assert second != first
    second_key = keys.find_key(database, second)
    assert (second_key.id, second_key.tenant_id, second_key.scope) == (
        key.id,
        key.tenant_id,
        keys.READ,
    )
    assert second_key.ends == key.ends, "the new one has no end"
    ends = keys.find_key(database, first).ends - instant().timestamp()
    assert 86_000 < ends <= 86_400
    third = keys.rotate_key(database, key.id, timedelta(0))
    for over in (first, second):
        with pytest.raises(Unauthenticated):
            keys.find_key(database, over)
    assert keys.find_key(database, third).id == key.id
    keys.revoke_key(database, key.id)
    with pytest.raises(RecordNotFound):
        keys.rotate_key(database, key.id)
    with pytest.raises(RecordNotFound):
        keys.rotate_key(database, "no such key")


def test_an_expired_key_opens_nothing_with_any_secret(sqlite_database):
    now = instant()
    over = keys.create_key(sqlite_database, expires_at=now)
    soon = keys.create_key(sqlite_database, expires_at=now + timedelta(hours=1))
    again = keys.rotate_key(sqlite_database, soon.split("_")[2])
    for bearer in (soon, again):
        assert keys.find_key(sqlite_database, bearer).ends == (now + timedelta(hours=1)).timestamp()
    with pytest.raises(Unauthenticated, match="over"):
        keys.find_key(sqlite_database, over)
    with pytest.raises(InvalidRequest, match="read or write or admin"):
        keys.create_key(sqlite_database, scope="all")


def test_secrets_are_compared_in_constant_time(database, monkeypatch):
    """An unknown id, a wrong secret and a right one all take the same comparison."""
    bearer = keys.create_key(database)
    _, secret, key_id = bearer.split("_")
    compared = []

    def compare(first, second):
        compared.append((len(first), len(second)))
        return hmac.compare_digest(first, second)

    class Watched:
        new, compare_digest = staticmethod(hmac.new), staticmethod(compare)

    monkeypatch.setattr(keys, "hmac", Watched)
    keys.find_key(database, bearer)
    for text in (f"ef_{'0' * 64}_{key_id}", f"ef_{secret}_{'0' * 36}"):
        with pytest.raises(Unauthenticated):
            keys.find_key(database, text)
    assert compared == [(32, 32)] * 6, "the secret, and the one before"


def test_secrets_are_made_once(database):
    """Processes that start at the same moment sign with the same secret."""
    url = database.url.render_as_string(hide_password=False)
    others = [Database(url) for _ in range(4)]
    secrets = []
    threads = [
        threading.Thread(target=lambda other=other: secrets.append(keys.secret(other, "tokens")))
        for other in others
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in others:
        other.close()
    assert len(secrets) == 4
    assert len(set(secrets)) == 1
    assert len(secrets[0]) == 32
    assert keys.secret(database, "tokens") == secrets[0] != keys.secret(database, "others")


def test_keys_of_another_installation_open_nothing(sqlite_database, tmp_path):
    from fragdex.service.records.migrations import upgrade

    bearer = keys.create_key(sqlite_database)
    other = Database(f"sqlite:///{tmp_path / 'other.db'}")
    upgrade(other)
    keys.create_key(other)
    with pytest.raises(Unauthenticated):
        keys.find_key(other, bearer)
    other.close()
