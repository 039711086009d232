"""A speech engine in a process of its own, with its model in memory for one track after the other.

Bytes of the file come from whoever started it, who hands over what is open and reads the rest.
"""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Final

from fragdex import Index, Source
from fragdex.errors import EngineUnavailable, Unprocessable
from fragdex.formats import fidx
from fragdex.record import record
from fragdex.sandbox.channel import Channel, opened
from fragdex.sandbox.child import Answer, ChildProcess, Failures, ParentSource, reads
from fragdex.sandbox.processes import memory_of_one
from fragdex.sandbox.walls import Walls
from fragdex.speech.acoustics import model_folder
from fragdex.speech.captions import CUT_MS
from fragdex.speech.diarization import Diarizer, Turn, matched
from fragdex.speech.engines import (
    ENGINES,
    Engine,
    EngineChoice,
    fetched,
    make_engine,
    required_package,
    validate_language,
    validate_vocabulary,
)
from fragdex.speech.plan import TranscriptionPlan
from fragdex.speech.words import SliceTranscript

STALL_SECONDS: Final = 900.0
"""Silence after which a process is taken for hung; it speaks at every few utterances."""
# The second lock: the engines look at the model's files before they load it.
_OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
# What they compute at once is too small to share: on a busy machine threads that wait for one
# another take twice the processor and, of ten at a time, four times the wall time.
_ONE_THREAD: Final = {"MOONSHINE_ORT_SINGLE_THREAD": "1", "OPENBLAS_NUM_THREADS": "1"}
# Threads with a heap each keep 40 MB more of what they gave back (glibc).
_ONE_HEAP: Final = {"MALLOC_ARENA_MAX": "1"}
_PASSED_ON: Final = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
# It writes nothing but what libraries leave in their caches.
_LARGEST_FILE: Final = 1 << 30
# A model is held as it is on disk, and once more while it is made ready.
_COPIES_OF_MODEL: Final = 3
_FAILURES: Final = Failures("the speech engine", "this sound")

Check = Callable[[], None]


@record(frozen=True, slots=True)
class EngineFacts:
    """What an open engine is."""

    name: str
    version: str
    model_id: str


class SpeechProcess(ChildProcess):
    """A process with an engine in it, for one track after the other.

    Any error but one about the track ends the process.

    Attributes:
        facts: None until it is opened.
    """

    def __init__(self, choice: EngineChoice) -> None:
        self.choice, self._local = choice, fetched(choice)
        super().__init__(
            __name__, _walls(self._local), _FAILURES,
            environment=_environment(choice),
            stall_seconds=STALL_SECONDS,
        )  # fmt: skip
        self._read: Answer | None = None
        self.facts: EngineFacts | None = None

    def open(self, *, check: Check = lambda: None) -> EngineFacts:
        """Load the model, if that has not been done.

        Raises:
            EngineUnavailable: the engine or its model is missing; tells what to do.
        """
        if self.facts is None:
            try:
                answer = self.do("open", check=check, choice=asdict(self._local))
            except (RuntimeError, Unprocessable) as error:
                # Some engines end their process where a model is broken.
                raise EngineUnavailable(
                    f"the model of {self.choice.name} broke the engine",
                    advice="unpack it again, or take another one",
                ) from error
            if self.choice.download and self.choice.model:
                answer["model_id"] = Path(self.choice.model).name
            self.facts = EngineFacts(**answer)
        return self.facts

    def take(
        self,
        index: Index,
        source: Source,
        track: int | None = None,
        *,
        init: bytes | None = None,
        check: Check = lambda: None,
    ) -> int:
        """Turn to a track.

        Args:
            source: the file; a local one without a budget is handed over, another one is read in
                this process when the child requests bytes.

        Returns: the track's id.

        Raises:
            TrackNotFound, UndecodableMedia: as `fragdex.decoding.audio`.
        """
        self._read = reads(source)
        lent = source.fileno() if source.max_bytes is None is source.max_requests else None
        with tempfile.TemporaryFile() as file:
            for piece in fidx.pieces(index):
                file.write(piece)
            file.flush()
            answer = self.do(
                "take", check=check, answer=self._read, name=source.name, size=source.size,
                files=[file.fileno(), *([] if lent is None else [lent])], track=track,
                init=None if init is None else base64.b64encode(init).decode(),
            )  # fmt: skip
        return int(answer["track"])

    def plan(
        self,
        work_slice_ms: int,
        language: str | None = None,
        vocabulary: Sequence[str] = (),
        *,
        check: Check = lambda: None,
    ) -> TranscriptionPlan:
        """How the track is heard.

        Raises:
            InvalidRequest: the engine lacks this language, or cannot use the vocabulary.
            EngineUnavailable: what the vocabulary needs is not installed.
        """
        answer = self._heard(
            "plan", check, work_slice_ms=work_slice_ms, language=language,
            vocabulary=list(vocabulary),
        )  # fmt: skip
        return TranscriptionPlan.of_json(answer)

    def transcribe_slice(
        self, plan: TranscriptionPlan, number: int, *, check: Check = lambda: None
    ) -> SliceTranscript:
        """The words of a slice.

        Args:
            check: called several times a second; what it raises ends the process.
        """
        heard = self._heard("transcribe_slice", check, plan=plan.as_json(), number=number)
        return SliceTranscript.of_json(heard)

    def speaker_turns(
        self, plan: TranscriptionPlan, number: int, *, check: Check = lambda: None
    ) -> list[Turn]:
        """Who speaks when in a stretch of the plan; its voices are numbered by themselves.

        Raises:
            EngineUnavailable: what tells speakers apart is not installed.
        """
        answer = self._heard("speaker_turns", check, plan=plan.as_json(), number=number)
        return [Turn(*turn) for turn in answer["turns"]]

    def matched_turns(
        self, stretches: Sequence[Sequence[Turn]], *, check: Check = lambda: None
    ) -> list[Turn]:
        """The turns of all stretches, in which a voice has one number."""
        answer = self._heard("matched_turns", check, stretches=stretches)
        return [Turn(*turn) for turn in answer["turns"]]

    def cuts(self, times_ms: Sequence[int], *, check: Check = lambda: None) -> tuple[int, ...]:
        """Cuts of the picture near times; all in milliseconds. No engine needs to be open.

        Raises:
            TrackNotFound, UndecodableMedia: as `fragdex.Frames`.
        """
        answer = self._heard("cuts", check, times_ms=times_ms)
        return tuple(answer["cuts_ms"])

    def _heard(self, job: str, check: Check, **given: Any) -> dict[str, Any]:
        """What a job on the track gives, whose bytes are read here."""
        return self.do(job, check=check, answer=self._read, **given)

    def leave(self) -> None:
        """Forget the track; the model stays loaded."""
        self.do("leave")


@record(frozen=True, slots=True)
class EngineState:
    """Whether an engine can be used.

    Attributes:
        name: of the engine.
        ready: whether it could be opened as chosen.
        version: of its package, or None where that is not installed.
        reason, fix: why it is not ready, and what to do; "" where it is.
        model: which one it opened; "" where it is not ready.
    """

    name: str
    ready: bool
    version: str | None
    reason: str = ""
    fix: str = ""
    model: str = ""


def engine_states(choices: Sequence[EngineChoice] = ()) -> list[EngineState]:
    """Every engine: installed or not, and whether it can be opened as chosen.

    Args:
        choices: what the operator chose; the others are looked at as they come. An engine that
            cannot be opened without a model is not ready.
    """
    chosen = {choice.name: choice for choice in choices}
    return [_state(chosen.get(name, EngineChoice(name))) for name in ENGINES]


def _state(choice: EngineChoice) -> EngineState:
    version = None
    try:
        version = required_package(choice.name)
        with SpeechProcess(choice) as child:
            facts = child.open()
    except EngineUnavailable as error:
        return EngineState(choice.name, False, version, error.message, error.advice or "")
    return EngineState(choice.name, True, version, model=facts.model_id)


def _environment(choice: EngineChoice) -> dict[str, str]:
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return _OFFLINE | _ONE_HEAP | (_ONE_THREAD if choice.threads < 2 else {}) | passed_on


def _walls(choice: EngineChoice) -> Walls:
    model = Path(choice.model).absolute() if choice.model else None
    size = 0
    if model is not None:
        size = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    return Walls(
        memory_of_one() + _COPIES_OF_MODEL * size,
        _LARGEST_FILE,
        readable=() if model is None else _with_targets(model),
        devices=choice.device != "cpu",
    )


def _with_targets(model: Path) -> tuple[str, ...]:
    """A model's folder, and where the links in it lead."""
    folders = {path.resolve().parent for path in model.rglob("*") if path.is_symlink()}
    return (str(model), *map(str, folders))


class _SpeechJobs:
    """The jobs, by name."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._engine: Engine | None = None
        self._listener: Any = None
        self._diarizer = cache(Diarizer)
        self.source: Any = None
        self._index: Any = None
        self._init: bytes | None = None

    @property
    def engine(self) -> Engine:
        assert self._engine is not None  # opened first
        return self._engine

    def open(self, choice: dict[str, Any]) -> dict[str, Any]:
        engine = make_engine(EngineChoice(**choice))
        engine.open()
        self._engine = engine
        return {"name": engine.name, "version": engine.version, "model_id": engine.model_id}

    def take(
        self, files: list[int], name: str, size: int | None, track: int | None, init: str | None
    ) -> dict[str, Any]:
        import av.logging

        from fragdex import open_index, open_source
        from fragdex.speech.slices import Listener

        av.logging.set_level(None)
        self.leave()
        with opened(files[0], "index") as file:
            index = open_index(file)
        if len(files) > 1:
            with opened(files[1], name) as file:
                self.source = open_source(file)
        else:
            self.source = ParentSource(self._channel, size, name)
        moov = None if init is None else base64.b64decode(init)
        self._listener = Listener(index, self.source, track, init=moov)
        self._index, self._init = index, moov
        return {"track": self._listener.track.id}

    def leave(self) -> dict[str, Any]:
        if self._listener is not None:
            self._listener.close()
            self.source.close()
            self._listener = self.source = None
        return {}

    def plan(
        self, work_slice_ms: int, language: str | None, vocabulary: list[str]
    ) -> dict[str, Any]:
        validate_language(self.engine, language)
        entries = validate_vocabulary(self.engine, vocabulary, language)
        if entries and not self.engine.own_vocabulary and model_folder() is None:
            raise EngineUnavailable(
                "the acoustic model that chooses between spellings is not installed",
                advice="pip install 'fragdex[speech]', or leave the vocabulary out",
            )
        plan: TranscriptionPlan = self._listener.plan(
            work_slice_ms, self.engine, language, entries, self._report
        )
        return plan.as_json()

    def transcribe_slice(self, plan: dict[str, Any], number: int) -> dict[str, Any]:
        heard: SliceTranscript = self._listener.transcribe_slice(
            TranscriptionPlan.of_json(plan), number, self.engine, self._report
        )
        return heard.as_json()

    def speaker_turns(self, plan: dict[str, Any], number: int) -> dict[str, Any]:
        turns = self._listener.speaker_turns(
            TranscriptionPlan.of_json(plan), number, self._diarizer(), self._report
        )
        return {"turns": turns}

    def matched_turns(self, stretches: list[list[list[int]]]) -> dict[str, Any]:
        given = [[Turn(*turn) for turn in stretch] for stretch in stretches]
        return {"turns": matched(given, self._listener.read, self._diarizer(), self._report)}

    def cuts(self, times_ms: list[int]) -> dict[str, Any]:
        from fragdex.frames.changes import cuts_near, small_frames

        with small_frames(self.source, self._index, init=self._init) as frames:
            return {"cuts_ms": cuts_near(frames, times_ms, CUT_MS, self._report)}

    def _report(self, done: int, of: int) -> None:
        self._channel.send(progress=done, of=of)


def main(channel: Channel) -> None:
    """Do jobs until the parent is gone."""
    work = _SpeechJobs(channel)
    jobs = (
        work.open, work.take, work.leave, work.plan, work.transcribe_slice, work.speaker_turns,
        work.matched_turns, work.cuts,
    )  # fmt: skip
    channel.serve({job.__name__: job for job in jobs})
