"""PNGs of the browser → pixels, by libdeflate and the C extension where both are there.

They take a quarter to half of FFmpeg's time. What is unusual, damaged or of another size is left to
FFmpeg, whose words on it are those that errors tell.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any, Final

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_HEADER: Final = b"\0\0\0\rIHDR"
# Colour types (ISO/IEC 15948, 11.2.2) → FFmpeg's name, bytes of a pixel.
_FORMATS: Final = {2: ("rgb24", 3), 6: ("rgba", 4)}
# A chunk that gives RGB a colour that is clear.
_CLEAR: Final = b"tRNS"


class PNGReader:
    """Decodes PNGs of one size; None instead of a picture is for FFmpeg to decode, or to refuse.

    Args:
        width, height: of them.
    """

    def __init__(self, width: int, height: int) -> None:
        from fragdex.indexing.native import compiled

        self._size, self._compiled, self._deflate = (width, height), compiled, None
        self._pictures: dict[str, Any] = {}
        with suppress(ImportError):
            import deflate

            self._deflate = deflate

    def decoded(self, png: bytes) -> Any | None:
        """An av.VideoFrame in RGB or RGBA, valid until the next one."""
        if self._deflate is None or self._compiled is None:
            return None
        parts = _parsed(png)
        if parts is None or parts[:2] != self._size:
            return None
        width, height, color, data = parts
        name, pixel = _FORMATS[color]
        size = height * (1 + width * pixel)
        try:
            rows = self._deflate.zlib_decompress(data, size)
        except self._deflate.DeflateError:
            return None
        if len(rows) != size:
            return None
        picture = self._picture(name)
        plane = picture.planes[0]
        whole = self._compiled.unfilter(rows, height, width * pixel, pixel, plane, plane.line_size)
        return picture if whole else None

    def _picture(self, name: str) -> Any:
        if name not in self._pictures:
            import av

            self._pictures[name] = av.VideoFrame(*self._size, name)
        return self._pictures[name]


def _parsed(png: bytes) -> tuple[int, int, int, bytes] | None:
    """Width, height, colour type and compressed rows of a plain PNG of 8 bits."""
    if not png.startswith(_SIGNATURE + _HEADER) or len(png) < 33:
        return None
    width, height, *kind = struct.unpack_from(">IIBBBBB", png, 16)
    if kind not in ([8, 2, 0, 0, 0], [8, 6, 0, 0, 0]):
        return None
    pieces: list[memoryview] = []
    at = 33
    with memoryview(png) as whole:
        while at + 12 <= len(png):
            stop = at + 12 + int.from_bytes(png[at : at + 4])
            name = png[at + 4 : at + 8]
            if name == b"IEND":
                return width, height, kind[1], b"".join(pieces)
            # a chunk that has to be understood begins with a capital letter
            if stop > len(png) or name == _CLEAR or (name != b"IDAT" and name[:1].isupper()):
                return None
            if name == b"IDAT":
                pieces.append(whole[at + 8 : stop - 4])
            at = stop
    return None
