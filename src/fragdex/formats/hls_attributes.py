"""What the attributes of HLS playlists say of tracks and segments (RFC 8216, 4.2 and 4.3.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from fragdex.formats.languages import language_tag
from fragdex.seeking.model import TrackIndex

__all__ = [
    "WRITABLE_CODEC",
    "Range",
    "address",
    "bandwidths",
    "bit_rates",
    "bytes_of_name",
    "media",
    "named_codecs",
    "picture_rate",
    "picture_size",
    "quoted",
    "spoken",
    "target_duration",
]

WRITABLE_CODEC = re.compile(r"[!#-+\--~]+")
"""Printable ASCII without quotes and commas, which part a list of codecs (RFC 6381, 3.2)."""

Range = tuple[Fraction, int, int]
"""Seconds, offset and size of a segment."""
MOST_TOGETHER = 256
"""Segments of a stretch whose bit rate is looked at."""


def address(uri: str) -> str:
    """A URI as it may stand on a line and in quotes; what is escaped already stays.

    >>> address('a "b".m3u8'), address("a%20b.m3u8")
    ('a%20%22b%22.m3u8', 'a%20b.m3u8')
    """
    return quote(bytes_of_name(uri), safe="%/:?#[]@!$&'()*+,;=~")


def quoted(text: str) -> str:
    r"""What may be in quotes: no quotes, no ends of lines and no other controls (RFC 8216, 4.2).

    >>> quoted('a "b"\n#EXT-X-ENDLIST')
    "a 'b' #EXT-X-ENDLIST"
    """
    return "".join("'" if c == '"' else c if c.isprintable() else " " for c in text)


def bytes_of_name(name: str) -> bytes:
    r"""The bytes of a file name: what is no UTF-8 in it is in it as lone surrogates.

    >>> bytes_of_name("a\udcff")
    b'a\xff'
    """
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return name.encode("utf-8", "replace")


def target_duration(durations: Iterable[Fraction]) -> int:
    """Whole seconds that no segment exceeds when it is rounded (4.3.3.1); at least 1.

    >>> target_duration([Fraction(5, 2), Fraction(1)])
    3
    """
    return max(1, int(max(durations, default=Fraction(1)) + Fraction(1, 2)))


def bandwidths(segments: Sequence[Range]) -> tuple[int, int]:
    """Peak and average segment bit rate in bits a second, rounded up; 1 where nothing is.

    The peak is that of the stretch that needs most, among those of consecutive segments that last
    from half to one and a half target durations (4.3.4.2).

    >>> bandwidths([(Fraction(2), 0, 1000), (Fraction(2), 1000, 3000), (Fraction(2), 4000, 1000)])
    (12001, 6667)
    """
    unit = lcm(*(seconds.denominator for seconds, _, _ in segments))
    ticks = np.array([int(seconds * unit) for seconds, _, _ in segments], object)
    sizes = np.array([size for _, _, size in segments], object)
    return bit_rates(ticks, sizes, unit)


def bit_rates(ticks: npt.NDArray[Any], sizes: npt.NDArray[Any], timescale: int) -> tuple[int, int]:
    """`bandwidths` of segments whose durations are in ticks.

    >>> bit_rates(np.array([4, 4, 2]), np.array([1000, 3000, 1000]), 2)
    (12001, 8001)
    """
    if not len(ticks):
        return 1, 1
    target = max(1, (2 * int(ticks.max()) + timescale) // (2 * timescale)) * timescale
    times, bytes_ = (np.concatenate([[0], np.cumsum(column)]) for column in (ticks, sizes))
    best: tuple[float, int, int] = (0.0, 0, 1)
    for count in range(1, min(len(ticks), MOST_TOGETHER) + 1):
        lasts = times[count:] - times[:-count]
        if 2 * int(lasts.min()) > 3 * target:
            break
        fits = np.flatnonzero((2 * lasts >= target) & (2 * lasts <= 3 * target) & (lasts > 0))
        if len(fits):
            held = (bytes_[count:] - bytes_[:-count])[fits]
            at = int((held.astype(float) / lasts[fits].astype(float)).argmax())
            rate = int(held[at]) / int(lasts[fits][at])
            best = max(best, (rate, int(held[at]), int(lasts[fits][at])))
    _, most, lasts_ = best
    peak = Fraction(8 * most * timescale, lasts_)
    whole, all_bytes = int(times[-1]), int(bytes_[-1])
    average = Fraction(8 * all_bytes * timescale, whole) if whole else Fraction(0)
    if not peak:
        known = [(int(s), int(t)) for s, t in zip(sizes, ticks, strict=True) if t]
        peak = max((Fraction(8 * s * timescale, t) for s, t in known), default=Fraction(0))
    return int(max(peak, average)) + 1, int(average) + 1


def named_codecs(codecs: Iterable[str | None]) -> list[str]:
    """The attribute CODECS, each named once; nothing where one is not known or not writable."""
    known = list(dict.fromkeys(codecs))
    if not known or not all(codec and WRITABLE_CODEC.fullmatch(codec) for codec in known):
        return []
    return [f'CODECS="{",".join(map(str, known))}"']


def picture_size(track: TrackIndex) -> list[str]:
    """The attribute RESOLUTION of a video track, where it is known."""
    info = track.info
    if track.kind != "video" or not info.width or not info.height:
        return []
    return [f"RESOLUTION={info.width}x{info.height}"]


def picture_rate(track: TrackIndex, segments: Sequence[Range]) -> list[str]:
    """The attribute FRAME-RATE of a video track, where it is known."""
    seconds = sum(duration for duration, _, _ in segments)
    count = track.sample_count
    if track.kind != "video" or not seconds or not count:
        return []
    return [f"FRAME-RATE={float(count / seconds):.3f}"]


def spoken(track: TrackIndex) -> str | None:
    """The language of a track as a BCP 47 tag, or None.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> spoken(fragdex.index(movie()).track(1)) is None
    True
    """
    return language_tag(track.info.extended_language or track.info.language)


def media(
    kind: str,
    name: str,
    *,
    group: str | None = None,
    language: str | None = None,
    channels: int | None = None,
    default: bool = True,
    forced: bool = False,
    uri: str | None = None,
) -> str:
    """An EXT-X-MEDIA line (4.3.4.1).

    Args:
        kind: audio, video or subtitles.
        name: what people choose the rendition by.
        group: GROUP-ID; None: the kind.
        language: BCP 47 tag.
        channels: of audio.
        default: whether players take it unless people choose another one.
        forced: whether subtitles are shown to those who chose none.
        uri: address of its media playlist; None: its media is in that of the variant.

    >>> media("video", "Film", default=False)
    '#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="video",NAME="Film",DEFAULT=NO,AUTOSELECT=YES'
    """
    about = [f"TYPE={kind.upper()}", f'GROUP-ID="{quoted(group or kind)}"']
    about.append(f'NAME="{quoted(name)}"')
    if language:
        about.append(f'LANGUAGE="{quoted(language)}"')
    about += [f"DEFAULT={'YES' if default else 'NO'}", "AUTOSELECT=YES"]
    if kind == "subtitles":
        about.append(f"FORCED={'YES' if forced else 'NO'}")
    if channels:
        about.append(f'CHANNELS="{channels}"')
    if uri is not None:
        about.append(f'URI="{address(uri)}"')
    return "#EXT-X-MEDIA:" + ",".join(about)
