"""The parent's side of a child: started after walls, given jobs and files to read, ended, kept."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from fragdex.byterange import ByteRange
from fragdex.errors import (
    FragdexError,
    ServiceError,
    SourceUnavailable,
    StoreFull,
    Unavailable,
    Unprocessable,
)
from fragdex.record import record
from fragdex.sandbox.channel import Channel, Lines, error_as_json, error_of_json
from fragdex.sandbox.folders import OwnFolder
from fragdex.sandbox.processes import data_left, end_session, exit_code
from fragdex.sandbox.walls import Walls
from fragdex.sources import Source
from fragdex.traces import Value, inner_span

_log = logging.getLogger(__name__)

# Its environment holds nothing of the service's: no keys, no database URL.
_PASSED_ON: Final = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
# numpy's library would start a thread for each processor, with a stack each, for nothing.
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1"}
_POLL_SECONDS: Final = 0.25
# Of memory: with less of it nothing can be made.
_LAST_PAGES: Final = 64 << 10
_LAST_WORDS: Final = 2000
_LAST_LINES: Final = 100

Check = Callable[[], None]
OnMessage = Callable[[dict[str, Any]], None]
Answer = Callable[[dict[str, Any]], tuple[dict[str, Any], Sequence[int]]]


class ChildProcess:
    """A module of ours that runs as a process of its own, after walls.

    Args:
        module: its `main(channel)` is called.
        walls: what it may do.
        failures: what its end means.
        folder: where it stands and may write, empty; None: one of its own that goes with it. All
            children of other users reach it by `.`, whoever may look into the folders above.
        environment: more variables than those every child has.
        stall_seconds: silence after which it is taken for hung.

    To be used by one thread at a time; a context manager.
    """

    def __init__(
        self,
        module: str,
        walls: Walls,
        failures: Failures,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        stall_seconds: float = 300.0,
    ) -> None:
        self._module, self._failures, self._stall = module, failures, stall_seconds
        self._own: OwnFolder | None = None
        if folder is None:
            self._own = OwnFolder()
            folder = self._own.path
        self.folder = folder
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        if "PYTHONPATH" in passed_on:  # it stands elsewhere
            parts = passed_on["PYTHONPATH"].split(os.pathsep)
            passed_on["PYTHONPATH"] = os.pathsep.join(
                os.path.abspath(part) for part in parts if part
            )
        passed_on |= {name: str(self.folder) for name in ("HOME", "TMPDIR")} | _ONE_THREAD
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [
                sys.executable, "-P", "-B", "-m", "fragdex.sandbox.start", module,
                json.dumps(asdict(walls)),
            ],
            stdin=theirs.fileno(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env=passed_on | dict(environment or {}),
            # so that all of it can be ended, and Ctrl-C is not for it
            start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self._lines = Lines(ours)
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._words: list[bytes] = []
        self._readers = [
            threading.Thread(target=read, daemon=True) for read in (self._listen, self._keep_output)
        ]
        for reader in self._readers:
            reader.start()
        self._ended = False

    @property
    def pid(self) -> int:
        """Its number, which is also that of its session."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return not self._ended and exit_code(self._process.pid) is None

    def do(
        self,
        job: str,
        *,
        check: Check = lambda: None,
        on_message: OnMessage = lambda message: None,
        answer: Answer | None = None,
        files: Sequence[int] = (),
        **arguments: Any,
    ) -> dict[str, Any]:
        """Have it do a job, and wait for what comes of it.

        Args:
            check: called several times a second; what it raises ends the child.
            on_message: called with what it says meanwhile.
            answer: answers what it asks, in a thread: with values and with descriptors, which are
                closed when they are sent.
            files: open files that it gets with the job.

        Raises:
            FragdexError: what the job raised there; or how the child ended, as of its `failures`.
        """
        # Inside its walls it reaches no collector: its span is measured here.
        attributes: dict[str, Value] = {
            "fragdex.child": self._module,
            "process.pid": self._process.pid,
        }
        with inner_span(f"child {job}", attributes=attributes):
            return self._done(job, check, on_message, answer, files, arguments)

    def _done(
        self,
        job: str,
        check: Check,
        on_message: OnMessage,
        answer: Answer | None,
        files: Sequence[int],
        arguments: Mapping[str, Any],
    ) -> dict[str, Any]:
        self._send({"do": job, **arguments}, files)
        try:
            message = self._result(check, on_message, answer)
        except BaseException:
            self.end()
            raise
        if "failed" in message:
            plain = message["failed"]
            if "memory" in plain:
                # it is in an unknown state
                self.end()
                raise self._failures.memory()
            raise error_of_json(plain)
        done: dict[str, Any] = message["done"]
        return done

    def end(self) -> None:
        """End it, what it started and its own folder; nothing happens where that is done."""
        if self._ended:
            return
        self._ended = True
        end_session(self._process.pid)
        self._process.wait()
        self._lines.hang_up()
        for reader in self._readers:
            reader.join(timeout=5)
        self._lines.close()
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdout.close()
        if self._own is not None:
            self._own.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _result(self, check: Check, on_message: OnMessage, answer: Answer | None) -> dict[str, Any]:
        heard = time.monotonic()
        while True:
            check()
            try:
                message = self._messages.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if self._has_no_memory():
                    raise self._failures.memory() from None
                if time.monotonic() - heard > self._stall:
                    raise self._failures.hung() from None
                continue
            heard = time.monotonic()
            if message is None:
                self._messages.put(None)
                raise self._failure()
            if "done" in message or "failed" in message:
                return message
            if "missing" in message:
                _tell_missing(tuple(message["missing"]))
            elif "ask" in message and answer is not None:
                # An answer takes as long as a disk or a network does; whoever cancels waits not.
                threading.Thread(target=self._answer, args=(message, answer), daemon=True).start()
            else:
                on_message(message)

    def _has_no_memory(self) -> bool:
        """Whether it has not a page left.

        CPython without memory for an integer looks for one without end where an error passes a
        `with` or `finally`, and lets no other thread run: so nobody inside can notice.
        """
        left = data_left(self._process.pid)
        return left is not None and left[0] < _LAST_PAGES

    def _answer(self, question: dict[str, Any], answer: Answer) -> None:
        number = question.pop("ask")
        files: Sequence[int] = ()
        try:
            plain, files = answer(question)
        except FragdexError as error:
            plain = {"failed": error_as_json(error)}
        except Exception as error:  # noqa: BLE001 — the child waits for it, whatever happened
            reason = f"it could not be read: {type(error).__name__}"
            plain = {"failed": error_as_json(SourceUnavailable(reason))}
        try:
            self._send({"answer": number} | plain, files)
        finally:
            for file in files:
                os.close(file)

    def _send(self, message: dict[str, Any], files: Sequence[int]) -> None:
        # One that is gone is noticed by whoever waits for its result.
        with contextlib.suppress(OSError):
            self._lines.send(message, files)

    def _failure(self) -> Exception:
        code = exit_code(self._process.pid, wait=True) or 0
        self._readers[1].join(timeout=5)
        ending = code if code >= 0 else signal.Signals(-code).name
        words = b"".join(self._words).decode("utf-8", "replace")[-_LAST_WORDS:]
        return self._failures.ended(ending, words)

    def _listen(self) -> None:
        for message, files in self._lines:
            for file in files:
                os.close(file)
            self._messages.put(message)
        self._messages.put(None)

    def _keep_output(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in iter(self._process.stdout.readline, b""):
                self._words.append(line)
                # a process that complains for an hour is remembered by its end
                del self._words[:-_LAST_LINES]


_told: set[tuple[str, ...]] = set()


def _tell_missing(missing: tuple[str, ...]) -> None:
    if missing not in _told:
        _told.add(missing)
        for line in missing:
            _log.warning("walls of child processes: %s", line)


# Signals that a program sends itself by its faults: what it was given broke it, and will again.
CRASHES: Final = frozenset(
    {"SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGBUS", "SIGXFSZ", "SIGTRAP", "SIGSYS"}
)


@record(frozen=True, slots=True)
class Failures:
    """What the end of a child means to whoever wanted its work.

    Args:
        what: which part of the service works there, and on what.
        input: what it was given.
        by_input: the error where the input is to blame: nobody tries again.
        gone: the error where nobody knows that it is: somebody may try again.
    """

    what: str
    input: str
    by_input: type[ServiceError] = Unprocessable
    gone: type[ServiceError] = Unavailable

    def memory(self) -> ServiceError:
        """It took more memory than it may have."""
        return self.by_input(f"{self.input} needs more memory than {self.what} may have")

    def hung(self) -> ServiceError:
        """It did not say a word for long."""
        return self.by_input(f"{self.what} hung on {self.input}")

    def ended(self, ending: str | int, words: str) -> Exception:
        """It ended with a signal or an exit code, and wrote something last."""
        # An interpreter that runs out of memory ends with SIGABRT.
        if "MemoryError" in words and (isinstance(ending, int) or ending in CRASHES):
            return self.memory()
        if ending in CRASHES:
            return self.by_input(f"{self.what} broke on {self.input}", found=ending)
        if ending == "SIGXCPU":
            return self.by_input(f"{self.input} takes {self.what} more processor time than it may")
        if isinstance(ending, str):
            return self.gone(f"{self.what} was ended by {ending}", retry_after=5)
        if "File too large" in words:
            return self.by_input(f"{self.what} would write more than it may of {self.input}")
        if "No space left on device" in words:
            return StoreFull(f"no room for what {self.what} makes", retry_after=60)
        kind = RuntimeError if self.gone is Unavailable else self.gone
        return kind(f"{self.what} ended with {ending}: {words}")


class _Keepable(Protocol):
    @property
    def alive(self) -> bool:
        """Whether it runs."""

    def end(self) -> None:
        """End it."""


One = TypeVar("One", bound=_Keepable)


class Idle(Generic[One]):
    """The children kept ready, by whatever wraps a child.

    Args:
        seconds: so long one is kept.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kept: list[tuple[One, float]] = []
        self._timer: threading.Timer | None = None

    def take(self, fitness: Callable[[One], float | None]) -> One | None:
        """The fittest one that runs, of several the one kept last; it is kept no longer.

        Args:
            fitness: None: it does not fit at all.
        """
        self.end(lambda one: not one.alive)
        with self._lock:
            best: tuple[float, int] | None = None
            for place, (one, _) in enumerate(self._kept):
                fit = fitness(one)
                if fit is not None:
                    best = max((fit, place), best or (fit, place))
            return None if best is None else self._kept.pop(best[1])[0]

    def put(self, one: One, most: int) -> None:
        """Keep one; of more than `most` those that have waited longest end."""
        with self._lock:
            self._kept.append((one, time.monotonic()))
            gone = [old for old, _ in self._kept[:-most]]
            del self._kept[:-most]
            self._wake()
        for old in gone:
            old.end()

    def each(self, do: Callable[[One], None]) -> None:
        """Do something with each, while nobody takes it."""
        with self._lock:
            for one, _ in self._kept:
                do(one)

    def end(self, which: Callable[[One], bool] = lambda _: True) -> None:
        """End some of them."""
        self._end(lambda one, _: which(one))

    def _end(self, which: Callable[[One, float], bool]) -> None:
        with self._lock:
            gone = [row for row in self._kept if which(*row)]
            self._kept = [row for row in self._kept if row not in gone]
        for one, _ in gone:
            one.end()

    def _wake(self) -> None:
        if self._timer is None and self._kept:
            self._timer = threading.Timer(self._seconds / 2, self._sweep)
            self._timer.daemon = True
            self._timer.start()

    def _sweep(self) -> None:
        self._end(lambda _, since: time.monotonic() - since > self._seconds)
        with self._lock:
            self._timer = None
            self._wake()


def main(channel: Channel) -> None:
    """The child's part."""
    channel.serve({"look": lambda: {"walls": channel.missing}})


def missing_walls() -> list[str]:
    """A sentence for each wall that this system does not have."""
    failures = Failures("the trial of walls", "nothing")
    with ChildProcess("fragdex.sandbox.child", Walls(1 << 30, 0), failures) as child:
        walls: list[str] = child.do("look")["walls"]
    return walls


def log_missing_walls() -> None:
    """Start a child, so that the log says what its walls lack; nobody waits for it."""
    threading.Thread(target=missing_walls, name="walls", daemon=True).start()


class ParentSource(Source):
    """A file whose bytes the parent `reads`.

    Args:
        number: of the file, where the parent reads several.
    """

    def __init__(
        self, channel: Channel, size: int | None, name: str = "the file", number: int = 0
    ) -> None:
        super().__init__(name, size=size, remote=True)
        self._channel, self._number = channel, number

    def read_up_to(self, range: ByteRange) -> bytes:
        """Ask the parent."""
        wanted = self._spend(range)
        answer, _ = self._channel.ask(start=wanted.start, stop=wanted.stop, file=self._number)
        return base64.b64decode(answer["data"])


def reads(*sources: Source) -> Answer:
    """What answers each `ParentSource` in a child, of files that its parent has open."""

    def answer(question: dict[str, Any]) -> tuple[dict[str, Any], Sequence[int]]:
        data = sources[question["file"]].read_up_to(ByteRange(question["start"], question["stop"]))
        return {"data": base64.b64encode(data).decode()}, ()

    return answer
