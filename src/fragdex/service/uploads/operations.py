"""What can be done with uploads; no HTTP.

A family begins an upload in the transaction that makes its record, hands requests to `receive` (or
`receive_stream`), and tells by its `Arrival` what becomes of the bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy.engine import Connection

from fragdex.errors import Unprocessable
from fragdex.service.context import ServiceContext
from fragdex.service.records import blobs
from fragdex.service.records.identifiers import instant, md5_text
from fragdex.service.records.tables import uploads
from fragdex.service.records.tenant_limits import need_within_quota
from fragdex.service.uploads import leases
from fragdex.service.uploads.model import Arrival, Arrived, Progress
from fragdex.service.uploads.upload_session import open_session

__all__ = ["begin", "no_bytes", "receive", "state"]

_MD5_OF_NOTHING = hashlib.md5(usedforsecurity=False).digest()
_SHA256_OF_NOTHING = hashlib.sha256().digest()


def begin(
    context: ServiceContext,
    connection: Connection,
    tenant_id: str,
    family: str,
    record_id: str,
    byte_size: int,
    md5: bytes | None,
    arrival: Arrival | None = None,
    empty: Arrived | None = None,
) -> Progress:
    """Announce the bytes of a record, in the transaction that makes it.

    Args:
        empty: what `no_bytes` gave before the transaction, where no bytes are announced: the
            upload is complete at once, and `arrival.finished` is called.

    Raises:
        QuotaExceeded: the tenant may not store so much.
    """
    now = instant()
    upload = leases.insert(connection, tenant_id, family, record_id, byte_size, md5, now)
    need_within_quota(connection, tenant_id)
    if empty is None:
        if not byte_size:
            raise ValueError("where there are no bytes, `no_bytes` comes first")
        return upload.progress
    blobs.keep(
        connection, tenant_id, empty.md5, empty.sha256, 0, family, record_id, empty.store_key
    )
    connection.execute(
        uploads.update()
        .where(uploads.c.family == family, uploads.c.record_id == record_id)
        .values(md5=empty.md5, sha256=empty.sha256, completed_at=now)
    )
    if arrival is not None:
        arrival.finished(connection, empty)
    return Progress(0, 0, True)


def no_bytes(
    context: ServiceContext,
    tenant_id: str,
    family: str,
    record_id: str,
    byte_size: int,
    md5: bytes | None,
    arrival: Arrival | None = None,
) -> Arrived | None:
    """The bytes of a record of none, kept and examined; None where some are announced.

    To be called before the transaction that makes the record.

    Raises:
        Unprocessable: no bytes are announced, and an md5 that they do not have.
    """
    if byte_size:
        return None
    if md5 not in (None, _MD5_OF_NOTHING):
        raise Unprocessable(
            "no bytes have another md5 than the one announced",
            pointer="/md5",
            expected=md5_text(_MD5_OF_NOTHING),
            found=md5_text(md5 or b""),
        )
    with context.database.write() as connection:
        key = blobs.expect(connection, tenant_id, _SHA256_OF_NOTHING)
    context.store.write(key, ())
    arrived = Arrived(
        tenant_id, family, record_id, _MD5_OF_NOTHING, _SHA256_OF_NOTHING, 0, store_key=key
    )
    if arrival is not None and arrival.examine is not None:
        arrived = replace(arrived, found=arrival.examine(arrived))
    return arrived


def state(context: ServiceContext, tenant_id: str, family: str, record_id: str) -> Progress:
    """How far an upload is.

    Raises:
        RecordNotFound: this tenant has no such upload.
    """
    with context.database.read() as connection:
        upload, _ = leases.find(connection, tenant_id, family, record_id)
    return upload.progress


def receive(
    context: ServiceContext,
    tenant_id: str,
    family: str,
    record_id: str,
    content_range: str | None,
    pieces: Iterable[bytes],
    *,
    limit: int | None = None,
    length: int | None = None,
    arrival: Arrival | None = None,
) -> Progress:
    """Receive the body of one request, given as pieces of bytes; blocks until all are here.

    Args:
        content_range: the field as it was sent; None: the body is the whole file.
        limit: bytes that a body with Content-Range may have.
        length: Content-Length, where it was sent.

    Bytes that are here already are passed over. Whatever `pieces` raises is raised after what
    arrived before was made durable.

    Raises:
        RecordNotFound: this tenant has no such upload.
        InvalidRequest: a Content-Range that cannot be read.
        TooLarge: more bytes than `limit`, or than the tenant may store (QuotaExceeded).
        Unprocessable: a total, length or md5 that was not announced, or what `arrival` refuses.
        UploadGap: the bytes begin after those that are here.
        UploadBusy: another request is writing.
        StoreFull, Unavailable: what was durable stays so.
    """
    session = open_session(
        context,
        tenant_id,
        family,
        record_id,
        content_range,
        limit=limit,
        length=length,
        arrival=arrival,
    )
    try:
        for piece in pieces:
            session.take(piece)
        return session.end()
    except BaseException:
        session.leave()
        raise
