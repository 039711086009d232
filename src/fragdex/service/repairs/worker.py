"""The job `repair`: a file whose index is lost or wrong becomes a file of its own.

Its samples are found in a process of its own. The repaired file consists of a head that is made and
of ranges of the broken file: where originals are kept, it is composed of it and not stored a second
time. It becomes visible in one transaction, with the process that makes its tracks. A run that
comes again starts again, with the same good file.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.errors import RecordNotFound, Unprocessable
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.repairing import RepairedFile, repaired
from fragdex.service.isobmff import operations as isobmff
from fragdex.service.jobs.work import Job, Work
from fragdex.service.outbox import emit
from fragdex.service.records import blobs
from fragdex.service.records.blobs import Blob, ComposedOf
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.tables import files, repairs
from fragdex.service.store.composing import MOST_RECORD_BYTES, Composition, is_composed
from fragdex.service.unprocessed.operations import is_over, start
from fragdex.service.unprocessed.records import FAMILY, UNPROCESSED, file_alike, file_data
from fragdex.service.web.fields import record_id

REPAIR: Final = "repair"
"""The name of the work; its record is a repair."""

_ROW = repairs.c
OPEN: Final = _ROW.completed_at.is_(None) & _ROW.failed_at.is_(None)
"""Work on it is wanted."""

# How much of the whole is done when all samples are found, and when the bytes are hashed.
_FOUND_PART: Final = 0.6
_HASHED_PART: Final = 0.8
_PROGRESS_SECONDS: Final = 0.5


class _Deleted(BaseException):
    """The repair was deleted, perhaps with its file: nobody wants its result."""


def _run(context: ServiceContext, job: Job) -> None:
    row = _begin(context, job.record_id)
    if row is None:
        return
    progress = _Progress(context, job)
    try:
        with context.database.read() as connection:
            blob = blobs.used_by(connection, row.tenant_id, FAMILY, row.file_id)
        if blob is None:
            raise Unprocessable("the bytes of this file have not been uploaded")
        like = _good_file(context, row, blob, progress.check)
        repaired_file = repaired(
            context, blob.store_key, like,
            rate=row.wanted["rate"],
            progress=lambda part: progress(_FOUND_PART * part), check=progress.check,
        )  # fmt: skip
        _keep(context, row, blob, repaired_file, progress)
    except _Deleted:
        return


def _begin(context: ServiceContext, repair_id: str) -> Row[Any] | None:
    """The repair and its file; None where it is over or deleted."""
    query = sa.select(repairs, files.c.filename).join(files, files.c.id == _ROW.file_id)
    with context.database.write() as connection:
        row = connection.execute(query.where(_ROW.id == repair_id, OPEN)).one_or_none()
        if row is not None and row.started_at is None:
            mine = repairs.update().where(_ROW.id == repair_id)
            connection.execute(mine.values(started_at=instant()))
    return row


def _good_file(
    context: ServiceContext, row: Row[Any], blob: Blob, check: Callable[[], None]
) -> str | None:
    """The key of the good file that is named, or that the file is most like; None: there is none.

    Raises:
        Unprocessable: the one that is named has gone.
    """
    if row.like_file_id is None:
        like = file_alike(context, row.tenant_id, row.file_id, blob.store_key, row.filename, check)
        if like is None:
            return None
        with context.database.write() as connection:
            mine = repairs.update().where(_ROW.id == row.id)
            connection.execute(mine.values(like_file_id=like.id))
        return str(like.store_key)
    with context.database.read() as connection:
        good = good_bytes(connection, row.tenant_id, row.like_file_id)
    if good is None:
        raise Unprocessable("the good file has been deleted")
    return good.store_key


def good_bytes(connection: Connection, tenant_id: str, file_id: str) -> Blob | None:
    """The bytes of a video of a tenant; None where it has no such one, or not its bytes."""
    try:
        known = record_id(file_id)
        blob = blobs.used_by(connection, tenant_id, FAMILY, known)
        if blob is None:
            file = isobmff.FILES.row(connection, tenant_id, known)
            blob = isobmff.file_bytes(connection, file)
    except RecordNotFound:
        return None
    return blob


class _Progress:
    """Writes how far a repair is, now and then; never backwards."""

    def __init__(self, context: ServiceContext, job: Job) -> None:
        self._context, self._job = context, job
        self._written = self._part = 0.0

    def __call__(self, part: float) -> None:
        self._part = max(self._part, part)
        self.check()

    def check(self) -> None:
        """End the run where it is not wanted any more."""
        self._job.check()
        if time.monotonic() - self._written < _PROGRESS_SECONDS:
            return
        self._written = time.monotonic()
        mine = repairs.update().where(_ROW.id == self._job.record_id)
        part = sa.case((_ROW.progress < self._part, self._part), else_=_ROW.progress)
        with self._context.database.write(passing=True) as connection:
            there = connection.execute(mine.values(progress=part)).rowcount
        if not there:
            raise _Deleted


def _keep(
    context: ServiceContext,
    row: Row[Any],
    blob: Blob,
    repaired_file: RepairedFile,
    progress: _Progress,
) -> None:
    """Write the repaired file into the store, and make it visible."""
    composition = _composition(blob, repaired_file)
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()

    def pieces(begin: float, end: float) -> Iterator[bytes]:
        done = 0
        with context.store.source(blob.store_key) as source:
            for piece in composition.view().chunks(source=source):
                done += len(piece)
                progress(begin + (end - begin) * done / composition.size)
                yield piece

    for piece in pieces(_FOUND_PART, _HASHED_PART):
        md5.update(piece)
        sha256.update(piece)
    # what is composed itself may be composed of something that goes
    composing = context.settings.keep == "original" and not is_composed(blob.store_key)
    record = composition.built() if composing else b""
    with context.database.write() as connection:
        key = blobs.expect(connection, row.tenant_id, sha256.digest(), composed=composing)
        known = blobs.find(connection, row.tenant_id, sha256.digest()) is not None
    of = None
    if not known and composing:
        context.store.write(key, [record])
        of = ComposedOf(blob.sha256, blob.store_key, len(record))
    elif not known:
        context.store.write(key, pieces(_HASHED_PART, 1.0))
    own = Blob(md5.digest(), sha256.digest(), composition.size, key)
    with context.database.write() as connection:
        _publish(context, connection, row, own, of, repaired_file)


def _composition(blob: Blob, repaired_file: RepairedFile) -> Composition:
    """The repaired file in terms of the broken one.

    Raises:
        Unprocessable: it has too many pieces, or a range is outside of the broken file.
    """
    starts, sizes = repaired_file.starts, repaired_file.sizes
    inside = (starts >= 0) & (sizes > 0) & (sizes <= blob.byte_size)
    if not (inside & (starts <= blob.byte_size - sizes)).all():
        raise Unprocessable("the repaired file has bytes that the file does not have")
    if starts.nbytes + sizes.nbytes + len(repaired_file.head) > MOST_RECORD_BYTES:
        raise Unprocessable(
            "the repaired file has too many pieces",
            advice="repair a copy of the file with: fragdex repair",
        )
    one = np.ones(1, np.int64)
    return Composition(
        blob.store_key, blob.byte_size, repaired_file.head,
        one * len(repaired_file.head), one * len(sizes), starts, sizes,
    )  # fmt: skip


def _publish(
    context: ServiceContext,
    connection: Connection,
    row: Row[Any],
    own: Blob,
    of: ComposedOf | None,
    repaired_file: RepairedFile,
) -> None:
    """Make the repaired file visible, and have it processed; nothing where another run did."""
    query = sa.select(repairs, files.c.filename, files.c.expires_at).join(
        files, files.c.id == _ROW.file_id
    )
    mine = _ROW.id == row.id
    still = connection.execute(query.where(mine, OPEN).with_for_update(of=repairs)).one_or_none()
    if still is None:
        return
    now = instant()
    known = UNPROCESSED.known(connection, row.tenant_id, own.md5, own.byte_size)
    if known is not None and known.completed_at is not None and not is_over(connection, known):
        file_id = known.id
    else:
        file_id = new_id()
        values = {
            "id": file_id,
            "tenant_id": row.tenant_id,
            "type": FAMILY,
            "filename": repaired_name(still.filename),
            "mime_type": None,
            "byte_size": own.byte_size,
            "md5": own.md5,
            "sha256": own.sha256,
            "process_when_complete": True,
            "created_at": now,
            "completed_at": now,
            "expires_at": still.expires_at,
        }
        connection.execute(files.insert().values(**values))
        blobs.keep(
            connection, row.tenant_id, own.md5, own.sha256, own.byte_size, FAMILY, file_id,
            own.store_key, composed_of=of,
        )  # fmt: skip
        uploaded = {**file_data(file_id, own.md5), "byte_size": own.byte_size}
        emit(context, connection, row.tenant_id, "file.uploaded", uploaded)
        file = connection.execute(sa.select(files).where(files.c.id == file_id)).one()
        start(context, connection, file, None)
    done = {"completed_at": now, "progress": 1.0, "report": repaired_file.report}
    connection.execute(repairs.update().where(mine).values(**done, repaired_file_id=file_id))


def repaired_name(filename: str) -> str:
    """What the repaired file of a file is called."""
    stem = PurePosixPath(filename).stem if filename.strip("/.") else filename
    return f"{stem[:1000]}.repaired.mp4"


def _failed(context: ServiceContext, job: Job, problem: Mapping[str, Any]) -> None:
    mine = (_ROW.id == job.record_id) & OPEN
    context.database.change(
        repairs.update().where(mine).values(failed_at=instant(), problem=dict(problem))
    )


WORK: tuple[Work, ...] = (Work(REPAIR, _run, _failed),)
"""What the family has done by workers."""
