"""What an engine promises, and how one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fragdex.errors import InvalidRequest
from fragdex.service.transcriptions.words import Word

__all__ = ["Engine", "EngineChoice", "Sound", "model_files", "need_language"]

Sound = npt.NDArray[np.int16]
"""16 kHz, one channel."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine, and with what.

    Attributes:
        name: one of `ENGINES`.
        model: folder of the model; None: the one the engine's package carries, if it does.
        device: `auto`, `cpu` or `cuda`; auto takes a GPU where there is one.
        compute_type: of faster-whisper: `default`, `int8`, `float16` …
        batch_size: utterances that are recognized at once, where the engine can.
        threads: of the processor; 0: as many as the engine likes.
        download: whether `model` may be a name that the engine fetches from the network.
    """

    name: str = "pocketsphinx"
    model: str | None = None
    device: str = "auto"
    compute_type: str = "default"
    batch_size: int = 1
    threads: int = 0
    download: bool = False


class Engine(Protocol):
    """An engine. Cutting, offsets, merging and captions are not its business.

    Attributes:
        name: as in `ENGINES`.
        version: of its package.
        model_id: which model; another one gives other words.
        window_ms: it hears in windows so long: utterances are joined up to that; 0: each alone,
            up to 20 seconds.
        languages: ISO 639-1 codes; None: whatever the model was made for.
        deterministic: whether the same sound gives the same words again.
    """

    name: str
    version: str
    model_id: str
    window_ms: int
    languages: frozenset[str] | None
    deterministic: bool

    def open(self) -> None:
        """Load the model; never from the network, unless the choice allows it.

        Raises:
            EngineUnavailable: the package or the model is missing or broken; tells what to do.
        """

    def detect(self, sounds: Sequence[Sound]) -> str | None:
        """The language spoken in some parts of a track, or None where the engine cannot tell."""

    def transcribe(self, utterances: Sequence[Sound], language: str | None) -> list[list[Word]]:
        """The words of each utterance, in order; times count from its own start."""

    def close(self) -> None:
        """Give the model's memory back."""


def need_language(engine: Engine, language: str | None) -> None:
    """Refuse a language that an engine lacks.

    Raises:
        InvalidRequest: names the field `language`.
    """
    if language is None or engine.languages is None:
        return
    if language.lower().split("-")[0] not in engine.languages:
        known = ", ".join(sorted(engine.languages))
        raise InvalidRequest(
            f"the engine {engine.name} does not know this language",
            pointer="/language",
            expected=known if len(engine.languages) <= 12 else f"one of {len(engine.languages)}",
            found=language,
            advice="choose another engine or model",
        )


def model_files(folder: str, *wanted: str) -> list[Path]:
    """One file of a model's folder for each pattern; those missing are left out.

    Patterns hold alternatives parted by `|`; of several matches the smallest name is taken, and
    files quantized to 8 bits before others.
    """
    found = []
    for patterns in wanted:
        matches = [path for pattern in patterns.split("|") for path in Path(folder).glob(pattern)]
        files = sorted(path for path in matches if path.is_file())
        files.sort(key=lambda path: ".int8." not in path.name)
        found += files[:1]
    return found
