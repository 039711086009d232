"""What kind an image is and how large, told by child processes; no pixel is decoded.

A file that lies about its size costs nothing: nothing is allocated by what a header claims. Pillow
reads the headers of JPEG and PNG; of WebP it would set up a decoder with a canvas of the claimed
size, so those are read here. Of an SVG, only the root element is read: nothing it names is opened,
no entity expanded.
"""

from __future__ import annotations

import math
import re
import struct
import warnings
from collections.abc import Iterator
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from fragdex.errors import Unprocessable
from fragdex.sandbox.channel import Channel, opened
from fragdex.sandbox.child import ChildProcess, Failures, Idle
from fragdex.sandbox.walls import Walls

STALL_SECONDS: Final = 20.0
IDLE_SECONDS: Final = 60.0
_MOST_IDLE: Final = 2
# No pixel is decoded; a note on an image may be a megabyte.
_WALLS: Final = Walls(512 << 20, 1 << 20, cpu_seconds=600)
# A bound of processor time holds for all that a child does.
_IMAGES_OF_ONE: Final = 1000
_FAILURES: Final = Failures("the image process", "this image")


class _Child(ChildProcess):
    measured = 0


class Prober:
    """Measures images; may be used by several threads at once. A part of the context."""

    def __init__(self) -> None:
        self._idle: Idle[_Child] = Idle(IDLE_SECONDS)

    def probe(self, path: Path, mime_type: str, max_pixels: int) -> Size:
        """Measure an image that is said to be of a type; raises as `probe`."""
        child = self._idle.take(lambda _: 1.0) or _Child(
            __name__, _WALLS, _FAILURES, stall_seconds=STALL_SECONDS
        )
        child.measured += 1
        try:
            with path.open("rb") as file:
                measured = child.do(
                    "measure", files=[file.fileno()], mime_type=mime_type, max_pixels=max_pixels
                )
        finally:
            if child.alive and child.measured < _IMAGES_OF_ONE:
                self._idle.put(child, _MOST_IDLE)
            else:
                child.end()
        return Size(*measured["size"])

    def close(self) -> None:
        """End the children that wait."""
        self._idle.end()


def main(channel: Channel) -> None:
    """What a child does: it measures images that are handed over open."""

    def measure(files: list[int], mime_type: str, max_pixels: int) -> dict[str, Any]:
        with opened(files[0], "image") as file:
            return {"size": probe(file, mime_type, max_pixels)}

    channel.serve({"measure": measure})


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
        Unprocessable: it is of another type, cannot be read, ends too early, or has too many
            pixels.
    """
    kind = kind_of(file.read(4096))
    if kind != mime_type:
        raise Unprocessable(
            "the image is not of the type announced",
            expected=mime_type,
            found=kind or "none of the types taken here",
            more={"next_byte": 0},
        )
    file.seek(0)
    if mime_type == "image/svg+xml":
        size = Size(*measure_svg(file))
    elif mime_type == "image/webp":
        size = _webp(file)
    else:
        size = _pillow(file, PILLOW[mime_type])
    if min(size) < 1:
        raise _unreadable("it has no pixels")
    if size.width * size.height > max_pixels:
        raise Unprocessable(
            "the image has too many pixels",
            expected=f"at most {max_pixels}",
            found=f"{size.width} × {size.height}",
            more={"limit": max_pixels, "next_byte": 0},
        )
    if mime_type in _ENDS and not _ENDS[mime_type](file):
        raise _unreadable("it ends too early, as if it had been cut off")
    return size


def _png_ends(file: BinaryIO) -> bool:
    """Whether all chunks of a PNG are there, IEND too (PNG 3, 5.3)."""
    size, at = file.seek(0, SEEK_END), len(PNG)
    while at + 12 <= size:
        file.seek(at)
        head = file.read(8)
        at += 12 + int.from_bytes(head[:4], "big")
        if head[4:] == b"IEND":
            return at <= size
    return False


def _webp_ends(file: BinaryIO) -> bool:
    """Whether a WebP is as long as its RIFF header says (RFC 9649, 2.4)."""
    size = file.seek(0, SEEK_END)
    file.seek(4)
    return 8 + int.from_bytes(file.read(4), "little") <= size


_MARKER = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])")
"""Of a JPEG: neither a stuffed byte nor a restart (ITU-T T.81, B.1.1)."""
_SOS, _EOI = 0xDA, 0xD9
_PIECE = 1 << 20


def _jpeg_ends(file: BinaryIO) -> bool:
    """Whether a JPEG has pictures, and its end (EOI): all segments between are there."""
    at, drawn = 2, False
    while (marker := _next_marker(file, at)) is not None:
        code, at = marker
        if code == _EOI:
            return drawn
        drawn |= code == _SOS
        file.seek(at)
        at += max(2, int.from_bytes(file.read(2), "big"))
    return False


def _next_marker(file: BinaryIO, at: int) -> tuple[int, int] | None:
    """The code of the next marker, and the place after it; None: there is none."""
    file.seek(at)
    before = b""
    while piece := file.read(_PIECE):
        read = before + piece
        if found := _MARKER.search(read):
            return found[1][0], at + found.end()
        before = read[-1:]
        at += len(read) - len(before)
    return None


_ENDS: Final = {"image/png": _png_ends, "image/webp": _webp_ends, "image/jpeg": _jpeg_ends}


def kind_of(head: bytes) -> str | None:
    """The media type that first bytes tell."""
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
        except Exception:  # noqa: BLE001 — a broken note on the image is not a fault of the image
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


ROOT = "{http://www.w3.org/2000/svg}svg"
PIECE = 16 << 10
MAX_PIXELS = 2**31 - 1

# CSS Values 4, 6.2: absolute lengths, at 96 px an inch. Others depend on where the image is shown.
UNITS = {
    "": 1.0,
    "px": 1.0,
    "in": 96.0,
    "cm": 96 / 2.54,
    "mm": 96 / 25.4,
    "q": 96 / 101.6,
    "pt": 96 / 72,
    "pc": 16.0,
}
_LENGTH = re.compile(r"\s*\+?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?\s*([a-z]*)\s*", re.IGNORECASE)

# CSS 2.2, 10.3.2: what a replaced element is without a size of its own
DEFAULT = (300, 150)


class _Root:
    """Takes the first element and nothing else."""

    def __init__(self) -> None:
        self.tag = ""
        self.attributes: dict[str, str] = {}

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self.tag:
            self.tag, self.attributes = tag, dict(attributes)

    def end(self, tag: str) -> None:
        pass

    def data(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


def measure_svg(file: BinaryIO) -> tuple[int, int]:
    """Width and height in pixels: the root's own, else its viewBox's, else 300 × 150.

    Raises:
        Unprocessable: it is not an SVG, or declares entities.
    """
    # XML in the child alone
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser

    root = _Root()
    # a document type without entities is what drawing programs write
    parser = DefusedXMLParser(target=root, forbid_dtd=False)
    try:
        while not root.tag and (piece := file.read(PIECE)):
            parser.feed(piece)
        if not root.tag:
            parser.close()
    except DefusedXmlException:
        raise _refused("it declares entities or names outside documents") from None
    except (ParseError, ValueError, LookupError) as error:
        raise _refused(f"it is not XML ({error})") from None
    if root.tag != ROOT:
        raise _refused("its root is not an svg element")
    return _size(root.attributes)


def _size(attributes: dict[str, str]) -> tuple[int, int]:
    width, height = _pixels(attributes.get("width")), _pixels(attributes.get("height"))
    box = _view_box(attributes.get("viewBox"))
    if box is not None:
        ratio = box[0] / box[1]
        if width is None and height is None:
            width, height = box
        elif width is None and height is not None:
            width = height * ratio
        elif height is None and width is not None:
            height = width / ratio
    return _whole(width or DEFAULT[0]), _whole(height or DEFAULT[1])


def _pixels(text: str | None) -> float | None:
    """A length in pixels; None where it is relative, missing, or no length above 0."""
    match = _LENGTH.fullmatch(text or "")
    unit = match and UNITS.get(match[3].lower())
    if not match or not unit:
        return None
    value = float(match[1] + (match[2] or "")) * unit
    return value if 0 < value < math.inf else None


def _view_box(text: str | None) -> tuple[float, float] | None:
    numbers = re.split(r"[\s,]+", (text or "").strip())
    try:
        _, _, width, height = map(float, numbers)
    except ValueError:
        return None
    return (width, height) if 0 < width < math.inf and 0 < height < math.inf else None


def _whole(pixels: float) -> int:
    return max(1, min(MAX_PIXELS, math.floor(min(pixels, MAX_PIXELS) + 0.5)))


def _refused(why: str) -> Unprocessable:
    return Unprocessable(f"the SVG cannot be read: {why}", more={"next_byte": 0})
