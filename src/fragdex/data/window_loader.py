"""Batches of windows made by worker processes, ahead of the loop that uses them."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fragdex.data.shared_batches import SHARED, BatchSlots, SlotWriter
from fragdex.data.window_order import SOON
from fragdex.data.window_stream import WindowStream
from fragdex.data.windows import Sample, Windows
from fragdex.errors import FragdexError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from typing import Self

AHEAD: Final = 2
"""Batches that each worker makes before they are taken."""
_WATCHED: Final = 1.0
"""Seconds between two looks of a worker whether its loop is still there."""


class _Worker(NamedTuple):
    process: BaseProcess
    channel: Connection


class Dealt(NamedTuple):
    """A batch for a worker.

    Attributes:
        soon: of the next batches that this worker will make.
    """

    worker: int
    windows: list[int]
    soon: list[int]


def dealt(
    batches: Iterator[list[int]], video_of: Callable[[int], int], workers: int, most: int
) -> Iterator[Dealt]:
    """Batches in order, dealt to workers in turn; some that divide a run of neighbours to one.

    Args:
        most: batches in sequence for one of them.
    """
    coming: deque[tuple[int, list[int]]] = deque()
    known = worker = length = 0
    for batch in batches:
        last = coming[-1][1][-1] if coming else -1
        continues = batch[0] == last + 1 and coming and video_of(batch[0]) == video_of(last)
        if continues and length < most:
            length += 1
        else:
            worker, length = (worker + bool(coming)) % workers, 1
        coming.append((worker, batch))
        known += len(batch)
        while known - len(coming[0][1]) >= SOON * workers:
            yield _first_of(coming)
            known -= len(coming.popleft()[1])
    while coming:
        yield _first_of(coming)
        coming.popleft()


def _first_of(coming: deque[tuple[int, list[int]]]) -> Dealt:
    worker, windows = coming[0]
    later = (batch for of, batch in itertools.islice(coming, 1, None) if of == worker)
    return Dealt(worker, windows, list(itertools.chain.from_iterable(later))[:SOON])


class _Failure(NamedTuple):
    """What a worker raised."""

    error: BaseException


class WindowLoader:
    """The batches of a stream, made by processes and mapped from shared memory, without torch.

    The same batches in the same order for any number of workers. Their large arrays (16 KiB and
    more) lie in shared memory, which is used again when nothing refers to them any more: keep a
    batch as long as you like; if you keep many, the next ones are copied. The memory has no name,
    and goes with the last process that has it.

    Args:
        stream: of batches (`batch=`).
        workers: processes. They start with the first loop and end with `close`.
        ahead: batches that each makes before they are taken. Batches that divide a run of
            neighbouring windows are made by one worker, so many in sequence, and their groups of
            pictures decoded once, as far as half of its cache has room.
        shared: bytes of shared memory at most.
        context: `fork`, `spawn` or `forkserver`; None: what this Python starts processes with.

    Attributes:
        shared_bytes: of shared memory that is in use.

    Each loop is an epoch; a loop that is left early begins again where the stream stood.

    Raises:
        ValueError: the stream has no batches, or those of another library (`output=`), or an
            invalid number.
        FragdexError: in a loop: a worker was killed.
        And in a loop what making windows raises.

    >>> import os, tempfile
    >>> from fragdex.data import VideoSet, WindowSampler, write_set
    >>> path = os.path.join(tempfile.mkdtemp(), "set.parquet")
    >>> _ = write_set("fixtures/open-gop.mp4", path)
    >>> windows = Windows(VideoSet(path), frames=4)
    >>> with WindowLoader(WindowStream(windows, batch=8), workers=2) as loader:
    ...     [batch["frames"].shape for batch in loader]
    [(8, 4, 48, 64, 3), (4, 4, 48, 64, 3)]
    """

    def __init__(
        self,
        stream: WindowStream,
        *,
        workers: int = 4,
        ahead: int = AHEAD,
        shared: int = SHARED,
        context: str | None = None,
    ) -> None:
        for name, number in (("workers", workers), ("ahead", ahead)):
            if number < 1:
                raise ValueError(f"{name} is 1 or more, not {number}")
        if stream.windows.output != "numpy":
            raise ValueError(
                f"workers make batches of numpy, not of {stream.windows.output}: frames that stay "
                "on a device are made where they are used, by a loop over the stream"
            )
        self._stream, self._count, self._ahead = stream, workers, ahead
        self._slots = stream.slots(workers, shared, ahead)
        self._context: Any = multiprocessing.get_context(context)
        self._workers: list[_Worker] = []
        self._pid = os.getpid()
        weakref.finalize(self, _end, self._workers, self._pid)
        self._used = self._loop = 0

    @property
    def shared_bytes(self) -> int:
        """Of shared memory that is in use."""
        return 0 if self._slots is None else self._slots.bytes

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._stream.batch_count()

    def __iter__(self) -> Iterator[Sample]:
        sampler = self._stream.sampler
        where = sampler.state_dict()
        epoch, self._used = where["epoch"], where["taken"]
        self._loop += 1
        loop, windows = self._loop, self._stream.windows
        batches = dealt(
            self._stream.batches(self._used), windows.video_of, self._count, self._ahead
        )
        coming = next(batches, None)
        self._start()
        requested: deque[tuple[_Worker, int]] = deque()
        while coming or requested:
            try:
                while coming and len(requested) < self._ahead * self._count:
                    worker = self._workers[coming.worker]
                    # A worker that has ended is missed where its batch is received.
                    with contextlib.suppress(ConnectionError):
                        worker.channel.send((loop, coming.windows, coming.soon))
                    requested.append((worker, len(coming.windows)))
                    coming = next(batches, None)
                worker, count = requested.popleft()
                batch = self._received(worker, loop)
            except BaseException:
                self.close()
                raise
            self._used += count
            yield batch
            del batch
            if loop != self._loop:
                raise ValueError("this loader is already being iterated")
        if sampler.epoch == epoch:
            self._stream.set_epoch(epoch + 1)
            self._used = 0

    def _start(self) -> None:
        while len(self._workers) < self._count:
            here, there = self._context.Pipe()
            process = self._context.Process(
                target=_work,
                args=(there, self._stream.windows, self._slots, len(self._workers)),
                name=f"fragdex-loader-{len(self._workers)}",
                daemon=True,
            )
            process.start()
            there.close()
            self._workers.append(_Worker(process, here))

    def _received(self, worker: _Worker, loop: int) -> Sample:
        while True:
            try:
                of, reply = worker.channel.recv()
            except (EOFError, ConnectionError) as error:
                worker.process.join(5)
                raise FragdexError(
                    f"{worker.process.name} ended ({_how(worker.process.exitcode)})",
                    advice="the memory of all workers may be too much: take fewer, or a smaller"
                    " cache=; the batches of this epoch can be resumed by state_dict()",
                ) from error
            if of != loop:
                continue  # requested by a loop that was left early
            if isinstance(reply, _Failure):
                raise reply.error
            return reply  # type: ignore[no-any-return]

    def state_dict(self) -> dict[str, Any]:
        """Where the loop is, as `WindowStream.state_dict(used=…)` has it: small, fits in JSON."""
        return self._stream.state_dict(self._used)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where another loader or stream was.

        Raises:
            ValueError: its order was another one.
        """
        self._stream.load_state_dict(state)
        self._used = self._stream.sampler.state_dict()["taken"]

    def close(self) -> None:
        """End the workers; a new loop starts others."""
        _end(self._workers, self._pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<WindowLoader of {len(self)} batches by {self._count} workers>"


def _end(workers: list[_Worker], pid: int) -> None:
    if os.getpid() != pid:  # a process that was forked has none of its own
        return
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.process.join()
        worker.channel.close()
    workers.clear()


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"by signal {-code}"
    return f"exit code {code}"


def _work(channel: Connection, windows: Windows, slots: BatchSlots | None, number: int) -> None:
    """Make the batches that are requested, until nobody is there who could."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loop ends its workers itself
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    writer = None if slots is None else slots.writer(number)
    while True:
        loop, numbers, soon = channel.recv()
        channel.send((loop, _made(windows, numbers, soon, writer)))


def _made(windows: Windows, numbers: list[int], soon: list[int], writer: SlotWriter | None) -> Any:
    try:
        if writer is None:
            return windows.batch(numbers, soon=soon)
        return writer.filled(lambda make: windows.batch(numbers, make, soon))
    except Exception as error:  # noqa: BLE001  # raised where the batch is wanted
        return _Failure(_sendable(error))


def _sendable(error: Exception) -> Exception:
    """The error as another process can have it, with the lines that raised it here."""
    lines = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    except Exception:  # noqa: BLE001  # whatever an error of another library raises
        error = FragdexError(f"{type(error).__name__}: {error}")
    error.add_note(f"in a worker:\n{lines}")
    return error


def _end_with_parent(parent: int) -> None:
    # A pipe does not tell: workers that were forked later have its other end as well.
    while os.getppid() == parent:
        time.sleep(_WATCHED)
    os._exit(1)
