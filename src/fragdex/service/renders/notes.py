"""What pages said while they were rendered, as their renders keep it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from fragdex.errors import ServiceError
from fragdex.rendering.browser.model import Notes
from fragdex.service.context import ServiceContext
from fragdex.service.records.tables import render_parts

__all__ = ["gather", "of_failure"]


@contextlib.contextmanager
def of_failure(context: ServiceContext, change: sa.Update) -> Iterator[None]:
    """Write down what the page said until an error, where the error tells it.

    Args:
        change: of the row whose `notes` they become.
    """
    try:
        yield
    except ServiceError as error:
        told = Notes.of_json(error.more)
        if told != Notes():
            with context.database.write() as connection:
                connection.execute(change.values(notes=told.as_json()))
        raise


def gather(
    connection: Connection, render_id: str, first: Mapping[str, Any] | None = None
) -> dict[str, list[Any]]:
    """What all slices of a render told, each line once."""
    query = sa.select(render_parts.c.notes).where(
        render_parts.c.render_id == render_id, render_parts.c.notes.is_not(None)
    )
    whole = Notes()
    for told in (first, *connection.scalars(query.order_by(render_parts.c.number))):
        whole.add(Notes.of_json(told or {}))
    return whole.as_json()
