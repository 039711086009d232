"""What a program costs with all that it starts: wall clock, processor time, memory.

A browser's processes are killed in the end and never waited for, so that the system forgets what
they used: they are looked at every 50 ms instead, and the last look counts. All processes of the
machine are gone through for new ones more seldom: that costs a millisecond, and takes it from
renders that keep every processor busy, but not from those that leave one idle.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cost", "Failed", "watched"]

_TICK = os.sysconf("SC_CLK_TCK")
_LOOK_SECONDS = 0.05
_FIND_EVERY = 5  # looks
_MEMORY_EVERY = 4  # looks; adding up memory maps is dear


class Failed(Exception):
    """The program ended with an error; its last words."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of wall clock and of processors, bytes (PSS) at the peak, what was printed."""

    wall: float
    cpu: float
    memory: int
    said: str


def watched(
    command: Sequence[str], *, cwd: Path | None = None, memory: bool = False, timeout: float = 600
) -> Cost:
    """Run a program and watch it."""
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    watch = _Watch(process.pid, memory=memory)
    watch.start()
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        raise Failed(f"no end after {timeout:g} s") from None
    finally:
        wall = time.monotonic() - began
        watch.over.set()
        watch.join()
    if process.returncode:
        lines = [line for line in (errors or output).splitlines() if line.strip()]
        raise Failed(lines[-1] if lines else f"exit code {process.returncode}")
    return Cost(wall, sum(watch.cpu.values()), watch.peak, output)


class _Watch(threading.Thread):
    def __init__(self, root: int, *, memory: bool) -> None:
        super().__init__(daemon=True)
        self.cpu: dict[tuple[int, str], float] = {}
        self.peak = 0
        self.over = threading.Event()
        self._memory = memory
        # whoever was below it once belongs to it, also when its parent is gone
        self._ours = {root}
        self._sessions: set[str] = set()

    def run(self) -> None:
        looks = 0
        while not self.over.wait(_LOOK_SECONDS):
            if looks % _FIND_EVERY == 0:
                self._find()
            looks += 1
            alive = [pid for pid in self._ours if self._count(pid)]
            if self._memory and looks % _MEMORY_EVERY == 0:
                self.peak = max(self.peak, sum(map(_pss, alive)))

    def _find(self) -> None:
        seen = {int(name): fields for name in os.listdir("/proc") if (fields := _stat(name))}
        grown = True
        while grown:
            grown = False
            for pid, fields in seen.items():
                if pid not in self._ours and (
                    int(fields[1]) in self._ours or fields[3] in self._sessions
                ):
                    self._ours.add(pid)
                    grown = True
        for pid in self._ours & seen.keys():
            if int(seen[pid][3]) in self._ours:
                self._sessions.add(seen[pid][3])

    def _count(self, pid: int) -> bool:
        fields = _stat(str(pid))
        if fields:
            self.cpu[pid, fields[19]] = (int(fields[11]) + int(fields[12])) / _TICK
        return bool(fields)


def _stat(pid: str) -> list[str]:
    """The fields of a process behind its name, from its state on; none where it is gone."""
    if pid.isdigit():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            return file.read().decode(errors="replace").rpartition(")")[2].split()
    return []


def _pss(pid: int) -> int:
    """What a process holds; what several share is divided among them."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
