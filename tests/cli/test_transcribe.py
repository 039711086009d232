"""`fragdex transcribe`: words while they are heard, captions in every form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
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
    done = run("transcribe", FILE, *QUICK, "--slice", "5", "--processes", "2")
    lines = done.out.splitlines()
    assert len(lines) >= 2
    times = [float(line.split()[0]) for line in lines]
    assert times == sorted(times)


def test_webvtt_to_stdout_alone(run):
    done = run("transcribe", FILE, "-o", "-", *QUICK)
    assert done.out.startswith("WEBVTT\n\n")
    assert "words" in done.err


@pytest.fixture(scope="module")
def sound():
    """What is said in FILE: int16, shape (samples,), 16,000 a second."""
    index = fragdex.index(FILE, exact=True)
    end = float(index.tracks[0].stop)
    return fragdex.decoding.audio(index, FILE, 0, end)


def written(path, codec, *channels, video=False):
    """A file in the form that its name tells, of channels of int16."""
    import av

    with av.open(str(path), "w") as out:
        layout = {1: "mono", 2: "stereo"}[len(channels)]
        pictures = out.add_stream("mpeg4", rate=1, width=64, height=48) if video else None
        stream = out.add_stream(codec, rate=16_000, layout=layout)
        stream.codec_context.open()
        if pictures:
            out.mux(pictures.encode(av.VideoFrame(64, 48, "yuv420p")))
            out.mux(pictures.encode(None))
        whole = np.stack(channels, 1).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(whole, "s16", layout)
        frame.sample_rate = 16_000
        turned = av.AudioResampler(stream.codec_context.format.name, layout, 16_000)
        fifo = av.AudioFifo()
        for part in (*turned.resample(frame), *turned.resample(None)):
            fifo.write(part)
        size = stream.codec_context.frame_size or 4096
        while fifo.samples:
            out.mux(stream.encode(fifo.read(size, partial=True)))
        out.mux(stream.encode(None))
    return path


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.mkv"])
def test_sound_of_any_form_is_heard_as_that_of_an_mp4(name, run, sound, tmp_path):
    codec = {".wav": "pcm_s16le", ".flac": "flac", ".mkv": "pcm_s16le"}[Path(name).suffix]
    path = written(tmp_path / name, codec, sound, video=name == "a.mkv")
    done = run("transcribe", path, *QUICK)
    assert done.code == 0, done.err
    assert done.out == run("transcribe", FILE, *QUICK).out


@pytest.mark.parametrize("name", ["a.mp3", "a.ogg", "a.webm", "a.ts"])
def test_sound_that_lost_a_little_is_heard(name, run, sound, tmp_path):
    codec = {"a.mp3": "mp3", "a.ts": "mp2"}.get(name, "libopus")
    done = run("transcribe", written(tmp_path / name, codec, sound), *QUICK)
    assert done.code == 0, done.err
    assert " word" in done.err


def test_channels_that_cancel_each_other_are_heard(run, sound, tmp_path):
    path = written(tmp_path / "a.flac", "flac", sound, -sound)
    assert run("transcribe", path, *QUICK).out == run("transcribe", FILE, *QUICK).out


def test_a_track_of_another_form_by_its_number(run, sound, tmp_path):
    path = written(tmp_path / "a.mkv", "pcm_s16le", sound, video=True)
    assert run("transcribe", path, "-t", "2", *QUICK).code == 0
    done = run("transcribe", path, "-t", "1", *QUICK)
    assert done.code == 2
    assert "track 1 is not an audio track: expected one of 2" in done.err


def test_a_copy_with_captions_is_made_of_mp4s_alone(run, sound, tmp_path):
    path = written(tmp_path / "a.wav", "pcm_s16le", sound)
    done = run("transcribe", path, "-o", tmp_path / "b.mp4", *QUICK)
    assert done.code == 2
    assert "not an ISO base media file" in done.err


def with_pictures(path, cut, frames=200):
    """The sound of FILE beside pictures, ten a second, that turn from dark to bright once."""
    import av

    with av.open(FILE) as heard, av.open(str(path), "w") as out:
        sound = out.add_stream_from_template(heard.streams.audio[0])
        pictures = out.add_stream("mpeg4", rate=10, width=64, height=48, pix_fmt="yuv420p")
        for number in range(frames):
            shade = np.full((72, 64), 40 if number < cut else 180, np.uint8)
            out.mux(pictures.encode(av.VideoFrame.from_ndarray(shade, "yuv420p")))
        out.mux(pictures.encode(None))
        for packet in heard.demux(audio=0):
            if packet.dts is not None:
                packet.stream = sound
                out.mux(packet)
    return path


def test_a_caption_stays_until_the_picture_is_cut(run, tmp_path):
    def segments(path, *more):
        done = run("transcribe", path, "-o", tmp_path / "said.json", *QUICK, *more)
        assert done.code == 0, done.err
        found = json.loads((tmp_path / "said.json").read_text("utf-8"))["segments"]
        return [(one["start"], one["end"]) for one in found], done.err

    plain, _ = segments(FILE)
    start, end = plain[-1]
    cut = int(end * 10) + 1
    path = with_pictures(tmp_path / "cut.mp4", cut)
    assert segments(path, "--at-cuts")[0] == [*plain[:-1], (start, cut / 10)]
    same, told = segments(FILE, "--at-cuts")
    assert same == plain
    assert "captions do not follow cuts of the picture: " in told


def test_what_nobody_reads_is_refused(run, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("to be or not to be\n" * 99)
    done = run("transcribe", path, *QUICK)
    assert done.code == 2
    assert "media" in done.err


def test_a_copy_with_a_track_of_captions(run, tmp_path):
    target = tmp_path / "captioned.mp4"
    done = run("transcribe", FILE, "-o", target, *QUICK)
    assert done.code == 0, done.err
    index = fragdex.index(target, exact=True)
    assert [(t.kind, t.info.format) for t in index.tracks] == [("audio", "fLaC"), ("text", "wvtt")]
    same = [fragdex.decoding.audio(fragdex.index(f, exact=True), f, 2, 4) for f in (FILE, target)]
    assert (same[0] == same[1]).all()


def test_counts_as_json(run, tmp_path):
    done = run("transcribe", FILE, "--json", "-o", tmp_path / "a.vtt", *QUICK)
    (line,) = done.out.splitlines()
    report = json.loads(line)
    assert report["words"] > 0
    assert report["missing"] == []
    assert report["engine"].startswith("sherpa-onnx")


def test_words_of_another_language_are_told_and_left_out_where_asked(run, tmp_path):
    """The default engine writes English words for German and Spanish."""
    pytest.importorskip("moonshine_voice")
    foreign = str(SPEECH / "foreign-aac.mp4")
    done = run("transcribe", foreign, "-o", tmp_path / "said.json", "--json")
    assert done.code == 0
    facts = json.loads(done.out)
    assert facts["language"] is None
    assert facts["doubted"]
    assert "was probably not said so: this does not sound like English" in done.err
    all_words = json.loads((tmp_path / "said.json").read_text("utf-8"))
    assert all_words["doubted"] == facts["doubted"]
    run("transcribe", foreign, "-o", tmp_path / "sure.json", "--leave-out-doubted")
    sure = json.loads((tmp_path / "sure.json").read_text("utf-8"))
    assert len(sure["word_segments"]) < len(all_words["word_segments"]) / 2


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


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (b"Ada\xff\n", "utf-8"),
        (b"\xff\xfeA\0d\0a\0", "utf-8"),
        (b"x" * 100, "at most 60 characters"),
        (b"Ada\n" * (1 << 16), "larger than"),
        (None, "No such file"),
    ],
)
def test_a_vocabulary_that_is_refused(lines, told, run, tmp_path):
    path = tmp_path / "words.txt"
    if lines is not None:
        path.write_bytes(lines)
    done = run("transcribe", FILE, "--vocabulary", path)
    assert done.code == 2
    assert told in done.err
    assert done.out == ""


def test_a_vocabulary_needs_a_language_that_it_is_chosen_by(run, tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("\ufeffAda Lovelace\r\n\n  fragdex \n", "utf-8")
    done = run("transcribe", FILE, "--vocabulary", path, *QUICK)
    assert done.code == 2
    assert "for English alone" in done.err
    done = run("transcribe", FILE, "--vocabulary", path, "--language", "en", *QUICK)
    assert done.code == 0, done.err
    assert "Ada" not in done.out


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
