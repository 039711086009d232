"""What published libraries play on a page is heard: they part contexts by what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from rendering.page_media.films import beeps, onsets

LIBRARIES = Path(__file__).parent / "node" / "node_modules"
TONE = LIBRARIES / "tone" / "build" / "Tone.js"
HOWLER = LIBRARIES / "howler" / "dist" / "howler.min.js"


@pytest.fixture
def tone(show):
    """Opens a page with Tone.js."""
    if not TONE.exists():
        pytest.skip("tone is missing: ./dev setup installs it where npm is there")
    data = TONE.read_bytes()
    return lambda script: show(
        f"<script src=tone.js></script><script>{script}</script>", {"tone.js": data}
    )


def test_notes_of_Tone_are_heard(tone):
    page = tone("""
    const synth = new Tone.Synth({ envelope: { attack: .001, release: .01 } }).toDestination();
    fragdex = { ready: Tone.start().then(() => {
      for (const at of [.25, .75, 1.25]) synth.triggerAttackRelease("A4", .1, at);
    }) };
    """)
    page.frames(0, 60)
    assert page.stage.notes.console == []
    assert page.ask("[Tone.getContext().isOffline, Tone.getContext().state]") == [False, "running"]
    assert onsets(page.sound(0, 60), 0.02) == pytest.approx([0.25, 0.75, 1.25], abs=0.005)


@pytest.mark.parametrize("source", ["worker", "timeout"])
def test_the_transport_of_Tone_follows_the_page(tone, source):
    """By itself it ticks in a worker."""
    page = tone(
        f"""
    Tone.setContext(new Tone.Context({{ clockSource: "{source}" }}));
    """
        """
    const synth = new Tone.Synth({ envelope: { attack: .001, release: .01 } }).toDestination();
    fragdex = { ready: Tone.start().then(() => {
      const transport = Tone.getTransport();
      transport.bpm.value = 120;
      new Tone.Loop((time) => synth.triggerAttackRelease("A4", .1, time), "4n").start(0);
      transport.start(.2);
    }) };
    """
    )
    page.frames(0, 60)
    assert page.stage.notes.console == []
    heard = onsets(page.sound(0, 60), 0.02)
    assert heard == pytest.approx([0.2, 0.7, 1.2, 1.7], abs=0.005)


@pytest.mark.parametrize("html5", ["false", "true"], ids=["WebAudio", "element"])
def test_sounds_of_Howler_are_heard(show, html5):
    if not HOWLER.exists():
        pytest.skip("howler is missing: ./dev setup installs it where npm is there")
    script = f"""
    const sound = new Howl({{ src: ["beeps.wav"], html5: {html5} }});
    let playing;
    fragdex = {{ ready: new Promise((done) => sound.once("load", done)).then(() => {{
      playing = sound.play();
      setTimeout(() => sound.pause(playing), 1000);
    }}) }};
    """
    page = show(
        f"<script src=howler.js></script><script>{script}</script>",
        {"howler.js": HOWLER.read_bytes(), "beeps.wav": beeps(seconds=2)},
    )
    page.frames(0, 60)
    assert page.stage.notes.console == []
    assert onsets(page.sound(0, 60)) == pytest.approx([0.5], abs=0.005)
