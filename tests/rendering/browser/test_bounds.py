"""Whatever the renderer waits for has an end, and is named there."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fragdex.rendering
from fragdex.errors import PageFailed
from fragdex.rendering.browser import canvas, clocks, loads, process, stopwatch, worker_clocks
from fragdex.rendering.browser.model import Limits, PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.browser.stopwatch import Stopwatch
from fragdex.rendering.site import Page

ROOT = Path(fragdex.rendering.__file__).parent
MOST_SECONDS = 20
# What waits, or goes on until something has happened elsewhere.
WAITS = {"until", "listen", "wait", "wait_for", "select", "sleep", "waitpid"}
# … if it is called without arguments: of threads, queues, futures.
BARE = {"join", "get", "result"}

# What goes on while there is more of something that is here.
HERE = """
archives.py _Budget.counted
archives.py _of_tar
browser/canvas.py _above
browser/clocks.py VirtualClock.pass_to
browser/pipe.py _parsed
browser/process.py Chromium._spawn
browser/process.py Chromium.disk_bytes
browser/process.py Running.close
encode.py _PlainFile._repeat_until
join.py _Sound.until
join.py _pulled
page_media/medium.py FilePictures.at
page_media/medium.py FileSound._native
page_media/medium.py FileSound._take
page_media/medium.py _Opened._packets
page_media/mixing.py MediaReader.read
page_media/mixing.py Stretched.next
page_media/mixing.py _mixed
png.py _parsed
preview/__init__.py FilmPreview._draw_once
recipe.py engine_modules
slice.py Slicer._draw
spec.py RenderSpec._side
""".strip().splitlines()

# Each place that waits: its bound in seconds of work for a page, or where that is.
WATCHED = "Running._wait looks after it"
PAUSE = "of a number of milliseconds, a number of times"
PROMISE = "Limits.load_seconds: what a page promises, with what it waits for"
ENCODER = "an encoder, which ends or fails"
CHILDREN = "processes of renders, which end where they say nothing (ChildProcess)"
BOUNDS = {
    "browser/canvas.py CanvasReader._awaited": canvas._PATIENCE_SECONDS,
    "browser/canvas.py CanvasReader._start": canvas._PATIENCE_SECONDS,
    "browser/clocks.py InjectedClock.step": PAUSE,
    "browser/clocks.py VirtualClock.step": PAUSE,
    "browser/clocks.py VirtualClock._pass": WATCHED,
    "browser/clocks.py VirtualClock._shoot": PAUSE,
    "browser/clocks.py VirtualClock._frame": clocks._AWAKE_SECONDS,
    "browser/clocks.py VirtualClock._begin_frame": clocks._URGES * clocks._URGE_SECONDS,
    "browser/loads.py Waiting._go_on_until": PROMISE,
    "browser/loads.py Waiting.ready": PROMISE,
    "browser/loads.py Waiting.value": WATCHED,
    "browser/loads.py Waiting._give": PROMISE,
    "browser/loads.py WithLoads._await": loads._PATIENCE_SECONDS,
    "browser/loads.py WithLoads._wait": loads._PATIENCE_SECONDS,
    "browser/pipe.py Pipe.answer": WATCHED,
    "browser/pipe.py Pipe.until": max(Limits().script_seconds, Limits().beside_seconds),
    "browser/pipe.py Pipe._write": WATCHED,
    "browser/pipe.py Pipe.listen": PAUSE,
    "browser/pipe.py Pipe._take": "Pipe.until, Pipe.listen",
    "browser/process.py Chromium.ends_within": process._CRASHING_SECONDS,
    "browser/process.py Chromium.end": process._ENDING_SECONDS,
    "browser/process.py Running._start": WATCHED,
    "browser/stage.py Stage._settle_graphs": 5.0,
    "browser/stage.py Stage._load": PROMISE,
    "browser/worker_clocks.py WithTransitions._lead": worker_clocks._CHANGE_SECONDS,
    "browser/worker_clocks.py WithTransitions._settle": worker_clocks._CHANGE_SECONDS,
    "browser/worker_clocks.py WithWorkers.wait": "the clock's own",
    "browser/worker_clocks.py WithWorkers._await": 2 * worker_clocks._PATIENCE_SECONDS,
    "child.py _clear_up": PAUSE,
    "encode.py Encoding.__exit__": ENCODER,
    "encode.py Encoding._put": ENCODER,
    "encode.py Encoding._run": ENCODER,
    "encode.py Encoding.finish": ENCODER,
    "join.py _encoded": ENCODER,
    "join.py join": "no wait: packets up to a time",
    "join.py join_sound": "no wait: packets up to a time",
    "lint.py _twice": CHILDREN,
    "preview/__init__.py FilmPreview.frame": CHILDREN,
    "preview/__init__.py LocalServer._watch": "who looks at it",
    "render.py SliceScheduler.begin": CHILDREN,
    "render.py _Work.joined": CHILDREN,
    "render.py _Work.slices": CHILDREN,
    "web.py AllowedHosts._read": "AllowedHosts._once: a request has a time of its own",
}


def waits():
    """Where the code of renders waits, or goes on while something is so, as it is."""

    def visit(node, names):
        for child in ast.iter_child_nodes(node):
            called = child.func if isinstance(child, ast.Call) else None
            name = called.attr if isinstance(called, ast.Attribute) else ""
            is_wait = name in WAITS or (name in BARE and not child.args and not child.keywords)
            if is_wait or isinstance(child, ast.While):
                yield ".".join(names)
            is_named = isinstance(child, ast.FunctionDef | ast.ClassDef)
            yield from visit(child, [*names, child.name] if is_named else names)

    for path in sorted(ROOT.rglob("*.py")):
        for name in visit(ast.parse(path.read_text("utf-8")), []):
            yield f"{path.relative_to(ROOT).as_posix()} {name}"


def test_each_wait_of_a_render_has_a_bound():
    assert {*waits()} == {*BOUNDS, *HERE}
    numbers = [bound for bound in BOUNDS.values() if not isinstance(bound, str)]
    assert max(numbers) < MOST_SECONDS
    assert max(process._IDLE_SECONDS, process._SILENT_SECONDS) < MOST_SECONDS
    assert Limits().load_seconds < MOST_SECONDS


VIEW = PageView(64, 64)
# A database that another connection keeps open is never opened anew.
NEVER = """<script>
const open = (version) => new Promise((done) => {
  indexedDB.open("a", version).onsuccess = ({ target }) => { window.kept = target.result; done() };
});
const never = () => open(2);
</script>"""
HASTY = Limits(load_seconds=2)


def test_a_page_that_is_not_ready_is_told_what_it_waits_for():
    page = NEVER + "<script>window.fragdex = { ready: open(1).then(never) }</script>"
    with pytest.raises(PageFailed, match=r"not ready after 2 s; it waits for work that it began"):
        Stage(Page(page), VIEW, limits=HASTY)


def test_a_page_that_is_never_ready_ends_by_its_own_time(monkeypatch):
    """After a second in longer steps."""
    page = "<script>window.fragdex = { ready: new Promise(() => {}) }</script>"
    steps, step = [], clocks.VirtualClock.step

    def counted(clock, waiting, ms=0):
        steps.append(ms)
        step(clock, waiting, ms)

    monkeypatch.setattr(clocks.VirtualClock, "step", counted)
    with pytest.raises(PageFailed, match="not ready after 3000 ms of its time"):
        Stage(Page(page), VIEW, limits=Limits(ready_ms=3000))
    assert sum(steps) >= 2900
    assert len(steps) < 1500


def test_others_that_keep_the_machine_busy_are_no_wait():
    """Two threads of processes on one processor: each works half of the time."""
    code = """if True:
        import os, time
        from fragdex.rendering.browser.stopwatch import own_seconds
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        busy = os.fork()
        began, kept = time.monotonic(), own_seconds()
        while not busy:
            pass
        while own_seconds() - kept < 0.2 and time.monotonic() - began < 60:
            pass
        os.kill(busy, 9)
        print(own_seconds() - kept >= 0.2, time.monotonic() - began >= 0.2)
    """
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=90
    )
    assert done.stdout.split() == ["True", "True"]


class Machine:
    """A machine that kept the browser from working for so many seconds."""

    excused = 0.0

    def __init__(self):
        self.seconds = 0.0

    def kept(self):
        return self.seconds


def test_a_bound_is_of_the_time_in_which_the_browser_could_work(monkeypatch):
    now = 100.0
    monkeypatch.setattr(stopwatch.time, "monotonic", lambda: now)
    machine = Machine()
    for looks in [
        # what is over stays over, also for who asks again at once
        [(105, 0, False), (119, 9, False), (127, 9, False), (130, 9, True), (130, 9, True)],
        # four times as long in all, whatever the machine says
        [(105, 0, False), (179, 99, False), (181, 99, True)],
    ]:
        now = 100.0
        watch = Stopwatch(machine)
        for now, machine.seconds, is_over in looks:
            assert watch.exceeds(20) == is_over, now


def test_a_seek_that_does_not_answer_is_told_what_it_waits_for():
    page = NEVER + "<script>window.fragdex = { ready: open(1), seek: never }</script>"
    said = r"seek\(0.0\).*; it waits for work that it began"
    with Stage(Page(page), VIEW, limits=HASTY) as stage, pytest.raises(PageFailed, match=said):
        stage.frame(0)


def named_late(page, frames=4):
    with Stage(Page(page), VIEW) as stage:
        for i in range(frames):
            stage.frame(i)
        assert stage.notes.console == []
        return stage.notes.late


def test_a_frame_names_the_work_that_does_not_end(monkeypatch):
    monkeypatch.setattr(loads, "_PATIENCE_SECONDS", 0.5)
    page = NEVER + "<script>window.fragdex = { ready: open(1) }; setTimeout(never, 40)</script>"
    assert named_late(page) == ["work that it began (fetches, decoders, compilers)"]


def test_a_frame_names_a_worker_that_computes_for_long(monkeypatch):
    monkeypatch.setattr(worker_clocks, "_PATIENCE_SECONDS", 0.2)
    page = """<script>
    const code = "onmessage = () => { for (let i = 0; i < 2e9; i += 1) self.sum = i }";
    const worker = new Worker(URL.createObjectURL(new Blob([code])));
    setTimeout(() => worker.postMessage(1), 40);</script>"""
    assert named_late(page) == ["a worker that computed for more than 0.2 s"]


def test_a_frame_names_a_transition_that_does_not_change(monkeypatch):
    monkeypatch.setattr(worker_clocks, "_CHANGE_SECONDS", 0.5)
    monkeypatch.setattr(loads, "_PATIENCE_SECONDS", 0.5)
    page = f"""{NEVER}<script>window.fragdex = {{ ready: open(1) }};
    setTimeout(() => document.startViewTransition(never), 40)</script>"""
    assert "the change of a view transition, after 0.5 s" in named_late(page)
