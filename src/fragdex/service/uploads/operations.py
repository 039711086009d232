"""What can be done with uploads; no HTTP.

A family begins an upload in the transaction that makes its record, hands requests to `receive` (or
`receive_stream`), and tells by its `Arrival` what becomes of the bytes.

Or the bytes do not pass through here: clients put parts into the object store.

    plan_parts      which parts are missing, and URLs to put them at; repeated for the next ones
    assemble_parts  all parts are there: they are read, hashed and watched, and become the file

Parts lie on a grid of PART_BYTES. Whoever holds a URL can put its part again until the URL
expires. So `assemble_parts` first copies all parts, in the store, to a draft that no URL names, and
believes only what it reads there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.engine import Connection

from fragdex.errors import Conflict, Finished, RecordNotFound, Unavailable, Unprocessable, UploadGap
from fragdex.record import record
from fragdex.service.context import ServiceContext
from fragdex.service.records import blobs
from fragdex.service.records.identifiers import instant, md5_text
from fragdex.service.records.tables import uploads
from fragdex.service.records.tenant_limits import ensure_within_quota
from fragdex.service.store.contract import DirectParts
from fragdex.service.uploads import completion, leases
from fragdex.service.uploads.hashing import Hashes
from fragdex.service.uploads.leases import Lease
from fragdex.service.uploads.model import Arrival, Arrived, Progress, Upload
from fragdex.service.uploads.upload_session import announced, open_session

_MD5_OF_NOTHING = hashlib.md5(usedforsecurity=False).digest()
_SHA256_OF_NOTHING = hashlib.sha256().digest()


def begin(
    context: ServiceContext,
    connection: Connection,
    tenant_id: str,
    family: str,
    record_id: str,
    byte_size: int | None,
    md5: bytes | None,
    arrival: Arrival | None = None,
    empty: Arrived | None = None,
) -> Progress:
    """Announce the bytes of a record, in the transaction that makes it.

    Args:
        byte_size: of all bytes; None: it is said later, or with the last of them.
        empty: what `no_bytes` gave before the transaction, where no bytes are announced: the
            upload is complete at once, and `arrival.finished` is called.

    Raises:
        QuotaExceeded: the tenant may not store so much.
    """
    now = instant()
    upload = leases.insert(connection, tenant_id, family, record_id, byte_size, md5, now)
    ensure_within_quota(connection, tenant_id)
    if empty is None:
        if byte_size == 0:
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
    byte_size: int | None,
    md5: bytes | None,
    arrival: Arrival | None = None,
) -> Arrived | None:
    """The bytes of a record of none, kept and examined; None where some may come.

    To be called before the transaction that makes the record.

    Raises:
        Unprocessable: no bytes are announced, and an md5 that they do not have.
    """
    if byte_size != 0:
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
        arrived = replace(arrived, examined=arrival.examine(arrived))
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
        limit: bytes that a body with Content-Range may have, and an upload whose length nobody
            announced.
        length: Content-Length, where it was sent.

    Bytes that are here already are skipped. Whatever `pieces` raises is raised after what
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
        announced(content_range, limit),
        most=limit,
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


PART_BYTES: Final = 16 << 20
"""Bytes of every part but the last. A part is held in memory when it is read."""
MOST_URLS: Final = 100
"""Parts that one plan has URLs for."""
SECONDS: Final = 3600
"""For so long a URL is valid."""


@record(frozen=True, slots=True)
class MissingPart:
    """Bytes `start` (inclusive) to `start + byte_size`, to be put at `url`."""

    start: int
    byte_size: int
    url: str


@record(frozen=True, slots=True)
class PartPlan:
    """The first parts that are missing; `missing` counts all of them."""

    parts: tuple[MissingPart, ...]
    missing: int
    expires_at: datetime


def plan_parts(context: ServiceContext, tenant_id: str, family: str, record_id: str) -> PartPlan:
    """The parts that are missing, and where to put them.

    Raises:
        RecordNotFound: this tenant has no such upload.
        Conflict: this service takes the bytes itself (`more["offered"]` is False), has some or
            all of them already, or was not told how many there are.
        QuotaExceeded: the tenant may not store so much.
    """
    with context.database.read() as connection:
        upload, _ = leases.find(connection, tenant_id, family, record_id)
    direct = _need_direct(context)
    if upload.complete:
        raise Finished("this upload is complete", more={"next_byte": upload.next_byte})
    _need_no_chunks(upload)
    here = dict(direct.pieces(upload.draft))
    missing = [start for start, size in _grid(upload.length) if here.get(start) != size]
    now = instant()
    with context.database.write() as connection:
        ensure_within_quota(connection, tenant_id)
        # an upload that is in use is not given up
        mine = (uploads.c.family == family) & (uploads.c.record_id == record_id)
        connection.execute(uploads.update().where(mine).values(written_at=now))
    some = missing[:MOST_URLS]
    sizes = dict(_grid(upload.length))
    urls = direct.urls(upload.draft, some, SECONDS)
    parts = tuple(MissingPart(at, sizes[at], url) for at, url in zip(some, urls, strict=True))
    return PartPlan(parts, len(missing), now + timedelta(seconds=SECONDS))


def assemble_parts(
    context: ServiceContext, tenant_id: str, family: str, record_id: str, arrival: Arrival
) -> Progress:
    """Make the parts that were put the bytes of the upload; blocks until all are read.

    Raises:
        RecordNotFound, Conflict, Finished: as `plan_parts`.
        UploadGap: a part is missing, or has another size than it may; `more["next_byte"]` is its
            first byte.
        UploadBusy: it is being assembled.
        Unprocessable: the md5 of the bytes is not the one announced, or what `arrival` refuses;
            the upload starts over.
        StoreFull, Unavailable: it can be tried again.
    """
    direct = _need_direct(context)
    upload, lease = leases.take(
        context.database,
        tenant_id,
        family,
        record_id,
        _need_no_chunks,
        context.settings.lease_seconds,
    )
    if lease is None:
        return upload.progress
    try:
        if not completion.complete_from_object(context, upload, lease, arrival):
            _complete_parts(context, direct, upload, lease, arrival)
    except completion.Refused as refused:
        raise refused.error from refused.error.__cause__
    finally:
        with suppress(RecordNotFound):
            lease.give_back()
    return Progress(upload.length, upload.length, True)


def _complete_parts(
    context: ServiceContext, direct: DirectParts, upload: Upload, lease: Lease, arrival: Arrival
) -> None:
    _need_exact(direct, upload.draft, upload.length)
    base, _, generation = upload.draft.partition(".")
    # the name that sweeps leave to whoever takes over
    put, name = context.store.draft(upload.draft), f"{base}.{int(generation or 0) + 1}"
    with lease.renewing():
        own = put.fork(name, upload.length)
    lease.write(draft=name)
    # a sweep that looked before the row named it, or a part put again meanwhile
    _need_exact(direct, name, upload.length)
    put.discard()
    upload = replace(upload, draft=name)
    hashes = Hashes(arrival.watch(upload) if arrival.watch is not None else None)
    hashes.catch_up(own.read(), upload.length, lease.keep)
    hashes.wait()
    if not upload.ends_at(hashes.position):
        raise Unavailable("the store lost bytes of this upload", retry_after=1)
    completion.complete(context, upload, lease, own, hashes, arrival)


def _need_exact(direct: DirectParts, draft: str, byte_size: int) -> None:
    here, wanted = dict(direct.pieces(draft)), dict(_grid(byte_size))
    direct.drop(draft, [start for start, size in here.items() if wanted.get(start) != size])
    for start, size in wanted.items():
        if here.get(start) != size:
            raise UploadGap(
                "a part is missing, or has another size than it may",
                more={"next_byte": start},
                expected=f"{size} bytes at byte {start}",
                found=here.get(start, 0),
            )


def _need_no_chunks(upload: Upload) -> None:
    if upload.next_byte and not upload.complete:
        raise Conflict(
            "bytes of this upload came by chunks; send the rest so",
            more={"next_byte": upload.next_byte},
        )
    if upload.byte_size is None:
        raise Conflict("the length of this upload is not known; send it by chunks")


def _need_direct(context: ServiceContext) -> DirectParts:
    direct = context.store.direct() if context.settings.presigned_uploads else None
    if direct is None:
        raise Conflict(
            "this service takes the bytes itself, by upload",
            more={"offered": False},
            advice="parts need an object store, and the setting presigned_uploads",
        )
    return direct


def _grid(byte_size: int) -> list[tuple[int, int]]:
    """(first byte, size) of every part."""
    return [
        (start, min(PART_BYTES, byte_size - start)) for start in range(0, byte_size, PART_BYTES)
    ]
