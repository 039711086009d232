"""The jobs `transcribe`, `transcribe-slice` and `transcribe-copy`.

A transcription listens to parts of its track, plans its slices, waits for them and becomes complete
in one transaction. A slice is heard by itself, and its words are there as soon as it ends. All of
it may be killed at any moment and run again: the plan stands in the database, slices that are done
are not heard again, and a run that comes too late publishes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Row

from fragdex.errors import Unavailable, Unprocessable
from fragdex.service.context import ServiceContext
from fragdex.service.jobs.api import PARENTS, SLICES, Job, Work
from fragdex.service.outbox import emit
from fragdex.service.records.database import insert
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import transcription_slices, transcriptions
from fragdex.service.transcriptions import copying
from fragdex.service.transcriptions.listening import Engines
from fragdex.service.transcriptions.model import TranscriptionStatus
from fragdex.service.transcriptions.plan import Plan
from fragdex.service.transcriptions.process import EngineFacts
from fragdex.service.transcriptions.records import OPEN, event_data, heard_slices, is_over
from fragdex.service.transcriptions.words import Heard, Missing, merged

__all__ = ["COPY", "SLICE", "TRANSCRIBE", "WORK"]

TRANSCRIBE: Final = "transcribe"
SLICE: Final = "transcribe-slice"
COPY: Final = "transcribe-copy"

# The transcription itself hears little: what ends it again and again is not its doing.
_ATTEMPTS: Final = 10
_LOOK_SECONDS: Final = 2.0
_ROWS_AT_ONCE: Final = 500
_ROW, _SLICE = transcriptions.c, transcription_slices.c


class _Over(Exception):
    """Nobody wants the transcription any more."""


def _run(context: ServiceContext, job: Job) -> None:
    row = _begin(context, job.record_id)
    if row is None:
        context.part(Engines).rest(job.record_id)
        return
    try:
        begun = time.monotonic()
        plan = _plan(context, job, row) if row.plan is None else Plan.of_json(row.plan)
        seconds = {"plan": time.monotonic() - begun}
        begun = time.monotonic()
        job.slices(SLICE, [{"number": number} for number in plan.slices])
        seconds["slices"] = time.monotonic() - begun
        _finish(context, row, plan, seconds)
    finally:
        context.part(Engines).rest(row.id)


def _begin(context: ServiceContext, transcription_id: str) -> Row[Any] | None:
    """The transcription to be made; None where it is over or deleted."""
    mine = _ROW.id == transcription_id
    with context.database.write() as connection:
        row = connection.execute(sa.select(transcriptions).where(mine, OPEN)).one_or_none()
        if row is None:
            return None
        values: dict[str, Any] = {"status": TranscriptionStatus.TRANSCRIBING}
        if row.started_at is None:
            values["started_at"] = instant()
        connection.execute(transcriptions.update().where(mine).values(**values))
    return row


def _plan(context: ServiceContext, job: Job, row: Row[Any]) -> Plan:
    """How the track is heard, written down before anything is heard by it."""
    seat = context.jobs.seats.taken(row.tenant_id, job.check)
    with seat, context.part(Engines).listener(context, row, job.check) as child:
        plan = child.plan(row.work_slice_ms, row.wanted_language, check=job.check)
        facts = child.facts
    assert facts is not None  # the listener has opened it
    _save_plan(context, row.id, plan, facts)
    with context.database.read() as connection:
        # A run that lost its place while it planned goes by what the other one wrote.
        kept = connection.scalar(sa.select(_ROW.plan).where(_ROW.id == row.id))
    return plan if kept is None else Plan.of_json(kept)


def _save_plan(
    context: ServiceContext, transcription_id: str, plan: Plan, facts: EngineFacts
) -> None:
    mine = _ROW.id == transcription_id
    with context.database.write() as connection:
        query = sa.select(_ROW.slices).where(mine, OPEN).with_for_update()
        row = connection.execute(query).one_or_none()
        if row is None or row.slices is not None:
            return
        values = {
            "plan": plan.as_json(),
            "slices": len(plan.slices),
            "language": plan.language,
            "engine_version": facts.version,
            "model": facts.model_id,
        }
        connection.execute(transcriptions.update().where(mine).values(**values))
        new = [
            {"transcription_id": transcription_id, "number": n, "attempts": 0} for n in plan.slices
        ]
        for first in range(0, len(new), _ROWS_AT_ONCE):
            statement = insert(connection, transcription_slices).on_conflict_do_nothing()
            connection.execute(statement, new[first : first + _ROWS_AT_ONCE])


def _finish(
    context: ServiceContext, row: Row[Any], plan: Plan, seconds: Mapping[str, float]
) -> None:
    mine = _ROW.id == row.id
    with context.database.read() as connection:
        slices = heard_slices(connection, row.id)
    heard = [one for _, one in slices if one is not None]
    if len(heard) != len(plan.slices):
        if is_over(context, row.id):
            return
        raise Unavailable("slices of the transcription are missing", retry_after=1)
    transcript = merged(heard, plan.language)
    values = {
        "missing": [list(span) for span in transcript.missing],
        "words": len(transcript.words),
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
    }
    try:
        plan.need_sound(transcript.missing)
    finally:
        with context.database.write() as connection:
            connection.execute(transcriptions.update().where(mine, OPEN).values(**values))
    done = {"status": TranscriptionStatus.COMPLETE, "completed_at": instant()}
    with context.database.write() as connection:
        if connection.execute(transcriptions.update().where(mine, OPEN).values(**done)).rowcount:
            data = {**event_data(row), "language": plan.language, "words": len(transcript.words)}
            emit(context, connection, row.tenant_id, "transcription.completed", data)


def _failed(context: ServiceContext, job: Job, problem: Mapping[str, Any]) -> None:
    values = {
        "status": TranscriptionStatus.FAILED,
        "failed_at": instant(),
        "problem": dict(problem),
    }
    with context.database.write() as connection:
        mine = (_ROW.id == job.record_id) & OPEN
        query = sa.select(transcriptions).where(mine).with_for_update()
        row = connection.execute(query).one_or_none()
        if row is not None:
            connection.execute(transcriptions.update().where(mine).values(**values))
            data = {**event_data(row), "problem": dict(problem)}
            emit(context, connection, row.tenant_id, "transcription.failed", data)
    context.part(Engines).rest(job.record_id)


def _run_slice(context: ServiceContext, job: Job) -> None:
    """The words of one slice; they stand in its row."""
    number: int = job.payload["number"]
    mine = (_SLICE.transcription_id == job.record_id) & (_SLICE.number == number)
    row = _begin_slice(context, job.record_id, mine)
    if row is None:
        return
    begun = time.monotonic()
    plan = Plan.of_json(row.plan)
    try:
        heard = _heard(context, job, row, plan, number)
    except _Over:
        return
    values = {
        "heard": heard.as_json(),
        "seconds": time.monotonic() - begun,
        "completed_at": instant(),
    }
    with context.database.write() as connection:
        connection.execute(transcription_slices.update().where(mine).values(**values))


def _begin_slice(
    context: ServiceContext, transcription_id: str, mine: sa.ColumnElement[bool]
) -> Row[Any] | None:
    """The row of the transcription; None where nothing is to be done."""
    wanted = sa.select(transcriptions).where(_ROW.id == transcription_id, OPEN)
    waits = mine & _SLICE.completed_at.is_(None)
    with context.database.write() as connection:
        row = connection.execute(wanted).one_or_none()
        if row is None:
            return None
        again = transcription_slices.update().where(waits).values(attempts=_SLICE.attempts + 1)
        return row if connection.execute(again).rowcount else None


def _heard(context: ServiceContext, job: Job, row: Row[Any], plan: Plan, number: int) -> Heard:
    looked = time.monotonic()

    def check() -> None:
        nonlocal looked
        job.check()
        if time.monotonic() - looked > _LOOK_SECONDS:
            looked = time.monotonic()
            if is_over(context, row.id):
                raise _Over

    with context.part(Engines).listener(context, row, check) as child:
        try:
            return child.hear(plan, number, check=check)
        except Unprocessable as error:
            # This sound broke the engine or the decoder: the rest is heard, and the gap is said.
            start, end = (frame * 10 for frame in plan.span(number))
            gap = Missing(start, end, error.message)
            return Heard(number, (), (gap,))


WORK: tuple[Work, ...] = (
    Work(TRANSCRIBE, _run, _failed, queue=PARENTS, attempts=_ATTEMPTS),
    Work(SLICE, _run_slice, queue=SLICES),
    Work(COPY, copying.run, copying.failed),
)
"""What the family has done by workers."""
