"""Writes one track as a file of its own: fragments of about 2 s, each beginning at an access point.

The fragments carry the times of the source themselves (tfdt); no empty edit moves a track that
begins late, because players ignore those. The edit list is one entry that takes off what stands
before the first presentation time: the composition offset of reordered pictures, a decoder's
priming. That one players know.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Final

import av
import av.error
import numpy as np
from av.audio.fifo import AudioFifo
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.bitstream import BitStreamFilterContext
from av.video.frame import PictureType, VideoFrame
from av.video.reformatter import VideoReformatter

import fragdex
from fragdex import ByteRange, open_source
from fragdex.boxes import build, parse, parse_box
from fragdex.decoding.pictures import orientation_of
from fragdex.errors import Unprocessable
from fragdex.muxing.embed import walked
from fragdex.muxing.movie import with_next_id
from fragdex.transcode.encoders import repeatable
from fragdex.transcode.probe import codec_of, random_access

SCRUB_WIDTH: Final = 320
SCRUB_RATE: Final = 10
"""Most frames a second of a scrub track: enough to follow a finger."""

# How an upright picture is stored, by its orientation: degrees counterclockwise.
_DEGREES: Final = {
    (False, False, False): 0, (True, False, True): 90,
    (False, True, True): 180, (True, True, False): 270,
}  # fmt: skip
_AUDIO_RATES: Final = (8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000)
# Larger holes in audio are holes; smaller ones are rounding.
_HOLE_SECONDS: Final = 0.05
_MOST_SILENCE: Final = 1 << 16
_SILENCE_SECONDS: Final = 60
"""Holes are filled with silence, over which every player plays on: so much, and as much again as
there is sound. Holes beyond stay holes, so that encoding grows with the bytes of a file and not
with the time that it claims."""

SEGMENT_SECONDS: Final = 2
MOST_HOLE_SECONDS: Final = 3600
"""Longer holes are left out between fragments; so long a sample may last."""
_LEFT: Final = Fraction(SEGMENT_SECONDS)
# Ticks.
_ROUNDING: Final = 2
# Half of what a duration can be: another sample's own length fits next to it.
_MOST_TICKS: Final = 1 << 30


class Copier:
    """A track whose packets stay as they are.

    Attributes:
        places: where the source has each of them, as its demuxer says.
    """

    def __init__(self, path: Path, track_id: int, source: Any) -> None:
        self.file = TrackFile(path, track_id)
        stream = self.file.container.add_stream_from_template(source, opaque=True)
        stream.id = track_id
        stream.time_base = source.time_base
        if source.language:
            stream.metadata["language"] = source.language
        self.file.stream = stream
        self.video = source.type == "video"
        self.access = random_access(source)
        self.began = False
        self.places = array("q")
        self.filter: BitStreamFilterContext | None = None
        if codec_of(source) == "aac" and not source.codec_context.extradata:
            # ADTS headers stand in MPEG-TS and bare streams; in MP4 the sample entry says it once.
            self.filter = BitStreamFilterContext("aac_adtstoasc", source)

    def packet(self, packet: Any) -> None:
        """Take the next packet of the source."""
        if self.video:
            access = self.access(packet)
            if not (access or self.began):
                return  # a recording that begins inside of a group of pictures
            packet.is_keyframe = access
        self.began = True
        place = -1 if packet.pos is None else packet.pos
        for ready in (packet,) if self.filter is None else self.filter.filter(packet):
            self.places.append(place)
            self.file.mux(ready)

    def close(self) -> int:
        """Complete the file; returns how many packets are in it."""
        self.file.close()
        return self.file.packets


class VideoEncoder:
    """A track of H.264, 8 bits, 4:2:0, from decoded frames."""

    preset: ClassVar[dict[str, str]] = {
        "preset": "veryfast",
        "crf": "21",
        # Memory is that of the frames x264 looks ahead: few of them.
        "x264-params": "rc-lookahead=10:sync-lookahead=0:scenecut=0:bframes=2:threads=2",
        "forced-idr": "1",
    }
    key_seconds: float = SEGMENT_SECONDS

    def __init__(self, path: Path, track_id: int, source: Any) -> None:
        # Decode times of reordered pictures are early: a fragment would look too short to be cut.
        self.file = TrackFile(path, track_id, every_key=self.key_seconds >= SEGMENT_SECONDS)
        self.source = source
        self.context: Any = None
        # one for all frames: one that a frame makes for itself costs more to set up than to use
        self.reformatter = VideoReformatter()
        self.size = (0, 0)
        self.last: Fraction | None = None
        self.next_key = Fraction(0)
        self.left_out = Fraction(0)
        # of a hole: after more, an earlier decode time would be that of a picture after it
        self.left = Fraction(1, 25) if self.file.every_key else Fraction(SEGMENT_SECONDS)

    def wanted_size(self, width: int, height: int) -> tuple[int, int]:
        """Pixels of the track; both even, as 4:2:0 needs them."""
        return max(2, width & ~1), max(2, height & ~1)

    def _open(self, frame: Any) -> None:
        rate = self.source.average_rate or Fraction(25)
        stream: Any = self.file.container.add_stream(
            "libx264",
            rate=min(max(rate, Fraction(1)), Fraction(120)),
            options=repeatable(self.preset),
        )
        self.size = self.wanted_size(frame.width, frame.height)
        stream.width, stream.height = self.size
        stream.pix_fmt = "yuv420p"
        context = stream.codec_context
        context.time_base = stream.time_base = Fraction(1, 90_000)
        context.gop_size = 100_000  # where key frames stand is said frame by frame
        aspect = self.source.sample_aspect_ratio
        if aspect and aspect > 0:
            context.sample_aspect_ratio = aspect
        transposed, mirrored, flipped = orientation_of(frame)
        # Of a track only a turn can be said: where pictures are mirrored, too, their pixels are.
        self.mirrored = transposed ^ mirrored ^ flipped
        if self.mirrored:
            mirrored, flipped = mirrored ^ (not transposed), flipped ^ transposed
        if degrees := _DEGREES[transposed, mirrored, flipped]:
            stream.set_display_rotation(degrees)
        stream.id = self.file.track_id
        self.file.stream, self.context = stream, context

    def frame(self, frame: Any) -> None:
        """Take the next decoded frame; what is before 0 is not shown."""
        if frame.pts is None:
            return
        own = frame.pts, frame.time_base
        time = frame.pts * Fraction(frame.time_base) - self.left_out
        if time < 0 or (self.last is not None and time <= self.last) or not self._due(time):
            return
        if self.context is None:
            self._open(frame)
            self.next_key = time
        hole = Fraction(0) if self.last is None else hole_after(self.last, time, self.left)
        if hole:
            self.left_out += hole
            time -= hole
            self.file.leap(time, self.left_out)
        self.last = time
        width, height = self.size
        picture = self.reformatter.reformat(frame, width, height, "yuv420p", threads=1)
        if self.mirrored:
            picture = _mirrored(picture)
        picture.pts, picture.time_base = round(time * 90_000), Fraction(1, 90_000)
        key = time >= self.next_key or bool(hole)
        picture.pict_type = PictureType.I if key else PictureType.NONE
        if key:
            self.next_key = time + Fraction(self.key_seconds)
        packets = self.context.encode(picture)
        frame.pts, frame.time_base = own  # a picture that needed no change is the frame itself
        for packet in packets:
            self.file.mux(packet)

    def _due(self, time: Fraction) -> bool:
        return True

    def close(self) -> int:
        """Complete the file; returns how many packets are in it."""
        if self.context is not None:
            for packet in self._flushed():
                self.file.mux(packet)
        if self.file.packets:
            self.file.close()
        return self.file.packets

    def _flushed(self) -> list[Any]:
        """The packets that the encoder still holds."""
        return list(self.context.encode(None))


def _mirrored(picture: Any) -> Any:
    """A picture of yuv420p with its left and right changed."""
    whole = picture.to_ndarray()
    size = whole.shape[1]
    luma, chroma = whole[: picture.height], whole[picture.height :].reshape(-1, size // 2)
    turned = np.concatenate([luma[:, ::-1], chroma[:, ::-1].reshape(-1, size)])
    return VideoFrame.from_ndarray(np.ascontiguousarray(turned), format="yuv420p")


class Scrubber(VideoEncoder):
    """The scrub track: small pictures, few of them, a key frame each second.

    Args:
        end: where the last picture of the video ends, seconds. The last one here lasts as long, so
            that every time of the video has a picture.
    """

    preset: ClassVar[dict[str, str]] = VideoEncoder.preset | {
        "crf": "30",
        "x264-params": "rc-lookahead=5:sync-lookahead=0:scenecut=0:bframes=0:threads=1",
    }
    key_seconds = 1.0

    def __init__(self, path: Path, track_id: int, source: Any, end: float) -> None:
        super().__init__(path, track_id, source)
        self.end = round(end * 90_000)

    def _flushed(self) -> list[Any]:
        packets = super()._flushed()
        # the encoder looks ahead, so its last picture comes out here
        last = packets[-1]
        last.duration = max(self.end - round(self.left_out * 90_000) - last.pts, 1)
        return packets

    def wanted_size(self, width: int, height: int) -> tuple[int, int]:
        """At most 320 pixels wide, in the shape of the source."""
        wide = min(width, SCRUB_WIDTH)
        return super().wanted_size(wide, round(height * wide / width))

    def _due(self, time: Fraction) -> bool:
        # A little early is in time: source times are rounded.
        least = Fraction(9, 10) / SCRUB_RATE
        return self.last is None or time >= self.last + least or time >= self.next_key


class AudioEncoder:
    """A track of AAC from decoded frames; most holes in time are filled with silence."""

    def __init__(self, path: Path, track_id: int, source: Any, *, lossless: bool = False) -> None:
        self.codec, self.format = ("flac", "s16") if lossless else ("aac", "fltp")
        context = source.codec_context
        rate = min(_AUDIO_RATES, key=lambda r: abs(r - min(context.sample_rate or 48_000, 48_000)))
        channels = context.channels
        self.layout = {1: "mono", 6: "5.1"}.get(channels, "stereo")
        self.rate = rate
        self.file = TrackFile(path, track_id)
        stream: Any = self.file.container.add_stream(self.codec, rate=rate, layout=self.layout)
        stream.id = track_id
        if not lossless:
            stream.codec_context.bit_rate = 64_000 * {"mono": 1, "5.1": 6}.get(self.layout, 2)
        if source.language:
            stream.metadata["language"] = source.language
        self.file.stream = stream
        self.context = stream.codec_context
        self.resampler: AudioResampler | None = None
        self.form: tuple[Any, ...] = ()  # of the frames that the resampler was made for
        self.fifo = AudioFifo()
        self.expected: int | None = None  # samples: where what comes next should begin
        self.written = 0  # samples: where the next encoded frame begins
        self.silence = _SILENCE_SECONDS * rate  # samples that may be filled

    def frame(self, frame: Any) -> None:
        """Take the next decoded frame."""
        if frame.pts is not None:
            at = round(frame.pts * Fraction(frame.time_base) * self.rate)
            if self.expected is None:
                self.expected = self.written = max(at, 0)
            hole = at - self.expected
            if hole > _HOLE_SECONDS * self.rate:
                self._fill(hole)
        elif self.expected is None:
            self.expected = 0
        for piece in self._resampled(frame):
            self.silence += piece.samples
            self._put(piece)

    def _resampled(self, frame: Any) -> Iterator[Any]:
        """A frame in the form of the track."""
        form = (frame.format.name, frame.layout.name, frame.sample_rate)
        # A resampler takes frames of one form alone, and does not always refuse others.
        if form != self.form:
            yield from self._rest()
            self.form = form
            self.resampler = AudioResampler(format=self.format, layout=self.layout, rate=self.rate)
        if self.resampler is not None:
            yield from self.resampler.resample(frame)

    def _rest(self) -> Iterator[Any]:
        """What the resampler still holds; it is of no use afterwards."""
        resampler, self.resampler = self.resampler, None
        if resampler is not None:
            yield from resampler.resample(None)

    def _fill(self, hole: int) -> None:
        """Fill a hole with silence, or as little of it as makes the last frame whole."""
        if hole <= self.silence:
            self.silence -= hole
            self._silence(hole)
            return
        rest = -self.fifo.samples % (self.context.frame_size or 1024)
        self._silence(min(rest, hole))
        if hole > rest:
            self.expected = (self.expected or 0) + hole - rest
            self.written += hole - rest

    def _silence(self, samples: int) -> None:
        while samples > 0:
            count = min(samples, _MOST_SILENCE)
            quiet = AudioFrame(format=self.format, layout=self.layout, samples=count)
            quiet.sample_rate = self.rate
            for plane in quiet.planes:
                plane.update(bytes(plane.buffer_size))
            self._put(quiet)
            samples -= count

    def _put(self, piece: Any) -> None:
        if self.expected is None:
            self.expected = 0
        self.expected += piece.samples
        piece.pts, piece.time_base = None, Fraction(1, self.rate)
        self.fifo.write(piece)
        size = self.context.frame_size or 1024
        for block in iter(lambda: self.fifo.read(size), None):
            self._encode(block)

    def _encode(self, block: Any) -> None:
        block.pts, block.time_base = self.written, Fraction(1, self.rate)
        self.written += block.samples
        for packet in self.context.encode(block):
            self.file.mux(packet)

    def close(self) -> int:
        """Complete the file; returns how many packets are in it."""
        if self.expected is not None:
            for piece in self._rest():
                self._put(piece)
            rest = self.fifo.read(0, True)
            if rest is not None and rest.samples:
                self._encode(rest)
            for packet in self.context.encode(None):
                self.file.mux(packet)
        if self.file.packets:
            self.file.close()
        return self.file.packets


def frames(stream: Any, packet: Any) -> Iterator[Any]:
    """Decoded frames of a packet, of None at the end; what is damaged is left out."""
    with contextlib.suppress(av.error.InvalidDataError, av.error.EOFError):
        for frame in stream.codec_context.decode(packet):
            if frame.time_base is None:  # of those that come out at the end
                frame.time_base = stream.time_base
            yield frame


def hole_after(end: Fraction, time: Fraction, left: Fraction = _LEFT) -> Fraction:
    """Seconds of a hole that have to be left out; 0 where a sample can last over it.

    Args:
        end, time: where what is before ends, and where what follows begins, seconds.
        left: seconds of the hole that stay: where no key frame does it, so many begin a fragment.
    """
    hole = time - end
    return hole - left if hole > MOST_HOLE_SECONDS else Fraction(0)


class TrackFile:
    """A fragmented file of one track, opened when its first packet is there.

    Args:
        every_key: whether each key frame begins a fragment, however near the last one is.
    """

    def __init__(self, path: Path, track_id: int, *, every_key: bool = False) -> None:
        self.path = path
        self.every_key = every_key
        self.track_id = track_id
        self.container = av.open(
            str(path), "w", format="mp4", options={"use_stream_ids_as_track_ids": "1"}
        )
        self.stream: Any = None
        self.packets = 0
        self._end: Fraction | None = None
        self._left_out = Fraction(0)
        # Time as the muxer sees it, and what has been left out before it, seconds.
        self._leaps: list[tuple[Fraction, Fraction]] = []

    def leap(self, time: Fraction, left_out: Fraction) -> None:
        """Say that what is shown from a time on, as the muxer sees it, is so much later."""
        self._leaps.append((time, left_out))

    def mux(self, packet: Any) -> None:
        """Take the next packet, in decode order; long holes of sound are left out here."""
        if not self.packets:
            self._begin(packet)
        self.packets += 1
        if self.stream.type == "audio":
            self._close_up(packet)
        base = Fraction(packet.time_base or self.stream.time_base)
        most = min(Fraction(MOST_HOLE_SECONDS), _MOST_TICKS * Fraction(self.stream.time_base))
        if (packet.duration or 0) * base > most:
            packet.duration = int(most / base)
        packet.stream = self.stream
        self.container.mux_one(packet)

    def close(self) -> None:
        """Complete the file."""
        self.container.close()
        _set_next_id(self.path)
        if self._leaps:
            _set_times(self.path, self._leaps)

    def _begin(self, packet: Any) -> None:
        # delay_moov: the header is written with the first fragment, when parameters that come
        # with the first packet and the edit list are known.
        flags = ["delay_moov", "default_base_moof", "skip_trailer"]
        options = self.container.options
        duration = str(SEGMENT_SECONDS * 1_000_000)
        if self.stream.type == "video":
            flags.append("frag_keyframe")
            if not self.every_key:
                options["min_frag_duration"] = duration
        else:
            options["frag_duration"] = duration
        if packet.pts >= 0:
            flags.append("frag_discont")
        options["movflags"] = "+".join(flags)
        options["avoid_negative_ts"] = "disabled"
        self.container.start_encoding()  # which decides the time base

    def _close_up(self, packet: Any) -> None:
        base = Fraction(packet.time_base or self.stream.time_base)
        time = packet.dts * base
        if self._end is not None:
            hole = hole_after(self._end, time)
            if hole:
                self._left_out += int(hole / base) * base
                self.leap(time - self._left_out, self._left_out)
        # how long a sample claims to last says nothing of how long its sound is
        self._end = time + min((packet.duration or 0) * base, _LEFT)
        ticks = int(self._left_out / base)
        packet.pts, packet.dts = packet.pts - ticks, packet.dts - ticks


def _set_next_id(path: Path) -> None:
    """Set next_track_ID above the track_ID (8.2.2): the muxer counts its streams."""
    with open_source(path) as source, path.open("r+b") as file:
        size = source.size or 0
        place = next((part for code, part in walked(source.read, 0, size) if code == "moov"), None)
        if place is None:
            return  # nothing was written
        moov = parse_box(source.read(place))
        mvhd, numbered = moov.find("mvhd"), with_next_id(moov).find("mvhd")
        if mvhd is not None and numbered is not None and numbered is not mvhd:
            file.seek(place.start + mvhd.offset)
            file.write(build(numbered))


def _set_times(path: Path, leaps: list[tuple[Fraction, Fraction]]) -> None:
    """Set the decode times of fragments after what was left out (ISO/IEC 14496-12, 8.8.12)."""
    with open_source(path) as source, path.open("r+b") as file:
        (track,) = fragdex.index(source, exact=True).tracks
        table, left = track.fragments, list(leaps)
        later = 0
        for moof, first in zip(table.moof_offset.tolist(), table.cts_min.tolist(), strict=True):
            shown = track.presentation(first).fraction + Fraction(_ROUNDING, track.timescale)
            while left and shown >= left[0][0]:
                later = round(left.pop(0)[1] * track.timescale)
            if later:
                _add(source, file, moof, later)
        if left:
            raise Unprocessable("a hole in the times of the file could not be kept")


def _add(source: Any, file: Any, moof: int, ticks: int) -> None:
    size = int.from_bytes(source.read(ByteRange(moof, moof + 4)), "big")
    (box,) = parse(source.read(ByteRange(moof, moof + size)))
    tfdt = box.find("traf/tfdt")
    assert tfdt is not None  # the muxer's own
    width = 8 if tfdt.fields["version"] else 4
    time = tfdt.fields["baseMediaDecodeTime"] + ticks
    file.seek(moof + tfdt.offset + tfdt.header_size + 4, os.SEEK_SET)
    file.write(time.to_bytes(width, "big"))
