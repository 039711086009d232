"""What a file holds, asked of FFmpeg's libraries: containers only, and no bytes but the file's own.

The libraries guess a format from names, follow playlists to other files and URLs, and read
pictures by number. None of that is wanted of bytes that a stranger sent: the demuxers are listed,
no protocol is allowed, no second file is opened, and no name is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import av
import av.error
from av.container import InputContainer
from av.stream import Disposition

import fragdex
from fragdex.decoding.codec import MOST_PIXELS, is_short_of_memory
from fragdex.errors import TruncatedInput, Unprocessable
from fragdex.transcode.tracks import REPAIRABLE

# Demuxers of containers and of bare audio streams. None of them opens a second file by itself;
# raw video has no times, pictures have no duration, and playlists are no media.
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


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A video or audio stream of a file.

    Attributes:
        index: its place among all streams of the file.
        track_id: its track ID in an ISOBMFF file, else 1 more than its index.
        type: `video` or `audio`.
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


@dataclass(frozen=True, slots=True)
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

    Args:
        file: seekable, at its start.

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
        container = av.open(
            file,
            options={
                "format_whitelist": ",".join(DEMUXERS),
                "protocol_whitelist": "none",
                "max_streams": str(MOST_STREAMS),
            },
            io_open=_refuse,
            metadata_errors="replace",
        )
    except (av.error.FFmpegError, ValueError, UnicodeError) as error:
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
