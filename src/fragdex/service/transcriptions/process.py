"""A listening process: started, given slices, answered what it asks, and ended."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fragdex import ByteRange, FragmentIndex, Source
from fragdex.formats import fidx
from fragdex.service.errors import EngineUnavailable, Unprocessable
from fragdex.service.processes.child import ChildProcess
from fragdex.service.processes.failures import Failures
from fragdex.service.processes.limits import memory_of_one
from fragdex.service.processes.walls import Walls
from fragdex.service.transcriptions.engines import EngineChoice
from fragdex.service.transcriptions.engines.choosing import fetched
from fragdex.service.transcriptions.plan import Plan
from fragdex.service.transcriptions.words import Heard

__all__ = ["Child", "EngineFacts"]

STALL_SECONDS: Final = 900.0
"""Silence after which a process is taken for hung; it speaks at every few utterances."""
# The second lock: the engines look at the model's files before they load it.
_OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
_PASSED_ON: Final = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
# It writes nothing but what libraries leave in their caches.
_LARGEST_FILE: Final = 1 << 30
# A model is held as it is on disk, and once more while it is made ready.
_COPIES_OF_MODEL: Final = 3
_FAILURES: Final = Failures("the speech engine", "this sound")

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
        self._named = choice.model if choice.download else None
        self.choice = choice = fetched(choice)
        self._process = ChildProcess(
            "fragdex.service.transcriptions.child", _walls(choice), _FAILURES,
            environment=_OFFLINE | {n: os.environ[n] for n in _PASSED_ON if n in os.environ},
            stall_seconds=stall_seconds,
        )  # fmt: skip
        self._source: Source | None = None
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
                told = self._process.do("open", check=check, choice=self.choice.as_json())
            except (RuntimeError, Unprocessable) as error:
                # Some engines end their process where a model is broken.
                raise EngineUnavailable(
                    f"the model of {self.choice.name} broke the engine",
                    advice="unpack it again, or take another one",
                ) from error
            languages = told["languages"]
            told["languages"] = None if languages is None else tuple(languages)
            told["model_id"] = Path(self._named or "").name or told["model_id"]
            self.facts = EngineFacts(**told)
        return self.facts

    def take(
        self,
        index: FragmentIndex,
        source: Source,
        track: int | None = None,
        *,
        init: bytes | None = None,
        check: Check = lambda: None,
    ) -> int:
        """Turn to a track.

        Args:
            index: of the file.
            source: the file; a local one without a budget is handed over, another one is read in
                this process when the child asks for bytes.
            track: track_ID; None: the first audio track.
            init: the initialization segment, for segments that have none.

        Returns: the track's id.

        Raises:
            TrackNotFound, UndecodableMedia: as `fragdex.audio`.
        """
        self._source = source
        lent = source.fileno() if source.max_bytes is None is source.max_requests else None
        with tempfile.TemporaryFile() as file:
            for piece in fidx.pieces(index):
                file.write(piece)
            file.flush()
            told = self._process.do(
                "take", check=check, answer=self._answer, name=source.name, size=source.size,
                files=[file.fileno(), *([] if lent is None else [lent])], track=track,
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
        told = self._process.do(
            "plan", check=check, answer=self._answer, work_slice_ms=work_slice_ms, language=language
        )
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
        made = self._process.do(
            "hear", check=check, answer=self._answer, plan=plan.as_json(), number=number,
            on_message=lambda message: told(message["progress"], message["of"]),
        )  # fmt: skip
        return Heard.of_json(made)

    def leave(self) -> None:
        """Forget the track; the model stays loaded."""
        self._process.do("leave")
        self._source = None

    def end(self) -> None:
        """End the process."""
        self._process.end()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _answer(self, asked: dict[str, Any]) -> tuple[dict[str, Any], Sequence[int]]:
        assert self._source is not None
        data = self._source.read_up_to(ByteRange(asked["start"], asked["stop"]))
        return {"data": base64.b64encode(data).decode()}, ()


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
