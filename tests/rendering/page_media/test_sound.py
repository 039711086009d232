"""What a page plays is heard when it plays it, as loud and as fast, in one piece or in slices."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from rendering.page_media.films import RATE, beeps, onsets, wav

ONE_SAMPLE = 1.5 / RATE


def tone(frequency, seconds):
    return wav(np.sin(2 * np.pi * frequency * np.arange(int(seconds * RATE)) / RATE) * 0.5)


def pitch(sound):
    spectrum = np.abs(np.fft.rfft(sound[:, 0] * np.hanning(len(sound))))
    return spectrum.argmax() * RATE / len(sound)


def played(page, seconds):
    """Lets a page pass, and hears it."""
    frames = round(seconds * page.fps)
    page.stage.skip(0, frames)
    return page.sound(0, frames)


def test_sound_begins_stops_and_goes_on_when_the_page_says(show):
    html = """<audio id=a src=a.wav></audio><script>
    at(300, () => a.play());
    at(1000, () => a.pause());
    at(2000, () => { a.currentTime = .25; a.play() })</script>"""
    page = show(html, {"a.wav": beeps(3)})
    sound = played(page, 4)
    # 0.5 s into the sound at 0.3 s; once more from 0.25 s at 2 s, and the beep of 1.5 s
    assert onsets(sound) == pytest.approx([0.8, 2.25, 3.25], abs=ONE_SAMPLE)
    assert len(sound) == 4 * RATE
    assert not sound[RATE : 2 * RATE].any()


@pytest.mark.parametrize("fps", [Fraction(30), Fraction(30000, 1001), Fraction(12)])
def test_autoplay_begins_at_frame_0(show, fps):
    page = show("<audio autoplay src=a.wav>", {"a.wav": beeps(2)}, fps)
    assert onsets(played(page, 2)) == pytest.approx([0.5, 1.5], abs=ONE_SAMPLE)


def test_loudness_follows_the_page(show):
    html = """<audio id=a autoplay src=a.wav></audio><script>
    a.volume = .5;
    at(500, () => { a.volume = .25 });
    at(1000, () => { a.muted = true });
    at(1500, () => { a.muted = false; a.volume = 1 })</script>"""
    page = show(html, {"a.wav": tone(440, 2)})
    sound = played(page, 2)
    loudest = [np.abs(sound[int((at + 0.1) * RATE) : int((at + 0.4) * RATE)]).max()
               for at in (0, 0.5, 1, 1.5)]  # fmt: skip
    assert loudest == pytest.approx([0.25, 0.125, 0, 0.5], abs=0.005)
    # a step would click
    assert np.abs(np.diff(sound[:, 0])).max() < 0.04


@pytest.mark.parametrize("rate", [0.5, 1.5, 2])
@pytest.mark.parametrize("keeps", [True, False])
def test_speed_keeps_the_pitch_unless_told(show, rate, keeps):
    html = f"""<audio id=a autoplay src=a.wav></audio><audio id=b autoplay src=b.wav></audio>
    <script>for (const m of [a, b]) {{ m.playbackRate = {rate}; m.preservesPitch = {str(keeps).lower()} }}
    b.volume = 0; at(1500, () => {{ a.volume = 0; b.volume = 1 }})</script>"""  # noqa: E501
    page = show(html, {"a.wav": beeps(3), "b.wav": tone(440, 9)}, 20)
    sound = played(page, 3)
    beeped = [(0.5 + n) / rate for n in range(3) if (0.5 + n) / rate < 1.4]
    assert onsets(sound[: RATE * 3 // 2]) == pytest.approx(beeped, abs=0.02 if keeps else 0.0002)
    assert pitch(sound[RATE * 2 :]) == pytest.approx(440 if keeps else 440 * rate, abs=2)


def test_a_loop_has_no_seam(show):
    page = show("<audio autoplay loop src=a.wav>", {"a.wav": tone(400, 0.7)})
    sound = played(page, 3)
    whole = np.sin(2 * np.pi * 400 * np.arange(3 * RATE) / RATE) * 0.5
    assert np.abs(sound[:, 0] - whole).max() < 0.001
    assert page.ask("document.querySelector('audio').ended") is False


def test_several_at_once_are_added_within_full_scale(show):
    html = "<audio autoplay src=a.wav></audio>" * 3 + "<audio autoplay src=b.wav></audio>"
    page = show(html, {"a.wav": tone(300, 1), "b.wav": beeps(1)})
    sound = played(page, 1)
    assert 0.999 < np.abs(sound).max() <= 1
    # what is not too loud is left alone
    one = show("<audio autoplay src=a.wav></audio>", {"a.wav": tone(300, 1)})
    assert np.abs(played(one, 1)).max() == pytest.approx(0.5, abs=0.001)


def test_slices_sound_like_the_whole(show):
    html = """<audio id=a autoplay loop src=a.wav></audio><audio id=b src=b.wav></audio><script>
    a.playbackRate = 1.25; a.volume = .5;
    at(700, () => { b.currentTime = .4; b.play() });
    at(1410, () => { a.volume = .2 })</script>"""
    files = {"a.wav": tone(330, 0.9), "b.wav": beeps(3)}
    whole = show(html, files)
    whole.stage.skip(0, 90)
    expected = whole.sound(0, 90)
    slices = []
    for first, stop in ((0, 17), (17, 60), (60, 90)):
        page = show(html, files)
        page.stage.skip(0, stop)
        slices.append(page.strips(first, stop))
    assert np.array_equal(whole.mixed(slices, 3), expected)


def test_a_page_listens_to_itself(show):
    """WebAudio: graphs, scheduled and at once, elements within them, and what analysers see."""
    html = """<audio id=a src=a.wav></audio><script>
    const c = new AudioContext();
    const out = new GainNode(c, {gain: .5}); out.connect(c.destination);
    const see = new AnalyserNode(c, {fftSize: 1024}); out.connect(see);
    const levels = [], data = new Float32Array(1024);
    c.createMediaElementSource(a).connect(out);
    const beep = (at, length) => {
      const o = new OscillatorNode(c, {frequency: 700});
      o.connect(out); o.start(at); o.stop((at || c.currentTime) + length);
    };
    beep(.25, .1);
    const hum = new OscillatorNode(c, {frequency: 250});
    const low = new GainNode(c, {gain: .01}); hum.connect(low); low.connect(out); hum.start();
    at(1010, () => beep(0, .1));
    at(1500, () => a.play());
    at(2600, () => a.pause());
    (function look() {
      see.getFloatTimeDomainData(data);
      levels.push(Math.max(...data));
      requestAnimationFrame(look);
    })()</script>"""
    files = {"a.wav": beeps(3)}
    page = show(html, files)
    page.frames(0, 90)
    page.stage.hear_until(90, kept=True)
    strips = page.strips(0, 90)
    sound = page.mixed([strips], 3)
    assert onsets(sound, 0.02) == pytest.approx([0.25, 1.01, 2.0], abs=0.0005)
    assert np.abs(sound).max() == pytest.approx(0.5, abs=0.01)
    levels = page.ask("levels")
    # the page looked once before frame 0
    seen = {i - 1 for i, level in enumerate(levels) if level > 0.1}
    assert {8, 10, 31, 33, 61} <= seen
    assert not {6, 13, 29, 36, 59, 66} & seen
    # the same in slices
    slices = []
    for first, stop in ((0, 31), (31, 61), (61, 90)):
        part = show(html, files)
        part.stage.skip(0, first)
        part.stage.hear_until(first, kept=False)
        part.frames(first, stop)
        part.stage.hear_until(stop, kept=True)
        slices.append(part.strips(first, stop))
        page.opener.given.update(part.opener.given)
    assert np.abs(page.mixed(slices, 3) - sound).max() < 1e-6


def test_graphs_are_heard_at_any_frame_rate(show):
    html = """<script>const c = new AudioContext();
    for (let n = 0; n < 4; n++) {
      const o = new OscillatorNode(c, {frequency: 500});
      o.connect(c.destination); o.start(n + .25); o.stop(n + .4);
    }</script>"""
    page = show(html, fps=1)
    page.frames(0, 4)
    sound = page.sound(0, 4)
    assert onsets(sound, 0.02) == pytest.approx([0.25, 1.25, 2.25], abs=0.0005)


def test_both_sides_are_heard_from_the_first_sample_on(show):
    html = """<script>const c = new AudioContext();
    for (const pan of [-1, 1]) {
      const o = new OscillatorNode(c, {frequency: pan < 0 ? 440 : 660});
      o.connect(new StereoPannerNode(c, {pan})).connect(c.destination); o.start();
    }</script>"""
    page = show(html)
    page.frames(0, 20)
    sound = page.sound(0, 20)
    times = np.arange(28_000) / RATE
    for side, frequency in ((0, 440), (1, 660)):
        assert np.abs(sound[:28_000, side] - np.sin(2 * np.pi * frequency * times)).max() < 0.01


def test_worklets_are_heard(show):
    html = """<script>fragdex = {ready: (async () => {
      const half = `registerProcessor("half", class extends AudioWorkletProcessor {
        process([[heard]], [[told]]) {
          for (let n = 0; heard && n < told.length; n++) told[n] = heard[n] / 2;
          return true;
        }
      })`;
      const c = new AudioContext(), module = new Blob([half], {type: "text/javascript"});
      await c.audioWorklet.addModule(URL.createObjectURL(module));
      const o = new OscillatorNode(c, {frequency: 440});
      o.connect(new AudioWorkletNode(c, "half")).connect(c.destination); o.start();
    })()}</script>"""
    page = show(html)
    page.frames(0, 20)
    sound = page.sound(0, 20)
    wanted = np.sin(2 * np.pi * 440 * np.arange(28_000) / RATE) / 2
    assert np.abs(sound[:28_000, 0] - wanted).max() < 0.01


def test_buffers_that_the_page_decodes_are_heard(show):
    html = """<script>fragdex = {ready: (async () => {
      const c = new AudioContext();
      const data = await (await fetch('a.wav')).arrayBuffer();
      const buffer = await c.decodeAudioData(data);
      const source = new AudioBufferSourceNode(c, {buffer, playbackRate: 1});
      source.connect(c.destination);
      source.start(c.currentTime + .125);
      window.told = [buffer.duration, c.state];
    })()}</script>"""
    page = show(html, {"a.wav": beeps(2)})
    page.frames(0, 40)
    assert page.ask("told") == [2, "running"]
    assert onsets(page.sound(0, 40)) == pytest.approx([0.625], abs=0.0005)


def test_a_context_can_rest(show):
    html = """<script>const c = new AudioContext(), o = new OscillatorNode(c), states = [];
    c.onstatechange = () => states.push(c.state);
    o.connect(c.destination); o.start(.1); o.stop(1);
    at(400, () => c.suspend());
    at(900, () => c.resume())</script>"""
    page = show(html)
    page.frames(0, 60)
    sound = page.sound(0, 60)
    heard = np.abs(sound[:, 0]) > 0.01
    parts = [heard[int(a * RATE) : int(b * RATE)].mean() for a, b in
             ((0, 0.09), (0.12, 0.38), (0.45, 0.85), (0.95, 1.45), (1.55, 2))]  # fmt: skip
    assert [part > 0.5 for part in parts] == [False, True, False, True, False]
    assert page.ask("states") == ["running", "suspended", "running"]


def test_offline_graphs_are_the_browsers_own(show):
    html = """<script>fragdex = {ready: (async () => {
      const c = new OfflineAudioContext(1, 4800, 48000), o = new OscillatorNode(c, {frequency: 100});
      o.connect(c.destination); o.start();
      window.got = (await c.startRendering()).getChannelData(0).slice(0, 480).findIndex(x => x > .99);
    })()}</script>"""  # noqa: E501
    page = show(html)
    assert 110 <= page.ask("got") <= 130
    page.frame(0)
    assert page.strips(0, 1) == []


def test_contexts_are_of_the_kind_that_libraries_look_for(show):
    """Wrappers part a context that plays from an offline one by what it is an instance of."""
    html = """<audio id=a src=a.wav></audio><script>
    const c = new AudioContext({latencyHint: "playback"}), offline = new OfflineAudioContext(1, 8, 48000);
    class Own extends AudioContext { get kind() { return "own" } }
    const own = new Own(), source = c.createMediaElementSource(a);
    const throws = (run) => { try { run(); return null } catch (error) { return error.name } };
    const kinds = (one) => [one instanceof AudioContext, one instanceof BaseAudioContext,
      one instanceof OfflineAudioContext, one.constructor.name, String(one)];
    window.told = {
      playing: kinds(c), offline: kinds(offline), own: [...kinds(own), own.kind],
      interface: [AudioContext.name, AudioContext.prototype.constructor === AudioContext,
        Object.getPrototypeOf(AudioContext) === BaseAudioContext, throws(() => AudioContext())],
      lacks: ["startRendering", "length", "oncomplete"].filter((key) => key in c),
      has: ["close", "suspend", "resume", "createMediaElementSource", "createMediaStreamSource",
        "getOutputTimestamp", "createGain", "decodeAudioData"].filter((key) => typeof c[key] !== "function"),
      values: [c.sampleRate, c.baseLatency, c.outputLatency, c.sinkId, c.onstatechange, c.state],
      worklet: c.audioWorklet instanceof AudioWorklet,
      end: [c.destination instanceof AudioDestinationNode, c.destination.context === c,
        c.destination.maxChannelCount, c.destination.numberOfInputs, c.destination === c.destination],
      source: [source instanceof MediaElementAudioSourceNode, source.mediaElement === a,
        new GainNode(c).context === c],
      vendor: typeof webkitAudioContext,
    };
    c.close().then(() => c.close()).catch((error) => { told.closed = [c.state, error.name] });
    </script>"""  # noqa: E501
    contexts = show(html, {"a.wav": beeps(1)}).ask("told")
    playing = [True, True, False, "AudioContext", "[object AudioContext]"]
    offline = [False, True, True, "OfflineAudioContext", "[object OfflineAudioContext]"]
    assert contexts == {
        "playing": playing,
        "offline": offline,
        "own": [True, True, False, "Own", "[object AudioContext]", "own"],
        "interface": ["AudioContext", True, True, "TypeError"],
        "lacks": [],
        "has": [],
        "values": [48_000, 0, 0, "", None, "running"],
        "worklet": True,
        "end": [True, True, 2, 1, True],
        "source": [True, True, True],
        "vendor": "function",
        "closed": ["closed", "InvalidStateError"],
    }
