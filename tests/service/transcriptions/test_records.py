"""What the rows of transcriptions mean."""

from types import SimpleNamespace

import pytest

from fragdex.service.config import Settings
from fragdex.service.transcriptions.records import choice_of, languages_of
from fragdex.speech.engines import default_engine


def test_the_operators_settings_choose_engine_and_model(tmp_path):
    settings = Settings(
        data=tmp_path,
        speech_engine="faster-whisper",
        whisper_model="models/small",
        sherpa_model="models/parakeet",
        speech_device="cuda",
        speech_compute_type="float16",
        speech_batch_size=8,
        speech_threads=3,
    )
    choice = choice_of(settings)
    assert (choice.name, choice.model) == ("faster-whisper", "models/small")
    assert (choice.device, choice.compute_type) == ("cuda", "float16")
    assert (choice.batch_size, choice.threads, choice.download) == (8, 3, False)
    # a request may name another one, which has a model of its own
    assert choice_of(settings, "sherpa-onnx").model == "models/parakeet"
    assert choice_of(settings, "pocketsphinx").model is None
    assert choice_of(settings, "moonshine").model is None


def test_the_default_is_an_engine(tmp_path):
    assert choice_of(Settings(data=tmp_path)).name == default_engine()


@pytest.mark.parametrize(
    ("language", "wanted", "plan", "languages"),
    [
        ("de", None, {"languages": [[0, "en"], [1, "de"], [3, "en"]]}, ["en", "de"]),
        ("de", None, {"languages": []}, ["de"]),
        ("de", "de", {}, ["de"]),  # of an earlier version
        (None, "en", None, ["en"]),
        (None, None, None, []),
        # most words are doubted: what was found is not told
        (None, None, {"languages": [[0, "en"], [1, "de"]]}, []),
    ],
)
def test_a_record_lists_the_languages_that_were_found(language, wanted, plan, languages):
    row = SimpleNamespace(language=language, wanted_language=wanted, plan=plan)
    assert languages_of(row) == languages
