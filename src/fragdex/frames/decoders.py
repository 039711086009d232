"""Contexts of the decoder, used again and again by several threads and films."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final

from fragdex.decoding.codec import TrackCodec, hold_back
from fragdex.decoding.parameter_sets import ParameterSets
from fragdex.decoding.sample_entries import TrackSetup
from fragdex.frames.forks import abandon, begin_anew_in_forks

__all__ = ["DecoderPool", "Decoders"]

MOST_WAITING: Final = 16
MOST_CODECS: Final = 64


class DecoderPool:
    """Decoders that wait for work; tracks that are set up alike share them.

    Attributes:
        made: decoders that were made so far.

    Args:
        most: decoders that wait; those that were used least recently go first.

    >>> DecoderPool(2).made
    0
    """

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._most, self.made = most, 0
        self._start()
        begin_anew_in_forks(self)

    def _start(self) -> None:
        self._lock = Lock()
        self._codecs: OrderedDict[Hashable, TrackCodec] = OrderedDict()
        # The one that was used last is the last; few enough to look through.
        self._waiting: list[tuple[Hashable, ParameterSets, Any]] = []

    def codec(self, setup: Hashable, make: Callable[[], TrackCodec]) -> TrackCodec:
        """How tracks of a setup are decoded.

        Raises: what `make` raises.
        """
        with self._lock:
            found = self._codecs.pop(setup, None) or make()
            self._codecs[setup] = found
            if len(self._codecs) > MOST_CODECS:
                self._codecs.popitem(last=False)
            return found

    def take(
        self, setup: Hashable, sets: ParameterSets, codec: TrackCodec
    ) -> tuple[Any, ParameterSets]:
        """A decoder of a setup that has decoded nothing since it was flushed.

        Args:
            sets: parameter sets in the sample that it decodes first.

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


class Decoders:
    """The decoders of one track.

    Attributes:
        device: hardware that decodes; None: the processor.

    Args:
        setup: what the initialization segment says of the track.
        codec: its RFC 6381 string.
        pool: where decoders wait.
        several: whether samples have several sample entries.
        depth: pictures that they hold back at least (`reorder_depth`).
        device: as `TrackCodec` takes it.

    Raises:
        UndecodableMedia, MissingExtra: as `TrackCodec`.

    >>> Decoders(TrackSetup(b"", 1), None, DecoderPool(), several=False)
    Traceback (most recent call last):
    ...
    fragdex.errors.UndecodableMedia: there is no initialization segment; give it with init=
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
    ) -> None:
        self._setup, self._codec, self._pool, self._depth = setup, codec, pool, depth
        self._several, self._asked, self.device = several, device, device
        if not several:
            self._codec_of(1)

    def take(self, entry: int, threads: int, sets: ParameterSets) -> tuple[Any, ParameterSets]:
        """A decoder (PyAV's VideoCodecContext) that has decoded nothing since it was flushed.

        Args:
            entry: sample_description_index.
            threads: of its own; with more than one, pictures come out later than their samples.
            sets: parameter sets in the sample that it decodes first.

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

    def give_back(self, entry: int, threads: int, context: Any, met: ParameterSets) -> None:
        """A decoder that is not needed now, and the parameter sets that it has met."""
        context.flush_buffers()
        self._pool.give_back(self._waits(entry, threads), met, context)

    def _waits(self, entry: int, threads: int) -> Hashable:
        """As what a decoder waits: one of a deeper film would give pictures later."""
        return self._key(entry), threads, self._depth

    def _key(self, entry: int) -> Hashable:
        return self._asked, self._setup.of_decoder(entry)

    def _codec_of(self, entry: int) -> TrackCodec:
        def made() -> TrackCodec:
            # FFmpeg reads 1,024 sample entries at most, and this one alone is needed.
            init = self._setup.init_of(entry) if self._setup.several else self._setup.init
            return TrackCodec(init, self._setup.track, self._codec, device=self._asked)

        found = self._pool.codec(self._key(entry), made)
        self.device = found.device
        return found
