"""Workers follow the clock of their page, in every run and in slices."""

from dataclasses import replace
from fractions import Fraction

import pytest

from fragdex.errors import PageFailed
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.plan import one_browser_notes
from fragdex.rendering.render import render
from fragdex.rendering.site import Page
from fragdex.rendering.spec import RenderSpec
from rendering.pages.looking import pixels, red_square

CLOCKS = pytest.mark.parametrize("begin_frames", [True, False], ids=["virtual", "injected"])
SMALL = PageView(160, 90, Fraction(10))

# `heard` has what the worker told, each with the time of the page at which it came.
PAGE = """<!doctype html><style>html, body {{ margin: 0; background: #fff }}</style>
<div style="position:absolute;width:20px;height:20px;background:#f00"></div><script>
  const sleep = "const sleep = (ms) => new Promise((done) => setTimeout(done, ms));";
  const source = sleep + `{script}`;
  const worker = new Worker(URL.createObjectURL(new Blob([source])));
  const [box] = document.querySelectorAll("div");
  window.heard = [];
  worker.onmessage = ({{ data }}) => {{
    heard.push([data, performance.now()]);
    box.style.left = 5 * heard.length + "px";
    worker.postMessage(data);
  }};
  window.fragdex = {{ duration: 1000 }};
</script>"""


def about(times):
    """The page's clocks tell a little more than the time, so that none is 0."""
    return pytest.approx(times, abs=0.01)


def heard(script, frames=6, begin_frames=True, view=SMALL):
    """What the page has heard of its worker until a frame at 10 a second."""
    with Stage(Page(PAGE.format(script=script)), view, begin_frames=begin_frames) as stage:
        for i in range(frames):
            stage.frame(i)
        return stage.evaluate("heard")


@CLOCKS
def test_timers_of_a_worker_ring_in_the_pages_time(begin_frames):
    messages = heard(
        "setInterval(() => postMessage([performance.now(), Date.now() - 1.7e12]), 40);",
        begin_frames=begin_frames,
    )
    assert [one[0] for one, _ in messages] == about([40 * n for n in range(1, 13)])
    assert [one[1] for one, _ in messages] == [40 * n for n in range(1, 13)]
    # what was due before a frame has come when it is drawn
    assert [came for _, came in messages] == about([100 * -(-40 * n // 100) for n in range(1, 13)])


@CLOCKS
@pytest.mark.timeout(120)
def test_a_worker_that_does_not_run_yet_is_not_waited_for(begin_frames, monkeypatch):
    """It was asked for its time while it was stopped, and the whole patience passed in vain."""
    monkeypatch.setattr("fragdex.rendering.browser.worker_clocks._PATIENCE_SECONDS", 1000)
    assert heard("postMessage(7);", frames=2, begin_frames=begin_frames)[0][0] == 7


@CLOCKS
def test_frames_of_a_worker_come_as_often_as_those_of_the_page(begin_frames):
    messages = heard(
        "requestAnimationFrame(function f(t) { postMessage(t); requestAnimationFrame(f) });",
        begin_frames=begin_frames,
        view=replace(SMALL, page_fps=Fraction(30)),
    )
    # to the 0.1 ms of the page's clocks
    assert [one for one, _ in messages] == pytest.approx([100 * n / 3 for n in range(16)], abs=0.11)
    assert [came for _, came in messages] == pytest.approx([one for one, _ in messages], abs=0.01)


def test_what_a_timer_has_promised_happens_before_the_next_one():
    script = "(async () => { for (;;) { await sleep(30); postMessage(performance.now()); } })();"
    assert [one for one, _ in heard(script)] == about([30 * n for n in range(1, 17)])


def test_page_and_worker_answer_one_another_before_the_frame():
    script = """
      setInterval(() => postMessage("tick"), 100);
      onmessage = ({ data }) => { if (data === "tick") postMessage(performance.now()); };
    """
    messages = heard(script)
    assert [one for one, _ in messages[::2]] == ["tick"] * 5
    assert [one for one, _ in messages[1::2]] == about([100 * n for n in range(1, 6)])
    assert [came for _, came in messages] == about([100 * n for n in range(1, 6) for _ in range(2)])


@CLOCKS
def test_timers_without_end_end_with_the_frame(begin_frames):
    script = "let n = 0; const go = () => { n += 1; setTimeout(go, 0) }; go();"
    script += "setInterval(() => postMessage(n), 100);"
    messages = heard(script, begin_frames=begin_frames)
    assert len(messages) == 5
    assert messages[-1][0] <= 600


def test_a_worker_that_waits_for_the_clock_to_move_sees_it_move():
    script = (
        "const began = performance.now(); while (performance.now() < began + 3); postMessage(1)"
    )
    assert heard(script)


def test_a_worker_that_computes_is_waited_for_once_and_not_for_ever():
    script = "setTimeout(() => { for (;;); }, 50); setTimeout(() => postMessage(1), 20);"
    ((message, came),) = heard(script, frames=20)
    assert (message, came) == (1, about(100))


def test_a_worker_that_ends_is_forgotten():
    assert heard("postMessage(1); close();")


CANVAS = """<!doctype html><style>html, body {{ margin: 0; background: #fff }}</style>
<canvas width=320 height=180 style="display: block"></canvas><script>
  const source = `
    onmessage = ({{ data }}) => {{
      if (typeof data === "number") {{ globalThis.shown = data; globalThis.told?.(); return; }}
      const pen = data.getContext("2d");
      const draw = (x) => {{
        pen.clearRect(0, 0, 320, 180);
        pen.fillStyle = "#f00";
        pen.fillRect(x, 100, 40, 40);
      }};
      {script}
    }};`;
  const canvas = document.querySelector("canvas").transferControlToOffscreen();
  const worker = new Worker(URL.createObjectURL(new Blob([source])));
  worker.postMessage(canvas, [canvas]);
  requestAnimationFrame(function tell(ms) {{
    worker.postMessage(ms);
    requestAnimationFrame(tell);
  }});
</script>"""


OWN = """<!doctype html><style>body { margin: 0 } canvas { display: block }</style>
<canvas width=320 height=90></canvas><canvas width=320 height=90></canvas><script>
  const [pen, gl] = [...document.querySelectorAll("canvas")].map((one, i) =>
    one.transferControlToOffscreen().getContext(i ? "webgl" : "2d"));
  gl.enable(gl.SCISSOR_TEST);
  const rect = (x, wide, blue) => { gl.scissor(x, 0, wide, 90); gl.clearColor(1, blue, blue, 1);
    gl.clear(gl.COLOR_BUFFER_BIT) };
  requestAnimationFrame(function go(ms) {
    pen.fillStyle = "#fff"; pen.fillRect(0, 0, 320, 90);
    pen.fillStyle = "#f00"; pen.fillRect(ms / 10, 0, 40, 90);
    rect(0, 320, 1); rect(Math.round(ms / 10), 40, 0);
    requestAnimationFrame(go);
  });
</script>"""


@CLOCKS
def test_a_canvas_that_was_given_away_and_is_drawn_by_the_page_itself_is_seen(begin_frames):
    view = PageView(320, 180, Fraction(10))
    with Stage(Page(OWN), view, begin_frames=begin_frames) as stage:
        for i in range(8):
            shown = pixels(stage.frame(i))
            red = [int((shown[row, :, 1] < 60).argmax()) for row in (45, 135)]
            assert red == [10 * i, 10 * i], i


@CLOCKS
@pytest.mark.parametrize(
    "script",
    [
        "requestAnimationFrame(function go(ms) { draw(ms / 10); requestAnimationFrame(go); });",
        "draw(0); setInterval(() => draw(performance.now() / 10), 100);",
        # told by the page in its own frame
        "globalThis.told = () => draw(globalThis.shown / 10);",
    ],
    ids=["frames", "timer", "messages"],
)
def test_what_a_worker_draws_is_seen_in_its_frame(script, begin_frames):
    page, view = Page(CANVAS.format(script=script)), PageView(320, 180, Fraction(10))
    with Stage(page, view, begin_frames=begin_frames) as stage:
        stage.frame(0)
        stage.skip(1, 3)
        lefts = [red_square(stage.frame(i))[0] for i in range(3, 12)]
    assert lefts == [10 * i for i in range(3, 12)]


GIVEN = """<!doctype html>
<style>body {{ margin: 0; background: #fff }} canvas {{ display: block }}</style>
<canvas width=320 height=180></canvas><script>
const source = `onmessage = ({{ data }}) => {{
  const pen = data.getContext("2d");
  pen.fillStyle = "#f00";
  const draw = () => {{
    pen.clearRect(0, 0, 320, 180);
    pen.fillRect(performance.now() / 10, 100, 40, 40);
  }};
  setTimeout(() => {{ draw(); setInterval(draw, 100) }}, {later});
}}`;
const worker = new Worker(URL.createObjectURL(new Blob([source])));
const give = () => {{
  const canvas = document.querySelector("canvas").transferControlToOffscreen();
  worker.postMessage(canvas, [canvas]);
}};
{given}
</script>"""


@CLOCKS
@pytest.mark.parametrize(
    ("given", "later"),
    [
        ("give();", 300),
        ("setTimeout(give, 300);", 0),
        ("setTimeout(() => requestAnimationFrame(give), 250);", 0),
    ],
    ids=["at once", "in a timer", "in a frame"],
)
def test_a_canvas_is_seen_whenever_it_is_given_away(given, later, begin_frames):
    """Nothing else on the page changes, before that or after."""
    page, view = Page(GIVEN.format(given=given, later=later)), PageView(320, 180, Fraction(10))
    with Stage(page, view, begin_frames=begin_frames) as stage:
        pictures = [stage.frame(i) for i in range(10)]
    first = 4  # a tick of the worker after it got the canvas
    assert [red_square(one)[0] for one in pictures[first:]] == [10 * i for i in range(first, 10)]


@pytest.mark.parametrize("slices", [1, 3])
def test_a_page_that_a_worker_leads_is_the_same_in_slices(tmp_path, slices):
    page = Page(PAGE.format(script="setInterval(() => postMessage(1), 70);"))
    films = []
    for name in ("a.mp4", "b.mp4"):
        out = tmp_path / name
        film = render(page, RenderSpec(160, 90, Fraction(10)), out, slices=slices if films else 1)
        assert not one_browser_notes(film.notes.as_json())
        films.append(out.read_bytes())
    assert slices > 1 or films[0] == films[1]


# (module (import "e" "m" (memory 1 1 shared)) (func (export "f") …)): adds 1 to the first word.
ADDING = (
    "0061736d01000000" "010401600000" "0209010165016d02030101" "03020100" "0705010166" "0000"
    "0a0d010b0041004101fe1e02001a0b"
)  # fmt: skip
THREADS = """<!doctype html>META<body><script>
const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
const code = Uint8Array.from("ADDING".match(/../g), (byte) => parseInt(byte, 16));
const script = new Blob([`onmessage = async ({ data: [code, memory] }) => {
  const words = new Int32Array(memory.buffer);
  const { instance } = await WebAssembly.instantiate(code, { e: { m: memory } });
  Atomics.wait(words, 1, 0);
  for (let i = 0; i < 1e5; i += 1) instance.exports.f();
  Atomics.add(words, 2, 1);
  Atomics.notify(words, 2);
  postMessage([crossOriginIsolated, typeof SharedArrayBuffer]);
  Atomics.wait(words, 3, 0); // for ever
}`]);
const words = new Int32Array(memory.buffer), told = [];
const run = async () => {
  if (!crossOriginIsolated) throw new Error("not isolated");
  for (let i = 0; i < 4; i += 1) {
    const worker = new Worker(URL.createObjectURL(script));
    worker.onmessage = ({ data }) => told.push(String(data));
    worker.postMessage([code, memory]);
  }
  await new Promise((done) => setTimeout(done, 20));
  Atomics.store(words, 1, 1);
  Atomics.notify(words, 1);
  for (let n; (n = Atomics.load(words, 2)) < 4;) {
    Atomics.notify(words, 1);
    const pause = new Promise((done) => setTimeout(done, 1));
    await Promise.race([Atomics.waitAsync(words, 2, n).value, pause]);
  }
  document.body.style.background = `rgb(${words[0] % 251}, 9, 9)`;
};
window.fragdex = { ready: run() };
</script>"""


def test_a_page_that_asks_shares_memory_with_threads():
    """Threads of WebAssembly; those that wait for ever hold nothing up."""
    page = THREADS.replace("ADDING", ADDING)
    asking = Page(page.replace("META", '<meta name="fragdex:cross-origin-isolated">'))
    runs = []
    for _ in range(2):
        with Stage(asking, SMALL) as stage:
            runs.append([stage.frame(i) for i in range(4)])
            assert stage.notes.console == []
            assert stage.evaluate("words[0]") == 400_000
            assert stage.evaluate("told") == ["true,function"] * 4
    assert runs[0] == runs[1]
    with (
        pytest.raises(PageFailed, match="not isolated"),
        Stage(Page(page.replace("META", "")), SMALL),
    ):
        pass
