"""The bytes of one request, from the lease to the answer.

    open_session → take, take, take … → end     all bytes of the request are here
                                        → leave   the client is gone, or something failed

Bytes go into the draft and to the hashes at the same time. `next_byte` moves only after the draft
was flushed, and never to `byte_size`: with the last byte, the transaction that completes the
upload moves it. So a crash at any place leaves an upload that can continue, or a complete one.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from fragdex import ByteRange
from fragdex.byterange import parse_content_range
from fragdex.errors import (
    BodyLengthMismatch,
    FragdexError,
    InvalidRange,
    InvalidRequest,
    QuotaExceeded,
    RecordNotFound,
    TooLarge,
    Unavailable,
    Unprocessable,
    UploadGap,
    UploadLengthMismatch,
)
from fragdex.record import record
from fragdex.service.context import ServiceContext
from fragdex.service.store.contract import Draft
from fragdex.service.uploads import completion, leases
from fragdex.service.uploads.hashing import AHEAD, Hashes, held
from fragdex.service.uploads.leases import Lease
from fragdex.service.uploads.model import Arrival, Progress, Upload


@record(frozen=True, slots=True)
class Chunk:
    """Which bytes of an upload a request carries.

    Attributes:
        start, stop: from the first to the last (exclusive); no stop: to where the body ends.
        total: how long the upload is, if the request says it.
        is_last: the upload ends with the body.
    """

    start: int
    stop: int | None = None
    total: int | None = None
    is_last: bool = False

    def length_by(self, body: int | None) -> int | None:
        """How long the upload is, as the request says it; `body`: its Content-Length."""
        if self.total is not None or not self.is_last:
            return self.total
        return self.stop if body is None else self.start + body


WHOLE: Final = Chunk(0, is_last=True)


def announced(content_range: str | None, limit: int | None) -> Chunk:
    """What a Content-Range names; without one, the body is the whole upload.

    `bytes */TOTAL` names no bytes: it says how long the upload is.

    Args:
        limit: bytes that one chunk may have.

    Raises:
        InvalidRequest: it cannot be read, or names no bytes.
        TooLarge: more bytes than `limit`.
    """
    if content_range is None:
        return WHOLE
    try:
        named = parse_content_range(content_range)
    except InvalidRange as error:
        raise InvalidRequest(
            error.message,
            header="Content-Range",
            expected="bytes START-END/TOTAL",
            found=error.found,
        ) from None
    if named.range is None:
        if named.total is not None:
            return Chunk(named.total, named.total, named.total)
        raise InvalidRequest(
            "this Content-Range names no bytes",
            header="Content-Range",
            expected="bytes START-END/TOTAL",
            found=repr(content_range),
        )
    if limit is not None and named.range.size > limit:
        raise TooLarge(
            "this chunk is larger than the service takes",
            more={"limit": limit},
            expected=f"at most {limit} bytes",
            found=named.range.size,
        )
    return Chunk(named.range.start, named.range.stop, named.total)


def span_of(upload: Upload, chunk: Chunk, length: int | None, most: int | None) -> ByteRange:
    """The bytes of the upload that a request carries, at most.

    Args:
        length: Content-Length of the request, where it has one.
        most: bytes that an upload of no announced length may have; None: any number.

    Raises:
        Unprocessable: the total, or the length of the body, is not what was announced.
        TooLarge: more than `most`.
        UploadGap: the bytes begin after those that are here.
    """
    size = upload.byte_size
    if size is None:
        size = _bound_of(upload, chunk, length, most)
    elif chunk.total not in (None, size):
        raise Unprocessable(
            "the total of Content-Range is not the byte_size of the record",
            header="Content-Range",
            more={"byte_size": size, "next_byte": upload.next_byte},
            expected=size,
            found=chunk.total,
        )
    stop = chunk.stop
    if stop is None:
        # the whole of it is as long as was announced; else the body says where it ends
        stop = size if length is None or chunk == WHOLE else chunk.start + length
    span = ByteRange(chunk.start, max(stop, chunk.start))
    if span.stop > size:
        raise Unprocessable(
            "Content-Range ends after the byte_size of the record",
            header="Content-Range",
            more={"byte_size": size, "next_byte": upload.next_byte},
            expected=f"at most {size}",
            found=span.stop,
        )
    if length is not None and length != span.size:
        raise BodyLengthMismatch(
            "the body is not as long as announced",
            more={"byte_size": size, "next_byte": upload.next_byte},
            expected=f"{span.size} bytes",
            found=length,
        )
    if span.start > upload.next_byte:
        raise UploadGap(
            "these bytes begin after those that are here",
            more={"next_byte": upload.next_byte},
            expected=f"a start of at most {upload.next_byte}",
            found=span.start,
        )
    return span


def _bound_of(upload: Upload, chunk: Chunk, length: int | None, most: int | None) -> int:
    """Where an upload of no announced length ends, as far as this request says it."""
    told = chunk.length_by(length)
    if told is not None and told < upload.next_byte:
        raise UploadLengthMismatch(
            "more bytes are here than the upload is to have",
            more={"next_byte": upload.next_byte},
            expected=f"at least {upload.next_byte}",
            found=told,
        )
    reached = told or chunk.stop or chunk.start + (length or 0)
    if most is not None and reached > most:
        raise TooLarge(
            "the upload is larger than the service takes",
            more={"limit": most},
            expected=f"at most {most} bytes",
            found=reached,
        )
    return told if told is not None else sys.maxsize if most is None else most


SYNC_BYTES = 32 << 20
"""Bytes of one request that a crash may cost, at most."""

SYNC_SECONDS = 1.0
"""So long, of an upload that nobody said the length of: it is recorded, and watched meanwhile."""

CATCH_UP_BYTES = 64 << 20
"""If more than this would have to be read again to hash on, it waits for the last chunk.

Chunks of one upload may reach several processes in turn; each would read the others' bytes again
for every chunk.
"""


def open_session(
    context: ServiceContext,
    tenant_id: str,
    family: str,
    record_id: str,
    chunk: Chunk,
    *,
    most: int | None = None,
    length: int | None = None,
    arrival: Arrival | None = None,
) -> UploadSession:
    """Begin to receive the body of a request.

    Args:
        most: bytes that an upload of no announced length may have.
        length: Content-Length, where it was sent.

    Raises:
        RecordNotFound, TooLarge, Unprocessable, UploadGap, UploadBusy, Unavailable.
    """
    upload, lease = leases.take(
        context.database,
        tenant_id,
        family,
        record_id,
        lambda upload: span_of(upload, chunk, length, most),
        context.settings.lease_seconds,
        chunk.length_by(length),
    )
    span = span_of(upload, chunk, length, most)
    session = UploadSession(context, upload, lease, span, arrival or Arrival())
    session.is_open = chunk.stop is None and length is None and chunk != WHOLE
    session.is_last = chunk.is_last
    if lease is not None:
        try:
            with session.checking_the_lease():
                session.prepare()
        except BaseException:
            session.leave()
            raise
    return session


class UploadSession:
    """One request that carries the bytes `span` of an upload; made by `open_session`.

    Without a lease, the upload is complete: the bytes are taken and skipped, and refused where
    they are all of a file and another one than the file that is here.

    Attributes:
        is_open: the body may end before the span does.
        is_last: where the body ends, so does an upload of no announced length.
    """

    def __init__(
        self,
        context: ServiceContext,
        upload: Upload,
        lease: Lease | None,
        span: ByteRange,
        arrival: Arrival,
    ) -> None:
        self.upload = upload
        self.is_open = self.is_last = False
        self._context = context
        self._lease = lease
        self._span = span
        self._arrival = arrival
        self._seen = span.start
        self._durable = self._appended = upload.next_byte
        self._synced = time.monotonic()
        self._spoiled = self._broken = False
        self._hashes: Hashes | None = None
        self._draft: Draft | None = None
        self._progress: Progress | None = upload.progress if lease is None else None
        whole = lease is None and not span.start and upload.ends_at(span.stop)
        self._again = hashlib.sha256() if whole and upload.sha256 is not None else None
        self._lock = threading.Lock()
        AHEAD.enter()

    def prepare(self) -> None:
        """Find the draft, made safe from an earlier writer, and the hashes that belong to it."""
        lease = self._held_lease()
        upload = self.upload
        self._draft = draft = self._context.store.draft(upload.draft)
        if not draft.holds(upload.next_byte):
            self._recover(draft)
            return
        if lease.orphaned:
            self._draft = draft = self._fork(draft)
        if self._span.stop > upload.next_byte:
            self._hashes = self._running_hashes(draft)

    def take(self, piece: bytes) -> None:
        """The next bytes of the body. After one that raised, no other is taken.

        Raises:
            Unprocessable: more bytes than announced.
            UploadBusy, RecordNotFound: the upload was taken over, or deleted.
            StoreFull, Unavailable: what was durable stays so.
        """
        with self._lock:
            if self._broken:
                return
            self._broken = True
            self._take(piece)
            self._broken = False

    def end(self) -> Progress:
        """The body has ended: everything durable, and complete where nothing is missing.

        Raises:
            Unprocessable: the body was shorter than announced (its bytes stay), or the md5 is not
                the one announced (`next_byte` is 0 again).
        """
        with self._lock:
            if self._progress is None:
                ends_here = self.is_last and self.upload.byte_size is None
                is_short = self._seen < (self._appended if ends_here else self._span.stop)
                if is_short and (ends_here or not self.is_open):
                    self._settle()
                    raise self._unlike("shorter", self._seen - self._span.start)
                if ends_here:
                    self._make_durable()
                    self.upload = replace(self.upload, byte_size=self._appended)
                self._settle()
            assert self._progress is not None
            self._close()
            if self._again is not None and self._seen == self._span.stop:
                self._need_same(self._again.digest())
            return self._progress

    def leave(self) -> None:
        """The client is gone, or something failed: keep what arrived, let others write."""
        with self._lock, suppress(FragdexError):
            try:
                if self._progress is None:
                    self._settle()
            finally:
                self._close()

    # ---- what they are made of

    def _take(self, piece: bytes) -> None:
        start, self._seen = self._seen, self._seen + len(piece)
        if self._seen > self._span.stop:
            if self._progress is None:
                self._spoiled = True
                self._settle()
            raise self._unlike("longer", "more")
        if self._progress is not None:
            if self._again is not None:
                self._again.update(piece)
            return
        self._held_lease().keep()
        new = piece[max(0, self._appended - start) :]
        if new:
            self._append(new)

    def _need_same(self, sha256: bytes) -> None:
        """Refuse another file of the same md5: its sender must not take it for kept."""
        if sha256 != self.upload.sha256:
            raise Unprocessable(
                "these bytes are not those that are here; announce a file of the same md5 and"
                " other bytes without its md5",
                expected=f"SHA-256 {(self.upload.sha256 or b'').hex()}",
                found=sha256.hex(),
            )

    def _unlike(self, how: str, found: object) -> BodyLengthMismatch:
        return BodyLengthMismatch(
            f"the body is {how} than announced",
            more={"byte_size": self.upload.byte_size, "next_byte": self._durable},
            expected=f"{self._span.size} bytes",
            found=found,
        )

    def _append(self, new: bytes) -> None:
        assert self._draft is not None
        with self.checking_the_lease():
            self._draft.append(self._appended, new)
        self._appended += len(new)
        if self._hashes is not None:
            self._hashes.feed(new)
        if self.upload.ends_at(self._appended):
            return
        waited = self.upload.byte_size is None and time.monotonic() - self._synced >= SYNC_SECONDS
        if waited or self._appended - self._durable >= SYNC_BYTES:
            self._make_durable()

    def _make_durable(self) -> None:
        """Flush what was appended, of an upload that does not end there, and say so in its row."""
        assert self._draft is not None
        if self._appended > self._durable:
            with self.checking_the_lease():
                durable = min(self._appended, self._draft.sync())
            try:
                self._held_lease().write(next_byte=durable)
            except QuotaExceeded:
                # nothing was reserved, and nothing counts what the draft has beyond the row
                self._draft.append(self._durable, b"")
                self._appended = self._durable
                raise
            self._durable = durable
        self._synced = time.monotonic()

    @contextmanager
    def checking_the_lease(self) -> Iterator[None]:
        """Where the store fails a writer, ask first whether the upload was taken over meanwhile.

        Whoever takes over lets the draft go, and a writer who slept finds anything but that.
        """
        try:
            yield
        except (ValueError, Unavailable) as error:
            self._held_lease().write()
            if isinstance(error, Unavailable):
                raise
            raise Unavailable("the store lost bytes of this upload", retry_after=1) from error

    def _settle(self) -> None:
        """Complete the upload, or make durable what is here; then give the lease back."""
        lease, draft, upload = self._held_lease(), self._draft, self.upload
        if lease.given_back:
            return
        try:
            if draft is not None and self._spoiled and upload.ends_at(self._span.stop):
                # what begins like the file is not the file; nothing says where it went wrong
                self._durable = 0
                self.upload = upload = completion.start_over(upload, lease, draft)
                self._hashes = None
            elif draft is not None and upload.byte_size is None:
                self._make_durable()  # counted here: nothing was reserved
            elif draft is not None and (
                self._appended > self._durable or upload.ends_at(self._appended)
            ):
                durable = min(self._appended, draft.sync())
                if upload.ends_at(durable):
                    self._complete(draft)
                    return
                self._durable = durable
            hashes = self._hashes
            if hashes is not None and hashes.position <= self._durable:
                # what is still to be hashed is hashed while the client gets the next chunk ready
                held.put(upload.draft, hashes)
        finally:
            with suppress(RecordNotFound):
                lease.give_back(next_byte=self._durable)
        self._progress = Progress(upload.byte_size, self._durable, False)

    def _complete(self, draft: Draft) -> None:
        hashes = self._hashes or self._running_hashes(draft)
        assert hashes is not None
        hashes.wait()
        lease = self._held_lease()
        with self._refused():
            try:
                completion.complete(self._context, self.upload, lease, draft, hashes, self._arrival)
            except Unavailable:
                lease.write()  # whose it is comes first, as in `checking_the_lease`
                raise
        self._progress = Progress(self.upload.length, self.upload.length, True)

    @contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except completion.Refused as refused:
            self._durable = self._appended = 0
            raise refused.error from refused.error.__cause__

    def _recover(self, draft: Draft) -> None:
        """The draft is shorter than what was durable: it became the object, or it was lost."""
        lease, upload = self._held_lease(), self.upload
        with self._refused():
            done = completion.complete_from_object(self._context, upload, lease, self._arrival)
        if done:
            with self._context.database.read() as connection:
                self.upload, _ = leases.find(
                    connection, upload.tenant_id, upload.family, upload.record_id
                )
            self._progress = self.upload.progress
            return
        self.upload = completion.start_over(upload, lease, draft)
        self._durable = self._appended = 0
        self._draft = self._context.store.draft(self.upload.draft)
        if self._span.start:
            raise UploadGap(
                "the bytes of this upload were lost",
                more={"next_byte": 0},
                expected="a start of 0",
                found=self._span.start,
            )
        self._hashes = self._running_hashes(self._draft)

    def _fork(self, draft: Draft) -> Draft:
        """The durable bytes in a draft that an earlier writer, asleep perhaps, does not know."""
        lease, upload = self._held_lease(), self.upload
        base, _, generation = upload.draft.partition(".")
        name = f"{base}.{int(generation or 0) + 1}"
        with lease.renewing():
            fork = draft.fork(name, upload.next_byte)
        lease.write(draft=name)
        # A sweep that looked before the row named it may have taken it for an orphan.
        if not fork.holds(upload.next_byte):
            raise Unavailable("the store lost bytes of this upload", retry_after=1)
        hashes = held.take(upload.draft, upload.next_byte)
        if hashes is not None:
            held.put(name, hashes)
        self.upload = replace(upload, draft=name)
        draft.discard()
        return fork

    def _running_hashes(self, draft: Draft) -> Hashes | None:
        """Hashes of all bytes up to here; None where they are better made at the end."""
        upload = self.upload
        hashes = held.take(upload.draft, self._appended)
        if hashes is None:
            watch = self._arrival.watch
            hashes = Hashes(watch(upload) if watch is not None else None)
        missing = self._appended - hashes.position
        if missing > CATCH_UP_BYTES and not upload.ends_at(self._span.stop):
            held.put(upload.draft, hashes)
            return None
        if missing:
            alive = self._held_lease().keep
            hashes.catch_up(draft.read(hashes.position), self._appended, alive)
        return hashes

    def _held_lease(self) -> Lease:
        assert self._lease is not None
        return self._lease

    def _close(self) -> None:
        if self._draft is not None:
            self._draft.close()
        AHEAD.leave()
