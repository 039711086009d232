"""Which engines are ready here, and what the others lack.

Each is opened in a process of its own: a broken model ends the process of some engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fragdex.service.errors import EngineUnavailable
from fragdex.service.transcriptions.engines import ENGINES, EngineChoice, need_package
from fragdex.service.transcriptions.process import Child

__all__ = ["EngineState", "engine_states"]


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


def _state(choice: EngineChoice) -> EngineState:
    version = None
    try:
        version = need_package(choice.name)
        with Child(choice) as child:
            child.open()
    except EngineUnavailable as error:
        return EngineState(choice.name, False, version, error.message, error.advice or "")
    return EngineState(choice.name, True, version)
