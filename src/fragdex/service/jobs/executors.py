"""Which process this is: an id that no other live process has.

Two live processes with one id would both run its work, so the id is guarded. On one machine
(SQLite) it is host and slot, the slot held by a file lock: a process that takes the place of a
killed one has its id and goes on with its work at once. On several machines it is random.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from pathlib import Path

__all__ = ["Executor"]

MOST_PROCESSES = 256
"""Worker processes of one data directory; a bound for the search of a free slot."""


class Executor:
    """This process's id while the object is open."""

    def __init__(self, locks: Path | None) -> None:
        host = re.sub(r"[^a-z0-9-]", "-", socket.gethostname().lower())[:40]
        self._lock: int | None = None
        self.id = f"{host}-{secrets.token_hex(6)}"
        if locks is not None and os.name == "posix":
            self.id = f"{host}-{self._slot(locks)}"

    def _slot(self, locks: Path) -> int:
        import fcntl

        locks.mkdir(parents=True, exist_ok=True)
        for slot in range(MOST_PROCESSES):
            # The lock belongs to the open file: it ends with the process, however that ends.
            opened = os.open(locks / f"{slot}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(opened)
                continue
            self._lock = opened
            return slot
        return MOST_PROCESSES + secrets.randbits(40)

    def close(self) -> None:
        """Give the id away. Harmless when repeated."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
