"""What the attributes of HLS playlists say of tracks and segments (RFC 8216, 4.2 and 4.3.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from urllib.parse import quote

from fragdex.seeking.model import TrackIndex

__all__ = [
    "WRITABLE_CODEC",
    "Range",
    "address",
    "bandwidths",
    "bytes_of_name",
    "media",
    "named_codecs",
    "picture_rate",
    "picture_size",
    "quoted",
    "target_duration",
]

WRITABLE_CODEC = re.compile(r"[!#-+\--~]+")
"""Printable ASCII without quotes and commas, which part a list of codecs (RFC 6381, 3.2)."""

Range = tuple[Fraction, int, int]
"""Seconds, offset and size of a segment."""
FURTHER = 64
"""Segments by which a stretch is made longer than it must be, to look for a higher bit rate."""


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
    target = target_duration(seconds for seconds, _, _ in segments)
    peak = Fraction(0)
    stop, duration, size = 0, Fraction(0), 0
    for seconds, _, bytes_ in segments:
        while stop < len(segments) and 2 * duration < target:
            duration, size = duration + segments[stop][0], size + segments[stop][2]
            stop += 1
        if 2 * duration < target:
            break
        longer, larger = duration, size
        for more in (None, *segments[stop : stop + FURTHER]):
            if more is not None:
                longer, larger = longer + more[0], larger + more[2]
            if 2 * longer > 3 * target:
                break
            peak = max(peak, Fraction(8 * larger) / longer)
        duration, size = duration - seconds, size - bytes_
    whole = sum(seconds for seconds, _, _ in segments)
    average = Fraction(8 * sum(size for _, _, size in segments)) / whole if whole else Fraction(0)
    if not peak:
        peak = max((Fraction(8 * size) / s for s, _, size in segments if s), default=Fraction(0))
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


def media(
    track: TrackIndex, kind: str, name: str, *, default: bool = True, uri: str | None = None
) -> str:
    """An EXT-X-MEDIA line (4.3.4.1).

    Args:
        kind: audio or video; the GROUP-ID as well.
        name: what people choose the rendition by.
        uri: address of its media playlist; None: its media is in that of the variant.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> media(fragdex.index(movie()).track(1), "video", "Film", default=False)
    '#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="video",NAME="Film",DEFAULT=NO,AUTOSELECT=YES'
    """
    info = track.info
    about = [f"TYPE={kind.upper()}", f'GROUP-ID="{kind}"', f'NAME="{quoted(name)}"']
    if info.language:
        about.append(f'LANGUAGE="{quoted(info.language)}"')
    about += [f"DEFAULT={'YES' if default else 'NO'}", "AUTOSELECT=YES"]
    if info.channel_count:
        about.append(f'CHANNELS="{info.channel_count}"')
    if uri is not None:
        about.append(f'URI="{address(uri)}"')
    return "#EXT-X-MEDIA:" + ",".join(about)
