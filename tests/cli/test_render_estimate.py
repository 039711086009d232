"""`fragdex render --estimate`, `--max-seconds`, `--max-cost`: what a film costs, and its caps."""

import json

import pytest

from fragdex.cli.render_tools import Caps
from fragdex.errors import FragdexError

MOVING = """<!doctype html><style>
html { width: 160px; height: 90px; overflow: hidden } body { margin: 0; background: #000 }
p { margin: 0; width: 40px; height: 90px; background: #fff; animation: go 20s linear both }
@keyframes go { to { transform: translateX(120px) } }
</style><p></p>"""


# A second that is asked for each frame, with a second of silence in float32.
ASKED = """<!doctype html><style>body { margin: 0 } ef-timegroup { display: block; width: 64px;
height: 64px } i { position: fixed; left: 0; right: 0; bottom: 0; height: 1px }</style>
<ef-timegroup></ef-timegroup><i></i><script>
const bridge = FRAMEGEN_BRIDGE, root = document.querySelector("ef-timegroup");
root.durationMs = 1000;
bridge.onInitialize(async () => bridge.initialized());
bridge.onBeginFrame((n, last) => {
  document.querySelector("i").style.background = `rgb(0, 0, ${n})`;
  bridge.frameReady(n, new ArrayBuffer(last ? 2 * 4 * 49152 : 0));
});
</script>"""


@pytest.fixture
def page(tmp_path, chromium):
    path = tmp_path / "page.html"
    path.write_text(MOVING)
    return path


def test_what_a_film_needs_is_foreseen(call, page):
    ran = call("render", "--estimate", "page.html", "--json", "--slices", "4", "--processes", "2")
    assert (ran.code, ran.err) == (0, "")
    estimate = json.loads(ran.out)
    assert (estimate["frames"], estimate["browsers"]) == (600, 2)
    assert estimate["frames_drawn"] >= 45
    assert estimate["processor_seconds"] > 0
    assert 0 < estimate["seconds"] < estimate["seconds_with_one_browser"] + 10
    # less is not a browser, more is none of this page
    assert 30 << 20 < estimate["memory_bytes"] < 2 << 30
    assert estimate["disk_bytes"] == 2 * estimate["film_bytes"]
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]
    render = call("render", "page.html", "-o", "film.mp4", "--processes", "1", "--json")
    assert 0.2 < json.loads(render.out)["byte_size"] / estimate["film_bytes"] < 5
    ran = call("render", "--estimate", "page.html", "--duration", "0.1", "--processes", "1")
    assert "page.html: 3 frames of 160×90: about " in ran.out
    assert "with 1 browser, " in ran.out


def test_a_render_that_takes_too_long_is_ended(call, page):
    ran = call("render", "page.html", "-o", "film.mp4", "--max-seconds", "0.1")
    assert ran.code == 2
    assert "of 600 frames done (--max-seconds 0.1)" in ran.err
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]
    ran = call("render", "page.html", "-o", "film.mp4", "--max-cost", "0.1")
    assert ran.code == 2
    assert "s of processor time, with " in ran.err
    assert "of 600 frames done (--max-cost 0.1)" in ran.err
    caps = ("--max-seconds", "60", "--max-cost", "60")
    ran = call("render", "page.html", "-o", "film.mp4", "--duration", "0.1", *caps)
    assert ran.code == 0


def test_the_film_of_a_picture_that_stays_is_foreseen_by_more_than_its_first_frame(
    call, page, monkeypatch
):
    # a busy machine would see fewer places of the film
    monkeypatch.setattr("fragdex.rendering.estimate.ENOUGH_SECONDS", 600.0)
    monkeypatch.setattr("fragdex.rendering.estimate._MORE_SECONDS", 600.0)
    page.write_text("<html style='background: linear-gradient(#fff, #000)'>" + "word " * 200)
    film = ("--duration", "60", "--processes", "1", "--size", "640x360")
    estimate = json.loads(call("render", "--estimate", "page.html", "--json", *film).out)
    render = json.loads(call("render", "page.html", "-o", "film.mp4", "--json", *film).out)
    # of fifteen frames it would be three times as large
    assert 0.6 < render["byte_size"] / estimate["film_bytes"] < 1.5


def test_the_sound_of_a_page_that_is_asked_is_none_of_the_film_s_pictures(call, tmp_path, chromium):
    (tmp_path / "page.html").write_text(ASKED)
    estimate = json.loads(call("render", "--estimate", "page.html", "--json").out)
    assert estimate["frames"] == 30
    # the samples of a second are 384,000
    assert estimate["film_bytes"] < 100_000 < 384_000 < estimate["disk_bytes"]


def test_a_render_that_will_take_too_long_is_ended_early(monkeypatch):
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    steps = []
    caps = Caps(60, None, lambda done, whole: steps.append((done, whole)))
    caps(0, 10_000)
    now += 2
    caps(1, 10_000)
    now += 2.9
    caps(50, 10_000)
    now += 0.6
    with pytest.raises(FragdexError, match="all of them would take about 702 s"):
        caps(51, 10_000)
    assert steps[-1] == (51, 10_000)


def test_without_a_page_or_with_an_output_it_says_so(call, tmp_path):
    (tmp_path / "page.html").write_text(MOVING)
    ran = call("render", "--estimate", "page.html", "-o", "a.mp4")
    assert (ran.code, ran.err) == (2, "fragdex: --estimate and -o do not go together\n")
    ran = call("render", "--estimate", "--dry-run", "page.html")
    assert ran.code == 2
    assert "--dry-run and --estimate do not go together" in ran.err
