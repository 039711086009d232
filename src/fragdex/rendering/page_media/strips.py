"""What is heard, when: values that go from slices to the join, and samples of the page itself."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import IO, Any, Final

from fragdex.record import record

SAMPLE_RATE: Final = 48_000
"""Samples a second of all sound that is mixed."""
_SAME_TIME: Final = 1e-3


@record(frozen=True, slots=True)
class SoundStrip:
    """A stretch of the render in which one source is heard without a break.

    Attributes:
        source: URL of the media, as the page's own base resolves it; for `samples` the name of a
            file in the slice's folder.
        start, stop: seconds on the time line of the render; stop is exclusive.
        media_start: seconds of media time that are heard at `start`.
        rate: seconds of media time a second.
        gains: (seconds on the time line of the render, factor): from then on, until the next; the
            first one counts from `start` on.
        loop: where the media ends it begins again.
        preserves_pitch: whether another rate than 1 keeps the pitch.
        kind: `media`, decoded from the source; `samples`: float32, 48 kHz, two channels,
            interleaved, little-endian, from `media_start` on.
        voice: what a slice's strip has in common with the one that continues in the next slice.
    """

    source: str
    start: float
    stop: float
    media_start: float = 0.0
    rate: float = 1.0
    gains: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    loop: bool = False
    preserves_pitch: bool = True
    kind: str = "media"
    voice: str = ""

    def as_json(self) -> dict[str, Any]:
        """A JSON object; `of_json` reads it."""
        return asdict(self)

    @classmethod
    def of_json(cls, value: dict[str, Any]) -> SoundStrip:
        """What `as_json` gave, also after it was text."""
        gains = tuple((float(at), float(gain)) for at, gain in value["gains"])
        return cls(**(value | {"gains": gains}))

    def media_time(self, at: float) -> float:
        """Media time at a time of the render; not wrapped where the media loops."""
        return self.media_start + (at - self.start) * self.rate

    def within(self, start: float, stop: float) -> SoundStrip:
        """The part between two times of the render."""
        first, last = max(self.start, start), min(self.stop, stop)
        return replace(self, start=first, stop=last, media_start=self.media_time(first))


def joined(slices: Iterable[Sequence[SoundStrip]]) -> list[SoundStrip]:
    """The strips of contiguous slices as if they were of one.

    A sound that continues over a border becomes one strip again, so that nothing is decoded twice
    and nothing clicks.
    """
    joined_strips: list[SoundStrip] = []
    open_until: dict[tuple[str, str], int] = {}
    for strips in slices:
        for strip in sorted(strips, key=lambda strip: (strip.start, strip.voice)):
            place = open_until.get((strip.voice, strip.source)) if strip.voice else None
            if place is not None and _goes_on(joined_strips[place], strip):
                before = joined_strips[place]
                gains = before.gains + tuple(g for g in strip.gains if g not in before.gains)
                joined_strips[place] = replace(before, stop=strip.stop, gains=gains)
            else:
                open_until[strip.voice, strip.source] = len(joined_strips)
                joined_strips.append(strip)
    return joined_strips


def _goes_on(before: SoundStrip, after: SoundStrip) -> bool:
    same = replace(after, start=before.start, stop=before.stop, gains=before.gains,
                   media_start=before.media_start)  # fmt: skip
    return (
        same == before
        and before.kind == "media"
        and abs(before.stop - after.start) < _SAME_TIME
        and abs(before.media_time(after.start) - after.media_start) < _SAME_TIME
    )


FRAME_BYTES: Final = 8
_IN_MEMORY: Final = 8 << 20


class Takes:
    """Sound that was rendered from frame to frame."""

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
        strips = []
        for place, (context, first, file) in enumerate(self._parts):
            count = file.tell() // FRAME_BYTES
            low = max(first, round(start * SAMPLE_RATE))
            if low < first + count:
                strips.append(
                    SoundStrip(
                        self._name(place),
                        low / SAMPLE_RATE,
                        (first + count) / SAMPLE_RATE,
                        media_start=(low - first) / SAMPLE_RATE,
                        kind="samples",
                        voice=f"context {context}",
                    )
                )
        return strips

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
