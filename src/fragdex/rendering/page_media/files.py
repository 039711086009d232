"""Media files that are not of ISO/IEC 14496-12, by FFmpeg's demuxers: WebM, MP3, Ogg and others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, Final

import av
import av.error
import numpy as np

from fragdex.decoding.codec import MOST_PIXELS, hold_back
from fragdex.decoding.mixing import Floats, mixed, needed, resampled
from fragdex.decoding.open_track import MOST_REORDERED, reorder_depth
from fragdex.decoding.pictures import shown_size
from fragdex.decoding.video_track import Picture
from fragdex.errors import UndecodableMedia
from fragdex.rendering.page_media.strips import SAMPLE_RATE
from fragdex.transcode.probe import opened, probe, streams_of

__all__ = ["FileFacts", "FilePictures", "FileSound", "look"]

_FAR_SECONDS: Final = 10
"""A picture that lies so far ahead is sought, not decoded towards."""
_FAR_SOUND: Final = 60
"""The same for sound, in files whose seeking is exact."""
_KEPT_SECONDS: Final = 4
"""Of decoded sound behind the place that was read last."""
# Times in these begin anywhere; players count from the first.
_COUNTED_FROM_START: Final = ("mpegts", "mpeg", "flv", "ogg", "mp3", "aac")
# Decoders that know opacity.
_CLEAR: Final = {"vp8": "libvpx", "vp9": "libvpx-vp9"}
# Their seeking is exact to a packet; of others the sound is decoded through.
_EXACT: Final = ("matroska", "wav", "w64", "flac", "ogg")


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is known of a file before anything is played."""

    size: tuple[int, int] | None
    tick: Fraction
    duration: float | None
    has_sound: bool
    start: float


def look(file: Any) -> FileFacts:
    """What a file holds.

    Raises:
        Unprocessable: it is no media file, or too large.
    """
    with opened(file) as container:
        info = probe(container)
        start = 0.0 if _is_counted(container) else (container.start_time or 0) / av.time_base
        size, tick = None, Fraction(0)
        if any(stream.type == "video" for stream in info.streams):
            pictures = FilePictures(file)
            size, tick = shown_size(pictures.at(0)), pictures.tick
            pictures.close()
        sounds = any(stream.type == "audio" for stream in info.streams)
        return FileFacts(size, tick, info.duration or _length(file), sounds, max(0.0, start))


def _length(file: Any) -> float | None:
    """The end of the last packet, of files that were written without knowing it."""
    file.seek(0)
    end = Fraction(0)
    with opened(file) as container:
        streams = streams_of(container)
        for packet in container.demux(streams):
            if packet.pts is not None and packet.time_base:
                end = max(end, (packet.pts + (packet.duration or 0)) * Fraction(packet.time_base))
    return float(end) or None


def _is_counted(container: Any) -> bool:
    return any(name in container.format.name for name in _COUNTED_FROM_START)


def _decoder(stream: Any) -> Any:
    """FFmpeg's own decoders leave out what WebM adds to a block: the opacity of its picture."""
    codec = stream.codec_context
    told = {key.lower(): value for key, value in stream.metadata.items()}
    name = _CLEAR.get(codec.name) if told.get("alpha_mode") == "1" else None
    if name is not None:
        with contextlib.suppress(av.codec.codec.UnknownCodecError):
            return av.CodecContext.create(name, "r")
    return codec


def _decoded(decoder: Any, packet: Any) -> list[Any]:
    with contextlib.suppress(av.error.InvalidDataError, av.error.EOFError):
        return list(decoder.decode(packet))
    return []


class _Opened:
    """A stream of an open file."""

    def __init__(self, file: Any, kind: str) -> None:
        self._stack = ExitStack()
        file.seek(0)
        self.container = self._stack.enter_context(opened(file))
        found = [s for s in streams_of(self.container) if s.type == kind]
        if not found:
            self._stack.close()
            raise UndecodableMedia(f"the file has no {kind} stream")
        self.stream = found[0]
        self.decoder = _decoder(self.stream)
        self.decoder.thread_count = 1
        start = self.container.start_time or 0
        counted = _is_counted(self.container)
        self.origin = Fraction(start, av.time_base) if counted else Fraction(0)
        self.exact = any(name in self.container.format.name for name in _EXACT)

    def frames(self) -> Iterator[Any]:
        for packet in self._packets():
            for frame in _decoded(self.decoder, packet):
                if frame.pts is not None:
                    yield frame

    def _packets(self) -> Iterator[Any]:
        """Its packets; before some are decoded, those behind them tell how far to reorder."""
        packets = self.container.demux(self.stream)
        if self.stream.type != "video":
            yield from packets
            return
        before: list[Any] = []
        here = list(islice(packets, MOST_REORDERED))
        while here:
            behind = list(islice(packets, MOST_REORDERED))
            times = [one.pts for one in (*before, *here, *behind) if one.pts is not None]
            hold_back(self.decoder, reorder_depth(np.array(times, np.int64)))
            yield from here
            before, here = here, behind

    def time_of(self, frame: Any) -> Fraction:
        base = frame.time_base or self.stream.time_base
        return Fraction(frame.pts) * Fraction(base) - self.origin

    def seek(self, time: Fraction) -> None:
        place = (max(time, Fraction(0)) + self.origin) / Fraction(self.stream.time_base)
        self.container.seek(int(place), stream=self.stream, backward=True)
        self.decoder.flush_buffers()

    def close(self) -> None:
        self._stack.close()


class FilePictures:
    """Pictures of a file; as `PictureReader`.

    Attributes:
        tick: seconds between two times that pictures can have.
    """

    def __init__(self, file: Any) -> None:
        self._opened = _Opened(file, "video")
        stream = self._opened.stream
        if stream.codec_context.width * stream.codec_context.height > MOST_PIXELS:
            raise UndecodableMedia("its pictures are too large")
        self.tick = Fraction(stream.time_base)
        self._frames = self._opened.frames()
        self._shown: Picture | None = None
        self._next: Picture | None = None

    def at(self, time: Any) -> Picture:
        """The picture of a time: before the first that one, after the end the last."""
        time = Fraction(time)
        if self._shown is None or time < self._shown.time or self._is_far(time):
            self._begin(time)
        while self._next is not None and self._next.time <= time:
            self._shown, self._next = self._next, self._read()
        if self._shown is None:
            raise UndecodableMedia("the pictures cannot be decoded")
        return self._shown

    def time_at(self, time: Any) -> Fraction:
        """When the picture of a time begins."""
        return self.at(time).time

    def close(self) -> None:
        """Give the decoder back."""
        self._opened.close()

    def _is_far(self, time: Fraction) -> bool:
        return self._next is not None and time > self._next.time + _FAR_SECONDS

    def _begin(self, time: Fraction) -> None:
        self._opened.seek(time)
        self._frames = self._opened.frames()
        self._shown, self._next = self._read(), self._read()
        if self._shown is not None and self._shown.time > time > 0:
            # Sought too far, or not at all.
            self._opened.seek(Fraction(0))
            self._frames = self._opened.frames()
            self._shown, self._next = self._read(), self._read()

    def _read(self) -> Picture | None:
        frame = next(self._frames, None)
        if frame is None:
            return None
        aspect = self._opened.stream.codec_context.sample_aspect_ratio
        return Picture(self._opened.time_of(frame), frame, Fraction(aspect or 1))


class FileSound:
    """Sound of a file: two channels of 48 kHz, best asked for in order."""

    def __init__(self, file: Any) -> None:
        self._opened = _Opened(file, "audio")
        self._rate = int(self._opened.stream.codec_context.sample_rate)
        self._begin(Fraction(0))

    def read(self, start: Any, stop: Any) -> Floats:
        """Seconds of media time → shape (samples, 2); silence where there is none."""
        first, last = (round(Fraction(at) * SAMPLE_RATE) for at in (start, stop))
        low, high = needed(first, last, self._rate, SAMPLE_RATE)
        native = self._native(low, high)
        return resampled(native, low, first, last, self._rate, SAMPLE_RATE)

    def close(self) -> None:
        """Give the decoder back."""
        self._opened.close()

    def _begin(self, time: Fraction) -> None:
        self._opened.seek(time)
        self._frames = self._opened.frames()
        self._pieces: list[tuple[int, Floats]] = []
        self._end: int | None = None
        self._over = False
        self._from = 0  # nothing before it is at hand

    def _native(self, low: int, high: int) -> Floats:
        rate = self._rate
        if max(low, 0) < self._from:
            self._begin(Fraction(0))
        elif self._opened.exact and self._end is not None and low > self._end + _FAR_SOUND * rate:
            self._begin(Fraction(low, rate) - 2)
            self._from = low
        answer = np.zeros((high - low, 2), np.float32)
        while not self._over and (self._end is None or self._end < high):
            self._take(low)
        for start, data in self._pieces:
            first, last = max(low, start), min(high, start + len(data))
            if first < last:
                answer[first - low : last - low] = data[first - start : last - start]
        return answer

    def _take(self, low: int) -> None:
        frame = next(self._frames, None)
        if frame is None:
            self._over = True
            return
        data = mixed(frame, 2)
        start = round(self._opened.time_of(frame) * self._rate)
        # Times are rounded to ticks: what follows within a few milliseconds follows at once.
        if self._end is not None and abs(start - self._end) < self._rate // 50:
            start = self._end
        self._pieces.append((start, data))
        self._end = start + len(data)
        while self._pieces:
            end = self._pieces[0][0] + len(self._pieces[0][1])
            if end >= low - _KEPT_SECONDS * self._rate:
                break
            self._from = end
            self._pieces.pop(0)
