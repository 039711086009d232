"""The engines of this process: each a process of its own that stays for the next slice.

A model is loaded once and serves one transcription after the other, by the same choice of engine.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy.engine import Row

from fragdex import Source
from fragdex.service.context import ServiceContext
from fragdex.service.processes.idle import Idle
from fragdex.service.transcriptions.engines import EngineChoice
from fragdex.service.transcriptions.process import Child
from fragdex.service.transcriptions.records import choice_of
from fragdex.service.transcriptions.track_source import sound_of

__all__ = ["listener", "rest"]

IDLE_SECONDS: Final = 120.0
"""So long an engine keeps its model without work."""


@dataclass(slots=True)
class _Listener:
    """An engine, and the transcription whose track it has taken."""

    child: Child
    choice: EngineChoice
    key: str | None = None
    source: Source | None = None

    def turn_to(self, context: ServiceContext, row: Row[Any], check: Callable[[], None]) -> None:
        """Take the track of a transcription."""
        if self.key == row.id:
            return
        self.let_go()
        sound = sound_of(context, row.tenant_id, row.file_id, row.track_id)
        key = sound.place.blob.store_key
        self.source = context.store.source(key)
        self.child.take(
            sound.index,
            self.source,
            sound.track_id,
            check=check,
        )
        self.key = row.id

    def let_go(self) -> None:
        """Forget the track; the model stays."""
        if self.key is not None and self.child.alive:
            with suppress(Exception):  # it ended in this moment
                self.child.leave()
        if self.source is not None:
            self.source.close()
        self.key = self.source = None

    def end(self) -> None:
        """End the engine."""
        self.child.end()
        self.let_go()


_idle: Idle[_Listener] = Idle(IDLE_SECONDS)
atexit.register(_idle.end)


@contextmanager
def listener(context: ServiceContext, row: Row[Any], check: Callable[[], None]) -> Iterator[Child]:
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
        fits = one.choice == choice and one.child.alive
        return float(one.key == row.id) if fits else None

    found = _idle.take(fitness) or _Listener(Child(choice), choice)
    try:
        found.child.open(check=check)
        found.turn_to(context, row, check)
        yield found.child
    finally:
        if found.child.alive:
            _idle.put(found, max(1, context.settings.slice_workers))
        else:
            found.end()


def rest(transcription_id: str) -> None:
    """Let go of the track of a transcription that is over."""

    def let_go(one: _Listener) -> None:
        if one.key == transcription_id:
            one.let_go()

    _idle.each(let_go)
