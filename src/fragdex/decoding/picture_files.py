"""Pictures as files that browsers show: JPEG, WebP, AVIF, PNG, in the size that is requested.

A thumbnail is a picture of a moment, small enough to show in a list.
"""

from __future__ import annotations

import io
import operator
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from fragdex.decoding.codec import MOST_PIXELS
from fragdex.decoding.pictures import KeyFrameReader, PictureReader, shown_size, upright
from fragdex.decoding.video_track import Picture
from fragdex.errors import LimitExceeded, MissingExtra
from fragdex.record import record
from fragdex.seeking.model import Index
from fragdex.seeking.times import TimeLike
from fragdex.sources import SourceLike

PictureFormat = Literal["jpeg", "webp", "avif", "png"]
Fit = Literal["contain", "cover", "fill"]

FORMATS: Final = {"jpeg": ".jpg", "webp": ".webp", "avif": ".avif", "png": ".png"}
"""Each format and the suffix of its files."""
FITS: Final = ("contain", "cover", "fill")
LONGEST_SIDE: Final = 16_383
"""Pixels: what WebP has room for (RFC 9649, 2.4), and one picture needs."""


def media_type(format: str) -> str:
    """The media type of a format.

    >>> media_type("jpeg")
    'image/jpeg'
    """
    if format not in FORMATS:
        raise ValueError(f"no picture format {format!r}: expected {', '.join(FORMATS)}")
    return f"image/{format}"


def scaled_and_cropped(
    shown: tuple[int, int], width: int | None, height: int | None, fit: str
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The size that a picture is scaled to, and the size that is cut out of its middle.

    Args:
        shown: width and height of the picture.
        width, height: pixels of the result; None: what follows from the other and the picture.
        fit: `contain`: the largest picture that fits in width × height; `cover`: the smallest that
            covers it, cut at the edges; `fill`: exactly that, out of proportion.

    >>> scaled_and_cropped((1920, 1080), 320, 320, "contain")
    ((320, 180), (320, 180))
    >>> scaled_and_cropped((1920, 1080), 320, 320, "cover")
    ((569, 320), (320, 320))
    """
    if fit not in FITS:
        raise ValueError(f"no fit {fit!r}: expected {', '.join(FITS)}")
    for name, side in (("width", width), ("height", height)):
        if side is not None and not 1 <= operator.index(side) <= LONGEST_SIDE:
            raise ValueError(f"{name}: 1 to {LONGEST_SIDE:,} pixels, not {side}")
    wide, high = shown
    if width is None or height is None:
        # At most one side is given: the other follows, whatever the fit.
        if width is not None:
            scaled = width, max(1, round(high * width / wide))
        elif height is not None:
            scaled = max(1, round(wide * height / high)), height
        else:
            scaled = shown
        cut = scaled
    elif fit == "fill":
        scaled = cut = width, height
    else:
        by_width = width * high < height * wide
        if fit == "cover":
            by_width = not by_width
        by = (width, wide) if by_width else (height, high)
        scaled = max(1, round(wide * by[0] / by[1])), max(1, round(high * by[0] / by[1]))
        cut = (width, height) if fit == "cover" else scaled
        # Rounding leaves a side one pixel short at most.
        scaled = max(scaled[0], cut[0]), max(scaled[1], cut[1])
    if scaled[0] * scaled[1] > MOST_PIXELS or max(cut) > LONGEST_SIDE:
        raise LimitExceeded(
            "the picture would be too large",
            expected=f"at most {MOST_PIXELS:,} pixels, {LONGEST_SIDE:,} a side",
            found=f"{scaled[0]} × {scaled[1]}",
        )
    return scaled, cut


def encoded(pixels: np.ndarray[Any, Any], format: str, quality: int) -> bytes:
    """A picture as a file.

    Args:
        pixels: uint8 of shape (height, width, 3 or 4); JPEG has no opacity: black shows through.
        quality: 1 to 100; PNG loses nothing and ignores it.

    >>> encoded(np.zeros((2, 2, 3), np.uint8), "png", 80)[1:4]
    b'PNG'
    """
    media_type(format)
    if not 1 <= operator.index(quality) <= 100:
        raise ValueError(f"quality: 1 to 100, not {quality}")
    try:
        from PIL import Image, features
    except ImportError as error:
        raise MissingExtra("pictures need Pillow", extra="media") from error
    if format in ("webp", "avif") and not features.check(format):
        raise MissingExtra(
            f"this Pillow writes no {format}", advice="pip install -U 'fragdex[media]'"
        )
    if format == "jpeg" and pixels.shape[2] == 4:
        opacity = pixels[:, :, 3:].astype(np.uint16)
        pixels = (pixels[:, :, :3] * opacity // 255).astype(np.uint8)
    options: dict[str, Any] = {"quality": quality}
    if format == "jpeg":
        options["subsampling"] = "4:2:0"
    elif format == "avif":
        # The default takes ten times as long, for some bytes less.
        options["speed"] = 8
    elif format == "png":
        options = {}
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, format.upper(), **options)
    return file.getvalue()


QUALITY = 80


@record(frozen=True, slots=True)
class Thumbnail:
    """A picture as a file.

    Attributes:
        data: the bytes of the file.
        media_type: `image/jpeg` and so on.
        time: when the picture is shown, in seconds of presentation time, exact.
        width, height: pixels.

    >>> Thumbnail(b"", "image/jpeg", Fraction(1, 2), 320, 180).time
    Fraction(1, 2)
    """

    data: bytes
    media_type: str
    time: Fraction
    width: int
    height: int


At: TypeAlias = Literal["key_frame", "frame"]


def thumbnail(
    index: Index,
    source: SourceLike,
    time: TimeLike,
    *,
    at: At = "key_frame",
    width: int | None = None,
    height: int | None = None,
    fit: Fit = "contain",
    format: PictureFormat = "jpeg",
    quality: int = QUALITY,
    track: int | None = None,
    init: bytes | None = None,
) -> Thumbnail:
    """The picture at a time as JPEG, WebP, AVIF or PNG.

    By default this is the key frame nearest to the time: one request reads its bytes, another those
    of the initialization segment. It is rotated as the track header says (ISO/IEC 14496-12, 8.3.2),
    and its pixels are made square (pasp, 12.1.4). PQ and HLG stay as they are decoded, without tone
    mapping.

    Args:
        index: of the file.
        source: the file, in any form that `fragdex.open_source` takes.
        time: a presentation time as `Track.seek` takes it; before the first picture that one,
            after the end the last.
        at: `key_frame`, the nearest one; or `frame`, the picture that is shown at the time, which
            costs decoding from the key frame on.
        width, height: pixels of the result, 1 to 16,383; None: what follows from the other, or the
            picture's own size. Smaller pictures are enlarged.
        fit: with both: `contain` (the whole picture, in proportion, in at most that size), `cover`
            (exactly that size, cut at the edges) or `fill` (exactly that size, out of proportion).
        format: `jpeg`, `webp`, `avif` or `png`.
        quality: 1 to 100; PNG ignores it.
        track: track_ID; None: the first with pictures.
        init: the initialization segment, for segments that have none; with it, it is not read.

    Raises:
        TrackNotFound: there is no such track of pictures.
        NoSyncSample: the track has no sync sample.
        UndecodableMedia: it is encrypted, damaged here, too large, or of an unknown codec.
        LimitExceeded: the requested picture is too large.
        ValueError: invalid time, size, fit, format or quality.
        MissingExtra: PyAV or Pillow is not installed (extra `media`).

    >>> import fragdex
    >>> made = fragdex.decoding.thumbnail(
    ...     fragdex.index("fixtures/frag-cmaf.mp4"), "fixtures/frag-cmaf.mp4", 1.5, width=64
    ... )
    >>> made.media_type, made.width, made.height, made.time
    ('image/jpeg', 64, 48, Fraction(36, 25))
    """
    kind = media_type(format)
    scaled_and_cropped((1, 1), width, height, fit)  # what is wrong is said before anything is read
    if at not in ("key_frame", "frame"):
        raise ValueError(f"at is key_frame or frame, not {at!r}")
    if at == "frame":
        with PictureReader(index, source, track=track, init=init) as pictures:
            return _made(pictures.at(time), width, height, fit, format, kind, quality)
    # of two sides the larger; of one, the other may be larger by the picture's proportion
    sides = [side for side in (width, height) if side is not None]
    widest = max(sides, default=None)
    with KeyFrameReader(index, source, track=track, init=init, widest=widest) as keys:
        return _made(keys.near(time), width, height, fit, format, kind, quality)


def _made(
    picture: Picture,
    width: int | None,
    height: int | None,
    fit: str,
    format: str,
    kind: str,
    quality: int,
) -> Thumbnail:
    scaled, (wide, high) = scaled_and_cropped(shown_size(picture), width, height, fit)
    left, top = (scaled[0] - wide) // 2, (scaled[1] - high) // 2
    pixels = upright(picture, scaled)[top : top + high, left : left + wide]
    return Thumbnail(encoded(pixels, format, quality), kind, picture.time, wide, high)
