"""Indexes that are open, and the forms that are made of them, kept by use."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from tempfile import TemporaryFile
from typing import IO, Final, Literal, get_args

import sqlalchemy as sa
from typing_extensions import TypeAliasType

from fragdex import ByteRange, Index, Track, open_index
from fragdex.errors import RecordNotFound, StoreFull, TrackNotFound
from fragdex.formats import export as written
from fragdex.formats.subsegments import init_place
from fragdex.lru_cache import LRUCache
from fragdex.packaging import hls
from fragdex.record import record
from fragdex.sandbox.folders import OwnFolder
from fragdex.seeking.model import FileInfo, How, Period
from fragdex.seeking.track import presented_first
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.child import INDEX, sampled
from fragdex.service.indexing.isolated import run_isolated
from fragdex.service.isobmff.operations import IndexKeys
from fragdex.service.records import blobs
from fragdex.service.records.blobs import Blob
from fragdex.service.records.tables import isobmff_tracks

log = logging.getLogger("fragdex.service")


@record(frozen=True, slots=True)
class Opened:
    """An index that is open, and the initialization segment of each period, looked for once."""

    index: Index
    inits: tuple[ByteRange, ...]


class OpenIndexes(LRUCache[Opened]):
    """The indexes that a process has open."""


def opened(context: ServiceContext, keys: IndexKeys) -> Opened:
    """The index of a file, put together of all that is known of its tracks.

    A track indexed by itself stands in a period of its own.

    Raises:
        SourceNotFound: it was deleted meanwhile.
        DamagedIndex: the stored bytes are damaged.
        BlockingIOError: it is not open yet, and the context is `nonblocking`.
    """

    def make() -> Opened:
        if not context.database.blocking:
            raise BlockingIOError("the index is not open yet")
        index = joined(context, keys)
        return Opened(index, tuple(map(init_place, index.periods)))

    return context.part(OpenIndexes).get_or_make(keys, context.settings.open_indexes, make)


def etag_md5(keys: IndexKeys) -> bytes:
    """16 bytes that stand for this index: another one has others."""
    return hashlib.md5(repr(keys).encode(), usedforsecurity=False).digest()


def chosen_track(index: Index, track_id: int | None) -> Track:
    """The track of this id; None: the first video track, or else the first audio track.

    The scrub track is never chosen by itself.

    Raises:
        TrackNotFound: there is none.
    """
    if track_id is not None:
        return index.track(track_id)
    tracks = [track for track in index.tracks if track.id >= 0]
    for kind in ("video", "audio"):
        if (track := presented_first(tracks, kind)) is not None:
            return track
    raise TrackNotFound("the index has no video and no audio track")


def alone(context: ServiceContext, keys: IndexKeys, track_id: int, apart: bool) -> Index:
    """The index of the one file that a track lies in; there the track may have another id.

    Args:
        apart: the track is a file of its own, even where its index was sent with those of others.
    """
    key = dict(keys.tracks).get(track_id)
    if key is not None:
        return _open_one(context, key)
    index = opened(context, keys).index
    periods: list[Period] = []
    for period in index.periods:
        if any(track.id == track_id for track in period.tracks):
            tracks = tuple(one for one in period.tracks if not apart or one.id == track_id)
            periods.append(_period(len(periods), period, None, tracks))
    return Index(FileInfo(), index.how, periods)


def joined(context: ServiceContext, keys: IndexKeys) -> Index:
    """The index of a file, opened again, for the caller alone."""
    whole = None if keys.file is None else _open_one(context, keys.file)
    if not keys.tracks and whole is not None:
        return whole
    periods: list[Period] = []
    for track_id, key in keys.tracks:
        for period in _open_one(context, key).periods:
            periods.append(_period(len(periods), period, track_id, period.tracks[:1]))
    known = {track_id for track_id, _ in keys.tracks}
    for period in whole.periods if whole is not None else ():
        left = tuple(track for track in period.tracks if track.id not in known)
        if left:
            periods.append(_period(len(periods), period, None, left))
    exact = all(track.exact for period in periods for track in period.tracks)
    how = How("index", exact, "put together from the indexes of single tracks")
    return Index(FileInfo(), how, periods)


def _period(number: int, period: Period, track_id: int | None, tracks: tuple[Track, ...]) -> Period:
    """A period of another number, its tracks of another id."""
    moved = []
    for track in tracks:
        info = track.info if track_id is None else replace(track.info, id=track_id)
        samples = track.samples if track.has_samples else None
        moved.append(
            Track(
                info,
                track.fragments,
                track.sync_samples,
                shift=track.shift,
                movie_timescale=track.movie_timescale,
                period=number,
                exact=track.exact,
                groups=track.groups,
                samples=samples,
            )
        )
    movie = replace(period.movie, tracks=tuple(track.info for track in moved))
    return Period(number, period.init, movie, tuple(moved))


def _open_one(context: ServiceContext, key: str) -> Index:
    # Of an object store it is a copy, mapped and then unlinked: pages that are not read cost no
    # memory, and the bytes go with the last mapping.
    with context.store.local(key) as path:
        return open_index(path)


_RECIPE: Final = "samples 1"
"""Its number grows with each change of the results."""
_PIECE: Final = 1 << 20


def cached_for(context: ServiceContext) -> timedelta:
    """How long files are cached that were made of stored bytes."""
    return timedelta(hours=context.settings.derived_hours)


def sampled_index(context: ServiceContext, tenant_id: str, blob: Blob) -> Index:
    """The index of stored bytes, every sample known.

    Raises:
        RecordNotFound: the bytes were deleted meanwhile.
        FragdexError: as `fragdex.index`, and as `run_isolated`.
    """
    key = _sampled_index_key(context, tenant_id, blob)
    if isinstance(key, bytes):
        return open_index(key)
    return opened(context, IndexKeys(key, None, ())).index


@contextmanager
def sampled_index_file(context: ServiceContext, tenant_id: str, blob: Blob) -> Iterator[IO[bytes]]:
    """That index as an open file; raises as `sampled_index`."""
    key = _sampled_index_key(context, tenant_id, blob)
    if isinstance(key, bytes):
        with TemporaryFile() as file:
            file.write(key)
            file.seek(0)
            yield file
        return
    with context.store.local(key) as path, path.open("rb") as file:
        yield file


def _sampled_index_key(context: ServiceContext, tenant_id: str, blob: Blob) -> str | bytes:
    """Where that index is in the store; the index itself where the store has no room for it."""
    lasts = cached_for(context)
    parts = blobs.find_derived(context.database, tenant_id, blob.sha256, _RECIPE, lasts)
    if INDEX not in parts:
        unstored = _make(context, tenant_id, blob)
        if unstored is not None:
            return unstored
        parts = blobs.find_derived(context.database, tenant_id, blob.sha256, _RECIPE, lasts)
    if INDEX not in parts:
        raise RecordNotFound("the file was deleted meanwhile")
    return parts[INDEX].store_key


def _make(context: ServiceContext, tenant_id: str, blob: Blob) -> bytes | None:
    """Make and cache it; returned where the cache has no room."""
    with OwnFolder() as folder:
        path = folder / INDEX
        run_isolated(
            context, tenant_id, blob.store_key, blob.byte_size, sampled, {INDEX: path},
            md5=blob.md5.hex(),
        )  # fmt: skip
        try:
            written_blob = blobs.write_file(context.database, context.store, tenant_id, path)
            blobs.keep_derived(
                context.database, tenant_id, blob.sha256, _RECIPE,
                {INDEX: (written_blob, "application/octet-stream")}, cached_for(context),
            )  # fmt: skip
        except StoreFull as error:
            log.warning("an index is not cached: %s", error)
            return path.read_bytes()
    return None


FormName = Literal["json", "fidx", "arrow", "sidx", "hls"]
IndexForm = TypeAliasType("IndexForm", FormName)
FORMS: tuple[FormName, ...] = get_args(FormName)
"""The forms an index is answered in; the first by default."""

MAX_KEPT_FORMS = 256
MAX_KEPT_FORM = 1 << 20
"""Bytes of a form that is kept: 256 MiB in all. Larger ones are written again on request."""

Address = Callable[[int], str]


class FormCache(LRUCache[bytes]):
    """The forms that a process has at hand."""


@record(frozen=True, slots=True)
class ShownForm:
    """The tracks of a form: several only in a multivariant playlist; none: all there are.

    `apart`: they are files of their own.
    """

    tracks: tuple[int, ...] = ()
    apart: bool = False


def shown(
    context: ServiceContext, file_id: str, keys: IndexKeys, form: str, track_id: int | None
) -> ShownForm:
    """The content of a form of this index.

    `sidx` and `hls` are of one track, as for `chosen_track`; without a `track_id`, `hls` is of
    every video and audio track, where several are files of their own.

    Raises:
        TrackNotFound: there is no such track.
    """
    if form not in ("sidx", "hls"):
        return ShownForm()
    index = opened(context, keys).index
    of_file = sa.select(isobmff_tracks.c.track_id).where(isobmff_tracks.c.file_id == file_id)
    with context.database.read() as connection:
        apart = set(connection.scalars(of_file))
    if form == "hls" and track_id is None:
        played = [one.id for one in index.tracks if one.id >= 0 and one.kind in ("video", "audio")]
        parted = tuple(dict.fromkeys(one for one in played if one in apart))
        if len(parted) > 1:
            return ShownForm(parted, True)
    track = chosen_track(index, track_id).id
    return ShownForm((track,), track in apart)


def exported(
    context: ServiceContext,
    keys: IndexKeys,
    form: str,
    of: ShownForm | None = None,
    address: Address = str,
    *,
    keep: bool = True,
) -> bytes:
    """The index in one of `FORMS`.

    Args:
        of: what `shown` said; None: all tracks.
        address: for `hls`: of a track's bytes, or, where several are shown, of its playlist.
        keep: keep it for the next request.

    Raises:
        InexactIndex, BuildError: this index cannot be written in that form.
        MissingExtra: a package is not installed.
    """
    of = of or ShownForm()
    name = (keys, form, of, tuple(map(address, of.tracks)))
    return context.part(FormCache).get_or_make(
        name,
        MAX_KEPT_FORMS,
        lambda: _export(context, keys, form, of, address),
        lambda content: keep and len(content) <= MAX_KEPT_FORM,
    )


def _export(
    context: ServiceContext, keys: IndexKeys, form: str, of: ShownForm, address: Address
) -> bytes:
    if form == "json":
        return _json(context, keys)
    if form == "fidx" and not keys.tracks and keys.file is not None:
        return _bytes(context, keys.file)
    if not of.tracks:
        return written(opened(context, keys).index, form)
    if len(of.tracks) > 1:
        return _multivariant(context, keys, of, address)
    (track_id,) = of.tracks
    index = alone(context, keys, track_id, of.apart)
    # a file of one track may call it otherwise than the file that it was made of
    own = track_id if any(one.id == track_id for one in index.tracks) else index.tracks[0].id
    options = {"uri": address(track_id)} if form == "hls" else {}
    return written(index, form, track=own, **options)


def _multivariant(
    context: ServiceContext, keys: IndexKeys, of: ShownForm, address: Address
) -> bytes:
    renditions = []
    for track_id in of.tracks:
        index = alone(context, keys, track_id, of.apart)
        name = _name(track_id, index.tracks[0])
        renditions.append(hls.TrackPlaylist(index, address(track_id), name))
    return hls.write_renditions(renditions)


def _name(track_id: int, track: Track) -> str:
    language = f" ({track.info.language})" if track.info.language else ""
    return f"{track.kind.capitalize()} {track_id}{language}"


def _json(context: ServiceContext, keys: IndexKeys) -> bytes:
    """As it was sent, so that nothing in it is lost; what the service made itself, as it is."""
    if keys.json is None:
        return written(opened(context, keys).index, "json")
    sent = _bytes(context, keys.json)
    if not keys.tracks:
        return sent
    content = written(joined(context, replace(keys, file=None, json=None)), "json")
    document = json.loads(sent) | json.loads(content)
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def _bytes(context: ServiceContext, key: str) -> bytes:
    return b"".join(context.store.read(key, ByteRange(0, context.store.size(key))))
