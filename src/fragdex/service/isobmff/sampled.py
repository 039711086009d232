"""Indexes with all samples of stored files, which views are made from.

They are made when they are asked for, cached in the store by the bytes that they are of, and kept
open beside all other indexes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from fragdex import FragmentIndex
from fragdex.errors import RecordNotFound
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.child import INDEX, sampled
from fragdex.service.indexing.isolated import run_isolated
from fragdex.service.isobmff.model import IndexKeys
from fragdex.service.isobmff.opened import opened
from fragdex.service.records import blobs, derived
from fragdex.service.records.blobs import Blob

__all__ = ["cached_for", "sampled_index", "sampled_index_key"]

_RECIPE: Final = "samples 1"
"""Its number grows with each change of what is made."""
_PIECE: Final = 1 << 20


def cached_for(context: ServiceContext) -> timedelta:
    """How long files are cached that were made of stored bytes."""
    return timedelta(hours=context.settings.derived_hours)


def sampled_index(context: ServiceContext, tenant_id: str, blob: Blob) -> FragmentIndex:
    """The index of stored bytes, every sample known.

    Raises:
        RecordNotFound: the bytes were deleted meanwhile.
        FragdexError: as `fragdex.index`, and as `run_isolated`.
    """
    key = sampled_index_key(context, tenant_id, blob)
    return opened(context, IndexKeys(key, None, ())).index


def sampled_index_key(context: ServiceContext, tenant_id: str, blob: Blob) -> str:
    """Where that index is in the store; raises as `sampled_index`."""
    lasts = cached_for(context)
    found = derived.find(context.database, tenant_id, blob.sha256, _RECIPE, lasts)
    if INDEX not in found:
        _make(context, tenant_id, blob)
        found = derived.find(context.database, tenant_id, blob.sha256, _RECIPE, lasts)
    if INDEX not in found:
        raise RecordNotFound("the file was deleted meanwhile")
    return found[INDEX].store_key


def _make(context: ServiceContext, tenant_id: str, blob: Blob) -> None:
    with OwnFolder() as folder:
        path = folder / INDEX
        run_isolated(
            context, tenant_id, blob.store_key, blob.byte_size, sampled, {INDEX: path},
            md5=blob.md5.hex(),
        )  # fmt: skip
        made = blobs.write_file(context.database, context.store, tenant_id, path)
    derived.keep(
        context.database, tenant_id, blob.sha256, _RECIPE,
        {INDEX: (made, "application/octet-stream")}, cached_for(context),
    )  # fmt: skip
