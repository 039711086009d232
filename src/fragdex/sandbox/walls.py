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
import errno
import os
import platform
import socket
import stat
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from fragdex.record import record

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
_READABLE_OF_PROGRAMS: Final = (
    "/usr/bin", "/bin", "/etc/chromium", "/etc/chromium.d", "/sys", "/etc/dconf",
)  # fmt: skip
_WRITABLE_OF_PROGRAMS: Final = ("/proc", "/dev/shm", "/dev/ptmx", "/dev/pts")
_AS_ROOT: Final = "it runs as root: no other user can be used that can read Python and its packages"
_GRACE_SECONDS: Final = 5
_DEVICES: Final = ("nvidia", "dri", "kfd")


@record(frozen=True, slots=True)
class Walls:
    """What a child may do.

    Args:
        memory_bytes: data that it may have, and each of its programs.
        file_bytes: how large a file of its folder may become.
        cpu_seconds: processor time of each process; None: not bounded.
        tasks: processes and threads of its user, where that is its own.
        readable: files and folders that it reads, besides the interpreter and system libraries.
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
        lambda: restrict_files(readable, _writable(walls), programs=walls.programs),
        "it may read and write what its user may: no Landlock",
    )
    filtered = tried(
        lambda: install_filter(programs=walls.programs),
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
        yield from _READABLE_OF_PROGRAMS
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
        folders: list[str] = []
        for path, source in zip(below, opened, strict=True):
            if not any(path.startswith(done + "/") for done in folders):
                is_folder = stat.S_ISDIR(os.fstat(source).st_mode)
                os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
                if not is_folder:
                    os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o444))
                _mount(libc, f"/proc/self/fd/{source}", path, None, _BIND)
                folders.append(path)
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


def landlock_version() -> int:
    """The version of the kernel's interface; 0 where there is none."""
    return max(0, _call(_CREATE_RULESET, None, 0, _VERSION))


def restrict_files(readable: Iterable[str], writable: Iterable[str], *, programs: bool) -> None:
    """Shut this thread, and what it starts from now on, in by Landlock (Linux 5.13), for good.

    Args:
        readable: files and folders; what is missing is skipped.
        writable: those that may also be written; in folders, files may be made and removed.
        programs: whether what is readable may be run.

    Raises:
        OSError: the kernel has none of this, or does not allow it.
    """
    known = landlock_version()
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
    """A call of the kernel; -1 where it fails, or where this is not Linux."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(os, "O_PATH"):
        return -1
    plain = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return int(libc.syscall(ctypes.c_long(number), *plain))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


# Of each call its numbers on x86-64 and on arm64; 0: it has none.
#
# What nobody needs who decodes, renders or listens. It is a list of what is refused: libraries of
# decoders and models make hundreds of other calls, and each of their versions makes different ones.
# The kernel's own queues (io_uring) would make sockets past this filter.
_NEVER: Final = {
    "connect": (42, 203), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
}  # fmt: skip
# What only somebody needs who starts a browser with a sandbox of its own.
_OF_PROGRAMS: Final = {
    "socket": (41, 198), "bind": (49, 200), "listen": (50, 201), "execve": (59, 221),
    "execveat": (322, 281), "fork": (57, 0), "vfork": (58, 0), "unshare": (272, 97),
    "setns": (308, 268), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
}  # fmt: skip
# What depends on its arguments.
_NUMBERS: Final = _NEVER | _OF_PROGRAMS | {
    "socketpair": (53, 199), "clone": (56, 220), "clone3": (435, 435), "kill": (62, 129),
    "tgkill": (234, 131), "prlimit64": (302, 261),
}  # fmt: skip
# name: (which of the two columns, the kernel's word for it)
_MACHINES: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_OTHER_NUMBERS: Final = 0x40000000  # of x86-64, the ones with short pointers
_THREAD: Final = 0x00010000
_KIND: Final = 0x0F  # of a socket, without its flags
_SET_SECCOMP, _FILTER = 22, 2

_Step = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install_filter(*, programs: bool) -> None:
    """Refuse calls to this process and all that it starts; it cannot be taken back.

    Args:
        programs: whether it may start programs and speak with them through sockets that have no
            address; else it may start threads alone, and signal nobody but itself.

    Raises:
        OSError: the kernel does not allow filters, or this machine's numbers are not known.
    """
    code = compiled_filter(platform.machine(), programs=programs, own=os.getpid())
    if not code:
        raise OSError(errno.ENOSYS, f"no filter for {platform.system()} on {platform.machine()}")
    buffer = ctypes.create_string_buffer(code)
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(
        _SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def compiled_filter(machine: str, *, programs: bool, own: int) -> bytes:
    """The filter for a machine; empty where its numbers are not known.

    Args:
        own: the process that may be signalled.
    """
    if machine not in _MACHINES or platform.system() != "Linux":
        return b""
    column, word = _MACHINES[machine]

    def number(name: str) -> int:
        return _NUMBERS[name][column]

    def refused(code: int) -> _Step:
        return (_RETURN, 0, 0, _REFUSE | code)

    steps: list[_Step] = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, word),
        refused(errno.EPERM),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":
        steps += [(_AT_LEAST, 0, 1, _OTHER_NUMBERS), refused(errno.EPERM)]
    for name in (*_NEVER, *(() if programs else _OF_PROGRAMS)):
        if number(name):
            steps += [(_EQUAL, 0, 1, number(name)), refused(errno.EPERM)]
    # name, its argument, how it has to compare with what
    wanted = [("prlimit64", 0, _EQUAL, 0)]
    for name in ("socket", "socketpair"):
        # Without a connection, a datagram goes to any socket that has a name, by sendto alone:
        # also one of a pair, and what the kernel takes for one (SOCK_RAW).
        steps += [
            (_EQUAL, 0, 8, number(name)),
            (_LOAD, 0, 0, _ARGUMENTS_AT),
            (_EQUAL, 0, 4, int(socket.AF_UNIX)),
            (_LOAD, 0, 0, _ARGUMENTS_AT + 8),
            (_AND, 0, 0, _KIND),
            (_EQUAL, 2, 0, int(socket.SOCK_STREAM)),
            (_EQUAL, 1, 0, int(socket.SOCK_SEQPACKET)),
            refused(errno.EPERM),
            (_RETURN, 0, 0, _ALLOW),
        ]
    if programs:
        wanted[:1] = []  # the bounds of a browser are set by whoever starts it
    else:
        # The C library takes `clone` where `clone3` is not there, whose arguments lie in memory.
        steps += [(_EQUAL, 0, 1, number("clone3")), refused(errno.ENOSYS)]
        wanted += [("clone", 0, _ANY_BIT, _THREAD)]
        wanted += [("kill", 0, _EQUAL, own), ("tgkill", 0, _EQUAL, own)]
    for name, argument, how, value in wanted:
        steps += [
            (_EQUAL, 0, 4, number(name)),
            (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument),
            (how, 1, 0, value),
            refused(errno.EPERM),
            (_RETURN, 0, 0, _ALLOW),
        ]
    steps += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
