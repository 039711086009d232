"""Titles: the bytes of a stored file, or a video beyond the service at an https URL, as one title.

Of stored files: which bytes they are, their indexes, and packages of the last few. Beyond the
service is read by ranges what the operator allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import IO, Any, Final, Protocol, TypeVar

import numpy as np
import sqlalchemy as sa

import fragdex
from fragdex import ByteRange, Index, Source, Track
from fragdex.errors import (
    BytesMissing,
    FragdexError,
    InvalidRequest,
    MediaUnavailable,
    SourceChanged,
    SourceError,
    SourceUnavailable,
    TrackNotFound,
    Unprocessable,
)
from fragdex.formats.subsegments import period_of
from fragdex.lru_cache import LRUCache, SingleFlightCache
from fragdex.muxing.mixed_files import clip_of_several, muxed
from fragdex.muxing.segmentation import cut
from fragdex.muxing.view import Scattered, View
from fragdex.packaging.package import Package
from fragdex.packaging.renditions import Rendition
from fragdex.record import record
from fragdex.rendering.page_media.opening import OutsideSource
from fragdex.rendering.site import Blocked
from fragdex.rendering.web import AllowedHosts
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.child import INDEX, sampled
from fragdex.service.indexing.isolated import in_turn, run_in_child
from fragdex.service.isobmff.opened import sampled_index, sampled_index_file
from fragdex.service.isobmff.operations import FILES, file_bytes
from fragdex.service.isobmff.tracks import OF_USE, OWN_BYTES
from fragdex.service.records.blobs import Blob
from fragdex.service.records.tables import blob_uses, blobs, isobmff_files, isobmff_tracks
from fragdex.service.unprocessed.records import FAMILY as VIDEOS
from fragdex.serving.answers import LARGEST, PREPARED, Located, PreparedSegment, SegmentResponse

_SAMPLES_IN_MEMORY: Final = 4_000_000
"""Of all packages that a process keeps: about 100 bytes each."""
_TEXTS: Final = 256
_VIEWS: Final = 64


@record(frozen=True, slots=True)
class StoredMedium:
    """What pictures and waveforms are made from.

    Attributes:
        blob: with whose bytes they go.
        track: the first of the wanted kind.
        opened: opens what is read.
        size: bytes of that.
        index: opens the file of its index, which has all samples.
        mark: what tells it from the blob itself; "" where it is that.
    """

    blob: Blob
    track: Track
    opened: Callable[[], AbstractContextManager[Source]]
    size: int
    index: Callable[[], AbstractContextManager[IO[bytes]]]
    mark: str = ""


class Playable(Protocol):
    """What is played: a stored title, or several one after the other."""

    @property
    def key(self) -> Any:
        """Stands for all that decides its bytes."""

    @property
    def package(self) -> Package:
        """All tracks in HLS and DASH; raises as `fragdex.package`."""

    def fragmented(self) -> View:
        """All tracks in fragments, in one file; raises as `fragdex.view`."""

    def clip(
        self,
        start: Fraction,
        stop: Fraction | float,
        *,
        tracks: Sequence[int] | None = None,
        exact: bool = True,
    ) -> View:
        """From `start` to `stop` (seconds, exclusive); args and errors as of `fragdex.view`.

        Args:
            tracks: ids as `fragmented` has them; None: all.
        """

    def sources_of(self, view: View) -> AbstractContextManager[list[Any]]:
        """The sources of a view that was made here, open."""

    def medium(self, kind: str) -> StoredMedium:
        """What pictures (`video`) or waveforms (`audio`) are made from; raises TrackNotFound."""


@record(frozen=True, eq=False)
class StoredTitle:
    """One or several files of the store whose tracks are played together.

    Attributes:
        media: their bytes.
        indexes: of each, every sample known.
    """

    context: ServiceContext
    tenant_id: str
    media: tuple[Blob, ...]
    indexes: tuple[Index, ...]

    @property
    def key(self) -> Any:
        """Stands for its bytes."""
        return self.media

    @cached_property
    def package(self) -> Package:
        """All tracks in HLS and DASH; raises as `fragdex.package`."""
        with self.sources() as sources:
            return fragdex.package(self.indexes, source=sources)

    @contextmanager
    def sources(self) -> Iterator[list[Source]]:
        """The files, open."""
        with ExitStack() as stack:
            open_ = self.context.store.source
            yield [stack.enter_context(open_(blob.store_key)) for blob in self.media]

    @contextmanager
    def sources_of(self, view: View) -> Iterator[list[Any]]:
        """The files that a view of this title is made of, open."""
        known = [index.file for index in self.indexes]
        with ExitStack() as stack:
            keys = [self.media[known.index(one)].store_key for one in view.sources]
            yield [stack.enter_context(self.context.store.source(key)) for key in keys]

    def faststart(self) -> View:
        """The only file with its moov in front; raises as `fragdex.view`."""
        return self._view("faststart", self._moov_in_front)

    def _moov_in_front(self, sources: list[Source]) -> View:
        return fragdex.view(self.indexes[0], "faststart", source=sources[0])

    def fragmented(self) -> View:
        """All tracks in fragments, in one file; raises as `fragdex.view`."""
        return self._view("fragmented", lambda sources: muxed(self.indexes, source=sources))

    def clip(
        self,
        start: Fraction,
        stop: Fraction | float,
        *,
        tracks: Sequence[int] | None = None,
        exact: bool = True,
    ) -> View:
        """From `start` to `stop` (seconds, exclusive), in one file.

        Raises: as `fragdex.view`.
        """

        def make(sources: list[Source]) -> View:
            wanted: dict[str, Any] = {
                "start": start, "stop": stop, "tracks": tracks
            }  # fmt: skip
            if len(self.indexes) > 1:
                return clip_of_several(self.indexes, source=sources, exact=exact, **wanted)
            return fragdex.clip(
                self.indexes[0], source=sources[0], at_key_frame=not exact, **wanted
            )

        chosen = "all" if tracks is None else ",".join(map(str, tracks))
        return self._view(f"clip {start} {stop} {chosen} {exact}", make)

    def medium(self, kind: str) -> StoredMedium:
        """The first file with a track of a kind; raises TrackNotFound."""
        for blob, index in zip(self.media, self.indexes, strict=True):
            for track in index.tracks:
                if track.kind == kind:
                    opened = partial(self.context.store.source, blob.store_key)
                    return StoredMedium(
                        blob, track, opened, blob.byte_size, partial(self._index_of, blob)
                    )
        raise TrackNotFound(f"the file has no {kind}")

    @contextmanager
    def _index_of(self, blob: Blob) -> Iterator[IO[bytes]]:
        with sampled_index_file(self.context, self.tenant_id, blob) as file:
            yield file

    def _view(self, name: str, make: Callable[[list[Source]], View]) -> View:
        """A view of its files; the last few are kept."""

        def made() -> View:
            with self.sources() as sources:
                return make(sources)

        return self.context.part(_Views).get_or_make((self.media, name), _VIEWS, made)

    @property
    def samples(self) -> int:
        """How many samples its tracks have: what it costs in memory."""
        tracks = (track for index in self.indexes for track in index.tracks)
        return sum(track.sample_count or 0 for track in tracks)


class StoredTitles(SingleFlightCache[StoredTitle]):
    """The titles that a process keeps, each made once."""

    def __init__(self) -> None:
        super().__init__("the file")

    def title(
        self, context: ServiceContext, tenant_id: str, media: tuple[Blob, ...]
    ) -> StoredTitle:
        """The title of some files; requests while it is made wait for it.

        Raises:
            FragdexError: as `sampled_index` and `SingleFlight.do`.
        """

        def make() -> StoredTitle:
            indexes = tuple(sampled_index(context, tenant_id, blob) for blob in media)
            return StoredTitle(context, tenant_id, media, indexes)

        return self.get_once(media, _SAMPLES_IN_MEMORY, make, weight=lambda one: one.samples)


class StoredSegments(LRUCache[PreparedSegment]):
    """Segments of stored titles that a process has ready; for the event loop alone."""

    def __init__(self) -> None:
        super().__init__(PREPARED)
        self._buffer = memoryview(bytearray(2 * LARGEST))

    def response(
        self,
        title: StoredTitle,
        name: str,
        fields: Mapping[str, str],
        extensions: Mapping[str, object],
    ) -> SegmentResponse:
        """The answer with a segment of a title.

        Args:
            name: of the segment in the package.
            fields: of every answer.
            extensions: of ASGI, that the server has.

        Raises:
            BlockingIOError: something has to be made or waited for, or there is no such segment.
        """
        key = title.key, name
        segment = self.get(key)
        if segment is None:
            segment = _prepared(title, name, fields)
            if segment is not None:
                self.put(key, segment, segment.size)
        if segment is not None:
            with suppress(FragdexError), ExitStack() as stack:
                source = stack.enter_context(title.context.store.source(segment.name))
                response = segment.response(source, self._buffer, extensions)
                if response is not None:
                    stack.pop_all()  # the answer closes it
                    return response
        raise BlockingIOError("the segment has to be made or read in a thread")


def _prepared(title: StoredTitle, name: str, fields: Mapping[str, str]) -> PreparedSegment | None:
    """None: only a thread may make it."""
    if "package" not in title.__dict__:
        return None

    def locate(places: Scattered) -> Located | None:
        number = [index.file for index in title.indexes].index(view.sources[0])
        place = title.context.store.located(title.media[number].store_key, places)
        return None if place is None else Located(place[0], place[1] or view.sources[0], place[2])

    try:
        view = title.package[name]
        return PreparedSegment.of(view, fields, locate)
    except (FragdexError, KeyError):
        return None  # the route says why


class _Views(LRUCache[View]):
    """Clips and other views that a process keeps."""


class Texts(LRUCache[View]):
    """Playlists and manifests that a process keeps."""

    def text(self, title: Playable, name: str) -> View:
        """One of a title.

        Raises:
            KeyError: it has no such file.
        """
        return self.get_or_make((title.key, name), _TEXTS, lambda: title.package[name])


def title_of(context: ServiceContext, tenant_id: str, media: Sequence[Blob]) -> StoredTitle:
    """Files of the store as one title.

    Raises:
        RecordNotFound: their bytes were deleted meanwhile.
        FragdexError: as `sampled_index`.
        BlockingIOError: they are not indexed yet, and the context is `nonblocking`.
    """
    titles = context.part(StoredTitles)
    if context.database.blocking:
        return titles.title(context, tenant_id, tuple(media))
    title = titles.get(tuple(media))
    if title is None:
        raise BlockingIOError("the title is not open yet")
    return title


# Without parameters of its own, so that it may be a fast read.
_OWN_TRACKS = (
    sa.select(blobs.c.md5, blobs.c.sha256, blobs.c.byte_size, blobs.c.store_key)
    .select_from(isobmff_tracks)
    .join(blob_uses, OWN_BYTES)
    .join(blobs, OF_USE)
    .where(
        isobmff_tracks.c.tenant_id == sa.bindparam("tenant"),
        isobmff_tracks.c.file_id == sa.bindparam("file"),
        isobmff_tracks.c.track_id >= sa.literal_column("0"),
        isobmff_tracks.c.type.in_((sa.literal_column("'video'"), sa.literal_column("'audio'"))),
    )
    .order_by(isobmff_tracks.c.track_id)
)


_OWN_UPLOAD = (
    sa.select(blobs.c.md5, blobs.c.sha256, blobs.c.byte_size, blobs.c.store_key)
    .select_from(blob_uses)
    .join(blobs, OF_USE)
    .where(
        blob_uses.c.tenant_id == sa.bindparam("tenant"),
        blob_uses.c.family == sa.literal_column(f"'{VIDEOS}'"),
        blob_uses.c.record_id == sa.bindparam("file"),
        ~sa.exists().where(isobmff_files.c.id == blob_uses.c.record_id),
        # an upload of the same bytes may have been processed
        ~sa.exists().where(
            isobmff_files.c.tenant_id == blobs.c.tenant_id, isobmff_files.c.md5 == blobs.c.md5
        ),
    )
)


def media_of_file(context: ServiceContext, tenant_id: str, file_id: str) -> tuple[Blob, ...]:
    """The bytes that an ISOBMFF file is played from: those of its tracks, or its own.

    The scrub track is not among them.

    Raises:
        RecordNotFound: this tenant has no such file.
        BytesMissing: nothing of it is here.
    """
    media = media_of_tracks(context, tenant_id, file_id)
    return media or (original_of_file(context, tenant_id, file_id),)


def media_of_tracks(context: ServiceContext, tenant_id: str, file_id: str) -> tuple[Blob, ...]:
    """The bytes of the tracks of an ISOBMFF file; empty where none are here, or there is none."""
    return _blobs(context, _OWN_TRACKS, tenant_id, file_id)


def media_of_upload(context: ServiceContext, tenant_id: str, file_id: str) -> tuple[Blob, ...]:
    """The bytes of a video of which nothing was made yet; empty for every other file."""
    return _blobs(context, _OWN_UPLOAD, tenant_id, file_id)


def _blobs(
    context: ServiceContext, query: sa.Select[Any], tenant_id: str, file_id: str
) -> tuple[Blob, ...]:
    rows = context.database.rows(query, tenant=tenant_id, file=file_id)
    # two tracks may have the same bytes
    return tuple(dict.fromkeys(Blob(bytes(r[0]), bytes(r[1]), r[2], r[3]) for r in rows))


def original_of_file(context: ServiceContext, tenant_id: str, file_id: str) -> Blob:
    """The bytes of a file as uploaded; raises as `media_of_file`."""
    with context.database.read() as connection:
        blob = file_bytes(connection, FILES.row(connection, tenant_id, file_id))
    if blob is None:
        raise BytesMissing("bytes of the file are missing", more={"state": "created"})
    return blob


SCRUB: Final = "scrub"
"""The rendition of key frames alone, for small pictures while scrubbing."""
_SCRUB_SECONDS: Final = 30
_IN_MEMORY: Final = 16
_HEAD: Final = ByteRange(0, 16)
_REMOTE_RETRY_S: Final = 5

Found = TypeVar("Found")


@record(frozen=True, eq=False)
class RemoteTitle:
    """A video beyond the service.

    Attributes:
        url: where it is.
        index: of it, every sample known.
        open: opens it.
    """

    url: str
    index: Index
    open: Callable[[], Source]

    @cached_property
    def package(self) -> Package:
        """Its tracks as renditions; raises as `fragdex.package`, and where there are periods.

        Responses name segments by number, and have no place for a second clock.
        """
        only = period_of(self.index, None).number
        with self.open() as source:
            return fragdex.package(self.index, source=source, period=only)

    @cached_property
    def renditions(self) -> dict[str, Rendition]:
        """By their names: those of `package`, and `scrub` where there is video."""
        renditions = {one.name: one for one in self.package.title.renditions}
        video = self.package.title.of("video")
        return renditions | ({SCRUB: _key_frames_of(video[0])} if video else {})

    def part(self, rendition: str, number: int | None) -> View:
        """A segment, by its number from 1; None: the initialization segment.

        Raises:
            KeyError: there is no such rendition or segment.
        """
        one = self.renditions[rendition]
        recipe = ["remote", rendition]
        if number is None:
            init = one.made.init
            return View(
                one.made.media_type, [one.source], [recipe, "init"], [len(init)], lambda _: [init]
            )
        if not 1 <= number <= len(one.segments):
            raise KeyError(number)
        return one.made.view(number - 1, one.source, recipe)

    @contextmanager
    def sources(self) -> Iterator[list[Any]]:
        """The video, open."""
        with self.open() as source:
            yield [source]


class RemoteTitles(SingleFlightCache[RemoteTitle]):
    """The remote videos that a process keeps; a video that changed is indexed again."""

    def __init__(self) -> None:
        super().__init__("the file at this URL")
        self._hosts: AllowedHosts | None = None

    def use(
        self, context: ServiceContext, tenant_id: str, url: str, do: Callable[[RemoteTitle], Found]
    ) -> Found:
        """What comes of the video at a URL; done again, once, where the video has changed.

        Raises:
            InvalidRequest: the URL may not be requested.
            Unprocessable: it cannot be read, or packaged.
            FragdexError: as `do`, `run_isolated` and `SingleFlight.do`.
        """
        if self._hosts is None:
            settings = context.settings
            self._hosts = AllowedHosts(settings.render_hosts, max_bytes=settings.max_outside_bytes)
        hosts = self._hosts
        try:
            hosts.check(url)
        except Blocked as error:
            raise InvalidRequest(error.reason, pointer="url") from None

        def make() -> RemoteTitle:
            return _made(context, tenant_id, hosts, url)

        try:
            for _ in range(2):
                # among the tenant's own: videos of one wait for its turn
                title = self.get_once(url, _IN_MEMORY, make, among=tenant_id)
                try:
                    return do(title)
                except SourceChanged:
                    self.drop(url)
            raise MediaUnavailable("the media change while they are read")
        except Blocked as error:
            raise Unprocessable(f"the media cannot be read: {error.reason}") from None
        except SourceUnavailable as error:
            why = f"the media cannot be read: {error.message}"
            raise MediaUnavailable(why, retry_after=_REMOTE_RETRY_S) from error
        except SourceError as error:
            raise Unprocessable(f"the media cannot be read: {error.message}") from error


def _made(context: ServiceContext, tenant_id: str, hosts: AllowedHosts, url: str) -> RemoteTitle:
    def opened() -> Source:
        source = OutsideSource(hosts, url)
        source.max_bytes = context.settings.max_outside_bytes
        return source

    with opened() as source:
        source.read_up_to(_HEAD)  # tells size and entity tag
        size, etag = source.size, source.etag
    if size is None:
        raise Unprocessable("the media cannot be read: the server does not tell their size")

    with OwnFolder() as folder, in_turn(tenant_id):
        path = folder / INDEX
        run_in_child(opened, size, sampled, {INDEX: path}, name=url, etag=etag)
        return RemoteTitle(url, fragdex.open_index(path), opened)


def _key_frames_of(rendition: Rendition) -> Rendition:
    """A rendition of the key frames alone, each shown until the next one."""
    media = rendition.media
    shown = media.presentation
    numbers = np.flatnonzero(media.samples.sync)
    rises = np.diff(np.maximum.accumulate(shown[numbers]), prepend=shown[numbers[0]] - 1) > 0
    numbers = numbers[rises]
    times = shown[numbers]
    hidden = max(0, -int(times[0]))
    durations = np.diff(times, append=max(media.end, int(times[-1]) + 1))
    alone = media.rows(numbers, hidden=0).timed(times, times + hidden, durations, hidden)
    return replace(
        rendition,
        name=SCRUB,
        title=SCRUB,
        plan=replace(rendition.plan, tracks=(alone,)),
        cuts=cut([alone], Fraction(_SCRUB_SECONDS))[0],
    )
