"""A picture of a moment, small enough to show in a list."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from fragdex.decoding.picture_files import (
    Fit,
    PictureFormat,
    encoded,
    media_type,
    scaled_and_cropped,
)
from fragdex.decoding.pictures import KeyFrameReader, PictureReader, shown_size, upright
from fragdex.decoding.video_track import Picture
from fragdex.renamed import old_arguments
from fragdex.seeking.model import Index
from fragdex.seeking.times import TimeLike
from fragdex.sources import SourceLike

__all__ = ["QUALITY", "Thumbnail", "thumbnail"]

QUALITY = 80


@dataclass(frozen=True, slots=True)
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


@old_arguments(exact={False: "key_frame", True: "frame"}.get)
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
