"""A listening process: started, given slices, answered what it asks, and ended."""

from __future__ import annotations

import base64
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fragdex import ByteRange, FragmentIndex, Source
from fragdex.errors import FragdexError
from fragdex.service.errors import EngineUnavailable, Unavailable, Unprocessable
from fragdex.service.processes import CRASHES, Process
from fragdex.service.transcriptions import speaking
from fragdex.service.transcriptions.engines import EngineChoice
from fragdex.service.transcriptions.plan import Plan
from fragdex.service.transcriptions.words import Heard

__all__ = ["Child", "EngineFacts"]

STALL_SECONDS: Final = 900.0
"""Silence after which a process is taken for hung; it speaks at every few utterances."""
_POLL_SECONDS: Final = 0.25
_PASSED_ON: Final = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")

Check = Callable[[], None]
Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What an open engine is.

    Attributes:
        name, version: of the engine.
        model_id: of its model.
        languages: ISO 639-1 codes, or None where the model does not tell.
    """

    name: str
    version: str
    model_id: str
    languages: tuple[str, ...] | None


class Child:
    """A process with an engine in it, for one track after the other.

    Args:
        choice: the engine; its model is loaded once.

    To be used by one thread at a time; a context manager. Any error but one that tells of the
    track ends the process.
    """

    def __init__(self, choice: EngineChoice, *, stall_seconds: float = STALL_SECONDS) -> None:
        self.choice, self._stall = choice, stall_seconds
        more = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        if choice.download:
            more |= {n: os.environ[n] for n in ("HOME", "HF_HOME") if n in os.environ}
        else:
            # The second lock: the engines look at the model's files before they load it.
            more |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
        self._process = Process("fragdex.service.transcriptions.child", environment=more)
        self._source: Source | None = None
        self._taken: Any = None
        self.facts: EngineFacts | None = None

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be given something."""
        return self._process.alive

    def open(self, *, check: Check = lambda: None) -> EngineFacts:
        """Load the model, if that has not been done.

        Raises:
            EngineUnavailable: the engine or its model is missing; tells what to do.
        """
        if self.facts is None:
            try:
                told = self._do(check, do="open", choice=self.choice.as_json())
            except (RuntimeError, Unprocessable) as error:
                # Some engines end their process where a model is broken.
                raise EngineUnavailable(
                    f"the model of {self.choice.name} broke the engine",
                    advice="unpack it again, or take another one",
                ) from error
            languages = told["languages"]
            told["languages"] = None if languages is None else tuple(languages)
            self.facts = EngineFacts(**told)
        return self.facts

    def take(
        self,
        index: FragmentIndex | Path,
        source: Source,
        track: int | None = None,
        *,
        place: str | None = None,
        init: bytes | None = None,
        check: Check = lambda: None,
    ) -> int:
        """Turn to a track.

        Args:
            index: of the file, or where it is saved.
            source: the file; read in this thread when the process asks for bytes.
            track: track_ID; None: the first audio track.
            init: the initialization segment, for segments that have none.
            place: the path or URL of the same file, where the process may open it by itself.

        Returns: the track's id.

        Raises:
            TrackNotFound, UndecodableMedia: as `fragdex.audio`.
        """
        self._source = source
        with tempfile.TemporaryDirectory(prefix="fragdex-speech-") as folder:
            if isinstance(index, FragmentIndex):
                path = Path(folder, "track.fidx")
                index.save(path)
            else:
                path = index
            told = self._do(
                check, do="take", index=str(path), name=source.name, size=source.size,
                place=place, track=track,
                init=None if init is None else base64.b64encode(init).decode(),
            )  # fmt: skip
        return int(told["track"])

    def plan(
        self, work_slice_ms: int, language: str | None = None, *, check: Check = lambda: None
    ) -> Plan:
        """How the track is heard.

        Raises:
            InvalidRequest: the engine lacks this language.
        """
        told = self._do(check, do="plan", work_slice_ms=work_slice_ms, language=language)
        return Plan.of_json(told)

    def hear(
        self,
        plan: Plan,
        number: int,
        *,
        told: Told = lambda done, of: None,
        check: Check = lambda: None,
    ) -> Heard:
        """The words of a slice.

        Args:
            told: called with how many utterances of it are done.
            check: called several times a second; what it raises ends the process.
        """
        made = self._do(check, told, do="hear", plan=plan.as_json(), number=number)
        return Heard.of_json(made)

    def leave(self) -> None:
        """Forget the track; the model stays loaded."""
        self._do(lambda: None, do="leave")
        self._source = None

    def end(self) -> None:
        """End the process."""
        self._process.end()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _do(self, check: Check, told: Told = lambda done, of: None, **job: Any) -> dict[str, Any]:
        self._process.say(**job)
        try:
            message = self._answer(check, told)
        except EOFError:
            raise self._failure() from None
        except BaseException:
            self.end()
            raise
        if "failed" in message:
            raise speaking.error_of_json(message["failed"])
        done: dict[str, Any] = message["done"]
        return done

    def _answer(self, check: Check, told: Told) -> dict[str, Any]:
        heard = time.monotonic()
        while True:
            check()
            message = self._process.hear(_POLL_SECONDS)
            if message is None:
                if time.monotonic() - heard > self._stall:
                    raise Unprocessable("the speech engine hung on this sound")
                continue
            heard = time.monotonic()
            if "ask" in message:
                self._process.say(**self._bytes(message))
            elif "progress" in message:
                told(message["progress"], message["of"])
            else:
                return message

    def _bytes(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._source is not None
        try:
            data = self._source.read_up_to(ByteRange(asked["start"], asked["stop"]))
        except FragdexError as error:
            return {"answer": asked["ask"], "failed": speaking.error_as_json(error)}
        return {"answer": asked["ask"], "data": base64.b64encode(data).decode()}

    def _failure(self) -> Exception:
        ending, words = self._process.ending, self._process.words
        self.end()
        if ending in CRASHES:
            return Unprocessable("the speech engine broke on this sound", found=ending)
        if isinstance(ending, str):
            return Unavailable(f"the speech process was ended by {ending}", retry_after=5)
        if "MemoryError" in words:
            return Unprocessable("the sound needs more memory than there is")
        return RuntimeError(f"the speech process ended with {ending}: {words}")
