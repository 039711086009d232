"""Jobs on videos of strangers, each done in a child of its own, which has seen no other video.

The parent opens what is allowed and hands it over; the child knows no name and reaches no network.
It keeps the index of its video for the next question about it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import fragdex
from fragdex import Index, Source, open_source
from fragdex.agents.allowed import Allowed
from fragdex.errors import BudgetExceeded, FragdexError, Unavailable, Unprocessable
from fragdex.sandbox.channel import Channel, opened
from fragdex.sandbox.child import ChildProcess, Failures, Idle, ParentSource, reads
from fragdex.sandbox.processes import memory_of_one
from fragdex.sandbox.walls import Walls

JOBS: Final = {
    "describe": "looking", "index": "looking",
    "frames": "looking", "sheet": "looking", "changes": "looking",
    "words": "listening", "sound": "listening",
    "cut": "making", "package": "making", "repair": "making",
}  # fmt: skip
"""Each job, and the file of this room that does it."""
_FAILURES: Final = Failures("the process that reads videos", "this video")
_LARGEST_FILE: Final = 1 << 40
_KEPT: Final = 3
_KEPT_SECONDS: Final = 300.0

Report = Callable[[float, str], None]


class Worker:
    """Has jobs done, for several threads, and keeps children for the next question.

    Args:
        allowed: what may be read and written.
        max_seconds: that an answer may take.
    """

    def __init__(self, allowed: Allowed, max_seconds: float) -> None:
        self.allowed, self.max_seconds = allowed, max_seconds
        self.idle: Idle[_Child] = Idle(_KEPT_SECONDS)

    def close(self) -> None:
        """End all children."""
        self.idle.end()


class Call:
    """One answer that is worked on.

    Attributes:
        allowed: what may be read and written.
        cancelled: to be set where nobody waits for it any longer.
        progress: how far it is, 0 to 1, and with what, since somebody took it last.
    """

    def __init__(self, worker: Worker) -> None:
        self.allowed, self._worker = worker.allowed, worker
        self.cancelled, self._began = threading.Event(), time.monotonic()
        self.progress: tuple[float, str] | None = None

    def report(self, done: float, what: str) -> None:
        """Note how far it is."""
        self.progress = done, what

    def check(self) -> None:
        """Raise Unavailable where it is cancelled, BudgetExceeded where it takes too long."""
        if self.cancelled.is_set():
            raise Unavailable("cancelled")
        if time.monotonic() - self._began > self._worker.max_seconds:
            raise BudgetExceeded(
                f"the answer takes longer than {self._worker.max_seconds:g} s",
                advice="ask about a shorter span, or start the server with --max-seconds",
            )

    def do(
        self,
        job: str,
        names: Sequence[str],
        *,
        beside: Sequence[str] = (),
        take: Callable[[Path, dict[str, Any]], None] | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """What a job answers, and under `read` what it cost.

        Args:
            names: of the videos; `beside`: of caption files, which the job has after them.
            take: called with the folder of the child, to take files out of it.
            arguments: of the job.

        Raises: as the job, `Allowed.open` and `check`.
        """
        began, files, idle = time.monotonic(), (*names, *beside), self._worker.idle
        with ExitStack() as stack:
            sources = [stack.enter_context(self.allowed.open(one)) for one in files]
            both = [*zip(files, sources, strict=True)]
            key = tuple((name, one.size, one.mtime_ns, one.etag) for name, one in both)
            child = None if take else idle.take(lambda one: 1.0 if one.key == key else None)
            child = child or _Child(key)
            try:
                answer = child.do(
                    "answer", check=self.check, answer=reads(*sources), work=job,
                    on_message=lambda message: self.report(message["progress"], message["what"]),
                    files=[n for n in (one.fileno() for one in sources) if n is not None],
                    videos=[_described(*one) for one in both], arguments=arguments,
                )  # fmt: skip
                if take:
                    take(child.folder, answer)
            finally:
                if take or not child.alive:
                    child.end()
                else:
                    idle.put(child, _KEPT)
            for one in sources:
                if one.fileno() is None:
                    answer["read"]["bytes"] += one.bytes_read
                    answer["read"]["requests"] += one.requests
            answer["read"]["seconds"] = round(time.monotonic() - began, 2)
            return answer


class _Child(ChildProcess):
    """A process that has seen these files and no others."""

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key
        super().__init__(f"{__package__}.work", Walls(memory_of_one(), _LARGEST_FILE), _FAILURES)


def _described(name: str, source: Source) -> dict[str, Any]:
    return {
        "name": name, "size": source.size, "local": source.fileno() is not None,
        "max_bytes": source.max_bytes, "max_requests": source.max_requests,
    }  # fmt: skip


class Video:
    """A video as a job has it.

    Attributes:
        name: of messages.
        source: open, with the budget of this answer.
    """

    def __init__(self, name: str, source: Source, indexes: dict[str, Index]) -> None:
        self.name, self.source, self._indexes = name, source, indexes

    @cached_property
    def index(self) -> Index:
        """Its index, exact; made once by a child."""
        if self.name not in self._indexes:
            self._indexes[self.name] = fragdex.index(self.source, exact=True)
        return self._indexes[self.name]


def main(channel: Channel) -> None:
    """What the child does."""
    import av.logging

    av.logging.set_level(None)
    indexes: dict[str, Index] = {}
    last = 0.0

    def report(done: float, what: str) -> None:
        nonlocal last
        if time.monotonic() - last >= 0.25:
            last = time.monotonic()
            channel.send(progress=done, what=what)

    def answer(
        work: str, videos: list[dict[str, Any]], arguments: dict[str, Any],
        files: list[int] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        do = getattr(import_module(f"{__package__}.{JOBS[work]}"), work)
        with _videos(channel, videos, files or [], indexes) as given:
            try:
                made: dict[str, Any] = do(given, report, **arguments)
            except (FragdexError, MemoryError):
                raise
            except (ValueError, TypeError, LookupError, ArithmeticError, OSError) as error:
                raise Unprocessable(
                    f"{given[0].name} cannot be used so",
                    expected="a video that can be read so",
                    found=f"{type(error).__name__}: {error}",
                ) from error
            local = [one.source for one in given if not isinstance(one.source, ParentSource)]
            made["read"] = {
                "bytes": sum(one.bytes_read for one in local),
                "requests": sum(one.requests for one in local),
            }
            return made

    channel.serve({"answer": answer})


@contextmanager
def _videos(
    channel: Channel,
    described: list[dict[str, Any]],
    files: list[int],
    indexes: dict[str, Index],
) -> Iterator[list[Video]]:
    """The files of a job: handed over open, or read by the parent."""
    given = iter(files)
    with ExitStack() as stack:
        videos = []
        for number, one in enumerate(described):
            budget = {name: one[name] for name in ("max_bytes", "max_requests")}
            source: Source
            if one["local"]:
                file = stack.enter_context(opened(next(given), one["name"]))
                source = stack.enter_context(open_source(file, **budget))
            else:
                source = ParentSource(channel, one["size"], one["name"], number)
                source.max_bytes, source.max_requests = one["max_bytes"], one["max_requests"]
            videos.append(Video(one["name"], source, indexes))
        yield videos
