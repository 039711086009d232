"""The row of an upload: who writes, until when, and how far the bytes are durable.

One request writes at a time. It holds a lease of some seconds by the database's clock and keeps it
while bytes flow. A lease that ended without being given back belonged to a process or client
that died, or that only sleeps: whoever takes over continues in a draft of his own
(`upload_session`), so that a sleeper who wakes writes where nobody reads any more.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.errors import FragdexError, RecordNotFound, UploadBusy
from fragdex.service.records.database import Database
from fragdex.service.records.identifiers import new_id
from fragdex.service.records.tables import uploads
from fragdex.service.records.tenant_limits import ensure_within_quota
from fragdex.service.uploads.model import Upload

RENEWALS = 3
"""How often a lease is renewed in the time that it lasts."""


def insert(
    connection: Connection,
    tenant_id: str,
    family: str,
    record_id: str,
    byte_size: int | None,
    md5: bytes | None,
    now: Any,
) -> Upload:
    """Add the row of a new upload."""
    upload = Upload(tenant_id, family, record_id, byte_size, md5, 0, new_id(), False)
    row = asdict(upload)
    del row["complete"]
    connection.execute(uploads.insert().values(**row, created_at=now))
    return upload


# Statements that are made once: each chunk of an upload asks them.
_OF_RECORD = (uploads.c.family == sa.bindparam("of_family")) & (
    uploads.c.record_id == sa.bindparam("of_record")
)
_FOUND = sa.select(uploads).where(_OF_RECORD, uploads.c.tenant_id == sa.bindparam("of_tenant"))
_LOCKED = _FOUND.with_for_update()


def _setting(names: Iterable[str], *, held: bool) -> sa.Update:
    """Sets columns of an upload to parameters `new_NAME`; `held`: if `of_holder` has the lease."""
    own = uploads.c.lease_holder == sa.bindparam("of_holder") if held else sa.true()
    values: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in names}
    return uploads.update().where(_OF_RECORD, own).values(values)


_TAKING = _setting(("lease_holder", "lease_until"), held=False)
_GIVEN_BACK = frozenset(("lease_holder", "lease_until", "next_byte", "written_at"))
_GIVING_BACK = _setting(_GIVEN_BACK, held=True)


def find(
    connection: Connection, tenant_id: str, family: str, record_id: str, *, lock: bool = False
) -> tuple[Upload, Any]:
    """An upload and its whole row.

    Raises:
        RecordNotFound: this tenant has no such upload.
    """
    key = {"of_family": family, "of_record": record_id, "of_tenant": tenant_id}
    row = connection.execute(_LOCKED if lock else _FOUND, key).one_or_none()
    if row is None:
        raise RecordNotFound("there is no such upload")
    upload = Upload(
        row.tenant_id,
        row.family,
        row.record_id,
        row.byte_size,
        None if row.md5 is None else bytes(row.md5),
        row.next_byte,
        row.draft,
        row.completed_at is not None,
        None if row.sha256 is None else bytes(row.sha256),
        row.object_key,
    )
    return upload, row


def take(
    database: Database,
    tenant_id: str,
    family: str,
    record_id: str,
    acceptable: Callable[[Upload], object],
    seconds: float,
    length: int | None = None,
) -> tuple[Upload, Lease | None]:
    """Take the lease of an upload; None for one that is complete.

    Args:
        acceptable: called with the row; where it raises, nothing is taken.
        seconds: a writer that gives no sign for so long has lost its upload.
        length: of the upload, where this writer says it, for one whose length is not known.

    Raises:
        RecordNotFound: this tenant has no such upload.
        UploadBusy: somebody writes.
        QuotaExceeded: the tenant may not store so much, any more.
    """
    with database.write(passing=True) as connection:  # no lease outlives a power loss
        upload, row = find(connection, tenant_id, family, record_id, lock=True)
        acceptable(upload)
        if upload.complete:
            return upload, None
        now = database.now(connection)
        if row.lease_holder is not None and row.lease_until > now:
            left = (row.lease_until - now).total_seconds()
            raise UploadBusy(
                "another request is writing these bytes",
                more={"next_byte": upload.next_byte},
                retry_after=max(1, math.ceil(left)),
            )
        if upload.byte_size is None and length is not None:
            upload = replace(upload, byte_size=length)
            if length > upload.next_byte:
                # else it is complete with this request, and only then as long: a sender that
                # finds all bytes here and none missing would ask for nothing more
                own = _OF_RECORD, {"of_family": family, "of_record": record_id}
                connection.execute(uploads.update().where(own[0]).values(byte_size=length), own[1])
        lease = Lease(database, upload, seconds, orphaned=row.lease_holder is not None)
        connection.execute(
            _TAKING,
            {
                "of_family": family,
                "of_record": record_id,
                "new_lease_holder": lease.holder,
                "new_lease_until": now + timedelta(seconds=seconds),
            },
        )
        ensure_within_quota(connection, tenant_id)
    return upload, lease


class Lease:
    """The right to write an upload.

    `orphaned` says that the one before was never given back. Every method raises UploadBusy where
    somebody else has it by now, and RecordNotFound where the upload is gone.
    """

    def __init__(
        self, database: Database, upload: Upload, seconds: float, *, orphaned: bool
    ) -> None:
        self.holder = new_id()
        self.orphaned = orphaned
        self.given_back = False
        self._database = database
        self._upload = upload
        self._seconds = seconds
        self._renewed = time.monotonic()
        self._next_byte = upload.next_byte  # as the row has it

    def keep(self) -> None:
        """Renew the lease where it is time to."""
        if time.monotonic() - self._renewed >= self._seconds / RENEWALS:
            self.write()

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew the lease from a thread of its own, during work that gives no occasion."""
        over = threading.Event()

        def renew() -> None:
            while not over.wait(self._seconds / RENEWALS):
                try:
                    self.write()
                except FragdexError:
                    return  # the next transaction of the writer finds out itself

        thread = threading.Thread(target=renew, name="fragdex-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def write(self, **values: Any) -> None:
        """Set columns of the row, and renew the lease.

        Raises QuotaExceeded, too, where bytes become durable that nobody announced.
        Who writes, and until when, is over with a power loss: only what says more is flushed.
        """
        news = {name for name in values if not name.startswith("lease_")}
        if values.get("next_byte") == self._next_byte:
            news.discard("next_byte")
        with self._database.write(passing=not news) as connection:
            self.write_in(connection, **values)
        self._next_byte = values.get("next_byte", self._next_byte)

    def write_in(self, connection: Connection, **values: Any) -> None:
        """The same in a transaction that is open."""
        began = time.monotonic()
        now = self._database.now(connection)
        until = now + timedelta(seconds=self._seconds)
        if values.get("next_byte"):
            values["written_at"] = now
        values = {"lease_until": until} | values
        changed = connection.execute(
            _GIVING_BACK if values.keys() == _GIVEN_BACK else _setting(values, held=True),
            {
                "of_family": self._upload.family,
                "of_record": self._upload.record_id,
                "of_holder": self.holder,
                **{f"new_{name}": value for name, value in values.items()},
            },
        )
        if changed.rowcount != 1:
            self.given_back = True  # there is nothing to give back
            upload, _ = find(
                connection, self._upload.tenant_id, self._upload.family, self._upload.record_id
            )
            raise UploadBusy(
                "another request has taken over these bytes",
                more={"next_byte": upload.next_byte},
                retry_after=math.ceil(self._seconds),
            )
        if self._upload.byte_size is None and values.get("next_byte", 0) > self._next_byte:
            ensure_within_quota(connection, self._upload.tenant_id)  # nothing was reserved
        self._renewed = began

    def give_back(self, **values: Any) -> None:
        """Set columns of the row, and let others write. Nothing may be written after."""
        if not self.given_back:
            self.write(**values, lease_holder=None, lease_until=None)
            self.given_back = True
