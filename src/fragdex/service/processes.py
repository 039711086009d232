"""Work in processes of their own, which speak JSON lines with whoever started them.

The bytes of strangers break libraries, browsers fill memory: neither takes the service along. A
process has a session of its own and is ended with all that it started; it ends by itself when
whoever started it is gone. Its environment holds nothing of the service's: no keys, no database
URL.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

__all__ = ["CRASHES", "Process", "Speech", "bounded", "end_descendants"]

# Signals that a program sends itself by its faults: what it was given broke it, and will again.
CRASHES: Final = frozenset(
    {"SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGBUS", "SIGXFSZ", "SIGTRAP"}
)
_KEPT: Final = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
_LAST_WORDS: Final = 2000
# A process that forks while it is ended is looked for again, so many times.
_ROUNDS: Final = 5
_CLEARING_SECONDS: Final = 10.0


class Process:
    """A Python module that runs as a process.

    Args:
        module: `python -m` that.
        arguments: for it.
        environment: more variables than those every process has.
    """

    def __init__(
        self, module: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> None:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=kept | dict(environment or {}),
            # so that all of it can be ended, and Ctrl-C is not for it
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._errors: list[bytes] = []
        self._saying = threading.Lock()
        self._readers = [
            threading.Thread(target=_read, args=(pipe, take), daemon=True)
            for pipe, take in (
                (self._process.stdout, self._lines.put),
                (self._process.stderr, self._keep_words),
            )
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """Its number, which is also that of its session."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def say(self, **message: Any) -> None:
        """Send it a message; to one that is gone nothing is said."""
        line = json.dumps(message).encode() + b"\n"
        with self._saying, contextlib.suppress(BrokenPipeError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def hear(self, seconds: float) -> dict[str, Any] | None:
        """Its next message; None where none came within that time.

        Raises:
            EOFError: it is over.
        """
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            return None
        if line is None:
            self._lines.put(None)
            self._process.wait()
            raise EOFError
        message: dict[str, Any] = json.loads(line)
        return message

    @property
    def ending(self) -> str | int:
        """Once it is over: its exit code, or the name of the signal that ended it."""
        code = self._process.wait()
        return code if code >= 0 else signal.Signals(-code).name

    @property
    def words(self) -> str:
        """The last of what it wrote to stderr."""
        return b"".join(self._errors).decode("utf-8", "replace")[-_LAST_WORDS:]

    def end(self) -> None:
        """End it and what it started; nothing happens where that is done."""
        own = self._process.pid
        # Taken before it is gone: its children are nobody's then.
        sessions = _sessions_below(own)
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.name == "posix":
                    os.killpg(own, signal.SIGKILL)
                else:
                    self._process.kill()
        for _ in range(_ROUNDS):
            others = [pid for pid, (_, session) in _running().items() if session in sessions]
            if not others:
                break
            for pid in others:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait()
        for reader in self._readers:
            reader.join(timeout=5)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _keep_words(self, line: bytes | None) -> None:
        if line is not None:
            self._errors.append(line)
            # a process that complains for an hour is remembered by its end
            del self._errors[:-100]


def _read(pipe: Any, take: Callable[[bytes | None], None]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in iter(pipe.readline, b""):
            take(line)
    take(None)


def _running() -> dict[int, tuple[int, int]]:
    """Processes that are not over yet: parent and session of each, where the system lists them."""
    found: dict[int, tuple[int, int]] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError, IndexError):
                    told = _stat(name)
                    if told[0] not in "ZX":
                        found[int(name)] = (int(told[1]), int(told[3]))
    return found


def _stat(name: str) -> list[str]:
    """The fields of a process behind its own name, which may hold anything."""
    with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _sessions_below(own: int) -> set[int]:
    """The session of a process, and those that its descendants began."""
    running = _running()
    below, sessions = {own}, {own}
    # a child's number is not always higher than its parent's
    while more := {pid for pid, (parent, _) in running.items() if parent in below} - below:
        below |= more
    sessions |= {running[pid][1] for pid in below & running.keys()}
    return sessions


class Speech:
    """The other side: what a process says and is told."""

    def __init__(self) -> None:
        self._saying = threading.Lock()
        # Whatever a library prints must not stand between the messages.
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def say(self, **message: Any) -> None:
        """Say something to whoever started this process."""
        line = json.dumps(message).encode() + b"\n"
        with self._saying:
            try:
                self._out.write(line)
                self._out.flush()
            except BrokenPipeError:
                # Nobody hears it any more; `listen` ends this process when it has cleared up.
                time.sleep(_CLEARING_SECONDS)
                raise

    def listen(
        self,
        take: Callable[[dict[str, Any]], None] = lambda _: None,
        over: Callable[[], None] = lambda: None,
    ) -> None:
        """Take messages in a thread; when there can be no more, this process ends.

        Args:
            take: called with each message.
            over: called before the process ends: nobody else clears up after it then.
        """

        def run() -> None:
            for line in iter(sys.stdin.buffer.readline, b""):
                take(json.loads(line))
            try:
                over()
            finally:
                os._exit(3)

        threading.Thread(target=run, name="listen", daemon=True).start()


def end_descendants() -> None:
    """End the sessions that this process and its descendants began."""
    sessions = _sessions_below(os.getpid()) - {os.getsid(0)}
    for pid, (_, session) in _running().items():
        if session in sessions:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def bounded(limits: Sequence[tuple[str, int]]) -> None:
    """Bound this process, where the system knows how: pairs such as ("RLIMIT_CORE", 0)."""
    with contextlib.suppress(ImportError):
        import resource

        for name, value in limits:
            resource.setrlimit(getattr(resource, name), (value, value))
