"""The jobs `transcribe`, `transcribe-slice`, `transcribe-stretch` and `transcribe-copy`.

A transcription listens to parts of its track, plans its slices, waits for them and becomes complete
in one transaction; before that voices are told apart, where somebody asked who speaks. A slice is
heard by itself, and its words are there as soon as it ends. All of it may be killed at any moment
and run again: the plan stands in the database, slices that are done are not heard again, and a run
that comes too late publishes nothing.

A copy with the captions in it is an ISOBMFF file of its own. It is made of the file itself where
its bytes are here and are ISOBMFF; else of the file of the track that was heard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex import ByteRange, Source
from fragdex.digest import Digest
from fragdex.errors import EngineUnavailable, FormatError, NotReady, Unavailable, Unprocessable
from fragdex.sandbox.child import Idle
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.isolated import exact_index, run_isolated
from fragdex.service.isobmff import operations as isobmff
from fragdex.service.isobmff.indexing import set_index, store_index
from fragdex.service.isobmff.tracks import blob_of_track
from fragdex.service.jobs.work import PARENTS, SLICES, Job, Work
from fragdex.service.outbox import emit
from fragdex.service.records import blobs
from fragdex.service.records.database import insert
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tables import (
    isobmff_files,
    transcription_slices,
    transcription_speakers,
    transcriptions,
)
from fragdex.service.transcriptions.model import TranscriptionStatus
from fragdex.service.transcriptions.records import (
    OPEN,
    choice_of,
    event_data,
    is_over,
    sound_of,
    speakers_of,
    transcribed_slices,
    transcript_of,
    vocabulary_of,
)
from fragdex.speech.captions import MADE, PLACES, Pieces, cues_of, marked, pieces_of_copy
from fragdex.speech.diarization import Turn
from fragdex.speech.engines import BUILT_IN, required_package
from fragdex.speech.plan import TranscriptionPlan
from fragdex.speech.process import EngineFacts, SpeechProcess
from fragdex.speech.speakers import numbered, with_speakers
from fragdex.speech.voices import ensure_voices
from fragdex.speech.words import SliceTranscript, SpanNote, merged

# The engines of this process: each a process of its own that stays for the next slice.
#
# A model is loaded once and serves one transcription after the other, by the same choice of engine.


IDLE_SECONDS: Final = 120.0
"""So long an engine keeps its model without work."""


class _Listener(SpeechProcess):
    """An engine, and the transcription whose track it has taken."""

    key: str | None = None
    source: Source | None = None

    def turn_to(self, context: ServiceContext, row: Row[Any], check: Callable[[], None]) -> None:
        """Take the track of a transcription."""
        self.open(check=check)
        if self.key == row.id:
            return
        self.let_go()
        sound = sound_of(context, row.tenant_id, row.file_id, row.track_id)
        self.source = context.store.source(sound.blob.store_key)
        self.take(sound.index, self.source, sound.track_id, check=check)
        self.key = row.id

    def let_go(self) -> None:
        """Forget the track; the model stays."""
        if self.key is not None and self.alive:
            with suppress(Exception):  # it ended in this moment
                self.leave()
        if self.source is not None:
            self.source.close()
        self.key = self.source = None

    def end(self) -> None:
        """End the engine."""
        super().end()
        self.let_go()


class Engines:
    """Engines that wait for the next slice: a part of the context."""

    def __init__(self) -> None:
        self._idle: Idle[_Listener] = Idle(IDLE_SECONDS)

    @contextmanager
    def listener(
        self, context: ServiceContext, row: Row[Any], check: Callable[[], None]
    ) -> Iterator[SpeechProcess]:
        """An engine that has opened its model and taken the track of a transcription.

        Args:
            row: of the transcription.
            check: called while it is made ready; what it raises ends it.

        Raises:
            EngineUnavailable: the engine or its model is missing.
            NotReady, RecordNotFound: the bytes or the index of the file have been deleted.
            UndecodableMedia, TrackNotFound: as `fragdex.decoding.audio`.
        """
        choice = choice_of(context.settings, row.engine)

        def fitness(one: _Listener) -> float | None:
            """One that has taken this track, or else any of this choice."""
            fits = one.choice == choice and one.alive
            return float(one.key == row.id) if fits else None

        listener = self._idle.take(fitness) or _Listener(choice)
        try:
            listener.turn_to(context, row, check)
            yield listener
        finally:
            if listener.alive:
                self._idle.put(listener, max(1, context.settings.slice_workers))
            else:
                listener.end()

    def rest(self, transcription_id: str) -> None:
        """Let go of the track of a transcription that is over."""

        def let_go(one: _Listener) -> None:
            if one.key == transcription_id:
                one.let_go()

        self._idle.each(let_go)

    def close(self) -> None:
        """End them."""
        self._idle.end()


def engine_state(context: ServiceContext) -> str:
    """The service's engine and the version of its package, or what it lacks, for `/readyz`.

    Nothing is opened: a model that is here may still be broken.
    """
    if not context.settings.job_workers:
        return "not used here"
    choice = choice_of(context.settings)
    try:
        version = required_package(choice.name)
    except EngineUnavailable:
        return f"{choice.name} not found"
    built_in = choice.name in BUILT_IN and choice.model is None
    if not (built_in or choice.download or Path(choice.model or "").is_dir()):
        return f"{choice.name} {version}, its model not found"
    return f"{choice.name} {version}"


TRANSCRIBE: Final = "transcribe"
SLICE: Final = "transcribe-slice"
STRETCH: Final = "transcribe-stretch"
COPY: Final = "transcribe-copy"

# The transcription itself hears little: what ends it again and again is not its doing.
_ATTEMPTS: Final = 10
_LOOK_SECONDS: Final = 2.0
_ROWS_AT_ONCE: Final = 500
_ROW, _SLICE, _SPEAKERS = transcriptions.c, transcription_slices.c, transcription_speakers.c

_PIECE: Final = 1 << 20


class _Over(Exception):
    """Nobody wants the transcription any more."""


def _run(context: ServiceContext, job: Job) -> None:
    row = _begin(context, job.record_id)
    if row is None:
        context.part(Engines).rest(job.record_id)
        return
    try:
        with context.database.read() as connection:
            speakers = speakers_of(connection, [row.id]).get(row.id)
        if speakers is not None:
            ensure_voices()  # what is missing is said before anything is heard
        begun = time.monotonic()
        plan = _plan(context, job, row) if row.plan is None else TranscriptionPlan.of_json(row.plan)
        seconds = {"plan": time.monotonic() - begun}
        begun = time.monotonic()
        job.slices(SLICE, [{"number": number} for number in plan.slices])
        seconds["slices"] = time.monotonic() - begun
        if speakers is not None and speakers.turns is None:
            _tell_speakers(context, job, row, plan)
        _finish(context, row, plan, seconds)
    finally:
        context.part(Engines).rest(row.id)


def _wanted(connection: Connection, transcription_id: str) -> Row[Any] | None:
    """A transcription, where work on it is wanted."""
    wanted = sa.select(transcriptions).where(_ROW.id == transcription_id, OPEN)
    return connection.execute(wanted).one_or_none()


def _begin(context: ServiceContext, transcription_id: str) -> Row[Any] | None:
    """The transcription to be made; None where it is over or deleted."""
    mine = _ROW.id == transcription_id
    with context.database.write() as connection:
        row = _wanted(connection, transcription_id)
        if row is None:
            return None
        values: dict[str, Any] = {"status": TranscriptionStatus.TRANSCRIBING}
        if row.started_at is None:
            values["started_at"] = instant()
        connection.execute(transcriptions.update().where(mine).values(**values))
    return row


def _plan(context: ServiceContext, job: Job, row: Row[Any]) -> TranscriptionPlan:
    """How the track is heard, written down before anything is heard by it."""
    seat = context.jobs.seats.taken(row.tenant_id, job.check)
    with seat, context.part(Engines).listener(context, row, job.check) as child:
        plan = child.plan(
            row.work_slice_ms, row.wanted_language, vocabulary_of(row), check=job.check
        )
        facts = child.facts
    assert facts is not None  # the listener has opened it
    _save_plan(context, row.id, plan, facts)
    with context.database.read() as connection:
        # A run that lost its place while it planned goes by what the other one wrote.
        saved = connection.scalar(sa.select(_ROW.plan).where(_ROW.id == row.id))
    return plan if saved is None else TranscriptionPlan.of_json(saved)


def _save_plan(
    context: ServiceContext, transcription_id: str, plan: TranscriptionPlan, facts: EngineFacts
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


def _tell_speakers(
    context: ServiceContext, job: Job, row: Row[Any], plan: TranscriptionPlan
) -> None:
    """Write down who speaks when."""
    payloads = [{"number": number} for number in plan.stretches]
    stretches = job.slices(STRETCH, payloads, stage="v")
    seat = context.jobs.seats.taken(row.tenant_id, job.check)
    given = [[Turn(*turn) for turn in stretch] for stretch in stretches]
    try:
        with seat, context.part(Engines).listener(context, row, job.check) as child:
            matched = child.matched_turns(given, check=job.check)
    except Unprocessable:
        matched = []  # words without speakers are better than none
    with context.database.read() as connection:
        words = transcript_of(connection, row).words
    turns = numbered(matched, words)
    count = len({word.speaker for word in with_speakers(words, turns)} - {None})
    values = {"turns": [list(turn) for turn in turns], "speakers": count}
    mine = _SPEAKERS.transcription_id == row.id
    context.database.change(transcription_speakers.update().where(mine).values(**values))


def _run_stretch(context: ServiceContext, job: Job) -> list[list[int]]:
    """Who speaks when in a stretch; nobody where its sound breaks what tells voices apart."""
    with context.database.read() as connection:
        row = _wanted(connection, job.record_id)
    if row is None:
        return []
    plan = TranscriptionPlan.of_json(row.plan)
    check = _until_over(context, job, row)
    try:
        with context.part(Engines).listener(context, row, check) as child:
            turns = child.speaker_turns(plan, job.payload["number"], check=check)
    except (Unprocessable, _Over):
        return []
    return [list(turn) for turn in turns]


def _finish(
    context: ServiceContext, row: Row[Any], plan: TranscriptionPlan, seconds: Mapping[str, float]
) -> None:
    mine = _ROW.id == row.id
    with context.database.read() as connection:
        slices = transcribed_slices(connection, row.id)
    heard = [one for _, one in slices if one is not None]
    if len(heard) != len(plan.slices):
        if is_over(context, row.id):
            return
        raise Unavailable("slices of the transcription are missing", retry_after=1)
    transcript = merged(heard, plan.language, requested=row.wanted_language)
    values = {
        "language": transcript.language,
        "missing": [list(span) for span in transcript.missing],
        "words": len(transcript.words),
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
    }
    try:
        plan.ensure_sound(transcript.missing)
    finally:
        context.database.change(transcriptions.update().where(mine, OPEN).values(**values))
    done = {"status": TranscriptionStatus.COMPLETE, "completed_at": instant()}
    with context.database.write() as connection:
        if connection.execute(transcriptions.update().where(mine, OPEN).values(**done)).rowcount:
            data = {
                **event_data(row),
                "language": transcript.language,
                "words": len(transcript.words),
            }
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
    plan = TranscriptionPlan.of_json(row.plan)
    try:
        heard = _transcribed(context, job, row, plan, number)
    except _Over:
        return
    values = {
        "heard": heard.as_json(),
        "seconds": time.monotonic() - begun,
        "completed_at": instant(),
    }
    context.database.change(transcription_slices.update().where(mine).values(**values))


def _begin_slice(
    context: ServiceContext, transcription_id: str, mine: sa.ColumnElement[bool]
) -> Row[Any] | None:
    """The row of the transcription; None where nothing is to be done."""
    waits = mine & _SLICE.completed_at.is_(None)
    with context.database.write() as connection:
        row = _wanted(connection, transcription_id)
        if row is None:
            return None
        again = transcription_slices.update().where(waits).values(attempts=_SLICE.attempts + 1)
        return row if connection.execute(again).rowcount else None


def _transcribed(
    context: ServiceContext, job: Job, row: Row[Any], plan: TranscriptionPlan, number: int
) -> SliceTranscript:
    check = _until_over(context, job, row)
    with context.part(Engines).listener(context, row, check) as child:
        try:
            return child.transcribe_slice(plan, number, check=check)
        except Unprocessable as error:
            # This sound broke the engine or the decoder: the rest is heard, and the gap is said.
            start, end = (frame * 10 for frame in plan.span(number))
            gap = SpanNote(start, end, error.message)
            return SliceTranscript(number, (), (gap,))


def _until_over(context: ServiceContext, job: Job, row: Row[Any]) -> Callable[[], None]:
    """A check that ends work on a transcription that nobody wants any more."""
    looked = time.monotonic()

    def check() -> None:
        nonlocal looked
        job.check()
        if time.monotonic() - looked > _LOOK_SECONDS:
            looked = time.monotonic()
            if is_over(context, row.id):
                raise _Over

    return check


def _copy(context: ServiceContext, job: Job) -> None:
    """The job that makes a copy."""
    mine = _ROW.id == job.record_id
    waiting = _ROW.copy_status == TranscriptionStatus.PENDING
    with context.database.read() as connection:
        row = connection.execute(sa.select(transcriptions).where(mine, waiting)).one_or_none()
        if row is None:
            return
        transcript = transcript_of(connection, row)
        sources = _sources(connection, row)
    cues = cues_of(marked(transcript))
    with OwnFolder() as folder:
        pieces = Pieces(folder / PLACES, folder / MADE)
        for number, blob in enumerate(sources):
            try:
                run_isolated(
                    context, row.tenant_id, blob.store_key, blob.byte_size, pieces_of_copy,
                    {PLACES: pieces.places, MADE: pieces.made}, check=job.check,
                    cues=cues, language=transcript.language,
                )  # fmt: skip
            except FormatError:
                if number + 1 < len(sources):
                    continue
                raise
            with context.store.source(blob.store_key) as source:
                _publish(context, job, row, source, pieces)
            return


def _copy_failed(context: ServiceContext, job: Job, problem: Mapping[str, Any]) -> None:
    """Write down why there is no copy."""
    waits = (_ROW.id == job.record_id) & (_ROW.copy_status == TranscriptionStatus.PENDING)
    values = {"copy_status": TranscriptionStatus.FAILED, "copy_problem": dict(problem)}
    context.database.change(transcriptions.update().where(waits).values(**values))


def _sources(connection: Connection, row: Row[Any]) -> list[blobs.Blob]:
    """What may be copied, the best first."""
    file = isobmff.FILES.row(connection, row.tenant_id, row.file_id)
    whole = isobmff.file_bytes(connection, file)
    sources = [] if whole is None else [whole]
    try:
        own, _ = blob_of_track(connection, row.tenant_id, row.file_id, row.track_id)
    except NotReady:
        if not sources:
            raise
    else:
        sources += [own] if own not in sources else []
    return sources


def _publish(
    context: ServiceContext, job: Job, row: Row[Any], source: Source, pieces: Pieces
) -> None:
    written = blobs.write(
        context.database, context.store, row.tenant_id, lambda: _bytes(job, source, pieces)
    )
    digest, own, size, key = written.md5, written.sha256, written.byte_size, written.store_key
    index = exact_index(context, row.tenant_id, key, size, check=job.check)
    index.file = replace(index.file, md5=Digest(digest))
    stored = store_index(context, row.tenant_id, index)
    mine = _ROW.id == row.id
    with context.database.write() as connection:
        still = sa.select(_ROW.id).where(mine, _ROW.copy_status == TranscriptionStatus.PENDING)
        if connection.execute(still.with_for_update()).first() is None:
            return
        of = isobmff.FILES.row(connection, row.tenant_id, row.file_id)
        file, _ = isobmff.register(
            connection,
            row.tenant_id,
            digest,
            _name(of.filename),
            sha256=own,
            # one that is over stays for another upload of the same bytes
            expires_at=of.expires_at if of.expires_at and of.expires_at > instant() else None,
        )
        blobs.keep(connection, row.tenant_id, digest, own, size, isobmff.FAMILY, file.id, key)
        connection.execute(
            isobmff_files.update().where(isobmff_files.c.id == file.id).values(byte_size=size)
        )
        set_index(context, connection, row.tenant_id, file.id, stored)
        values = {"copy_status": TranscriptionStatus.COMPLETE, "copy_file_id": file.id}
        connection.execute(transcriptions.update().where(mine).values(**values))


def _bytes(job: Job, source: Source, pieces: Pieces) -> Iterator[bytes]:
    with pieces.made.open("rb") as file:
        for start, stop in pieces:
            for at in range(start, stop, _PIECE):
                job.check()
                end = min(at + _PIECE, stop)
                yield source.read(ByteRange(at, end)) if start >= 0 else file.read(end - at)


def _name(filename: str) -> str:
    """What the copy of a file is called."""
    stem = PurePosixPath(filename).stem if filename.strip("/.") else filename
    return f"{stem[:1000]}.captions.mp4"


WORK: tuple[Work, ...] = (
    Work(TRANSCRIBE, _run, _failed, queue=PARENTS, attempts=_ATTEMPTS),
    Work(SLICE, _run_slice, queue=SLICES),
    Work(STRETCH, _run_stretch, queue=SLICES),
    Work(COPY, _copy, _copy_failed),
)
"""What the family has done by workers."""
