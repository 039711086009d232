"""A disk that is full is no dead end: room is kept for what makes room.

Bytes of uploads and results are refused before the last of a disk is taken (`store.disk_files`).
What others write may take that too, so a file of the data folder keeps some room, and is given up
when a record is to be written where there is none.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fragdex.service.store.disk_files import disk_reserve

if TYPE_CHECKING:
    from fragdex.service.config import Settings

_NEARLY = 20
"""A disk is nearly full where less than one part in so many is left, and less than a gibibyte."""


def nearly_full(folder: Path) -> str | None:
    """How much is left on the disk of a folder, where that is little; None where there is room."""
    found = os.statvfs(folder)
    free, whole = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    if free >= min(1 << 30, whole // _NEARLY):
        return None
    return f"{free >> 20} MiB of {whole >> 20} MiB are left on the disk of {folder}"


def disks_nearly_full(settings: Settings) -> list[str]:
    """What is left on the disks of the service, where that is little."""
    folders = [settings.data, *([settings.store_folder] if settings.store_folder else [])]
    told = {os.stat(folder).st_dev: nearly_full(folder) for folder in folders}
    return [one for one in told.values() if one]


class Reserve:
    """A file that takes the room that records will need on a full disk."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / "reserve"
        self._lock = threading.Lock()

    def give_up(self) -> None:
        """Free the room where the disk is full to less than half of it; else nothing."""
        with suppress(OSError):
            found = os.statvfs(self._folder)
            if found.f_bavail * found.f_frsize < disk_reserve(found) // 2:
                self._path.unlink()

    def renew(self) -> None:
        """Take the room again where there is plenty."""
        with suppress(OSError), self._lock:
            found = os.statvfs(self._folder)
            size = disk_reserve(found)
            if self._path.exists() or found.f_bavail * found.f_frsize < 4 * size:
                return
            opened = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.posix_fallocate(opened, 0, max(size, 1))
            except OSError:
                self._path.unlink()
                raise
            finally:
                os.close(opened)
