"""`fragdex transcribe`: words while they are heard, captions in every form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fragdex

pytest.importorskip("av")
pytest.importorskip("sherpa_onnx")

SPEECH = Path(__file__).parents[2] / "fixtures" / "speech"
# It says nonsense, but at once.
QUICK = ("--engine", "sherpa-onnx", "--model", str(SPEECH / "tiny-ctc"))
FILE = str(SPEECH / "pauses-flac.mp4")


@pytest.mark.parametrize("form", ["vtt", "srt", "json"])
def test_captions_in_every_form(form, run, tmp_path):
    target = tmp_path / f"said.{form}"
    done = run("transcribe", FILE, "-o", target, *QUICK)
    assert done.code == 0, done.err
    assert "words" in done.err
    assert "sherpa-onnx" in done.err
    text = target.read_text("utf-8")
    begins = {"vtt": "WEBVTT\n\n00:00:0", "srt": "1\n00:00:0", "json": "{\n"}
    assert text.startswith(begins[form])
    if form == "json":
        assert json.loads(text)["word_segments"]


def test_words_go_to_stdout_as_they_are_heard(run):
    done = run("transcribe", FILE, *QUICK, "--slice", "5", "--jobs", "2")
    lines = done.out.splitlines()
    assert len(lines) >= 2
    times = [float(line.split()[0]) for line in lines]
    assert times == sorted(times)


def test_webvtt_to_stdout_alone(run):
    done = run("transcribe", FILE, "-o", "-", *QUICK)
    assert done.out.startswith("WEBVTT\n\n")
    assert "words" in done.err


def test_a_copy_with_a_track_of_captions(run, tmp_path):
    target = tmp_path / "captioned.mp4"
    done = run("transcribe", FILE, "-o", target, *QUICK)
    assert done.code == 0, done.err
    index = fragdex.index(target, exact=True)
    assert [(t.kind, t.info.format) for t in index.tracks] == [("audio", "fLaC"), ("text", "wvtt")]
    same = [fragdex.audio(fragdex.index(f, exact=True), f, 2, 4) for f in (FILE, target)]
    assert (same[0] == same[1]).all()


def test_counts_as_json(run, tmp_path):
    done = run("transcribe", FILE, "--json", "-o", tmp_path / "a.vtt", *QUICK)
    (line,) = done.out.splitlines()
    told = json.loads(line)
    assert told["words"] > 0
    assert told["missing"] == []
    assert told["engine"].startswith("sherpa-onnx")


def test_a_saved_index_stands_for_its_file(run, tmp_path):
    name = tmp_path / "said.mp4"
    name.write_bytes(Path(FILE).read_bytes())
    assert run("index", name).code == 0
    by_index = run("transcribe", tmp_path / "said.fidx", *QUICK)
    assert by_index.code == 0, by_index.err
    assert by_index.out == run("transcribe", name, *QUICK).out


def test_the_middle_that_is_missing_is_told(run, tmp_path):
    data = (SPEECH / "pauses-aac.mp4").read_bytes()
    name = tmp_path / "short.mp4"
    name.write_bytes(data[: len(data) // 4])
    whole = fragdex.index(data)
    whole.save(tmp_path / "short.fidx")
    done = run("transcribe", name, *QUICK)
    assert done.code == 0, done.err
    assert done.out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--track", "7"), "there is no track 7"),
        (("--engine", "orthophone"), "no such speech engine"),
        (("--engine", "faster-whisper"), "needs a model"),
        (("-o", "captions.txt"), "must end in .vtt, .srt, .json or .mp4"),
        (("--slice", "2"), "--slice"),
    ],
)
def test_what_is_refused(more, told, run):
    done = run("transcribe", FILE, *more)
    assert done.code == 2
    assert told in done.err
    assert done.out == ""


def test_a_film_without_sound_is_refused(run, tmp_path):
    from fragdex.testing import movie

    name = tmp_path / "silent.mp4"
    name.write_bytes(movie())
    done = run("transcribe", name, *QUICK)
    assert done.code == 2
    assert "there is no audio track" in done.err


def test_a_language_that_the_engine_lacks(run):
    pytest.importorskip("pocketsphinx")
    done = run("transcribe", FILE, "--language", "de")
    assert done.code == 2
    assert "does not know this language" in done.err
