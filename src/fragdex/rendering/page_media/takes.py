"""What a page's own graphs gave: kept until the slice is done, in memory while it is short."""

from __future__ import annotations

import hashlib
import tempfile
from typing import IO, Final

from fragdex.rendering.page_media.strips import SAMPLE_RATE, SoundStrip

__all__ = ["Takes"]

FRAME_BYTES: Final = 8
_IN_MEMORY: Final = 8 << 20


class Takes:
    """Sound that was rendered from frame to frame.

    >>> takes = Takes()
    >>> takes.add(0, 48_000, bytes(8) * 4)
    >>> takes.add(0, 48_004, bytes(8) * 4)
    >>> [strip] = takes.strips(0.0)
    >>> strip.start, round(strip.stop * 48_000), len(takes.data(strip.source))
    (1.0, 48008, 64)
    >>> takes.clear()
    """

    def __init__(self) -> None:
        self._parts: list[tuple[int, int, IO[bytes]]] = []
        self._named: dict[str, bytes] = {}

    def add(self, context: int, first: int, data: bytes) -> None:
        """Take the next samples of a context: float32, two channels, interleaved.

        Args:
            context: its number on the page.
            first: of the render's samples, where they begin.
        """
        for place in range(len(self._parts) - 1, -1, -1):
            its, start, file = self._parts[place]
            if its == context:
                if start + file.tell() // FRAME_BYTES == first:
                    file.write(data)
                    return
                break
        file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 — closed below
        file.write(data)
        self._parts.append((context, first, file))

    def strips(self, start: float) -> list[SoundStrip]:
        """Strips of everything from a time of the render on."""
        found = []
        for place, (context, first, file) in enumerate(self._parts):
            count = file.tell() // FRAME_BYTES
            low = max(first, round(start * SAMPLE_RATE))
            if low < first + count:
                found.append(
                    SoundStrip(
                        self._name(place),
                        low / SAMPLE_RATE,
                        (first + count) / SAMPLE_RATE,
                        media_start=(low - first) / SAMPLE_RATE,
                        kind="samples",
                        voice=f"context {context}",
                    )
                )
        return found

    def data(self, source: str) -> bytes | None:
        """The samples that a strip names; None: they are not of here."""
        return self._named.get(source)

    def _name(self, place: int) -> str:
        file = self._parts[place][2]
        file.seek(0)
        data = file.read()
        name = f"samples:{hashlib.sha256(data).hexdigest()}"
        self._named[name] = data
        return name

    def clear(self) -> None:
        """Forget everything: it was handed over, or nobody wants it."""
        for *_, file in self._parts:
            file.close()
        self._parts.clear()
        self._named.clear()
