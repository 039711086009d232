"""Strips become sound: voices, faster and slower, mixed block by block.

Full scale is not passed: where a sum would be too loud, it is turned down for that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.decoding.sound_stream import Floats
from fragdex.errors import FragdexError, ServiceError, UndecodableMedia
from fragdex.rendering.page_media.medium import Medium
from fragdex.rendering.page_media.opening import OpenMedia
from fragdex.rendering.page_media.strips import SAMPLE_RATE, SoundStrip
from fragdex.rendering.site import Blocked

Read = Callable[[int, int], Floats]

GRAIN: Final = 1440
"""Samples (30 ms) of a grain: some periods of a deep voice."""
HOP: Final = GRAIN // 2
SEARCH: Final = 384
"""Samples (8 ms) by which a grain may be moved, to continue where the last one ended."""
TAPS: Final = 16
"""Samples on each side from which one sample between two is made."""
PHASES: Final = 1024
"""Places between two samples that are told apart."""
AT_ONCE: Final = 8192


class Stretched:
    """Sound whose pitch stays: grains of it, laid closer or wider (waveform similarity).

    Each grain stands, give or take 8 ms, where its time is; which of these places is taken is
    decided by likeness to what would have followed the grain before.

    Args:
        read: samples of the source; may be requested in any order, is requested forwards.
        start: the sample of the source that is heard first.
        rate: samples of the source a sample.
    """

    def __init__(self, read: Read, start: int, rate: float) -> None:
        self._read, self._start, self._rate = read, start, rate
        self._window = np.hanning(GRAIN + 1)[:GRAIN, None].astype(np.float32)
        self._ready = np.zeros((0, 2), np.float32)
        self._tail = np.zeros((HOP, 2), np.float32)
        self._grain = 0
        self._last: int | None = None

    def next(self, count: int) -> Floats:
        """The next samples."""
        parts, size = [self._ready], len(self._ready)
        while size < count:
            parts.append(self._hop())
            size += HOP
        whole = np.concatenate(parts)
        self._ready = whole[count:]
        return whole[:count]

    def _hop(self) -> Floats:
        """Half a grain: the end of the last one over the beginning of this one."""
        # The first grain's middle is the first sample: its first half lies before the start.
        middle = self._start + round(self._grain * HOP * self._rate)
        self._grain += 1
        place = middle - HOP
        if self._last is not None:
            place += self._nearest(place, self._last + HOP)
        self._last = place
        grain = self._read(place, place + GRAIN) * self._window
        if self._grain == 1:
            # Nothing was heard before: no fading in.
            self._tail = grain[HOP:]
            return self._hop()
        done: Floats = self._tail + grain[:HOP]
        self._tail = grain[HOP:]
        return done

    def _nearest(self, place: int, wanted: int) -> int:
        """How far from its place the source matches best."""
        # Every other sample of both channels is enough to hear likeness.
        pattern = self._read(wanted, wanted + HOP).sum(axis=1)[::2]
        around = self._read(place - SEARCH, place + SEARCH + HOP).sum(axis=1)[::2]
        if not pattern.any() or not around.any():
            return 0
        likeness = np.correlate(around, pattern, "valid")
        energy = np.convolve(around * around, np.ones(len(pattern), np.float32), "valid")
        score = likeness / np.sqrt(np.maximum(energy, 1e-9))
        # Of places alike (silence, a steady tone) the nearest.
        score -= np.abs(np.arange(len(score)) - SEARCH // 2) * (1e-6 * float(score.max()))
        return int(score.argmax()) * 2 - SEARCH


class Resampled:
    """Sound whose pitch moves with its speed, as a record's.

    Args: as of `Stretched`.
    """

    def __init__(self, read: Read, start: int, rate: float) -> None:
        self._read, self._start, self._rate = read, start, rate
        self._done = 0
        # Above the source's own speed what would be too high to stand is left out.
        width = max(1.0, rate)
        self._reach = int(np.ceil(TAPS * width))
        taps = np.arange(1 - self._reach, self._reach + 1)
        distance = (taps - np.arange(PHASES + 1)[:, None] / PHASES) / width
        weights = np.sinc(distance) * np.cos(np.clip(distance / TAPS, -1, 1) * (np.pi / 2)) ** 2
        self._weights = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)

    def next(self, count: int) -> Floats:
        """The next samples."""
        parts = [self._some(min(AT_ONCE, count - at)) for at in range(0, count, AT_ONCE)]
        return np.concatenate(parts) if parts else np.zeros((0, 2), np.float32)

    def _some(self, count: int) -> Floats:
        places = self._start + np.arange(self._done, self._done + count) * self._rate
        self._done += count
        whole = np.floor(places).astype(np.int64)
        weights = self._weights[np.rint((places - whole) * PHASES).astype(np.int64)]
        first, reach = int(whole[0]) - self._reach + 1, self._reach
        source = self._read(first, int(whole[-1]) + reach + 1).astype(np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(source, 2 * reach, axis=0)
        chosen = windows[whole - int(whole[0])]
        samples: Floats = np.einsum("nct,nt->nc", chosen, weights)
        return samples


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
            samples = np.frombuffer(data[: len(data) // _FRAME_BYTES * _FRAME_BYTES], "<f4")
            samples = samples.reshape(-1, 2)
            answer[first - start : first - start + len(samples)] = samples
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


BLOCK: Final = SAMPLE_RATE
"""Samples that are mixed at once."""
WINDOW: Final = 240
"""Samples (5 ms) over which loudness is turned down and up again."""
_FAULTS: Final = (FragdexError, ServiceError, Blocked, OSError, ValueError, ArithmeticError)


def mix(
    strips: Iterable[SoundStrip],
    open_media: OpenMedia,
    stop: float | Fraction,
    failed: Callable[[str], None] = lambda _: None,
    *,
    start: float | Fraction = 0,
) -> Iterator[Floats]:
    """The sound of a render, or of a range of it: the same samples.

    What is heard at the same time is added; where the sum would pass full scale it is turned down
    for that moment. Memory is that of a few seconds, however long the render is.

    Args:
        strips: of all slices, by `joined`.
        open_media: source of a strip → its bytes.
        stop: seconds on the time line of the render; exclusive.
        failed: told what cannot be decoded, and stays silent.
        start: likewise; inclusive.

    Yields: arrays of shape (at most 48,000, 2), float32 between -1 and 1; together the samples
    between both ends, each end rounded.
    """
    first, total = (round(Fraction(at) * SAMPLE_RATE) for at in (start, stop))
    blocks = _mixed(strips, open_media, first - first % BLOCK, total, failed)
    unheard = first % BLOCK
    for block in blocks:
        if unheard < len(block):
            yield block[unheard:]
        unheard = max(0, unheard - len(block))


def _mixed(
    strips: Iterable[SoundStrip], open_media: OpenMedia, first: int, total: int,
    failed: Callable[[str], None],
) -> Iterator[Floats]:  # fmt: skip
    """The samples from the first, where a block begins, until the last, exclusive."""
    waiting = sorted(strips, key=lambda strip: strip.start, reverse=True)
    voices: list[Voice] = []
    limiter = Limiter()
    for start in range(first, total, BLOCK):
        stop = min(start + BLOCK, total)
        while waiting and waiting[-1].start * SAMPLE_RATE < stop:
            strip = waiting.pop()
            try:
                voices.append(Voice(strip, open_media))
            except _FAULTS as error:
                failed(f"{strip.source[:120]}: {error}")
        block = np.zeros((stop - start, 2), np.float32)
        for voice in list(voices):
            try:
                voice.add_to(block, start)
            except _FAULTS as error:
                failed(f"{voice.strip.source[:120]}: {error}")
                voice.stop = start
            if voice.stop <= stop:
                voices.remove(voice)
                voice.close()
        yield from limiter.take(block)
    yield from limiter.rest()


class Limiter:
    """Turns sound down where it is above full scale, and leaves everything else as it is.

    Each window of 5 ms has a gain at which it would be within full scale. At the border of two
    windows the lesser of both holds, and in between it goes in a straight line: so no sample
    passes full scale, and nothing jumps. The last window waits until the next one is known.
    """

    def __init__(self) -> None:
        self._held = np.zeros((0, 2), np.float32)
        self._before = 1.0  # the gain at the border in front of what is held

    def take(self, block: Floats) -> Iterator[Floats]:
        """What can be given out now."""
        joined = np.concatenate([self._held, block])
        ready = max(0, (len(joined) - WINDOW) // WINDOW) * WINDOW
        if ready:
            yield self._turned(joined[:ready], joined[ready : ready + WINDOW])
        self._held = joined[ready:]

    def rest(self) -> Iterator[Floats]:
        """The rest at the end."""
        if len(self._held):
            yield self._turned(self._held, self._held[:0])
            self._held = self._held[:0]

    def _turned(self, sound: Floats, following: Floats) -> Floats:
        loudest = np.abs(sound).max(initial=0.0)
        after = _gain(following)
        if loudest <= 1 and after == 1 and self._before == 1:
            return sound
        gains = [_gain(sound[at : at + WINDOW]) for at in range(0, len(sound), WINDOW)]
        borders = [self._before, *map(min, gains, [*gains[1:], after])]
        places = np.minimum(np.arange(len(borders)) * WINDOW, len(sound))
        curve = np.interp(np.arange(len(sound)), places, borders)
        self._before = borders[-1]
        turned: Floats = sound * curve[:, None].astype(np.float32)
        return np.clip(turned, -1, 1, out=turned)


def _gain(window: Floats) -> float:
    return 1 / max(1.0, float(np.abs(window).max(initial=0.0)))
