"""The index of a file in the forms that are asked for, kept by use."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import sqlalchemy as sa
from typing_extensions import TypeAliasType

from fragdex import ByteRange, Track
from fragdex.formats import export as written
from fragdex.formats import hls
from fragdex.lru_cache import LRUCache
from fragdex.service.context import ServiceContext
from fragdex.service.isobmff.model import IndexKeys
from fragdex.service.isobmff.opened import alone, chosen_track, joined, opened
from fragdex.service.records.tables import isobmff_tracks

FormName = Literal["json", "fidx", "arrow", "sidx", "hls"]
IndexForm = TypeAliasType("IndexForm", FormName)
FORMS: tuple[FormName, ...] = get_args(FormName)
"""The forms an index is answered in; the first by default."""

MAX_KEPT_FORMS = 256
MAX_KEPT_FORM = 1 << 20
"""Bytes of a form that is kept: 256 MiB in all. Larger ones are written again when asked for."""

Address = Callable[[int], str]


class KeptForms(LRUCache[bytes]):
    """The forms that a process has at hand."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Which tracks a form tells of: several only in a multivariant playlist; none: all there are.

    `apart`: they are files of their own.
    """

    tracks: tuple[int, ...] = ()
    apart: bool = False


def shown(
    context: ServiceContext, file_id: str, keys: IndexKeys, form: str, track_id: int | None
) -> Shown:
    """What a form of this index tells of.

    `sidx` and `hls` are of one track, as for `chosen_track`; without a `track_id`, `hls` is of
    every video and audio track, where several are files of their own.

    Raises:
        TrackNotFound: there is no such track.
    """
    if form not in ("sidx", "hls"):
        return Shown()
    index = opened(context, keys).index
    of_file = sa.select(isobmff_tracks.c.track_id).where(isobmff_tracks.c.file_id == file_id)
    with context.database.read() as connection:
        apart = set(connection.scalars(of_file))
    if form == "hls" and track_id is None:
        played = [one.id for one in index.tracks if one.id >= 0 and one.kind in ("video", "audio")]
        parted = tuple(dict.fromkeys(one for one in played if one in apart))
        if len(parted) > 1:
            return Shown(parted, True)
    track = chosen_track(index, track_id).id
    return Shown((track,), track in apart)


def exported(
    context: ServiceContext,
    keys: IndexKeys,
    form: str,
    of: Shown | None = None,
    address: Address = str,
    *,
    keep: bool = True,
) -> bytes:
    """The index in one of `FORMS`.

    Args:
        of: what `shown` said; None: all tracks.
        address: for `hls`: of a track's bytes, or, where several are shown, of its playlist.
        keep: have it at hand for the next one who asks.

    Raises:
        InexactIndex, BuildError: this index cannot be told in that form.
        MissingExtra: a package is not installed.
    """
    of = of or Shown()
    name = (keys, form, of, tuple(map(address, of.tracks)))
    return context.part(KeptForms).get_or_make(
        name,
        MAX_KEPT_FORMS,
        lambda: _export(context, keys, form, of, address),
        lambda made: keep and len(made) <= MAX_KEPT_FORM,
    )


def _export(
    context: ServiceContext, keys: IndexKeys, form: str, of: Shown, address: Address
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


def _multivariant(context: ServiceContext, keys: IndexKeys, of: Shown, address: Address) -> bytes:
    renditions = []
    for track_id in of.tracks:
        index = alone(context, keys, track_id, of.apart)
        name = _name(track_id, index.tracks[0])
        renditions.append(hls.Rendition(index, address(track_id), name))
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
    made = written(joined(context, replace(keys, file=None, json=None)), "json")
    told = json.loads(sent) | json.loads(made)
    return json.dumps(told, separators=(",", ":")).encode("ascii")


def _bytes(context: ServiceContext, key: str) -> bytes:
    return b"".join(context.store.read(key, ByteRange(0, context.store.size(key))))
