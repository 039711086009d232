"""Which calls of the kernel a process may make: a filter in the kernel's own small language.

It is a list of what is refused: libraries of decoders and models make hundreds of other calls, and
each of their versions makes different ones.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
from typing import Final

# name: its number on x86-64 and on arm64; 0: it has none
_NUMBERS: Final = {
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200),
    "listen": (50, 201),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225),
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, 0), "vfork": (58, 0),
    "clone": (56, 220), "clone3": (435, 435), "unshare": (272, 97), "setns": (308, 268),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424), "prlimit64": (302, 261),
}  # fmt: skip
# name: (which of the two columns, the kernel's word for it)
_MACHINES: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

# What nobody needs who decodes, renders or listens. The kernel's own queues (io_uring) would make
# sockets past this filter.
_NEVER: Final = (
    "connect", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "mount",
    "umount2", "pivot_root", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick",
    "mount_setattr", "kexec_load", "kexec_file_load", "init_module", "finit_module",
    "delete_module", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "add_key", "request_key", "keyctl", "name_to_handle_at",
    "open_by_handle_at", "reboot", "swapon", "swapoff",
)  # fmt: skip
# What only somebody needs who starts a browser with a sandbox of its own.
_OF_PROGRAMS: Final = (
    "socket", "bind", "listen", "execve", "execveat", "fork", "vfork", "unshare", "setns", "tkill",
    "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
)  # fmt: skip

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_OTHER_NUMBERS: Final = 0x40000000  # of x86-64, the ones with short pointers
_THREAD: Final = 0x00010000
_KIND: Final = 0x0F  # of a socket, without its flags
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2

_Step = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(*, programs: bool) -> None:
    """Refuse calls to this process and all that it starts; it cannot be taken back.

    Args:
        programs: whether it may start programs and speak with them through sockets that have no
            address; else it may start threads alone, and signal nobody but itself.

    Raises:
        OSError: the kernel does not allow filters, or this machine's numbers are not known.
    """
    code = compiled(platform.machine(), programs=programs, own=os.getpid())
    if not code:
        raise OSError(errno.ENOSYS, f"no filter for {platform.system()} on {platform.machine()}")
    held = ctypes.create_string_buffer(code)
    program = _Program(len(code) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(
        _SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def compiled(machine: str, *, programs: bool, own: int) -> bytes:
    """The filter for a machine; empty where its numbers are not known.

    Args:
        own: the process that may be signalled.

    >>> len(compiled("x86_64", programs=True, own=7)) % 8, compiled("vax", programs=True, own=7)
    (0, b'')
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
