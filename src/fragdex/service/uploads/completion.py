"""The end of an upload: md5, the object, the family's word, one transaction.

    expect   (committed) the row knows the md5 and the SHA-256, the trash knows the object's key
    finish   the draft becomes the object
    keep     one transaction: the blob, the upload's completed_at, the family's records

A crash after `finish` leaves no draft, and the object in the trash for an hour: the next request
of the upload completes it from the object (`complete_from_object`), or starts over.
"""

from __future__ import annotations

from dataclasses import replace

from fragdex import ByteRange
from fragdex.errors import (
    DigestMismatch,
    FragdexError,
    SourceNotFound,
    SourceUnavailable,
    StoreFull,
    Unavailable,
)
from fragdex.service.context import ServiceContext
from fragdex.service.records import blobs
from fragdex.service.records.identifiers import instant, md5_text, new_id
from fragdex.service.store.contract import Draft
from fragdex.service.uploads.hashing import Hashes
from fragdex.service.uploads.leases import Lease
from fragdex.service.uploads.model import Arrival, Arrived, Upload


class Refused(Exception):
    """The bytes are not those announced, and were let go; `error` is the answer."""

    def __init__(self, error: FragdexError) -> None:
        super().__init__(str(error))
        self.error = error


def complete(
    context: ServiceContext,
    upload: Upload,
    lease: Lease,
    draft: Draft,
    hashes: Hashes,
    arrival: Arrival,
) -> None:
    """Make the durable draft, whose bytes `hashes` has seen, an object, and the upload complete.

    Raises:
        Refused: the md5 is another one, or `arrival.examine` refuses; the upload starts over.
        UploadBusy, RecordNotFound: it was taken over, or deleted.
        StoreFull, Unavailable: it can be tried again.
    """
    md5 = hashes.md5
    if upload.md5 not in (None, md5):
        start_over(upload, lease, draft)
        raise Refused(
            DigestMismatch(
                "the md5 of the bytes is not the one announced",
                more={"next_byte": 0},
                expected=md5_text(upload.md5 or b""),
                found=md5_text(md5),
            )
        )
    with lease.renewing():
        with context.database.write() as connection:
            key = blobs.expect(connection, upload.tenant_id, hashes.sha256)
            lease.write_in(connection, md5=md5, sha256=hashes.sha256, object_key=key)
        try:
            if upload.length:
                draft.finish(key)
            else:
                context.store.write(key, ())
        except SourceNotFound as error:
            lease.write()  # whoever took over has finished it
            raise Unavailable("the store lost bytes of this upload", retry_after=1) from error
        _conclude(context, upload, lease, draft, key, hashes, arrival)


def complete_from_object(
    context: ServiceContext, upload: Upload, lease: Lease, arrival: Arrival
) -> bool:
    """Complete an upload whose draft became the object before a crash; False where it did not.

    One whose length is not known is as long as the object. Raises as `complete`.
    """
    if upload.sha256 is None or upload.object_key is None:
        return False
    store, own = context.store, (upload.tenant_id, upload.sha256, upload.object_key)
    with context.database.write() as connection:
        key = blobs.expect_again(connection, *own)
    if key is None:
        return False
    try:
        size = store.size(key)
    except SourceNotFound:
        return False
    if upload.byte_size is None:
        upload = replace(upload, byte_size=size)
    if not upload.ends_at(size):
        return False
    hashes = Hashes(arrival.watch(upload) if arrival.watch is not None else None)
    with lease.renewing():
        hashes.catch_up(store.read(key, ByteRange(0, size)), size, lease.keep)
        hashes.wait()
        if hashes.sha256 != upload.sha256:
            return False
        with context.database.write() as connection:
            key = blobs.expect_again(connection, *own)
        if key is None:
            return False
        _conclude(context, upload, lease, store.draft(upload.draft), key, hashes, arrival)
    return True


def start_over(upload: Upload, lease: Lease, draft: Draft) -> Upload:
    """Let the bytes go: byte 0 is the next, in a draft of another name."""
    # The name is what hashes are kept by, here and in other processes.
    name = new_id()
    lease.write(next_byte=0, draft=name, sha256=None, object_key=None)
    draft.discard()
    return replace(upload, next_byte=0, draft=name, sha256=None, object_key=None)


def _conclude(
    context: ServiceContext,
    upload: Upload,
    lease: Lease,
    draft: Draft,
    key: str,
    hashes: Hashes,
    arrival: Arrival,
) -> None:
    arrived = Arrived(
        tenant_id=upload.tenant_id,
        family=upload.family,
        record_id=upload.record_id,
        md5=hashes.md5,
        sha256=hashes.sha256,
        byte_size=upload.length,
        store_key=key,
        watcher=hashes.watcher,
    )
    if arrival.examine is not None:
        try:
            arrived = replace(arrived, examined=arrival.examine(arrived))
        except (StoreFull, Unavailable, SourceUnavailable):
            raise
        except FragdexError as error:
            start_over(upload, lease, draft)
            raise Refused(error) from error
    with context.database.write() as connection:
        lease.write_in(
            connection,
            byte_size=upload.length,
            next_byte=upload.length,
            completed_at=instant(),
            lease_holder=None,
            lease_until=None,
        )
        use = (upload.family, upload.record_id)
        blobs.keep(
            connection, upload.tenant_id, arrived.md5, arrived.sha256, upload.length, *use, key
        )
        arrival.finished(connection, arrived)
    lease.given_back = True
