"""Which engines are ready here, and what the others lack.

For `fragdex doctor` each is opened in a process of its own: a broken model ends the process of some
engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fragdex.errors import EngineUnavailable
from fragdex.service.context import ServiceContext
from fragdex.service.transcriptions.engines import ENGINES, EngineChoice, need_package
from fragdex.service.transcriptions.process import Child
from fragdex.service.transcriptions.records import choice_of

__all__ = ["EngineState", "engine_state", "engine_states"]


@dataclass(frozen=True, slots=True)
class EngineState:
    """Whether an engine can be used.

    Attributes:
        name: of the engine.
        ready: whether it could be opened as chosen.
        version: of its package, or None where that is not installed.
        reason, fix: why it is not ready, and what to do; "" where it is.
    """

    name: str
    ready: bool
    version: str | None
    reason: str = ""
    fix: str = ""


def engine_states(choices: Sequence[EngineChoice] = ()) -> list[EngineState]:
    """Every engine: installed or not, and whether it can be opened as chosen.

    Args:
        choices: what the operator chose; the others are looked at as they come. An engine that
            cannot be opened without a model is not ready.
    """
    chosen = {choice.name: choice for choice in choices}
    return [_state(chosen.get(name, EngineChoice(name))) for name in ENGINES]


def engine_state(context: ServiceContext) -> str:
    """The service's engine and the version of its package, or what it lacks, for `/readyz`.

    Nothing is opened: a model that is here may still be broken.
    """
    if not context.settings.job_workers:
        return "not used here"
    choice = choice_of(context.settings)
    try:
        version = need_package(choice.name)
    except EngineUnavailable:
        return f"{choice.name} not found"
    built_in = choice.name == ENGINES[0] and choice.model is None
    if not (built_in or choice.download or Path(choice.model or "").is_dir()):
        return f"{choice.name} {version}, its model not found"
    return f"{choice.name} {version}"


def _state(choice: EngineChoice) -> EngineState:
    version = None
    try:
        version = need_package(choice.name)
        with Child(choice) as child:
            child.open()
    except EngineUnavailable as error:
        return EngineState(choice.name, False, version, error.message, error.advice or "")
    return EngineState(choice.name, True, version)
