"""What can be done with transcriptions; no HTTP."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex import Track
from fragdex.errors import (
    BytesMissing,
    Finished,
    NeverReady,
    NotReady,
    NotYet,
    RecordNotFound,
    UploadIncomplete,
)
from fragdex.service.context import ServiceContext
from fragdex.service.files.operations import isobmff_id
from fragdex.service.isobmff.operations import file_bytes
from fragdex.service.jobs.work import not_ready
from fragdex.service.outbox import emit
from fragdex.service.records import deletion
from fragdex.service.records.blobs import StoredBytes
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.tables import (
    isobmff_files,
    transcription_slices,
    transcription_speakers,
    transcriptions,
)
from fragdex.service.records.tenant_limits import ensure_within_quota
from fragdex.service.transcriptions.model import (
    DEFAULT_SLICE_MS,
    BegunTranscription,
    FileTranscription,
    NewTranscription,
    TrackChoice,
    TranscriptionRecord,
    TranscriptionStatus,
)
from fragdex.service.transcriptions.records import (
    FAMILY,
    OPEN,
    TRANSCRIPTIONS,
    choice_of,
    end_ms,
    event_data,
    records_of,
    speakers_of,
    transcribed_slices,
    transcript_of,
    turns_of,
    validate_sound_of,
)
from fragdex.service.transcriptions.worker import COPY, TRANSCRIBE
from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.events import Event
from fragdex.speech.captions import FORMS, CaptionLayout, as_document
from fragdex.speech.engines import EngineChoice, make_engine, validate_language, validate_vocabulary
from fragdex.speech.plan import TranscriptionPlan
from fragdex.speech.speakers import speaker_ids, speaker_names, with_speakers
from fragdex.speech.words import merged

_ROW: Final = transcriptions.c
_WHY_CANCELLED: Final = {"error": "NeverReady", "detail": "the transcription was cancelled"}


def create_transcription(
    context: ServiceContext, tenant_id: str, new: NewTranscription
) -> TranscriptionRecord:
    """A new transcription, queued; earlier ones of the same track stay.

    Raises:
        RecordNotFound: this tenant has no such file, or it has no such track.
        InvalidRequest: the track is not sound, or the engine lacks the language.
        NotReady: the index of the file, or bytes of the track, are missing.
        Unprocessable: no track is requested, and none is sound.
        TooManyRequests: too many jobs of the tenant are in progress.
    """
    choice = choice_of(context.settings, new.engine)
    vocabulary = _validated(choice, new.language, new.vocabulary)
    file_id = made_of(context, tenant_id, new.file_id)
    track = validate_sound_of(context, tenant_id, file_id, new.track_id)
    row = _row(tenant_id, file_id, track, choice.name) | {
        "wanted_language": new.language,
        "vocabulary": vocabulary,
        "work_slice_ms": new.work_slice_ms,
    }
    with context.database.write() as connection:
        _begin(context, connection, row, speakers=new.speakers)
        return TRANSCRIPTIONS.read(connection, tenant_id, row["id"])


def begin_for(
    context: ServiceContext, tenant_id: str, file_id: str, choice: TrackChoice
) -> tuple[BegunTranscription, bool]:
    """The transcription of a track of a file, and whether it is a new one.

    The newest one that is made or being made is given again, where it is of the language and
    engine that are requested, if any are, and tells speakers or not as requested; one that failed
    is not. The vocabulary has to be the same. Raises as `create_transcription`.
    """
    engine = choice_of(context.settings, choice.engine)
    vocabulary = _validated(engine, choice.language, choice.vocabulary)
    track = validate_sound_of(context, tenant_id, file_id, choice.track_id, choice.track_member)
    row = _row(tenant_id, file_id, track, engine.name)
    row |= {"wanted_language": choice.language, "vocabulary": vocabulary}
    complete = _ROW.status == TranscriptionStatus.COMPLETE
    alike = sa.select(_ROW.id).where(_ROW.file_id == file_id, _ROW.track_id == track.id)
    alike = alike.where(complete | OPEN).order_by(_ROW.id.desc()).limit(1)
    alike = alike.where(_ROW.vocabulary.is_not_distinct_from(vocabulary))
    if choice.engine is not None:
        alike = alike.where(_ROW.engine == engine.name)
    if choice.language is not None:
        alike = alike.where(sa.func.lower(_ROW.wanted_language) == choice.language.lower())
    told = sa.exists().where(transcription_speakers.c.transcription_id == _ROW.id)
    alike = alike.where(told if choice.speakers else ~told)
    file = isobmff_files.c
    with context.database.write() as connection:
        # Of two that ask at once, the second finds what the first began.
        lock = sa.select(file.id).where(file.id == file_id).with_for_update()
        if connection.execute(lock).first() is None:
            raise RecordNotFound("there is no such ISOBMFF file")
        transcription_id = connection.scalar(alike)
        if transcription_id is None:
            _begin(context, connection, row, speakers=choice.speakers)
    begun = BegunTranscription(id=transcription_id or row["id"], file_id=file_id, track_id=track.id)
    return begun, transcription_id is None


def _validated(choice: EngineChoice, language: str | None, vocabulary: Sequence[str]) -> str | None:
    """The vocabulary as it is stored, once the engine knows language and vocabulary."""
    if language is None and not vocabulary:
        return None  # the engine need not be here
    engine = make_engine(choice)
    validate_language(engine, language)
    return "\n".join(validate_vocabulary(engine, vocabulary, language)) or None


_NOT_READY: Final = {UploadIncomplete: BytesMissing, NotYet: NotReady}
"""What stands for what is not found where something is to be done with it."""


def made_of(context: ServiceContext, tenant_id: str, file_id: str) -> str:
    """The id of the ISOBMFF file that a video is or became.

    Raises:
        RecordNotFound: this tenant has no such video.
        NotReady: nothing was made of it yet.
    """
    try:
        return isobmff_id(context, tenant_id, file_id)
    except RecordNotFound as error:
        if "state" not in error.more:
            raise
        kind = _NOT_READY.get(type(error), NeverReady)
        raise kind(error.message, more=error.more) from None


def _row(tenant_id: str, file_id: str, track: Track, engine: str) -> dict[str, Any]:
    return {
        "id": new_id(),
        "tenant_id": tenant_id,
        "file_id": file_id,
        "track_id": track.id,
        "status": TranscriptionStatus.PENDING,
        "engine": engine,
        "work_slice_ms": DEFAULT_SLICE_MS,
        "duration_ms": end_ms(track),
        "created_at": instant(),
    }


def _begin(
    context: ServiceContext, connection: Connection, row: Mapping[str, Any], *, speakers: bool
) -> None:
    there = sa.select(isobmff_files.c.id).where(isobmff_files.c.id == row["file_id"])
    if connection.execute(there.with_for_update(key_share=True)).first() is None:
        raise RecordNotFound("there is no such ISOBMFF file")  # deleted meanwhile
    context.jobs.ensure_room(connection, row["tenant_id"])
    connection.execute(transcriptions.insert().values(**row))
    if speakers:
        connection.execute(transcription_speakers.insert().values(transcription_id=row["id"]))
    ensure_within_quota(connection, row["tenant_id"])
    context.jobs.enqueue(connection, TRANSCRIBE, row["id"], tenant_id=row["tenant_id"])


def transcription_for(context: ServiceContext, tenant_id: str, file_id: str) -> FileTranscription:
    """The transcription of a file: the newest complete one, else the newest that is being made.

    Where there is neither, the newest that failed.

    Raises:
        RecordNotFound: this tenant has no such file, or there is none of it.
    """
    complete = _ROW.status == TranscriptionStatus.COMPLETE
    mine = (_ROW.tenant_id == tenant_id) & (_ROW.file_id == file_id)
    best = sa.case((complete, 0), (OPEN, 1), else_=2)
    query = sa.select(transcriptions).where(mine).order_by(best, _ROW.id.desc())
    with context.database.read() as connection:
        rows = connection.execute(query.limit(1)).all()
        records = records_of(connection, rows)
    if not records:
        raise RecordNotFound("the file has no transcription")
    return FileTranscription(**records[0].model_dump(include=set(FileTranscription.model_fields)))


def look(context: ServiceContext, tenant_id: str, ids: Sequence[str]) -> dict[str, Event]:
    """How far transcriptions are, by id, as `web.events.counted` takes it."""
    part = transcription_slices.c
    done = (
        sa.select(part.transcription_id, sa.func.count().label("done"))
        .where(part.transcription_id.in_(ids), part.completed_at.is_not(None))
        .group_by(part.transcription_id)
    )
    columns = (_ROW.id, _ROW.status, _ROW.slices, _ROW.problem)
    wanted = sa.select(*columns).where(_ROW.tenant_id == tenant_id, _ROW.id.in_(ids))
    with context.database.read() as connection:
        rows = connection.execute(wanted).all()
        counts = {one.transcription_id: one.done for one in connection.execute(done)}
    return {row.id: _event_of(row, counts.get(row.id, 0)) for row in rows}


def _event_of(row: Any, done: int) -> Event:
    state: dict[str, Any] = {"size": row.slices, "done": done}
    if row.status == TranscriptionStatus.COMPLETE:
        return "complete", state
    if row.status == TranscriptionStatus.FAILED:
        problem = Problem.of(row.problem)
        return "error", {**state, "problem": {} if problem is None else problem.model_dump()}
    return "progress", state


def fragment(
    context: ServiceContext, tenant_id: str, transcription_id: str, number: int
) -> dict[str, Any]:
    """The words of a work slice: those whose middle lies in it.

    Args:
        number: counts from 0 on the even grid of `work_slice_ms`.

    Raises:
        RecordNotFound: no such transcription, no such slice, or it is to be heard yet, or one of
            its neighbours, into which a cut may have moved its border.
    """
    with context.database.read() as connection:
        row = TRANSCRIPTIONS.row(connection, tenant_id, transcription_id)
        if row.plan is None:
            raise _not_heard(row)
        begin, end = number * row.work_slice_ms, (number + 1) * row.work_slice_ms
        last = math.ceil(row.plan["last_frame"] * 10 / row.work_slice_ms)
        if not 0 <= number < last:
            raise RecordNotFound("the track has no such slice", more={"slices": last})
        around = TranscriptionPlan.of_json(row.plan).around(number)
        slices = transcribed_slices(connection, row.id, around)
        turns = turns_of(speakers_of(connection, [row.id]).get(row.id))
    heard = [one for _, one in slices if one is not None]
    if len(heard) < len(slices):
        raise _not_heard(row)
    words = with_speakers(merged(heard).words, turns)
    return as_document([w for w in words if 2 * begin <= w.start_ms + w.end_ms < 2 * end])


def written(
    context: ServiceContext, tenant_id: str, transcription_id: str, form: str, layout: CaptionLayout
) -> tuple[str, str]:
    """The whole of a transcription as captions, and their media type.

    Args:
        form: of `captions.FORMS`.
        layout: lengths of lines and of captions.

    Raises:
        RecordNotFound: this tenant has none of this id.
        NotReady: it is not complete.
    """
    write, media_type = FORMS[form]
    with context.database.read() as connection:
        row = _need_complete(TRANSCRIPTIONS.row(connection, tenant_id, transcription_id))
        transcript = transcript_of(connection, row)
    return write(transcript, layout), media_type


def name_speakers(
    context: ServiceContext, tenant_id: str, transcription_id: str, names: Mapping[str, str]
) -> TranscriptionRecord:
    """Say what speakers are called, in place of what was said before.

    Raises:
        RecordNotFound: this tenant has none of this id.
        NotReady: the transcription is not complete.
        InvalidRequest: there is no such speaker, or this cannot be a name.
    """
    with context.database.write() as connection:
        row = _need_complete(TRANSCRIPTIONS.row(connection, tenant_id, transcription_id, lock=True))
        speakers = speakers_of(connection, [row.id]).get(row.id)
        ids = speaker_ids(speakers.speakers or 0) if speakers else []
        values = {"names": speaker_names(names, ids)}
        mine = transcription_speakers.c.transcription_id == row.id
        connection.execute(transcription_speakers.update().where(mine).values(**values))
        return TRANSCRIPTIONS.read(connection, tenant_id, transcription_id)


def order_copy(
    context: ServiceContext, tenant_id: str, transcription_id: str
) -> TranscriptionRecord:
    """Have a copy of the file made with the captions in it; one that is there stays.

    Raises:
        RecordNotFound: this tenant has none of this id.
        NotReady: the transcription is not complete.
        TooManyRequests: too many jobs of the tenant are in progress.
    """
    with context.database.write() as connection:
        row = TRANSCRIPTIONS.row(connection, tenant_id, transcription_id, lock=True)
        _need_complete(row)
        there = row.copy_file_id is not None and _is_file(connection, row.copy_file_id)
        if row.copy_status != TranscriptionStatus.PENDING and not there:
            context.jobs.ensure_room(connection, tenant_id)
            orders = row.copy_orders + 1
            values = {
                "copy_status": TranscriptionStatus.PENDING,
                "copy_orders": orders,
                "copy_file_id": None,
                "copy_problem": None,
            }
            mine = transcriptions.update().where(_ROW.id == row.id)
            connection.execute(mine.values(**values))
            context.jobs.enqueue(connection, COPY, row.id, tenant_id=tenant_id, again=orders)
        return TRANSCRIPTIONS.read(connection, tenant_id, transcription_id)


def copy_of(context: ServiceContext, tenant_id: str, transcription_id: str) -> StoredBytes:
    """Where the copy of the file with the captions in it is.

    Raises:
        RecordNotFound: no such transcription, or its copy was never requested, or is deleted.
        NotReady: it is not made yet, or could not be made.
    """
    with context.database.read() as connection:
        row = TRANSCRIPTIONS.row(connection, tenant_id, transcription_id)
        if row.copy_status is None:
            _need_complete(row)
            raise RecordNotFound("no copy with captions was requested")
        if row.copy_status != TranscriptionStatus.COMPLETE:
            raise not_ready("copy", row.copy_status)
        file = connection.execute(
            sa.select(isobmff_files).where(isobmff_files.c.id == row.copy_file_id)
        ).one_or_none()
        blob = None if file is None else file_bytes(connection, file)
    if file is None or blob is None:
        raise RecordNotFound("the copy has been deleted")
    return StoredBytes(blob.store_key, blob.byte_size, blob.md5, blob.sha256, "video/mp4")


def cancel_transcription(
    context: ServiceContext, tenant_id: str, transcription_id: str
) -> TranscriptionRecord:
    """End a transcription; what runs of it ends within seconds. Repeating it is harmless.

    Raises:
        RecordNotFound: this tenant has none of this id.
        Finished: it is complete, or failed for another reason.
    """
    with context.database.write() as connection:
        row = TRANSCRIPTIONS.row(connection, tenant_id, transcription_id, lock=True)
        failed = row.status == TranscriptionStatus.FAILED
        if row.status == TranscriptionStatus.COMPLETE or (failed and not _is_cancelled(row)):
            raise Finished(f"the transcription is {row.status}", more={"state": row.status})
        if not failed:
            values = {
                "status": TranscriptionStatus.FAILED,
                "failed_at": instant(),
                "problem": _WHY_CANCELLED,
            }
            mine = transcriptions.update().where(_ROW.id == transcription_id)
            connection.execute(mine.values(**values))
            context.jobs.cancel(f"{TRANSCRIBE}-{transcription_id}", connection)
            data = {**event_data(row), "problem": _WHY_CANCELLED}
            emit(context, connection, tenant_id, "transcription.failed", data)
        return TRANSCRIPTIONS.read(connection, tenant_id, transcription_id)


def _is_cancelled(row: Row[Any]) -> bool:
    return bool(row.problem["detail"] == _WHY_CANCELLED["detail"])


def delete_transcription(context: ServiceContext, tenant_id: str, transcription_id: str) -> None:
    """Delete a transcription, and end it if it runs; a copy with captions stays.

    Raises:
        RecordNotFound: this tenant has none of this id.
    """
    with context.database.write() as connection:
        row = TRANSCRIPTIONS.row(connection, tenant_id, transcription_id, lock=True)
        context.jobs.cancel(f"{TRANSCRIBE}-{row.id}", connection)
        if row.copy_orders:
            again = f"-{row.copy_orders}"
            context.jobs.cancel(f"{COPY}-{row.id}{again}", connection)
        deletion.remove(connection, FAMILY, row.id)


def _need_complete(row: Row[Any]) -> Row[Any]:
    if row.status != TranscriptionStatus.COMPLETE:
        raise not_ready("transcription", row.status)
    return row


def _not_heard(row: Row[Any]) -> RecordNotFound:
    kind = RecordNotFound if row.status == TranscriptionStatus.FAILED else NotYet
    return kind("this slice is not heard yet", more={"state": row.status})


def _is_file(connection: Connection, file_id: str) -> bool:
    there = sa.select(isobmff_files.c.id).where(isobmff_files.c.id == file_id)
    return connection.execute(there).first() is not None
