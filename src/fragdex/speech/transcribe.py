"""A whole file without a service: slice by slice, in several processes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import fragdex
from fragdex import Index, Source, open_source
from fragdex.errors import Unavailable, Unprocessable
from fragdex.speech.captions import USUAL, CaptionLayout, cues_of, marked
from fragdex.speech.diarization import Turn
from fragdex.speech.engines import EngineChoice
from fragdex.speech.plan import TranscriptionPlan
from fragdex.speech.process import SpeechProcess
from fragdex.speech.speakers import numbered, with_speakers
from fragdex.speech.voices import ensure_voices
from fragdex.speech.words import SliceTranscript, Transcript, merged

__all__ = ["cuts_of", "transcribe"]

_TRIES: Final = 3
"""Processes that do a part, one after the other, where they are ended from outside."""

Used = TypeVar("Used")
OnSlice = Callable[[SliceTranscript, int, int], None]
OnStretch = Callable[[int, int], object]


def transcribe(
    source: Any,
    *,
    index: Index | None = None,
    track: int | None = None,
    choice: EngineChoice | None = None,
    language: str | None = None,
    work_slice_ms: int = 30_000,
    jobs: int = 1,
    init: bytes | None = None,
    speakers: bool = False,
    vocabulary: Sequence[str] = (),
    on_slice: OnSlice = lambda heard, done, of: None,
    on_stretch: OnStretch = lambda done, of: None,
) -> Transcript:
    """The speech of a track.

    Args:
        source: the file, in any form that `fragdex.open_source` takes.
        index: of it; None: made here.
        track: track_ID; None: the first audio track.
        choice: the engine; None: the default one.
        language: ISO 639-1; None: what the engine detects, or the only one it knows.
        work_slice_ms: length of the slices.
        init: the initialization segment, for segments that have none.
        jobs: processes, each with the engine's model in memory.
        speakers: whether each word says who speaks (`Word.speaker`).
        vocabulary: names and terms that are preferred where they are said, each of up to four
            words; at most 500.
        on_slice: called in this thread with each slice in the order of the file, how many of them
            are done, and how many there are.
        on_stretch: called in this thread with how many stretches of ten minutes have had their
            voices told apart, and how many there are.

    Raises:
        EngineUnavailable: the engine or its model is missing, or what tells speakers apart.
        InvalidRequest: the engine lacks this language, or cannot use the vocabulary.
        TrackNotFound: no such track, or it is not sound.
        UndecodableMedia: nothing of the track could be decoded.
    """
    if speakers:
        ensure_voices()  # what is missing is said before anything is heard
    with ExitStack() as stack:
        opened = source if isinstance(source, Source) else stack.enter_context(open_source(source))
        known = fragdex.index(opened) if index is None else index
        children = _Children(known, opened, choice or EngineChoice(), track, init)
        stack.callback(children.end)
        plan = children.use(
            lambda child: child.plan(work_slice_ms, language, vocabulary, check=children.check)
        )
        heard: list[SliceTranscript] = []
        pool = stack.enter_context(ThreadPoolExecutor(max(1, jobs)))
        # Before the pool waits for its threads: what they do ends at once.
        stack.callback(children.over.set)
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        for one in pool.map(partial(children.transcribe_slice, plan), plan.slices):
            heard.append(one)
            on_slice(one, len(heard), len(plan.slices))
        transcript = merged(heard, plan.language, requested=language)
        plan.ensure_sound(transcript.missing)
        if speakers:
            stretches: list[list[Turn]] = []
            for turns in pool.map(partial(children.speaker_turns, plan), plan.stretches):
                stretches.append(turns)
                on_stretch(len(stretches), len(plan.stretches))
            turns = children.matched_turns(stretches)
            words = with_speakers(transcript.words, numbered(turns, transcript.words))
            transcript = replace(transcript, words=tuple(words), attributed=True)
    return replace(transcript, engine=children.engine)


def cuts_of(
    transcript: Transcript, source: Any, layout: CaptionLayout = USUAL, *,
    index: Index | None = None, track: int | None = None, init: bytes | None = None,
) -> tuple[int, ...]:  # fmt: skip
    """Cuts of the picture near captions, for `CaptionLayout.cuts_ms`.

    Only pictures within 300 ms of where a caption begins or ends are decoded, and those that they
    need; in a process of its own.

    Args:
        transcript: of the file.
        source, index, track, init: as of `transcribe`.
        layout: of the captions.

    Returns: milliseconds of presentation of the first frame after each cut, in order.

    Raises:
        TrackNotFound: there are no pictures.
        UndecodableMedia: they are encrypted, or there is no decoder for them.
    """
    times = {
        time
        for words in (transcript.words, marked(transcript))
        for cue in cues_of(words, replace(layout, cuts_ms=()))
        for time in (cue.start_ms, cue.end_ms)
    }
    with ExitStack() as stack:
        opened = source if isinstance(source, Source) else stack.enter_context(open_source(source))
        known = fragdex.index(opened) if index is None else index
        child = stack.enter_context(SpeechProcess(EngineChoice()))
        child.take(known, opened, track, init=init)
        return child.cuts(sorted(times))


class _Children:
    """Processes that have taken a track; as many as are used at once.

    Attributes:
        over: set where nothing more is to be heard.
        engine: what hears, for people; "" until one is open.
    """

    def __init__(
        self,
        index: Index,
        source: Source,
        choice: EngineChoice,
        track: int | None,
        init: bytes | None,
    ) -> None:
        self._index, self._choice, self._track, self._init = index, choice, track, init
        self._source = _InTurn(source)
        self._all: list[SpeechProcess] = []
        self._idle: queue.SimpleQueue[SpeechProcess] = queue.SimpleQueue()
        self.over = threading.Event()
        self.engine = ""

    def transcribe_slice(self, plan: TranscriptionPlan, number: int) -> SliceTranscript:
        """The words of a slice."""
        return self.attempt(partial(SpeechProcess.transcribe_slice, plan=plan, number=number))

    def speaker_turns(self, plan: TranscriptionPlan, number: int) -> list[Turn]:
        """Who speaks when in a stretch; nobody where its sound breaks what tells them apart.

        Its words are `Transcript.unattributed` then.
        """
        try:
            return self.attempt(partial(SpeechProcess.speaker_turns, plan=plan, number=number))
        except Unprocessable:
            return []

    def matched_turns(self, stretches: list[list[Turn]]) -> list[Turn]:
        """The turns of all stretches; words without speakers are better than none."""
        try:
            return self.attempt(partial(SpeechProcess.matched_turns, stretches=stretches))
        except Unprocessable:
            return []

    def attempt(self, work: Callable[..., Used]) -> Used:
        """Have a process do something; where somebody ends it, another one does it again."""
        for left in reversed(range(_TRIES)):
            try:
                return self.use(partial(work, check=self.check))
            except Unavailable:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    def use(self, work: Callable[[SpeechProcess], Used]) -> Used:
        """Have an idle one do something, or a new one."""
        self.check()
        try:
            child = self._idle.get_nowait()
        except queue.Empty:
            child = self._new()
        result = work(child)
        self._idle.put(child)
        return result

    def check(self) -> None:
        """End what is done where nothing more is to be heard."""
        if self.over.is_set():
            raise InterruptedError

    def end(self) -> None:
        """End all of them."""
        for child in self._all:
            child.end()

    def _new(self) -> SpeechProcess:
        child = SpeechProcess(self._choice)
        self._all.append(child)
        facts = child.open(check=self.check)
        self.engine = f"{facts.name} {facts.version} ({facts.model_id})"
        child.take(self._index, self._source, self._track, init=self._init, check=self.check)
        return child


class _InTurn(Source):
    """An open source, for several threads in turn."""

    def __init__(self, source: Source) -> None:
        super().__init__(
            source.name, size=source.size, remote=True,
            max_bytes=source.max_bytes, max_requests=source.max_requests,
        )  # fmt: skip
        self._source, self._lock = source, threading.Lock()

    def fileno(self) -> int | None:
        return self._source.fileno()

    def read_up_to(self, range: fragdex.ByteRange) -> bytes:
        with self._lock:
            return self._source.read_up_to(range)
