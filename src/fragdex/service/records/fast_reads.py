"""Look-ups that wait for nobody: one statement on SQLite, from whatever thread, in microseconds.

SQLAlchemy's own way to a row takes ten times as long as SQLite's, and a thread of its own for it
as long again. A reader of a write-ahead log waits for no writer; where it would have to wait after
all, a fast read gives None. `Database.nonblocking` is who asks for them.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

__all__ = ["FastReads"]

PATIENCE_MS = 50
"""The event loop may be the one that waits."""


class _Prepared:
    """A statement as text, the order of its parameters, and how its columns are read."""

    def __init__(self, statement: sa.Select[Any], dialect: sa.Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self.text = str(compiled)
        self.names: list[str] = list(compiled.positiontup or ())
        columns = list(statement.selected_columns)
        # a name may stand twice, for those who read by place
        row = namedtuple("row", [column.name for column in columns], rename=True)  # type: ignore[misc]
        self.make: Callable[[Iterable[Any]], Any] = row._make
        processors = [column.type.dialect_impl(dialect) for column in columns]
        self.readers: list[tuple[int, Callable[[Any], Any]]] = [
            (place, reader)
            for place, processor in enumerate(processors)
            if (reader := processor.result_processor(dialect, None)) is not None
        ]

    def read(self, values: tuple[Any, ...]) -> Any:
        if not self.readers:
            return self.make(values)
        read = list(values)
        for place, reader in self.readers:
            read[place] = reader(read[place])
        return self.make(read)


class FastReads:
    """Fast reads of one SQLite file; each thread has a connection of its own, which only reads."""

    def __init__(self, path: str, dialect: sa.Dialect) -> None:
        self._path, self._dialect = path, dialect
        self._local = threading.local()
        self._open: set[sqlite3.Connection] = set()
        self._prepared: dict[sa.Select[Any], _Prepared] = {}

    def rows(self, statement: sa.Select[Any], values: Mapping[str, Any]) -> list[Any] | None:
        """The rows of a statement that is kept by its module, with all its parameters named.

        None where the database cannot be read at this moment.
        """
        prepared = self._prepared.get(statement)
        if prepared is None:
            prepared = self._prepared[statement] = _Prepared(statement, self._dialect)
        parameters = [values[name] for name in prepared.names]
        try:
            found = self._connection().execute(prepared.text, parameters).fetchall()
        except sqlite3.OperationalError:
            return None
        return [prepared.read(row) for row in found]

    def _connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None or found not in self._open:
            found = sqlite3.connect(
                self._path,
                timeout=PATIENCE_MS / 1000,
                isolation_level=None,
                check_same_thread=False,  # closed by whoever closes the database
            )
            found.execute("PRAGMA query_only=ON")
            self._open.add(found)
            self._local.connection = found
        return found

    def close(self) -> None:
        """Close all connections; a later read opens another."""
        while self._open:
            self._open.pop().close()
