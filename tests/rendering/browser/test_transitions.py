"""View transitions begin at the frame that takes them up, in no time of the page's."""

import io
import json
from dataclasses import dataclass
from fractions import Fraction

import pytest

from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.site import OpenAsset, Page
from rendering.pages.looking import pixels

FPS = 10
VIEW = PageView(160, 60, Fraction(FPS))
STYLE = """<!doctype html><style>
body { margin: 0; background: #fff; overflow: hidden }
#box { position: absolute; left: 0; top: 20px; width: 20px; height: 20px; background: #f00 }
#box { view-transition-name: box }
#beside { position: absolute; top: 50px; width: 10px; height: 10px; background: #00f }
iframe { border: 0; width: 160px; height: 60px; display: block }
::view-transition-group(*) { animation-duration: 1s; animation-timing-function: linear }
::view-transition-old(*), ::view-transition-new(*) { animation: none }
</style>"""
BOX = "<div id=box></div><div id=beside></div>"
GO = 'const go = (x = 100) => { box.style.left = x + "px" };'
# at 450 ms, between the frames 4 and 5
AT_450 = "requestAnimationFrame(() => setTimeout(() => { %s }, 450));"
AT_FRAME_5 = """let n = 0;
requestAnimationFrame(function f() { if (n++ === 5) { %s } else requestAnimationFrame(f) });"""


@dataclass
class Case:
    """A script, and what it shows where the transition begins at 500 ms."""

    script: str
    start: float = 0.5
    body: str = BOX
    beside: bool = False

    @property
    def page(self):
        beside = 'beside.animate({ left: ["0", "100px"] }, 5000);' if self.beside else ""
        return f"{STYLE}{self.body}<script>{GO}{beside}{self.script}</script>"

    def left(self, t):
        return min(100, max(0, 100 * (t - self.start)))


START = "document.startViewTransition(() => go());"
INNER = json.dumps(STYLE + BOX + f"<script>{GO}{AT_450 % START}</script>").replace("</", "<\\/")
CASES = {
    "timer": Case(AT_450 % START),
    "timer, a page that moves": Case(AT_450 % START, beside=True),
    "frame": Case(AT_FRAME_5 % START),
    "frame, a page that moves": Case(AT_FRAME_5 % START, beside=True),
    "message": Case(
        f"const {{ port1, port2 }} = new MessageChannel(); port2.onmessage = () => {{ {START} }};"
        + AT_450 % "port1.postMessage(0)",
        beside=True,
    ),
    "fetches what it shows": Case(
        AT_450
        % "document.startViewTransition(async () => go((await (await fetch('x.json')).json()).x));",
        beside=True,
    ),
    # the page stands still meanwhile, as in any browser
    "waits for a timer": Case(
        AT_450
        % """document.startViewTransition(async () => {
        await new Promise((done) => setTimeout(done, 300)); go();
        });""",
        start=0.8,
        beside=True,
    ),
    "element": Case(
        AT_450 % "(part.startViewTransition ? part : document).startViewTransition(() => go());",
        body=f'<div id=part style="height: 60px">{BOX}</div>',
        beside=True,
    ),
    "iframe": Case(
        f'document.querySelector("iframe").srcdoc = {INNER}',
        body="<iframe></iframe>",
    ),
}


class Files(Page):
    """A page, and a file that it fetches."""

    def open(self, path):
        if path == "x.json":
            return OpenAsset(io.BytesIO(b'{"x": 100}'), "application/json")
        return super().open(path)


def red(picture):
    """(left edge, width) of the box; None where it is not there."""
    line = pixels(picture)[30]
    (columns,) = ((line[:, 0] > 200) & (line[:, 1] < 60)).nonzero()
    return (int(columns[0]), int(columns[-1] - columns[0]) + 1) if len(columns) else None


def wrong(stage, left, frames=range(20)):
    """(frame, wanted, found) of what is shown wrongly.

    A frame that is drawn again may be a step of the browser's clocks later: a hundredth of a pixel.
    """
    wrong_frames, picture = [], None
    for i in frames:
        picture = stage.frame(i) or picture
        shown, wanted = red(picture), left(i / FPS)
        if shown is None or abs(shown[0] - wanted) > 1.1 or shown[1] != 20:
            wrong_frames.append((i, wanted, shown))
    return wrong_frames


@pytest.mark.parametrize("name", CASES)
def test_a_transition_begins_with_the_next_frame(name):
    case = CASES[name]
    with Stage(Files(case.page), VIEW) as stage:
        assert wrong(stage, case.left) == []
        assert stage.notes.console == []
        assert stage.notes.keeps == ["a view transition"]


@pytest.mark.parametrize("name", ["timer", "frame, a page that moves"])
def test_a_browser_without_frames_on_request_begins_it_there_too(name):
    case = CASES[name]
    with Stage(Page(case.page), VIEW, begin_frames=False) as stage:
        assert wrong(stage, case.left, range(12)) == []


@pytest.mark.parametrize(
    ("case", "start"),
    [
        (Case(AT_450.replace("450", "440") % START), 27 / 60),
        (CASES["frame, a page that moves"], 5 / 60),
    ],
    ids=["timer", "frame"],
)
def test_a_page_that_is_called_between_frames_has_its_transitions_begin_there(case, start):
    """The first call after 440 ms, or the sixth."""
    with Stage(Page(case.page), PageView(160, 60, Fraction(FPS), page_fps=Fraction(60))) as stage:
        assert wrong(stage, lambda t: min(100, max(0, 100 * (t - start)))) == []


def test_a_transition_that_follows_another_begins_where_that_ended():
    script = AT_450 % (
        "document.startViewTransition(() => go()).finished.then(() => "
        "document.startViewTransition(() => go(0)))"
    )
    with Stage(Page(Case(script).page), VIEW) as stage:
        assert wrong(stage, lambda t: max(0, 100 - abs(100 * (t - 1.5))), range(25)) == []


def test_a_page_that_counts_its_frames_counts_one_where_a_transition_begins():
    script = """let calls = 0; requestAnimationFrame(function f() {
      calls += 1; requestAnimationFrame(f); });"""
    with Stage(Page(Case(script + AT_450 % START).page), VIEW) as stage:
        for i in range(10):
            stage.frame(i)
        assert stage.evaluate("calls") == 10
        assert stage.evaluate("performance.now()") == pytest.approx(900, abs=0.01)


@pytest.mark.parametrize(
    "script",
    [
        "document.startViewTransition(() => go(50)); document.startViewTransition(() => go());",
        "document.startViewTransition(() => go()).skipTransition();",
        "document.startViewTransition({ update: () => go(), types: ['a'] }).skipTransition();",
    ],
)
def test_a_transition_that_is_skipped_says_so_as_in_any_browser(script):
    with Stage(Page(Case(AT_450 % script).page), VIEW) as stage:
        for i in range(17):
            stage.frame(i)
        assert stage.evaluate("box.style.left") == "100px"
        (line,) = stage.notes.console
        assert line.startswith("error: AbortError: Transition was skipped")


def test_nobody_hears_of_a_skipped_transition_that_the_page_looks_after():
    script = "const one = document.startViewTransition(() => go()); one.ready.catch(() => {});"
    with Stage(Page(Case(AT_450 % f"{script} one.skipTransition();").page), VIEW) as stage:
        assert wrong(stage, lambda t: 100 * (t > 0.45)) == []
        assert stage.notes.console == []


def test_a_transition_whose_change_fails_is_the_pages_own_fault():
    script = AT_450 % "document.startViewTransition(() => { throw new Error('no change') });"
    with Stage(Page(Case(script).page), VIEW) as stage:
        for i in range(9):
            stage.frame(i)
        (line,) = stage.notes.console
        assert "no change" in line


def test_what_is_no_change_is_refused_as_in_any_browser():
    script = AT_450 % "document.startViewTransition({ update: 5 });"
    with Stage(Page(Case(script).page), VIEW) as stage:
        for i in range(9):
            stage.frame(i)
        (line,) = stage.notes.console
        assert "TypeError" in line
