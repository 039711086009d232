"""A speech engine in a child process, with its model in memory for one track after the other.

Bytes of the file come from the parent, which hands over what it has open and reads the rest.
"""

from __future__ import annotations

import base64
from typing import Any

from fragdex import ByteRange, Source
from fragdex.service.processes.channel import Channel, opened
from fragdex.service.transcriptions.engines import Engine, EngineChoice, make_engine
from fragdex.service.transcriptions.engines.contract import need_language

__all__ = ["main"]


class _ResourceFetcher(Source):
    """A file whose bytes the parent reads."""

    def __init__(self, channel: Channel, name: str, size: int | None) -> None:
        super().__init__(name, size=size, remote=True)
        self._channel = channel

    def read_up_to(self, range: ByteRange) -> bytes:
        wanted = self._spend(range)
        answer, _ = self._channel.ask(start=wanted.start, stop=wanted.stop)
        return base64.b64decode(answer["data"])


class _Work:
    """The jobs, by name."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
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
        files: list[int],
        name: str,
        size: int | None,
        track: int | None,
        init: str | None,
    ) -> dict[str, Any]:
        import av.logging

        from fragdex import open_index, open_source
        from fragdex.service.transcriptions.slices import Listener

        av.logging.set_level(None)
        self.leave()
        with opened(files[0], "index") as file:
            index = open_index(file)
        if len(files) > 1:
            with opened(files[1], name) as file:
                self.source = open_source(file)
        else:
            self.source = _ResourceFetcher(self._channel, name, size)
        moov = None if init is None else base64.b64decode(init)
        self._listener = Listener(index, self.source, track, init=moov)
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
            self._channel.send(progress=done, of=of)

        made: dict[str, Any] = self._listener.hear(
            Plan.of_json(plan), number, self.engine, told
        ).as_json()
        return made


def main(channel: Channel) -> None:
    """Do jobs until the parent is gone."""
    work = _Work(channel)
    jobs = (work.open, work.take, work.leave, work.plan, work.hear)
    channel.serve({job.__name__: job for job in jobs})
