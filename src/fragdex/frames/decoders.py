"""Contexts of the decoder, used again and again by several threads."""

from __future__ import annotations

from threading import Lock
from typing import Any

from fragdex.decoding.codec import TrackCodec
from fragdex.frames.sample_entries import init_of_entry

__all__ = ["Decoders"]


class Decoders:
    """Decoders of one track that wait for work.

    Attributes:
        made: how many were made.
        device: hardware that decodes; None: the processor.

    Args:
        init: ftyp and moov.
        track: track_ID.
        codec: its RFC 6381 string.
        several: whether the track has several sample entries.
        device: as `TrackCodec` takes it.

    Raises:
        UndecodableMedia, MissingExtra: as `TrackCodec`.

    >>> Decoders(b"", 1, None, several=False)
    Traceback (most recent call last):
    ...
    fragdex.errors.UndecodableMedia: there is no initialization segment; give it with init=
    """

    def __init__(
        self,
        init: bytes,
        track: int,
        codec: str | None,
        *,
        several: bool,
        device: str | None = None,
    ) -> None:
        self._init, self._track, self._codec, self.device = init, track, codec, device
        self._several = several
        self._lock = Lock()
        self._codecs: dict[int, TrackCodec] = {}
        self._waiting: dict[tuple[int, int], list[Any]] = {}
        self.made = 0
        if not several:
            self._codecs[1] = self._made(init)

    def take(self, entry: int, threads: int) -> Any:
        """A decoder (PyAV's VideoCodecContext) that has decoded nothing since it was flushed.

        Args:
            entry: sample_description_index.
            threads: of its own; with more than one, pictures come out later than their samples.
        """
        with self._lock:
            waiting = self._waiting.get((entry, threads))
            if waiting:
                return waiting.pop()
            self.made += 1
            context = self._codec_of(entry).fresh()
        if threads > 1:
            context.thread_count = threads
            context.thread_type = "AUTO"
        return context

    def give_back(self, entry: int, threads: int, context: Any) -> None:
        """A decoder that is not needed now."""
        context.flush_buffers()
        with self._lock:
            self._waiting.setdefault((entry, threads), []).append(context)

    def rest(self) -> None:
        """Let go of the decoders that wait; new ones are made when they are wanted."""
        with self._lock:
            self._waiting.clear()

    def _codec_of(self, entry: int) -> TrackCodec:
        found = self._codecs.get(entry)
        if found is None:
            init = init_of_entry(self._init, self._track, entry)
            found = self._codecs[entry] = self._made(init)
        return found

    def _made(self, init: bytes) -> TrackCodec:
        made = TrackCodec(init, self._track, self._codec, device=self.device)
        self.device = made.device
        return made
