"""Windows in the order of a sampler, one after the other: an iterable data set.

Windows are shuffled, those of one group of pictures together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import islice
from typing import Any

from fragdex.data.shared_batches import SHARED, BatchSlots, SlotWriter, slots_for
from fragdex.data.window_order import WindowSampler, parts, with_soon
from fragdex.data.windows import Windows


class WindowStream:
    """Windows, or batches of them, one after the other.

    Args:
        windows: the data set.
        sampler: their order; None: `WindowSampler(windows)`.
        batch: None: windows; otherwise dicts of this many, with stacked arrays. The last batch may
            be smaller.
        drop_last: leave out a smaller last batch.

    In a worker of torch's DataLoader it gives every n-th batch (without `batch`, every n-th run of
    windows that are kept together). With `batch` and `DataLoader(stream.dataset(),
    batch_size=None, num_workers=n)` the loader gives the same batches for every n.

    >>> import os, tempfile
    >>> from fragdex.data import VideoSet, write_set
    >>> path = os.path.join(tempfile.mkdtemp(), "set.parquet")
    >>> _ = write_set("fixtures/open-gop.mp4", path)
    >>> windows = Windows(VideoSet(path), frames=4)
    >>> for batch in WindowStream(windows, WindowSampler(windows, seed=1), batch=8):
    ...     print(batch["frames"].shape, batch["window"].tolist())
    (8, 4, 48, 64, 3) [0, 1, 2, 9, 10, 11, 6, 7]
    (4, 4, 48, 64, 3) [8, 3, 4, 5]
    """

    def __init__(
        self,
        windows: Windows,
        sampler: WindowSampler | None = None,
        *,
        batch: int | None = None,
        drop_last: bool = False,
    ) -> None:
        if batch is not None and batch < 1:
            raise ValueError(f"batch is 1 or more, not {batch}")
        self.windows = windows
        self.sampler = WindowSampler(windows) if sampler is None else sampler
        self._batch, self._drop_last = batch, drop_last
        self._shard: tuple[int, int] | None = None
        self._given = self._skip = 0

    def shard(self, worker: int, workers: int) -> WindowStream:
        """The part of one of several processes.

        Raises:
            ValueError: there is no such worker.
        """
        if not 0 <= worker < workers:
            raise ValueError(f"worker is 0 to {workers - 1}, not {worker}")
        stream = WindowStream(
            self.windows, self.sampler, batch=self._batch, drop_last=self._drop_last
        )
        stream._shard = worker, workers
        return stream

    def set_epoch(self, epoch: int) -> None:
        """Begin the next loop at the start of this epoch."""
        self.sampler.set_epoch(epoch)
        self._given = self._skip = 0

    def __iter__(self) -> Iterator[Any]:
        return self.through(None)

    def through(self, writer: SlotWriter | None) -> Iterator[Any]:
        """The stream, with its batches in shared memory where there is room."""
        worker, workers = self._shard or _torch_worker()
        where = self.sampler.state_dict()
        epoch, pieces = where["epoch"], self.sampler.pieces(where["taken"])
        size = self._batch or self.sampler.together
        skip, self._skip = self._skip, 0
        self._given = skip
        own = islice(parts(pieces, size), worker, None, workers)
        try:
            for numbers, soon in with_soon(part.tolist() for part in own):
                if self._drop_last and self._batch is not None and len(numbers) < size:
                    break
                items = len(numbers) if self._batch is None else 1
                if skip >= items:
                    skip -= items
                    continue
                if self._batch is None:
                    windows = self.windows.several(numbers[skip:], soon)
                else:
                    windows = [self._made(numbers, soon, writer)]
                skip = 0
                while windows:  # nothing of them is held while the next ones are made
                    self._given += 1
                    yield windows.pop(0)
        finally:
            self.windows.stop_reading_ahead()
        if self.sampler.epoch == epoch:
            self.set_epoch(epoch + 1)

    def batch_count(self) -> int:
        """How many batches an epoch has.

        Raises:
            ValueError: the stream has no batches.
        """
        whole, rest = divmod(len(self.sampler), self._need_batch())
        return whole + (rest > 0 and not self._drop_last)

    def batches(self, taken: int) -> Iterator[list[int]]:
        """The windows of each batch of the epoch, for one process that deals them out.

        Args:
            taken: windows from the start of the epoch that are left out.

        Raises:
            ValueError: the stream has no batches.
        """
        size = self._need_batch()
        for part in parts(self.sampler.pieces(taken), size):
            if len(part) == size or not self._drop_last:
                yield part.tolist()

    def _need_batch(self) -> int:
        if self._batch is None:
            raise ValueError("only batches go by shared memory: give the stream batch=")
        return self._batch

    def _made(self, numbers: list[int], soon: list[int], writer: SlotWriter | None) -> Any:
        if writer is None:
            return self.windows.batch(numbers, soon=soon)
        return writer.filled(lambda make: self.windows.batch(numbers, make, soon))

    def state_dict(self, used: int | None = None) -> dict[str, Any]:
        """Where the loop is.

        Args:
            used: windows of this epoch that were used by all workers together, counted from its
                start; None: what this process gave. Only the first holds where workers took some
                ahead, and the number of workers may differ then.
        """
        if used is not None:
            return {"sampler": self.sampler.state_dict(used), "given": 0, "workers": None}
        shard = self._shard or _torch_worker()
        return {"sampler": self.sampler.state_dict(), "given": self._given, "workers": shard[1]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where another one was.

        Raises:
            ValueError: its order was another one, or it was divided among more or fewer workers.
        """
        workers = (self._shard or _torch_worker())[1]
        if state["workers"] not in (None, workers):
            raise ValueError(
                f"the state is of one of {state['workers']} workers, and here are {workers}: "
                "take state_dict(used=…) of the process that uses the windows"
            )
        self.sampler.load_state_dict(state["sampler"])
        self._given = self._skip = int(state["given"])

    def dataset(self, workers: int = 0, *, shared: int = SHARED) -> Any:
        """This stream as a `torch.utils.data.IterableDataset`; imports torch.

        Args:
            workers: `num_workers` of the DataLoader, whose batches then lie in shared memory that
                is used again and again: workers write them, and this process maps them, without a
                copy. The stream has `batch`. 0: they go by copies.
            shared: bytes of that memory at most; batches for which there is no room are copied.

        Raises:
            ValueError: workers are given, and the stream has no batches.
            ImportError: torch is not installed.
        """
        return _torch_dataset(self, self.slots(workers, shared) if workers else None)

    def slots(self, workers: int, shared: int, ahead: int = 2) -> BatchSlots | None:
        """Shared memory for the batches of workers; None: there is no room for one of each.

        Raises:
            ValueError: the stream has no batches.
        """
        size = self.windows.batch_bytes(self._need_batch())
        return slots_for(workers, size, ahead=ahead, limit=shared)


def _torch_worker() -> tuple[int, int]:
    """Which worker of torch's loader this process is, and of how many."""
    torch_data = sys.modules.get("torch.utils.data")
    info = torch_data.get_worker_info() if torch_data is not None else None
    return (0, 1) if info is None else (info.id, info.num_workers)


def _torch_dataset(stream: WindowStream, slots: BatchSlots | None) -> Any:
    # No extra of this library brings torch: who calls this has it.
    base: Any = import_module("torch.utils.data").IterableDataset

    class WindowDataset(base):  # type: ignore[misc]
        """The windows of a stream."""

        def __iter__(self) -> Iterator[Any]:
            worker, _ = _torch_worker()
            if slots is None or worker >= slots.workers or slots.is_reader():
                return iter(stream)
            return stream.through(slots.writer(worker, tensors=True))

        def set_epoch(self, epoch: int) -> None:
            stream.set_epoch(epoch)

        def state_dict(self) -> dict[str, Any]:
            return stream.state_dict()

        def load_state_dict(self, state: Mapping[str, Any]) -> None:
            stream.load_state_dict(state)

        def __reduce_ex__(self, protocol: Any) -> Any:
            # A class that is made here has no name that another process could find.
            return _torch_dataset, (stream, slots)

    return WindowDataset()
