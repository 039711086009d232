"""Watches every call of a store: none may be made while the service has a write transaction open.

A store may take half a minute to answer; a transaction that waits for it holds SQLite's only write
lock, or rows of PostgreSQL that others wait for.
"""

import functools
import threading
from contextlib import contextmanager

from fragdex.service.records.database import Database
from fragdex.service.store.disk import DiskDraft, DiskStore
from fragdex.service.store.objects import ObjectDraft, ObjectStore

# `path`, `draft` and `close` only make or drop what is in memory.
_OF_STORES = ("size", "read", "source", "write", "delete", "keys", "drafts", "local", "check")
_OF_DRAFTS = ("size", "append", "sync", "read", "fork", "finish", "discard")


class StoreWatch:
    """`calls` holds what was asked of a store while the same thread was in a write transaction."""

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
            return method(*args, **kwargs)

        return asked
