"""Slices that are kept: what one render made, the next one takes where it would make the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from fragdex.byterange import ByteRange
from fragdex.errors import Unavailable
from fragdex.rendering.messages import SliceMade
from fragdex.service.context import ServiceContext
from fragdex.service.records import blobs
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.tables import render_parts, render_slices, renders
from fragdex.service.renders.workspaces import RenderWorkspace

FAMILY: Final = "render_slices"
_LOOKED_AT: Final = 50
_PIECE: Final = 1 << 20
_SLICE = render_slices.c


def find(
    context: ServiceContext, tenant_id: str, recipe: bytes, workspace: RenderWorkspace
) -> Row[Any] | None:
    """A slice of this recipe whose page reads the same here; it is kept a while longer."""
    mine = (_SLICE.tenant_id == tenant_id) & (_SLICE.recipe == recipe)
    query = sa.select(render_slices).where(mine).order_by(_SLICE.id.desc()).limit(_LOOKED_AT)
    with context.database.read() as connection:
        rows = connection.execute(query).all()
    for row in rows:
        if workspace.reads_the_same(row.reads["site"], row.reads["own"]):
            with context.database.write() as connection:
                longer = render_slices.update().where(_SLICE.id == row.id)
                if connection.execute(longer.values(expires_at=_expiry(context))).rowcount:
                    return row
    return None


def is_kept(connection: Connection, slice_id: str) -> bool:
    """Whether a slice is kept still."""
    return connection.scalar(sa.select(_SLICE.id).where(_SLICE.id == slice_id)) is not None


def missing_parts(context: ServiceContext, render_id: str) -> bool:
    """Whether slices of a render are not kept, or not any more."""
    part = render_parts.c
    query = (
        sa.select(part.number)
        .outerjoin(render_slices, part.slice_id == _SLICE.id)
        .where(part.render_id == render_id, _SLICE.id.is_(None))
    )
    with context.database.read() as connection:
        return connection.execute(query.limit(1)).first() is not None


def of_render(context: ServiceContext, render_id: str) -> list[Row[Any]]:
    """The kept slices of a render, in order; fewer than it has parts where some are gone."""
    part = render_parts.c
    query = (
        sa.select(render_slices)
        .join(render_parts, part.slice_id == _SLICE.id)
        .where(part.render_id == render_id)
        .order_by(part.number)
    )
    with context.database.read() as connection:
        return list(connection.execute(query).all())


def made_of(row: Row[Any]) -> SliceMade:
    """What is known of a kept slice since it was made."""
    made = dict(row.made)
    made.pop("md5")
    return SliceMade.of_json(made)


def bytes_of(context: ServiceContext, row: Row[Any]) -> blobs.Blob:
    """The bytes of a kept slice.

    Raises:
        Unavailable: they went away.
    """
    with context.database.read() as connection:
        blob = blobs.used_by(connection, row.tenant_id, FAMILY, row.id)
    if blob is None:
        raise Unavailable("a slice of the render is gone", retry_after=1)
    return blob


def keep(
    context: ServiceContext, render: Row[Any], recipe: bytes, made: SliceMade,
    workspace: RenderWorkspace,
    check: Callable[[], None],
) -> str | None:  # fmt: skip
    """Keep a slice that was made; None where its render is deleted."""
    kept = blobs.write_file(
        context.database, context.store, render.tenant_id, Path(made.path), check
    )
    slice_id = new_id()
    if workspace.outside.network:
        # found by nobody: another time the network may answer otherwise
        recipe = hashlib.sha256(recipe + slice_id.encode()).digest()
    row = {
        "id": slice_id,
        "tenant_id": render.tenant_id,
        "render_id": render.id,
        "recipe": recipe,
        "reads": {"site": made.reads, "own": workspace.outside.own.reads},
        "made": {**made.as_json(), "path": "", "reads": {}, "md5": kept.md5.hex()},
        "created_at": instant(),
        "expires_at": _expiry(context),
    }
    there = sa.select(renders.c.id).where(renders.c.id == render.id).with_for_update(key_share=True)
    with context.database.write() as connection:
        if connection.execute(there).first() is None:
            return None
        connection.execute(render_slices.insert().values(**row))
        digests = (kept.md5, kept.sha256)
        blobs.keep(
            connection, render.tenant_id, *digests, kept.byte_size, FAMILY, slice_id,
            kept.store_key,
        )  # fmt: skip
    return slice_id


def bring(context: ServiceContext, row: Row[Any], path: Path) -> SliceMade:
    """A kept slice as a file of this machine: a link where the store is here, else a copy."""
    key = bytes_of(context, row).store_key
    here = context.store.path(key)
    if here is not None:
        os.symlink(here, path)
    else:
        with path.open("wb") as out:
            out.writelines(context.store.read(key, ByteRange(0, context.store.size(key))))
    return replace(made_of(row), path=str(path))


def _expiry(context: ServiceContext) -> Any:
    return instant() + timedelta(hours=context.settings.render_slice_hours)
