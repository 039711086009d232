"""What a child may do, and how it shuts itself in before it sees a byte of a stranger's.

No network, no privileges, a user of its own where the service is root, files of the interpreter
and its own folder alone, bounds of memory, processor time and files. A wall that this system does
not have is named, and the others stand.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fragdex.service.processes import landlock, seccomp, users

__all__ = ["Walls", "shut_in"]

_NEW_USER, _NEW_NETWORK, _NEW_IPC = 0x10000000, 0x40000000, 0x08000000
# Of the system: libraries, fonts, time zones, and how many processors there are.
_SYSTEM: Final = (
    "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/local/lib", "/lib",
    "/lib64", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
    "/etc/fonts", "/etc/ssl", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group",
    "/etc/os-release", "/etc/alternatives", "/sys/devices/system", "/sys/fs/cgroup",
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm/overcommit_memory",
    "/dev/zero", "/dev/random", "/dev/urandom", "/nix/store",
)  # fmt: skip
# A browser watches its own processes, writes the maps of its sandbox and shares memory with itself.
_OF_PROGRAMS: Final = ("/usr/bin", "/bin", "/etc/chromium", "/etc/chromium.d", "/sys", "/etc/dconf")
_WRITABLE_OF_PROGRAMS: Final = ("/proc", "/dev/shm", "/dev/ptmx", "/dev/pts")
_AS_ROOT: Final = "it runs as root: no other user can be had, or read Python and its packages"
_GRACE_SECONDS: Final = 5
_DEVICES: Final = ("nvidia", "dri", "kfd")


@dataclass(frozen=True, slots=True)
class Walls:
    """What a child may do.

    Args:
        memory_bytes: data that it may have, and each of its programs.
        file_bytes: how large a file of its folder may become.
        cpu_seconds: processor time of each process; None: not bounded.
        tasks: processes and threads of its user, where that is its own.
        readable: files and folders that it reads beside the interpreter and the system's libraries.
        programs: whether it starts programs, such as a browser.
        devices: whether it may use the machine's graphics processors.
    """

    memory_bytes: int
    file_bytes: int
    cpu_seconds: int | None = None
    tasks: int = 1024
    readable: tuple[str, ...] = ()
    programs: bool = False
    devices: bool = False


def shut_in(walls: Walls) -> list[str]:
    """Put the walls around this process, whose folder is where it stands, and all that it starts.

    To be called while there is one thread. Returns which walls could not be had, a sentence each.
    """
    missing: list[str] = []

    def tried(wall: Callable[[], None], without: str) -> bool:
        try:
            wall()
        except (OSError, AttributeError, ImportError) as error:
            missing.append(f"{without} ({error})")
            return False
        return True

    readable = list(_readable(walls))
    tried(lambda: _bound(walls), "memory and files are not bounded")
    own_network = _has(_leave_network)
    tried(users.bound_programs, "programs may have capabilities")
    if os.geteuid() == 0:
        tried(lambda: _change_user(readable), _AS_ROOT)
    tried(users.drop_capabilities, "capabilities and new privileges stay")
    tried(
        lambda: landlock.restrict(readable, _writable(walls), programs=walls.programs),
        "it may read and write what its user may: no Landlock",
    )
    filtered = tried(
        lambda: seccomp.install(programs=walls.programs),
        "no call of the kernel is refused: no seccomp",
    )
    if not (own_network or filtered):
        missing.append("it may use the network (no namespace, no seccomp)")
    return missing


def _has(wall: Callable[[], None]) -> bool:
    try:
        wall()
    except (OSError, AttributeError):
        return False
    return True


def _readable(walls: Walls) -> Iterator[str]:
    """What it reads; the same once."""
    import fragdex

    own = os.path.dirname(os.path.dirname(os.path.abspath(fragdex.__file__)))
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, own, *filter(None, sys.path)}
    more = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    yield from python
    yield from walls.readable
    yield from filter(None, more)
    yield from _SYSTEM
    yield f"/proc/{os.getpid()}"
    if walls.programs:
        yield from _OF_PROGRAMS
    if walls.devices:
        yield from ("/proc/driver", "/sys")


def _writable(walls: Walls) -> Iterator[str]:
    # The way to its folder may be closed to its user.
    yield from (".", "/dev/null")
    if walls.programs and os.geteuid() != 0:
        # Much of /proc would be root's own to write, capabilities or not.
        yield from _WRITABLE_OF_PROGRAMS
    elif walls.programs:
        yield "/dev/shm"
    if walls.devices:
        with suppress(OSError):
            yield from (f"/dev/{name}" for name in os.listdir("/dev") if name.startswith(_DEVICES))


def _bound(walls: Walls) -> None:
    import resource

    limits = [("CORE", 0), ("FSIZE", walls.file_bytes), ("DATA", walls.memory_bytes)]
    if walls.cpu_seconds is not None:
        limits.append(("CPU", walls.cpu_seconds))
    if os.geteuid() == 0:
        limits.append(("NPROC", walls.tasks))  # holds for the user that it becomes
    for name, value in limits:
        which = getattr(resource, f"RLIMIT_{name}", None)
        if which is None:
            continue
        # Of processor time the first bound sends a signal that has a name, the second ends it.
        hard = value + (_GRACE_SECONDS if name == "CPU" else 0)
        _, most = resource.getrlimit(which)
        if most != resource.RLIM_INFINITY:
            value, hard = min(value, most), min(hard, most)
        resource.setrlimit(which, (value, hard))


def _leave_network() -> None:
    """A network without any device, and no memory shared with others by name."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    spaces = _NEW_NETWORK | _NEW_IPC
    if libc.unshare(spaces if user == 0 else spaces | _NEW_USER):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if user != 0:
        for name, line in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(line)


def _change_user(readable: list[str]) -> None:
    needed = [path for path in readable if path not in _SYSTEM and not path.startswith("/proc")]
    closed = users.closed_to_others(needed)
    if closed:
        users.open_up(closed, needed)
    users.become_nobody()
