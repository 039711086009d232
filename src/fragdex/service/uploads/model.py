"""What an upload is, what its answer tells, and how a family takes its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sqlalchemy.engine import Connection

from fragdex.record import record


@record(frozen=True, slots=True)
class Progress:
    """How far an upload is: bytes 0 (inclusive) to `next_byte` (exclusive) are durable.

    `byte_size` is its length, or None while nobody has said it.
    """

    byte_size: int | None
    next_byte: int
    complete: bool


@record(frozen=True, slots=True)
class Upload:
    """The row of an upload, as it was when a request began.

    `byte_size` is its length, or None while nobody has said it; of one that is complete it is
    known. `md5` is what the bytes must have, or None; `sha256` and
    `object_key`, what the draft becomes, are known once the last byte is here;
    `draft` is where they lie until all are there.
    """

    tenant_id: str
    family: str
    record_id: str
    byte_size: int | None
    md5: bytes | None
    next_byte: int
    draft: str
    complete: bool
    sha256: bytes | None = None
    object_key: str | None = None

    @property
    def progress(self) -> Progress:
        """How far it was."""
        return Progress(self.byte_size, self.next_byte, self.complete)

    @property
    def length(self) -> int:
        """Its length, which is known."""
        assert self.byte_size is not None
        return self.byte_size

    def ends_at(self, position: int) -> bool:
        """Whether it ends before byte `position`; False while its length is not known."""
        return position == self.byte_size


class ArrivalWatcher(Protocol):
    """Sees every byte once, in order, while it is hashed; the library's `Indexer` is one.

    Where `feed` raises an error of fragdex's tree, the watcher is dropped and the upload continues:
    that a file cannot be indexed is not a fault of its upload.
    """

    def feed(self, data: bytes, /) -> object:
        """Take the next bytes."""


@record(frozen=True, slots=True)
class Arrived:
    """All bytes of an upload, under `store_key` in the store.

    Attributes:
        watcher: what `Arrival.watch` gave, fed to the last byte; None where it was dropped.
        examined: what `Arrival.examine` returned.
    """

    tenant_id: str
    family: str
    record_id: str
    md5: bytes
    sha256: bytes
    byte_size: int
    store_key: str
    watcher: Any = None
    examined: Any = None


def _nothing(connection: Connection, arrived: Arrived) -> None:
    """A family that wants no word."""


@record(frozen=True, slots=True)
class Arrival:
    """How a family takes the bytes of one upload. Each part is optional.

    Attributes:
        finished: called as `finished(connection, arrived)` in the transaction that completes the
            upload; exactly one such transaction is committed.
        watch: called as `watch(upload)` when hashing begins at the first byte, in this process or
            again after a restart; gives a Watcher or None.
        examine: called as `examine(arrived)` when md5 is right and the bytes are an object,
            outside of any transaction; what it returns is `arrived.examined`. Where it raises, the
            bytes are let go, `next_byte` is 0 again, and its error is the answer. May be called
            again after a crash.
    """

    finished: Callable[[Connection, Arrived], object] = _nothing
    watch: Callable[[Upload], ArrivalWatcher | None] | None = None
    examine: Callable[[Arrived], object] | None = None


@record(frozen=True, slots=True)
class Target:
    """Where the bytes of requests go, by whatever protocol they come.

    Attributes:
        family, record_id: the upload.
        limit: bytes that a request may have, and an upload whose length nobody announced.
    """

    family: str
    record_id: str
    arrival: Arrival
    limit: int
