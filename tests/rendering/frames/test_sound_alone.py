"""A sound alone is that of the film, though no picture is taken."""

from fractions import Fraction

import numpy as np
import pytest

from fragdex.rendering.browser.model import PageView
from fragdex.rendering.browser.stage import Stage
from fragdex.rendering.outputs import Film
from fragdex.rendering.page_media.opening import Opener
from fragdex.rendering.page_media.player import Player
from fragdex.rendering.render import render
from fragdex.rendering.site import NOTHING, Page
from fragdex.rendering.spec import RenderSpec
from rendering.frames.numbers import numbers_page
from rendering.frames.test_ranges import EXACT, heard, noisy

pytestmark = pytest.mark.usefixtures("chromium")

RATE = Fraction(30)
GRAPH = """<script>
const context = new AudioContext(), gain = new GainNode(context, { gain: 0.1 });
const tone = new OscillatorNode(context, { frequency: 440 });
tone.connect(gain).connect(context.destination);
tone.start();
let n = 0;
requestAnimationFrame(function turn() {
  gain.gain.value = 0.1 + 0.05 * (n++ % 5);
  requestAnimationFrame(turn);
});
</script>"""
# What is asked for each moment plays by it.
SOUGHT = """<script>
window.fragdex = { seek: (ms) => {
  for (const beep of document.querySelectorAll("audio")) beep.volume = ms > 400 ? 1 : 0.2;
} };
</script>"""


@pytest.mark.parametrize("more", [GRAPH, SOUGHT], ids=["graph", "sought"])
def test_it_is_what_the_film_plays(tmp_path, more):
    site = Page(noisy(RATE).read("").data.decode() + more)
    film, sound, part = (tmp_path / name for name in ("a.mkv", "a.wav", "b.wav"))
    render(site, RenderSpec(320, 180, RATE, 1200, film=EXACT), film, slices=1)
    rendered = render(site, RenderSpec(320, 180, RATE, 1200, film=Film("wav")), sound)
    assert (rendered.frames, rendered.seconds, rendered.sound, len(rendered.slices)) == (
        36,
        1.2,
        True,
        1,
    )
    assert (heard(sound) == heard(film)).all()
    wanted = RenderSpec(320, 180, RATE, 1200, film=Film("wav"), from_ms=500, to_ms=900)
    render(site, wanted, part)
    if more is GRAPH:
        assert len(heard(part)) == 0.4 * 48_000
        # graphs are heard to the last 128 samples that are whole
        whole = 43_200 // 128 * 128 - 24_000
        assert (heard(part)[:whole] == heard(film)[24_000:][:whole]).all()


def test_graphs_are_heard_to_the_end_and_in_slices_as_in_one(tmp_path):
    """Timers and frames change them; 37 frames do not end where 128 samples do."""
    timer = "<script>setInterval(() => { tone.frequency.value += 20 }, 45)</script>"
    site = Page(numbers_page(RATE) + GRAPH + timer)
    sounds = []
    for slices in (1, 4):
        path = tmp_path / f"{slices}.mkv"
        wanted = RenderSpec(320, 180, RATE, 1234, film=EXACT)
        assert len(render(site, wanted, path, slices=slices, jobs=2).slices) == slices
        sounds.append(heard(path))
    whole, parts = sounds
    assert len(whole) == len(parts) == 37 * 1600
    assert (whole == parts).all()
    # it goes on after the last frame was drawn, to the last 128 samples that are whole
    assert np.abs(whole[36 * 1600 : -160]).max() > 0.05
    assert np.flatnonzero(whole)[-1] >= 37 * 1600 - 129


def test_a_browser_without_frames_on_request_is_heard_alike():
    site = noisy(RATE)
    strips = []
    for begin_frames in (True, False):
        player = Player(RATE, Opener(site, NOTHING))
        view = PageView(320, 180, RATE)
        with Stage(site, view, media=player, begin_frames=begin_frames) as stage:
            for i in range(6):
                stage.pass_by(i)
            (strip,) = player.sound(0, 6)
            strips.append((strip.start, strip.stop, strip.media_start))
    assert strips == [(0.0, 0.2, 0.0)] * 2
