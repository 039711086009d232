"""One strip as samples: where it is read, how fast, how loud."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.decoding.mixing import Floats
from fragdex.errors import UndecodableMedia
from fragdex.rendering.page_media.medium import Medium
from fragdex.rendering.page_media.opening import OpenMedia
from fragdex.rendering.page_media.speeds import Resampled, Stretched
from fragdex.rendering.page_media.strips import SAMPLE_RATE, SoundStrip

__all__ = ["Flow", "MediaReader", "SampleReader", "Voice"]

RAMP: Final = 240
"""Samples (5 ms) in which a change of loudness is made, so that it does not click."""
PIECE: Final = SAMPLE_RATE
KEPT_PIECES: Final = 20
_FRAME_BYTES: Final = 8


class Voice:
    """A strip that is being heard.

    Attributes:
        strip: which.
        start, stop: samples of the render.

    Raises:
        UndecodableMedia, SourceError and others: it cannot be read.
    """

    def __init__(self, strip: SoundStrip, open_media: OpenMedia) -> None:
        self.strip = strip
        self.start, self.stop = (round(at * SAMPLE_RATE) for at in (strip.start, strip.stop))
        reader: SampleReader | MediaReader
        if strip.kind == "samples":
            reader = SampleReader(strip.source, open_media)
        else:
            reader = MediaReader(strip.source, open_media, loop=strip.loop)
        self._flow = Flow(reader, strip.media_start, strip.rate, strip.preserves_pitch)
        self._gains = _curve(strip)

    def add_to(self, block: Floats, start: int) -> None:
        """Add what is heard in a block that begins at a sample of the render."""
        first, last = max(start, self.start), min(start + len(block), self.stop)
        if first >= last:
            return
        places, values = self._gains
        gains = np.interp(np.arange(first, last), places, values).astype(np.float32)
        if gains.any():
            sound = self._flow.next(last - first)
            block[first - start : last - start] += sound * gains[:, None]
        else:
            self._flow.skip(last - first)

    def close(self) -> None:
        """Give the decoder back."""
        self._flow.close()


class Flow:
    """Sound of one source from a moment on, at one speed.

    Args:
        reader: of the source.
        media_start: seconds of media time.
        rate: seconds of media time a second.
        preserves_pitch: whether the pitch stays at another rate than 1.
    """

    def __init__(
        self,
        reader: SampleReader | MediaReader,
        media_start: float,
        rate: float,
        preserves_pitch: bool,
    ) -> None:
        self._reader = reader
        self._at = round(media_start * SAMPLE_RATE)
        self._sound: Stretched | Resampled | None = None
        if rate != 1:
            kind = Stretched if preserves_pitch else Resampled
            self._sound = kind(reader.read, self._at, rate)

    def next(self, count: int) -> Floats:
        """The next samples."""
        if self._sound is not None:
            return self._sound.next(count)
        self._at += count
        return self._reader.read(self._at - count, self._at)

    def skip(self, count: int) -> None:
        """Let samples pass unheard."""
        if self._sound is not None:
            self._sound.next(count)
        self._at += count

    def close(self) -> None:
        """Give the decoder back."""
        self._reader.close()


def _curve(strip: SoundStrip) -> tuple[list[int], list[float]]:
    """Loudness as straight lines between samples of the render."""
    steps = [(round(at * SAMPLE_RATE), gain) for at, gain in strip.gains]
    begin = round(strip.start * SAMPLE_RATE)
    before = [gain for at, gain in steps if at <= begin]
    places, values = [begin], [before[-1] if before else steps[0][1] if steps else 1.0]
    # Of several at one time the last holds.
    later = sorted({at: gain for at, gain in steps if at > begin}.items())
    for number, (at, gain) in enumerate(later):
        following = later[number + 1][0] if number + 1 < len(later) else at + RAMP
        places += [at, min(at + RAMP, max(following, at))]
        values += [values[-1], gain]
    return places, values


class SampleReader:
    """Sound that was rendered already."""

    def __init__(self, source: str, open_media: OpenMedia) -> None:
        self._source = open_media(source)

    def read(self, start: int, stop: int) -> Floats:
        """Samples [start, stop) of media time at 48 kHz; silence where there are none."""
        answer = np.zeros((stop - start, 2), np.float32)
        first = max(start, 0)
        if first < stop:
            part = ByteRange(first * _FRAME_BYTES, stop * _FRAME_BYTES)
            data = self._source.read_up_to(part)
            found = np.frombuffer(data[: len(data) // _FRAME_BYTES * _FRAME_BYTES], "<f4")
            found = found.reshape(-1, 2)
            answer[first - start : first - start + len(found)] = found
        return answer

    def close(self) -> None:
        """Close the file."""
        self._source.close()


class MediaReader:
    """Sound of a file, from its start to its end or round and round.

    Raises:
        UndecodableMedia: it has no sound.
    """

    def __init__(self, url: str, open_media: OpenMedia, *, loop: bool = False) -> None:
        self._medium = Medium(url, open_media)
        try:
            if not self._medium.has_sound:
                raise UndecodableMedia("the file has no sound")
            self._sound = self._medium.sound()
        except BaseException:
            self._medium.close()
            raise
        length = self._medium.duration
        self._length = None if length is None else max(1, round(length * SAMPLE_RATE))
        self._first = round(self._medium.start * SAMPLE_RATE)
        self._loop = loop and self._length is not None
        self._piece = lru_cache(KEPT_PIECES)(self._decoded)

    def read(self, start: int, stop: int) -> Floats:
        """Samples [start, stop) of media time at 48 kHz; silence where there are none."""
        if not self._loop or self._length is None:
            last = stop if self._length is None else min(stop, self._length)
            answer = np.zeros((stop - start, 2), np.float32)
            first = max(start, 0)
            if first < last:
                answer[first - start : last - start] = self._span(first, last)
            return answer
        parts = []
        while start < stop:
            place = start
            if place >= self._length:
                place = self._first + (start - self._first) % (self._length - self._first)
            count = min(stop - start, self._length - place)
            parts.append(self._span(place, place + count))
            start += count
        return np.concatenate(parts) if parts else np.zeros((0, 2), np.float32)

    def _span(self, first: int, last: int) -> Floats:
        parts = []
        for number in range(first // PIECE, -(-last // PIECE)):
            piece = self._piece(number)
            begin = number * PIECE
            parts.append(piece[max(first - begin, 0) : last - begin])
        return np.concatenate(parts)

    def _decoded(self, number: int) -> Floats:
        """A second, always cut at the same places."""
        first, last = Fraction(number * PIECE), Fraction((number + 1) * PIECE)
        return self._sound.read(first / SAMPLE_RATE, last / SAMPLE_RATE)

    def close(self) -> None:
        """Close the file."""
        self._medium.close()
