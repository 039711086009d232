"""The size of an SVG, from its root element; nothing it names is opened, no entity expanded."""

from __future__ import annotations

import math
import re
from typing import BinaryIO
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from fragdex.errors import Unprocessable

__all__ = ["measure_svg"]

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
        Unprocessable: it is no SVG, or declares entities.

    >>> import io
    >>> measure_svg(io.BytesIO(b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 3"/>'))
    (4, 3)
    """
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
    found = _LENGTH.fullmatch(text or "")
    unit = found and UNITS.get(found[3].lower())
    if not found or not unit:
        return None
    value = float(found[1] + (found[2] or "")) * unit
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
