"""Engines that recognize speech, with one contract; each imports its package when it is opened.

moonshine     the default: small, English, with capitals and punctuation
pocketsphinx  smaller still, and plain; the default where moonshine cannot be had
whisper       faster-whisper (extra `whisper`): Whisper models on CPU and GPU
sherpa        sherpa-onnx (extra `sherpa`): transducer and CTC models, parakeet among them
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from fragdex.errors import EngineUnavailable, InvalidRequest
from fragdex.record import record
from fragdex.speech.vocabulary import plain_vocabulary
from fragdex.speech.words import Word

Sound = npt.NDArray[np.int16]
"""16 kHz, one channel."""

# name: module next to this one, its class, the package, what to install
_HOMES: Final = {
    "moonshine": ("moonshine", "Moonshine", "moonshine_voice", "'fragdex[speech]'"),
    "pocketsphinx": ("pocketsphinx", "PocketSphinx", "pocketsphinx", "'fragdex[pocketsphinx]'"),
    "faster-whisper": ("whisper", "FasterWhisper", "faster_whisper", "'fragdex[whisper]'"),
    "sherpa-onnx": ("sherpa", "Sherpa", "sherpa_onnx", "'fragdex[sherpa]'"),
}
# what fetches a model by its name and prints its folder
_FETCH: Final = {
    "faster-whisper": "from faster_whisper import download_model as fetch",
    "sherpa-onnx": "from huggingface_hub import snapshot_download as fetch",
}
ENGINES: Final = tuple(_HOMES)
"""Names of engines, the default first."""
BUILT_IN: Final = ("moonshine", "pocketsphinx")
"""Those whose packages carry a model, the better one first."""


@cache
def default_engine() -> str:
    """The engine that is taken where none is named.

    moonshine, but on systems that its package is not made for, and where it is not installed and
    pocketsphinx is.
    """
    return next((name for name in BUILT_IN if is_installed(name)), BUILT_IN[0])


def is_installed(name: str) -> bool:
    """Whether the packages that an engine needs are here; nothing is opened."""
    try:
        required_package(name)
    except EngineUnavailable:
        return False
    return True


@record(frozen=True, slots=True)
class EngineChoice:
    """Which engine, and with what.

    Attributes:
        name: one of `ENGINES`; by default what `default_engine` says.
        model: folder of the model; None: the one the engine's package carries, if it does.
        device: `auto`, `cpu` or `cuda`; auto takes a GPU where there is one.
        compute_type: of faster-whisper: `default`, `int8`, `float16` …
        batch_size: utterances that are recognized at once, where the engine can.
        threads: of the processor; 0: as many as the engine likes.
        download: whether `model` may be a name that the engine fetches from the network.
    """

    name: str = field(default_factory=default_engine)
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
        own_vocabulary: whether it takes names and terms in its own way, in any language.
    """

    name: str
    version: str
    model_id: str
    window_ms: int
    languages: frozenset[str] | None
    deterministic: bool
    own_vocabulary: bool

    def open(self) -> None:
        """Load the model; never from the network, unless the choice allows it.

        Raises:
            EngineUnavailable: the package or the model is missing or broken; tells what to do.
        """

    def detect(self, sounds: Sequence[Sound]) -> str | None:
        """The language spoken in some parts of a track, or None where the engine cannot tell."""

    def transcribe(
        self, utterances: Sequence[Sound], language: str | None, vocabulary: Sequence[str] = ()
    ) -> list[list[Word]]:
        """The words of each utterance, in order; times count from its own start.

        Args:
            language: ISO 639-1; None: not known.
            vocabulary: names and terms, of `vocabulary.plain_vocabulary`, that are preferred where
                they were said.
        """

    def close(self) -> None:
        """Give the model's memory back."""


def validate_language(engine: Engine, language: str | None) -> None:
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


def validate_vocabulary(
    engine: Engine, vocabulary: Sequence[str], language: str | None
) -> tuple[str, ...]:
    """A vocabulary as an engine takes it.

    Args:
        language: as requested; None: the one the engine knows alone.

    Raises:
        InvalidRequest: it cannot be used, or not in this language; names the field `vocabulary`.
    """
    entries = plain_vocabulary(vocabulary)
    known = engine.languages or frozenset()
    spoken = language or (min(known) if len(known) == 1 else None)
    if entries and not engine.own_vocabulary and (spoken or "").lower().split("-")[0] != "en":
        raise InvalidRequest(
            f"{engine.name} takes a vocabulary for English alone",
            pointer="/vocabulary",
            expected="the language en",
            found=spoken,
            advice="name the language, take faster-whisper, or leave the vocabulary out",
        )
    return entries


def model_files(folder: str, *wanted: str) -> list[Path]:
    """One file of a model's folder for each pattern; those missing are left out.

    Patterns hold alternatives parted by `|`; of several matches the smallest name is taken, and
    files quantized to 8 bits before others.
    """
    paths = []
    for patterns in wanted:
        matches = [path for pattern in patterns.split("|") for path in Path(folder).glob(pattern)]
        files = sorted(path for path in matches if path.is_file())
        files.sort(key=lambda path: ".int8." not in path.name)
        paths += files[:1]
    return paths


def package_folders(package: str) -> list[Path]:
    """Where a package lies; nowhere where it is not installed."""
    spec = find_spec(package)
    return [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []


def floats_of(sound: Sound) -> npt.NDArray[np.float32]:
    """Samples as models read them, from -1 to 1."""
    return sound.astype(np.float32) / np.float32(32768)


def required_package(name: str) -> str:
    """The version of an engine's package."""
    from importlib.metadata import PackageNotFoundError, version

    _, _, package, install = _HOMES[name]
    try:
        if find_spec(package) is not None:
            return version(package.replace("_", "-"))
    except (ImportError, PackageNotFoundError, ValueError):
        pass
    raise EngineUnavailable(
        f"the speech engine {name} is not installed", advice=f"pip install {install}"
    )


def fetched(choice: EngineChoice) -> EngineChoice:
    """A choice whose model is a folder: one that may be fetched is here then.

    The process that fetches sees no sound, and the one that hears has no network.
    """
    if not choice.download or choice.model is None:
        return choice
    model = choice.model
    if not Path(model).is_dir():
        if choice.name not in _FETCH:
            raise EngineUnavailable(
                f"models of {choice.name} have no names",
                found=model,
                advice="give the folder of a model, or none for the one in its package",
            )
        program = f"import sys; {_FETCH[choice.name]}; print(fetch(sys.argv[1]))"
        result = subprocess.run(
            [sys.executable, "-c", program, model], capture_output=True, text=True, check=False
        )
        if result.returncode:
            reason = (result.stderr.strip() or "?").splitlines()[-1]
            raise EngineUnavailable(
                f"the model {model} of {choice.name} cannot be fetched",
                found=reason[:200],
                advice="fetch it by hand and give its folder",
            )
        model = result.stdout.splitlines()[-1]
    return replace(choice, model=model, download=False)


def make_engine(choice: EngineChoice) -> Engine:
    """The engine of a choice, not opened yet."""
    if choice.name not in _HOMES:
        raise InvalidRequest(
            "there is no such speech engine",
            pointer="/engine",
            expected=f"one of {', '.join(ENGINES)}",
            found=choice.name,
        )
    module, name, *_ = _HOMES[choice.name]
    home = import_module(f"fragdex.speech.{module}")
    make: Callable[[EngineChoice], Any] = getattr(home, name)
    engine: Engine = make(choice)
    return engine
