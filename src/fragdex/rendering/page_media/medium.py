"""One file that a page plays: what is known of it, its pictures, its sound.

Files of ISO/IEC 14496-12 are read through this project's index, others by FFmpeg's demuxers.
"""

from __future__ import annotations

import io
import math
from contextlib import ExitStack
from fractions import Fraction
from typing import Final
from urllib.parse import urlsplit

import numpy as np

import fragdex
from fragdex.byterange import ByteRange
from fragdex.decoding.audio import AudioReader
from fragdex.decoding.pictures import PictureReader, shown_size
from fragdex.errors import FragdexError, UndecodableMedia
from fragdex.fragments.table import NULL
from fragdex.rendering.page_media.files import FilePictures, FileSound, look
from fragdex.rendering.page_media.opening import OpenMedia
from fragdex.rendering.page_media.strips import SAMPLE_RATE
from fragdex.seeking.model import FragmentIndex, TrackIndex
from fragdex.sources import Source
from fragdex.transcode.probe import LONGEST_SECONDS

__all__ = ["Medium", "Pictures", "Sound"]

_BOXES: Final = frozenset(
    b"ftyp styp moov moof mdat free skip wide sidx emsg prft pnot uuid meta".split()
)


Pictures = PictureReader | FilePictures
"""Pictures of one file, best asked for in order."""
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
        self._index: FragmentIndex | None = None

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
        pictures = next((t for t in index.tracks if t.kind == "video" and len(t.sync)), None)
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


def _lacks_times(track: TrackIndex) -> bool:
    """Whether only the file's own index (sidx, mfra) was read, which tells no decode times."""
    return bool((track.fragments.dts == NULL).any())


def _end(index: FragmentIndex, track: TrackIndex) -> float | None:
    """When a track ends, as its edit list has it: an encoder's padding is not played."""
    movie = index.periods[track.period].movie
    edits = track.info.edits
    if edits and not movie.fragmented and movie.timescale and edits[-1].duration:
        return float(Fraction(sum(edit.duration for edit in edits), movie.timescale))
    return None if track.end is None else float(track.end)


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
