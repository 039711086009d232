"""An engine as a process of its own: `python -m fragdex.service.transcriptions.child`.

Takes jobs one after the other as JSON lines (`process.py` says them), and keeps its model between
them. Bytes of the file come from whoever started it, unless it was told where the file lies.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
import queue
import sys
from collections.abc import Callable
from typing import Any

from fragdex import ByteRange, Source
from fragdex.errors import FragdexError
from fragdex.service.processes import Speech, bounded
from fragdex.service.transcriptions import speaking
from fragdex.service.transcriptions.engines import Engine, EngineChoice, make_engine
from fragdex.service.transcriptions.engines.contract import need_language


class _Asked(Source):
    """A file whose bytes another process reads."""

    def __init__(self, speech: Speech, name: str, size: int | None) -> None:
        super().__init__(name, size=size, remote=True)
        self._speech = speech
        self._numbers = itertools.count()
        self.answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def read_up_to(self, range: ByteRange) -> bytes:
        wanted = self._spend(range)
        self._speech.say(ask=next(self._numbers), start=wanted.start, stop=wanted.stop)
        answer = self.answers.get()
        if "failed" in answer:
            raise speaking.error_of_json(answer["failed"])
        return base64.b64decode(answer["data"])


class _Work:
    """The jobs, by name."""

    def __init__(self, speech: Speech) -> None:
        self._speech = speech
        self._engine: Engine | None = None
        self._listener: Any = None
        self.source: Any = None

    @property
    def engine(self) -> Engine:
        assert self._engine is not None  # opened first
        return self._engine

    def open(self, choice: dict[str, Any]) -> dict[str, Any]:
        engine = make_engine(EngineChoice.of_json(choice))
        engine.open()
        self._engine = engine
        languages = None if engine.languages is None else sorted(engine.languages)
        return {
            "name": engine.name,
            "version": engine.version,
            "model_id": engine.model_id,
            "languages": languages,
        }

    def take(
        self,
        index: str,
        name: str,
        size: int | None,
        place: str | None,
        track: int | None,
        init: str | None,
    ) -> dict[str, Any]:
        import av.logging

        from fragdex import open_index, open_source
        from fragdex.service.transcriptions.slices import Listener

        av.logging.set_level(None)
        self.leave()
        self.source = open_source(place) if place is not None else _Asked(self._speech, name, size)
        moov = None if init is None else base64.b64decode(init)
        self._listener = Listener(open_index(index), self.source, track, init=moov)
        return {"track": self._listener.track.id}

    def leave(self) -> dict[str, Any]:
        if self._listener is not None:
            self._listener.close()
            self.source.close()
            self._listener = self.source = None
        return {}

    def plan(self, work_slice_ms: int, language: str | None) -> dict[str, Any]:
        need_language(self.engine, language)
        made: dict[str, Any] = self._listener.plan(work_slice_ms, self.engine, language).as_json()
        return made

    def hear(self, plan: dict[str, Any], number: int) -> dict[str, Any]:
        from fragdex.service.transcriptions.plan import Plan

        def told(done: int, of: int) -> None:
            self._speech.say(progress=done, of=of)

        made: dict[str, Any] = self._listener.hear(
            Plan.of_json(plan), number, self.engine, told
        ).as_json()
        return made


def main() -> int:
    """Do jobs until whoever started this is gone."""
    speech = Speech()
    jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    work = _Work(speech)

    def take(message: dict[str, Any]) -> None:
        if "answer" in message:
            work.source.answers.put(message)
        else:
            jobs.put(message)

    speech.listen(take)
    bounded([("RLIMIT_CORE", 0)])
    with contextlib.suppress(OSError):
        os.nice(5)  # requests come first
    while True:
        message = jobs.get()
        job: Callable[..., dict[str, Any]] = getattr(work, message.pop("do"))
        try:
            speech.say(done=job(**message))
        except FragdexError as error:
            speech.say(failed=speaking.error_as_json(error))


if __name__ == "__main__":
    sys.exit(main())
