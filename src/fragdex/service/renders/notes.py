"""What pages said while they were rendered, as their renders keep it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.service.errors import ServiceError
from fragdex.service.records.tables import render_parts
from fragdex.service.renders.browser.model import Notes

__all__ = ["gather", "of_error", "plain"]

_KINDS: Final = ("console", "blocked", "refused", "browser")


def plain(notes: Notes) -> dict[str, list[Any]]:
    """Notes as JSON."""
    return {kind: _listed(getattr(notes, kind)) for kind in _KINDS}


def of_error(error: ServiceError) -> dict[str, list[Any]] | None:
    """What an error tells of the page until then; None where it tells nothing."""
    if not any(kind in error.more for kind in _KINDS):
        return None
    return {kind: _listed(error.more.get(kind, ())) for kind in _KINDS}


def gather(
    connection: Connection, render_id: str, first: Mapping[str, Any] | None = None
) -> dict[str, list[Any]]:
    """What all slices of a render told, each line once."""
    query = sa.select(render_parts.c.notes).where(
        render_parts.c.render_id == render_id, render_parts.c.notes.is_not(None)
    )
    told = [first, *connection.scalars(query.order_by(render_parts.c.number))]
    return {
        kind: _once(line for one in told if one for line in one.get(kind, ())) for kind in _KINDS
    }


def _listed(lines: Iterable[Any]) -> list[Any]:
    return [asdict(line) if is_dataclass(line) else line for line in lines]  # type: ignore[arg-type]


def _once(lines: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for line in lines:
        if line not in found:
            found.append(line)
            if len(found) == Notes.MOST:
                break
    return found
