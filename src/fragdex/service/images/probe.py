"""What kind an image is and how large, from its first bytes; no pixel is decoded.

A file that lies about its size costs nothing: nothing is allocated by what a header claims. Pillow
reads the headers of JPEG and PNG; of WebP it would set up a decoder with a canvas of the claimed
size, so those are read here.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from fragdex.errors import Unprocessable

__all__ = ["Size", "kind_of", "probe"]

PNG = b"\x89PNG\r\n\x1a\n"
PILLOW = {"image/jpeg": "JPEG", "image/png": "PNG"}
ORIENTATION = 0x0112
SIDEWAYS = range(5, 9)  # Exif 2.32, 4.6.4: rows and columns change places
MAX_EXIF = 1 << 20


class Size(NamedTuple):
    """Pixels, as shown."""

    width: int
    height: int


def probe(file: BinaryIO, mime_type: str, max_pixels: int) -> Size:
    """Measure an image that is said to be of a type.

    Raises:
        Unprocessable: it is of another type, cannot be read, or has too many pixels.
    """
    found = kind_of(file.read(4096))
    if found != mime_type:
        raise Unprocessable(
            "the image is not of the type announced",
            expected=mime_type,
            found=found or "none of the types taken here",
            more={"next_byte": 0},
        )
    file.seek(0)
    if mime_type == "image/svg+xml":
        from fragdex.service.images.svg import measure_svg  # with XML

        return Size(*measure_svg(file))
    size = _webp(file) if mime_type == "image/webp" else _pillow(file, PILLOW[mime_type])
    if min(size) < 1:
        raise _unreadable("it has no pixels")
    if size.width * size.height > max_pixels:
        raise Unprocessable(
            "the image has too many pixels",
            expected=f"at most {max_pixels}",
            found=f"{size.width} × {size.height}",
            more={"limit": max_pixels, "next_byte": 0},
        )
    return size


def kind_of(head: bytes) -> str | None:
    r"""The media type that first bytes tell.

    >>> kind_of(b"GIF89a"), kind_of(b"\xef\xbb\xbf <svg/>")
    (None, 'image/svg+xml')
    """
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith(PNG):
        return "image/png"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"<") or head.startswith((b"\xff\xfe<\0", b"\xfe\xff\0<")):
        return "image/svg+xml"
    return None


def _unreadable(why: str) -> Unprocessable:
    return Unprocessable(f"the image cannot be read: {why}", more={"next_byte": 0})


def _image() -> Any:
    """Pillow's module, which says nothing of its own; where no image comes, memory is spared."""
    from PIL import Image

    # We look at sizes ourselves and decode nothing; Pillow's own limit would warn before ours.
    Image.MAX_IMAGE_PIXELS = None
    # What is odd about a stranger's Exif is no news for the operator.
    warnings.filterwarnings("ignore", module=r"PIL\.")
    return Image


def _pillow(file: BinaryIO, name: str) -> Size:
    try:
        # only the decoder of that one type sees the file
        with _image().open(file, formats=[name]) as image:
            width, height = image.size
            exif = image.info.get("exif", b"")
    # one that Pillow does not know at all is an OSError too
    except (OSError, SyntaxError, ValueError, struct.error) as error:
        raise _unreadable("its header is damaged") from error
    return _turned(width, height, exif)


def _turned(width: int, height: int, exif: bytes) -> Size:
    orientation = 1
    if exif:
        try:
            read = _image().Exif()
            read.load(exif)
            orientation = read.get(ORIENTATION, 1)
        except Exception:  # noqa: BLE001 — a broken note on the image is no fault of the image
            orientation = 1
    return Size(height, width) if orientation in SIDEWAYS else Size(width, height)


def _webp(file: BinaryIO) -> Size:
    """RFC 9649, 2.5 to 2.7: the canvas of VP8X, or the frame of the one VP8 or VP8L chunk."""
    size: Size | None = None
    exif = b""
    for name, length, head in _chunks(file):
        if name == b"VP8X" and len(head) >= 10:
            wide, high = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (4, 7))
            size = Size(wide, high)
            if not head[0] & 0x08:
                return size  # no Exif announced
        elif name == b"EXIF" and length <= MAX_EXIF:
            exif = head
            break
        elif size is None and name == b"VP8L" and head[:1] == b"\x2f" and len(head) >= 5:
            bits = int.from_bytes(head[1:5], "little")
            return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        elif size is None and name == b"VP8 " and head[3:6] == b"\x9d\x01\x2a" and len(head) >= 10:
            wide, high = struct.unpack_from("<HH", head, 6)
            return Size(wide & 0x3FFF, high & 0x3FFF)
    if size is None:
        raise _unreadable("its header is damaged")
    return _turned(*size, exif.removeprefix(b"Exif\0\0"))


def _chunks(file: BinaryIO) -> Iterator[tuple[bytes, int, bytes]]:
    """Name, length and first bytes of each chunk; of EXIF all, up to MAX_EXIF."""
    at = 12
    while True:
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            return
        name, length = head[:4], int.from_bytes(head[4:], "little")
        yield name, length, file.read(min(length, MAX_EXIF if name == b"EXIF" else 16))
        at += 8 + length + length % 2
