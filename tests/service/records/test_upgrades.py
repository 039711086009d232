"""What an older version kept, after the steps to this one."""

import contextlib

import pytest
import sqlalchemy as sa

from fragdex.service.records import blobs, tables
from fragdex.service.records.database import Database
from fragdex.service.records.identifiers import instant
from fragdex.service.records.migrations import VERSION_TABLE, differences, steps, upgrade


def test_bytes_kept_by_an_older_version_keep_their_keys(database):
    """Before version 0005, bytes were found by their md5, and their keys were made of it."""
    md5, sha256, key = bytes(range(16)), bytes(range(32)), f"blobs/t/00/{bytes(range(16)).hex()}"
    at = instant().replace(tzinfo=None)
    with contextlib.closing(as_of(database, "0004")) as old:
        with old.write() as connection:
            rows = {
                "tenants": {"id": "t", "name": "t", "created_at": at},
                "blobs": {
                    "tenant_id": "t", "md5": md5, "sha256": sha256, "byte_size": 3,
                    "store_key": key, "created_at": at,
                },
                "blob_uses": {
                    "tenant_id": "t", "md5": md5, "family": "unprocessed", "record_id": "f",
                },
                "unprocessed_files": {
                    "id": "f", "tenant_id": "t", "filename": "a", "byte_size": 3, "md5": md5,
                    "process_when_complete": False, "created_at": at, "completed_at": at,
                },
                "isobmff_files": {
                    "id": "i", "tenant_id": "t", "filename": "a", "md5": md5, "created_at": at,
                },
                "isobmff_tracks": {
                    "file_id": "i", "track_id": 1, "tenant_id": "t", "type": "video",
                    "created_at": at,
                },
            }  # fmt: skip
            put(connection, rows)
        upgrade(old)
        assert differences(old) == []
        with old.write() as connection:
            found = blobs.used_by(connection, "t", "unprocessed", "f")
            assert (found.md5, found.sha256, found.store_key) == (md5, sha256, key)
            assert blobs.expect(connection, "t", sha256) == key
            blobs.keep(connection, "t", md5, sha256, 3, "images", "g", key)
            assert blobs.used_by(connection, "t", "images", "g").store_key == key
            for table in (tables.unprocessed_files, tables.isobmff_files):
                assert bytes(connection.scalar(sa.select(table.c.sha256))) == sha256
            assert connection.scalar(sa.select(tables.isobmff_tracks.c.track_id)) == 1


def test_films_made_anew_keep_all_that_names_them(database, monkeypatch):
    """Before version 0010 a tenant had one of an md5; SQLite cannot drop that rule alone."""
    at, md5 = instant().replace(tzinfo=None), bytes(16)
    film = {"tenant_id": "t", "filename": "a", "created_at": at, "index_key": "k"}
    made = {
        "copy_orders": 0, "status": "pending", "engine": "e", "work_slice_ms": 1, "duration_ms": 1,
        "tenant_id": "t", "track_id": 1, "created_at": at,
    }  # fmt: skip
    films = {"i": md5, "j": bytes(range(16))}
    rows = {
        "tenants": [{"id": "t", "name": "t", "created_at": at}],
        "isobmff_files": [{"id": id, "md5": own, **film} for id, own in films.items()],
        "isobmff_tracks": [
            {"file_id": id, "track_id": n, "tenant_id": "t", "type": "video", "created_at": at}
            for id in films
            for n in (-1, 1)
        ],
        "transcriptions": [{"id": f"t{id}", "file_id": id, **made} for id in films],
        "transcription_slices": [
            {"transcription_id": f"t{id}", "number": 0, "attempts": 1} for id in films
        ],
    }
    with contextlib.closing(as_of(database, "0009")) as old:
        with old.write() as connection:
            put(connection, rows)
        before = {name: all_of(old, name) for name in rows}
        assert {name: len(found) for name, found in before.items()} == {
            name: len(put) for name, put in rows.items()
        }
        with monkeypatch.context() as broken:
            take = steps.take
            broken.setattr(steps, "take", lambda *args: (take(*args), 1 / 0))
            with pytest.raises(ZeroDivisionError):
                upgrade(old)
        assert {name: all_of(old, name) for name in rows} == before
        upgrade(old)
        assert {name: all_of(old, name) for name in rows} == before
        assert differences(old) == []
        same = {"md5": md5, **film}
        with old.write() as connection:
            for id, sha256 in (("k", b"1" * 32), ("l", b"2" * 32)):
                put(connection, {"isobmff_files": {"id": id, "sha256": sha256, **same}})
        for sha256 in (None, b"1" * 32):
            with pytest.raises(sa.exc.IntegrityError), old.write() as connection:
                put(connection, {"isobmff_files": {"id": "m", "sha256": sha256, **same}})
        # and rows go with their film as they did
        with old.write() as connection:
            connection.execute(
                tables.isobmff_files.delete().where(tables.isobmff_files.c.id == "i")
            )
        left = [name for name in rows if name not in ("tenants", "isobmff_files")]
        assert [len(all_of(old, name)) for name in left] == [2, 1, 1]


def put(connection, rows):
    """Write rows as any version had them."""
    for name, row in rows.items():
        columns = [sa.column(column) for column in (row[0] if isinstance(row, list) else row)]
        connection.execute(sa.table(f"fragdex_{name}", *columns).insert(), row)


def all_of(database, name):
    with database.read() as connection:
        return sorted(map(tuple, connection.execute(sa.text(f"SELECT * FROM fragdex_{name}"))))


def as_of(database, version):
    """An empty database as an older version made it, in the place of this one."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext

    with database.write() as connection:
        tables.metadata.drop_all(connection)
        connection.execute(sa.text(f"DROP TABLE {VERSION_TABLE}"))
        script = steps._script()
        with EnvironmentContext(
            Config(), script, fn=lambda revision, _: script._upgrade_revs(version, revision)
        ) as environment:
            environment.configure(connection=connection, version_table=VERSION_TABLE)
            with environment.begin_transaction():
                environment.run_migrations()
    return Database(database.url.render_as_string(hide_password=False))
