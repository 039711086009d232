"""Whether this process can render: the browser it would use, as `/readyz` tells it."""

from __future__ import annotations

from fragdex.service.context import ServiceContext
from fragdex.service.errors import EngineUnavailable
from fragdex.service.renders.browser.finding import find_engine, version_of

__all__ = ["NOT_FOUND", "browser_state"]

NOT_FOUND = "not found"


def browser_state(context: ServiceContext) -> str:
    """The version of the browser, NOT_FOUND, or that this process renders nothing."""
    if not context.settings.job_workers:
        return "not used here"
    try:
        engine = find_engine()
    except EngineUnavailable:
        return NOT_FOUND
    return version_of(engine.path) or f"{engine.path.name}, its version is not known"
