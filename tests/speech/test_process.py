"""An engine in a process of its own: what it is asked, how it ends, and what then."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import fragdex
from fragdex.errors import (
    EngineUnavailable,
    InvalidRequest,
    TrackNotFound,
    Unavailable,
    UndecodableMedia,
)
from fragdex.speech.engines import BUILT_IN, EngineChoice
from fragdex.speech.plan import TranscriptionPlan
from fragdex.speech.process import SpeechProcess
from fragdex.speech.transcribe import transcribe
from fragdex.speech.words import SliceTranscript
from fragdex.testing import movie
from speech.conftest import SPEECH, truth

pytest.importorskip("pocketsphinx")
pytest.importorskip("sherpa_onnx")

# It says nonsense, but at once.
pytestmark = pytest.mark.large

QUICK = EngineChoice("sherpa-onnx", str(SPEECH / "tiny-ctc"))
FILE = SPEECH / "pauses-aac.mp4"


@pytest.fixture(scope="module")
def child():
    with SpeechProcess(QUICK) as process:
        process.open()
        yield process


def taken(child, file=FILE, track=None):
    source = fragdex.open_source(file)
    return child.take(fragdex.index(source), source, track)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="its runtime takes a thread a core")
def test_the_default_engine_takes_one_thread_where_none_are_asked_for():
    pytest.importorskip("moonshine_voice")
    threads = {}
    for asked in (0, 1, 2):
        with SpeechProcess(EngineChoice("moonshine", threads=asked)) as child:
            child.open()
            threads[asked] = len(os.listdir(f"/proc/{child.pid}/task"))
    assert threads[0] == threads[1] < threads[2]


def test_a_track_is_heard_through_the_process_of_its_engine(child):
    facts = child.open()
    assert facts.name == "sherpa-onnx"
    assert taken(child) == 1
    plan = child.plan(10_000)
    steps = []
    asked = child.do("transcribe_slice", plan=plan.as_json(), number=1, on_message=steps.append)
    assert steps[0]["progress"] == 0
    assert steps[-1]["progress"] == steps[-1]["of"] == asked["utterances"] > 0
    assert taken(child) == 1
    transcript = child.transcribe_slice(plan, 1)
    assert transcript.words == SliceTranscript.of_json(asked).words
    assert 0 < transcript.bytes_read < FILE.stat().st_size


def test_the_bytes_come_from_whoever_started_it(child):
    with fragdex.open_source(FILE.read_bytes()) as source:
        index = fragdex.index(source)
        child.take(index, source)
        before = source.bytes_read
        heard = child.transcribe_slice(child.plan(10_000), 2)
        assert source.bytes_read - before >= heard.bytes_read * 0.9
    assert heard.words


def test_wrong_tracks_are_refused_and_the_process_lives(child):
    video = SPEECH.parent / "faststart.mp4"
    with pytest.raises(TrackNotFound, match="no track 9"):
        taken(child, video, 9)
    with pytest.raises(TrackNotFound, match="not an audio track"):
        taken(child, video, 1)
    with pytest.raises(TrackNotFound, match="there is no audio track"):
        taken(child, movie())
    assert child.alive
    assert taken(child) == 1


def test_an_unknown_language_is_refused():
    with SpeechProcess(EngineChoice()) as child:
        child.open()
        taken(child)
        with pytest.raises(InvalidRequest, match="does not know") as error:
            child.plan(10_000, "tlh")
        assert error.value.pointer == "/language"
        assert child.plan(10_000, "en").language == "en"


def test_what_check_raises_ends_the_process():
    class Cancelled(Exception):
        pass

    def check():
        if time.monotonic() > begun + 1:
            raise Cancelled

    with SpeechProcess(EngineChoice()) as child:
        child.open()
        taken(child)
        plan = child.plan(60_000)
        begun = time.monotonic()
        with pytest.raises(Cancelled):
            child.transcribe_slice(plan, 0, check=check)
        assert not child.alive
        with pytest.raises(ProcessLookupError):
            os.kill(child.pid, 0)


def test_a_process_that_is_killed_is_told_as_passing():
    with SpeechProcess(QUICK) as child:
        child.open()
        taken(child)
        plan = child.plan(10_000)
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(Unavailable, match="SIGKILL"):
            child.transcribe_slice(plan, 0)


def test_a_source_that_fails_is_told():
    class Broken(fragdex.Source):
        def read_up_to(self, range):
            raise fragdex.errors.SourceUnavailable("the store is away")

    data = FILE.read_bytes()
    with SpeechProcess(QUICK) as child:
        child.open()
        with pytest.raises(fragdex.errors.SourceUnavailable, match="away"):
            child.take(fragdex.index(data), Broken("store", size=len(data)))
        assert child.alive


def test_it_ends_when_it_is_not_needed_any_more():
    with SpeechProcess(QUICK) as child:
        child.open()
        pid = child.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


# ---- whole files ----------------------------------------------------------------------------


def test_two_processes_hear_what_one_does():
    order = []
    one = transcribe(FILE, choice=QUICK, work_slice_ms=5_000)
    two = transcribe(
        FILE.read_bytes(),
        choice=QUICK,
        work_slice_ms=10_000,
        jobs=2,
        on_slice=lambda heard, done, of: order.append((heard.number, done, of)),
    )
    assert one.words
    assert order == [(n, n + 1, 7) for n in range(7)]
    # This engine hears 80 ms at a time: all that a slice may change is where it begins to count.
    assert [w.text for w in one.words] == [w.text for w in two.words]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_process_changes_nothing(jobs, monkeypatch):
    children = []
    began = SpeechProcess.__init__

    def noted(self, *args, **more):
        began(self, *args, **more)
        children.append(self)

    monkeypatch.setattr(SpeechProcess, "__init__", noted)
    killed = threading.Event()

    def kill(heard, done, of):
        if done == 2 and not killed.is_set():
            killed.set()
            os.kill(children[0].pid, signal.SIGKILL)

    transcript = transcribe(FILE, choice=QUICK, work_slice_ms=5_000, jobs=jobs, on_slice=kill)
    assert killed.is_set()
    assert len(children) >= 2
    assert not any(child.alive for child in children)
    in_one_piece = transcribe(FILE, choice=QUICK, work_slice_ms=600_000)
    assert transcript.words == in_one_piece.words


@pytest.mark.parametrize("name", BUILT_IN)
def test_words_are_those_that_are_said_when_they_are_said(name):
    transcript = transcribe(SPEECH / "late-opus.mp4", choice=EngineChoice(name), jobs=1)
    spoken_words = truth("late-opus.mp4")
    by_text = {}
    for text, start, _ in spoken_words:
        by_text.setdefault(text, []).append(start)
    hits = [
        min(abs(word.start_ms - start) for start in by_text[text])
        for word in transcript.words
        if (text := word.text.lower().strip(".,")) in by_text
    ]
    assert len(hits) > len(spoken_words) * 0.6
    assert sorted(hits)[len(hits) // 2] <= 20
    assert transcript.language == "en"
    assert name in transcript.engine


def test_a_missing_engine_is_told_before_anything_is_heard():
    with pytest.raises(EngineUnavailable, match="needs a model"):
        transcribe(FILE, choice=EngineChoice("faster-whisper"))


def test_encrypted_sound_is_refused():
    with pytest.raises(UndecodableMedia, match="encrypted"):
        transcribe(SPEECH.parent / "frag-encrypted.mp4", choice=QUICK)


def test_whisper_hears_in_its_process_offline():
    pytest.importorskip("faster_whisper")
    choice = EngineChoice("faster-whisper", str(SPEECH / "tiny-whisper"), device="cpu", threads=1)
    transcript = transcribe(SPEECH / "pauses-flac.mp4", choice=choice, work_slice_ms=5_000)
    again = transcribe(SPEECH / "pauses-flac.mp4", choice=choice, work_slice_ms=5_000)
    assert transcript.words
    assert transcript == again


def test_noise_beeps_and_silence_have_no_words():
    import numpy as np

    rate = 16_000
    rng = np.random.default_rng(3)
    t = np.arange(rate * 3) / rate
    parts = {
        "silence": np.zeros(rate * 3),
        "noise": rng.normal(0, 1500, rate * 3),
        "beeps": 8000 * np.sin(2 * np.pi * 1000 * t) * (t % 1 < 0.3),
    }
    for name, sound in parts.items():
        data = wave_movie(sound.astype(np.int16))
        assert transcribe(data).text == "", name


def wave_movie(sound):
    """PCM in a progressive file."""
    import io
    from fractions import Fraction

    import av

    out = io.BytesIO()
    with av.open(out, "w", format="mov") as container:
        stream = container.add_stream("pcm_s16le", rate=16_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(sound[None, :], "s16", "mono")
        frame.pts, frame.time_base, frame.sample_rate = 0, Fraction(1, 16_000), 16_000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return out.getvalue()


def test_a_plan_can_be_given_to_another_process():
    with SpeechProcess(QUICK) as first:
        first.open()
        taken(first)
        plan = first.plan(10_000)
        words = first.transcribe_slice(plan, 3).words
    with SpeechProcess(QUICK) as second:
        second.open()
        taken(second)
        assert second.transcribe_slice(TranscriptionPlan.of_json(plan.as_json()), 3).words == words
