"""Contexts of the decoder, used again by several threads and videos, and what was decoded last."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager, nullcontext
from threading import BoundedSemaphore, Lock, RLock
from typing import Any, Final

from fragdex.decoding.codec import TrackCodec, engines_of, hold_back
from fragdex.decoding.open_track import TrackSetup
from fragdex.decoding.video_track import ParameterSets

_known: weakref.WeakSet[Any] = weakref.WeakSet()


def begin_anew_in_forks(thing: Any) -> None:
    """Have `thing.begin_anew()` called in each process that is forked, before anything else."""
    _known.add(thing)


def abandon(thing: Any) -> None:
    """Never free a thing, nor what it holds; its memory is that of the process before."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _after_fork() -> None:
    for thing in list(_known):
        thing.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


MOST_WAITING: Final = 16
MOST_CODECS: Final = 64
USUAL_SIDE_BY_SIDE: Final = 4
MOST_SIDE_BY_SIDE: Final = 16
"""Decoders of a device, which has to hold the pictures of each."""


class DecoderPool:
    """Decoders that wait for work; tracks that are set up alike share them.

    Attributes:
        made: decoders that were made so far.
        turns: of a device, for those that work at a time.

    Args:
        most: decoders that wait; those that were used least recently go first.
    """

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._most, self.made = most, 0
        self._start()
        begin_anew_in_forks(self)

    def _start(self) -> None:
        self._lock = Lock()
        self.turns = BoundedSemaphore(MOST_SIDE_BY_SIDE)
        self._codecs: OrderedDict[Hashable, TrackCodec] = OrderedDict()
        # The one that was used last is the last; few enough to look through.
        self._waiting: list[tuple[Hashable, ParameterSets, Any]] = []

    def codec(self, setup: Hashable, make: Callable[[], TrackCodec]) -> TrackCodec:
        """How tracks of a setup are decoded."""
        with self._lock:
            codec = self._codecs.pop(setup, None) or make()
            self._codecs[setup] = codec
            if len(self._codecs) > MOST_CODECS:
                self._codecs.popitem(last=False)
            return codec

    def forget(self, setup: Hashable) -> None:
        """Ask again how tracks of a setup are decoded."""
        with self._lock:
            self._codecs.pop(setup, None)

    def take(
        self, setup: Hashable, sets: ParameterSets, codec: TrackCodec
    ) -> tuple[Any, ParameterSets]:
        """A decoder of a setup that has decoded nothing since it was flushed.

        Returns: the decoder, and the parameter sets that it has met: none, or these.
        """
        with self._lock:
            for place in reversed(range(len(self._waiting))):
                known, met, context = self._waiting[place]
                if known == setup and met in ((), sets):
                    del self._waiting[place]
                    return context, met
            self.made += 1
            return codec.fresh(), ()

    def give_back(self, setup: Hashable, met: ParameterSets, context: Any) -> None:
        """Let a decoder wait that is not needed now."""
        with self._lock:
            self._waiting.append((setup, met, context))
            del self._waiting[: -self._most]

    def clear(self) -> None:
        """Let go of all of them; new ones are made when they are wanted."""
        with self._lock:
            self._waiting.clear()
            self._codecs.clear()

    def begin_anew(self) -> None:
        """Hold nothing, in a process that was forked."""
        # Freeing a decoder waits for its threads, which a fork leaves behind.
        abandon((self._waiting, self._codecs))
        self._start()


_of_devices: Final[dict[tuple[str, str], DecoderPool]] = {}


def pool_of(device: str) -> DecoderPool:
    """Decoders of a device, which all videos of a process share: each takes memory there.

    Args:
        device: its kind, with its number or path where there are several; the first has number 0.
    """
    kind, _, place = device.partition(":")
    return _of_devices.setdefault((kind, place or "0"), DecoderPool(MOST_SIDE_BY_SIDE))


class Decoders:
    """The decoders of one track.

    Attributes:
        device: hardware that decodes; None: the processor.
        stays: whether pictures stay in the memory of the device.

    Args:
        setup: what the initialization segment says of the track.
        depth: pictures that they hold back at least (`reorder_depth`).
    """

    def __init__(
        self,
        setup: TrackSetup,
        codec: str | None,
        pool: DecoderPool,
        *,
        several: bool,
        depth: int = 0,
        device: str | None = None,
        stays: bool = False,
    ) -> None:
        self.stays = stays
        self._setup, self._codec, self._pool, self._depth = setup, codec, pool, depth
        self._several, self._asked, self.device = several, device, device
        self._changing = RLock()
        if not several:
            self._codec_of(self._setup.first)

    def take(self, entry: int, threads: int, sets: ParameterSets) -> tuple[Any, ParameterSets]:
        """A decoder (PyAV's VideoCodecContext) that has decoded nothing since it was flushed.

        Args:
            threads: of its own; with more than one, pictures come out later than their samples.

        Returns: the decoder, and the parameter sets that it has met: none, or these.
        """
        context, met = self._pool.take(self._waits(entry, threads), sets, self._codec_of(entry))
        if threads > 1 and not context.is_open:
            context.thread_count = threads
            context.thread_type = "AUTO"
        hold_back(context, self._depth)
        return context, met

    def decode_alike(self, one: int, other: int) -> bool:
        """Whether the decoder of one sample entry decodes samples of another."""
        return self._setup.decode_alike(one, other)

    def leave_device(self, entry: int, why: str) -> None:
        """Let the processor decode this track; a RuntimeWarning says so, once."""
        with self._changing:  # threads that decode find out at the same time
            self._codec_of(entry).leave_device(why)
            self._codec_of(entry)

    def turn(self) -> AbstractContextManager[Any]:
        """While it lasts, one decoder works; those of a device are limited."""
        return nullcontext() if self.device is None else self._pool.turns

    def side_by_side(self) -> int:
        """How many decoders keep the device busy: twice its engines, if it says how many it has."""
        kind, _, place = (self.device or "").partition(":")
        codec = self._codec_of(self._setup.first)
        engines = engines_of(int(place or 0), codec.name) if kind == "cuda" else 0
        return min(2 * engines, MOST_SIDE_BY_SIDE) or USUAL_SIDE_BY_SIDE

    def give_back(self, entry: int, threads: int, context: Any, met: ParameterSets) -> None:
        """A decoder that is not needed now, and the parameter sets that it has met."""
        context.flush_buffers()
        self._pool.give_back(self._waits(entry, threads), met, context)

    def _waits(self, entry: int, threads: int) -> Hashable:
        """As what a decoder waits: one of a deeper video would give pictures later."""
        return self._key(entry), threads, self._depth

    def _key(self, entry: int) -> Hashable:
        return self._asked, self.stays, self._setup.of_decoder(entry)

    def _codec_of(self, entry: int) -> TrackCodec:
        def made() -> TrackCodec:
            # FFmpeg reads 1,024 sample entries at most, and this one alone is needed.
            init = self._setup.init_of(entry) if self._setup.several else self._setup.init
            return TrackCodec(
                init, self._setup.track, self._codec, device=self._asked, stays=self.stays
            )

        with self._changing:
            key = self._key(entry)
            codec = self._pool.codec(key, made)
            if codec.device is None and self._asked is not None:
                # Of this video only: for the next one the device is tried again.
                self._pool.forget(key)
                self._asked = None
                codec = self._pool.codec(self._key(entry), lambda: codec)
            self.device = codec.device
            return codec


class FrameCache:
    """Values with sizes, the ones that were used least recently go first; and decoders that wait.

    A process that is forked begins with none of them.

    Attributes:
        limit: bytes.
        size: bytes of what is held.
        decoders: those of videos with the same coding.

    Args:
        decoders: how many are kept at most; None: as many as one video may need.

    >>> cache = FrameCache(10)
    >>> cache.put("a", 1, 6)
    >>> cache.put("b", 2, 6)
    >>> cache.get("a"), cache.get("b"), cache.size
    (None, 2, 6)
    """

    def __init__(self, limit: int, decoders: int | None = None) -> None:
        self.limit, self._most_decoders = limit, decoders
        self.decoders = DecoderPool() if decoders is None else DecoderPool(decoders)
        self._start()
        begin_anew_in_forks(self)

    def _start(self) -> None:
        self.size = 0
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def begin_anew(self) -> None:
        """Hold nothing, in a process that was forked."""
        abandon(self._held)
        self._start()

    def get(self, key: Hashable) -> Any:
        """The value, or None."""
        with self._lock:
            entry = self._held.get(key)
            if entry is None:
                return None
            self._held.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Hold a value, unless it alone is too large."""
        with self._lock:
            self._drop(key)
            if size > self.limit:
                return
            self._held[key] = value, size
            self.size += size
            while self.size > self.limit:
                self._drop(next(iter(self._held)))

    def drop(self, keys: Iterable[Hashable]) -> None:
        """Forget values, where they are still held."""
        with self._lock:
            for key in keys:
                self._drop(key)

    def _drop(self, key: Hashable) -> None:
        old = self._held.pop(key, None)
        if old is not None:
            self.size -= old[1]

    def __reduce__(self) -> tuple[type[FrameCache], tuple[int, int | None]]:
        """A cache goes to another process empty."""
        return FrameCache, (self.limit, self._most_decoders)


class CachePart:
    """The values that one reader has in a cache.

    Attributes:
        limit: bytes of the whole cache.
    """

    def __init__(self, cache: FrameCache) -> None:
        self._cache, self.limit = cache, cache.limit
        self._keys: set[Hashable] = set()

    def get(self, key: Hashable) -> Any:
        """The value, or None."""
        return self._cache.get((self, key))

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Hold a value, unless it alone is too large."""
        self._keys.add(key)
        self._cache.put((self, key), value, size)

    def clear(self) -> None:
        """Forget them."""
        self._cache.drop([(self, key) for key in self._keys])
        self._keys.clear()
