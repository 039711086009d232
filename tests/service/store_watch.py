"""Watches every call of a store: none may be made while the service has a write transaction open.

A store may take half a minute to answer; a transaction that waits for it holds SQLite's only write
lock, or rows of PostgreSQL that others wait for. Nor may one be made in a thread that the service
answers everything else in: a store that hangs would hold them all.
"""

import functools
import threading
from contextlib import contextmanager

from anyio._backends._asyncio import AsyncIOBackend
from anyio.to_thread import current_default_thread_limiter

from fragdex.service.records.database import Database
from fragdex.service.store.disk import DiskDraft, DiskStore
from fragdex.service.store.objects import ObjectDraft, ObjectStore

# `path`, `draft` and `close` only make or drop what is in memory.
_OF_STORES = ("size", "read", "source", "write", "delete", "keys", "drafts", "local", "check")
_OF_DRAFTS = ("size", "append", "sync", "read", "fork", "finish", "discard")


class StoreWatch:
    """`calls` holds what was asked of a store where that is not allowed."""

    def __init__(self):
        self.calls = []
        self._open = threading.local()

    def install(self):
        write = Database.write

        @contextmanager
        def watched_write(database, **how):
            with write(database, **how) as connection:
                self._open.count = getattr(self._open, "count", 0) + 1
                try:
                    yield connection
                finally:
                    self._open.count -= 1

        Database.write = watched_write
        run = AsyncIOBackend.run_sync_in_worker_thread.__func__

        async def watched_run(backend, work, args, abandon_on_cancel=False, limiter=None):
            is_shared = limiter in (None, current_default_thread_limiter())

            def run_work(*args):
                self._open.is_shared = is_shared
                return work(*args)

            return await run(backend, run_work, args, abandon_on_cancel, limiter)

        AsyncIOBackend.run_sync_in_worker_thread = classmethod(watched_run)
        for kinds, names in (
            ((DiskStore, ObjectStore), _OF_STORES),
            ((DiskDraft, ObjectDraft), _OF_DRAFTS),
        ):
            for kind in kinds:
                for name in names:
                    setattr(kind, name, self.watched(kind, name, getattr(kind, name)))

    def watched(self, kind, name, method):
        @functools.wraps(method)
        def asked(*args, **kwargs):
            if getattr(self._open, "count", 0):
                self.calls.append(f"{kind.__name__}.{name}{args[1:]} in a write transaction")
            if getattr(self._open, "is_shared", False):
                self.calls.append(f"{kind.__name__}.{name}{args[1:]} in a thread of all requests")
            return method(*args, **kwargs)

        return asked
