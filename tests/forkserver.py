"""Starts the Python processes of tests by forking one that has imported fragdex already.

A new interpreter spends one to three seconds on imports before it does anything that a test looks
at, hundreds of times a run. `install()` makes `subprocess.Popen` ask a *fork server* instead,
where it can: a process without threads that has imported what the service imports. What comes of
it is a process like any other, a child of whoever asked, with its own descriptors, environment
and signals, that can be killed. Forks of the service bring a fork server of their own, for the
children that they start behind walls.

A true interpreter still starts

- for any command but `python -m fragdex …` and programs below `tests/` (so for `python -c`),
- where variables of the environment decide how Python or fragdex is imported,
- and in tests marked `true_start`: one of each kind, which starts what a user starts.

FRAGDEX_TEST_FORKS=0 turns it off.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

TESTS = Path(__file__).parent
PRELOADED = (
    "fragdex.__main__",
    "fragdex.cli.serve",
    "fragdex.cli.serve",
    "fragdex.service.app",
    "fragdex.service.web.server",
    "fragdex.sandbox.start",
    "fragdex.sandbox.channel",
    "fragdex.service.indexing.child",
    "fragdex.transcode.running",
    "fragdex.transcode.process",
    "fragdex.rendering.child",
    "fragdex.rendering.slice",
    "fragdex.frames",
    "fragdex.decoding",
    "httpx",
    "psycopg",
)
"""What processes of tests have in common."""
STARTING_OTHERS = {"serve", "worker", "render", "transcribe"}
"""Commands that start children: they bring a fork server of their own."""
CHANGES_IMPORTS = ("PYTHON", "COV", "FRAGDEX_PURE_PYTHON", "OTEL_", "LD_", "MALLOC_")
"""Variables that an interpreter or a library reads once; they have to be the server's own."""
CHANGES_NO_IMPORT = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE"}
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""A process with threads cannot be forked safely; children of the service have this one, too."""

_MOST = 1 << 20
_TrueProcess = subprocess.Popen
_state = SimpleNamespace(
    server=None, lock=threading.Lock(), is_off=os.environ.get("FRAGDEX_TEST_FORKS") == "0"
)


class Popen(_TrueProcess):
    """A process that is forked where that is the same, and started anew elsewhere."""

    def _execute_child(
        self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo,
        creationflags, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite,
        restore_signals, gid, gids, uid, umask, start_new_session, process_group,
    ):  # fmt: skip
        plain = not (
            shell or executable or preexec_fn or gids or creationflags or startupinfo
            or gid is not None or uid is not None or umask >= 0 or process_group != -1
        )  # fmt: skip
        command = program_of(args, env) if plain and close_fds else None
        if command is None:
            super()._execute_child(
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo,
                creationflags, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite,
                restore_signals, gid, gids, uid, umask, start_new_session, process_group,
            )  # fmt: skip
            return
        streams = [0 if p2cread == -1 else p2cread]
        streams += [1 if c2pwrite == -1 else c2pwrite]
        streams += [2 if errwrite == -1 else errwrite]
        request = command | {
            "cwd": os.fspath(cwd) if cwd is not None else os.getcwd(),
            "env": dict(os.environ if env is None else env),
            "session": bool(start_new_session),
            "passed": list(map(int, pass_fds)),
        }
        self.pid = fork(request, [*streams, *map(int, pass_fds)])
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)


def install():
    """Have `subprocess` start processes this way, from now on."""
    subprocess.Popen = Popen


@contextmanager
def turned_off():
    """Start true interpreters meanwhile."""
    before, _state.is_off = _state.is_off, True
    try:
        yield
    finally:
        _state.is_off = before


def program_of(args, env):
    """What Python is to run, as a request; None where an interpreter has to start anew."""
    if _state.is_off or isinstance(args, str | bytes | os.PathLike):
        return None
    words = [os.fspath(word) for word in args]
    if not words or words[0] != sys.executable or not all(isinstance(w, str) for w in words):
        return None
    safe_path = False
    rest = words[1:]
    while rest and rest[0] in ("-P", "-B"):
        safe_path = safe_path or rest[0] == "-P"
        rest = rest[1:]
    if len(rest) >= 2 and rest[0] == "-m" and rest[1].partition(".")[0] == "fragdex":
        command = {"module": rest[1], "argv": rest[1:]}
    elif rest and rest[0].endswith(".py") and Path(rest[0]).resolve().is_relative_to(TESTS):
        command = {"script": rest[0], "argv": rest}
    else:
        return None
    given = os.environ if env is None else env
    ours = _state.server.environment if _state.server else _own_environment()
    if _that_change_imports(given) != _that_change_imports(ours):
        return None
    return command | {"safe_path": safe_path, "words": words}


def fork(request, files):
    """The number of a new child of this process that does what is asked for."""
    with _state.lock:
        # a fork of the tests' own process has no part in its parent's
        if _state.server is None or _state.server.owner != os.getpid():
            _state.server = ForkServer()
            atexit.register(_state.server.close)
        return _state.server.fork(request, files)


class ForkServer:
    """The other end of a fork server: a new interpreter, or the one that this process brought."""

    def __init__(self, connection=None):
        self.environment = _own_environment()
        self.owner = os.getpid()
        self._connection, self._process = connection, None
        if connection is None:
            self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = _TrueProcess(
                    [sys.executable, __file__, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=self.environment,
                )  # fmt: skip

    def close(self):
        """Have it end; what it forked goes on."""
        if self.owner == os.getpid():
            self._connection.close()
            if self._process is not None:
                self._process.wait()

    def fork(self, request, files):
        data = json.dumps(request).encode()
        assert len(data) < _MOST
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _MOST)
        socket.send_fds(self._connection, [data], files)
        answer = self._connection.recv(64)
        assert answer, "the fork server is gone"
        return int(answer)


def _own_environment():
    """That of a fork server: what tests set for single processes is not in it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FRAGDEX_") or "PURE" in k}
    kept.pop("PYTEST_CURRENT_TEST", None)
    return kept | ONE_THREAD


def _that_change_imports(environment):
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(CHANGES_IMPORTS) and name not in CHANGES_NO_IMPORT
    }


# ---- inside the fork server -----------------------------------------------------------------


def main():
    """Answer requests until whoever asks is gone; a fork returns from here, and is the program."""
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    _answer(socket.socket(fileno=int(sys.argv[1])))


def _answer(connection):
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"{threads} threads: what is forked would lack all but one of them"
    while True:
        data, files, _, _ = socket.recv_fds(connection, _MOST, 64)
        if not data:
            os._exit(0)
        is_set_up, says_so = os.pipe()
        pid = _fork_for_parent()
        if not pid:
            connection.close()
            os.close(is_set_up)
            _become(json.loads(data), files, says_so)
        os.close(says_so)
        for file in files:
            os.close(file)
        # As `subprocess` waits for exec: whoever ends its session ends no other one.
        os.read(is_set_up, 1)
        os.close(is_set_up)
        connection.send(str(pid).encode())


_CLONE_PARENT, _CLONE_CHILD_CLEARTID, _CLONE_CHILD_SETTID = 0x8000, 0x200000, 0x1000000
_PR_GET_TID_ADDRESS = 40
_SYS_CLONE = {"x86_64": 56, "aarch64": 220}


def _fork_for_parent():
    """fork(2), whose child is a child of this process's parent.

    The C library keeps the number of its thread where the kernel is told to write it: as its own
    `fork` does.
    """
    libc, thread_id = ctypes.PyDLL(None, use_errno=True), ctypes.c_void_p()
    libc.syscall.restype = ctypes.c_long
    if libc.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(thread_id), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the address of the thread's number is not told")
    flags = _CLONE_PARENT | _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID | signal.SIGCHLD
    number = ctypes.c_long(_SYS_CLONE[os.uname().machine])
    # The last two are another way round on Arm; without CLONE_SETTLS the other one is not read.
    arguments = (ctypes.c_ulong(flags), None, None, thread_id, thread_id)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = libc.syscall(number, *arguments)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "no process can be forked")
    return pid


def _become(request, files, says_so):
    """Be the program that is asked for, to its end; close `says_so` once it has its own session."""
    if request["session"]:
        os.setsid()
    os.close(says_so)
    # above all numbers that are to be theirs
    above = max([2, *request["passed"]]) + 1
    files = [_above(file, above) for file in files]
    for number, file in zip([0, 1, 2, *request["passed"]], files, strict=True):
        os.dup2(file, number, inheritable=True)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if os.isatty(1) or request["env"].get("PYTHONUNBUFFERED"):
        sys.stdout.reconfigure(line_buffering=True)
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr.reconfigure(errors="backslashreplace")
    sys.stderr.reconfigure(line_buffering=True)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.argv, sys.orig_argv = request["argv"], request["words"]
    # the first is the folder of this file
    del sys.path[0]
    if not request["safe_path"]:
        first = request["cwd"] if "module" in request else os.path.dirname(request["script"])
        sys.path.insert(0, first)
    if len(request["argv"]) > 1 and request["argv"][1] in STARTING_OTHERS:
        _bring_own_server()
    os._exit(_run(request))


def _above(file, least):
    moved = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, least)
    os.close(file)
    return moved


def _bring_own_server():
    """For the children of this process: forked now, while it has one thread."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.setsid()
        _answer(theirs)
    theirs.close()
    _state.server = ForkServer(ours)
    install()


def _run(request):
    """Run it as the interpreter would; its exit code."""
    code = 0
    try:
        if "module" in request:
            # imported already, and run again as the program
            for name in (request["module"], f"{request['module']}.__main__"):
                if not hasattr(sys.modules.get(name), "__path__"):
                    sys.modules.pop(name, None)
            runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(request["script"], run_name="__main__")
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 — whatever it is, an interpreter prints it
        traceback.print_exc()
        code = 1
    # as at the end of an interpreter, and of a fork by `multiprocessing`
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or 120
    return code & 0xFF


if __name__ == "__main__":
    # one module, whatever imports it here
    sys.modules["forkserver"] = sys.modules["__main__"]
    main()
