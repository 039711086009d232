"""The page's clock is in our hands: each frame shows its own instant, whatever moves the page."""

import io
import os
import subprocess
import sys
from fractions import Fraction
from functools import partial
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from fragdex.errors import BrowserGone
from fragdex.rendering.browser.clocks import sources
from fragdex.rendering.browser.model import PageView, instant_us, protocol_ms
from fragdex.rendering.browser.pipe import Pipe
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.site import OpenAsset, Page
from rendering.pages.looking import (
    BY_CHANCE,
    MOVING,
    STATEFUL,
    Moving,
    Stateful,
    numbers,
    numbers_page,
    pixels,
    red_square,
)

SMALL = PageView(320, 180, Fraction(30))
NTSC = Fraction(30000, 1001)


@pytest.mark.parametrize("begin_frames", [True, False], ids=["virtual", "injected"])
@pytest.mark.parametrize("fps", [Fraction(30), Fraction(60), NTSC, Fraction(120)], ids=str)
def test_a_page_that_counts_frames_by_its_clock_counts_right(fps, begin_frames):
    view = PageView(256, 64, fps)
    seen = [*range(12), *range(300, 306)] if begin_frames else [0, 1, 2, 3, 50, 51]
    with Stage(numbers_page(fps), view, begin_frames=begin_frames) as stage:
        last = -1
        for i in seen:
            stage.skip(last + 1, i)
            last = i
            ms = i * 1000 / WRITTEN.get(fps, fps)
            wanted = [i, i, round(ms * 10), int(ms), i]
            assert numbers(stage.frame(i)) == wanted


@pytest.mark.parametrize("begin_frames", [True, False], ids=["virtual", "injected"])
def test_timers_that_set_timers_end_with_the_frame(begin_frames):
    page = Page("<script>let n = 0; (function go() { n += 1; setTimeout(go, 0) })()</script>")
    with Stage(page, SMALL, begin_frames=begin_frames) as stage:
        stage.frame(0)
        stage.frame(3)
        assert 5 <= stage.evaluate("n") <= 1000


@pytest.mark.parametrize("name", MOVING)
def test_whatever_moves_a_page_follows_the_clock_and_slices_equal_the_whole(name):
    with Stage(Moving(name), SMALL) as stage:
        whole = [stage.frame(i) for i in range(7)]
        assert stage.notes.console == []
    for i, picture in enumerate(whole):
        left, width = red_square(picture)
        assert abs(left - instant_us(i, SMALL.fps) / 10_000) <= 1
        assert abs(width - 40) <= 1
    with Stage(Moving(name), SMALL) as stage:
        stage.skip(0, 5)
        assert [stage.frame(i) for i in (5, 6)] == whole[5:]


@pytest.mark.parametrize(
    "name", ["css-transition.html", "svg-smil.html", "timeout.html", "tweens.html", "shadow.html"]
)
def test_a_browser_without_frames_on_request_shows_the_same(name):
    with Stage(Moving(name), SMALL) as stage:
        stage.skip(0, 7)
        wanted = [pixels(stage.frame(7)), pixels(stage.frame(8))]
    with Stage(Moving(name), SMALL, begin_frames=False) as stage:
        assert not stage.facts.has_begin_frame
        assert any("cannot render single frames" in line for line in stage.notes.browser)
        stage.skip(0, 7)
        for i, picture in zip((7, 8), wanted, strict=True):
            assert abs(pixels(stage.frame(i)) - picture).mean() < 1


@given(st.integers(0, 10**14))  # three years
def test_no_microsecond_is_lost_on_the_way_to_the_browser(us):
    """Whether the browser cuts off or rounds."""
    microseconds = protocol_ms(us) * 1000
    assert int(microseconds) == round(microseconds) == us


# Whether from each start, each frame after it is counted right, however a page writes that.
COUNTING = """((instants, fps, starts) => {
  const times = instants.map((ms) => __fragdexExact(ms) + 2 ** -10);
  return starts.every((from) => times.every((_, i) => {
    const [spent, frames] = [times[i] - times[from], i - from];
    if (frames <= 0) return true;
    return Math.floor(spent * fps / 1000) === frames && Math.floor(spent / 1000 * fps) === frames;
  }));
})"""
WRITTEN = {Fraction(n * 1000, 1001): n * 999 // 1 / 1000 for n in (24, 30, 60, 120)}
HOURS = 4


def test_from_any_frame_on_each_rate_counts_its_frames():
    """Also with the rate as a page writes it (29.97), hours after the start."""
    starts = [0, 1, 2, 7, 29, 30, 100, 599, 1799, 2000]
    with Stage(Page("<p>"), SMALL) as stage:
        for fps in [*map(Fraction, range(1, 241)), *WRITTEN]:
            stage.evaluate(f"void {sources(PageView(fps=fps))}")
            for first in (0, int(HOURS * 3600 * fps)):
                ms = [instant_us(i, fps) / 1000 for i in range(first, first + 2400)]
                for told in {float(fps), WRITTEN.get(fps, float(fps))}:
                    right = stage.evaluate(f"{COUNTING}({ms}, {told}, {starts})")
                    assert right, (fps, first, told)


COUNTERS = """<script>
const FPS = RATE, seen = {}, begun = {};
const count = (who, now) => {
  begun[who] ??= now;
  (seen[who] ??= []).push(Math.floor((now - begun[who]) * FPS / 1000));
};
const later = (t) => {
  count("frame", t);
  count("now", performance.now());
  count("timeline", document.timeline.currentTime);
  count("event", new Event("x").timeStamp);
  requestAnimationFrame(later);
};
let left = 7;
requestAnimationFrame(function wait() { requestAnimationFrame((left -= 1) ? wait : later) });
const worker = new Worker(URL.createObjectURL(new Blob([`
  requestAnimationFrame(function each(t) {
    postMessage([t, performance.now()]);
    requestAnimationFrame(each);
  })`])));
let heard = 0;
worker.onmessage = ({ data: [t, now] }) => {
  if ((heard += 1) < 7) return;
  count("worker's frame", t);
  count("worker's now", now);
};
let every = 0;
setTimeout(() => setInterval(() => {
  const now = performance.now();
  begun.timer ??= now;
  (seen.timer ??= []).push((now - begun.timer) * FPS / 1000 - (every += STEP) + STEP);
}, STEP * 1000 / FPS), 1);
</script>"""


@pytest.mark.parametrize("begin_frames", [True, False], ids=["virtual", "injected"])
@pytest.mark.parametrize(("rate", "step"), [(30, 3), (29.97, 1)])
def test_a_page_counts_frames_from_a_later_start(rate, step, begin_frames):
    """By whatever tells the time, as players do that wait for their first frame."""
    fps = {float(told): fps for fps, told in WRITTEN.items()}.get(rate, Fraction(rate))
    page = COUNTERS.replace("RATE", str(rate)).replace("STEP", str(step))
    with Stage(Page(page), PageView(64, 64, fps), begin_frames=begin_frames) as stage:
        for i in range(40):
            stage.skip(i, i + 1)
        seen = stage.evaluate("seen")
    timer = seen.pop("timer")
    if step > 1:
        assert all(0 <= late < 1e-3 for late in timer), timer
    assert len(seen) == 6
    for who, counted in seen.items():
        assert counted == list(range(len(counted))), who
        assert len(counted) > 25, who


INTERVALS = """<script>
const RATE = 30, seen = [], from = performance.now();
const drawn = { loaded: 0, chained: 0, framed: 0, later: 0, worker: 0 };
const count = () => Math.floor((performance.now() - from) * RATE / 1000);
setInterval(() => { drawn.loaded = count() }, 1000 / RATE);
setTimeout(function again() {
  drawn.chained = count();
  setTimeout(again, 1000 / RATE);
}, 1000 / RATE);
let begun = false;
requestAnimationFrame(function each() {
  seen.push(Object.values(drawn));
  if (!begun) setInterval(() => { drawn.later = count() }, 1000 / RATE);
  begun = true;
  setTimeout(() => { drawn.framed = count() }, 1000 / RATE);
  requestAnimationFrame(each);
});
const worker = new Worker(URL.createObjectURL(new Blob([`
  const RATE = ${RATE}, from = performance.now();
  setInterval(() => postMessage(${count.toString().slice(6)}), 1000 / RATE);
`])));
worker.onmessage = ({ data }) => { drawn.worker = data };
</script>"""
RATES = [7, 24, 30, 60, 101, 144, 240, 29.97, 24000 / 1001, 120000 / 1001]


INJECTED = [
    pytest.param(rate, False, id=f"{rate:g}-injected", marks=[pytest.mark.nightly] * (rate > 30))
    for rate in RATES
]


@pytest.mark.parametrize(
    ("rate", "begin_frames"),
    [*(pytest.param(rate, True, id=f"{rate:g}-virtual") for rate in RATES), *INJECTED],
)
def test_an_interval_of_a_frame_rings_in_each_frame(rate, begin_frames):
    """Chains of timers too, from loading or from a frame on, on the page and in its worker."""
    page = INTERVALS.replace("RATE = 30", f"RATE = {rate}")
    fps = next((fps for fps in WRITTEN if abs(rate / fps - 1) < 1e-5), Fraction(rate))
    with Stage(Page(page), PageView(64, 64, fps), begin_frames=begin_frames) as stage:
        stage.skip(0, 40)
        assert stage.evaluate("seen") == [[i] * 5 for i in range(40)]


# Whether a timer that is set in a frame, or rings each frame since a start, rings in time, and
# counts the frame.
DUE = """((instants, rate) => {
  const wait = 1000 / rate, { due, longer } = __fragdexExact;
  const start = due(instants[0], 0), from = __fragdexExact(instants[0]) + 2 ** -10;
  return instants.slice(1).every((ms, i) => {
    const times = [start + (i + 1) * wait / longer, due(instants[i], wait)];
    return times.every((one) => {
      const at = Math.ceil((one - 1e-5) * 10) / 10;
      const now = __fragdexExact(at) + 2 ** -10;
      return instants[i] < at && at <= ms && Math.floor((now - from) * rate / 1000) === i + 1;
    });
  });
})"""


def test_what_is_set_for_a_frame_is_due_in_it_at_each_rate():
    with Stage(Page("<p>"), SMALL) as stage:
        for fps in [*map(Fraction, range(1, 241)), *WRITTEN]:
            stage.evaluate(f"void {sources(PageView(fps=fps))}")
            for first in (0, int(HOURS * 3600 * fps)):
                ms = [instant_us(i, fps) / 1000 for i in range(first, first + 2400)]
                for told in {float(fps), WRITTEN.get(fps, float(fps))}:
                    if first and told not in (fps, WRITTEN.get(fps)):
                        continue  # a millionth off, for hours
                    assert stage.evaluate(f"{DUE}({ms}, {told})"), (fps, first, told)


CHANCE = """<!doctype html><body style="font:20px monospace"><script>
const words = [];
for (let i = 0; i < 4; i += 1) words.push(Math.random(), screen.width,
  crypto.getRandomValues(new Uint32Array(2)).join("-"), crypto.randomUUID(),
  navigator.hardwareConcurrency, navigator.deviceMemory,
  Intl.DateTimeFormat().resolvedOptions().timeZone, new Date().toString(), navigator.language);
document.body.textContent = words.join(" ");
const draw = (t) => {
  document.body.append(` ${t} ${Math.random()}`);
  requestAnimationFrame(draw);
};
requestAnimationFrame(draw);
</script>"""


def test_two_runs_of_a_page_of_chance_are_the_same_bytes():
    runs = []
    for _ in range(2):
        with Stage(Page(CHANCE), SMALL) as stage:
            runs.append([*map(stage.frame, range(4)), stage.evaluate("document.body.textContent")])
    assert runs[0] == runs[1]
    assert "UTC" in runs[0][-1]
    assert "Tue Nov 14 2023 22:13:20 GMT+0000" in runs[0][-1]


def test_frames_without_change_are_not_drawn_again():
    page = """<!doctype html><body style="background:#ff0"><script>
    setTimeout(() => { document.body.style.background = "#0ff"; }, 200)</script>"""
    with Stage(Page(page), SMALL) as stage:
        pictures = [stage.frame(i) for i in range(12)]
    given = [i for i, picture in enumerate(pictures) if picture is not None]
    assert given == [0, 6]
    assert tuple(pixels(pictures[0])[90, 160]) == (255, 255, 0)
    assert tuple(pixels(pictures[6])[90, 160]) == (0, 255, 255)


def test_ticks_of_frames_always_go_forward(monkeypatch):
    """Some releases never answer a second frame of equal ticks."""
    ticks, send = [], Pipe.send

    def watched(pipe, method, session=None, **params):
        if "frameTimeTicks" in params:
            ticks.append(params["frameTimeTicks"])
        return send(pipe, method, session, **params)

    monkeypatch.setattr(Pipe, "send", watched)
    # Stands still, so that frames are tried without a picture, and moves then.
    page = """<body style="background:#fff"><div id=d style="width:9px;height:9px;background:red">
        <script>setInterval(() => { d.style.marginLeft = (performance.now() % 90) + "px" }, 400)
        </script>"""
    with Stage(Page(page), PageView(64, 64)) as stage:
        given = [i for i in range(60) if stage.frame(i) is not None]
    assert 1 < len(given) < 30
    assert len(ticks) > 60, "no instant was drawn twice"
    assert all(before < after for before, after in pairwise(ticks))


def test_the_first_picture_comes_even_where_nothing_changed_since_long():
    with Stage(Page("<!doctype html><body style='background:#ff0'>"), SMALL) as stage:
        stage.skip(0, 5)
        assert tuple(pixels(stage.frame(5))[90, 160]) == (255, 255, 0)
        assert stage.frame(6) is None


class Losing:
    """Has answers of a real browser lost on the way: the next `left`, to calls that name this."""

    def __init__(self, monkeypatch, name, lose):
        self.left, call = 0, Pipe.call

        def lossy(pipe, method, session=None, **params):
            if name not in params or not self.left:
                return call(pipe, method, session, **params)
            self.left -= 1
            return lose(lambda: call(pipe, method, session, **params))

        monkeypatch.setattr(Pipe, "call", lossy)


# a pixel in a microsecond
FAST = """<!doctype html><style>body { background: linear-gradient(90deg, red, blue) 0 0 / 320px }
@keyframes far { to { background-position-x: 10000000px } } body { animation: far 10s linear }
</style>"""


@pytest.mark.parametrize("lost", [1, 8])
def test_time_0_waits_for_a_browser_that_does_not_draw_yet(monkeypatch, lost):
    """On a busy machine it answers the first frames before the page's compositor gets them."""
    with Stage(Page(FAST), SMALL) as stage:
        stage.skip(0, 3)
        wanted = stage.frame(3)
    frames = Losing(monkeypatch, "frameTimeTicks", lambda _: {"hasDamage": False})
    frames.left = lost
    with Stage(numbers_page(Fraction(30)), PageView(256, 64)) as stage:
        assert numbers(stage.frame(0)) == [0, 0, 0, 0, 0]
    frames.left = lost
    with Stage(numbers_page(Fraction(30)), PageView(256, 64)) as stage:
        stage.skip(0, 3)
        assert numbers(stage.frame(3)) == [3, 3, 1000, 100, 3]
    frames.left = lost
    with Stage(Page(FAST), SMALL) as stage:
        stage.skip(0, 3)
        assert stage.frame(3) == wanted
    assert frames.left == 0


ENDING = """<!doctype html><style>@keyframes fade { to { opacity: 0 } }
div { width: 20px; height: 20px; background: #f00; animation: fade 100ms linear }
</style><div></div><script>
document.querySelector("div").onanimationend = () => { document.body.style.background = "#ff0" };
</script>"""


@pytest.mark.parametrize("page", [FAST, ENDING], ids=["fast", "ending"])
def test_animations_begin_at_time_0_however_late_the_browser_draws_it(monkeypatch, page):
    """What is 98 µs late is nearly always rounded up by a step of the page's clocks."""
    with Stage(Page(page), SMALL) as stage:
        stage.skip(0, 3)
        wanted = stage.frame(3)
    call, ticks = Pipe.call, []

    def late(pipe, method, session=None, **params):
        if "frameTimeTicks" in params and len(ticks) < 2:
            ticks.append(params["frameTimeTicks"])
            if len(ticks) == 1:
                return {"hasDamage": False}
            params["frameTimeTicks"] = round(ticks[0] + 0.098, 3)
        return call(pipe, method, session, **params)

    monkeypatch.setattr(Pipe, "call", late)
    with Stage(Page(page), SMALL) as stage:
        stage.skip(0, 3)
        assert stage.frame(3) == wanted


@pytest.mark.parametrize(("lost", "comes"), [(1, True), (4, True), (1000, False)])
def test_a_picture_that_does_not_come_is_asked_for_again(monkeypatch, lost, comes):
    """A frame that changed is never taken for the one before it."""
    pictures = Losing(monkeypatch, "screenshot", lambda ask: {"hasDamage": ask()["hasDamage"]})
    with Stage(numbers_page(Fraction(30)), PageView(256, 64)) as stage:
        stage.frame(0)
        pictures.left = lost
        if comes:
            assert numbers(stage.frame(1))[0] == 1
            assert numbers(stage.frame(2))[0] == 2
        else:
            with pytest.raises(BrowserGone, match="gave no picture"):
                stage.frame(1)


def test_a_script_that_waits_for_the_clock_to_move_gets_on():
    page = """<script>
    const wait = (now, ms) => { const start = now(); while (now() < start + ms); };
    wait(() => performance.now(), 2);
    requestAnimationFrame(() => { wait(() => performance.now(), 3); wait(Date.now, 3) });
    </script>"""
    with Stage(Page(page), SMALL) as stage:
        clocks = []
        for i in range(3):
            stage.frame(i)
            clocks.append(stage.evaluate("[performance.now(), Date.now() - 1700000000000]"))
    # ahead for a while, never back, and right again in the next frame
    assert 5 <= clocks[0][0] <= clocks[1][0] == pytest.approx(100 / 3, abs=0.001)
    assert clocks[1][1] == 33
    assert clocks[2] == pytest.approx([200 / 3, 66], abs=0.001)


def test_pages_that_can_be_jumped_into_are_jumped_into():
    skipped_frames = []
    with Stage(Moving("seek.html"), SMALL) as stage:
        assert stage.facts.seekable
        stage.skip(0, 30, skipped_frames.append)
        assert red_square(stage.frame(30)) == (100, 40)
    # but for frame 0, with which animations begin
    assert skipped_frames == [0]
    page = (
        '<!doctype html><meta name="fragdex:seekable"><script>let n = 0;'
        "requestAnimationFrame(function f() { n += 1; requestAnimationFrame(f) })</script>"
    )
    with Stage(Page(page), SMALL) as stage:
        assert stage.facts.seekable
        stage.skip(0, 30)
        stage.frame(30)
        assert stage.evaluate("n") == 2
        assert stage.evaluate("performance.now()") == pytest.approx(1000, abs=0.001)


def test_every_skipped_frame_happens_and_is_told():
    skipped_frames = []
    with Stage(numbers_page(Fraction(30)), PageView(256, 64)) as stage:
        stage.skip(0, 5, skipped_frames.append)
        assert numbers(stage.frame(5))[4] == 5
    assert skipped_frames == [0, 1, 2, 3, 4]


IDIOMS = """<!doctype html><body><script>
// times that pages take for "not yet" where they are 0, and steps that they take for none
const told = [];
let start, last = performance.now();
const loaded = [last, document.timeline.currentTime, Date.now() - performance.timeOrigin];
const fast = document.body.animate({ opacity: [0, 1] }, 1000);
fast.startTime = performance.now();
requestAnimationFrame(function draw(now) {
  if (!start) start = now;
  told.push([
    now - start, now > last, now - performance.now(), now - document.timeline.currentTime,
    performance.timeOrigin + Math.floor(now) - Date.now(), fast.startTime, fast.currentTime,
  ]);
  last = now;
  requestAnimationFrame(draw);
});
const stamps = [];
addEventListener("go", (event) => stamps.push(event.timeStamp));
requestAnimationFrame(() => setTimeout(() => dispatchEvent(new Event("go")), 20));
</script>"""


@pytest.mark.parametrize("fps", [Fraction(10), Fraction(30)], ids=str)
def test_all_that_tells_an_instant_tells_the_same_one(fps):
    with Stage(Page(IDIOMS), PageView(64, 64, fps)) as stage:
        for i in range(3):
            stage.frame(i)
        loaded, readings, stamps = map(stage.evaluate, ("loaded", "told", "stamps"))
    assert loaded == pytest.approx([0, 0, 0], abs=0.001)
    for i, (since, moved, *rest, at) in enumerate(readings):
        assert since == pytest.approx(float(1000 * i / fps), rel=1e-9)
        assert moved
        assert rest == pytest.approx([0, 0, 0, 0], abs=0.01)
        # of animations, the instant itself
        assert at == pytest.approx(instant_us(i, fps) / 1000, abs=0.01)
    assert stamps == pytest.approx([20], abs=0.1)


LATE = """<!doctype html><meta charset=utf-8><style>
body { margin: 0 } svg { display: block }</style>
<svg width=320 height=180><rect y=100 width=40 height=40 fill="#f00">
  <animate attributeName=x from=0 to=1000 dur=10s /></rect></svg>
<script>
  fragdex = { ready: new Promise((done) => setTimeout(done, 70)) };
  SCRIPT
</script>"""


@pytest.mark.parametrize(("script", "first"), [("", 0), ("SVG.setCurrentTime(1)", 100)])
def test_drawings_begin_at_time_0_however_long_the_page_takes_to_be_ready(script, first):
    page = LATE.replace("SCRIPT", script.replace("SVG", 'document.querySelector("svg")'))
    with Stage(Page(page), SMALL) as stage:
        for i in range(3):
            left, width = red_square(stage.frame(i))
            assert abs(width - 40) <= 1
            assert abs(left - first - instant_us(i, SMALL.fps) / 10_000) <= 1


@pytest.mark.parametrize("begin_frames", [True, False], ids=["virtual", "injected"])
def test_a_page_is_called_more_often_than_it_is_looked_at(begin_frames):
    page = """<script>const told = [];
    requestAnimationFrame(function f(t) { told.push(t); requestAnimationFrame(f) })</script>"""
    view = PageView(64, 64, Fraction(20), page_fps=Fraction(60))
    with Stage(Page(page), view, begin_frames=begin_frames) as stage:
        stage.skip(0, 2)
        stage.frame(2)
        wanted = [k * 1000 / 60 for k in range(7)]
        assert stage.evaluate("told") == pytest.approx(wanted, abs=0.001)


WHILE_LOADING = """<!doctype html><body><script>
var rang = [];
const ring = (name) => () => rang.push([name, performance.now()]);
setTimeout(ring("timeout"), 100);
const every = setInterval(() => {
  ring("interval")();
  if (rang.length > 6) clearInterval(every);
}, 150);
clearTimeout(setTimeout(ring("cleared"), 50));
const later = setTimeout(ring("cleared later"), 200);
requestAnimationFrame(() => clearTimeout(later));
addEventListener("load", () => setTimeout(ring("of load"), 100));
AbortSignal.timeout(250).onabort = ring("abort");
scheduler.postTask(ring("task"), { delay: 260 });
let chain = 0;
(function go() { chain += 1; setTimeout(go, 0) })();
requestAnimationFrame(() => rang.push(["chain", chain]));
</script><iframe srcdoc="<script>setTimeout(parent.ring?.('frame') ?? (() =>
  parent.rang.push(['frame', performance.now()])), 100)</script>"></iframe></body>"""


def test_timers_that_are_set_while_the_page_loads_ring_as_if_it_took_no_time():
    runs = []
    for _ in range(2):
        with Stage(Page(WHILE_LOADING), PageView(64, 64, Fraction(10))) as stage:
            for i in range(8):
                stage.frame(i)
            runs.append(stage.evaluate("rang"))
    assert runs[0] == runs[1]
    (_, turns), *rang = runs[0]
    # a chain of timers without delay is cut at time 0, where it always is
    assert turns <= 20
    times = [(name, at) for name, at in rang if name != "interval"]
    assert sorted(times[:3]) == [
        (name, pytest.approx(100, abs=0.001)) for name in ("frame", "of load", "timeout")
    ]
    assert times[3:] == [(name, pytest.approx(at, abs=0.001)) for name, at in
                         (("abort", 250), ("task", 260))]  # fmt: skip
    intervals = [at for name, at in rang if name == "interval"]
    assert intervals == pytest.approx([150, 300], abs=0.001)


# What moves a page, all of it on one: by the timers that are most often asked for, by animations
# and drawings that begin while it loads, at load and later, by messages and by what is fetched.
MOVERS = """<!doctype html><style>
body { margin: 0 } i { position: absolute; left: 0; width: 9px; height: 9px; background: red }
@keyframes go { to { transform: translateX(900px) } }
</style><body>
<svg width=320 height=30><rect width=9 height=9><animate attributeName=x to=900 dur=3s /></rect>
<circle r=4 cy=20><animateMotion path="M0,0 L900,20" dur=3s begin=0.1s /></circle></svg>
<img src="drawing.svg" style="position: absolute; left: 0; top: 170px">
<canvas id=c width=320 height=20 style="position: absolute; left: 0; top: 150px"></canvas>
<script>
const mark = (at) => { const one = document.createElement("i"); one.style.top = `${10 * at}px`;
  document.body.append(one); return one };
const counts = (at, drive) => { const one = mark(at); let n = 0;
  drive(() => { one.style.left = `${n++ % 300}px` }) };
counts(3, (step) => setInterval(step, 16));
counts(4, (step) => (function go() { step(); setTimeout(go, 0) })());
counts(5, (step) => addEventListener("load", () => setInterval(step, 7)));
counts(6, (step) => requestAnimationFrame(function f() { step(); requestAnimationFrame(f) }));
counts(7, (step) => { const { port1, port2 } = new MessageChannel(); let n = 0;
  port1.onmessage = () => { step(); if (n++ < 50) port2.postMessage(0) }; port2.postMessage(0) });
counts(8, (step) => fetch("drawing.svg").then((answer) => answer.text())
  .then(() => setInterval(step, 9)));
const move = (at, ms) => mark(at).animate({ left: ["0px", "900px"] }, ms);
move(9, 3000);
addEventListener("load", () => move(10, 3100));
setTimeout(() => move(11, 2900), 70);
mark(12).style.animation = "go 3s linear";
setTimeout(() => { mark(13).style.animation = "go 2s linear" }, 90);
setTimeout(() => { document.body.insertAdjacentHTML("beforeend", `<svg width=320 height=9
  style="position:absolute;left:0;top:140px"><rect width=9 height=9><animate attributeName=x to=900
  dur=3s /></rect></svg>`) }, 110);
const pen = c.getContext("2d");
setInterval(() => { pen.clearRect(0, 0, 320, 20); pen.fillText(`${performance.now()} ${Date.now()}
  ${document.timeline.currentTime} ${Math.random()}`, 0, 12) }, 11);
</script>"""
DRAWING = b"""<svg xmlns="http://www.w3.org/2000/svg" width="320" height="9">
<rect width="9" height="9"><animate attributeName="x" to="900" dur="3s" /></rect></svg>"""


class Movers(Page):
    def open(self, path):
        if path == "drawing.svg":
            return OpenAsset(io.BytesIO(DRAWING), "image/svg+xml")
        return super().open(path)


def test_two_runs_are_equal_to_the_pixel_and_so_is_a_slice():
    runs = []
    for first in (0, 0, 9):
        with Stage(Movers(MOVERS), SMALL) as stage:
            stage.skip(0, first)
            runs.append([pixels(stage.frame(i)).tobytes() for i in range(first, 20)])
            assert stage.notes.console == []
    assert runs[0] == runs[1]
    assert runs[0][9:] == runs[2]
    assert len(set(runs[0])) == 20


PAGES = {
    **{name: partial(Moving, name) for name in MOVING},
    **{f"stateful {name}": partial(Stateful, name) for name in STATEFUL if name not in BY_CHANCE},
    "movers": partial(Movers, MOVERS),
}


def first_difference(make, runs, slices, frames=21):
    """(run, frame) of the first frame that is not that of the first run to the pixel."""

    def drawn(first, stop):
        with Stage(make(), SMALL) as stage:
            stage.skip(0, first)
            shown = accumulate(map(stage.frame, range(first, stop)), lambda last, one: one or last)
            return [pixels(one).tobytes() for one in shown]

    whole = drawn(0, frames)
    for run in range(runs):
        for number in range(slices):
            first = frames * number // slices
            stop = frames * (number + 1) // slices
            for i, one in enumerate(drawn(first, stop), first):
                if one != whole[i]:
                    return run, i
    return None


@pytest.mark.slow
@pytest.mark.nightly
def test_all_pages_are_equal_in_runs_and_slices_with_taken_processors():
    """Two pages are compared in every run."""
    taken = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
             for _ in range(os.cpu_count() or 1)]  # fmt: skip
    try:
        differences = {
            (name, slices): first_difference(make, 1, slices)
            for name, make in PAGES.items()
            for slices in (1, 3)
        }
    finally:
        for one in taken:
            one.kill()
            one.wait()
    assert {key: where for key, where in differences.items() if where is not None} == {}


ANIMATED = """<!doctype html><style>body { margin: 0; width: 320px; height: 40px }
i, b, u { position: absolute; width: 9px; height: 9px; background: red; left: 0 }
i { animation: go 200ms linear both } u { top: 20px; transition: left 200ms linear }
@keyframes go { to { left: 300px } }</style><i></i><b style="top: 10px"></b><u></u>
<svg width=320 height=9 style="position: absolute; top: 30px; left: 0"><rect width=9 height=9 fill=red>
<animate attributeName=x to=300 dur=.2s fill=freeze /></rect></svg><script>
document.querySelector("b").animate({ left: ["0px", "300px"] }, 200);
const late = document.querySelector("u"); getComputedStyle(late).left; late.style.left = "300px";
window.fragdex = { ready: (async () => {
  const key = await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
  const how = { name: "PBKDF2", hash: "SHA-512", salt: new Uint8Array(8), iterations: 1200000 };
  await crypto.subtle.deriveBits(how, key, 256);
})() };</script>"""  # noqa: E501


@pytest.mark.parametrize("begin_frames", [True, False])
def test_nothing_is_animated_before_time_0_however_long_the_page_loads(begin_frames):
    view = PageView(320, 40, Fraction(20))
    with Stage(Page(ANIMATED), view, begin_frames=begin_frames) as stage:
        for i in range(4):
            shown = pixels(stage.frame(i))
            red = (shown[..., 0] > 200) & (shown[..., 1] < 60)
            lefts = [int(red[10 * row + 4].argmax()) for row in range(4)]
            assert lefts == pytest.approx([75 * i] * 4, abs=1), i


# In milliseconds; none divides the time of a frame.
DELAYS = {
    "a.gif": ("GIF", 40),
    "a.webp": ("WEBP", 37),
    "a.png": ("PNG", 45),
    "a.avif": ("AVIF", 70),
}


def moving_picture(kind, delay):
    """Pictures are black and white by turns."""
    first, *others = (Image.new("RGB", (20, 20), (n % 2 * 255,) * 3) for n in range(20))
    out = io.BytesIO()
    more = {"lossless": True} if kind == "WEBP" else {"quality": 100} if kind == "AVIF" else {}
    first.save(out, kind, save_all=True, append_images=others, duration=delay, loop=0, **more)
    return out.getvalue()


class MovingPictures(Page):
    def open(self, path):
        if path in DELAYS:
            kind = path.rpartition(".")[2]
            return OpenAsset(io.BytesIO(moving_picture(*DELAYS[path])), f"image/{kind}")
        return super().open(path)


# What a page changes next to them, and how rarely; and pictures that it has made itself.
CHANGES = {
    "nothing": "",
    "each third frame": "requestAnimationFrame(function f(t) { "
    "b.style.left = `${100 * Math.floor(t / 100)}px`; requestAnimationFrame(f) })",
    "a canvas": "requestAnimationFrame(function f(t) { c.clearRect(0, 0, 20, 20);"
    "c.drawImage(document.images[0], 0, 0); requestAnimationFrame(f) })",
    "an animation": "b.animate({ left: ['0px', '900px'] }, { duration: 900, easing: 'steps(9)' })",
    "blob:": """addEventListener("load", () => Promise.all([...document.images].map(async (one) => {
        one.src = URL.createObjectURL(await (await fetch(one.src)).blob()) })));
      requestAnimationFrame(function f(t) { b.style.left = `${t}px`; requestAnimationFrame(f) })""",
}


@pytest.mark.parametrize("change", CHANGES)
def test_pictures_that_move_show_what_is_due(change):
    images = "".join(f"<img src={name} style='float: left'>" for name in DELAYS)
    page = MovingPictures(
        f"""<!doctype html><style>body {{ margin: 0 }} i {{ position: absolute; top: 20px; left: 0;
        width: 9px; height: 9px; background: red }}</style>{images}<i id=b></i>
        <canvas id=k width=20 height=20></canvas><script>
        const c = k.getContext("2d"); {CHANGES[change]}</script>"""
    )
    count = 40 if change == "nothing" else 12
    with Stage(page, PageView(100, 30, Fraction(30))) as stage:
        picture = None
        for i in range(count):
            picture = stage.frame(i) or picture
            grey = pixels(picture, "L")[10]
            shown = {name: grey[20 * n + 10] > 127 for n, name in enumerate(DELAYS)}
            ms = instant_us(i, Fraction(30)) / 1000
            assert shown == {name: ms // delay % 2 == 1 for name, (_, delay) in DELAYS.items()}, i
        assert stage.notes.keeps == ["an animated picture"]
