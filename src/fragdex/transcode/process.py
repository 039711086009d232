"""A whole file: every stream to a track file of its own, the scrub track, the indexes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import av.error

import fragdex
from fragdex.decoding.codec import is_short_of_memory
from fragdex.errors import FragdexError, Unprocessable
from fragdex.transcode.probe import StreamInfo, StreamSurvey, opened, packets, probe, survey
from fragdex.transcode.track_writers import AudioEncoder, Copier, Scrubber, VideoEncoder, frames
from fragdex.transcode.tracks import COPIED_RANGE, SCRUB_TRACK, TranscodedTrack, copied_ranges

# How much of the whole the first pass is.
_SURVEY_PART: Final = 0.05


def process_file(
    file: BinaryIO,
    folder: Path,
    progress: Callable[[float], None] = lambda _: None,
    *,
    scrub_alone: bool = False,
    sound_alone: bool = False,
    ranges: bool = False,
) -> list[TranscodedTrack]:
    """Make all tracks of a media file.

    Args:
        file: seekable; read twice from its start.
        folder: empty; the tracks are written here.
        progress: called with 0…1, often; may raise to end it all.
        scrub_alone: only the scrub track; none of a file without video.
        sound_alone: only tracks of sound, without loss where they are encoded.
        ranges: also find out where the file has the bytes of copied tracks.

    Raises:
        Unprocessable: not a media file, nothing in it that can be made into a track.
    """
    try:
        return _process(file, folder, progress, scrub_alone, sound_alone, ranges)
    except (av.error.FFmpegError, UnicodeError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise  # the machine's fault
        if isinstance(error, MemoryError) and is_short_of_memory():
            raise
        raise Unprocessable("the file is damaged, or of a kind that cannot be processed") from error


def _process(
    file: BinaryIO,
    folder: Path,
    progress: Callable[[float], None],
    scrub_alone: bool,
    sound_alone: bool,
    ranges: bool,
) -> list[TranscodedTrack]:
    size = file.seek(0, os.SEEK_END) or 1
    file.seek(0)
    done = 0

    def surveyed(packet: int) -> None:
        nonlocal done
        done += packet
        progress(_SURVEY_PART * min(1.0, done / size))

    with opened(file) as container:
        info = probe(container)
        surveys = survey(container, surveyed)
    file.seek(0)
    tracks = _Tracks(folder, info.streams, surveys, scrub_alone, sound_alone)
    whole, done = sum(one.bytes for one in surveys.values()) or 1, 0
    with opened(file) as container:
        streams = [container.streams[stream.index] for stream in info.streams]
        tracks.open(streams)
        for packet in packets(container, streams):
            done += packet.size
            tracks.packet(packet)
            progress(_SURVEY_PART + (0.98 - _SURVEY_PART) * min(1.0, done / whole))
        tracks.flush()
    results = tracks.close(file if ranges else None)
    progress(1.0)
    return results


class _Tracks:
    """The writers of all tracks, fed in one pass."""

    def __init__(
        self,
        folder: Path,
        infos: tuple[StreamInfo, ...],
        surveys: dict[int, StreamSurvey],
        scrub_alone: bool,
        sound_alone: bool,
    ) -> None:
        self.folder = folder
        self.scrub_alone, self.sound_alone = scrub_alone, sound_alone
        self.infos = {info.index: info for info in infos if surveys[info.index].packets}
        self.surveys = surveys
        self.copiers: dict[int, Copier] = {}
        self.encoders: dict[int, list[VideoEncoder | AudioEncoder]] = {}
        self.streams: dict[int, Any] = {}
        self.paths: dict[int, Path] = {}
        # One scrub track, of the first video: it is the file's.
        self.scrubbed = next((i for i, info in self.infos.items() if info.type == "video"), None)
        if scrub_alone:
            self.infos = {i: info for i, info in self.infos.items() if i == self.scrubbed}
        if sound_alone:
            self.infos = {i: info for i, info in self.infos.items() if info.type == "audio"}

    def open(self, streams: list[Any]) -> None:
        for stream in streams:
            info = self.infos.get(stream.index)
            if info is None:
                continue
            self.streams[stream.index] = stream
            path = self.folder / f"track-{info.track_id}.mp4"
            encoders: list[VideoEncoder | AudioEncoder] = []
            if self.scrub_alone:
                pass
            elif self.surveys[stream.index].copied:
                self.copiers[stream.index] = Copier(path, info.track_id, stream)
            elif info.type == "video":
                encoders.append(VideoEncoder(path, info.track_id, stream))
            else:
                encoders.append(
                    AudioEncoder(path, info.track_id, stream, lossless=self.sound_alone)
                )
            if stream.index == self.scrubbed:
                end = self.surveys[stream.index].end or 0.0
                encoders.append(Scrubber(self.folder / "scrub.mp4", 1, stream, end))
            self.encoders[stream.index] = encoders
            if encoders and info.type == "video":
                # Two threads: more would hold a picture each, and take the machine.
                stream.codec_context.thread_count = 2
                stream.codec_context.thread_type = "FRAME"

    def packet(self, packet: Any) -> None:
        index = packet.stream_index
        if index not in self.streams:
            return
        for frame in frames(self.streams[index], packet) if self.encoders[index] else ():
            for encoder in self.encoders[index]:
                encoder.frame(frame)
        if index in self.copiers:
            self.copiers[index].packet(packet)

    def flush(self) -> None:
        """Take what the decoders still hold."""
        for index, encoders in self.encoders.items():
            for frame in frames(self.streams[index], None) if encoders else ():
                for encoder in encoders:
                    encoder.frame(frame)

    def close(self, source: BinaryIO | None) -> list[TranscodedTrack]:
        """Complete the tracks."""
        tracks = []
        for index, info in self.infos.items():
            writers = [*self.encoders[index]]
            copier = self.copiers.get(index)
            if copier is not None and copier.close():
                path, places = copier.file.path, copier.places
                one = self._made(info, info.track_id, info.codec, path, (places, source))
                tracks.append(one)
            for writer in writers:
                if not writer.close():
                    continue
                scrub = isinstance(writer, Scrubber)
                track_id = SCRUB_TRACK if scrub else info.track_id
                codec = "h264" if isinstance(writer, VideoEncoder) else writer.codec
                tracks.append(self._made(info, track_id, codec, writer.file.path))
        nothing = not any(one.track_id != SCRUB_TRACK for one in tracks)
        if nothing and not self.scrub_alone and (self.infos or not self.sound_alone):
            raise Unprocessable("nothing in the file could be decoded")
        return tracks

    def _made(
        self,
        info: StreamInfo,
        track_id: int,
        codec: str,
        path: Path,
        copied: tuple[Sequence[int], BinaryIO | None] = ((), None),
    ) -> TranscodedTrack:
        try:
            index = fragdex.index(path, exact=True, md5=True)
        except FragdexError as error:
            raise Unprocessable(
                "a track of the file could not be made", found=str(error)
            ) from error
        index_path = path.with_suffix(".fidx")
        index.save(index_path)
        (track,) = index.tracks
        reasons = self.surveys[info.index].reasons
        more = {"copied": track_id != SCRUB_TRACK and not reasons, "reasons": reasons}
        ranges_path = ""
        places, source = copied
        if source is not None:
            ranges_path = str(path.with_suffix(".ranges"))
            copied_ranges(track, path, places, source).astype(COPIED_RANGE.base).tofile(ranges_path)
        return TranscodedTrack(
            track_id,
            info.type,
            codec,
            str(path),
            str(index_path),
            path.stat().st_size,
            _duration_ms(track),
            info.as_json() | more,
            ranges_path,
        )


def _duration_ms(track: fragdex.Track) -> int:
    if track.start is None or track.stop is None:
        return 0
    return round(1000 * (float(track.stop) - float(track.start)))
