"""What the rows of transcriptions mean."""

from fragdex.service.config import Settings
from fragdex.service.transcriptions.records import choice_of
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
