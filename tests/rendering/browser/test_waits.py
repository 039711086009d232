"""Pages that are waited for: what `fragdex.seek` and `fragdex.ready` await comes, at no time."""

import io

import pytest
from PIL import Image

from fragdex.errors import PageFailed
from fragdex.rendering.browser.model import Limits, PageView, instant_us
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.site import Folder
from rendering.pages.looking import red_square

SMALL = PageView(320, 180)
CLOCKS = pytest.mark.parametrize("begin_frames", [True, False], ids=["virtual", "injected"])
ONE_CLOCK = pytest.mark.parametrize(
    "begin_frames",
    [
        pytest.param(True, id="virtual"),
        pytest.param(False, id="injected", marks=pytest.mark.nightly),
    ],
)
"""For what a seek waits for by both clocks."""

# A red square that `show` puts somewhere, and a blue one that an animation moves.
PAGE = """<!doctype html><meta charset=utf-8><style>
  html, body { margin: 0; background: #fff }
  div { position: absolute; left: 0; width: 40px; height: 40px }
  #box { top: 100px; background: #f00 }
  #moved { top: 0; background: #00f; animation: move 10s linear }
  @keyframes move { to { left: 1000px } }
</style><div id=box></div><div id=moved></div><script>
  const show = (ms) => { box.style.left = ms / 10 + "px" };
  const frame = () => new Promise(requestAnimationFrame);
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const loops = (most) => new Promise((done) => {
    let count = 0;
    requestAnimationFrame(function look() {
      count += 1;
      if (count === most) done(); else requestAnimationFrame(look);
    });
  });
  const file = async (name) => {
    const answer = await fetch(name);
    if (!answer.ok) throw new Error(answer.status);
    return answer;
  };
  const picture = async () => {
    const image = new Image();
    image.src = "picture.png?" + Math.random();
    await image.decode();
  };
  const bitmap = async () => createImageBitmap(await (await file("picture.png")).blob());
  const message = () => new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = done;
    port2.postMessage(0);
  });
  const worker = () => new Promise((done) => {
    const text = new Blob(["postMessage(1)"], { type: "text/javascript" });
    new Worker(URL.createObjectURL(text)).onmessage = done;
  });
  let frames = 0;
  requestAnimationFrame(function count() { frames += 1; requestAnimationFrame(count) });
  SCRIPT
</script>"""

WAITS = {
    "a frame": "await frame()",
    "two frames": "await frame(); await frame()",
    "many frames": "await loops(5)",
    "a timer of 0 ms": "await wait(0)",
    "a timer of 50 ms": "await wait(50)",
    "timers and frames": "await wait(2); await frame(); await wait(40); await frame()",
    "a file": "await (await file('data.json')).json()",
    "a picture": "await picture()",
    "a bitmap": "await bitmap()",
    "a bitmap, then a frame": "await bitmap(); await frame()",
    "a message": "await message()",
    "a worker": "await worker()",
}
# These need frames that the browser draws.
DRAWN = {
    "an animation": "await box.animate([], { duration: 30 }).finished",
    "an observer": "await new Promise((done) => new ResizeObserver(done).observe(box))",
}

# What the clocks tell, and where the animation is.
TOLD = "[performance.now(), Date.now(), moved.getAnimations()[0].currentTime]"


@pytest.fixture
def staged(tmp_path):
    """Opens the page with a script."""
    file = io.BytesIO()
    Image.new("RGB", (640, 480), "green").save(file, "PNG")
    (tmp_path / "picture.png").write_bytes(file.getvalue())
    (tmp_path / "data.json").write_text('{"speed": 100}')

    def stage(script, **how):
        (tmp_path / "index.html").write_text(PAGE.replace("SCRIPT", script))
        return Stage(Folder(tmp_path), SMALL, **how)

    return stage


def seeking(wait):
    return f"window.fragdex = {{ seek: async (ms) => {{ {wait}; show(ms) }} }};"


@CLOCKS
def test_a_seek_is_given_what_it_waits_for(staged, begin_frames):
    """Each frame waits for something else, after what the last one left behind; three times."""
    waits = WAITS | DRAWN
    script = f"""
      const waits = [{", ".join(f"async () => {{ {wait} }}" for wait in waits.values())}];
      window.fragdex = {{ seek: async (ms) => {{
        await waits[Math.round(ms * 30 / 1000) % waits.length]();
        show(ms);
      }} }};"""
    clocks = []
    with staged(script, begin_frames=begin_frames) as stage:
        whole = []
        for i in range(3 * len(waits)):
            whole.append(stage.frame(i))
            clocks.append(stage.evaluate(TOLD))
        assert stage.notes.console == []
    for i, picture in enumerate(whole):
        ms = instant_us(i, SMALL.fps) / 1000
        name = list(waits)[i % len(waits)]
        assert abs(red_square(picture)[0] - ms / 10) <= 1, name
        # whatever was waited for, the frame is at its time
        assert clocks[i][1] == 1_700_000_000_000 + int(ms), name
        assert clocks[i][::2] == pytest.approx([i * 1000 / 30, ms], abs=0.01), name
    with staged(script, begin_frames=begin_frames) as stage:
        for first in range(5, len(whole), 10):
            stage.skip(first - 5, first)
            assert [stage.frame(first + i) for i in range(5)] == whole[first : first + 5]


# Loops of all kinds: each counts its frames.
LOOPS = """
  const counts = Object.fromEntries(["one", "anew", "bound", "method"].map((name) => [name, 0]));
  requestAnimationFrame(function each() { counts.one += 1; requestAnimationFrame(each) });
  const anew = () => { counts.anew += 1; requestAnimationFrame(() => anew()) };
  requestAnimationFrame(() => anew());
  function again() { this.bound += 1; requestAnimationFrame(again.bind(this)) }
  requestAnimationFrame(again.bind(counts));
  class Player { play() { requestAnimationFrame(() => { counts.method += 1; this.play() }) } }
  new Player().play();
"""
WORKING = "new Worker(URL.createObjectURL(new Blob(['onmessage = postMessage'])));"


@CLOCKS
@pytest.mark.parametrize(
    "script",
    [
        "",
        f"const one = {WORKING} one.onmessage = () => one.postMessage(0); one.postMessage(0);",
        "fragdex = { ready: (async () => { await wait(50); await frame(); await frame() })() };",
        "fragdex = { seek: async () => { await bitmap(); await frame(); await frame() } };",
    ],
    ids=["alone", "beside a worker", "while ready waits", "while seek waits"],
)
def test_loops_of_any_kind_are_called_once_a_frame(staged, script, begin_frames):
    """They do not see the frames that only a promise of the page is given."""
    with staged(f"{LOOPS} {script}", begin_frames=begin_frames) as stage:
        shown = []
        for i in range(5):
            stage.frame(i)
            shown.append(stage.evaluate("[...new Set(Object.values(counts))]"))
    # before time 0 they have one frame, where the page awaits any
    before = "ready" in script
    assert shown == [[before + i + 1] for i in range(5)]


@pytest.fixture(scope="module")
def large_picture():
    file = io.BytesIO()
    Image.effect_noise((5000, 5000), 90).save(file, "PNG", compress_level=1)
    return file.getvalue()


@CLOCKS
@pytest.mark.parametrize("wait", ["await bitmap()", "await Promise.all([bitmap(), frame()])"])
def test_however_long_the_machine_works_no_frame_is_given_to_loops(
    staged, tmp_path, large_picture, wait, begin_frames
):
    (tmp_path / "picture.png").write_bytes(large_picture)
    script = seeking(f"{wait}; await frame(); await frame()")
    with staged(script, begin_frames=begin_frames) as stage:
        counts = []
        for i in range(3):
            stage.frame(i)
            counts.append(stage.evaluate("frames"))
    assert counts == [1, 2, 3]


@CLOCKS
def test_timers_go_on_after_a_seek_that_waits(staged, begin_frames):
    script = "setTimeout(() => { window.rang = performance.now() }, 150);" + seeking(
        "await frame()"
    )
    with staged(script, begin_frames=begin_frames) as stage:
        for i in range(8):
            stage.frame(i)
        assert stage.evaluate("rang") == pytest.approx(150, abs=6)


@CLOCKS
def test_a_seek_that_never_answers_fails_and_says_what_the_page_said(staged, begin_frames):
    script = seeking("console.error('still thinking'); await new Promise(() => 0)")
    with staged(script, begin_frames=begin_frames, limits=Limits(ready_ms=400)) as stage:
        with pytest.raises(PageFailed, match=r"seek\(0.0\).* after 400 ms") as caught:
            stage.frame(0)
        assert caught.value.more["console"] == ["error: still thinking"]


@CLOCKS
@pytest.mark.parametrize(
    "seek",
    [
        "async () => { await frame(); throw new Error('no such moment') }",
        "() => { throw new Error('no such moment') }",
        "() => Promise.reject(new Error('no such moment'))",
    ],
    ids=["rejects later", "throws", "rejects"],
)
def test_a_seek_that_fails_says_why(staged, seek, begin_frames):
    script = f"console.error('was asked'); window.fragdex = {{ seek: {seek} }}"
    with staged(script, begin_frames=begin_frames) as stage:
        with pytest.raises(PageFailed, match=r"seek.*no such moment") as caught:
            stage.frame(0)
        assert "error: was asked" in caught.value.more["console"]


def test_what_a_seek_answers_is_of_no_interest(staged):
    with staged("window.fragdex = { seek: (ms) => { show(ms); return window } }") as stage:
        assert red_square(stage.frame(3))[0] == 10


@ONE_CLOCK
@pytest.mark.parametrize("wait", WAITS)
def test_ready_is_given_what_it_waits_for(staged, wait, begin_frames):
    script = f"window.fragdex = {{ ready: (async () => {{ {WAITS[wait]}; show(50) }})() }};"
    with staged(script, begin_frames=begin_frames) as stage:
        whole = []
        for i in range(4):
            whole.append(stage.frame(i))
            # time 0 is when it is ready: nothing has moved before
            ms = instant_us(i, SMALL.fps) / 1000
            clocks = [i * 1000 / 30, 1_700_000_000_000 + int(ms), ms]
            assert stage.evaluate(TOLD) == pytest.approx(clocks, abs=0.01)
        assert stage.notes.console == []
    assert red_square(whole[0])[0] == 5
    with staged(script, begin_frames=begin_frames) as stage:
        stage.skip(0, 2)
        assert [stage.frame(2), stage.frame(3)] == whole[2:]


@CLOCKS
@pytest.mark.parametrize(
    ("ready", "why"),
    [
        ("new Promise(() => 0)", "not ready after 300 ms"),
        ("frame().then(() => { throw new Error('no data') })", "will not be ready.*no data"),
        ("Promise.reject(new Error('no data'))", "will not be ready.*no data"),
    ],
    ids=["never", "rejects later", "rejects"],
)
def test_a_page_that_is_not_ready_says_why(staged, ready, why, begin_frames):
    script = f"console.error('loading'); window.fragdex = {{ ready: {ready} }}"
    with pytest.raises(PageFailed, match=why) as caught:
        staged(script, begin_frames=begin_frames, limits=Limits(ready_ms=300))
    assert "error: loading" in caught.value.more["console"]


@CLOCKS
def test_ready_may_wait_for_the_clock_of_the_page(staged, begin_frames):
    loops = [
        f"begun = {now}(); while ({now}() < begun + 60) await {wait};"
        for now in ("performance.now", "Date.now")
        for wait in ("wait(10)", "frame()")
    ]
    script = f"""
      const waits = async () => {{ let begun; {" ".join(loops)} show(50) }};
      window.fragdex = {{ ready: waits() }};"""
    with staged(script, begin_frames=begin_frames) as stage:
        assert red_square(stage.frame(0))[0] == 5
        assert stage.evaluate("performance.now()") == pytest.approx(0, abs=0.01)
