"""How much memory of the machine one child may take, and how much of it a process has taken."""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["data_left", "machine_memory", "memory_of_one", "share_memory_among"]

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
    """How many bytes of data one child may have.

    >>> 1 << 30 <= memory_of_one() <= 8 << 30
    True
    """
    share = int(machine_memory() * _PART_OF_CHILDREN) // _children
    return min(max(share, _LEAST), _MOST)


@functools.cache
def machine_memory() -> int:
    """Bytes of memory that the machine has, or that its container may use."""
    found = [_MOST]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        total = next(line for line in lines if line.startswith("MemTotal:"))
        found = [int(total.split()[1]) << 10]
    for path in _CGROUP:
        with suppress(OSError, ValueError):  # "max": no limit
            found.append(int(Path(path).read_text(encoding="ascii")))
    return min(found)


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
        taken = _number(status, b"\nVmData:") << 10
        if least:
            taken += (_number(status, b"\nVmPeak:") - _number(status, b"\nVmSize:")) << 10
        most = _number(limits, b"\nMax data size")
    except (OSError, ValueError, IndexError):  # "unlimited"; a process that ends has no VmData
        return None
    return most - taken, most


def _number(text: bytes, name: bytes) -> int:
    return int(text.partition(name)[2].split(maxsplit=1)[0])
