"""Engines with models of one's own hear through the whole service: record, words, captions."""

import pytest

import fragdex
from fragdex.speech.engines import EngineChoice
from service.survival.processes import Site
from service.transcriptions.working import SPEECH, Transcriber, by_itself, cue_times, sound_file

FLAC = SPEECH / "pauses-flac.mp4"
WHISPER, CTC = str(SPEECH / "tiny-whisper"), str(SPEECH / "tiny-ctc")
CHOICES = {
    "faster-whisper": EngineChoice("faster-whisper", WHISPER, device="cpu", threads=1),
    "sherpa-onnx": EngineChoice("sherpa-onnx", CTC, device="cpu", threads=1),
}


@pytest.fixture(params=["sqlite", "postgresql"])
def transcriber(request, tmp_path):
    """A service whose operator has put models there, over each kind of database in turn."""
    pytest.importorskip("faster_whisper")
    pytest.importorskip("sherpa_onnx")
    url = request.getfixturevalue("new_postgres")() if request.param == "postgresql" else ""
    site = Site(tmp_path, url)
    try:
        serving = site.serve(
            job_workers=1,
            slice_workers=1,
            speech_engine="faster-whisper",
            speech_device="cpu",
            speech_threads=1,
            whisper_model=WHISPER,
            sherpa_model=CTC,
        )
        with site.client(serving) as client:
            yield Transcriber(client)
    finally:
        site.close()


def test_their_words_are_those_of_the_library_and_become_captions(transcriber):
    client = transcriber.client
    file = sound_file(client, FLAC.read_bytes())
    asked = {"faster-whisper": {}, "sherpa-onnx": {"engine": "sherpa-onnx"}}
    for name, choice in CHOICES.items():
        id = transcriber.begin(file, work_slice_ms=5000, **asked[name])
        record = transcriber.ended(id)
        assert record["status"] == "complete", record
        assert record["engine"] == name
        assert record["engine_version"]
        assert record["model"] == choice.model.rpartition("/")[2]
        words = transcriber.words(id)
        assert words == by_itself(FLAC, choice=choice)
        assert record["words"] == len(words) > 0
        at = transcriber.path(f"/{id}")
        cues = cue_times(client.get(f"{at}.vtt").text)
        assert cues[0][0] == words[0][1]
        assert all(start < end for start, end in cues)
        # where the first word is depends on the processor: the models are tiny
        _, start, end = words[0]
        first = (start + end) // 2 // 5000
        assert transcriber.fragment(id, first).json()["word_segments"][0]["text"] == words[0][0]
    assert client.post(f"{at}/copy").status_code == 202
    record = transcriber.until(id, lambda one: one["copy_with_captions"]["status"] != "pending")
    assert record["copy_with_captions"]["status"] == "complete", record
    copy = fragdex.index(client.get(f"{at}.mp4").content)
    assert [track.kind for track in copy.tracks] == ["audio", "text"]
