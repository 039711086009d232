"""Timelines: several ISOBMFF files one after the other, played as one.

As a title, each file is a fragmented view of its tracks; these stand one after the other in
another view, and of that one the packages, clips and pictures are made. Nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.engine import Connection
from typing_extensions import TypeAliasType

import fragdex
from fragdex import ByteRange, Index, Source
from fragdex.errors import Conflict, InvalidRequest, RecordNotFound, TrackNotFound
from fragdex.lru_cache import SingleFlightCache
from fragdex.muxing.view import SourceRange, View
from fragdex.packaging.package import Package
from fragdex.record import record
from fragdex.sandbox.folders import OwnFolder
from fragdex.seeking.model import FileInfo
from fragdex.service.context import ServiceContext
from fragdex.service.files.operations import isobmff_id
from fragdex.service.indexing.isolated import in_turn, run_in_child
from fragdex.service.isobmff.operations import FILES
from fragdex.service.records import deletion
from fragdex.service.records.blobs import Blob
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.pages import DEFAULT_LIMIT
from fragdex.service.records.tables import isobmff_files, timelines
from fragdex.service.records.tenant_limits import ensure_within_quota
from fragdex.service.streaming import child
from fragdex.service.streaming.routes import title_routes
from fragdex.service.streaming.titles import StoredMedium, StoredTitle, media_of_file, title_of
from fragdex.service.uploads.family import Family
from fragdex.service.uploads.repository import Repository
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.fields import (
    NO_NUL,
    ApiModel,
    Cursor,
    Instant,
    Limit,
    Listed,
    RequestBody,
    record_id,
)
from fragdex.service.web.routing import api_router

Gaps = TypeAliasType("Gaps", Literal["keep", "close"])
MOST_FILES = 100
"""Of one timeline."""

FileId = Annotated[str, Field(min_length=1, max_length=36), NO_NUL]


class NewTimeline(RequestBody):
    """Files to be played one after the other."""

    files: list[FileId] = Field(
        min_length=1, max_length=MOST_FILES, description="ids of videos, in their order"
    )
    gaps: Gaps = Field(
        "close",
        description="`close`: each file begins where the one before ends; `keep`: at its own "
        "presentation times, less that of the first",
    )
    name: Annotated[str, Field(max_length=1024), NO_NUL] = ""
    expires_at: Instant | None = Field(None, description="when the timeline, not its files, ends")


class TimelineRecord(ApiModel):
    """Several files one after the other, streamed as one."""

    id: str
    name: str
    files: list[str] = Field(description="ids of ISOBMFF files, in their order")
    missing: list[str] = Field(
        description="those of them that were deleted; until they are taken out, nothing is played"
    )
    gaps: Gaps
    created_at: str
    expires_at: str | None


class TimelineList(Listed):
    """Timelines, newest first."""

    timelines: list[TimelineRecord]


FAMILY = "timelines"


def create_timeline(
    context: ServiceContext, tenant_id: str, new: NewTimeline
) -> tuple[TimelineRecord, bool]:
    """A timeline of files that are there, and True.

    Raises:
        InvalidRequest: a file is not, or a time is past.
        QuotaExceeded: the tenant would store too much.
    """
    if new.expires_at is not None and new.expires_at <= instant():
        raise InvalidRequest("expires_at is in the past", pointer="/expires_at")
    files = [_file(context, tenant_id, number, one) for number, one in enumerate(new.files)]
    row = {
        "id": new_id(),
        "tenant_id": tenant_id,
        "name": new.name,
        "files": files,
        "gaps": new.gaps,
        "created_at": instant(),
        "expires_at": new.expires_at,
    }
    with context.database.write() as connection:
        connection.execute(timelines.insert().values(**row))
        ensure_within_quota(connection, tenant_id)
        return TIMELINES.read(connection, tenant_id, str(row["id"])), True


def _file(context: ServiceContext, tenant_id: str, number: int, file_id: str) -> str:
    """The ISOBMFF file that is meant."""
    try:
        known = record_id(file_id)
        try:
            with context.database.read() as connection:
                return str(FILES.row(connection, tenant_id, known).id)
        except RecordNotFound:
            return isobmff_id(context, tenant_id, known)
    except RecordNotFound as error:
        raise InvalidRequest(
            f"file {number + 1} cannot be played: {error.message}", pointer=f"/files/{number}"
        ) from None


def delete_timeline(context: ServiceContext, tenant_id: str, timeline_id: str) -> None:
    """Delete a timeline; its files stay.

    Raises:
        RecordNotFound: this tenant has none of this id.
    """
    with context.database.write() as connection:
        TIMELINES.row(connection, tenant_id, timeline_id, lock=True)
        deletion.remove(connection, FAMILY, timeline_id)


def title_of_timeline(context: ServiceContext, tenant_id: str, timeline_id: str) -> JoinedTitle:
    """The files of a timeline as one title.

    Raises:
        RecordNotFound: this tenant has none of this id.
        Conflict: a file of it was deleted.
        NotReady, FragdexError: as `media_of_file`, `title_of` and `JoinedTitle`.
    """
    with context.database.read() as connection:
        record = TIMELINES.read(connection, tenant_id, timeline_id)
    if record.missing:
        raise Conflict(
            f"{len(record.missing)} of its files were deleted: make another timeline without them",
            more={"missing": record.missing},
        )
    media = tuple(media_of_file(context, tenant_id, one) for one in record.files)
    return context.part(JoinedTitles).title(
        media, record.gaps, lambda: [title_of(context, tenant_id, one) for one in media]
    )


def _records(connection: Connection, rows: Sequence[Any]) -> list[TimelineRecord]:
    wanted = {(row.tenant_id, one) for row in rows for one in row.files}
    file = isobmff_files.c
    there: set[tuple[str, str]] = set()
    if wanted:
        query = sa.select(file.tenant_id, file.id).where(file.id.in_({one for _, one in wanted}))
        there = {(row.tenant_id, row.id) for row in connection.execute(query)}
    return [
        TimelineRecord.of_row(
            row, missing=[one for one in row.files if (row.tenant_id, one) not in there]
        )
        for row in rows
    ]


TIMELINES = Repository(timelines, "timeline", _records, TimelineList, {})
"""The timelines of tenants."""


_SAMPLES_IN_MEMORY: Final = 2_000_000
T = TypeVar("T")


@record(frozen=True, slots=True)
class _Described:
    """A view and its index."""

    view: View
    index: Index


def _described(view: View, path: Path) -> _Described:
    index = fragdex.open_index(path)  # mapped: it stays when the folder goes
    known = FileInfo("", view.size, etag=view.etag)
    return _Described(view, Index(known, index.how, index.periods))


class JoinedTitle:
    """Titles one after the other.

    Args:
        titles: in their order.
        gaps: `keep` or `close`.

    Raises:
        BuildError: they do not go together; the message says why.
        FragdexError: as `run_isolated`.
    """

    def __init__(self, titles: Sequence[StoredTitle], gaps: str) -> None:
        self._titles = titles
        self.key = gaps, tuple(title.media for title in titles)
        self._views = [title.fragmented() for title in titles]
        sizes = [view.size for view in self._views]
        starts: Literal["source"] | None = "source" if gaps == "keep" else None
        with OwnFolder() as folder:
            with in_turn(titles[0].tenant_id):
                written = run_in_child(
                    self._one_behind_the_other, sum(sizes), child.indexes,
                    taken=folder, sizes=sizes, starts=starts,
                )  # fmt: skip
            *paths, last = (folder / name for name in written["files"])
            members = [_described(*one) for one in zip(self._views, paths, strict=True)]
            with self._opened_members() as sources:
                given = [one.index for one in members]
                view = fragdex.join(given, source=sources, starts=starts)
            self._whole = _described(view, last)

    @contextmanager
    def _opened_members(self) -> Iterator[list[Source]]:
        with ExitStack() as stack:
            yield [
                view.as_source(source=stack.enter_context(title.sources_of(view)))
                for title, view in zip(self._titles, self._views, strict=True)
            ]

    @contextmanager
    def _one_behind_the_other(self) -> Iterator[Source]:
        known = [FileInfo("", view.size, etag=view.etag) for view in self._views]
        sizes = [view.size for view in self._views]

        def make(number: int) -> list[SourceRange]:
            return [SourceRange(number, ByteRange(0, sizes[number]))]

        with self._opened_members() as members:
            yield View("video/mp4", known, ["members"], sizes, make).as_source(source=members)

    @contextmanager
    def _opened(self) -> Iterator[Source]:
        with self._opened_members() as members:
            yield self._whole.view.as_source(source=members)

    def _made(self, make: Callable[[Index, Source], T]) -> T:
        with self._opened() as source:
            return make(self._whole.index, source)

    @cached_property
    def package(self) -> Package:
        """All of it in HLS and DASH; raises as `fragdex.package`."""
        return self._made(lambda index, source: fragdex.package(index, source=source))

    def fragmented(self) -> View:
        """All of it as one file."""
        return self._whole.view

    def clip(
        self,
        start: Fraction,
        stop: Fraction | float,
        *,
        tracks: Sequence[int] | None = None,
        exact: bool = True,
    ) -> View:
        """From `start` to `stop` (seconds, exclusive), as one file; raises as `fragdex.view`."""
        wanted: dict[str, Any] = {"start": start, "stop": stop, "tracks": tracks}
        return self._made(
            lambda index, source: fragdex.clip(
                index, source=source, at_key_frame=not exact, **wanted
            )
        )

    @contextmanager
    def sources_of(self, view: View) -> Iterator[list[Any]]:
        """The sources of a view of this title, open."""
        if view is self._whole.view:
            with self._opened_members() as members:
                yield list(members)
        else:
            with self._opened() as source:
                yield [source] * len(view.sources)

    def medium(self, kind: str) -> StoredMedium:
        """The whole, as what pictures and waveforms are made from; raises TrackNotFound."""
        tracks = [track for track in self._whole.index.tracks if track.kind == kind]
        if not tracks:
            raise TrackNotFound(f"the timeline has no {kind}")
        return StoredMedium(
            self._titles[0].media[0], tracks[0], self._opened, self._whole.view.size,
            self._saved_index, self._whole.view.etag.strip('"'),
        )  # fmt: skip

    @contextmanager
    def _saved_index(self) -> Iterator[Any]:
        with OwnFolder() as folder:
            self._whole.index.save(folder / "index.fidx", samples=True)
            with (folder / "index.fidx").open("rb") as file:
                yield file

    @property
    def samples(self) -> int:
        """How many samples it has: what it costs in memory."""
        return sum(track.sample_count or 0 for track in self._whole.index.tracks)


class JoinedTitles(SingleFlightCache[JoinedTitle]):
    """The timelines that a process keeps, each made once."""

    def __init__(self) -> None:
        super().__init__("the timeline")

    def title(
        self,
        media: tuple[tuple[Blob, ...], ...],
        gaps: str,
        titles: Callable[[], Sequence[StoredTitle]],
    ) -> JoinedTitle:
        """The title of some files; `titles` gives those of each.

        Raises:
            FragdexError: as `JoinedTitle` and `SingleFlight.do`.
        """

        def make() -> JoinedTitle:
            return JoinedTitle(titles(), gaps)

        return self.get_once(
            (gaps, media), _SAMPLES_IN_MEMORY, make, weight=lambda one: 2 * one.samples
        )


router = api_router("timelines")
routes = Family(router, "/timelines", "timeline")

routes.creation(
    NewTimeline,
    TimelineRecord,
    create_timeline,
    InvalidRequest,
    RecordNotFound,
    description="Join files into one timeline. Nothing is copied, and the files are unchanged.",
    always_new=True,
)


@router.get("/timelines")
def list_timelines(
    caller: Asking, context: InContext, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> TimelineList:
    """Timelines, newest first."""
    return TIMELINES.page(context, caller.tenant_id, limit, cursor, None)


routes.record(TimelineRecord, TIMELINES.get)
routes.deletion(delete_timeline, description="Delete a timeline; its files stay.")
title_routes(router, "/timelines/{id}", "timeline", title_of_timeline)
