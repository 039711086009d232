"""The engines of this process: each a process of its own that stays for the next slice.

A model is loaded once and serves one transcription after the other, by the same choice of engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy.engine import Row

from fragdex import Source
from fragdex.errors import EngineUnavailable
from fragdex.sandbox.child import Idle
from fragdex.service.context import ServiceContext
from fragdex.service.transcriptions.records import choice_of
from fragdex.service.transcriptions.track_source import sound_of
from fragdex.speech.engines import BUILT_IN, need_package
from fragdex.speech.process import SpeechProcess

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
            NotReady, RecordNotFound: the bytes or the index of the file are not here any more.
            UndecodableMedia, TrackNotFound: as `fragdex.audio`.
        """
        choice = choice_of(context.settings, row.engine)

        def fitness(one: _Listener) -> float | None:
            """One that has taken this track, or else any of this choice."""
            fits = one.choice == choice and one.alive
            return float(one.key == row.id) if fits else None

        found = self._idle.take(fitness) or _Listener(choice)
        try:
            found.turn_to(context, row, check)
            yield found
        finally:
            if found.alive:
                self._idle.put(found, max(1, context.settings.slice_workers))
            else:
                found.end()

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
        version = need_package(choice.name)
    except EngineUnavailable:
        return f"{choice.name} not found"
    built_in = choice.name in BUILT_IN and choice.model is None
    if not (built_in or choice.download or Path(choice.model or "").is_dir()):
        return f"{choice.name} {version}, its model not found"
    return f"{choice.name} {version}"
