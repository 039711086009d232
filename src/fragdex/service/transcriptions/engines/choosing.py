"""From a name to an engine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from fragdex.errors import EngineUnavailable, InvalidRequest
from fragdex.service.transcriptions.engines.contract import Engine, EngineChoice

__all__ = ["ENGINES", "fetched", "make_engine", "need_package"]

# name: module beside this one, its class, the package, what to install
_HOMES: Final = {
    "pocketsphinx": ("pocketsphinx", "PocketSphinx", "pocketsphinx", "'fragdex[speech]'"),
    "faster-whisper": ("whisper", "FasterWhisper", "faster_whisper", "'fragdex[whisper]'"),
    "sherpa-onnx": ("sherpa", "Sherpa", "sherpa_onnx", "'fragdex[sherpa]'"),
}
_FETCH: Final = "import sys; from faster_whisper import download_model as d; print(d(sys.argv[1]))"
ENGINES: Final = tuple(_HOMES)
"""Names of engines, the default first."""


def need_package(name: str) -> str:
    """The version of an engine's package.

    Raises:
        EngineUnavailable: it is not installed.
    """
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

    Raises:
        EngineUnavailable: it cannot be fetched.
    """
    if not choice.download or choice.model is None:
        return choice
    model = choice.model
    if not Path(model).is_dir():
        told = subprocess.run(
            [sys.executable, "-c", _FETCH, model], capture_output=True, text=True, check=False
        )
        if told.returncode:
            reason = (told.stderr.strip() or "?").splitlines()[-1]
            raise EngineUnavailable(
                f"the model {model} of {choice.name} cannot be fetched",
                found=reason[:200],
                advice="fetch it by hand and give its folder",
            )
        model = told.stdout.splitlines()[-1]
    return replace(choice, model=model, download=False)


def make_engine(choice: EngineChoice) -> Engine:
    """The engine of a choice, not opened yet.

    Raises:
        InvalidRequest: there is no such engine.
    """
    if choice.name not in _HOMES:
        raise InvalidRequest(
            "there is no such speech engine",
            pointer="/engine",
            expected=f"one of {', '.join(ENGINES)}",
            found=choice.name,
        )
    module, name, *_ = _HOMES[choice.name]
    home = import_module(f"fragdex.service.transcriptions.engines.{module}")
    make: Callable[[EngineChoice], Any] = getattr(home, name)
    engine: Engine = make(choice)
    return engine
