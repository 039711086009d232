"""A whole file without a service: slice by slice, in several processes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import fragdex
from fragdex import FragmentIndex, Source, open_source
from fragdex.errors import FragdexError
from fragdex.service.errors import Unavailable
from fragdex.service.transcriptions.engines import EngineChoice
from fragdex.service.transcriptions.merging import Transcript, merged
from fragdex.service.transcriptions.plan import Plan
from fragdex.service.transcriptions.process import Child
from fragdex.service.transcriptions.slices import need_sound
from fragdex.service.transcriptions.words import Heard

__all__ = ["transcribe"]

_TRIES: Final = 3
"""Processes that a slice is given to, one after the other, where they are ended from outside."""

OnSlice = Callable[[Heard, int, int], None]


def transcribe(
    source: Any,
    *,
    index: FragmentIndex | None = None,
    track: int | None = None,
    choice: EngineChoice = EngineChoice(),  # noqa: B008 — frozen
    language: str | None = None,
    work_slice_ms: int = 30_000,
    jobs: int = 1,
    init: bytes | None = None,
    on_slice: OnSlice = lambda heard, done, of: None,
) -> Transcript:
    """What is said in a track.

    Args:
        source: the file, in any form that `fragdex.open_source` takes.
        index: of it; None: made here.
        track: track_ID; None: the first audio track.
        choice: the engine.
        language: ISO 639-1; None: what the engine hears.
        work_slice_ms: length of the slices.
        init: the initialization segment, for segments that have none.
        jobs: processes, each with the engine's model in memory.
        on_slice: called in this thread with each slice in the order of the file, how many of them
            are done, and how many there are.

    Raises:
        EngineUnavailable: the engine or its model is missing.
        InvalidRequest: the engine lacks this language.
        TrackNotFound: no such track, or it is no sound.
        UndecodableMedia: nothing of the track could be decoded.
    """
    ours = not isinstance(source, Source)
    opened: Source = open_source(source) if ours else source
    try:
        if index is None:
            index = fragdex.index(opened)
        hearing = _Hearing(index, opened, choice, track, max(1, jobs), init, on_slice)
        return hearing.run(work_slice_ms, language)
    finally:
        if ours:
            opened.close()


class _Hearing:
    """Several processes that take slices from one list."""

    def __init__(
        self,
        index: FragmentIndex,
        source: Source,
        choice: EngineChoice,
        track: int | None,
        jobs: int,
        init: bytes | None,
        on_slice: OnSlice,
    ) -> None:
        self._index, self._source = index, source
        self._choice, self._track, self._jobs, self._on_slice = choice, track, jobs, on_slice
        self._init = init
        self._children: list[Child] = []
        # A source is for one thread at a time.
        self._reading = threading.Lock()
        self._over = threading.Event()

    def run(self, work_slice_ms: int, language: str | None) -> Transcript:
        try:
            first = self._child()
            plan = first.plan(work_slice_ms, language, check=self._check)
            heard = self._hear(plan, first)
        finally:
            self._over.set()
            for child in self._children:
                child.end()
        transcript = merged(heard, plan.language)
        need_sound(plan, transcript.missing)
        assert first.facts is not None  # it was opened
        facts = first.facts
        return replace(transcript, engine=f"{facts.name} {facts.version} ({facts.model_id})")

    def _child(self) -> Child:
        child = Child(self._choice)
        self._children.append(child)
        child.open(check=self._check)
        source = self._source if self._source.fileno() is not None else _Shared(self)
        child.take(self._index, source, self._track, init=self._init, check=self._check)
        return child

    def _check(self) -> None:
        if self._over.is_set():
            raise InterruptedError

    def _hear(self, plan: Plan, first: Child) -> list[Heard]:
        numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in plan.slices:
            numbers.put(number)
        results: queue.SimpleQueue[Heard | BaseException] = queue.SimpleQueue()

        def work(child: Child | None) -> None:
            try:
                child = child or self._child()
                while not self._over.is_set():
                    number = numbers.get_nowait()
                    heard, child = self._again(plan, number, child)
                    results.put(heard)
            except queue.Empty:
                pass
            except (FragdexError, RuntimeError, OSError) as error:
                results.put(error)

        count = min(self._jobs, len(plan.slices))
        threads = [
            threading.Thread(target=work, args=(first if n == 0 else None,), daemon=True)
            for n in range(count)
        ]
        for thread in threads:
            thread.start()
        waiting: dict[int, Heard] = {}
        done: list[Heard] = []
        for number in plan.slices:
            while number not in waiting:
                found = results.get()
                if isinstance(found, BaseException):
                    raise found
                waiting[found.number] = found
            done.append(waiting.pop(number))
            self._on_slice(done[-1], len(done), len(plan.slices))
        return done

    def _again(self, plan: Plan, number: int, child: Child) -> tuple[Heard, Child]:
        """A slice; where its process was ended by somebody, another one hears it from the start."""
        for _ in range(_TRIES - 1):
            try:
                return child.hear(plan, number, check=self._check), child
            except Unavailable:
                child = self._child()
        return child.hear(plan, number, check=self._check), child

    def read(self, part: fragdex.ByteRange) -> bytes:
        with self._reading:
            return self._source.read_up_to(part)

    @property
    def size(self) -> int | None:
        return self._source.size


class _Shared(Source):
    """The one open source, for several threads in turn."""

    def __init__(self, hearing: _Hearing) -> None:
        super().__init__("source", size=hearing.size, remote=True)
        self._hearing = hearing

    def read_up_to(self, range: fragdex.ByteRange) -> bytes:
        return self._hearing.read(range)
