"""What a file holds, asked of FFmpeg's libraries; what can be copied, and what must be encoded.

Containers only, and no bytes but the file's own. The libraries guess a format from names, follow
playlists to other files and URLs, and read pictures by number. None of that is wanted of bytes that
a stranger sent: the demuxers are listed, no protocol is allowed, no second file is opened, and no
name is given.

Copied is what browsers play from an MP4 through MediaSource (`playable.py`); all else is encoded.
One pass over the packets tells. A copied video must let players start anywhere: every segment
begins at a picture that needs none before it and none of the pictures after it does (SAP type 1
or 2). For AVC that is an IDR picture (ISO/IEC 14496-10, 7.4.1.2.4); what a muxer wrongly marked
sync loses the mark. Where IDR pictures are more than 10 s apart, the track is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from fractions import Fraction
from typing import Any, BinaryIO, Final

import av
import av.error
from av.container import InputContainer
from av.stream import Disposition

import fragdex
from fragdex.decoding.codec import MOST_PIXELS, is_short_of_memory, open_container
from fragdex.errors import TruncatedInput, Unprocessable
from fragdex.indexing.access import Access, CannotTell, SampleBytes, access_of
from fragdex.record import record
from fragdex.transcode.playable import why_not_begun, why_not_played
from fragdex.transcode.tracks import REPAIRABLE

# Demuxers of containers and of bare audio streams. None of them opens a second file by itself;
# raw video has no times, pictures have no duration, and playlists are not media.
DEMUXERS: Final = (
    "mov", "matroska", "avi", "flv", "mpegts", "mpeg", "ogg", "asf", "mxf", "nut", "ivf",
    "mp3", "wav", "w64", "flac", "aac", "aiff", "caf", "au", "amr", "ac3", "eac3", "wv", "tta",
)  # fmt: skip
MOST_STREAMS: Final = 256
LONGEST_SECONDS: Final = 48 * 3600
"""Times beyond are those of a broken or hostile file; a day of surveillance fits."""

_PLAYLISTS: Final = (
    b"#EXTM3U", b"ffconcat", b";FFMETADATA", b"<?xml", b"<MPD", b"<smil", b"v=0\r\n", b"v=0\n",
    b"[playlist]", b"[InternetShortcut]", b"file '", b"<SmoothStreamingMedia",
)  # fmt: skip


@record(frozen=True, slots=True)
class StreamInfo:
    """A video or audio stream of a file.

    Attributes:
        index: its place among all streams of the file.
        track_id: its track ID in an ISOBMFF file, else 1 more than its index.
        codec: FFmpeg's name of the codec, whichever decoder reads it: `mp3`, never `mp3float`.
        duration: seconds, or None where the file does not tell.
    """

    index: int
    track_id: int
    type: str
    codec: str
    duration: float | None = None
    width: int | None = None
    height: int | None = None
    rate: float | None = None
    sample_rate: int | None = None
    channels: int | None = None
    language: str | None = None

    def as_json(self) -> dict[str, Any]:
        """What is known, without what is not."""
        names = (name for name in self.__dataclass_fields__ if getattr(self, name) is not None)
        return {name: getattr(self, name) for name in names}


@record(frozen=True, slots=True)
class ProbedFile:
    """A media file: its format by FFmpeg's name, its length in seconds, its streams."""

    format: str
    duration: float | None
    streams: tuple[StreamInfo, ...]


def _refuse(*_args: Any, **_more: Any) -> Any:
    raise PermissionError("a media file may not open another one")


@contextmanager
def opened(file: BinaryIO) -> Iterator[InputContainer]:
    """A media file, open for demuxing.

    Raises:
        Unprocessable: empty, a playlist, or nothing that the libraries know.
    """
    head = file.read(512)
    file.seek(0)
    if not head:
        raise Unprocessable("the file is empty")
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:32].startswith(_PLAYLISTS):
        raise Unprocessable("this is a playlist or a description of media, not a media file")
    try:
        container = open_container(
            file,
            options={
                "format_whitelist": ",".join(DEMUXERS),
                "max_streams": str(MOST_STREAMS),
            },
            io_open=_refuse,
        )
    except av.error.FFmpegError as error:
        if isinstance(error, MemoryError):
            if is_short_of_memory():
                raise
            # FFmpeg has no memory, it says, for one stream more.
            raise Unprocessable(
                f"the file is damaged, or has more than {MOST_STREAMS} streams"
            ) from error
        missing = _without_index(file)
        raise Unprocessable(
            missing or "this is not a media file that can be read",
            more={REPAIRABLE: True} if missing else None,
        ) from error
    with container:
        assert isinstance(container, InputContainer)  # opened for reading
        yield container


def _without_index(file: BinaryIO) -> str | None:
    """What to do with an MP4 that stopped before its moov was written; None: it is no such file."""
    file.seek(0)
    try:
        fragdex.index(file)
    except TruncatedInput as error:
        return f"{error.message}: {error.advice}" if error.advice else None
    except fragdex.FragdexError:
        return None
    return None


def streams_of(container: InputContainer) -> list[Any]:
    """The streams that are processed: video and audio with a known codec; no cover pictures."""
    streams = []
    for stream in container.streams:
        if stream.type not in ("video", "audio") or stream.codec_context is None:
            continue
        if stream.disposition & (Disposition.attached_pic | Disposition.timed_thumbnails):
            continue
        streams.append(stream)
    return streams


def codec_of(stream: Any) -> str:
    """FFmpeg's name of a stream's codec, whichever decoder was chosen for it."""
    return str(stream.codec_context.codec.canonical_name)


def probe(container: InputContainer) -> ProbedFile:
    """What an open file holds.

    Raises:
        Unprocessable: neither video nor audio, or pictures beyond the limit.
    """
    streams = streams_of(container)
    ids = [stream.id for stream in streams]
    own_ids = "mp4" in container.format.name and len({*ids}) == len(ids) and min(ids, default=0) > 0
    infos = []
    for stream in streams:
        context = stream.codec_context
        duration = None
        if stream.duration is not None and stream.time_base:
            duration = float(stream.duration * stream.time_base)
        info: dict[str, Any] = {
            "index": stream.index,
            "track_id": stream.id if own_ids else stream.index + 1,
            "type": stream.type,
            "codec": codec_of(stream),
            "duration": duration,
            "language": stream.language if stream.language not in (None, "und") else None,
        }
        if stream.type == "video":
            if context.width * context.height > MOST_PIXELS:
                raise Unprocessable(
                    "its pictures are too large", more={"limit": MOST_PIXELS, "unit": "pixels"}
                )
            rate = stream.average_rate
            info |= {"width": context.width, "height": context.height}
            info |= {"rate": float(rate) if rate else None}
        else:
            info |= {"sample_rate": context.sample_rate, "channels": context.channels}
        infos.append(StreamInfo(**info))
    if not infos:
        raise Unprocessable("the file holds neither video nor audio")
    duration = container.duration / av.time_base if container.duration else None
    return ProbedFile(container.format.name, duration, tuple(infos))


LONGEST_GAP: Final = 10.0
"""Seconds between access points above which a video is encoded again."""


@record(slots=True)
class StreamSurvey:
    """What the packets of a stream told.

    Attributes:
        packets, bytes: how many, and of what size.
        start, end: presentation times, seconds: of the first packet, and where the last one ends.
        reasons: why it cannot be copied; empty where it can.
    """

    packets: int = 0
    bytes: int = 0
    start: float | None = None
    end: float | None = None
    reasons: list[str] = field(default_factory=list)

    @property
    def copied(self) -> bool:
        """Whether its packets go into the track as they are."""
        return not self.reasons


def random_access(stream: Any) -> Callable[[Any], bool]:
    """A function that tells whether a packet is an access point that needs nothing before it."""
    if codec_of(stream) != "h264":
        return lambda packet: bool(packet.is_keyframe)
    extra = stream.codec_context.extradata
    # avcC (ISO/IEC 14496-15, 5.3.3): version 1, then lengthSizeMinusOne in the fifth byte
    size = (extra[4] & 3) + 1 if extra and len(extra) > 4 and extra[0] == 1 else 0

    def is_idr(packet: Any) -> bool:
        if not packet.is_keyframe:
            return False
        try:
            access = access_of(SampleBytes.of(memoryview(packet)), "avc1", None, size)
        except CannotTell:
            return False
        return access is Access.CLOSED

    return is_idr


def packets(container: InputContainer, streams: list[Any]) -> Iterator[Any]:
    """Packets of the streams to the end of the file, or to where its damage makes it end."""
    demuxed = container.demux(*streams)
    while True:
        try:
            packet = next(demuxed)
        except (StopIteration, av.error.EOFError, av.error.InvalidDataError):
            return
        if packet.size:
            yield packet


def survey(
    container: InputContainer, progress: Callable[[int], None] = lambda _: None
) -> dict[int, StreamSurvey]:
    """Read every packet once; returns what was found by stream index.

    Args:
        progress: called with the bytes of each packet; may raise to end it all.
    """
    streams = streams_of(container)
    surveys = {stream.index: StreamSurvey(reasons=_why_not(stream)) for stream in streams}
    looks = {stream.index: _Look(stream, surveys[stream.index]) for stream in streams}
    for packet in packets(container, streams):
        looks[packet.stream_index].see(packet)
        progress(packet.size)
    if not any(one.packets for one in surveys.values()):
        raise Unprocessable("the file holds no media data")
    for look in looks.values():
        look.end()
    return surveys


def _why_not(stream: Any) -> list[str]:
    return why_not_played(codec_of(stream), stream.codec_context)


class _Look:
    """Looks at the packets of one stream."""

    def __init__(self, stream: Any, result: StreamSurvey) -> None:
        self.result = result
        self.stream = stream
        self.video = stream.type == "video"
        self.base: Fraction = stream.time_base or Fraction(1, 1000)
        self.access = random_access(stream)
        self.last_dts: int | None = None
        self.last_access: float | None = None

    def see(self, packet: Any) -> None:
        result = self.result
        if packet.has_sidedata("encryption_info") or packet.has_sidedata("encryption_init_info"):
            raise Unprocessable("the file is encrypted")
        if packet.has_sidedata("new_extradata"):
            self.refuse("its parameters change on the way")
        if not result.packets:
            for reason in why_not_begun(codec_of(self.stream), self.stream.codec_context, packet):
                self.refuse(reason)
        result.packets += 1
        result.bytes += packet.size
        if packet.pts is None or packet.dts is None:
            self.refuse("its packets have no times")
            if packet.pts is None:
                return
        else:
            if packet.pts < packet.dts or (
                self.last_dts is not None and packet.dts <= self.last_dts
            ):
                self.refuse("its times are out of order")
            self.last_dts = packet.dts
        time = float(packet.pts * self.base)
        if abs(time) > LONGEST_SECONDS:
            raise Unprocessable(f"its times reach beyond {LONGEST_SECONDS // 3600} hours")
        end = time + float((packet.duration or 0) * self.base)
        result.start = time if result.start is None else min(result.start, time)
        result.end = end if result.end is None else max(result.end, end)
        if self.video and not result.reasons:
            self.look_for_access(packet, time)

    def look_for_access(self, packet: Any, time: float) -> None:
        if self.access(packet):
            if self.last_access is not None and time - self.last_access > LONGEST_GAP:
                self.refuse("its access points are too far apart")
            self.last_access = time
        elif self.last_access is None and packet.is_keyframe:
            self.refuse("it begins with a picture that needs others before it")

    def end(self) -> None:
        if not self.video or not self.result.packets or self.result.reasons:
            return
        if self.last_access is None:
            self.refuse("it has no access point")
        elif self.result.end is not None and self.result.end - self.last_access > LONGEST_GAP:
            self.refuse("its access points are too far apart")

    def refuse(self, reason: str) -> None:
        if reason not in self.result.reasons:
            self.result.reasons.append(reason)
