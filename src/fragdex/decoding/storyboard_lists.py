"""Lists of storyboards: WebVTT, an HLS image playlist, a DASH AdaptationSet."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from fragdex.formats.hls import address, target_duration

__all__ = ["Cue", "Layout"]

_BITS_PER_PIXEL = 2
"""What small JPEG pictures take at most, nearly always; said where no true figure is given."""
_BITS_PER_SHEET = 8 << 10
"""What its headers take."""
_TILES = "http://dashif.org/guidelines/thumbnail_tile"


@dataclass(frozen=True, slots=True)
class Cue:
    """Where the picture of a stretch of time is.

    Attributes:
        start, stop: seconds of presentation time (exclusive), exact.
        sheet: number of the sheet, from 0.
        x, y, width, height: pixels on it.

    >>> Cue(Fraction(0), Fraction(10), 0, 160, 0, 160, 90).x
    160
    """

    start: Fraction
    stop: Fraction
    sheet: int
    x: int
    y: int
    width: int
    height: int


@dataclass(slots=True, kw_only=True)
class Layout:
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

    >>> board = Layout(
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
        """Sheets."""
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
        """Address of a sheet."""
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
                f"{_clock(begin)} --> {_clock(stop)}", self.address(cue.sheet, name) + part, ""
            ]  # fmt: skip
        return "\n".join(lines)

    def hls(self, name: str | None = None) -> str:
        """An image media playlist (HLS Image Media Playlist 0.4): a segment is a sheet."""
        spans = [self._span(sheet) for sheet in range(self.sheet_count)]
        lines = [
            "#EXTM3U", "#EXT-X-VERSION:7", f"#EXT-X-TARGETDURATION:{target_duration(spans)}",
            "#EXT-X-MEDIA-SEQUENCE:0", "#EXT-X-PLAYLIST-TYPE:VOD", "#EXT-X-IMAGES-ONLY",
        ]  # fmt: skip
        tiles = (
            f"#EXT-X-TILES:RESOLUTION={self.width}x{self.height},"
            f"LAYOUT={self.columns}x{self.rows},DURATION={float(self.every):.6f}"
        )
        for sheet, span in enumerate(spans):
            lines += [f"#EXTINF:{float(span):.6f},", tiles, self.address(sheet, name)]
        return "\n".join([*lines, "#EXT-X-ENDLIST", ""])

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
        adaptation = ET.Element(
            "AdaptationSet", {"contentType": "image", "mimeType": self.media_type}
        )
        ET.SubElement(
            adaptation, "SegmentTemplate",
            {"media": media, "timescale": str(span.denominator), "duration": str(span.numerator),
             "startNumber": "0"},
        )  # fmt: skip
        representation = ET.SubElement(
            adaptation, "Representation",
            {"id": id, "bandwidth": str(bandwidth or self._bandwidth()),
             "width": str(self.width * self.columns), "height": str(self.height * self.rows)},
        )  # fmt: skip
        ET.SubElement(
            representation, "EssentialProperty",
            {"schemeIdUri": _TILES, "value": f"{self.columns}x{self.rows}"},
        )  # fmt: skip
        ET.indent(adaptation)
        return ET.tostring(adaptation, encoding="unicode") + "\n"

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


def _clock(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{rest:03}"
