"""Whether the store has what the records name: what to ask after a restore, or of a bad disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Row

from fragdex import ByteRange
from fragdex.errors import SourceError, SourceNotFound, SourceUnavailable
from fragdex.record import record
from fragdex.service.records import tables
from fragdex.service.records.database import Database
from fragdex.service.records.deletion import FAMILIES
from fragdex.service.store.contract import Store

_BATCH: Final = 500


@record(frozen=True, slots=True)
class Fault:
    """An object that is not as the records say.

    Attributes:
        key: of the store.
        table: that names it.
        reason: what is wrong.
    """

    key: str
    table: str
    reason: str


@record(slots=True)
class StoreCheck:
    """What was found.

    Attributes:
        objects: that records name.
        bytes: of those that are bytes of files; their indexes are not counted.
        faults: objects that are missing, or are not as they should be.
        begin_anew: unfinished uploads whose first bytes are not here: clients send them again.
    """

    objects: int = 0
    bytes: int = 0
    faults: list[Fault] = field(default_factory=list)
    begin_anew: int = 0


def check_store(database: Database, store: Store, *, contents: bool = False) -> StoreCheck:
    """Compare the store with the records. It may be done while the service runs.

    Args:
        contents: read every byte and compare the SHA-256, where one is known; else sizes alone are
            compared.

    Raises:
        Unavailable: database or store does not answer.
    """
    check = StoreCheck()
    for column in _columns():
        table = column.table
        assert isinstance(table, sa.Table)
        for row in _rows(database, table):
            key = row._mapping[column.name]
            if key is None:
                continue
            size = row._mapping.get("byte_size") if table is tables.blobs else None
            sha256 = bytes(row.sha256) if contents and table is tables.blobs else None
            reason = _fault(store, key, size, sha256)
            # what was deleted meanwhile is missing rightly
            if reason is not None and not _is_named(database, column, row):
                continue
            check.objects += 1
            check.bytes += 0 if size is None else row.stored_bytes
            if reason is not None:
                check.faults.append(Fault(key, table.name, reason))
    for row in _rows(database, tables.uploads):
        missing = row.completed_at is None and row.next_byte
        if missing and not store.draft(row.draft).holds(row.next_byte):
            check.begin_anew += 1
    return check


def _fault(store: Store, key: str, wanted: int | None, sha256: bytes | None) -> str | None:
    try:
        size = store.size(key)
        if wanted not in (None, size):
            return f"it has {size} bytes, and {wanted} were stored"
        digest = hashlib.sha256()
        if sha256 is not None and size:
            for piece in store.read(key, ByteRange(0, size)):
                digest.update(piece)
        if sha256 not in (None, digest.digest()):
            return "its bytes are others (SHA-256)"
    except SourceNotFound:
        return "it is missing"
    except SourceUnavailable:
        raise
    except SourceError as error:  # of a composed object: its record, or what it is composed of
        return error.message
    return None


def _columns() -> Iterator[sa.Column[Any]]:
    """The columns that name objects of the store."""
    yield tables.blobs.c.store_key
    for family in FAMILIES.values():
        yield from (family.table.c[name] for name in family.columns)


def _rows(database: Database, table: sa.Table) -> Iterator[Row[Any]]:
    """All rows of a table, a batch at a time: no transaction is open in between."""
    own = list(table.primary_key)
    query = sa.select(table).order_by(*own).limit(_BATCH)
    batch = query
    while True:
        rows = database.all(batch)
        yield from rows
        if len(rows) < _BATCH:
            return
        last = [rows[-1]._mapping[column.name] for column in own]
        batch = query.where(sa.tuple_(*own) > sa.tuple_(*map(sa.literal, last)))


def _is_named(database: Database, column: sa.Column[Any], row: Row[Any]) -> bool:
    """Whether a row that was read before still names the same object."""
    table = column.table
    same = [one == row._mapping[one.name] for one in table.primary_key]
    name = database.scalar(sa.select(column).where(*same))
    return bool(name == row._mapping[column.name])
