"""From a name to an engine."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from fragdex.service.errors import EngineUnavailable, InvalidRequest
from fragdex.service.transcriptions.engines.contract import Engine, EngineChoice

__all__ = ["ENGINES", "make_engine", "need_package"]

# name: module beside this one, its class, the package, what to install
_HOMES: Final = {
    "pocketsphinx": ("pocketsphinx", "PocketSphinx", "pocketsphinx", "pocketsphinx"),
    "faster-whisper": ("whisper", "FasterWhisper", "faster_whisper", "'fragdex[whisper]'"),
    "sherpa-onnx": ("sherpa", "Sherpa", "sherpa_onnx", "'fragdex[sherpa]'"),
}
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
