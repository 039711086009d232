"""HLS playlists of made segments (RFC 8216)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from fragdex.formats.hls_attributes import (
    Range,
    bandwidths,
    named_codecs,
    picture_size,
    quoted,
    target_duration,
)
from fragdex.formats.hls_attributes import (
    media as media_line,
)
from fragdex.views.renditions import Rendition, Title

__all__ = ["has_iframes", "iframes", "media", "multivariant"]

VERSION = 7
"""EXT-X-MAP in playlists that are not of I-frames alone (7), with fMP4."""


def multivariant(title: Title) -> bytes:
    """The multivariant playlist (4.3.4), as UTF-8 text.

    Each video rendition is a variant, once for each codec of sound; of sound alone each audio
    rendition is one.

    >>> multivariant(Title(())).splitlines()[0]
    b'#EXTM3U'
    """
    lines = ["#EXTM3U", f"#EXT-X-VERSION:{VERSION}"]
    if all(one.starts_with_sync for one in title.renditions):
        lines.append("#EXT-X-INDEPENDENT-SEGMENTS")
    video, audio = title.of("video"), title.of("audio")
    groups = _groups(audio) if video else {}
    for name, members in groups.items():
        chosen = next((one for one in members if one.track.info.enabled), members[0])
        for one in members:
            line = media_line(
                one.track, "audio", one.title, default=one is chosen, uri=f"{one.name}.m3u8"
            )
            lines.append(line.replace('GROUP-ID="audio"', f'GROUP-ID="{name}"'))
    for variant in video or audio:
        for name, members in groups.items() or [(None, [])]:
            lines += _variant(variant, name, members)
    for one in video:
        if has_iframes(one):
            peak, average = bandwidths([(s, 0, size) for s, size in _pictures(one)])
            about = [f"BANDWIDTH={peak}", f"AVERAGE-BANDWIDTH={average}"]
            about += [*named_codecs([one.track.codec]), *picture_size(one.track), *_range(one)]
            about.append(f'URI="{one.name}-iframes.m3u8"')
            lines.append("#EXT-X-I-FRAME-STREAM-INF:" + ",".join(about))
    return _text(lines)


def media(rendition: Rendition) -> bytes:
    """The media playlist of a rendition (4.3.3), as UTF-8 text."""
    lines = _head([s.seconds for s in rendition.segments])
    if rendition.starts_with_sync:
        lines.append("#EXT-X-INDEPENDENT-SEGMENTS")
    lines.append(f'#EXT-X-MAP:URI="{rendition.name}/init.mp4"')
    rounded = _rounded(s.seconds for s in rendition.segments)
    for segment, duration in zip(rendition.segments, rounded, strict=True):
        lines += [f"#EXTINF:{duration},", f"{rendition.name}/{segment.time}.m4s"]
    return _text([*lines, "#EXT-X-ENDLIST"])


def iframes(rendition: Rendition) -> bytes:
    """The I-frame playlist of a video rendition (4.3.3.6): the first picture of each segment."""
    pictures = _pictures(rendition)
    lines = [*_head([seconds for seconds, _ in pictures]), "#EXT-X-I-FRAMES-ONLY"]
    lines.append(f'#EXT-X-MAP:URI="{rendition.name}/init.mp4"')
    rounded = _rounded(seconds for seconds, _ in pictures)
    for segment, (_, size), duration in zip(rendition.segments, pictures, rounded, strict=True):
        lines += [f"#EXTINF:{duration},", f"#EXT-X-BYTERANGE:{size}@0"]
        lines.append(f"{rendition.name}/{segment.time}.m4s")
    return _text([*lines, "#EXT-X-ENDLIST"])


def has_iframes(rendition: Rendition) -> bool:
    """Whether an I-frame playlist can be written: each segment begins with a sync sample."""
    return rendition.kind == "video" and rendition.starts_with_sync


def _pictures(rendition: Rendition) -> list[tuple[Fraction, int]]:
    """Seconds that the first picture of each segment stands for, and bytes to its end."""
    made = rendition.made.fragments
    sizes = rendition.media.samples.size[rendition.cuts[:-1]].tolist()
    before = (made.sizes - made.payload).tolist()
    return [
        (segment.seconds, boxes + size)
        for segment, boxes, size in zip(rendition.segments, before, sizes, strict=True)
    ]


def _groups(audio: Sequence[Rendition]) -> dict[str | None, list[Rendition]]:
    """Audio renditions by codec: within a group players change without asking (4.3.4.1.1)."""
    found: dict[str | None, list[Rendition]] = {}
    codecs = list(dict.fromkeys(one.track.codec for one in audio))
    for codec in codecs:
        name = "audio" if len(codecs) == 1 else f"audio-{len(found) + 1}"
        found[name] = [one for one in audio if one.track.codec == codec]
    return found


def _variant(variant: Rendition, group: str | None, members: Sequence[Rendition]) -> list[str]:
    own = bandwidths(_ranges(variant))
    rates = [bandwidths(_ranges(one)) for one in members]
    # one rendition of a group plays at a time: the variant needs the dearest (4.3.4.2)
    peak, average = (own[n] + max((rate[n] for rate in rates), default=0) for n in (0, 1))
    about = [f"BANDWIDTH={peak}", f"AVERAGE-BANDWIDTH={average}"]
    about += named_codecs([variant.track.codec, *(one.track.codec for one in members[:1])])
    about += [*picture_size(variant.track), *_rate(variant), *_range(variant)]
    if group is not None:
        about.append(f'AUDIO="{quoted(group)}"')
    return ["#EXT-X-STREAM-INF:" + ",".join(about), f"{variant.name}.m3u8"]


def _ranges(rendition: Rendition) -> list[Range]:
    return [(segment.seconds, 0, segment.size) for segment in rendition.segments]


def _rate(rendition: Rendition) -> list[str]:
    rate = rendition.frame_rate
    return [] if rate is None else [f"FRAME-RATE={float(rate):.3f}"]


def _range(rendition: Rendition) -> list[str]:
    if rendition.kind != "video":
        return []
    colour = rendition.track.info.colour
    return [] if colour is None else [f"VIDEO-RANGE={colour.dynamic_range or 'SDR'}"]


def _head(durations: Sequence[Fraction]) -> list[str]:
    return [
        "#EXTM3U",
        f"#EXT-X-VERSION:{VERSION}",
        f"#EXT-X-TARGETDURATION:{target_duration(durations)}",
        "#EXT-X-MEDIA-SEQUENCE:0",
        "#EXT-X-PLAYLIST-TYPE:VOD",
    ]


def _rounded(durations: Iterable[Fraction]) -> list[str]:
    """To the microsecond: rounded ends, not rounded durations, so that the sum does not drift."""
    found, reached = [], Fraction(0)
    for seconds in durations:
        micros = round((reached + seconds) * 1_000_000) - round(reached * 1_000_000)
        reached += seconds
        found.append(f"{micros // 1_000_000}.{micros % 1_000_000:06d}")
    return found


def _text(lines: Sequence[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()
