"""The database: SQLite on one machine, PostgreSQL on several; the same code over both.

SQLite runs with a write-ahead log, so that readers never wait for the writer. A transaction that
reads first and writes later would fail with "database is locked" where another process wrote in
between, whatever the time-out: so every transaction takes the write lock at its very beginning
(`BEGIN IMMEDIATE`), but for those that `read` opens.
"""

from __future__ import annotations

import copy
import re
import sqlite3
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVarTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Row, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from fragdex.errors import ConfigError, ServiceError, StoreFull, Unavailable

BUSY_MS = 30_000
"""How long a transaction on SQLite waits for that of another thread, and of another process."""

CONNECT_S = 5
"""How long a connection to PostgreSQL may take."""

RETRY_S = 2.0
"""When a caller may come again after the database did not answer."""

_LONGEST_REFUSAL = 300
"""Characters of what the other side said."""

DELETION_GRACE = timedelta(hours=1)
"""How long bytes stay in the store after their last record went, unless it is set otherwise."""

_GRACE = "fragdex_deletion_grace"
_READ_ONLY = "fragdex_read"
_PASSING = "fragdex_passing"
_REMAKING = "fragdex_remaking"
_SET = "fragdex_set"
_AT_FIRST = {"synchronous": "FULL", "foreign_keys": "ON"}

# https://sqlite.org/rescode.html: busy, locked, I/O, not openable, protocol
_SQLITE_AWAY = {5, 6, 10, 14, 15}
_SQLITE_FULL = 13
# PostgreSQL, appendix A: disk full, too many connections, shutting down, deadlock, serialization
_POSTGRES_FULL = "53100"
_POSTGRES_AWAY = ("08", "53", "57P", "40")

Columns = TypeVarTuple("Columns")


class Database:
    """The database of a context.

    Args:
        url: `sqlite:///PATH` or `postgresql+psycopg://…`; `postgresql://` and `postgres://` mean
            the same.
        grace: see DELETION_GRACE.

    Raises:
        ConfigError: the URL cannot be read, or names another database, or SQLite without a file.

    Nothing is opened before the first transaction.
    """

    def __init__(self, url: str, *, grace: timedelta = DELETION_GRACE) -> None:
        self.url = _url(url)
        options = {_GRACE: grace}
        self.secrets: dict[str, bytes] = {}
        self.blocking = True
        if self.url.get_backend_name() == "sqlite":
            self.engine = sa.create_engine(
                self.url,
                pool_size=20,
                max_overflow=60,
                execution_options=options,
                connect_args={"timeout": BUSY_MS / 1000},
            )
            sa.event.listen(self.engine, "connect", _prepare_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)
        else:
            self.engine = sa.create_engine(
                self.url,
                pool_size=10,
                max_overflow=20,
                execution_options=options,
                # One round trip a transaction, for never meeting a connection that has died.
                pool_pre_ping=True,
                connect_args={"connect_timeout": CONNECT_S},
            )
        self._writing = threading.Lock() if self.url.get_backend_name() == "sqlite" else None
        self.before_write: Callable[[], object] = lambda: None
        self.after_write: Callable[[], object] = lambda: None
        self._fast_reads = (
            FastReads(self.url.database or "", self.engine.dialect)
            if self.url.get_backend_name() == "sqlite"
            else None
        )
        self._reading = self.engine.execution_options(**{_READ_ONLY: True})
        self._passing = self.engine.execution_options(**{_PASSING: True})
        self._remaking = self.engine.execution_options(**{_REMAKING: True})

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.engine.dialect.name

    @contextmanager
    def write(self, *, passing: bool = False, remaking: bool = False) -> Iterator[Connection]:
        """A transaction: committed at the end of the block, rolled back where it raises.

        Args:
            passing: what is written is out of date in seconds (a heartbeat, how far work is):
                SQLite need not flush it, and a power loss may cost it.
            remaking: tables are made again: SQLite can only drop the old ones, and with them would
                go every row that names one of theirs.

        Raises:
            Unavailable: the database does not answer, or is busy beyond patience.
            StoreFull: no room left; nothing was written.
        """
        self._need_blocking()
        self.before_write()
        engine = self._passing if passing else self._remaking if remaking else self.engine
        with self._turn(), self._answering(), engine.begin() as connection:
            yield connection
        self.after_write()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for the other threads of this process that write.

        SQLite would look again and again, at ever longer intervals, and nobody writes meanwhile.
        """
        if self._writing is None:
            yield
            return
        if not self._writing.acquire(timeout=BUSY_MS / 1000):
            raise Unavailable("the database is busy", retry_after=RETRY_S)
        try:
            yield
        finally:
            self._writing.release()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection to read from: one snapshot on SQLite, no lock that a writer would feel.

        Raises:
            Unavailable: the database does not answer.
        """
        self._need_blocking()
        with self._answering(), self._reading.connect() as connection:
            yield connection

    def rows(self, statement: sa.Select[Any], **values: Any) -> Sequence[Any]:
        """The rows of one statement that its module keeps.

        Args:
            values: the statement's `bindparam`s; text, bytes and numbers.

        Raises:
            Unavailable: the database does not answer.
            BlockingIOError: it is `nonblocking`, and would have to wait.
        """
        if self.blocking:
            with self.read() as connection:
                return connection.execute(statement, values).all()
        rows = None if self._fast_reads is None else self._fast_reads.rows(statement, values)
        if rows is None:
            raise BlockingIOError("the database has to be waited for")
        return rows

    def all(self, query: sa.Select[*Columns]) -> Sequence[Row[*Columns]]:
        """The rows of one query; raises as `read`."""
        with self.read() as connection:
            return connection.execute(query).all()

    def first(self, query: sa.Select[*Columns]) -> Row[*Columns] | None:
        """The first row of one query; None: it has none. Raises as `read`."""
        with self.read() as connection:
            return connection.execute(query).first()

    def scalars(self, query: sa.Select[Any]) -> Sequence[Any]:
        """The first column of the rows of one query; raises as `read`."""
        with self.read() as connection:
            return connection.scalars(query).all()

    def scalar(self, query: sa.Select[Any]) -> Any:
        """The first column of the first row of one query, or None; raises as `read`."""
        with self.read() as connection:
            return connection.scalar(query)

    def change(self, statement: sa.UpdateBase) -> None:
        """Execute one statement in a transaction of its own; raises as `write`."""
        with self.write() as connection:
            connection.execute(statement)

    def nonblocking(self) -> Database:
        """The same database for who must not wait: its `rows` alone, and on SQLite alone."""
        same = copy.copy(self)
        same.blocking = False
        return same

    def _need_blocking(self) -> None:
        if not self.blocking:
            raise BlockingIOError("a transaction has to be waited for")

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Turn what becomes of a transaction into the service's own errors."""
        failure: ServiceError | None
        try:
            yield
        except PoolTimeout as error:
            raise Unavailable("all connections are in use", retry_after=RETRY_S) from error
        except (DBAPIError, sqlite3.OperationalError) as error:
            # the latter while a connection is being prepared
            away = Unavailable("the database does not answer", retry_after=RETRY_S)
            failure = _meaning(error, away) if isinstance(error, DBAPIError) else away
            if failure is None:
                raise
            # for operators alone: answers do not show it
            said = " ".join(str(getattr(error, "orig", None) or error).split())[:_LONGEST_REFUSAL]
            failure.add_note(f"{self.url.render_as_string(hide_password=True)}: {said}")
            raise failure from error

    def now(self, connection: Connection) -> datetime:
        """The instant by the database's clock, which all processes share."""
        if self.dialect == "sqlite":
            return datetime.now(UTC)  # it runs in this process, by the machine's clock
        now: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
        return now.astimezone(UTC)

    def close(self) -> None:
        """Close all connections that are not in use; the next transaction opens new ones."""
        self.engine.dispose()
        if self._fast_reads is not None:
            self._fast_reads.close()


def deletion_grace(connection: Connection) -> timedelta:
    """How long what this transaction lets go stays in the store."""
    grace: timedelta = connection.get_execution_options().get(_GRACE, DELETION_GRACE)
    return grace


def insert(connection: Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that may say `on_conflict_do_nothing` or `on_conflict_do_update`."""
    if connection.dialect.name == "sqlite":
        return sqlite.Insert(table)
    return postgresql.Insert(table)


def _url(text: str) -> URL:
    try:
        # as libpq takes it, and many providers write it
        url = make_url(re.sub("^postgres://", "postgresql://", text))
    except ArgumentError:
        raise ConfigError("database_url cannot be read", expected="sqlite:///PATH") from None
    name = url.get_backend_name()
    if name == "sqlite":
        if not url.database or url.database.startswith((":memory:", "file:")) or url.query:
            raise ConfigError(
                "database_url names no plain file",
                expected="sqlite:///PATH",
                advice="several connections and processes use it: it cannot live in memory",
            )
        return url.set(drivername="sqlite+pysqlite")
    if name != "postgresql":
        raise ConfigError(
            "database_url names a database that is not supported",
            expected="sqlite or postgresql",
            found=name,
        )
    return url.set(drivername="postgresql+psycopg")


def _prepare_sqlite(connection: sqlite3.Connection, record: Any) -> None:
    # The driver would begin transactions by itself, and deferred ones.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    for name, value in _AT_FIRST.items():
        connection.execute(f"PRAGMA {name}={value}")
    # The switch to a log does not wait for others that switch at the same moment.
    for patience in (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, None):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if patience is None:
                raise
            time.sleep(patience)


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    reading = options.get(_READ_ONLY)
    # Of the driver itself: SQLAlchemy's way to the same statement takes longer than many a look-up.
    raw = connection.connection.dbapi_connection
    # Bytes are flushed before a row says that they are here: the row must be no less durable, or a
    # power loss leaves bytes that were acknowledged and that nobody finds.
    wanted = {
        "synchronous": "NORMAL" if options.get(_PASSING) else "FULL",
        "foreign_keys": "OFF" if options.get(_REMAKING) else "ON",
    }
    try:
        if not reading and wanted != connection.info.get(_SET, _AT_FIRST):
            for name, value in wanted.items():
                raw.execute(f"PRAGMA {name}={value}")  # type: ignore[union-attr]
            connection.info[_SET] = wanted
        raw.execute("BEGIN" if reading else "BEGIN IMMEDIATE")  # type: ignore[union-attr]
    except sqlite3.Error as error:
        raise sa.exc.OperationalError("BEGIN", None, error) from error


def _meaning(error: DBAPIError, away: Unavailable) -> ServiceError | None:
    """The answer to the caller; None for our own faults, which must not look like outages."""
    full = StoreFull("no space is left for the database", retry_after=60)
    if isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        return full if code == _SQLITE_FULL else away if code in _SQLITE_AWAY else None
    state = getattr(error.orig, "sqlstate", None)
    if state == _POSTGRES_FULL:
        return full
    if error.connection_invalidated or (state or "").startswith(_POSTGRES_AWAY):
        return away
    # Without a state the server said nothing: it was not reached.
    lost = state is None and isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
    return away if lost else None


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
    """Look-ups that wait for nobody: one statement on SQLite, from any thread, in microseconds.

    SQLAlchemy's own way to a row takes ten times as long as SQLite's, and a thread of its own for
    it as long again. Each thread has a connection of its own, which only reads: a reader of a
    write-ahead log waits for no writer; where it would have to wait after all, it gives None.
    """

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
            rows = self._connection().execute(prepared.text, parameters).fetchall()
        except sqlite3.OperationalError:
            return None
        return [prepared.read(row) for row in rows]

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None or connection not in self._open:
            connection = sqlite3.connect(
                self._path,
                timeout=PATIENCE_MS / 1000,
                isolation_level=None,
                check_same_thread=False,  # closed by whoever closes the database
            )
            connection.execute("PRAGMA query_only=ON")
            self._open.add(connection)
            self._local.connection = connection
        return connection

    def close(self) -> None:
        """Close all connections; a later read opens another."""
        while self._open:
            self._open.pop().close()
