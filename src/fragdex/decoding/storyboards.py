"""Storyboards: small pictures of a whole film on few sheets, as players show them over a timeline.

What is on the sheets is known from the index alone; a sheet is decoded when it is asked for.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from fragdex.decoding.key_frames import KeyFrameReader, nearest_sync
from fragdex.decoding.picture_files import (
    FORMATS,
    LONGEST_SIDE,
    PictureFormat,
    encoded,
    media_type,
    scaled_and_cropped,
)
from fragdex.decoding.storyboard_lists import Layout
from fragdex.decoding.upright import shown_size, upright
from fragdex.decoding.video_track import Picture
from fragdex.errors import InexactIndex, LimitExceeded, UndecodableMedia
from fragdex.seeking.model import FragmentIndex, TrackIndex
from fragdex.seeking.seek import Hit
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.sources import SourceLike

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Sheet", "Storyboard", "storyboard", "storyboard_layout"]

MOST_TILES = 100_000
"""Of one storyboard: a day, one each second."""
MOST_SHEET_PIXELS = 1 << 26
_ORDINARY = Fraction(16, 9)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sprite sheet.

    Attributes:
        number: from 0.
        data: the bytes of the picture.
        times: when the picture on each tile is really shown, in seconds of presentation time;
            None: it could not be decoded, and the tile is black.

    >>> Sheet(0, b"", (Fraction(0), None)).missing
    (1,)
    """

    number: int
    data: bytes
    times: tuple[Fraction | None, ...]

    @property
    def missing(self) -> tuple[int, ...]:
        """Numbers on this sheet of the tiles that could not be decoded."""
        return tuple(n for n, time in enumerate(self.times) if time is None)


class Storyboard(Layout):
    """Small pictures of a film at even distances; see `storyboard`.

    Sheets are decoded one by one, when they are asked for. A context manager; a source that it
    opened is closed with it. For one thread at a time.

    Attributes:
        times: when the key frame of each tile is shown, seconds of presentation time, exact.
        And those of `Layout`.
    """

    def __init__(
        self, reader: KeyFrameReader, hits: list[Hit], quality: int, layout: Layout
    ) -> None:
        super().__init__(**{one.name: getattr(layout, one.name) for one in fields(Layout)})
        self._reader, self._hits, self._quality = reader, hits, quality
        self._last: tuple[int, Any, Fraction] | None = None

    @property
    def times(self) -> tuple[Fraction, ...]:
        """See above."""
        return tuple(hit.time.exact for hit in self._hits)

    def sheets(self) -> Iterator[Sheet]:
        """All sheets in order, each decoded when its turn comes.

        Raises:
            UndecodableMedia: no picture of the first sheet can be decoded.
            And what reading the source raises.
        """
        for number in range(self.sheet_count):
            made = self.sheet(number)
            if not number and all(time is None for time in made.times):
                track = self._reader.track.id
                raise UndecodableMedia(f"the key frames of track {track} cannot be decoded")
            yield made

    def sheet(self, number: int) -> Sheet:
        """One sheet; tiles that cannot be decoded are black.

        Raises: IndexError: there is no such sheet; and what reading the source raises.
        """
        if not 0 <= operator.index(number) < self.sheet_count:
            raise IndexError(f"sheets 0 to {self.sheet_count - 1}, not {number}")
        wide, high = self.width, self.height
        pixels = np.zeros((high * self.rows, wide * self.columns, 3), np.uint8)
        first = number * self.tiles_of_sheet
        times: list[Fraction | None] = []
        for place, hit in enumerate(self._hits[first : first + self.tiles_of_sheet]):
            found = self._tile(hit)
            times.append(found[1] if found else None)
            if found is not None:
                tile = found[0]
                top = place // self.columns * high + (high - tile.shape[0]) // 2
                left = place % self.columns * wide + (wide - tile.shape[1]) // 2
                pixels[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
        return Sheet(number, encoded(pixels, self.format, self._quality), tuple(times))

    def _tile(self, hit: Hit) -> tuple[Any, Fraction] | None:
        """A picture in the size of a tile, or smaller; neighbours with one key frame share it."""
        if self._last is not None and self._last[0] == hit.cts:
            return self._last[1:]
        picture = self._picture(hit)
        if picture is None:
            return None
        size, _ = scaled_and_cropped(shown_size(picture), self.width, self.height, "contain")
        self._last = hit.cts, upright(picture, size)[:, :, :3], picture.time
        return self._last[1:]

    def _picture(self, hit: Hit) -> Picture | None:
        try:
            return self._reader.near(hit.time)
        except UndecodableMedia:
            return None

    def close(self) -> None:
        """Close the source, if it was opened here."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def storyboard(
    index: FragmentIndex,
    source: SourceLike,
    *,
    every: TimeLike = 10,
    width: int = 160,
    columns: int = 10,
    rows: int = 10,
    format: PictureFormat = "jpeg",
    quality: int = 75,
    track: int | None = None,
    init: bytes | None = None,
) -> Storyboard:
    """Small pictures of a whole film on sprite sheets, and the lists that players find them by.

    Tile n stands for the time from `start` + n × `every` on, and shows the key frame nearest to it:
    the bytes of those key frames are read and decoded, and no others. Where key frames are further
    apart, neighbours show the same one. All sheets but a single one are full; what is left over on
    the last one is black.

    Args:
        index: of the file.
        source: the file, in any form that `fragdex.open_source` takes.
        every: seconds from one tile to the next.
        width: pixels of a tile; its height follows from the film.
        columns, rows: tiles on a sheet; fewer if one sheet has room for all.
        format: `jpeg`, `webp`, `avif` or `png`.
        quality: 1 to 100; PNG ignores it.
        track: track_ID; None: the first with pictures.
        init: the initialization segment, for segments that have none.

    Raises:
        TrackNotFound: there is no such track of pictures.
        NoSyncSample: the track has no sync sample.
        UndecodableMedia: it is encrypted, or of an unknown codec.
        InexactIndex: the index does not say when the track ends.
        LimitExceeded: more than 100,000 tiles, or sheets of more than 67 million pixels.
        ValueError: a distance, size, number, format or quality that is none.
        MissingExtra: PyAV or Pillow is not installed (extra `media`).

    >>> import fragdex
    >>> film = "fixtures/frag-cmaf.mp4"
    >>> with fragdex.storyboard(fragdex.index(film), film, every=0.5, width=64) as board:
    ...     board.count, board.sheet_count, (board.columns, board.rows), board.times
    (4, 1, (4, 1), (Fraction(0, 1), Fraction(12, 25), Fraction(24, 25), Fraction(36, 25)))
    """
    media_type(format)
    if not 1 <= operator.index(quality) <= 100:
        raise ValueError(f"quality: 1 to 100, not {quality}")
    reader = KeyFrameReader(index, source, track=track, init=init, widest=width)
    try:
        layout = storyboard_layout(
            reader.track, every=every, width=width, columns=columns, rows=rows, format=format
        )
        moments = (layout.start + n * layout.every for n in range(layout.count))
        hits = [nearest_sync(reader.track, moment) for moment in moments]
    except BaseException:
        reader.close()
        raise
    return Storyboard(reader, hits, quality, layout)


def storyboard_layout(
    track: TrackIndex,
    *,
    every: TimeLike = 10,
    width: int = 160,
    columns: int = 10,
    rows: int = 10,
    format: PictureFormat = "jpeg",
) -> Layout:
    """What is on the sheets of a storyboard, from the index alone.

    Args and errors as of `storyboard`.

    >>> import fragdex
    >>> track = fragdex.index("fixtures/frag-cmaf.mp4").track(1)
    >>> storyboard_layout(track, every=0.5, width=64).sheet_count
    1
    """
    kind = media_type(format)
    step = exact_time(every)
    if not 0 < step < math.inf:
        raise ValueError(f"every: more than 0 seconds, not {every}")
    for name, value in (("width", width), ("columns", columns), ("rows", rows)):
        if not 1 <= operator.index(value) <= LONGEST_SIDE:
            raise ValueError(f"{name}: 1 to {LONGEST_SIDE:,}, not {value}")
    start, stop = _span(track)
    count = max(1, math.ceil((stop - start) / step))
    if count > MOST_TILES:
        raise LimitExceeded(
            "the storyboard has too many tiles", expected=f"at most {MOST_TILES:,}",
            found=f"{count:,}", advice="ask for more seconds between them",
        )  # fmt: skip
    if count <= columns * rows:
        columns = min(columns, count)
        rows = -(-count // columns)
    height = max(1, round(width / _proportion(track)))
    size = width * columns, height * rows
    if max(size) > LONGEST_SIDE or size[0] * size[1] > MOST_SHEET_PIXELS:
        raise LimitExceeded(
            "the sheets would be too large",
            expected=f"at most {MOST_SHEET_PIXELS:,} pixels, {LONGEST_SIDE:,} a side",
            found=f"{size[0]} × {size[1]}", advice="ask for fewer or smaller tiles",
        )  # fmt: skip
    return Layout(
        start=start, stop=stop, every=Fraction(step), count=count, width=width, height=height,
        columns=columns, rows=rows, format=format, media_type=kind, suffix=FORMATS[format],
    )  # fmt: skip


def _span(track: TrackIndex) -> tuple[Fraction, Fraction]:
    """Where the shown pictures begin and end, in seconds."""
    start, stop = track.start, track.end
    if start is None or stop is None:
        raise InexactIndex(
            f"when track {track.id} is shown is not known", advice="build the index with exact=True"
        )
    begin = max(start.exact, Fraction(0)) if stop.exact > 0 else start.exact
    return begin, max(stop.exact, begin)


def _proportion(track: TrackIndex) -> Fraction:
    """Width of the shown picture over its height, as the moov says; 16:9 where it does not."""
    info = track.info
    if not info.width or not info.height:
        return _ORDINARY
    found = Fraction(info.width, info.height)
    if info.pixel_aspect and all(side > 0 for side in info.pixel_aspect):
        found *= Fraction(*info.pixel_aspect)
    found = 1 / found if info.rotation in (90, 270) else found
    return min(max(found, Fraction(1, 100)), Fraction(100))
