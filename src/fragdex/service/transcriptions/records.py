"""The rows of transcriptions, read for their owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.service.config import Settings
from fragdex.service.context import ServiceContext
from fragdex.service.records.identifiers import instant, rfc3339
from fragdex.service.records.tables import transcription_slices, transcriptions
from fragdex.service.transcriptions.model import (
    Copy,
    Gap,
    HeardTrack,
    TranscriptionList,
    TranscriptionRecord,
    TranscriptionStatus,
)
from fragdex.service.unprocessed.model import Problem
from fragdex.service.uploads.repository import Repository
from fragdex.speech.engines import ENGINES, EngineChoice, default_engine
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
    with context.database.read() as connection:
        return connection.execute(query).first() is None


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
    """What was heard in all slices."""
    slices = [heard for _, heard in transcribed_slices(connection, row.id) if heard is not None]
    return merged(slices, row.language)


def _records_of(connection: Connection, rows: Sequence[Row[Any]]) -> list[TranscriptionRecord]:
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
    return [_record(row, *sums.get(row.id, (0, None))) for row in rows]


def _record(row: Row[Any], done: int, hear: float | None) -> TranscriptionRecord:
    seconds: dict[str, float] = dict(row.seconds or {})
    ended = row.completed_at or row.failed_at or instant()
    seconds["wait"] = ((row.started_at or ended) - row.created_at).total_seconds()
    seconds["whole"] = (ended - row.created_at).total_seconds()
    if hear is not None:
        seconds["hear"] = hear
    return TranscriptionRecord(
        id=row.id,
        file_id=row.file_id,
        track_id=row.track_id,
        status=TranscriptionStatus(row.status),
        engine=row.engine,
        engine_version=row.engine_version,
        model=row.model,
        language=row.language or row.wanted_language,
        work_slice_ms=row.work_slice_ms,
        isobmff_track=HeardTrack(duration_ms=row.duration_ms),
        slices=row.slices,
        slices_done=done,
        words=row.words,
        missing=[
            Gap(start_ms=start, end_ms=end, reason=reason)
            for start, end, reason in row.missing or ()
        ],
        seconds={name: round(value, 3) for name, value in seconds.items()},
        problem=Problem.of(row.problem),
        copy_with_captions=_copy(row),
        created_at=rfc3339(row.created_at) or "",
        started_at=rfc3339(row.started_at),
        completed_at=rfc3339(row.completed_at),
        failed_at=rfc3339(row.failed_at),
    )


def _copy(row: Row[Any]) -> Copy | None:
    if row.copy_status is None:
        return None
    return Copy(
        status=TranscriptionStatus(row.copy_status),
        isobmff_file_id=row.copy_file_id,
        problem=Problem.of(row.copy_problem),
    )


TRANSCRIPTIONS = Repository(transcriptions, "transcription", _records_of, TranscriptionList)
