"""The rows of transcriptions, read for their owner; and where the sound of a file is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex import Index, Track
from fragdex.errors import BytesMissing, InvalidRequest, RecordNotFound, Unprocessable
from fragdex.record import record
from fragdex.seeking.track import presented
from fragdex.service.config import Settings
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.isolated import exact_index
from fragdex.service.isobmff.opened import alone, opened
from fragdex.service.isobmff.operations import FILES, index_keys
from fragdex.service.isobmff.tracks import blob_of_track
from fragdex.service.records.blobs import Blob
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import (
    transcription_slices,
    transcription_speakers,
    transcriptions,
)
from fragdex.service.transcriptions.model import (
    Copy,
    Gap,
    HeardTrack,
    Speaker,
    TranscriptionList,
    TranscriptionRecord,
    TranscriptionStatus,
)
from fragdex.service.unprocessed.model import Problem
from fragdex.service.uploads.repository import Repository
from fragdex.speech.diarization import Turn
from fragdex.speech.engines import ENGINES, EngineChoice, default_engine
from fragdex.speech.speakers import speaker_ids, with_speakers
from fragdex.speech.words import SliceTranscript, Transcript, merged

FAMILY: Final = "transcriptions"

_ROW, _SLICE = transcriptions.c, transcription_slices.c

OPEN: Final = _ROW.status.in_([TranscriptionStatus.PENDING, TranscriptionStatus.TRANSCRIBING])
"""Work on it is wanted."""

_MODELS: Final = dict(
    zip(
        ENGINES,
        ("moonshine_model", "pocketsphinx_model", "whisper_model", "sherpa_model"),
        strict=True,
    )
)


def choice_of(settings: Settings, engine: str | None = None) -> EngineChoice:
    """An engine as the operator set it up.

    Args:
        engine: of `ENGINES`; None: the operator's choice, or the default one.
    """
    name = engine or settings.speech_engine or default_engine()
    return EngineChoice(
        name,
        model=getattr(settings, _MODELS[name]) or None,
        device=settings.speech_device,
        compute_type=settings.speech_compute_type,
        batch_size=settings.speech_batch_size,
        threads=settings.speech_threads,
        download=settings.speech_download,
    )


def event_data(row: Row[Any]) -> dict[str, Any]:
    """What events say of a transcription; `row` has its `id`, `file_id` and `track_id`."""
    return {"id": row.id, "file_id": row.file_id, "track_id": row.track_id}


def is_over(context: ServiceContext, transcription_id: str) -> bool:
    """Whether no work on a transcription is wanted: it is over, or deleted."""
    query = sa.select(_ROW.id).where(_ROW.id == transcription_id, OPEN)
    return context.database.first(query) is None


def transcribed_slices(
    connection: Connection, transcription_id: str, numbers: tuple[int, int] | None = None
) -> list[tuple[int, SliceTranscript | None]]:
    """Slices in order, and what was heard in them; None: that is to come.

    Args:
        numbers: the first and the last one that are requested.
    """
    query = sa.select(_SLICE.number, _SLICE.heard).where(
        _SLICE.transcription_id == transcription_id
    )
    if numbers is not None:
        query = query.where(_SLICE.number.between(*numbers))
    rows = connection.execute(query.order_by(_SLICE.number)).all()
    return [
        (row.number, None if row.heard is None else SliceTranscript.of_json(row.heard))
        for row in rows
    ]


def transcript_of(connection: Connection, row: Row[Any]) -> Transcript:
    """What was heard in all slices, and by whom it was said."""
    slices = [heard for _, heard in transcribed_slices(connection, row.id) if heard is not None]
    transcript = merged(slices, row.language, requested=row.wanted_language)
    speakers = speakers_of(connection, [row.id]).get(row.id)
    if speakers is None:
        return transcript
    return replace(
        transcript,
        words=tuple(with_speakers(transcript.words, turns_of(speakers))),
        names=dict(speakers.names),
        attributed=speakers.turns is not None,
    )


def vocabulary_of(row: Row[Any]) -> list[str]:
    """The names and terms that a transcription prefers."""
    return row.vocabulary.split("\n") if row.vocabulary else []


def speakers_of(connection: Connection, ids: Sequence[str]) -> dict[str, Row[Any]]:
    """The speakers of transcriptions, by id, of those that were to have them."""
    mine = transcription_speakers.c.transcription_id.in_(ids)
    rows = connection.execute(sa.select(transcription_speakers).where(mine))
    return {row.transcription_id: row for row in rows}


def turns_of(speakers: Row[Any] | None) -> list[Turn]:
    """Who speaks when; nothing where nobody asked, and until voices are told apart."""
    return [Turn(*turn) for turn in (speakers.turns if speakers else None) or ()]


def records_of(connection: Connection, rows: Sequence[Row[Any]]) -> list[TranscriptionRecord]:
    """The records of rows, in their order."""
    done = (
        sa.select(
            _SLICE.transcription_id,
            sa.func.count().label("done"),
            sa.func.sum(_SLICE.seconds).label("seconds"),
        )
        .where(
            _SLICE.transcription_id.in_([row.id for row in rows]), _SLICE.completed_at.is_not(None)
        )
        .group_by(_SLICE.transcription_id)
    )
    sums = {one.transcription_id: (one.done, one.seconds) for one in connection.execute(done)}
    speakers = speakers_of(connection, [row.id for row in rows])
    return [_record(row, *sums.get(row.id, (0, None)), speakers.get(row.id)) for row in rows]


def _record(
    row: Row[Any], done: int, hear: float | None, speakers: Row[Any] | None
) -> TranscriptionRecord:
    seconds: dict[str, float] = dict(row.seconds or {})
    ended = row.completed_at or row.failed_at or instant()
    seconds["wait"] = ((row.started_at or ended) - row.created_at).total_seconds()
    seconds["whole"] = (ended - row.created_at).total_seconds()
    if hear is not None:
        seconds["hear"] = hear
    return TranscriptionRecord.of_row(
        row,
        language=row.language or row.wanted_language,
        languages=languages_of(row),
        isobmff_track=HeardTrack(duration_ms=row.duration_ms),
        slices_done=done,
        missing=[
            Gap(start_ms=start, end_ms=end, reason=reason)
            for start, end, reason in row.missing or ()
        ],
        speakers=_speakers(speakers),
        vocabulary=vocabulary_of(row),
        seconds={name: round(value, 3) for name, value in seconds.items()},
        problem=Problem.of(row.problem),
        copy_with_captions=_copy(row),
    )


def languages_of(row: Row[Any]) -> list[str]:
    """Those of a transcription, in the order in which they are first spoken."""
    language = row.language or row.wanted_language
    languages = dict.fromkeys(one for _, one in (row.plan or {}).get("languages", ()))
    return [] if language is None else list(languages) or [language]


def _speakers(row: Row[Any] | None) -> list[Speaker] | None:
    if row is None:
        return None
    ids = speaker_ids(row.speakers or 0)
    return [Speaker(id=one, name=row.names.get(one)) for one in ids]


def _copy(row: Row[Any]) -> Copy | None:
    if row.copy_status is None:
        return None
    return Copy(
        status=TranscriptionStatus(row.copy_status),
        isobmff_file_id=row.copy_file_id,
        problem=Problem.of(row.copy_problem),
    )


TRANSCRIPTIONS = Repository(transcriptions, "transcription", records_of, TranscriptionList)


# Where the sound of a file is: which bytes of the store hold a track, and by which index.
#
# A track that came as a file of its own lies there; else the file itself holds it.


@record(frozen=True, slots=True)
class TrackSound:
    """Bytes that hold a track, and how to find it in them.

    Attributes:
        track_id: in those bytes; a track's own file may call it otherwise.
    """

    blob: Blob
    index: Index
    track_id: int


def validate_sound_of(
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
        BytesMissing: the index of the file, or bytes of the track, are missing.
        InvalidRequest: the track is not sound.
        Unprocessable: no track is requested, and none is sound.
    """
    with context.database.read() as connection:
        FILES.row(connection, tenant_id, file_id)
    try:
        keys = index_keys(context, tenant_id, file_id)
    except RecordNotFound:
        raise BytesMissing("the file has no index yet", more={"state": "created"}) from None
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
        return presented(sounds, "audio")[0]
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
            f"track {track_id} is not sound",
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
        sounds = [track.id for track in presented(index.tracks, "audio")]
        track_id = track_id if track_id in sounds or not sounds else sounds[0]
    return TrackSound(blob, index, track_id)
