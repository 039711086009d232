"""The engines of this process: each a process of its own that stays for the next slice.

A model is loaded once and serves one transcription after the other, by the same choice of engine.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy.engine import Row

from fragdex import Source
from fragdex.service.house import House
from fragdex.service.transcriptions.engines import EngineChoice
from fragdex.service.transcriptions.places import sound_of
from fragdex.service.transcriptions.process import Child
from fragdex.service.transcriptions.records import choice_of

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
    used: float = field(default_factory=time.monotonic)

    def turn_to(self, house: House, row: Row[Any], check: Callable[[], None]) -> None:
        """Take the track of a transcription."""
        if self.key == row.id:
            return
        self.let_go()
        sound = sound_of(house, row.tenant_id, row.file_id, row.track_id)
        key = sound.place.blob.store_key
        path = house.store.path(key)
        self.source = house.store.source(key)
        self.child.take(
            sound.index,
            self.source,
            sound.track_id,
            place=None if path is None else str(path),
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


class _Resting:
    """Engines without work, that keep their models for a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[_Listener] = []
        self._timer: threading.Timer | None = None

    def take(self, key: str, choice: EngineChoice) -> _Listener | None:
        """One that has taken this track, or else any of this choice; it rests no longer."""
        with self._lock:
            fit = [one for one in self._all if one.choice == choice and one.child.alive]
            if not fit:
                return None
            best = next((one for one in fit if one.key == key), fit[-1])
            self._all.remove(best)
            return best

    def put(self, one: _Listener, most: int) -> None:
        """Let one rest; of more than `most` the one that rests longest goes."""
        one.used = time.monotonic()
        with self._lock:
            self._all.append(one)
            gone = self._all[:-most]
            del self._all[:-most]
            self._wake()
        for old in gone:
            old.end()

    def let_go(self, key: str) -> None:
        """Let go of a track."""
        with self._lock:
            for one in self._all:
                if one.key == key:
                    one.let_go()

    def end(self, which: Callable[[_Listener], bool] = lambda _: True) -> None:
        """End some of them."""
        with self._lock:
            gone = [one for one in self._all if which(one)]
            for one in gone:
                self._all.remove(one)
        for one in gone:
            one.end()

    def _wake(self) -> None:
        if self._timer is None and self._all:
            self._timer = threading.Timer(IDLE_SECONDS / 4, self._sweep)
            self._timer.daemon = True
            self._timer.start()

    def _sweep(self) -> None:
        self.end(lambda one: time.monotonic() - one.used > IDLE_SECONDS or not one.child.alive)
        with self._lock:
            self._timer = None
            self._wake()


_resting = _Resting()
atexit.register(_resting.end)


@contextmanager
def listener(house: House, row: Row[Any], check: Callable[[], None]) -> Iterator[Child]:
    """An engine that has opened its model and taken the track of a transcription.

    Args:
        row: of the transcription.
        check: called while it is made ready; what it raises ends it.

    Raises:
        EngineUnavailable: the engine or its model is missing.
        NotReady, RecordNotFound: the bytes or the index of the file are not here any more.
        UndecodableMedia, TrackNotFound: as `fragdex.audio`.
    """
    choice = choice_of(house.settings, row.engine)
    found = _resting.take(row.id, choice) or _Listener(Child(choice), choice)
    try:
        found.child.open(check=check)
        found.turn_to(house, row, check)
        yield found.child
    finally:
        if found.child.alive:
            _resting.put(found, max(1, house.settings.slice_workers))
        else:
            found.end()


def rest(transcription_id: str) -> None:
    """Let go of the track of a transcription that is over."""
    _resting.let_go(transcription_id)
