"""The windows of this process in the order of a sampler: an iterable data set."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from fragdex.data.window_order import WindowSampler
from fragdex.data.windows import Sample, Windows

__all__ = ["WindowStream"]


class WindowStream:
    """Windows, or batches of them, one after the other.

    Args:
        windows: the data set.
        sampler: their order; None: `WindowSampler(windows)`.
        batch: None: windows; else dicts of so many of them, arrays stacked; what is left at the
            end is a smaller batch.
        drop_last: leave that one out.

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
    (8, 4, 48, 64, 3) [6, 7, 8, 0, 1, 2, 9, 10]
    (4, 4, 48, 64, 3) [11, 3, 4, 5]
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
        made = WindowStream(
            self.windows, self.sampler, batch=self._batch, drop_last=self._drop_last
        )
        made._shard = worker, workers
        return made

    def set_epoch(self, epoch: int) -> None:
        """Begin the next loop at the start of this epoch."""
        self.sampler.set_epoch(epoch)
        self._given = self._skip = 0

    def __iter__(self) -> Iterator[Any]:
        worker, workers = self._shard or _torch_worker()
        where = self.sampler.state_dict()
        epoch, order = where["epoch"], self.sampler.order()[where["taken"] :]
        size = self._batch or self.sampler.together
        skip, self._skip = self._skip, 0
        self._given = skip
        for first in range(worker * size, len(order), workers * size):
            numbers = order[first : first + size].tolist()
            if self._drop_last and self._batch is not None and len(numbers) < size:
                break
            items = len(numbers) if self._batch is None else 1
            if skip >= items:
                skip -= items
                continue
            made: list[Any] = self.windows.__getitems__(
                numbers[skip:] if self._batch is None else numbers
            )
            if self._batch is not None:
                made = [_stacked(made)]
            skip = 0
            while made:  # nothing of them is held while the next ones are made
                self._given += 1
                yield made.pop(0)
        if self.sampler.epoch == epoch:
            self.set_epoch(epoch + 1)

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
        """Go on where another one was.

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

    def dataset(self) -> Any:
        """This stream as a `torch.utils.data.IterableDataset`; imports torch.

        Raises:
            ImportError: torch is not installed.
        """
        return _torch_dataset(self)


def _stacked(samples: list[Sample]) -> Sample:
    """The samples as one of arrays; they lose what they held, so that it is not there twice."""

    def stack(name: str) -> Any:
        values = [sample.pop(name) for sample in samples]
        if isinstance(values[0], tuple):
            return tuple(np.stack(parts) for parts in zip(*values, strict=True))
        values = [np.asarray(value) for value in values]
        kinds = {(value.shape, value.dtype) for value in values}
        if len(kinds) > 1:
            return np.stack(values)  # makes them alike, or says what does not fit
        ((shape, dtype),) = kinds
        found = np.empty((len(values), *shape), dtype)
        for place in reversed(range(len(values))):
            found[place] = values.pop()
        return found

    return {name: stack(name) for name in list(samples[0])}


def _torch_worker() -> tuple[int, int]:
    """Which worker of torch's loader this process is, and of how many."""
    torch_data = sys.modules.get("torch.utils.data")
    info = torch_data.get_worker_info() if torch_data is not None else None
    return (0, 1) if info is None else (info.id, info.num_workers)


def _torch_dataset(stream: WindowStream) -> Any:
    # No extra of this library brings torch: who calls this has it.
    base: Any = import_module("torch.utils.data").IterableDataset

    class WindowDataset(base):  # type: ignore[misc]
        """The windows of a stream."""

        def __iter__(self) -> Iterator[Any]:
            return iter(stream)

        def set_epoch(self, epoch: int) -> None:
            stream.set_epoch(epoch)

        def state_dict(self) -> dict[str, Any]:
            return stream.state_dict()

        def load_state_dict(self, state: Mapping[str, Any]) -> None:
            stream.load_state_dict(state)

        def __reduce_ex__(self, protocol: Any) -> Any:
            # A class that is made here has no name that another process could find.
            return _torch_dataset, (stream,)

    return WindowDataset()
