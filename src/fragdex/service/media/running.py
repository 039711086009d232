"""Starts the media work as a process of its own, listens to it, and ends it.

Its environment holds nothing of the service's: no keys, no database URL.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fragdex.service.errors import StoreFull, Unprocessable
from fragdex.service.media.made import Made

__all__ = ["run"]

STALL_SECONDS: Final = 300.0
"""Silence after which the work is taken for hung; it speaks several times a second."""

# Signals that a program sends itself by its faults: bytes broke the library, and will again.
_CRASHES: Final = {"SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGBUS", "SIGXFSZ", "SIGTRAP"}
_KEPT: Final = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
_POLL_SECONDS: Final = 0.25
_LAST_WORDS: Final = 2000


def run(
    path: Path,
    folder: Path,
    progress: Callable[[float], None] = lambda _: None,
    check: Callable[[], None] = lambda: None,
    *,
    stall_seconds: float = STALL_SECONDS,
) -> list[Made]:
    """Make the tracks of a media file in a child process.

    Args:
        path: the media file.
        folder: an empty folder for what is made.
        progress: called with 0…1, in this thread.
        check: called several times a second; what it raises ends the child.

    Raises:
        Unprocessable: the file is none that can be processed, or breaks the libraries.
        StoreFull: no room in the folder.
        RuntimeError: the child failed for another reason.
    """
    child = subprocess.Popen(
        [sys.executable, "-m", "fragdex.service.media.child", str(path), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: os.environ[name] for name in _KEPT if name in os.environ},
        # a group of its own, so that all of it can be ended, and Ctrl-C is not for it
        start_new_session=True,
    )
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    errors: list[bytes] = []
    readers = [
        threading.Thread(target=_read, args=(child.stdout, lines.put), daemon=True),
        threading.Thread(target=_read, args=(child.stderr, errors.append), daemon=True),
    ]
    try:
        for reader in readers:
            reader.start()
        answer = _listen(child, lines, progress, check, stall_seconds)
    finally:
        _end(child)
        for reader in readers:
            reader.join(timeout=5)
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
    if "made" in answer:
        return [Made(**one) for one in answer["made"]]
    if "unprocessable" in answer:
        told = answer["unprocessable"]
        raise Unprocessable(told["detail"], more=told["more"])
    raise _failure(child.returncode, b"".join(error for error in errors if error))


def _read(pipe: Any, take: Callable[[bytes | None], None]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in iter(pipe.readline, b""):
            take(line)
    take(None)


def _listen(
    child: subprocess.Popen[bytes],
    lines: queue.SimpleQueue[bytes | None],
    progress: Callable[[float], None],
    check: Callable[[], None],
    stall_seconds: float,
) -> dict[str, Any]:
    heard = time.monotonic()
    answer: dict[str, Any] = {}
    while True:
        check()
        try:
            line = lines.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            if time.monotonic() - heard > stall_seconds:
                raise Unprocessable("the media libraries hung on this file") from None
            continue
        if line is None:
            child.wait()
            return answer
        heard = time.monotonic()
        said = json.loads(line)
        if "progress" in said:
            progress(said["progress"])
        else:
            answer = said


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(child.pid, signal.SIGKILL)
            else:
                child.kill()
    child.wait()


def _failure(code: int, errors: bytes) -> Exception:
    if code < 0:
        name = signal.Signals(-code).name
        if name in _CRASHES:
            return Unprocessable("the media libraries broke on this file", found=name)
        return RuntimeError(f"the media process was ended by {name}")
    words = errors.decode("utf-8", "replace")[-_LAST_WORDS:]
    if "MemoryError" in words:
        return Unprocessable("the file needs more memory than a media process may have")
    if "No space left on device" in words:
        return StoreFull("no room for the tracks of the file", retry_after=60)
    return RuntimeError(f"the media process ended with {code}: {words}")
