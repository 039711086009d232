"""Words of a text are found where they are said; how they are said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.errors import EngineUnavailable
from fragdex.speech.acoustics import Acoustics, model_folder
from fragdex.speech.alignment import Aligner, Pronunciations, spoken_words
from speech.conftest import SPEECH, truth

needs_model = pytest.mark.skipif(model_folder() is None, reason="needs pocketsphinx's model")


@pytest.fixture(scope="module")
def aligner():
    return Aligner()


@pytest.fixture(scope="module")
def without_model():
    aligner = Aligner()
    aligner.exact = False
    return aligner


@pytest.fixture(scope="module")
def said():
    """(sound, [word, start_ms, end_ms] …) of three sentences with pauses."""
    name = SPEECH / "pauses-flac.mp4"
    index = fragdex.index(name, exact=True)
    rows = [row for row in truth(name.name) if row[2] < 9_900]
    return fragdex.decoding.audio(index, name, 0, rows[-1][2] / 1000 + 0.1), rows


def onsets(words, rows):
    return np.abs([word.start_ms - start for word, (_, start, _) in zip(words, rows, strict=True)])


@needs_model
def test_words_are_found_where_they_are_said(aligner, said):
    sound, rows = said
    words = aligner.words(sound, [text for text, _, _ in rows])
    assert [word.text for word in words] == [text for text, _, _ in rows]
    off = onsets(words, rows)
    assert np.median(off) <= 20
    assert np.percentile(off, 95) <= 60
    ends = np.abs([word.end_ms - end for word, (_, _, end) in zip(words, rows, strict=True)])
    assert np.median(ends) <= 30
    assert np.median([word.time_confidence for word in words]) > 0.8


@needs_model
def test_in_noise_times_hold_and_are_less_sure(aligner, said):
    sound, rows = said
    texts = [text for text, _, _ in rows]
    words = aligner.words(noisy(sound, 10), texts)
    off = onsets(words, rows)
    assert np.median(off) <= 60
    assert np.percentile(off, 95) <= 300
    clean = aligner.words(sound, texts)
    assert sum(w.time_confidence for w in words) < sum(w.time_confidence for w in clean)


@needs_model
def test_what_is_written_otherwise_than_said_is_found(aligner, said):
    """Capitals, punctuation, a word that no dictionary has, and one that says nothing."""
    sound, rows = said
    texts = [text.capitalize() + "," for text, _, _ in rows]
    place = max(range(len(rows)), key=lambda at: len(rows[at][0]))
    texts[place] = rows[place][0] + "xx"
    words = aligner.words(sound, texts)
    assert np.percentile(onsets(words, rows), 90) <= 60
    assert words[place].time_confidence <= 0.7
    assert aligner.words(sound, ["—", "well"])[1].end_ms > 0


def noisy(sound, decibels):
    loud = np.sqrt((sound.astype(float) ** 2).mean())
    noise = np.random.default_rng(0).normal(0, loud / 10 ** (decibels / 20), len(sound))
    return np.clip(sound + noise, -32768, 32767).astype(np.int16)


def as_it_is(sound):
    return sound


def in_noise(sound):
    return noisy(sound, 12)


def from_its_end(sound):
    """Nobody says that: it stands for a language that the model does not know."""
    return sound[::-1].copy()


@needs_model
@pytest.mark.parametrize("heard", [as_it_is, in_noise])
def test_words_that_were_not_said_are_doubted(aligner, said, heard):
    """Other words, the same words in another order, the same sound from its end."""
    sound, rows = said
    texts = [text for text, _, _ in rows]
    words = aligner.words(heard(sound), texts)
    assert not any(word.doubted for word in words)
    assert min(word.confidence for word in words) > 0.5
    others = [text for text, _, _ in truth("even-aac.mp4")][: len(texts)]
    for what, wrong in ((sound, others), (sound, texts[::-1]), (from_its_end(sound), texts)):
        words = aligner.words(heard(what), wrong)
        assert np.mean([word.doubted for word in words]) > 0.9


@needs_model
def test_words_are_doubted_where_they_were_not_said(aligner, said):
    sound, rows = said
    texts = [text for text, _, _ in rows]
    both = np.concatenate([sound, from_its_end(sound)])
    words = aligner.words(both, texts + texts)
    middle = len(sound) // 16
    near = [w for w in words if abs(w.start_ms - middle) < 3000]
    for word in words:
        if word not in near:
            assert word.doubted == (word.start_ms > middle), word


@needs_model
def test_more_words_than_anybody_says_in_the_time_are_doubted(aligner):
    sound = np.random.default_rng(0).integers(-3000, 3000, 16_000).astype(np.int16)
    assert all(word.doubted for word in aligner.words(sound, ["pronunciation"] * 20))


def check(words, sound, texts):
    assert [word.text for word in words] == list(texts)
    at = 0
    for word in words:
        assert at <= word.start_ms <= word.end_ms <= len(sound) // 16 + 10
        assert word.time_confidence is None or 0 <= word.time_confidence <= 1
        at = word.start_ms


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.text(min_size=1, max_size=12), max_size=12),
    st.integers(0, 20_000),
    st.integers(0, 2**32 - 1),
)
def test_any_text_is_laid_over_any_sound(aligner, without_model, texts, length, seed):
    sound = np.random.default_rng(seed).integers(-32768, 32768, length).astype(np.int16)
    check(aligner.words(sound, texts), sound, texts)
    check(without_model.words(sound, texts), sound, texts)


def test_without_a_model_words_are_spread_over_what_is_loud(without_model, said):
    sound, rows = said
    words = without_model.words(sound, [text for text, _, _ in rows])
    assert all(word.time_confidence <= 0.2 for word in words)
    assert np.median(onsets(words, rows)) < 1500


@given(st.text(max_size=80))
def test_any_text_is_said_somehow(text):
    for word in spoken_words(text):
        assert word == word.lower()
        assert word.isascii()


def test_a_dictionary_and_what_it_lacks(tmp_path):
    path = tmp_path / "some.dict"
    path.write_text("cat K AE T\ncat(2) K AH T\nwell W EH L\nzebra Z IY B R AH")
    words = Pronunciations(path)
    assert words.pronunciation("Cat!") == (("K", "AE", "T"), True)
    assert words.pronunciation("cats") == (("K", "AE", "T", "Z"), True)
    assert words.pronunciation("zebra") == (("Z", "IY", "B", "R", "AH"), True)
    assert words.pronunciation("well-cat").phones == ("W", "EH", "L", "K", "AE", "T")
    guess = words.pronunciation("fish")
    assert (guess.phones, guess.known) == (("F", "IH", "SH"), False)
    assert words.pronunciation("…").phones == ()


@needs_model
@pytest.mark.parametrize("name", ["mdef", "means", "variances", "sendump"])
@pytest.mark.parametrize("left", [0, 3, 400])
def test_a_broken_acoustic_model_is_told(name, left, tmp_path):
    for file in ("mdef", "means", "variances", "sendump"):
        data = (model_folder() / "en-us" / file).read_bytes()
        (tmp_path / file).write_bytes(data[:left] if file == name else data)
    with pytest.raises(EngineUnavailable, match="cannot be read"):
        Acoustics(tmp_path)
