"""Reads the structure of a stored file in a process of its own, bounded in time and memory.

Few run at once, one of a tenant at a time: a hostile file holds up those of its own sender. A file
that takes too much is refused; a process that was ended from outside is started again, once.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import fragdex
from fragdex import Index, Source, open_index
from fragdex.errors import Unavailable
from fragdex.sandbox.child import ChildProcess, Failures, reads
from fragdex.sandbox.folders import OwnFolder, take_file
from fragdex.sandbox.walls import Walls
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.child import CHILD, INDEX, exact

IN_THREAD: Final = 256 << 10
"""Bytes of boxes that are parsed in a thread of the service, next to its answers. Two seconds a MB
is the most that any structure may take: half a second, in turns with all other threads."""

MEMORY: Final = 2 << 30
"""Bytes of data of the process."""
LEAST_SECONDS: Final = 30
SECONDS_A_MB: Final = 4
"""Of the processor: twice what any structure may take."""
MOST_SECONDS: Final = 900
"""For the largest files, whose bytes are media for the most part."""
_WALL: Final = 4
"""Times the seconds of the processor: what a busy machine may make of them."""
MOST_AT_ONCE: Final = 2
MOST_WAITING: Final = 16
"""Files of a tenant that wait for their turn; the next one is asked to come again."""

_TRIES: Final = 2
# An index has fewer bytes than the boxes it is made of.
_LARGEST_FILE: Final = 1 << 30
_FAILURES: Final = Failures("the process that indexes files", "this file")


def run_isolated(
    context: ServiceContext,
    tenant_id: str,
    key: str,
    size: int,
    do: Callable[..., dict[str, Any]],
    into: Mapping[str, Path] | None = None,
    *,
    lent: Sequence[int] = (),
    check: Callable[[], None] = lambda: None,
    **arguments: Any,
) -> dict[str, Any]:
    """What a function of ours makes of a stored file, in a process of its own.

    Args:
        key, size: of the file in the store.
        do: is found by its name in its module, which should import little; given the file as a
            `Source`, what is `lent`, and the `arguments`.
        into: of files that it may make in its folder, where they go.
        lent: more open files for it.
        check: called several times a second while it works; what it raises ends it.

    Raises:
        FragdexError: what the function raised.
        Unprocessable: it takes more time or memory than a file may, or breaks the process.
        Unavailable: too many files of this tenant wait, or the process was ended from outside.
    """
    with in_turn(tenant_id):
        return run_in_child(
            lambda: context.store.source(key), size, do, into, lent=lent, check=check, **arguments
        )


def run_in_child(
    opened: Callable[[], AbstractContextManager[Source]],
    size: int,
    do: Callable[..., dict[str, Any]],
    into: Mapping[str, Path] | None = None,
    *,
    lent: Sequence[int] = (),
    check: Callable[[], None] = lambda: None,
    taken: Path | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """As `run_isolated`, at once: whoever calls it sees to it that few run at a time.

    Args:
        opened: opens the file.
        taken: a folder for the files that the function names in the `files` of what it returns.
    """
    seconds = min(LEAST_SECONDS + SECONDS_A_MB * (size >> 20), MOST_SECONDS)
    walls = Walls(MEMORY, _LARGEST_FILE, cpu_seconds=seconds)
    job: dict[str, Any] = {
        "function": f"{do.__module__}:{do.__name__}",
        "size": size,
        "lent": len(lent),
    }

    def once() -> dict[str, Any]:
        with (
            opened() as source,
            ChildProcess(CHILD, walls, _FAILURES, stall_seconds=_WALL * seconds) as child,
        ):
            file = source.fileno()
            files = lent if file is None else (*lent, file)
            result = child.do(
                "call", check=check, answer=reads(source), files=files, **job, arguments=arguments
            )
            for name, path in (into or {}).items():
                if (child.folder / name).exists():
                    take_file(child.folder / name, path)
            if taken is not None:
                result["files"] = [*map(_plain, result["files"])]
                for name in result["files"]:
                    take_file(child.folder / name, taken / name)
        return result

    for _ in range(_TRIES - 1):
        with suppress(Unavailable):
            return once()
    return once()


def _plain(name: str) -> str:
    """A name that a child gave a file, which cannot lead out of its folder."""
    return Path(name).name


class _Turns:
    """Whose file is indexed: a few at once, each of another tenant, in the order they came."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[str, object]] = []
        self._running: Counter[str] = Counter()

    @contextmanager
    def turn(self, tenant_id: str) -> Iterator[None]:
        """Wait for the turn of a tenant's file.

        Raises:
            Unavailable: too many of it wait.
        """
        mine = (tenant_id, object())
        with self._changed:
            if sum(one[0] == tenant_id for one in self._waiting) >= MOST_WAITING:
                raise Unavailable(
                    "other files of yours are being indexed; send the last bytes again",
                    retry_after=5,
                )
            self._waiting.append(mine)
            try:
                while self._next() is not mine:
                    self._changed.wait()
            finally:
                self._waiting.remove(mine)
            self._running[tenant_id] += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                del self._running[tenant_id]
                self._changed.notify_all()

    def _next(self) -> tuple[str, object] | None:
        if len(self._running) >= MOST_AT_ONCE:
            return None
        return next((one for one in self._waiting if one[0] not in self._running), None)


_turns = _Turns()


def in_turn(tenant_id: str) -> AbstractContextManager[None]:
    """The turn of a tenant's file, as `run_isolated` takes it; raises Unavailable."""
    return _turns.turn(tenant_id)


def exact_index(
    context: ServiceContext,
    tenant_id: str,
    key: str,
    size: int,
    *,
    check: Callable[[], None] = lambda: None,
) -> Index:
    """The exact index of a stored file, made in a process of its own unless the file is small.

    Args:
        key, size: of the file in the store.
        check: called now and then; what it raises ends the process.

    Raises:
        FragdexError: as `fragdex.index`.
        Unprocessable, Unavailable: as `run_isolated`.
    """
    if size <= IN_THREAD:
        with context.store.source(key) as source:
            return fragdex.index(source, exact=True)
    with OwnFolder() as folder:
        path = folder / INDEX
        run_isolated(context, tenant_id, key, size, exact, {INDEX: path}, check=check)
        return open_index(path)  # mapped: it stays when the folder goes
