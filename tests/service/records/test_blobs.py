"""Bytes live exactly as long as a record uses them, whatever happens in between."""

import hashlib
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from fragdex import ByteRange
from fragdex.errors import SourceNotFound, Unavailable
from fragdex.service.records import blobs, deletion, tables, trash
from fragdex.service.records.database import Database
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.store.disk import DiskStore

CONTENTS = [b"", b"one", b"another", b"third" * 1000]
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def md5(content):
    return hashlib.md5(content).digest()


def sha256(content):
    return hashlib.sha256(content).digest()


@pytest.fixture
def store(tmp_path):
    return DiskStore(tmp_path / "store")


@pytest.fixture
def tenants(database):
    return [new_tenant(database) for _ in range(2)]


def new_tenant(database):
    with database.write() as connection:
        tenant_id = new_id()
        row = {"id": tenant_id, "name": tenant_id, "created_at": instant()}
        connection.execute(tables.tenants.insert().values(**row))
    return tenant_id


def expect(database, tenant, content):
    with database.write() as connection:
        return blobs.expect(connection, tenant, sha256(content))


def keep(database, tenant, content, record, key, family="images"):
    with database.write() as connection:
        digests = md5(content), sha256(content)
        blobs.keep(connection, tenant, *digests, len(content), family, record, key)


def put(database, store, tenant, content, record, family="images"):
    key = expect(database, tenant, content)
    store.write(key, [content])
    keep(database, tenant, content, record, key, family)
    return key


def let_all_be_due(database):
    with database.write() as connection:
        connection.execute(tables.trash.update().values(delete_after=LONG_AGO))
        begun = tables.trash.c.deleting_at.is_not(None)
        connection.execute(tables.trash.update().where(begun).values(deleting_at=LONG_AGO))


def rows(database, table):
    with database.read() as connection:
        return connection.execute(sa.select(table)).all()


def machine(database, store, tenants):
    """Records that take and release bytes, with a crash after any step."""
    contents = st.sampled_from(CONTENTS)
    owners = st.sampled_from(tenants)
    records = st.sampled_from(["a", "b", "c"])

    class Life(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.uses = {}  # (tenant, content) → records

        @rule(tenant=owners, content=contents, record=records)
        def comes(self, tenant, content, record):
            put(database, store, tenant, content, record)
            self.uses.setdefault((tenant, content), set()).add(record)

        @rule(tenant=owners, content=contents)
        def dies_before_writing(self, tenant, content):
            expect(database, tenant, content)

        @rule(tenant=owners, content=contents)
        def dies_before_keeping(self, tenant, content):
            store.write(expect(database, tenant, content), [content])

        @rule(tenant=owners, content=contents, record=records)
        def is_late(self, tenant, content, record):
            """The sweep came between writing and keeping: the record is not made."""
            key = expect(database, tenant, content)
            store.write(key, [content])
            self.due_and_swept()
            if self.uses.get((tenant, content)):
                keep(database, tenant, content, record, key)
                self.uses[tenant, content].add(record)
            else:
                with pytest.raises(Unavailable):
                    keep(database, tenant, content, record, key)

        @rule(record=records)
        def goes(self, record):
            with database.write() as connection:
                blobs.release(connection, "images", record)
            for users in self.uses.values():
                users.discard(record)

        @rule()
        def swept(self):
            blobs.sweep(database, store)

        @rule()
        def due_and_swept(self):
            for _ in range(2):  # an object is deleted once more, and then forgotten
                let_all_be_due(database)
                blobs.sweep(database, store)
            assert set(store.keys()) == {row.store_key for row in rows(database, tables.blobs)}
            assert rows(database, tables.trash) == []

        @invariant()
        def bytes_live_while_a_record_uses_them(self):
            used = {key: users for key, users in self.uses.items() if users}
            kept = rows(database, tables.blobs)
            blob_rows = {(row.tenant_id, bytes(row.md5)): row for row in kept}
            assert blob_rows.keys() == {(tenant, md5(content)) for tenant, content in used}
            for tenant, content in used:
                key = blob_rows[tenant, md5(content)].store_key
                read = store.read(key, ByteRange(0, len(content)))
                assert b"".join(read) == content
            uses = {(row.tenant_id, bytes(row.sha256), row.record_id) for row in self.use_rows()}
            assert uses == {
                (tenant, sha256(content), record)
                for (tenant, content), users in used.items()
                for record in users
            }

        @invariant()
        def what_no_record_names_is_in_the_trash(self):
            named = {row.store_key for row in rows(database, tables.blobs)}
            waiting = {row.store_key for row in rows(database, tables.trash)}
            assert set(store.keys()) <= named | waiting

        def use_rows(self):
            return rows(database, tables.blob_uses)

        def teardown(self):
            with database.write() as connection:
                for record in ("a", "b", "c"):
                    blobs.release(connection, "images", record)
            let_all_be_due(database)
            blobs.sweep(database, store)
            assert list(store.keys()) == []

    return Life


def test_bytes_live_as_long_as_a_record_uses_them(database, store, tenants):
    run_state_machine_as_test(
        machine(database, store, tenants),
        settings=settings(
            max_examples=settings.default.max_examples // 4,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_same_bytes_are_kept_once_a_tenant(database, store, tenants):
    for tenant in tenants:
        for record in ("a", "b"):
            put(database, store, tenant, b"same", f"{tenant[-8:]}{record}")
    assert len(rows(database, tables.blobs)) == len(list(store.keys())) == 2
    with database.read() as connection:
        blob = blobs.find(connection, tenants[0], sha256(b"same"))
        assert blob.sha256 == hashlib.sha256(b"same").digest()
        assert blob.byte_size == 4
        assert blobs.find(connection, tenants[0], sha256(b"other")) is None


def test_bytes_just_released_are_still_there_for_who_reads_them(database, store, tenants):
    key = put(database, store, tenants[0], b"x", "a")
    with database.write() as connection:
        blobs.release(connection, "images", "a")
    blobs.sweep(database, store)
    assert store.size(key) == 1
    let_all_be_due(database)
    assert blobs.sweep(database, store) == 1
    with pytest.raises(SourceNotFound):
        store.size(key)


def test_bytes_that_were_never_expected_are_not_kept(database, tenants):
    with pytest.raises(Unavailable):
        keep(database, tenants[0], b"x", "a", blobs.new_key(tenants[0], sha256(b"x")))
    assert rows(database, tables.blobs) == rows(database, tables.blob_uses) == []


def test_many_come_and_go_at_once(database_url, store, tenants, monkeypatch):
    """Threads keep and release the same bytes while others sweep all that is due."""
    grace = 0.5
    monkeypatch.setattr(trash, "GRACE", timedelta(seconds=grace))
    database = Database(database_url, grace=timedelta(seconds=grace))
    failures, stop = [], threading.Event()

    def live(record):
        try:
            for _ in range(8):
                began = time.monotonic()
                try:
                    key = put(database, store, tenants[0], b"shared", record)
                except Unavailable:
                    continue  # swept before it was kept: the uploader sends it again
                # Who takes longer than the grace was promised nothing (an hour, in earnest).
                if time.monotonic() - began < grace:
                    assert store.size(key) == 6
                with database.write() as connection:
                    blobs.release(connection, "images", record)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    def tidy():
        try:
            while not stop.wait(0.01):
                blobs.sweep(database, store)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    living = [threading.Thread(target=live, args=(f"r{n}",)) for n in range(4)]
    tidying = [threading.Thread(target=tidy) for _ in range(2)]
    for thread in living + tidying:
        thread.start()
    for thread in living:
        thread.join()
    stop.set()
    for thread in tidying:
        thread.join()
    assert failures == []
    let_all_be_due(database)
    blobs.sweep(database, store)
    assert list(store.keys()) == []
    database.close()


# ---- drafts and records ---------------------------------------------------------------------


def upload(database, tenant, draft, **more):
    row = {
        "family": "images",
        "record_id": draft,
        "tenant_id": tenant,
        "byte_size": 10,
        "next_byte": 1,
        "draft": draft,
        "created_at": instant(),
    }
    with database.write() as connection:
        connection.execute(tables.uploads.insert().values(**(row | more)))


def test_drafts_that_nobody_will_finish_are_dropped(database, store, tenants):
    for name in ("going-on", "orphan", "finished", "old", "old-but-alive"):
        draft = store.draft(name)
        draft.append(0, b"x")
        draft.sync()
    upload(database, tenants[0], "going-on")
    upload(database, tenants[0], "finished", completed_at=instant())
    upload(database, tenants[0], "old", created_at=LONG_AGO)
    alive = instant() + timedelta(hours=1)
    upload(database, tenants[0], "old-but-alive", created_at=LONG_AGO, lease_until=alive)
    assert blobs.sweep(database, store) == 3
    assert list(store.drafts()) == ["going-on", "old-but-alive"]
    uploads = {row.record_id: row for row in rows(database, tables.uploads)}
    next_bytes = {name: row.next_byte for name, row in uploads.items()}
    assert next_bytes == {"going-on": 1, "old-but-alive": 1, "old": 0, "finished": 1}
    assert uploads["old"].draft != "old"


def test_a_draft_of_a_writer_who_takes_over_is_not_swept(database, store, tenants):
    """It is copied before the row names it; from then on the row says whose it is."""
    soon = instant() + timedelta(hours=1)
    upload(database, tenants[0], "held", lease_holder="me", lease_until=soon)
    upload(database, tenants[0], "named.1", lease_holder="me", lease_until=soon)
    upload(database, tenants[0], "left.2", lease_holder="me", lease_until=LONG_AGO)
    names = ["held", "held.1", "named", "named.1", "named.2", "left", "left.2", "left.3"]
    for name in (*names, "held-by-none.1"):
        draft = store.draft(name)
        draft.append(0, b"x")
        draft.sync()
    assert blobs.sweep(database, store) == 3
    assert set(store.drafts()) == {*names} - {"left", "named"}
    with database.write() as connection:
        connection.execute(tables.uploads.update().values(completed_at=instant()))
    assert blobs.sweep(database, store) == 6
    assert list(store.drafts()) == []


def test_an_object_that_is_being_deleted_is_named_by_nobody(database, store, tenants):
    """Whoever sends the same bytes meanwhile writes them under a key of their own."""
    key = put(database, store, tenants[0], b"x", "a")
    with database.write() as connection:
        blobs.release(connection, "images", "a")
    let_all_be_due(database)
    late = []

    class Slow(DiskStore):
        def delete(self, going):
            late.append(put(database, store, tenants[0], b"x", "b"))
            with pytest.raises(Unavailable):
                keep(database, tenants[0], b"y", "c", going)
            super().delete(going)

    assert blobs.sweep(database, Slow(store.root)) == 1
    assert list(store.keys()) == late != [key]
    with database.read() as connection:
        assert blobs.used_by(connection, tenants[0], "images", "b").store_key == late[0]


def test_a_sweep_that_died_between_its_steps_is_finished_by_the_next(database, store, tenants):
    class Dying(DiskStore):
        def delete(self, key):
            raise KeyboardInterrupt

    key = put(database, store, tenants[0], b"x", "a")
    with database.write() as connection:
        blobs.release(connection, "images", "a")
    let_all_be_due(database)
    with pytest.raises(KeyboardInterrupt):
        blobs.sweep(database, Dying(store.root))
    assert len(rows(database, tables.trash)) == 1
    assert blobs.sweep(database, store) == 1
    assert list(store.keys()) == []
    let_all_be_due(database)
    store.write(key, [b"late"])
    assert blobs.sweep(database, store) == 0
    assert list(store.keys()) == rows(database, tables.trash) == []


def test_an_upload_that_moves_is_never_swept(database, store, tenants):
    """Its age counts from the last byte, not from the announcement."""
    for name, more in (
        ("moves", {"created_at": LONG_AGO, "written_at": instant()}),
        ("stopped", {"created_at": LONG_AGO, "written_at": LONG_AGO}),
        ("began", {"created_at": LONG_AGO}),
    ):
        upload(database, tenants[0], name, next_byte=1, **more)
        draft = store.draft(name)
        draft.append(0, b"x")
        draft.sync()
    assert blobs.sweep(database, store) == 2
    assert list(store.drafts()) == ["moves"]


def isobmff(database, tenant, record_id, **more):
    row = {"id": record_id, "tenant_id": tenant, "filename": "a.mp4", "created_at": instant()}
    with database.write() as connection:
        connection.execute(
            tables.isobmff_files.insert().values(**(row | {"md5": md5(record_id.encode())} | more))
        )


def test_a_record_takes_everything_with_it_that_is_its_own(database, store, tenants):
    tenant = tenants[0]
    for key in ("indexes/a", "indexes/b", "indexes/t"):
        store.write(key, [b"index"])
    file_id, other = new_id(), new_id()
    isobmff(database, tenant, file_id, index_key="indexes/a")
    isobmff(database, tenant, other, index_key="indexes/b")
    put(database, store, tenant, b"whole", file_id, "isobmff")
    put(database, store, tenant, b"track", f"{file_id}/1", "tracks")
    put(database, store, tenant, b"scrub", f"{file_id}/-1", "tracks")
    kept = put(database, store, tenant, b"track", f"{other}/1", "tracks")
    upload(database, tenant, "draft", family="tracks", record_id=f"{file_id}/2")
    with database.write() as connection:
        for owner, number, key in (
            (file_id, 1, "indexes/t"),
            (file_id, -1, None),
            (file_id, 2, None),
            (other, 1, None),
        ):
            row = {"tenant_id": tenant, "type": "video", "created_at": instant()}
            row |= {"file_id": owner, "track_id": number, "index_key": key}
            connection.execute(tables.isobmff_tracks.insert().values(**row))
    with database.write() as connection:
        assert deletion.remove(connection, "isobmff", file_id)
        assert not deletion.remove(connection, "isobmff", file_id)
    let_all_be_due(database)
    blobs.sweep(database, store)
    assert set(store.keys()) == {"indexes/b", kept}
    assert [row.id for row in rows(database, tables.isobmff_files)] == [other]
    assert [row.file_id for row in rows(database, tables.isobmff_tracks)] == [other]
    assert rows(database, tables.uploads) == []
    with database.write() as connection:
        assert deletion.remove(connection, "tracks", f"{other}/1")
    assert rows(database, tables.blobs) == rows(database, tables.isobmff_tracks) == []


def test_records_go_when_they_expire(database, tenants):
    isobmff(database, tenants[0], "a", expires_at=LONG_AGO)
    isobmff(database, tenants[0], "b", expires_at=instant() + timedelta(hours=1))
    isobmff(database, tenants[0], "c")
    assert deletion.expired(database) == 1
    assert {row.id for row in rows(database, tables.isobmff_files)} == {"b", "c"}
    assert deletion.expired(database) == 0


def test_a_claim_says_whether_the_object_was_still_there(database):
    with database.write() as connection:
        trash.expect(connection, "indexes/a", "indexes/b")
        assert trash.claim(connection, "indexes/a", "indexes/b")
        assert not trash.claim(connection, "indexes/a")
