"""A Chromium and all of its processes: its flags and sandbox, started, watched, ended.

It inherits the walls of the process that starts it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from fragdex.errors import BrowserGone, EngineUnavailable, PageFailed
from fragdex.rendering.browser.finding import ADVICE, Browser, need_supported
from fragdex.rendering.browser.model import Limits, Notes, PageView
from fragdex.rendering.browser.pipe import Pipe, ProtocolError
from fragdex.rendering.browser.stopwatch import own_seconds, ready_seconds, worked
from fragdex.sandbox.folders import OwnFolder
from fragdex.sandbox.processes import exit_code

# The same pixels on every machine and every run.
_SAME_PIXELS: Final = (
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--disable-lcd-text",
    "--hide-scrollbars",
    "--lang=en-US",
)
# Frames on request; deterministic-mode also keeps images from being decoded after the frame's
# back, and animations from running on a thread of their own.
_FRAMES_ON_REQUEST: Final = (
    "--enable-begin-frame-control",
    "--run-all-compositor-stages-before-draw",
    "--deterministic-mode",
)
# Where frames are not given on request: a thread of its own would move what the page has paused for
# some more frames, and decode images after the frame; on a busy machine pictures show it.
_ONE_THREAD: Final = ("--disable-threaded-animation", "--disable-checker-imaging")
# Software alone: composited by the CPU, WebGL by SwiftShader. A process for the GPU would be one
# more to pass each picture through.
_SOFTWARE: Final = (
    "--in-process-gpu",
    "--disable-gpu-compositing",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
# Frames of other origins stay in the page's own process: its clock and its walls hold for them.
# No translation, no dialogs of passwords, no prefetching. What a page paints by its own script
# (paint worklets) is painted with the frame, not on a thread of its own.
_FEATURES_OFF: Final = (
    "OffMainThreadCSSPaint,IsolateOrigins,site-per-process,IsolateSandboxedIframes,Translate,AutofillServerCommunication,"
    "MediaRouter,OptimizationHints,PaintHolding,BackForwardCache,InterestFeedContentSuggestions,"
    "SpareRendererForSitePerProcess,NetworkTimeServiceQuerying,WebBluetooth,DialMediaRouteProvider"
)
# No process for a network that is not there: an eighth of what a start costs. It would have no
# sandbox either.
_NETWORK_WITHIN: Final = "NetworkServiceInProcess2"
_QUIET: Final = (
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-site-isolation-trials",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-back-forward-cache",
    "--metrics-recording-only",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    "--password-store=basic",
    "--use-mock-keychain",
    "--log-level=3",
    f"--disable-features={_FEATURES_OFF}",
)
# The first wall: no name resolves, and all that would go out goes to a proxy that is not there,
# loopback too. Found by trying: without these `window.open` reached a server on loopback.
_NO_NETWORK: Final = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:1",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--disable-quic",
    "--block-new-web-contents",
)
_SCRIPT_MEGABYTES: Final = 512
_LEAST_WINDOW: Final = (800, 600)


def flags(
    view: PageView, *, is_shell: bool, begin_frames: bool, sandbox: bool,
    shares_memory: bool = False,
) -> list[str]:  # fmt: skip
    """All flags but those that name files."""
    features = [_NETWORK_WITHIN, *(["SharedArrayBuffer"] if shares_memory else [])]
    width, height = view.pixels
    if not begin_frames:
        # A window has a frame there; one whose page has no height is never drawn. The page's own
        # size is set apart from it.
        width, height = max(width, _LEAST_WINDOW[0]), max(height, _LEAST_WINDOW[1])
    return [
        *(() if is_shell else ("--headless=new",)),
        *(() if sandbox else ("--no-sandbox", "--no-zygote")),
        *_SAME_PIXELS,
        f"--force-device-scale-factor={view.scale:g}",
        *(_FRAMES_ON_REQUEST if begin_frames else _ONE_THREAD),
        *_SOFTWARE,
        *_QUIET,
        *_NO_NETWORK,
        f"--enable-features={','.join(features)}",
        f"--js-flags=--random-seed=42 --max-old-space-size={_SCRIPT_MEGABYTES}",
        f"--window-size={width},{height}",
    ]


NO_SANDBOX: Final = (
    "Chromium's own sandbox is off (it needs a user other than root and user namespaces)"
)

_TRY_SECONDS: Final = 10
_NOBODY: Final = 65534
# What the walls make of a process: of root's somebody else, of others one in a network of its own.
_DEMOTED: Final = (
    "setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups",
    "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--",
)  # fmt: skip
_OWN_NETWORK: Final = ("unshare", "--user", "--map-current-user", "--net", "--")
# What Chromium's sandbox is made of.
_SANDBOX: Final = ("unshare", "--user", "--map-root-user", "--pid", "--net", "--fork", "--")


@functools.cache
def allows_sandbox(program: Path) -> bool:
    """Whether this system allows a program what Chromium's sandbox needs; found out once."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    within = (_DEMOTED,) if is_root else (_OWN_NETWORK, ())
    can_be_run = ("test", "-x", str(program))
    return any(_works((*walls, *_SANDBOX), can_be_run) for walls in within)


def _works(before: Sequence[str], command: Sequence[str]) -> bool:
    if shutil.which(before[0]) is None:
        return False
    try:
        tried = subprocess.run(
            [*before, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TRY_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return tried.returncode == 0


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
        shares_memory: whether pages may share memory with workers.
    """

    def __init__(
        self,
        engine: Browser,
        view: PageView,
        *,
        begin_frames: bool,
        memory_bytes: int,
        sandbox: bool,
        shares_memory: bool = False,
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
                shares_memory=shares_memory,
            ),
            *_shared_memory(),
            f"--user-data-dir={self.folder / 'profile'}",
            f"--disk-cache-dir={self.folder / 'cache'}",
            "--remote-debugging-pipe=cbor",
            # The shell opens no page of its own; a whole browser would open that of new tabs.
            *(() if engine.is_shell else ("about:blank",)),
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

    def ready_seconds(self) -> float:
        """For how long its threads stood ready while others ran."""
        return ready_seconds(pid for pid, _ in self._processes())

    def memory_bytes(self) -> int:
        """What all of its processes hold; what two share counts once, nearly."""
        total = 0
        for pid, _ in self._processes():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{pid}/statm", "rb", buffering=0) as file:
                    fields = file.read(_STAT_BYTES).split()
                total += int(fields[1]) - int(fields[2])
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
        processes = []
        leader = str(self.pid).encode()
        for pid in self._pids:
            stat = _stat(f"/proc/{pid}/stat")
            if stat and stat[3] == leader and stat[0] not in (b"Z", b"X"):
                processes.append((pid, stat))
        self._pids = [pid for pid, _ in processes]
        return processes


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
    descriptors = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            fd = int(name)
            with contextlib.suppress(OSError):
                if fd > _ANSWERS_FD and os.get_inheritable(fd):
                    descriptors.append(fd)
    return descriptors


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
        volume = os.statvfs("/dev/shm")
    except OSError:
        return ("--disable-dev-shm-usage",)
    if volume.f_bavail * volume.f_frsize < _LITTLE_SHARED_MEMORY:
        return ("--disable-dev-shm-usage",)
    return ()


# A browser that could work all this time, and did not answer, is broken …
_SILENT_SECONDS: Final = 19.0
# … sooner where it did nothing at all.
_IDLE_SECONDS: Final = 15.0
_IDLE_CPU_SECONDS: Final = 0.2
# Fewer looks than that in all this time: the machine kept us from looking, and the browser, too.
_SILENT_LOOKS: Final = 20
# Of one processor, what counts as all of it.
_NEARLY: Final = 0.9
_CHECK_SECONDS: Final = 0.25
# Of the memory it may have: when it has to let go of some, and how often at most.
_MUCH: Final = 0.5
_RELIEF_SECONDS: Final = 3.0
_DISK_SECONDS: Final = 1.0
_CRASHING_SECONDS: Final = 1.0
# In addition to the page's: the browser's own files, and its writes between two checks.
_BROWSERS_OWN: Final = 64 << 20
# Ended by a signal from outside; all others a process sends itself.
_KILLED: Final = 9
NO_BEGIN_FRAMES: Final = (
    "this browser cannot render single frames (HeadlessExperimental): the page runs slower, and "
    "videos may differ from run to run; install chromium-headless-shell"
)


@contextlib.contextmanager
def understood() -> Iterator[None]:
    """Tell whose fault it is that the browser refuses what we say."""
    try:
        yield
    except ProtocolError as error:
        if "navigated" in str(error):
            raise PageFailed("the page was replaced while it was rendered") from error
        raise BrowserGone(f"the browser does not do what it should: {error}") from error


class Running:
    """A browser with one page, watched.

    Raises:
        EngineUnavailable: the program cannot be run, or is too old.
        BrowserGone: it ended.
        PageFailed: while something is waited for, the page crashes, hangs, or takes more memory
            than it may.
    """

    def __init__(
        self, engine: Browser, view: PageView, limits: Limits, notes: Notes, *, begin_frames: bool,
        sandbox: bool, shares_memory: bool = False,
    ) -> None:  # fmt: skip
        self._limits, self._notes, self._shares_memory = limits, notes, shares_memory
        self._new_target: Callable[[str, bool], None] = lambda _session, _is_worker: None
        self._own_workers: dict[str, Callable[[str], None]] = {}
        self._closing: list[Callable[[], None]] = []
        self._crash: str | None = None
        self._checked = self._relieved = self._disk_checked = 0.0
        self._cpu_at_start = 0.0, 0.0
        self._kept_at_start = 0.0
        self._waiting_since = -1.0
        self._looks = 0
        self.has_begin_frame = begin_frames and engine.is_shell
        self._start(engine, view, sandbox)
        try:
            need_supported(self.version)
            notes.say("browser_versions", self.version)
            with understood():
                self._open(view)
        except BaseException:
            self.close()
            raise

    def _start(self, engine: Browser, view: PageView, sandbox: bool) -> None:
        tries = [True, True, False, False] if sandbox and os.geteuid() != 0 else [False, False]
        while tries:
            on = tries.pop(0)
            self._chromium = Chromium(
                engine,
                view,
                begin_frames=self.has_begin_frame,
                memory_bytes=self._limits.memory_bytes,
                sandbox=on,
                shares_memory=self._shares_memory,
            )
            self.pipe = Pipe(self._chromium.read_fd, self._chromium.write_fd, self._wait)
            self.pipe.kept = self._kept
            try:
                self.version = str(self.pipe.call("Browser.getVersion")["product"])
            except BrowserGone:
                # Chromium ends by chance while it starts, now and then: once more is enough
                is_again = (
                    bool(tries) and tries[0] == on and self._chromium.ends_within(_CRASHING_SECONDS)
                )
                self.close()
                if is_again:
                    continue
                if not on:
                    raise
                self._notes.say("browser", "Chromium does not start with its sandbox on")
                tries = [False, False]
            else:
                break

    def _open(self, view: PageView) -> None:
        pipe = self.pipe
        pipe.on("Target.targetCrashed", self._crashed)
        pipe.on("Inspector.targetCrashed", self._inspected)
        pipe.on("Target.attachedToTarget", self._attached)
        pipe.call("Target.setDiscoverTargets", discover=True)
        self._page = self._new_page(view)
        answer = pipe.call("Target.attachToTarget", targetId=self._page, flatten=True)
        self.session = str(answer["sessionId"])
        pipe.call("Inspector.enable", self.session)
        if self.has_begin_frame:
            self._probe()
        if not self.has_begin_frame:
            self._notes.say("browser", NO_BEGIN_FRAMES)
        self._attach_to_targets_of(self.session)

    def _attach_to_targets_of(self, session: str) -> None:
        """Notice workers and frames of a page, and workers of a worker, before they run."""
        how = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        self.pipe.post("Target.setAutoAttach", session, **how)

    def _new_page(self, view: PageView) -> str:
        if self.has_begin_frame:
            with contextlib.suppress(ProtocolError):
                answer = self.pipe.call(
                    "Target.createTarget",
                    url="about:blank",
                    width=view.width,
                    height=view.height,
                    enableBeginFrameControl=True,
                )
                return str(answer["targetId"])
            self.has_begin_frame = False
        return str(self.pipe.call("Target.createTarget", url="about:blank")["targetId"])

    def _probe(self) -> None:
        try:
            self.pipe.call("HeadlessExperimental.enable", self.session)
            self.pipe.call("HeadlessExperimental.beginFrame", self.session, noDisplayUpdates=True)
        except ProtocolError:
            self.has_begin_frame = False

    def on_new_target(self, watch: Callable[[str, bool], None]) -> None:
        """Have workers and frames of their own process given to `watch` before they run.

        It gets the session, and whether it is that of a worker.
        """
        self._new_target = watch

    @property
    def folder(self) -> Path:
        """Where the browser keeps what it writes."""
        return self._chromium.folder

    def own_worker(self, url: str, began: Callable[[str], None]) -> None:
        """Have a worker that we start not taken for one of the page; `began` gets its session."""
        self._own_workers[url] = began

    def on_close(self, call: Callable[[], None]) -> None:
        """Have something called when the browser is ended."""
        self._closing.append(call)

    def check(self) -> bool:
        """Raise what has gone wrong meanwhile; cheap, may be called for each frame.

        Returns whether the browser holds so much that it should release some.
        """
        now = time.monotonic()
        if now - self._checked <= _CHECK_SECONDS:
            return False
        self._checked = now
        self._check_disk(now)
        if self._check_memory() < self._limits.memory_bytes * _MUCH:
            return False
        relieves = now - self._relieved > _RELIEF_SECONDS
        if relieves:
            self._relieved = now
        return relieves

    def _kept(self) -> float:
        return own_seconds() + self._chromium.ready_seconds()

    def close(self) -> None:
        """End it."""
        self.pipe.close()
        self._chromium.end()
        while self._closing:
            self._closing.pop()()

    def _wait(self, began: float, seconds: float) -> None:
        """Called while the browser is silent."""
        if not self._chromium.is_running():
            raise BrowserGone("the browser ended")
        if self._crash is not None:
            raise PageFailed(self._crash)
        self._check_memory()
        self._check_disk(time.monotonic())
        first, whole = self._chromium.cpu_seconds()
        if began != self._waiting_since:
            self._waiting_since, self._looks = began, 0
            self._cpu_at_start = first, whole
            self._kept_at_start = self._kept()
        self._looks += 1
        script, beside = self._limits.script_seconds, self._limits.beside_seconds
        if seconds >= script and first - self._cpu_at_start[0] >= script * _NEARLY:
            raise PageFailed(f"a script of the page did not end within {script:g} s")
        if seconds >= beside and whole - self._cpu_at_start[1] >= beside * _NEARLY:
            raise PageFailed(f"pictures or workers of the page took more than {beside:g} s")
        cpu = whole - self._cpu_at_start[1]
        most = _IDLE_SECONDS if cpu < _IDLE_CPU_SECONDS else _SILENT_SECONDS
        if seconds < most or self._looks < _SILENT_LOOKS:
            return
        if worked(seconds, self._kept() - self._kept_at_start) >= most:
            raise BrowserGone(
                f"the browser does not answer {self.pipe.last_call}".rstrip(),
                expected=f"an answer within {most:g} s",
                found=f"none in {seconds:.0f} s; it worked for {cpu:.1f} s meanwhile",
            )

    def _check_memory(self) -> int:
        used = self._chromium.memory_bytes()
        if used > self._limits.memory_bytes:
            self._chromium.end()
            raise PageFailed(
                "the page needs more memory than it may have",
                expected=f"at most {self._limits.memory_bytes >> 20} MiB",
            )
        return used

    def _check_disk(self, now: float) -> None:
        """A second wall: origins of outside hosts have a quota of their own each."""
        if now - self._disk_checked <= _DISK_SECONDS:
            return
        self._disk_checked = now
        if self._chromium.disk_bytes() > self._limits.storage_bytes + _BROWSERS_OWN:
            self._chromium.end()
            raise PageFailed(
                "the page keeps more on the disk than it may",
                expected=f"at most {self._limits.storage_bytes >> 20} MiB",
            )

    def _crashed(self, params: dict[str, Any], _: str | None) -> None:
        if params["targetId"] != self._page:
            return
        status, code = params.get("status"), params.get("errorCode")
        if status == "killed" and code == _KILLED:
            raise BrowserGone("a process of the browser was killed")
        raise PageFailed("the page crashed the browser", found=f"{status} ({code})")

    def _inspected(self, _: dict[str, Any], session: str | None) -> None:
        # The event with the reason follows at once; without it, this is all that is known.
        self._crash = "the page crashed the browser"

    def _attached(self, params: dict[str, Any], _: str | None) -> None:
        session, target = params["sessionId"], params["targetInfo"]
        if target["type"] == "page":
            if target["targetId"] != self._page:
                self._notes.say("refused", f"a window for {target['url'] or 'about:blank'}")
                self.pipe.post("Target.closeTarget", targetId=target["targetId"])
            return
        own = self._own_workers.pop(target["url"], None)
        if own is not None:
            own(session)
        else:
            self._attach_to_targets_of(session)
            self._new_target(session, target["type"] == "worker")
        self.pipe.post("Runtime.runIfWaitingForDebugger", session)
