"""Videos whose bytes still arrive, as titles that grow: what is durable of an upload is played.

Only fragmented files can be played before they are complete. Once an upload is, the same addresses
are those of the stored file; for a while its lists are still those of a title that grew, so that
players come to its end part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from hashlib import md5
from typing import Any, Final, cast

import sqlalchemy as sa

import fragdex
from fragdex import ByteRange, Index, Source
from fragdex.errors import (
    BuildError,
    BytesMissing,
    FragdexError,
    NoSyncSample,
    RecordNotFound,
    SourceNotFound,
    Unavailable,
)
from fragdex.lru_cache import LRUCache, SingleFlightCache
from fragdex.muxing.mixed_files import muxed
from fragdex.muxing.view import View
from fragdex.origin.titles import may_grow
from fragdex.origin.waiting import Waiters
from fragdex.packaging.package import Package
from fragdex.record import record
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.child import INDEX, exact
from fragdex.service.indexing.isolated import IN_THREAD, in_turn, run_in_child
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import uploads
from fragdex.service.store.contract import Draft
from fragdex.service.streaming.titles import StoredMedium, StoredTitle
from fragdex.service.unprocessed.records import FAMILY as VIDEOS
from fragdex.service.web.threads import run_at_store

_MOST: Final = 16
"""Uploads that a process plays at a time."""

_LASTS: Final = timedelta(minutes=1)
"""After its upload is complete, for how long a title is one that grew."""

_PIECE: Final = 256 << 10
"""Bytes that are read at a time of what an upload has become."""

_THIS = (
    (uploads.c.family == sa.literal_column(f"'{VIDEOS}'"))
    & (uploads.c.record_id == sa.bindparam("file"))
    & (uploads.c.tenant_id == sa.bindparam("tenant"))
)
_ARRIVED = sa.select(
    uploads.c.draft, uploads.c.next_byte, uploads.c.completed_at, uploads.c.created_at
).where(_THIS)


_OBJECT = sa.select(uploads.c.object_key).where(_THIS)


class DraftSource(Source):
    """The first bytes of a draft, which are durable.

    Args:
        draft: of the store.
        name: of the upload.
        size: how many.
        stored: gives bytes of the object that the draft has become, from one on.
    """

    def __init__(
        self, draft: Draft, name: str, size: int, stored: Callable[[int], bytes] = lambda _: b""
    ) -> None:
        super().__init__(name, size=size)
        self._draft, self._at, self._piece, self._stored = draft, 0, b"", stored

    @property
    def identity(self) -> tuple[int, int]:
        """Stands for the upload: it is the same file with more."""
        return _identity(self.name)

    def read_up_to(self, range: ByteRange) -> bytes:
        """Bytes of a range, as far as they are durable; what comes with them is kept."""
        wanted = self._spend(range)
        found = bytearray()
        while len(found) < wanted.size:
            at = wanted.start + len(found) - self._at
            if not 0 <= at < len(self._piece):
                self._at, at = wanted.start + len(found), 0
                self._piece = self._read(self._at) or self._stored(self._at)
                if not self._piece:
                    break
            found += self._piece[at : at + wanted.size - len(found)]
        return bytes(found)

    def _read(self, start: int) -> bytes:
        """The next piece of the draft; b"" where it is one no more."""
        try:
            return bytes(next(self._draft.read(start), b""))
        except (SourceNotFound, Unavailable):
            return b""

    def close(self) -> None:
        """Give back what is open."""
        super().close()
        self._draft.close()


def _identity(name: str) -> tuple[int, int]:
    digest = md5(name.encode(), usedforsecurity=False).digest()
    return 0, int.from_bytes(digest[:7], "big")


@record(eq=False)
class ArrivingTitle:
    """What is durable of an upload, as a title.

    Attributes:
        context: of the service.
        names: the tenant, and the file.
        draft: where its bytes are.
        size: how many of them.
        began: when it was announced.
        index: of them, all samples known.
    """

    context: ServiceContext
    names: tuple[str, str]
    draft: str
    size: int
    began: datetime
    index: Index

    @property
    def key(self) -> Any:
        """Stands for its bytes."""
        return "arriving", self.names, self.draft, self.size

    @cached_property
    def package(self) -> Package:
        """What is complete of it, in HLS and DASH.

        Raises:
            BytesMissing: no segment is complete, or it is not a fragmented file.
        """
        with self._source() as source:
            if not may_grow(self.index, source):
                raise _missing("it is not in fragments, and plays once it is complete")
            try:
                return fragdex.package(
                    self.index, source=source, growing=True, began=self.began, low_latency=True
                )
            except (BuildError, NoSyncSample) as error:
                raise _missing(str(error)) from error

    def fragmented(self) -> View:
        """What there is of all tracks in fragments; raises as `fragdex.view`."""
        with self._source() as source:
            return muxed((self.index,), source=[source])

    def clip(
        self,
        start: Fraction,
        stop: Fraction | float,
        *,
        tracks: Sequence[int] | None = None,
        exact: bool = True,
    ) -> View:
        """From `start` to `stop` (seconds, exclusive), as far as it is here; as `fragdex.view`."""
        with self._source() as source:
            return fragdex.clip(
                self.index, source=source, start=start, stop=stop, tracks=tracks,
                at_key_frame=not exact,
            )  # fmt: skip

    @contextmanager
    def sources_of(self, view: View) -> Iterator[list[Any]]:
        """The sources of a view of it, open."""
        with self._source() as source:
            yield [source] * len(view.sources)

    def medium(self, kind: str) -> StoredMedium:
        """Pictures and sound are decoded once all bytes are here; raises BytesMissing."""
        raise _missing(f"its {kind} is decoded once the upload is complete")

    def _source(self) -> DraftSource:
        return _opened(self.context, self.names, self.draft, self.size)


def _opened(context: ServiceContext, names: tuple[str, str], draft: str, size: int) -> DraftSource:
    """The bytes of an upload; of the object that its draft has become, it takes a while."""

    def stored(start: int) -> bytes:
        rows = context.database.rows(_OBJECT, tenant=names[0], file=names[1])
        for (key,) in rows:
            if key is not None:
                some = ByteRange(start, min(start + _PIECE, size))
                return b"".join(context.store.read(key, some))
        return b""

    return DraftSource(context.store.draft(draft), names[1], size, stored)


@record(frozen=True, eq=False)
class ArrivedTitle(StoredTitle):
    """A stored file as the title that it was while it arrived, with its end.

    Attributes:
        file_id, draft, began: of the upload.
    """

    file_id: str
    draft: str
    began: datetime

    @property
    def key(self) -> Any:
        """Stands for its bytes."""
        return "arrived", self.file_id, self.media

    @cached_property
    def package(self) -> Package:
        """As that of `ArrivingTitle`, with the same tags; raises as `fragdex.package`."""
        (index,) = self.indexes
        index = _named(index, self.file_id)
        with self._upload() as source:
            return fragdex.package(
                index, source=source, growing="ended", began=self.began, low_latency=True
            )

    @contextmanager
    def sources_of(self, view: View) -> Iterator[list[Any]]:
        """The sources of a view of it, open."""
        if [*view.sources] == [index.file for index in self.indexes]:
            with super().sources_of(view) as sources:
                yield sources
            return
        with self._upload() as source:
            yield [source] * len(view.sources)

    def _upload(self) -> DraftSource:
        names = self.tenant_id, self.file_id
        return _opened(self.context, names, self.draft, self.media[0].byte_size)


def _missing(why: str) -> BytesMissing:
    return BytesMissing(f"bytes of the file are missing: {why}", more={"state": "uploading"})


class ArrivingTitles(SingleFlightCache[ArrivingTitle]):
    """The uploads that a process plays, each as it was seen last.

    Attributes:
        waiters: requests that wait for more of them.
    """

    def __init__(self) -> None:
        super().__init__("the upload")
        self.waiters = Waiters(cast(Any, self), run_at_store)
        self._context: ServiceContext | None = None
        self._latest: LRUCache[ArrivingTitle] = LRUCache(_MOST)
        self._arrived: LRUCache[ArrivedTitle] = LRUCache(_MOST)

    def title(self, context: ServiceContext, tenant_id: str, file_id: str) -> ArrivingTitle | None:
        """An upload as a title, with what is durable now; None: it is complete, or there is none.

        Raises:
            BytesMissing: it cannot be played yet.
            FragdexError: it can never be.
        """
        self._context = context
        found = _state(context, (tenant_id, file_id))
        if found is None or found[3] is not None:
            return None
        draft, size, began, _ = found
        names, before = (tenant_id, file_id), self.latest((tenant_id, file_id))
        if before is not None and (before.draft, before.size) == (draft, size):
            return before

        def make() -> ArrivingTitle:
            index = _index(context, names, draft, size, before)
            return ArrivingTitle(context, names, draft, size, began, index)

        title = self.get_once((names, draft, size), _MOST, make, among=tenant_id)
        self._latest.put("/".join(names), title, 1)
        return title

    def arrived(
        self, context: ServiceContext, stored: StoredTitle, file_id: str
    ) -> ArrivedTitle | None:
        """A stored file whose upload was completed lately, as its players have it.

        None: it is not such a file, or was not played from its upload.
        """
        names = stored.tenant_id, file_id
        found = _state(context, names)
        is_late = found is None or found[3] is None or found[3] + _LASTS < instant()
        is_other = len(stored.media) > 1 or (found and found[1] != stored.media[0].byte_size)
        if found is None or is_late or is_other:
            self._latest.drop("/".join(names))
            return None

        def make() -> ArrivedTitle:
            own = file_id, found[0], found[2]
            return ArrivedTitle(context, stored.tenant_id, stored.media, stored.indexes, *own)

        title = self._arrived.get_or_make((names, stored.media), _MOST, make)
        return None if title.package.title.promised is None else title  # it is not in fragments

    # what `Waiters` need

    def latest(self, names: tuple[str, ...]) -> ArrivingTitle | None:
        """The title as it was seen last."""
        return self._latest.get("/".join(names))

    def opened(self, names: tuple[str, ...]) -> ArrivingTitle | None:
        """The title if nothing came, at once; None: it has to be looked at in a thread."""
        title, context = self.latest(names), self._context
        if title is None or context is None:
            return None
        try:
            found = _state(context.nonblocking(), names)
        except BlockingIOError:
            return None
        return title if found is not None and found[1:] == (title.size, title.began, None) else None

    def open(self, names: tuple[str, ...]) -> ArrivingTitle:
        """The title with what is durable now; raises as `title`."""
        assert self._context is not None
        tenant_id, file_id = names
        title = self.title(self._context, tenant_id, file_id)
        if title is None:
            self._latest.drop("/".join(names))
            raise RecordNotFound("the upload is complete")
        return title


def _state(
    context: ServiceContext, names: tuple[str, ...]
) -> tuple[str, int, datetime, datetime | None] | None:
    """Draft, durable bytes, when it was announced and completed; None: nothing has come."""
    rows = context.database.rows(_ARRIVED, tenant=names[0], file=names[1])
    for draft, size, completed, created in rows:
        if size:
            return draft, size, _in_utc(created), None if completed is None else _in_utc(completed)
    return None


def _in_utc(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _index(
    context: ServiceContext,
    names: tuple[str, str],
    draft: str,
    size: int,
    before: ArrivingTitle | None,
) -> Index:
    def opened() -> DraftSource:
        return DraftSource(context.store.draft(draft), names[1], size)

    try:
        with opened() as source:
            if before is not None and before.draft == draft and before.size <= size:
                source.max_bytes = IN_THREAD
                index = before.index.extend(source)
            elif size <= IN_THREAD:
                index = fragdex.index(source, exact=True)
            else:
                with OwnFolder() as folder, in_turn(names[0]):
                    path = folder / INDEX
                    run_in_child(opened, size, exact, {INDEX: path}, name=names[1])
                    index = fragdex.open_index(path)
    except FragdexError as error:
        raise _missing(str(error)) from error
    return _named(index, names[1])


def _named(index: Index, name: str) -> Index:
    """The index of an upload, which is the same file with more."""
    file = replace(index.file, name=name, grows_as=_identity(name))
    return Index(
        file, index.how, index.periods, findings=index.findings, complete=index.complete,
        resume_offset=index.resume_offset, digests=index.digests,
    )  # fmt: skip
