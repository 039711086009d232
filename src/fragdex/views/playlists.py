"""HLS playlists of made segments (RFC 8216)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from fragdex.formats.hls_attributes import (
    bit_rates,
    named_codecs,
    picture_size,
    quoted,
    target_duration,
)
from fragdex.formats.hls_attributes import (
    media as media_line,
)
from fragdex.fragments.table import Int64
from fragdex.views.renditions import Rendition
from fragdex.views.subtitles import Subtitles
from fragdex.views.title import Title

__all__ = ["has_iframes", "iframes", "media", "multivariant", "subtitles"]

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
    if any(one.media.hidden for one in video) and (not title.growth or title.growth.ended):
        # before players play, they show the picture where they begin
        lines.append("#EXT-X-START:TIME-OFFSET=0.001,PRECISE=YES")
    groups = _groups(audio) if video else {}
    for name, members in groups.items():
        chosen = next((one for one in members if one.track.info.enabled), members[0])
        lines += [
            media_line(
                "audio",
                one.title,
                group=name,
                language=one.language,
                channels=one.track.info.channel_count,
                default=one is chosen,
                uri=f"{one.name}.m3u8",
            )
            for one in members
        ]
    lines += [
        media_line(
            "subtitles",
            text.title,
            language=text.language,
            default=text.default,
            forced=text.forced,
            uri=f"{text.name}.m3u8",
        )
        for text in title.subtitles
    ]
    keys = (line for one in title.renditions if one.keys is not None for line in one.keys.lines())
    lines += [f"#EXT-X-SESSION-KEY:{line}" for line in dict.fromkeys(keys)]
    texts = _dearest([_text_rates(one) for one in title.subtitles])
    sounds = {
        name: _dearest([_bit_rates(one) for one in members]) for name, members in groups.items()
    }
    spoken = _text_codecs(title.subtitles)
    for variant in video or audio:
        own = _bit_rates(variant)
        for name, members in groups.items() or [(None, [])]:
            # one rendition of a group plays at a time: the variant needs the dearest (4.3.4.2)
            beside = sounds.get(name, (0, 0))
            rates = own[0] + beside[0] + texts[0], own[1] + beside[1] + texts[1]
            codecs = [variant.track.codec, *(one.track.codec for one in members[:1]), *spoken]
            lines += _variant(variant, name, codecs, rates, texts=bool(title.subtitles))
    for one in video:
        if has_iframes(one):
            peak, average = bit_rates(np.diff(one.edges), _pictures(one), one.timescale)
            about = [f"BANDWIDTH={peak}", f"AVERAGE-BANDWIDTH={average}"]
            about += [*named_codecs([one.track.codec]), *picture_size(one.track), *_range(one)]
            about.append(f'URI="{one.name}-iframes.m3u8"')
            lines.append("#EXT-X-I-FRAME-STREAM-INF:" + ",".join(about))
    return _text(lines)


def media(rendition: Rendition, title: Title) -> bytes:
    """The media playlist of a rendition (4.3.3), as UTF-8 text."""
    lines = _head(rendition, title)
    if rendition.starts_with_sync:
        lines.append("#EXT-X-INDEPENDENT-SEGMENTS")
    return _text(lines + _beginning(rendition) + _segments(rendition) + _end(title))


def subtitles(text: Subtitles, title: Title) -> bytes:
    """The media playlist of subtitles: WebVTT where they have cues, else fragments."""
    if text.cues is None:
        assert text.rendition is not None
        return media(text.rendition, title)
    lines = _head(text.lead, title)
    for duration, time in zip(_rounded(text.lead), text.times, strict=False):
        lines += [f"#EXTINF:{duration},", f"{text.name}/{time}.vtt"]
    return _text(lines + _end(title))


def iframes(rendition: Rendition, title: Title) -> bytes:
    """The I-frame playlist of a video rendition (4.3.3.6): the first picture of each segment."""
    lines = [*_head(rendition, title), "#EXT-X-I-FRAMES-ONLY", *_beginning(rendition)]
    return _text(lines + _segments(rendition, _pictures(rendition)) + _end(title))


def _beginning(rendition: Rendition) -> list[str]:
    """The initialization segment; players read it without keys, so it stands before them."""
    if rendition.single_file:
        part = f'"{rendition.name}.mp4",BYTERANGE="{len(rendition.made.init)}@0"'
    else:
        part = f'"{rendition.name}/init.mp4"'
    return [f"#EXT-X-MAP:URI={part}", *_keys(rendition)]


def _segments(rendition: Rendition, sizes: Int64 | None = None) -> list[str]:
    """The segments, or their first `sizes` bytes; what is no whole file is a range (4.3.2.2)."""
    made = rendition.made
    durations = [f"#EXTINF:{duration}," for duration in _rounded(rendition)]
    if rendition.single_file:
        sizes = made.fragments.sizes if sizes is None else sizes
        offsets, files = rendition.offsets.tolist(), [f"{rendition.name}.mp4"] * len(made)
    else:
        offsets = [0] * len(made)
        files = [f"{rendition.name}/{time}.m4s" for time in made.time.tolist()]
    if sizes is None:
        return [line for pair in zip(durations, files, strict=True) for line in pair]
    pairs = zip(sizes.tolist(), offsets, strict=True)
    ranges = [f"#EXT-X-BYTERANGE:{size}@{offset}" for size, offset in pairs]
    return [line for one in zip(durations, ranges, files, strict=True) for line in one]


def has_iframes(rendition: Rendition) -> bool:
    """Whether an I-frame playlist can be written: each segment begins with a sync sample."""
    return rendition.kind == "video" and rendition.starts_with_sync


def _pictures(rendition: Rendition) -> Int64:
    """int64 bytes of each segment up to the end of its first picture."""
    made = rendition.made.fragments
    sizes = rendition.media.samples.size[rendition.cuts[:-1]]
    ends: Int64 = made.sizes - made.payload + sizes
    return ends


def _groups(audio: Sequence[Rendition]) -> dict[str | None, list[Rendition]]:
    """Audio renditions by codec: within a group players change without asking (4.3.4.1.1)."""
    found: dict[str | None, list[Rendition]] = {}
    by_codec: dict[str | None, list[Rendition]] = {}
    for one in audio:
        by_codec.setdefault(one.track.codec, []).append(one)
    for members in by_codec.values():
        name = "audio" if len(by_codec) == 1 else f"audio-{len(found) + 1}"
        found[name] = members
    return found


def _dearest(rates: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return max((peak for peak, _ in rates), default=0), max((mean for _, mean in rates), default=0)


def _variant(
    variant: Rendition,
    group: str | None,
    codecs: Sequence[str | None],
    rates: tuple[int, int],
    *,
    texts: bool,
) -> list[str]:
    about = [f"BANDWIDTH={rates[0]}", f"AVERAGE-BANDWIDTH={rates[1]}", *named_codecs(codecs)]
    about += [*picture_size(variant.track), *_rate(variant), *_range(variant)]
    if group is not None:
        about.append(f'AUDIO="{quoted(group)}"')
    if texts:
        about.append('SUBTITLES="subtitles"')
    return ["#EXT-X-STREAM-INF:" + ",".join(about), f"{variant.name}.m3u8"]


def _text_codecs(texts: Sequence[Subtitles]) -> dict[str | None, None]:
    fragments = (one.rendition for one in texts if one.cues is None)
    return dict.fromkeys(one.track.codec for one in fragments if one is not None)


def _bit_rates(rendition: Rendition) -> tuple[int, int]:
    sizes = rendition.made.fragments.sizes
    return bit_rates(np.diff(rendition.edges), sizes, rendition.timescale)


def _text_rates(text: Subtitles) -> tuple[int, int]:
    if text.cues is None:
        assert text.rendition is not None
        return _bit_rates(text.rendition)
    lasts = np.diff(text.lead.edges)[: len(text.times)]
    return bit_rates(lasts, text.sizes, text.lead.timescale)


def _rate(rendition: Rendition) -> list[str]:
    rate = rendition.frame_rate
    return [] if rate is None else [f"FRAME-RATE={float(rate):.3f}"]


def _range(rendition: Rendition) -> list[str]:
    if rendition.kind != "video":
        return []
    colour = rendition.track.info.colour
    return [] if colour is None else [f"VIDEO-RANGE={colour.dynamic_range or 'SDR'}"]


def _head(rendition: Rendition, title: Title) -> list[str]:
    lasts = np.diff(rendition.edges)
    lasts[0] += rendition.hidden
    target = target_duration([Fraction(int(lasts.max()), rendition.timescale)])
    return [
        "#EXTM3U",
        f"#EXT-X-VERSION:{VERSION}",
        f"#EXT-X-TARGETDURATION:{title.growth.target if title.growth else target}",
        "#EXT-X-MEDIA-SEQUENCE:0",
        f"#EXT-X-PLAYLIST-TYPE:{'EVENT' if title.growth else 'VOD'}",
    ]


def _keys(rendition: Rendition) -> list[str]:
    keys = rendition.keys
    return [] if keys is None else [f"#EXT-X-KEY:{line}" for line in keys.lines()]


def _end(title: Title) -> list[str]:
    growth = title.growth
    return [] if growth is not None and not growth.ended else ["#EXT-X-ENDLIST"]


def _rounded(rendition: Rendition) -> list[str]:
    """Durations to the microsecond: of rounded ends, so that the sum does not drift."""
    scale = rendition.timescale
    edges = rendition.edges.copy()
    # Players put segments where the ones before them end; a segment lasts as long as its samples,
    # be some of them hidden.
    edges[0] -= rendition.hidden
    ends = [(2_000_000 * at + scale) // (2 * scale) for at in edges.tolist()]
    lasts = (stop - start for start, stop in pairwise(ends))
    return [f"{micros // 1_000_000}.{micros % 1_000_000:06d}" for micros in lasts]


def _text(lines: Sequence[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()
