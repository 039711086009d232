"""Processes of this machine: what they hold and take, how they end, and how much one child may."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

# A process that forks while it is ended is looked for again, so many times.
_ROUNDS: Final = 5


def exit_code(own: int, *, wait: bool = False) -> int | None:
    """How a child of this process ended, below 0 by a signal; None while it runs.

    It stays what it is to the system: nobody else gets its number before it is waited for.

    Args:
        wait: until it ends.
    """
    how = 0 if wait else os.WNOHANG
    try:
        if not hasattr(os, "waitid"):  # macOS before Python 3.13: its number is given away
            number, status = os.waitpid(own, how)
            return os.waitstatus_to_exitcode(status) if number else None
        ending = os.waitid(os.P_PID, own, how | os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        return 0  # waited for already
    if ending is None:
        return None
    return ending.si_status if ending.si_code == os.CLD_EXITED else -ending.si_status


def end_session(own: int) -> None:
    """End the session of a process, and those that its descendants began.

    Args:
        own: the process, whose number is the session's; it has not been waited for yet, or that
            number may be another's.
    """
    # Taken before it is gone: its children are nobody's then. One that has begun no session yet is
    # in that of this process.
    sessions = _sessions_below(own) - _own_session()
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(own, signal.SIGKILL)
        else:
            os.kill(own, signal.SIGTERM)
    for _ in range(_ROUNDS):
        others = [pid for pid, (_, session) in _running().items() if session in sessions]
        if not others:
            break
        for pid in others:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def end_descendants() -> None:
    """End the sessions that this process and its descendants began."""
    sessions = _sessions_below(os.getpid()) - _own_session()
    for pid, (_, session) in _running().items():
        if session in sessions:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def memory_below(own: int) -> int:
    """Bytes that a process and its descendants hold; what they share counts once, nearly.

    0 where the system does not tell.
    """
    total = 0
    for pid in _below(own):
        with suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                fields = file.read().split()
            total += (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    return total


class ProcessorTime:
    """What a process and its descendants take of the machine's processors, from now on.

    Those that are over count with what they had taken when they were looked at last.

    Args:
        own: the process; it counts itself, too.
    """

    def __init__(self, own: int) -> None:
        self._own = own
        self._taken: dict[tuple[int, str], int] = {}
        self._before = 0
        self._before = self._look()

    def seconds(self) -> float:
        """Until now; 0 where the system does not tell."""
        return (self._look() - self._before) / os.sysconf("SC_CLK_TCK")

    def _look(self) -> int:
        for pid in _below(self._own):
            with suppress(OSError, ValueError, IndexError):
                stat = _stat(str(pid))
                # its number may be given again: it is named by its start, too
                self._taken[pid, stat[19]] = int(stat[11]) + int(stat[12])
        return sum(self._taken.values())


def _below(own: int) -> list[int]:
    """A process, its descendants, and the sessions that they began."""
    running = _running()
    below = _descendants(own, running)
    sessions = {running[pid][1] for pid in below & running.keys()}
    if own in running and running[own][1] != own:
        # that it is in with others, such as those of its terminal
        sessions.discard(running[own][1])
    return [pid for pid, (_, session) in running.items() if pid in below or session in sessions]


def _running() -> dict[int, tuple[int, int]]:
    """Processes that are not over yet: parent and session of each, where the system lists them."""
    processes: dict[int, tuple[int, int]] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError, IndexError):
                    stat = _stat(name)
                    if stat[0] not in "ZX":
                        processes[int(name)] = (int(stat[1]), int(stat[3]))
    return processes


def _stat(name: str) -> list[str]:
    """The fields of a process after its own name, which may hold anything."""
    with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _own_session() -> set[int]:
    return {os.getsid(0)} if hasattr(os, "getsid") else set()


def _sessions_below(own: int) -> set[int]:
    """The session of a process, and those that its descendants began."""
    running = _running()
    return {own} | {running[pid][1] for pid in _descendants(own, running) & running.keys()}


def _descendants(own: int, running: Mapping[int, tuple[int, int]]) -> set[int]:
    """A process and all that descend from it."""
    below = {own}
    # a child's number is not always higher than its parent's
    while more := {pid for pid, (parent, _) in running.items() if parent in below} - below:
        below |= more
    return below


_MOST: Final = 8 << 30
_LEAST: Final = 1 << 30
# What the service itself, the database and the system's cache of files need.
_PART_OF_CHILDREN: Final = 3 / 4
_CGROUP: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

_children = max(1, os.cpu_count() or 1)


def share_memory_among(children: int) -> None:
    """Say how many children work at once in this process of the service."""
    global _children  # noqa: PLW0603 — of the process, as its settings say
    _children = max(1, children)


def memory_of_one() -> int:
    """How many bytes of data one child may have."""
    share = int(machine_memory() * _PART_OF_CHILDREN) // _children
    return min(max(share, _LEAST), _MOST)


@functools.cache
def machine_memory() -> int:
    """Bytes of memory that the machine has, or that its container may use."""
    limits = [_MOST]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        total = next(line for line in lines if line.startswith("MemTotal:"))
        limits = [int(total.split()[1]) << 10]
    for path in _CGROUP:
        with suppress(OSError, ValueError):  # "max": no limit
            limits.append(int(Path(path).read_text(encoding="ascii")))
    return min(limits)


def data_left(pid: int, *, least: bool = False) -> tuple[int, int] | None:
    """How many bytes of data a process may still take, and how many it may have in all.

    Args:
        least: when it had most, instead of now. (The system remembers that of all addresses; what
            is mapped of files is taken to have been there then, too.)

    None: it has no bound, it is gone, or this system does not say.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
        limits = Path(f"/proc/{pid}/limits").read_bytes()
        used = _number(status, b"\nVmData:") << 10
        if least:
            used += (_number(status, b"\nVmPeak:") - _number(status, b"\nVmSize:")) << 10
        most = _number(limits, b"\nMax data size")
    except (OSError, ValueError, IndexError):  # "unlimited"; a process that ends has no VmData
        return None
    return most - used, most


def _number(text: bytes, name: bytes) -> int:
    return int(text.partition(name)[2].split(maxsplit=1)[0])
