"""One file that a page plays: what is known of it, its pictures, its sound.

Files of ISO/IEC 14496-12 are read through this project's index, others by FFmpeg's demuxers.
Pictures become what a page can take: a data: URL to show, pixels to read.
"""

from __future__ import annotations

import base64
import contextlib
import io
import math
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

import av
import av.error
import numpy as np

import fragdex
from fragdex.byterange import ByteRange
from fragdex.decoding.audio import AudioReader
from fragdex.decoding.codec import MOST_PIXELS, hold_back
from fragdex.decoding.pictures import PictureReader, matrix_of, orientation_of, shown_size, upright
from fragdex.decoding.sound_stream import Floats, mixed, needed, resampled
from fragdex.decoding.video_track import Picture
from fragdex.errors import FragdexError, UndecodableMedia
from fragdex.fragments.table import NULL
from fragdex.record import record
from fragdex.rendering.page_media.opening import OpenMedia
from fragdex.rendering.page_media.strips import SAMPLE_RATE
from fragdex.seeking.model import Index, Track
from fragdex.seeking.numbering import MOST_REORDERED, reorder_depth
from fragdex.sources import Source
from fragdex.transcode.probe import LONGEST_SECONDS, opened, probe, streams_of

_FAR_SECONDS: Final = 10
"""A picture that lies so far ahead is sought, not decoded towards."""
_FAR_SOUND: Final = 60
"""The same for sound, in files whose seeking is exact."""
_KEPT_SECONDS: Final = 4
"""Of decoded sound after the place that was read last."""
# Times in these begin anywhere; players count from the first.
_COUNTED_FROM_START: Final = ("mpegts", "mpeg", "flv", "ogg", "mp3", "aac")
# Decoders that know opacity.
_CLEAR: Final = {"vp8": "libvpx", "vp9": "libvpx-vp9"}
# Their seeking is exact to a packet; of others the sound is decoded through.
_EXACT: Final = ("matroska", "wav", "w64", "flac", "ogg")


@record(frozen=True, slots=True)
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
        Unprocessable: it is not media file, or too large.
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
    tags = {key.lower(): value for key, value in stream.metadata.items()}
    name = _CLEAR.get(codec.name) if tags.get("alpha_mode") == "1" else None
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
        streams = [s for s in streams_of(self.container) if s.type == kind]
        if not streams:
            self._stack.close()
            raise UndecodableMedia(f"the file has no {kind} stream")
        self.stream = streams[0]
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
        """Its packets; before some are decoded, those after them tell how far to reorder."""
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
    """Sound of a file: two channels of 48 kHz, best requested in order."""

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


JPEG_QUALITY: Final = 95
_FULL_RANGE: Final = 2


def url_of(picture: Picture) -> str:
    """A data: URL of a picture: JPEG, or PNG where it is not opaque."""
    from PIL import Image

    array = upright(picture)
    file = io.BytesIO()
    if array.shape[2] == 4:
        Image.fromarray(array, "RGBA").save(file, "PNG", compress_level=1)
        kind = "png"
    else:
        Image.fromarray(array, "RGB").save(file, "JPEG", quality=JPEG_QUALITY, subsampling="4:2:0")
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def pixels(picture: Picture) -> dict[str, Any]:
    """What a VideoFrame (WebCodecs) is made of: nothing is lost where the format allows it."""
    frame = picture.frame
    plain = frame.format.name in ("yuv420p", "yuvj420p") and not any(orientation_of(frame))
    if plain and shown_size(picture) == (frame.width, frame.height):
        data = frame.to_ndarray().tobytes()
        full = frame.color_range == _FULL_RANGE or frame.format.name == "yuvj420p"
        space = {
            "matrix": matrix_of(frame)[1],
            "primaries": "bt709",
            # As pictures on the page: their levels go to the screen as they are.
            "transfer": "iec61966-2-1",
            "fullRange": full,
        }
        form = {"format": "I420", "colorSpace": space}
        width, height = frame.width, frame.height
    else:
        array = upright(picture)
        height, width = array.shape[:2]
        if array.shape[2] == 3:
            array = np.dstack([array, np.full((height, width), 255, np.uint8)])
        data, form = np.ascontiguousarray(array).tobytes(), {"format": "RGBA"}
    return {
        "pixels": base64.b64encode(data).decode(),
        "codedWidth": width,
        "codedHeight": height,
        **form,
    }


def blank(width: int, height: int) -> str:
    """A data: URL of a picture of this size through which everything is seen."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("1", (width, height)).save(file, "PNG", transparency=0)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


_BOXES: Final = frozenset(
    b"ftyp styp moov moof mdat free skip wide sidx emsg prft pnot uuid meta".split()
)


Pictures = PictureReader | FilePictures
"""Pictures of one file, best requested in order."""
Sound = AudioReader | FileSound
"""Sound of one file: two channels of 48 kHz; silence where there is none."""


class Medium:
    """A file that is played.

    Attributes:
        url: where it is read from.
        duration: seconds, or None where the file does not tell.
        start: seconds of media time before which there is neither picture nor sound.
        size: of its pictures as they are shown, or None where it has none.
        has_sound: whether it has any.
        tick: seconds between two times that the pictures can have.

    Raises:
        UndecodableMedia, SourceError, Blocked and others: it cannot be played.
    """

    def __init__(self, url: str, open_media: OpenMedia) -> None:
        self.url = url
        self._close = ExitStack()
        try:
            shown, heard = _both(url)
            self._pictures = pictures = self._half(shown, open_media)
            self._sound = sound = pictures if heard == shown else self._half(heard, open_media)
            self.size = pictures.size
            self.has_sound = sound.has_sound
            self.tick = pictures.tick
            known = [half.duration for half in (pictures, sound) if half.duration]
            self.duration = max(known) if known else None
            self.start = min(pictures.start, sound.start)
            if self.duration is not None and self.start >= self.duration:
                self.start = 0.0
            if self.size is None and not self.has_sound:
                raise UndecodableMedia("the file has neither pictures nor sound that can be played")
        except BaseException:
            self.close()
            raise

    def _half(self, url: str, open_media: OpenMedia) -> _Half:
        half = _Half(open_media(url))
        self._close.callback(half.close)
        half.look()
        return half

    def pictures(self) -> Pictures:
        """Its pictures; each element that shows them has its own decoder."""
        return self._pictures.pictures()

    def sound(self) -> Sound:
        """Its sound; each that listens has its own decoder."""
        return self._sound.sound()

    def close(self) -> None:
        """Close what was opened."""
        self._close.close()


def _both(url: str) -> tuple[str, str]:
    """Where pictures and sound are read from: some files of this service are one file a track."""
    path = urlsplit(url).path
    if path.startswith(("/api/v1/files/", "/api/v1/isobmff_files/")) and "?" not in url:
        return f"{url}?type=video", f"{url}?type=audio"
    return url, url


class _Half:
    """A file as far as its pictures or its sound are wanted."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.size: tuple[int, int] | None = None
        self.tick = Fraction(0)
        self.duration: float | None = None
        self.start = 0.0
        self.has_sound = False
        self._index: Index | None = None

    def look(self) -> None:
        """Find out what is in it."""
        head = self.source.read_up_to(ByteRange(0, 12))
        if head[4:8] in _BOXES:
            self._of_index()
        else:
            self._of_file()
        if self.duration is not None and not 0 < self.duration < LONGEST_SECONDS:
            self.duration = None

    def _of_index(self) -> None:
        index = fragdex.index(self.source)
        if any(track.kind == "audio" and _lacks_times(track) for track in index.tracks):
            index = fragdex.index(self.source, exact=True)
        self._index = index
        ends, starts = [], []
        pictures = next(
            (t for t in index.tracks if t.kind == "video" and len(t.sync_samples)), None
        )
        if pictures is not None:
            with PictureReader(index, self.source, track=pictures.id) as reader:
                self.size = shown_size(reader.at(pictures.start or 0))
            self.tick = Fraction(1, pictures.timescale)
            ends.append(_end(index, pictures))
            starts.append(pictures.start)
        for track in index.tracks:
            if track.kind == "audio" and track.timescale and len(track.fragments):
                try:
                    with AudioReader(index, self.source, track=track.id):
                        self.has_sound = True
                except FragdexError:
                    continue
                ends.append(_end(index, track))
                starts.append(track.start)
                break
        known = [end for end in ends if end]
        self.duration = max(known) if known else None
        self.start = max(0.0, float(min((start or 0 for start in starts), default=0)))

    def _of_file(self) -> None:
        facts = look(_File(self.source))
        self.size, self.tick, self.duration = facts.size, facts.tick, facts.duration
        self.has_sound, self.start = facts.has_sound, facts.start

    def pictures(self) -> Pictures:
        if self._index is not None:
            return PictureReader(self._index, self.source)
        return FilePictures(_File(self.source))

    def sound(self) -> Sound:
        if self._index is not None:
            return AudioReader(
                self._index, self.source, rate=SAMPLE_RATE, channels=2, dtype=np.float32
            )
        return FileSound(_File(self.source))

    def close(self) -> None:
        self.source.close()


def _lacks_times(track: Track) -> bool:
    """Whether only the file's own index (sidx, mfra) was read, which tells no decode times."""
    return bool((track.fragments.dts == NULL).any())


def _end(index: Index, track: Track) -> float | None:
    """When a track ends, as its edit list has it: an encoder's padding is not played."""
    movie = index.periods[track.period].movie
    edits = track.info.edits
    if edits and not movie.fragmented and movie.timescale and edits[-1].duration:
        return float(Fraction(sum(edit.duration for edit in edits), movie.timescale))
    return None if track.stop is None else float(track.stop)


class _File(io.RawIOBase):
    """A source as a file, for libraries that want one."""

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        size = self._source.size
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence, size or 0)
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        stop = self._at + size if size >= 0 else (self._source.size or math.inf)
        data = self._source.read_up_to(ByteRange(self._at, int(min(stop, 1 << 62))))
        self._at += len(data)
        return data
