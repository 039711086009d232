"""Names and terms are preferred where they were said, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import InvalidRequest
from fragdex.speech.acoustics import model_folder
from fragdex.speech.alignment import Aligner, with_vocabulary
from fragdex.speech.engines import EngineChoice, make_engine, validate_vocabulary
from fragdex.speech.plan import TranscriptionPlan
from fragdex.speech.vocabulary import MOST_ENTRIES, agreed, distance, plain_vocabulary
from fragdex.speech.words import Word, merged
from speech.conftest import SPEECH, truth

needs_model = pytest.mark.skipif(model_folder() is None, reason="needs pocketsphinx's model")
NOT_SAID = (
    "Ada Lovelace", "fragdex", "Kubernetes", "Postgres", "Kowalski", "Reykjavik", "Smyth",
    "Terraform", "Quillfeather", "Grace Hopper", "PBX", "Nguyen",
)  # fmt: skip


@pytest.fixture(scope="module")
def aligner():
    return Aligner()


@pytest.fixture(scope="module", params=["pauses-flac.mp4", "even-aac.mp4"])
def said(request):
    """(sound, words) of some sentences by two voices."""
    name = SPEECH / request.param
    index = fragdex.index(name, exact=True)
    rows = [row for row in truth(name.name) if row[2] < 6_900]
    sound = fragdex.decoding.audio(index, name, 0, rows[-1][2] / 1000 + 0.1)
    return sound, [text for text, _, _ in rows]


@pytest.fixture(scope="module")
def pronunciations():
    """The dictionary: phones by word, and words by phones."""
    lines = (model_folder() / "cmudict-en-us.dict").read_text("utf-8").splitlines()
    split = [line.split() for line in lines]
    by_word = {word: tuple(phones) for word, *phones in split if word.isalpha() and phones}
    return by_word, {phones: word for word, phones in by_word.items()}


def near(word, pronunciations):
    """Words of the dictionary of which one phone is another than in this one."""
    by_word, by_phones = pronunciations
    phones = by_word[word]
    all_phones = sorted(
        {phone for key in ("zebra", "thing", "joy", "house") for phone in by_word[key]}
    )
    changed = [
        (*phones[:at], other, *phones[at + 1 :])
        for at in range(len(phones))
        for other in (*all_phones, *phones)
    ]
    return [by_phones[one] for one in changed if one in by_phones and one != phones]


def texts(words):
    return [word.text for word in words]


@needs_model
def test_false_friends_of_words_that_were_said_change_nothing(aligner, said, pronunciations):
    sound, words = said
    friends = [one for word in words if len(word) > 3 for one in near(word, pronunciations)]
    friends = list(dict.fromkeys(one.capitalize() for one in friends if one not in words))
    assert len(friends) > 20
    vocabulary = plain_vocabulary([*friends[: MOST_ENTRIES - len(NOT_SAID)], *NOT_SAID])
    assert texts(aligner.words(sound, words, vocabulary)) == words


@needs_model
def test_a_word_that_was_said_stands_for_one_that_is_near(aligner, said, pronunciations):
    """The engine wrote a word of the language that differs by one phone: most are found."""
    sound, words = said
    tried = found = 0
    for at, word in enumerate(words):
        others = near(word, pronunciations) if len(word) > 4 else []
        if not others or words.count(word) > 1 or tried == 4:
            continue
        wrong = [*words[:at], others[0], *words[at + 1 :]]
        heard = texts(aligner.words(sound, wrong, plain_vocabulary([word, *NOT_SAID])))
        assert heard in (words, wrong)
        tried += 1
        found += heard == words
    assert tried >= 2
    assert found >= tried / 2


@needs_model
def test_a_word_that_no_dictionary_has_gives_way_more_easily(aligner):
    name = SPEECH / "pauses-flac.mp4"
    rows = [row for row in truth(name.name) if row[2] < 9_900]
    sound = fragdex.decoding.audio(fragdex.index(name, exact=True), name, 0, 10)
    words = [text for text, _, _ in rows]
    at = words.index("salmon")
    written = [*words[:at], "sammun,", *words[at + 1 :]]
    heard = aligner.words(sound, written, ["Salmon"])
    assert texts(heard) == [*words[:at], "Salmon,", *words[at + 1 :]]
    assert abs(heard[at].start_ms - rows[at][1]) <= 60
    two = [*words[:at], '"samm', 'un."', *words[at + 1 :]]
    assert texts(aligner.words(sound, two, ["Salmon"]))[at] == '"Salmon."'
    # the same with an engine that has words and times of its own
    kept = [Word(text, start, end) for text, start, end in rows]
    assert with_vocabulary([sound], [kept], NOT_SAID) == [kept]
    wrong = [*kept[:at], kept[at]._replace(text="sammun"), *kept[at + 1 :]]
    assert texts(with_vocabulary([sound], [wrong], ["Salmon"])[0])[at] == "Salmon"


@needs_model
def test_nothing_is_preferred_where_nobody_spoke_the_language(aligner, said):
    sound, words = said
    backwards = sound[::-1].copy()
    assert texts(aligner.words(backwards, words, NOT_SAID)) == words
    noise = np.random.default_rng(0).integers(-3000, 3000, len(sound)).astype(np.int16)
    assert texts(aligner.words(noise, words, NOT_SAID)) == words


@pytest.mark.large
def test_slices_prefer_what_the_whole_prefers(hear):
    pytest.importorskip("moonshine_voice")
    engine = make_engine(EngineChoice("moonshine"))
    engine.open()
    vocabulary = ("Salmon", "Ada Lovelace")
    heard = []
    for work_slice_ms in (5_000, 600_000):
        _, slices = hear(SPEECH / "pauses-flac.mp4", work_slice_ms, None, engine, vocabulary)
        heard.append(merged(slices).words)
    engine.close()
    assert heard[0] == heard[1]
    assert len(heard[0]) > 10
    assert not any("Lovelace" in word.text for word in heard[0])


@pytest.mark.large
def test_what_whisper_hears_by_hints_counts_where_it_hears_so_alone():
    pytest.importorskip("faster_whisper")
    name = SPEECH / "pauses-flac.mp4"
    sound = fragdex.decoding.audio(fragdex.index(name, exact=True), name, 0, 3)
    for batch in (1, 2):
        model = str(SPEECH / "tiny-whisper")
        choice = EngineChoice("faster-whisper", model, "cpu", threads=1, batch_size=batch)
        engine = make_engine(choice)
        engine.open()
        alone = engine.transcribe([sound, sound], "en")
        assert engine.transcribe([sound, sound], "en", NOT_SAID) == alone
        engine.close()


WORDS = st.lists(st.sampled_from(["ada", "Ada", "lovelace", "a", "lovely", "day", "fragdex"]))


@given(WORDS, WORDS)
def test_hints_add_no_word_and_lose_none(alone, hinted):
    one, other = ([Word(text, n, n + 1) for n, text in enumerate(some)] for some in (alone, hinted))
    assert agreed(one, other, []) == one
    assert agreed(one, one, ["Ada Lovelace"]) == one
    if not {"fragdex"} & set(alone) and not any("f" in text for text in alone):
        letters = "".join(alone)
        chosen = texts(agreed(one, other, ["fragdex"]))
        assert letters or chosen == []


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_distances_are_those_of_levenshtein(one, other):
    found = distance(one, other)
    assert found == distance(other, one)
    assert abs(len(one) - len(other)) <= found <= max(len(one), len(other))
    assert (found == 0) == (one == other)
    if one and other:
        parts = (
            distance(one[1:], other) + 1,
            distance(one, other[1:]) + 1,
            distance(one[1:], other[1:]) + (one[0] != other[0]),
        )
        assert found == min(parts)


@given(st.lists(st.text(max_size=70), max_size=20))
def test_any_text_is_an_entry_or_refused(entries):
    try:
        plain = plain_vocabulary(entries)
    except InvalidRequest:
        return
    assert plain == plain_vocabulary(plain)
    assert all(entry == " ".join(entry.split()) and entry.isprintable() for entry in plain)


@pytest.mark.parametrize(
    "entries",
    [["x" * 61], ["a b c d e"], ["\x1b[31m"], ["1984"], ["--"], [f"a{n}" for n in range(501)]],
)
def test_what_is_no_vocabulary_is_refused(entries):
    with pytest.raises(InvalidRequest, match="vocabulary cannot be used") as error:
        plain_vocabulary(entries)
    assert error.value.pointer == "/vocabulary"
    assert len(error.value.found) < 100


def test_entries_are_words_with_one_space_between():
    assert plain_vocabulary(["", " \n", "A\u00a0b\t c", "A b\u200b c"]) == ("A b c",)


def test_engines_that_choose_by_sound_need_english():
    sherpa, moonshine = (make_engine(EngineChoice(name)) for name in ("sherpa-onnx", "moonshine"))
    assert validate_vocabulary(moonshine, ["Ada"], None) == ("Ada",)
    assert validate_vocabulary(sherpa, ["Ada"], "en-GB") == ("Ada",)
    assert validate_vocabulary(sherpa, [], "de") == ()
    assert validate_vocabulary(make_engine(EngineChoice("faster-whisper")), ["Ada"], "de")
    for language in ("de", None):
        with pytest.raises(InvalidRequest, match="for English alone") as error:
            validate_vocabulary(sherpa, ["Ada"], language)
        assert error.value.pointer == "/vocabulary"


def test_a_plan_keeps_the_vocabulary():
    plan = TranscriptionPlan(1, 30_000, 0, 700, 21.5, "en", (0,), 1, ("Ada",))
    plain = plan.as_json()
    assert TranscriptionPlan.of_json(plain) == plan
    del plain["vocabulary"]
    assert TranscriptionPlan.of_json(plain).vocabulary == ()
