"""Storyboards: small pictures of a whole video on few sheets, as players show them over a timeline.

What is on the sheets is known from the index alone; a sheet is decoded when it is requested. Lists
of them are WebVTT, an HLS image playlist, or a DASH AdaptationSet.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fragdex.decoding.picture_files import (
    FORMATS,
    LONGEST_SIDE,
    PictureFormat,
    encoded,
    media_type,
    scaled_and_cropped,
)
from fragdex.decoding.pictures import KeyFrameReader, nearest_sync, shown_size, upright
from fragdex.errors import InexactIndex, LimitExceeded, UndecodableMedia
from fragdex.muxing.captions import timing
from fragdex.packaging.m3u8 import Stretch, address, media_playlist, target_duration
from fragdex.packaging.mpd import AdaptationSet, Representation, Segments
from fragdex.record import record
from fragdex.seeking.model import Index, Track
from fragdex.seeking.seek import Hit
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.sources import SourceLike

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "Cue",
    "Sheet",
    "SheetLayout",
    "Storyboard",
    "storyboard",
    "storyboard_layout",
]


_BITS_PER_PIXEL = 2
"""What small JPEG pictures take at most, nearly always; said where no true figure is given."""
_BITS_PER_SHEET = 8 << 10
"""What its headers take."""
_TILES = "http://dashif.org/guidelines/thumbnail_tile"


@record(frozen=True, slots=True)
class Cue:
    """Where the picture of a stretch of time is.

    Attributes:
        start, stop: seconds of presentation time (exclusive), exact.
        sheet: number of the sheet, from 0.
        x, y, width, height: pixels on it.
    """

    start: Fraction
    stop: Fraction
    sheet: int
    x: int
    y: int
    width: int
    height: int


@record(slots=True, kw_only=True)
class SheetLayout:
    r"""What stands where on the sheets of a storyboard, and the lists that say so.

    Attributes:
        start, stop: the time that the tiles stand for, seconds of presentation time, exact.
        every: seconds of a tile; the last one may stand for fewer.
        count: tiles.
        width, height: pixels of a tile.
        columns, rows: tiles on a sheet.
        format, media_type, suffix: of the sheets: `jpeg`, `image/jpeg`, `.jpg`.

    `name` in the methods is the address of a sheet, with `{}` for its number; None: `sheet-{}` and
    the suffix.

    >>> board = SheetLayout(
    ...     start=Fraction(0),
    ...     stop=Fraction(25),
    ...     every=Fraction(10),
    ...     count=3,
    ...     width=160,
    ...     height=90,
    ...     columns=2,
    ...     rows=1,
    ...     format="jpeg",
    ...     media_type="image/jpeg",
    ...     suffix=".jpg",
    ... )
    >>> print(board.webvtt().split("\n\n")[2])
    00:00:10.000 --> 00:00:20.000
    sheet-0.jpg#xywh=160,0,160,90
    """

    start: Fraction
    stop: Fraction
    every: Fraction
    count: int
    width: int
    height: int
    columns: int
    rows: int
    format: str
    media_type: str
    suffix: str

    @property
    def tiles_of_sheet(self) -> int:
        """Tiles that a sheet has room for."""
        return self.columns * self.rows

    @property
    def sheet_count(self) -> int:
        """How many sheets there are."""
        return -(-self.count // self.tiles_of_sheet)

    @property
    def cues(self) -> Iterator[Cue]:
        """A cue for each tile, in order."""
        for number in range(self.count):
            sheet, place = divmod(number, self.tiles_of_sheet)
            row, column = divmod(place, self.columns)
            begin = self.start + number * self.every
            stop = min(begin + self.every, self.stop) if number == self.count - 1 else (
                begin + self.every
            )  # fmt: skip
            yield Cue(
                begin, stop, sheet, column * self.width, row * self.height, self.width, self.height
            )

    def address(self, sheet: int, name: str | None = None) -> str:
        """The name of a sheet's file, as WebVTT and players link to it."""
        return address((name or "sheet-{}" + self.suffix).replace("{}", str(sheet)))

    def webvtt(self, name: str | None = None) -> str:
        """WebVTT whose cues name a part of a sheet (Media Fragments URI 1.0, 4.2.2)."""
        lines = ["WEBVTT", ""]
        for cue in self.cues:
            # A cue ends after it begins, also where less than a millisecond is left.
            begin = round(cue.start * 1000)
            stop = max(round(cue.stop * 1000), begin + 1)
            part = f"#xywh={cue.x},{cue.y},{cue.width},{cue.height}"
            lines += [
                timing(begin, stop), self.address(cue.sheet, name) + part, ""
            ]  # fmt: skip
        return "\n".join(lines)

    def hls(self, name: str | None = None) -> str:
        """An image media playlist (HLS Image Media Playlist 0.4): a segment is a sheet."""
        spans = [self._span(sheet) for sheet in range(self.sheet_count)]
        tiles = (
            f"#EXT-X-TILES:RESOLUTION={self.width}x{self.height},"
            f"LAYOUT={self.columns}x{self.rows},DURATION={float(self.every):.6f}"
        )
        uris = [self.address(sheet, name) for sheet in range(self.sheet_count)]
        stretch = Stretch([f"{float(span):.6f}" for span in spans], uris, tags=[tiles])
        return media_playlist([stretch], target_duration(spans), ["#EXT-X-IMAGES-ONLY"]).decode()

    def hls_stream_inf(self, uri: str = "images.m3u8", *, bandwidth: int | None = None) -> str:
        """The line of a multivariant playlist that names the image playlist.

        Args:
            uri: address of what `hls` gives.
            bandwidth: bits a second of the largest sheet; None: an upper estimate.
        """
        codec = "jpeg" if self.format == "jpeg" else self.format
        return (
            f"#EXT-X-IMAGE-STREAM-INF:BANDWIDTH={bandwidth or self._bandwidth()},"
            f'RESOLUTION={self.width}x{self.height},CODECS="{codec}",URI="{address(uri)}"'
        )

    def dash(
        self, name: str | None = None, *, id: str = "images", bandwidth: int | None = None
    ) -> str:
        """An AdaptationSet of tiles (DASH-IF Interoperability Points 4.3, 6.2.6), as XML text.

        Args:
            id: of the Representation.
            bandwidth: as for `hls_stream_inf`.
        """
        media = address(
            (name or "sheet-{}" + self.suffix).replace("$", "$$").replace("{}", "$Number$")
        )
        span = self.every * self.tiles_of_sheet
        template = {
            "media": media, "timescale": str(span.denominator), "duration": str(span.numerator),
            "startNumber": "0",
        }  # fmt: skip
        representation = Representation(
            {"id": id, "bandwidth": str(bandwidth or self._bandwidth())},
            size=(self.width * self.columns, self.height * self.rows),
            properties=[(_TILES, f"{self.columns}x{self.rows}")],
        )
        about = {"contentType": "image", "mimeType": self.media_type}
        segments = Segments("SegmentTemplate", template)
        return AdaptationSet(about, [representation], segments=segments).text()

    def bandwidth_of(self, sizes: list[int]) -> int:
        """Bits a second that sheets of these sizes (bytes) take at most."""
        spans = (self._span(sheet) or self.every for sheet in range(len(sizes)))
        return max(
            (int(8 * size / span) + 1 for size, span in zip(sizes, spans, strict=True)), default=1
        )

    def _span(self, sheet: int) -> Fraction:
        """Seconds that a sheet stands for."""
        begin = self.start + sheet * self.tiles_of_sheet * self.every
        return min(begin + self.tiles_of_sheet * self.every, self.stop) - begin

    def _bandwidth(self) -> int:
        tile = self.width * self.height * _BITS_PER_PIXEL
        last = self.sheet_count - 1
        return max(
            int((_BITS_PER_SHEET + tile * tiles) / (self._span(sheet) or self.every)) + 1
            for sheet, tiles in ((0, min(self.count, self.tiles_of_sheet)),
                                 (last, self.count - last * self.tiles_of_sheet))
        )  # fmt: skip


MOST_TILES = 100_000
"""Of one storyboard: a day, one each second."""
MOST_SHEET_PIXELS = 1 << 26
_ORDINARY = Fraction(16, 9)


@record(frozen=True, slots=True)
class Sheet:
    """A sprite sheet.

    Attributes:
        number: from 0.
        data: the bytes of the picture.
        times: when the picture on each tile is really shown, in seconds of presentation time;
            None: it could not be decoded, and the tile is black.
    """

    number: int
    data: bytes
    times: tuple[Fraction | None, ...]

    @property
    def missing(self) -> tuple[int, ...]:
        """Numbers on this sheet of the tiles that could not be decoded."""
        return tuple(n for n, time in enumerate(self.times) if time is None)


class Storyboard(SheetLayout):
    """Small pictures of a video at even distances; see `storyboard`.

    Sheets are decoded one by one, when they are requested. A context manager; a source that it
    opened is closed with it. For one thread at a time.

    Attributes:
        times: when the key frame of each tile is shown, seconds of presentation time, exact.
        And those of `SheetLayout`.
    """

    def __init__(
        self, reader: KeyFrameReader, hits: list[Hit], quality: int, layout: SheetLayout
    ) -> None:
        super().__init__(**{one.name: getattr(layout, one.name) for one in fields(SheetLayout)})
        self._reader, self._hits, self._quality = reader, hits, quality
        self._last: tuple[int, Any, Fraction] | None = None

    @property
    def times(self) -> tuple[Fraction, ...]:
        """When each tile is shown, in seconds of presentation time."""
        return tuple(hit.time.fraction for hit in self._hits)

    def sheets(self) -> Iterator[Sheet]:
        """All sheets in order, each decoded when its turn comes.

        Raises:
            UndecodableMedia: no picture of the first sheet can be decoded.
            And what reading the source raises.
        """
        for number in range(self.sheet_count):
            sheet = self.sheet(number)
            if not number and all(time is None for time in sheet.times):
                track = self._reader.track.id
                raise UndecodableMedia(f"the key frames of track {track} cannot be decoded")
            yield sheet

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
            drawn = self._tile(hit)
            times.append(drawn[1] if drawn else None)
            if drawn is not None:
                tile = drawn[0]
                top = place // self.columns * high + (high - tile.shape[0]) // 2
                left = place % self.columns * wide + (wide - tile.shape[1]) // 2
                pixels[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
        return Sheet(number, encoded(pixels, self.format, self._quality), tuple(times))

    def _tile(self, hit: Hit) -> tuple[Any, Fraction] | None:
        """A picture in the size of a tile, or smaller; neighbours with one key frame share it."""
        if self._last is not None and self._last[0] == hit.cts:
            return self._last[1:]
        try:
            picture = self._reader.near(hit.time)
        except UndecodableMedia:
            return None
        size, _ = scaled_and_cropped(shown_size(picture), self.width, self.height, "contain")
        self._last = hit.cts, upright(picture, size)[:, :, :3], picture.time
        return self._last[1:]

    def close(self) -> None:
        """Close the source, if it was opened here."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def storyboard(
    index: Index,
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
    """Small pictures of a whole video on sprite sheets, and the lists for players.

    Tile n covers the time from `start` + n × `every` on, and shows the nearest key frame. Only
    these key frames are read and decoded. If key frames are further apart, neighbouring tiles show
    the same one. All sheets except the last are full; its unused tiles are black.

    Args:
        index: of the file.
        source: the file, in any form that `fragdex.open_source` takes.
        every: seconds from one tile to the next.
        width: pixels of a tile; its height follows from the video.
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
        ValueError: invalid distance, size, number, format or quality.
        MissingExtra: PyAV or Pillow is not installed (extra `media`).

    >>> import fragdex
    >>> film = "fixtures/frag-cmaf.mp4"
    >>> with fragdex.decoding.storyboard(fragdex.index(film), film, every=0.5, width=64) as board:
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
    track: Track,
    *,
    every: TimeLike = 10,
    width: int = 160,
    columns: int = 10,
    rows: int = 10,
    format: PictureFormat = "jpeg",
) -> SheetLayout:
    """What is on the sheets of a storyboard, from the index alone.

    Args and errors as of `storyboard`.
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
    return SheetLayout(
        start=start, stop=stop, every=Fraction(step), count=count, width=width, height=height,
        columns=columns, rows=rows, format=format, media_type=kind, suffix=FORMATS[format],
    )  # fmt: skip


def _span(track: Track) -> tuple[Fraction, Fraction]:
    """Where the shown pictures begin and end, in seconds."""
    start, stop = track.start, track.stop
    if start is None or stop is None:
        raise InexactIndex(
            f"when track {track.id} is shown is not known", advice="build the index with exact=True"
        )
    begin = max(start.fraction, Fraction(0)) if stop.fraction > 0 else start.fraction
    return begin, max(stop.fraction, begin)


def _proportion(track: Track) -> Fraction:
    """Width of the shown picture over its height, as the moov says; 16:9 where it does not."""
    info = track.info
    if not info.width or not info.height:
        return _ORDINARY
    proportion = Fraction(info.width, info.height)
    if info.pixel_aspect and all(side > 0 for side in info.pixel_aspect):
        proportion *= Fraction(*info.pixel_aspect)
    proportion = 1 / proportion if info.rotation in (90, 270) else proportion
    return min(max(proportion, Fraction(1, 100)), Fraction(100))
