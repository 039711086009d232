"""Where the sound of a file is: which bytes of the store hold a track, and by which index.

A track that came as a file of its own lies there; else the file itself holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fragdex import Index, Track
from fragdex.errors import InvalidRequest, NotReady, RecordNotFound, Unprocessable
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.isolated import exact_index
from fragdex.service.isobmff.opened import alone, opened
from fragdex.service.isobmff.operations import FILES, index_keys
from fragdex.service.isobmff.tracks import blob_of_track
from fragdex.service.records.blobs import Blob


@dataclass(frozen=True, slots=True)
class TrackSound:
    """Bytes that hold a track, and how to find it in them.

    Attributes:
        track_id: in those bytes; a track's own file may call it otherwise.
    """

    blob: Blob
    index: Index
    track_id: int


def need_sound_of(
    context: ServiceContext,
    tenant_id: str,
    file_id: str,
    track_id: int | None,
    field: str = "track_id",
) -> Track:
    """The track of a file that is to be heard.

    Args:
        track_id: None: the first audio track.
        field: of the request, that names the track.

    Raises:
        RecordNotFound: this tenant has no such file, or it has no such track.
        NotReady: the index of the file, or bytes of the track, are missing.
        InvalidRequest: the track is no sound.
        Unprocessable: no track is requested, and none is sound.
    """
    with context.database.read() as connection:
        FILES.row(connection, tenant_id, file_id)
    try:
        keys = index_keys(context, tenant_id, file_id)
    except RecordNotFound:
        raise NotReady("the file has no index yet", more={"state": "created"}) from None
    tracks = [track for track in opened(context, keys).index.tracks if track.id >= 0]
    track = _chosen(tracks, track_id, field)
    with context.database.read() as connection:
        blob_of_track(connection, tenant_id, file_id, track.id)
    return track


def _chosen(tracks: Sequence[Track], track_id: int | None, field: str) -> Track:
    sounds = [track for track in tracks if track.kind == "audio"]
    if track_id is None:
        if not sounds:
            raise Unprocessable("the file has no audio track")
        return sounds[0]
    known = ", ".join(str(track.id) for track in sounds) or "none"
    chosen = next((track for track in tracks if track.id == track_id), None)
    if chosen is None:
        raise RecordNotFound(
            f"the file has no track {track_id}",
            pointer=f"/{field}",
            more={"audio_tracks": [track.id for track in sounds]},
        )
    if chosen.kind != "audio":
        raise InvalidRequest(
            f"track {track_id} is no sound",
            pointer=f"/{field}",
            expected=f"an audio track ({known})",
            found=chosen.kind,
        )
    return chosen


def end_ms(track: Track) -> int:
    """Where a track ends on the presentation's time line."""
    end = track.stop
    return 0 if end is None else max(0, round(end.fraction * 1000))


def sound_of(context: ServiceContext, tenant_id: str, file_id: str, track_id: int) -> TrackSound:
    """A track, ready to be read; raises as `blob_of_track`, and as `exact_index`."""
    with context.database.read() as connection:
        blob, apart = blob_of_track(connection, tenant_id, file_id, track_id)
    keys = index_keys(context, tenant_id, file_id)
    # An index that came as JSON, or is not exact, tells too little to decode by.
    known = keys.json is None or track_id in dict(keys.tracks)
    index = alone(context, keys, track_id, apart) if known else None
    if index is None or not index.tracks or not all(track.exact for track in index.tracks):
        index = exact_index(context, tenant_id, blob.store_key, blob.byte_size)
    if apart:
        sounds = [track.id for track in index.tracks if track.kind == "audio"]
        track_id = track_id if track_id in sounds or not sounds else sounds[0]
    return TrackSound(blob, index, track_id)
