"""A Chromium and all of its processes: started, watched, ended.

It inherits the walls of the process that starts it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from typing import Final

from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser.finding import ADVICE, Engine
from fragdex.rendering.browser.flags import flags
from fragdex.rendering.browser.timing import View
from fragdex.sandbox.folders import OwnFolder
from fragdex.sandbox.processes import exit_code

__all__ = ["Chromium"]

# Where the browser looks for its ends of the pipes.
_COMMANDS_FD, _ANSWERS_FD = 3, 4
_ENDING_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 2.0
_STAT_BYTES: Final = 4096
_LITTLE_SHARED_MEMORY: Final = 512 << 20
_PASSED_ON: Final = ("PATH", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH")


class Chromium:
    """One browser, alone in its session, with a folder of its own.

    Args:
        engine: which program.
        view: size of its window.
        begin_frames: whether frames come on request.
        memory_bytes: how much data each of its processes may have.
        sandbox: whether its own sandbox is on.
    """

    def __init__(
        self,
        engine: Engine,
        view: View,
        *,
        begin_frames: bool,
        memory_bytes: int,
        sandbox: bool,
    ) -> None:
        self._own = OwnFolder()
        self.folder = self._own.path.absolute()
        command = [
            str(engine.path),
            *flags(
                view,
                is_shell=engine.is_shell,
                begin_frames=begin_frames,
                sandbox=sandbox,
            ),
            *_shared_memory(),
            f"--user-data-dir={self.folder / 'profile'}",
            f"--disk-cache-dir={self.folder / 'cache'}",
            "--remote-debugging-pipe=cbor",
            "about:blank",
        ]
        try:
            self.pid, self.read_fd, self.write_fd = self._spawn(command)
        except OSError as error:
            self._own.remove()
            raise EngineUnavailable(f"{engine.path} cannot be run", advice=ADVICE) from error
        self._ended = False
        self._pids: list[int] = []
        self._looked = -_LOOK_SECONDS
        _bound(self.pid, memory_bytes)

    def _spawn(self, command: list[str]) -> tuple[int, int, int]:
        """Start it with its ends of two pipes at 3 and 4; nothing else of ours is inherited."""
        commands, ours_out = os.pipe()
        ours_in, answers = os.pipe()
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }
        log = self.folder / "log"
        # What stands at 3 or 4 already must be out of the way before they are filled.
        high = [os.dup(fd) for fd in (commands, answers)]
        while any(fd <= _ANSWERS_FD for fd in high):
            high += [os.dup(high.pop(0))]
        try:
            pid = os.posix_spawnp(
                command[0],
                command,
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                    (os.POSIX_SPAWN_DUP2, high[0], _COMMANDS_FD),
                    (os.POSIX_SPAWN_DUP2, high[1], _ANSWERS_FD),
                    *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inherited()),
                ],
                setsid=True,
                setsigmask=[],
            )
        except OSError:
            for fd in (ours_in, ours_out):
                os.close(fd)
            raise
        finally:
            for fd in (commands, answers, *high):
                os.close(fd)
        return pid, ours_in, ours_out

    def is_running(self) -> bool:
        """Whether its first process is there."""
        return not self._ended and exit_code(self.pid) is None

    def ends_within(self, seconds: float) -> bool:
        """Whether its first process ends; its pipes are closed a moment before it has ended."""
        deadline = time.monotonic() + seconds
        while (running := self.is_running()) and time.monotonic() < deadline:
            time.sleep(0.01)
        return not running

    def cpu_seconds(self) -> tuple[float, float]:
        """Processor time of its running processes: (of their first threads, of all threads).

        Scripts, styles and layout of a page run on the first thread of their process; workers,
        and what decodes and paints pictures, on others.
        """
        processes = self._processes()
        first = [_stat(f"/proc/{pid}/task/{pid}/stat") for pid, _ in processes]
        whole = [stat for _, stat in processes]
        return _seconds(first), _seconds(whole)

    def memory_bytes(self) -> int:
        """What all of its processes hold; what two share counts once, nearly."""
        total = 0
        for pid, _ in self._processes():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{pid}/statm", "rb", buffering=0) as file:
                    held = file.read(_STAT_BYTES).split()
                total += int(held[1]) - int(held[2])
        return total * os.sysconf("SC_PAGE_SIZE")

    def disk_bytes(self) -> int:
        """What its folder holds on the disk."""
        total, folders = 0, [str(self.folder)]
        while folders:
            # what it writes comes and goes meanwhile
            with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    with contextlib.suppress(OSError):
                        total += 512 * entry.stat(follow_symlinks=False).st_blocks
        return total

    def end(self) -> None:
        """End all of its processes, and forget its folder; nothing happens where that is done."""
        if self._ended:
            return
        stop = time.monotonic() + _ENDING_SECONDS
        while time.monotonic() < stop:
            running = self.is_running()
            pids = [pid for pid, _ in self._processes(all_of_them=True)]
            if not (running or pids):
                break
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            # Its sandbox may have put some of them into groups of their own.
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
        # Only now may its number be another's.
        self._ended = True
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        self._own.remove()

    def _processes(self, *, all_of_them: bool = False) -> list[tuple[int, list[bytes]]]:
        """(pid, fields of its stat from the third on) of the session's living processes.

        New ones are looked for now and then: there may be thousands that are not ours.
        """
        now = time.monotonic()
        if all_of_them or now - self._looked > _LOOK_SECONDS:
            self._looked = now
            try:
                self._pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
            except OSError:
                self._pids = []
        found = []
        leader = str(self.pid).encode()
        for pid in self._pids:
            told = _stat(f"/proc/{pid}/stat")
            if told and told[3] == leader and told[0] not in (b"Z", b"X"):
                found.append((pid, told))
        self._pids = [pid for pid, _ in found]
        return found


def _stat(path: str) -> list[bytes]:
    """Fields of a stat file of /proc, from the third on; none where its process is gone."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(_STAT_BYTES).rpartition(b")")[2].split()
    except OSError:
        return []


def _seconds(stats: Iterable[list[bytes]]) -> float:
    ticks = sum(int(stat[11]) + int(stat[12]) for stat in stats if stat)
    return ticks / os.sysconf("SC_CLK_TCK")


def _inherited() -> list[int]:
    """What whoever started us left open, and would be passed on."""
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            fd = int(name)
            with contextlib.suppress(OSError):
                if fd > _ANSWERS_FD and os.get_inheritable(fd):
                    found.append(fd)
    return found


def _bound(pid: int, memory_bytes: int) -> None:
    """Bound the data of each process; the children of a process inherit its bounds.

    Address space cannot be bounded: V8 reserves terabytes of it and uses none.
    """
    try:
        import resource

        resource.prlimit(pid, resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    except (ImportError, AttributeError, OSError):
        return


def _shared_memory() -> tuple[str, ...]:
    """Containers give little shared memory; pictures then go through files."""
    try:
        told = os.statvfs("/dev/shm")
    except OSError:
        return ("--disable-dev-shm-usage",)
    if told.f_bavail * told.f_frsize < _LITTLE_SHARED_MEMORY:
        return ("--disable-dev-shm-usage",)
    return ()
