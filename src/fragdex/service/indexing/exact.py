"""The exact index of a stored file."""

from __future__ import annotations

from collections.abc import Callable

import fragdex
from fragdex import FragmentIndex, open_index
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.apart import IN_THREAD, run_apart
from fragdex.service.indexing.child import INDEX, exact

__all__ = ["exact_index"]


def exact_index(
    context: ServiceContext,
    tenant_id: str,
    key: str,
    size: int,
    *,
    check: Callable[[], None] = lambda: None,
) -> FragmentIndex:
    """The exact index of a stored file, made in a process of its own unless the file is small.

    Args:
        key, size: of the file in the store.
        check: called now and then; what it raises ends the process.

    Raises:
        FragdexError: as `fragdex.index`.
        Unprocessable, Unavailable: as `run_apart`.
    """
    if size <= IN_THREAD:
        with context.store.source(key) as source:
            return fragdex.index(source, exact=True)
    with OwnFolder() as folder:
        path = folder / INDEX
        run_apart(context, tenant_id, key, size, exact, {INDEX: path}, check=check)
        return open_index(path)  # mapped: it stays when the folder goes
