"""Whether this process can render: the browser it would use, as `/readyz` tells it."""

from __future__ import annotations

from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser.finding import find_engine, need_supported, version_of
from fragdex.service.context import ServiceContext

__all__ = ["browser_state", "is_missing"]

_NOT_FOUND = "not found"
_TOO_OLD = "too old"


def is_missing(state: str) -> bool:
    """Whether what `browser_state` gave means that nothing can be rendered here."""
    return state.startswith((_NOT_FOUND, _TOO_OLD))


def browser_state(context: ServiceContext) -> str:
    """The version of the browser, that it is missing, or that this process renders nothing."""
    if not context.settings.job_workers:
        return "not used here"
    try:
        engine = find_engine()
    except EngineUnavailable:
        return _NOT_FOUND
    version = version_of(engine.path)
    if version is None:
        return f"{engine.path.name}, its version is not known"
    try:
        need_supported(version)
    except EngineUnavailable:
        return f"{_TOO_OLD}: {version}"
    return version
