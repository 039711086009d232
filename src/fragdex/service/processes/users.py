"""Which user a child runs as, and what that user has to be able to read.

Where the service runs as root, each child is a user of its own, who owns nothing but the child's
folder and can signal nobody else. Its number is made of the child's process number, so that no two
children share one.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

__all__ = ["become_nobody", "bound_programs", "closed_to_others", "drop_capabilities", "open_up"]

# Numbers that no system gives to anybody (systemd.io/UIDS-GIDS: unused), far from those of people.
_FIRST_USER: Final = 1_900_000_000
_NOBODY: Final = 65534

_NEW_NAMESPACE: Final = 0x00020000
_PRIVATE, _BIND, _READ_ONLY, _NO_DEVICES = 0x44000, 0x1000, 0x1, 0x4
_NO_NEW_PRIVILEGES, _DUMPABLE, _DROP_BOUND, _AMBIENT, _CLEAR_AMBIENT = 38, 4, 24, 47, 4
_LAST_CAPABILITY: Final = 63
_CAPABILITIES_3: Final = 0x20080522


def closed_to_others(paths: Iterable[str]) -> list[str]:
    """The folders that keep users who own nothing from some paths; none: they can read them all.

    Raises:
        PermissionError: a path is itself closed to them.
    """
    closed: dict[str, None] = {}
    for path in paths:
        real = os.path.realpath(path)
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = os.stat(real).st_mode
            if not mode & (stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH):
                raise PermissionError(f"{real} cannot be read by others")
            above = real
            blocking = None
            while above != "/":
                above = os.path.dirname(above)
                if not os.stat(above).st_mode & stat.S_IXOTH:
                    blocking = above
            if blocking is not None:
                closed[blocking] = None
    return list(closed)


def open_up(closed: Iterable[str], paths: Iterable[str]) -> None:
    """Have this process see closed folders as ways to some paths and nothing else.

    An interpreter below /root can be run by another user then. All others see what they saw.

    Raises:
        OSError: mounting is not allowed.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.unshare(_NEW_NAMESPACE))
    _mount(libc, None, "/", None, _PRIVATE)
    wanted = sorted({os.path.realpath(path) for path in paths if os.path.exists(path)}, key=len)
    for folder in closed:
        below = [path for path in wanted if path.startswith(folder + "/")]
        opened = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in below]
        _mount(libc, "tmpfs", folder, "tmpfs", _NO_DEVICES, "mode=0755,size=1m")
        made: list[str] = []
        for path, source in zip(below, opened, strict=True):
            if not any(path.startswith(done + "/") for done in made):
                is_folder = stat.S_ISDIR(os.fstat(source).st_mode)
                os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
                if not is_folder:
                    os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o444))
                _mount(libc, f"/proc/self/fd/{source}", path, None, _BIND)
                made.append(path)
            os.close(source)


def become_nobody() -> None:
    """Be a user that owns the folder this process stands in, and nothing else.

    Raises:
        OSError: it is not allowed.
    """
    try:
        _become(_FIRST_USER + os.getpid())
    except OSError:
        # Containers may know few users.
        _become(_NOBODY)


def _become(user: int) -> None:
    before = os.stat(".")
    os.chown(".", user, user)
    try:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError:
        os.chown(".", before.st_uid, before.st_gid)
        raise


def bound_programs() -> None:
    """See that programs that are started get no capability; needs one itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(_LAST_CAPABILITY + 1):
        # refused without the right to, and for numbers that this kernel does not have
        libc.prctl(_DROP_BOUND, number, 0, 0, 0)


def drop_capabilities() -> None:
    """Give up every capability, and the way to new privileges by programs that have them.

    Raises:
        OSError: the kernel does not know this.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _checked(libc.capset(ctypes.byref(header), ctypes.byref(nothing)))
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    # A change of the user has closed its own entries in /proc to itself.
    libc.prctl(_DUMPABLE, 1, 0, 0, 0)


def _mount(
    libc: ctypes.CDLL, source: str | None, target: str, kind: str | None, flags: int,
    options: str | None = None,
) -> None:  # fmt: skip
    words = [
        None if word is None else os.fsencode(word) for word in (source, target, kind, options)
    ]
    _checked(libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]))


def _checked(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
