"""A browser that runs: its page's session, and the watch over what the page does to it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from fragdex.errors import BrowserGone, PageFailed
from fragdex.rendering.browser.finding import Engine, need_supported
from fragdex.rendering.browser.model import Limits, Notes
from fragdex.rendering.browser.pipe import Pipe, ProtocolError
from fragdex.rendering.browser.process import Chromium
from fragdex.rendering.browser.timing import View

__all__ = ["Running", "understood"]

# A browser that neither works nor answers is broken.
_SILENT_SECONDS: Final = 60.0
# Fewer looks than that in all this time: the machine kept us from looking, and the browser, too.
_SILENT_LOOKS: Final = 20
# Of one processor, what counts as all of it.
_NEARLY: Final = 0.9
_CHECK_SECONDS: Final = 0.25
# Of the memory it may have, from where on it is told to let go, and how often at most.
_MUCH: Final = 0.5
_RELIEF_SECONDS: Final = 3.0
_DISK_SECONDS: Final = 1.0
_ENDING_SECONDS: Final = 1.0
# Beside what the page keeps: the browser's own files, and what it writes between two looks.
_BROWSERS_OWN: Final = 64 << 20
# Ended by a signal from outside; all others a process sends itself.
_KILLED: Final = 9
_NO_BEGIN_FRAMES: Final = (
    "this browser gives no frames on request: the page runs on a clock of ours, and is slower"
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
        self, engine: Engine, view: View, limits: Limits, notes: Notes, *, begin_frames: bool,
        sandbox: bool,
    ) -> None:  # fmt: skip
        self._limits, self._notes = limits, notes
        self._new_target: Callable[[str, bool], None] = lambda _session, _is_worker: None
        self._crash: str | None = None
        self._checked = self._relieved = self._disk_checked = 0.0
        self._cpu_at_start = 0.0, 0.0
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

    def _start(self, engine: Engine, view: View, sandbox: bool) -> None:
        tries = [True, True, False, False] if sandbox and os.geteuid() != 0 else [False, False]
        while tries:
            on = tries.pop(0)
            self._chromium = Chromium(
                engine,
                view,
                begin_frames=self.has_begin_frame,
                memory_bytes=self._limits.memory_bytes,
                sandbox=on,
            )
            self.pipe = Pipe(self._chromium.read_fd, self._chromium.write_fd, self._wait)
            try:
                self.version = str(self.pipe.call("Browser.getVersion")["product"])
            except BrowserGone:
                # Chromium ends by chance while it starts, now and then: once more is enough
                is_again = (
                    bool(tries) and tries[0] == on and self._chromium.ends_within(_ENDING_SECONDS)
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

    def _open(self, view: View) -> None:
        pipe = self.pipe
        pipe.on("Target.targetCrashed", self._crashed)
        pipe.on("Inspector.targetCrashed", self._inspected)
        pipe.on("Target.attachedToTarget", self._attached)
        pipe.call("Target.setDiscoverTargets", discover=True)
        self._page = self._new_page(view)
        told = pipe.call("Target.attachToTarget", targetId=self._page, flatten=True)
        self.session = str(told["sessionId"])
        pipe.call("Inspector.enable", self.session)
        if self.has_begin_frame:
            self._probe()
        if not self.has_begin_frame:
            self._notes.say("browser", _NO_BEGIN_FRAMES)
        self._attach_to_targets_of(self.session)

    def _attach_to_targets_of(self, session: str) -> None:
        """Be told of workers and frames of a page, and of workers of a worker, before they run."""
        how = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        self.pipe.post("Target.setAutoAttach", session, **how)

    def _new_page(self, view: View) -> str:
        if self.has_begin_frame:
            with contextlib.suppress(ProtocolError):
                told = self.pipe.call(
                    "Target.createTarget",
                    url="about:blank",
                    width=view.width,
                    height=view.height,
                    enableBeginFrameControl=True,
                )
                return str(told["targetId"])
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

        It is told the session, and whether it is that of a worker.
        """
        self._new_target = watch

    def check(self) -> bool:
        """Raise what has gone wrong meanwhile; cheap, may be called for each frame.

        Returns whether the browser holds so much that it should be told to let go of some.
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

    def close(self) -> None:
        """End it."""
        self.pipe.close()
        self._chromium.end()

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
        self._looks += 1
        script, beside = self._limits.script_seconds, self._limits.beside_seconds
        if seconds >= script and first - self._cpu_at_start[0] >= script * _NEARLY:
            raise PageFailed(f"a script of the page did not end within {script:g} s")
        if seconds >= beside and whole - self._cpu_at_start[1] >= beside * _NEARLY:
            raise PageFailed(f"pictures or workers of the page took more than {beside:g} s")
        if seconds >= _SILENT_SECONDS and self._looks >= _SILENT_LOOKS:
            worked = whole - self._cpu_at_start[1]
            raise BrowserGone(
                "the browser does not answer",
                expected=f"an answer within {_SILENT_SECONDS:g} s",
                found=f"none in {seconds:.0f} s; it worked for {worked:.1f} s meanwhile",
            )

    def _check_memory(self) -> int:
        held = self._chromium.memory_bytes()
        if held > self._limits.memory_bytes:
            self._chromium.end()
            raise PageFailed(
                "the page needs more memory than it may have",
                expected=f"at most {self._limits.memory_bytes >> 20} MiB",
            )
        return held

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
        # The event that tells why comes right behind; without it, this is what is known.
        self._crash = "the page crashed the browser"

    def _attached(self, params: dict[str, Any], _: str | None) -> None:
        session, target = params["sessionId"], params["targetInfo"]
        if target["type"] == "page":
            if target["targetId"] != self._page:
                self._notes.say("refused", f"a window for {target['url'] or 'about:blank'}")
                self.pipe.post("Target.closeTarget", targetId=target["targetId"])
            return
        self._attach_to_targets_of(session)
        self._new_target(session, target["type"] == "worker")
        self.pipe.post("Runtime.runIfWaitingForDebugger", session)
