"""One picture → JPEG, PNG or WebP."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    import numpy as np

Container = Literal["jpeg", "png", "webp"]
_DEEPEST: Final = 9  # zlib


@dataclass(frozen=True, slots=True)
class Still:
    """How a still is stored.

    Attributes:
        container: `jpeg`, `png` or `webp`.
        quality: 1–100, of JPEG and WebP; WebP of a transparent page keeps its alpha whole.
        compression: PNG: 1–100, 100 the smallest file; WebP: 0–6, 6 the smallest file.
        transparency: what the page leaves unpainted stays transparent (PNG, WebP), else it is
            white.
    """

    container: Container = "png"
    quality: int = 80
    compression: int | None = None
    transparency: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether what the page leaves unpainted stays transparent."""
        return self.transparency and self.container != "jpeg"


def encode_still(shown: bytes | np.ndarray[Any, Any], still: Still) -> bytes:
    """Store a picture of the browser; the same picture and settings give the same bytes.

    Args:
        shown: a PNG, or its pixels of shape (height, width, 3 or 4), uint8.
    """
    from PIL import Image

    picture: Image.Image
    if isinstance(shown, bytes):
        picture = Image.open(io.BytesIO(shown))
    else:
        picture = Image.fromarray(shown)
    with picture:
        pixels = picture.convert("RGBA" if still.is_clear else "RGB")
    out = io.BytesIO()
    if still.container == "jpeg":
        # 4:4:4 where quality is asked for: text has coloured edges otherwise
        subsampling = "4:4:4" if still.quality >= 90 else "4:2:0"
        pixels.save(out, "JPEG", quality=still.quality, subsampling=subsampling, optimize=True)
    elif still.container == "png":
        wanted = 80 if still.compression is None else still.compression
        level = max(1, round(wanted * _DEEPEST / 100))
        pixels.save(out, "PNG", compress_level=level, optimize=wanted == 100)
    else:
        method = 4 if still.compression is None else still.compression
        pixels.save(out, "WEBP", quality=still.quality, method=method, exact=False)
    return out.getvalue()
