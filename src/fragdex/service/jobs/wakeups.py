"""The engine's queues: polled while work waits, and left alone while none does.

The engine polls each of its queues several times a second, whether work waits or not, and has no
call that wakes it. What its threads sleep on is an event that ends them. `sleep_on` makes them
sleep on while nothing waits to be begun; `QueueWatch` looks for them, with one cheap statement:

- on SQLite after each commit of this process, and of anybody else, which `PRAGMA data_version`
  shows (4 µs, each poll);
- on PostgreSQL after a NOTIFY in the transaction that orders.

Every `NET_SECONDS` it looks whatever happened; every `QUEUE_NET_SECONDS` the queues poll, too.
"""

from __future__ import annotations

import logging
import selectors
import socket
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any, Final, Protocol, cast

from sqlalchemy import Connection

from fragdex.service.logs import explained
from fragdex.service.records.database import Database

NET_SECONDS: Final = 3.0
"""So often is looked. The engine sleeps with a lock of PostgreSQL that is lost after 5 s."""

QUEUE_NET_SECONDS: Final = 15.0
"""No queue sleeps longer, should the watch fail."""

# While work waits the queues poll as they always do, and so seldom is looked whether it still does.
_BUSY_SECONDS: Final = 1.0
# The engine starts a queue's thread up to a second after the queue is registered.
_STARTING_SECONDS: Final = 2.0
_CHANNEL: Final = "fragdex_jobs"

# the first two conditions are those of the engine's partial index
_WAITING: Final = (
    "SELECT EXISTS (SELECT 1 FROM {table} WHERE status IN ('ENQUEUED', 'PENDING')"
    " AND status = 'ENQUEUED' AND queue_name IN ({queues})),"
    " (SELECT MIN(delay_until_epoch_ms) FROM {table} WHERE status = 'DELAYED')"
)

logger = logging.getLogger("fragdex.jobs")


class WorkSignal:
    """Whether work waits; who sleeps here sleeps until it does."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting = True
        self._wakes = 0

    def tell(self, *, waiting: bool) -> None:
        """Say whether work waits; if it does, all sleepers wake."""
        with self._changed:
            if waiting:
                self._wakes += 1
                self._changed.notify_all()
            self._waiting = waiting

    def notify(self) -> None:
        """Have all sleepers look at their events."""
        with self._changed:
            self._changed.notify_all()

    def sleep(self, event: threading.Event, seconds: float, net: float) -> bool:
        """Sleep for `seconds`, or `net` where no work waits; returns whether the event is set."""
        began = time.monotonic()
        with self._changed:
            wakes = self._wakes
            while wakes == self._wakes and not event.is_set():
                most = seconds if self._waiting else max(seconds, net)
                left = began + most - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
        return event.is_set()


class _SleepingEvent(threading.Event):
    signal: WorkSignal
    net: float

    def wait(self, timeout: float | None = None) -> bool:
        # the engine passes 0 where it does not mean to wait
        return self.signal.sleep(self, timeout, self.net) if timeout else super().wait(timeout)

    def set(self) -> None:
        super().set()
        self.signal.notify()


def sleep_on(event: threading.Event, signal: WorkSignal, net: float) -> None:
    """Have the event that threads of the engine sleep on last longer while no work waits.

    Threads that sleep on it already wake as they would have.

    Args:
        net: how long, in seconds, unless work comes.
    """
    event.signal, event.net = signal, net  # type: ignore[attr-defined]
    event.__class__ = _SleepingEvent


def announce(connection: Connection) -> None:
    """Wake the workers of all processes once the caller's transaction is committed.

    SQLite needs no announcement: its commits are seen.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"NOTIFY {_CHANNEL}")


class _Look(Protocol):
    """A kept connection to look with; `socket` becomes readable when something has changed."""

    socket: int | None

    def changed(self) -> bool:
        """Whether anything may have changed since the last `look`."""

    def look(self) -> tuple[bool, int | None]:
        """Whether work waits; when the next that is delayed may begin, in ms since the epoch."""

    def close(self) -> None: ...


class _SqliteLook:
    socket: int | None = None

    def __init__(self, database: Database, queues: Sequence[str]) -> None:
        self._statement = _WAITING.format(
            table="workflow_status", queues=", ".join("?" * len(queues))
        )
        self._queues = list(queues)
        self._connection = sqlite3.connect(
            database.url.database or "", isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA query_only=ON")
        self._version: int | None = None

    def changed(self) -> bool:
        before, (self._version,) = (
            self._version,
            self._connection.execute("PRAGMA data_version").fetchone(),
        )
        return before != self._version

    def look(self) -> tuple[bool, int | None]:
        waiting, due = self._connection.execute(self._statement, self._queues).fetchone()
        return bool(waiting), due

    def close(self) -> None:
        self._connection.close()


class _PostgresLook:
    def __init__(self, database: Database, queues: Sequence[str]) -> None:
        self._statement = _WAITING.format(
            table="dbos.workflow_status", queues=", ".join(["%s"] * len(queues))
        )
        self._queues = list(queues)
        pooled = database.engine.raw_connection()
        self._connection = cast(Any, pooled.driver_connection)
        pooled.detach()
        self._connection.autocommit = True
        self._connection.execute(f"LISTEN {_CHANNEL}")
        self.socket: int | None = self._connection.fileno()

    def changed(self) -> bool:
        return len(list(self._connection.notifies(timeout=0))) > 0

    def look(self) -> tuple[bool, int | None]:
        waiting, due = self._connection.execute(self._statement, self._queues).fetchone()
        return bool(waiting), due

    def close(self) -> None:
        self._connection.close()


class QueueWatch:
    """Tells a signal whether work waits in queues, from a thread of its own until `stop`.

    Args:
        poll_seconds: how often SQLite is asked whether anything was committed.
    """

    def __init__(
        self, database: Database, signal: WorkSignal, queues: Sequence[str], poll_seconds: float
    ) -> None:
        self._database, self._signal, self._queues = database, signal, queues
        self._poll_seconds = poll_seconds
        self._stopped = self._nudged = False
        self._stop, self._stopping = socket.socketpair()
        self._ended = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._watch, name="fragdex-queues", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def nudge(self) -> None:
        """Have it look now whether anything was committed; costs next to nothing."""
        if not self._nudged:
            self._nudged = True
            with suppress(OSError):  # it has just ended
                self._stop.send(b"\0")

    def stop(self) -> None:
        """End the thread."""
        self._stopped = True
        self._stop.send(b"\0")
        self._thread.join(timeout=10)
        self._stop.close()

    def _open(self) -> _Look:
        kind = _SqliteLook if self._database.dialect == "sqlite" else _PostgresLook
        return kind(self._database, self._queues)

    def _watch(self) -> None:
        began = time.monotonic()
        with self._stopping, self._ended:
            self._ended.register(self._stopping, selectors.EVENT_READ)
            while not self._stopped:
                try:
                    with closing(self._open()) as look:
                        self._follow(look, began + _STARTING_SECONDS)
                except Exception as error:  # noqa: BLE001  a thread that dies would wake nobody
                    # nobody can tell: the queues poll as they always do
                    self._signal.tell(waiting=True)
                    logger.debug("the watch of the queues waits: %s", explained(error))
                    self._sleep(_BUSY_SECONDS)

    def _follow(self, look: _Look, started: float) -> None:
        next_look = 0.0
        while not self._stopped:
            # also what came while the connection answered the last look
            if look.changed() or time.monotonic() >= next_look:
                is_waiting, due = look.look()
                # in seconds; what is delayed beyond the net is looked at again before
                delayed = NET_SECONDS if due is None else due / 1000 - time.time()
                waiting = is_waiting or delayed <= 0 or time.monotonic() < started
                self._signal.tell(waiting=waiting)
                if waiting:
                    next_look = 0.0
                    self._let_poll()
                else:
                    next_look = time.monotonic() + min(delayed, NET_SECONDS)
                continue
            left = max(0.0, next_look - time.monotonic())
            if look.socket is None:
                self._sleep(min(left, self._poll_seconds))
            else:
                with selectors.DefaultSelector() as either:
                    either.register(self._stopping, selectors.EVENT_READ)
                    either.register(look.socket, selectors.EVENT_READ)
                    either.select(left)

    def _let_poll(self) -> None:
        """Whatever is committed meanwhile: for a while the queues poll as they always do."""
        until = time.monotonic() + _BUSY_SECONDS
        while not self._stopped and (left := until - time.monotonic()) > 0:
            self._sleep(left)

    def _sleep(self, seconds: float) -> None:
        """Sleep until the watch is stopped or nudged, or the time is up."""
        if self._ended.select(seconds):
            self._stopping.recv(64)
            self._nudged = False  # what was committed before is looked for after
