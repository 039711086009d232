"""What every engine promises; what is told where one is missing."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import fragdex
from fragdex.errors import EngineUnavailable, InvalidRequest
from fragdex.speech.engines import (
    BUILT_IN,
    ENGINES,
    EngineChoice,
    fetched,
    make_engine,
    validate_language,
)
from fragdex.speech.process import SpeechProcess, engine_states
from fragdex.speech.sherpa import words_of_tokens
from speech.conftest import SPEECH

pytestmark = pytest.mark.large

CHOICES = {
    "moonshine": EngineChoice("moonshine"),
    "pocketsphinx": EngineChoice("pocketsphinx"),
    "faster-whisper": EngineChoice(
        "faster-whisper", str(SPEECH / "tiny-whisper"), device="cpu", threads=1
    ),
    "faster-whisper, batches": EngineChoice(
        "faster-whisper", str(SPEECH / "tiny-whisper"), device="cpu", threads=1, batch_size=4
    ),
    "sherpa-onnx": EngineChoice("sherpa-onnx", str(SPEECH / "tiny-ctc"), batch_size=2),
}
PACKAGES = {
    "moonshine": "moonshine_voice",
    "pocketsphinx": "pocketsphinx",
    "faster-whisper": "faster_whisper",
    "sherpa-onnx": "sherpa_onnx",
}


@pytest.fixture(scope="module")
def said():
    """Three sentences."""
    name = SPEECH / "pauses-flac.mp4"
    index = fragdex.index(name, exact=True)
    return [fragdex.decoding.audio(index, name, *span) for span in ((0, 3), (3, 5), (5, 8))]


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_args, **_more):
        raise AssertionError("an engine asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(params=list(CHOICES))
def engine(request, no_network):
    choice = CHOICES[request.param]
    pytest.importorskip(PACKAGES[choice.name])
    speech_engine = make_engine(choice)
    speech_engine.open()
    yield speech_engine
    speech_engine.close()


def test_an_engine_tells_words_in_the_time_of_each_utterance(engine, said):
    assert engine.name in ENGINES
    assert engine.version
    assert engine.model_id
    heard = engine.transcribe(said, "en")
    assert len(heard) == len(said)
    assert sum(map(len, heard)) > 2
    for words, sound in zip(heard, said, strict=True):
        for word in words:
            assert type(word.start_ms) is int
            assert 0 <= word.start_ms <= word.end_ms <= len(sound) // 16 + 50
            assert word.text == word.text.strip() != ""
            assert word.confidence is None or 0 <= word.confidence <= 1
        assert [w.start_ms for w in words] == sorted(w.start_ms for w in words)


def test_the_same_sound_is_heard_the_same_in_any_order(engine, said):
    if not engine.deterministic:
        pytest.skip("this engine does not promise it")
    forwards = engine.transcribe(said, "en")
    backwards = engine.transcribe(said[::-1], "en")[::-1]
    assert forwards == backwards


def test_nothing_and_next_to_nothing_can_be_given(engine):
    assert engine.transcribe([], "en") == []
    short = [np.zeros(n, np.int16) for n in (0, 1, 160, 800)]
    assert len(engine.transcribe(short[1:], "en")) == 3


def test_a_language_is_told_or_not(engine, said):
    language = engine.detect(said)
    assert language is None or (isinstance(language, str) and len(language) in (2, 3))


def test_whisper_is_asked_by_a_minute_of_sound_and_not_by_silence():
    """The model of the tests knows English alone."""
    engine = make_engine(EngineChoice("faster-whisper"))
    engine._model = mock.Mock()
    engine._model.model.is_multilingual = True
    engine._model.detect_language.return_value = ("de", 0.9, [])
    assert engine.detect([np.full(40 * 16_000, 16384, np.int16)] * 2) == "de"
    audio = engine._model.detect_language.call_args.kwargs["audio"]
    assert (len(audio), audio.dtype, audio.max()) == (60 * 16_000, np.float32, 0.5)
    assert engine.detect([np.zeros(16_000, np.int16)]) is engine.detect([]) is None
    assert engine._model.detect_language.call_count == 1


def test_an_unknown_language_is_refused_by_name():
    engine = make_engine(EngineChoice())
    validate_language(engine, None)
    validate_language(engine, "en-GB")
    with pytest.raises(InvalidRequest, match="does not know") as error:
        validate_language(engine, "de")
    assert error.value.pointer == "/language"
    with pytest.raises(InvalidRequest, match="no such speech engine") as error:
        make_engine(EngineChoice("orthophone"))
    assert error.value.pointer == "/engine"


def test_words_of_pocketsphinx_are_where_they_are_said(said):
    pytest.importorskip("pocketsphinx")
    engine = make_engine(EngineChoice("pocketsphinx"))
    engine.open()
    words = [word.text for part in engine.transcribe(said, "en") for word in part]
    assert {"boy", "was", "sun", "used"} & set(words)
    assert all(word == word.lower() for word in words)


# ---- what is missing ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENGINES)
def test_a_package_that_is_missing_is_told_with_what_to_install(name, monkeypatch):
    monkeypatch.setattr("fragdex.speech.engines.find_spec", lambda package: None)
    with pytest.raises(EngineUnavailable, match="not installed") as error:
        make_engine(EngineChoice(name)).open()
    assert "pip install" in error.value.advice


@pytest.mark.parametrize("name", ["faster-whisper", "sherpa-onnx"])
def test_a_model_is_needed(name, no_network, tmp_path):
    pytest.importorskip(PACKAGES[name])
    for model in (None, str(tmp_path), str(tmp_path / "nowhere"), "small", "owner/name"):
        with pytest.raises(EngineUnavailable, match="model") as error:
            make_engine(EngineChoice(name, model)).open()
        assert "folder" in error.value.advice


@pytest.mark.parametrize("name", ["tokenizer.json", "model.bin", "config.json"])
def test_an_incomplete_whisper_never_asks_the_network(name, no_network, tmp_path):
    pytest.importorskip("faster_whisper")
    folder = Path(shutil.copytree(SPEECH / "tiny-whisper", tmp_path / "model"))
    (folder / name).unlink()
    with pytest.raises(EngineUnavailable, match=f"no {name}"):
        make_engine(EngineChoice("faster-whisper", str(folder))).open()


@pytest.mark.parametrize("name", ENGINES)
def test_a_broken_model_is_told(name, tmp_path):
    pytest.importorskip(PACKAGES[name])
    home = {"faster-whisper": "tiny-whisper", "sherpa-onnx": "tiny-ctc"}.get(name)
    if home:
        folder = Path(shutil.copytree(SPEECH / home, tmp_path / "model"))
    else:
        folder = tmp_path
        for file in ("mdef", "en.lm.bin", "en.dict"):
            (folder / file).write_bytes(b"")
        for file in ("encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin"):
            (folder / file).write_bytes(b"")
    for path in folder.iterdir():
        if path.suffix in (".bin", ".onnx", ".ort"):
            path.write_bytes(b"\0" * 1000)
    with (
        SpeechProcess(EngineChoice(name, str(folder), device="cpu")) as child,
        pytest.raises(EngineUnavailable, match=r"cannot be loaded|broke the engine") as error,
    ):
        child.open()
    assert "unpack" in error.value.advice


def test_a_folder_without_a_model_of_pocketsphinx(tmp_path):
    pytest.importorskip("pocketsphinx")
    with pytest.raises(EngineUnavailable, match="holds no model"):
        make_engine(EngineChoice("pocketsphinx", str(tmp_path))).open()


@pytest.mark.parametrize("name", BUILT_IN)
def test_models_without_names_are_not_looked_for_on_the_network(name, no_network):
    with pytest.raises(EngineUnavailable, match="have no names") as error:
        fetched(EngineChoice(name, "owner/name", download=True))
    assert "folder" in error.value.advice


def test_a_model_that_cannot_be_fetched_is_told(monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EngineUnavailable, match="cannot be fetched") as error:
        fetched(EngineChoice("sherpa-onnx", "owner/name", download=True))
    assert "by hand" in error.value.advice
    folder = str(SPEECH / "tiny-ctc")
    choice = fetched(EngineChoice("sherpa-onnx", folder, download=True))
    assert (choice.model, choice.download) == (folder, False)


def test_the_state_of_every_engine_is_told():
    states = {state.name: state for state in engine_states([CHOICES["sherpa-onnx"]])}
    assert list(states) == list(ENGINES)
    assert states["moonshine"].ready
    assert states["moonshine"].model.startswith("tiny-en")
    assert states["pocketsphinx"].ready
    assert states["sherpa-onnx"].ready
    assert not states["faster-whisper"].ready
    assert "needs a model" in states["faster-whisper"].reason
    assert "folder" in states["faster-whisper"].fix


def test_pieces_of_words_become_words():
    tokens = ["▁it", "▁is", "n", "'t", "▁so"]
    starts = [0.0, 0.24, 0.4, 0.48, 1.2]
    words = words_of_tokens(tokens, starts, [0.2, 0.1, 0.1, 0.2, 0.3], [-0.1] * 5, 1.4)
    assert [(w.text, w.start_ms, w.end_ms) for w in words] == [
        ("it", 0, 200),
        ("isn't", 240, 680),
        ("so", 1200, 1400),
    ]
    assert words[1].confidence == pytest.approx(0.741, abs=0.001)
