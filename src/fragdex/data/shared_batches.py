"""Batches in shared memory: worker processes write them, and one process maps them.

The memory has no name: it goes with the last process that has it, however that ends. It is divided
into slots, some for each worker. A slot is written again when nothing in the reading process
refers to its arrays any more; while all slots of a worker are in use, its batches are copied.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import warnings
import weakref
from collections.abc import Callable
from importlib import import_module
from multiprocessing.context import get_spawning_popen
from multiprocessing.heap import Arena
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.record import record

Make = Callable[..., npt.NDArray[Any]]
"""Makes an array of a shape and dtype, as `numpy.empty`."""
SHARED: Final = 1 << 30
"""Bytes of shared memory of one loader, at most."""
_SMALL: Final = 16 << 10
"""Bytes of an array that is sent rather than shared."""
_LINE: Final = 64
_NAME: Final = "fragdex-batches"
"""Shown in /proc, and nowhere else."""
_COUNTERS: Final = 4

_keys = itertools.count()
_slots_of: weakref.WeakValueDictionary[str, BatchSlots] = weakref.WeakValueDictionary()


def slots_for(workers: int, size: int, *, ahead: int, limit: int) -> BatchSlots | None:
    """Slots for batches of so many bytes; None: there is no room for one of each worker.

    Args:
        ahead: batches that each worker makes before they are taken.
        limit: bytes of all of them.
    """
    whole = _aligned(size + 8 * _LINE)
    # Those ahead, the one that is used, and the one before it, which a loop still names.
    each = min(ahead + 2, limit // (workers * whole))
    if size <= 0 or each < 1:
        return None
    try:
        return BatchSlots(workers, each, whole)
    except OSError as error:
        warnings.warn(
            f"batches are copied: there is no shared memory of {workers * each * whole:,} bytes"
            f" ({error.strerror or error})",
            RuntimeWarning,
            stacklevel=3,
        )
        return None


class BatchSlots:
    """Shared memory for the batches of several workers.

    Args:
        workers, each: slots of each worker.
        size: bytes of a slot, a multiple of 64.

    It goes to processes by fork, or while they are started; the process that made it reads.

    Raises:
        OSError: there is not so much memory.
    """

    def __init__(self, workers: int, each: int, size: int) -> None:
        arena = _arena(_aligned(_COUNTERS * 8 * workers * each) + workers * each * size)
        self._set_up(f"{os.getpid()}-{next(_keys)}", os.getpid(), workers, each, size, arena)

    def _set_up(
        self, key: str, reader: int, workers: int, each: int, size: int, arena: Any
    ) -> None:
        self._key, self._reader, self._arena = key, reader, arena
        self.workers, self._each, self._size = workers, each, size
        count = workers * each
        self.bytes = count * size
        counters = np.frombuffer(arena.buffer, np.int64, _COUNTERS * count).reshape(-1, count)
        # For each slot the batch that its worker wrote last, that the reader took last, and that
        # the reader has let go of last; and how many there were. Each number has one writer.
        self._written, self._taken, self._freed, self._count = counters
        self._first = _aligned(counters.nbytes)
        _slots_of[key] = self

    def is_reader(self) -> bool:
        """Whether this is the process that reads the batches."""
        return self._reader == os.getpid()

    def writer(self, worker: int, *, tensors: bool = False) -> SlotWriter:
        """What writes the batches of a worker; what an earlier one left unread is lost."""
        return SlotWriter(self, worker, tensors=tensors)

    def free(self, worker: int) -> int | None:
        """A slot of a worker that is not in use."""
        for slot in range(worker * self._each, (worker + 1) * self._each):
            if not self.in_use(slot):
                return slot
        return None

    def in_use(self, slot: int) -> bool:
        """Whether a batch is in a slot that is not taken yet, or not let go of."""
        return bool(self._written[slot] != self._freed[slot])

    def forget(self, worker: int) -> None:
        """Take back the slots of a worker whose batches nobody took."""
        for slot in range(worker * self._each, (worker + 1) * self._each):
            if self._written[slot] != self._taken[slot]:
                self._written[slot] = self._freed[slot]

    def area(self, slot: int) -> npt.NDArray[np.uint8]:
        """The bytes of a slot."""
        return np.frombuffer(self._arena.buffer, np.uint8, self._size, self._start(slot))

    def written(self, slot: int) -> int:
        """Note that a batch was written to a slot; its number."""
        self._count[slot] += 1
        self._written[slot] = self._count[slot]
        return int(self._count[slot])

    def take(self, slot: int, number: int) -> npt.NDArray[np.uint8] | None:
        """The bytes of a slot, in use until no array refers to them; None: they are lost."""
        if self._written[slot] != number:
            return None
        self._taken[slot] = number
        memory = (ctypes.c_ubyte * self._size).from_buffer(self._arena.buffer, self._start(slot))
        weakref.finalize(memory, self._let_go, slot, number).atexit = False
        return np.frombuffer(memoryview(memory), np.uint8)

    def _let_go(self, slot: int, number: int) -> None:
        if self.is_reader():  # not a process that was forked from it
            self._freed[slot] = number

    def _start(self, slot: int) -> int:
        return self._first + slot * self._size

    def __reduce__(self) -> Any:
        if get_spawning_popen() is None:
            raise TypeError("shared memory goes only to processes that are being started")
        return _set_up, (
            self._key, self._reader, self.workers, self._each, self._size, self._arena,
        )  # fmt: skip


def _arena(size: int) -> Arena:
    """So much shared memory without a name.

    On Linux it is not a part of /dev/shm, which is small in containers.

    Raises:
        OSError: there is not so much: refused here, and not met by the first who writes to it.
    """
    if not hasattr(os, "memfd_create"):
        return Arena(size)
    file = os.memfd_create(_NAME, os.MFD_CLOEXEC)
    try:
        os.posix_fallocate(file, 0, size)
        arena = Arena(size, file)
    except BaseException:
        os.close(file)
        raise
    weakref.finalize(arena, os.close, file)
    return arena


def _set_up(*state: Any) -> BatchSlots:
    slots = BatchSlots.__new__(BatchSlots)
    slots._set_up(*state)
    return slots


class SlotWriter:
    """Writes the batches of one worker."""

    def __init__(self, slots: BatchSlots, worker: int, *, tensors: bool) -> None:
        self._slots, self._worker, self._tensors = slots, worker, tensors
        slots.forget(worker)

    def filled(self, work: Callable[[Make], Any]) -> Any:
        """A batch in a free slot, ready to be sent; where it has no room, as it is made."""
        slot = self._slots.free(self._worker)
        if slot is None:
            return work(np.empty)
        area = self._slots.area(slot)
        used = 0

        def make(shape: Any, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
            nonlocal used
            kind = np.dtype(dtype)
            size = math.prod(shape) * kind.itemsize
            if size < _SMALL or used + size > area.nbytes:
                return np.empty(shape, kind)
            start, used = used, _aligned(used + size)
            return area[start : start + size].view(kind).reshape(shape)

        sample = work(make)
        first, parts, shared = area.ctypes.data, {}, False
        for name, value in sample.items() if isinstance(sample, dict) else ():
            parts[name] = value
            arrays = value if isinstance(value, tuple) else (value,)
            if arrays and all(_lies_in(array, area) for array in arrays):
                places = tuple(
                    _Place(array.ctypes.data - first, array.shape, array.dtype.str)
                    for array in arrays
                )
                parts[name] = places if isinstance(value, tuple) else places[0]
                shared = True
        if not shared:
            return sample
        return SharedBatch(self._slots._key, slot, self._slots.written(slot), parts, self._tensors)


class _Place(NamedTuple):
    """An array in a slot."""

    start: int
    shape: tuple[int, ...]
    kind: str

    def of(self, area: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        kind = np.dtype(self.kind)
        size = math.prod(self.shape) * kind.itemsize
        return area[self.start : self.start + size].view(kind).reshape(self.shape)


@record(frozen=True, slots=True, eq=False)
class SharedBatch:
    """A batch that is sent: where its large arrays lie, and the others.

    Pickled, it arrives as the batch.
    """

    key: str
    slot: int
    number: int
    parts: dict[str, Any]
    tensors: bool

    def arrived(self) -> dict[str, Any]:
        """The batch, its large arrays in shared memory; nothing, if its worker has begun again."""
        return _arrived(self.key, self.slot, self.number, self.parts, self.tensors)

    def __reduce__(self) -> Any:
        return _arrived, (self.key, self.slot, self.number, self.parts, self.tensors)


def _arrived(
    key: str, slot: int, number: int, parts: dict[str, Any], tensors: bool
) -> dict[str, Any]:
    slots = _slots_of.get(key)
    if slots is None or not slots.is_reader():
        raise TypeError("a batch in shared memory goes only to the process that made the loader")
    area = slots.take(slot, number)
    if area is None:
        return {}

    return {name: _mapped_in(area, value, tensors) for name, value in parts.items()}


def _mapped_in(area: npt.NDArray[np.uint8], value: Any, tensors: bool) -> Any:
    # A function of the module: one that calls itself and holds `area` would be a circle, and keep
    # the slot until it is collected.
    if isinstance(value, tuple) and not isinstance(value, _Place):
        return tuple(_mapped_in(area, one, tensors) for one in value)
    value = value.of(area) if isinstance(value, _Place) else value
    if tensors and isinstance(value, np.ndarray):
        return import_module("torch").from_numpy(value)
    return value


def _lies_in(array: Any, area: npt.NDArray[np.uint8]) -> bool:
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous or not array.nbytes:
        return False
    start = array.ctypes.data - area.ctypes.data
    return start >= 0 and start + array.nbytes <= area.nbytes


def _aligned(size: int) -> int:
    return -(-size // _LINE) * _LINE
