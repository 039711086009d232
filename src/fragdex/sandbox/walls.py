"""What a child may do, and how it shuts itself in before it sees a byte of a stranger's.

No network, no privileges, a user of its own where the service is root, files of the interpreter
and its own folder alone, bounds of memory, processor time and files. A wall that this system does
not have is named, and the others stand.

Where the service runs as root, each child is a user of its own, who owns nothing but the child's
folder and can signal nobody else. Its number is made of the child's process number, so that no two
children share one.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fragdex.sandbox import landlock, seccomp

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
    tried(bound_programs, "programs may have capabilities")
    if os.geteuid() == 0:
        tried(lambda: _change_user(readable), _AS_ROOT)
    tried(drop_capabilities, "capabilities and new privileges stay")
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
    closed = closed_to_others(needed)
    if closed:
        open_up(closed, needed)
    become_nobody()


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
