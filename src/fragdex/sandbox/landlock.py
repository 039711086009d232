"""Which files a process and all that it starts may open, by the kernel's Landlock (Linux 5.13)."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

# The same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
# How many rights of files each version knows.
_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
_ALL_RIGHTS: Final = 16
# To bind and to connect by TCP (version 4); sockets without a name on disk, signals (version 6).
_TCP, _SCOPES = 0b11, 0b11


def version() -> int:
    """The version of the kernel's interface; 0 where there is none."""
    return max(0, _call(_CREATE_RULESET, None, 0, _VERSION))


def restrict(readable: Iterable[str], writable: Iterable[str], *, programs: bool) -> None:
    """Shut this thread, and what it starts from now on, in; it cannot be taken back.

    Args:
        readable: files and folders; what is missing is passed over.
        writable: those that may also be written; in folders, files may be made and removed.
        programs: whether what is readable may be run.

    Raises:
        OSError: the kernel has none of this, or does not allow it.
    """
    known = version()
    rights = (1 << _RIGHTS.get(known, _ALL_RIGHTS)) - 1
    handled = struct.pack("=QQQ", rights, _TCP if known >= 4 else 0, _SCOPES if known >= 6 else 0)
    # Older kernels take shorter structures.
    size = 8 if known < 4 else 16 if known < 6 else 24
    rules = _checked(_call(_CREATE_RULESET, handled, size, 0))
    try:
        read = _READ_FILE | _READ_DIR | (_EXECUTE if programs else 0)
        for path in readable:
            _allow(rules, path, read & rights)
        # Nobody needs a device of its own making.
        make = rights & ~(_EXECUTE | 1 << 6 | 1 << 11)
        for path in writable:
            _allow(rules, path, make)
        _checked(_call(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                rights &= _OF_FILES
            rule = struct.pack("=Qi", rights, descriptor)
            _checked(_call(_ADD_RULE, rules, _PATH_BENEATH, rule, 0))
        finally:
            os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    """A call of the kernel; -1 where it fails, or where this is no Linux."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(os, "O_PATH"):
        return -1
    plain = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return int(libc.syscall(ctypes.c_long(number), *plain))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
