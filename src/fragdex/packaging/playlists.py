"""HLS playlists (RFC 8216) and the DASH manifest (ISO/IEC 23009-1) of made segments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np

from fragdex.fragments.table import Int64
from fragdex.muxing.protection import Keys
from fragdex.packaging.dash import NAMESPACE, xml_duration, xml_text
from fragdex.packaging.hls import (
    WRITABLE_CODEC,
    bit_rates,
    named_codecs,
    picture_size,
    quoted,
    target_duration,
)
from fragdex.packaging.hls import media as media_line
from fragdex.packaging.renditions import Rendition
from fragdex.packaging.subtitles import Subtitles
from fragdex.packaging.titling import Title, uneven

LIVE = "urn:mpeg:dash:profile:isoff-live:2011"
ON_DEMAND = "urn:mpeg:dash:profile:isoff-on-demand:2011"
CENC = "urn:mpeg:cenc:2013"
ET.register_namespace("cenc", CENC)
ROLE = "urn:mpeg:dash:role:2011"
CHANNELS = "urn:mpeg:mpegB:cicp:ChannelConfiguration"
"""By number of channels, where that is the layout's number as well: 1 to 6 (ISO/IEC 23091-3)."""


def write(title: Title) -> bytes:
    """The manifest, as UTF-8 text: for each rendition a SegmentTimeline in ticks, or one file.

    Video renditions whose segments begin at the same times are one adaptation set, audio
    renditions are one if they have one language and codec.

    >>> write(Title(()))[:38]
    b"<?xml version='1.0' encoding='utf-8'?>"
    """
    lasts = [Fraction(int(np.diff(one.edges).max()), one.timescale) for one in title.renditions]
    longest = max(lasts, default=Fraction(2))
    total = max((one.seconds for one in title.renditions), default=Fraction(0))
    mpd = ET.Element("MPD", {"xmlns": NAMESPACE, **_kind(title, total)})
    if any(one.single_file for one in title.renditions):
        mpd.set("profiles", ON_DEMAND)
        mpd.set("maxSubsegmentDuration", xml_duration(longest))
    else:
        mpd.set("maxSegmentDuration", xml_duration(longest))
    mpd.set("minBufferTime", "PT2S")
    period = ET.SubElement(mpd, "Period", {"id": "0", "start": "PT0S"})
    sets = _sets(title)
    for number, members in enumerate(sets):
        _adaptation(period, number, members)
    for number, one in enumerate(title.subtitles, len(sets)):
        _subtitles(period, number, one, title)
    ET.indent(mpd)
    text: bytes = ET.tostring(mpd, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _kind(title: Title, total: Fraction) -> dict[str, str]:
    """Whether it grows, and what players need to know then (5.3.1.2)."""
    growth = title.growth
    if growth is None or growth.ended:
        ends = {"mediaPresentationDuration": xml_duration(total)}
        return {"type": "static", "profiles": LIVE, **ends}
    return {
        "type": "dynamic",
        "profiles": LIVE,
        "availabilityStartTime": _utc(growth.began),
        "publishTime": _utc(growth.changed),
        "minimumUpdatePeriod": xml_duration(Fraction(growth.target, 2)),
    }


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _sets(title: Title) -> list[list[Rendition]]:
    """Renditions that players may change between without a break."""
    video = title.of("video")
    sets = [video] if video and not uneven(video) else [[one] for one in video]
    audio: dict[object, list[Rendition]] = {}
    for one in title.of("audio"):
        key = one.language, one.track.codec, one.timescale, one.edges.tolist()
        audio.setdefault(repr(key), []).append(one)
    return [*sets, *audio.values()]


def _adaptation(period: ET.Element, number: int, members: Sequence[Rendition]) -> None:
    first = members[0]
    about = {
        "id": str(number),
        "contentType": first.kind,
        "mimeType": f"{first.kind}/mp4",
    }
    sap = None
    if all(one.starts_with_sync for one in members):
        sap = "1" if all(one.is_closed for one in members) else "3"
    about |= _alignment(first, sap)
    if first.language:
        about["lang"] = xml_text(first.language)
    adaptation = ET.SubElement(period, "AdaptationSet", about)
    same = len({one.keys for one in members}) == 1
    if same and first.keys is not None:
        _protection(adaptation, first.keys)
    if first.kind == "audio":
        ET.SubElement(adaptation, "Label").text = xml_text(first.title)
        role = "main" if first.name == "a1" else "alternate"
        ET.SubElement(adaptation, "Role", {"schemeIdUri": ROLE, "value": role})
    for one in members:
        _representation(adaptation, one, None if same else one.keys)


def _alignment(rendition: Rendition, sap: str | None) -> dict[str, str]:
    """That segments begin at the same times, and how; of one file they are its subsegments."""
    if rendition.single_file:
        return {"subsegmentAlignment": "true", "subsegmentStartsWithSAP": sap or "0"}
    return {"segmentAlignment": "true"} | ({"startWithSAP": sap} if sap else {})


def _protection(parent: ET.Element, keys: Keys) -> None:
    """Which key, and what each protection system needs (ISO/IEC 23001-7, 11.2)."""
    about = {"schemeIdUri": "urn:mpeg:dash:mp4protection:2011", "value": keys.scheme}
    about[f"{{{CENC}}}default_KID"] = keys.uuid
    ET.SubElement(parent, "ContentProtection", about)
    for one in keys.systems:
        about = {"schemeIdUri": f"urn:uuid:{one.id}"}
        element = ET.SubElement(parent, "ContentProtection", about)
        ET.SubElement(element, f"{{{CENC}}}pssh").text = one.base64


def _subtitles(period: ET.Element, number: int, text: Subtitles, title: Title) -> None:
    """Text in fragments, or else one file of WebVTT, which cannot grow."""
    growing = title.growth is not None and not title.growth.ended
    if text.rendition is None and growing:
        return
    kind = "application/mp4" if text.rendition is not None else "text/vtt"
    about = {"id": str(number), "contentType": "text", "mimeType": kind}
    if text.language:
        about["lang"] = xml_text(text.language)
    if text.rendition is not None:
        about |= _alignment(text.rendition, "1")
    adaptation = ET.SubElement(period, "AdaptationSet", about)
    ET.SubElement(adaptation, "Label").text = xml_text(text.title)
    roles = ["forced-subtitle" if text.forced else "subtitle"] + ["main"] * text.default
    for role in roles:
        ET.SubElement(adaptation, "Role", {"schemeIdUri": ROLE, "value": role})
    if text.rendition is not None:
        _representation(adaptation, text.rendition)
        return
    representation = ET.SubElement(adaptation, "Representation", {"id": text.name})
    representation.set("bandwidth", str(int(8 * text.size / text.lead.seconds) + 1))
    ET.SubElement(representation, "BaseURL").text = f"{text.name}.vtt"


def _representation(adaptation: ET.Element, one: Rendition, keys: Keys | None = None) -> None:
    info, track = one.track.info, one.track
    size = int(one.made.fragments.sizes.sum())
    about = {
        "id": one.name,
        "bandwidth": str(int(8 * size / one.seconds) + 1 if one.seconds else 1),
    }
    if track.codec and WRITABLE_CODEC.fullmatch(track.codec):
        about["codecs"] = track.codec
    if one.kind == "video":
        if info.width and info.height:
            about |= {"width": str(info.width), "height": str(info.height)}
        rate = one.frame_rate
        if rate is not None:
            about["frameRate"] = f"{rate.numerator}/{rate.denominator}".removesuffix("/1")
    elif one.kind == "audio" and info.sample_rate:
        about["audioSamplingRate"] = str(info.sample_rate)
    representation = ET.SubElement(adaptation, "Representation", about)
    if one.kind == "audio" and info.channel_count in range(1, 7):
        ET.SubElement(
            representation,
            "AudioChannelConfiguration",
            {"schemeIdUri": CHANNELS, "value": str(info.channel_count)},
        )
    if keys is not None:
        _protection(representation, keys)
    if one.single_file:
        _single_file(representation, one)
        return
    template = ET.SubElement(
        representation,
        "SegmentTemplate",
        {
            "timescale": str(one.timescale),
            "presentationTimeOffset": str(int(one.edges[0])),
            "initialization": "$RepresentationID$/init.mp4",
            "media": "$RepresentationID$/$Time$.m4s",
        },
    )
    timeline = ET.SubElement(template, "SegmentTimeline")
    run: ET.Element | None = None
    reached: int | None = None
    for time, duration in zip(one.made.time.tolist(), one.made.duration.tolist(), strict=True):
        if run is not None and reached == time and run.get("d") == str(duration):
            run.set("r", str(int(run.get("r", "0")) + 1))
        else:
            attributes = {} if reached == time else {"t": str(time)}
            run = ET.SubElement(timeline, "S", attributes | {"d": str(duration)})
        reached = time + duration


def _single_file(representation: ET.Element, one: Rendition) -> None:
    """One file with a sidx (5.3.9.2): players read its segments by the ranges that it says."""
    ET.SubElement(representation, "BaseURL").text = f"{one.name}.mp4"
    init, end = len(one.made.init), len(one.made.init) + len(one.made.sidx)
    base = ET.SubElement(
        representation,
        "SegmentBase",
        {
            "timescale": str(one.timescale),
            "presentationTimeOffset": str(int(one.edges[0])),
            "indexRange": f"{init}-{end - 1}",
        },
    )
    ET.SubElement(base, "Initialization", {"range": f"0-{init - 1}"})


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
    segments = rendition.made
    durations = [f"#EXTINF:{duration}," for duration in _rounded(rendition)]
    if rendition.single_file:
        sizes = segments.fragments.sizes if sizes is None else sizes
        offsets, files = rendition.offsets.tolist(), [f"{rendition.name}.mp4"] * len(segments)
    else:
        offsets = [0] * len(segments)
        files = [f"{rendition.name}/{time}.m4s" for time in segments.time.tolist()]
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
    fragments = rendition.made.fragments
    sizes = rendition.media.samples.size[rendition.cuts[:-1]]
    ends: Int64 = fragments.sizes - fragments.payload + sizes
    return ends


def _groups(audio: Sequence[Rendition]) -> dict[str | None, list[Rendition]]:
    """Audio renditions by codec: within a group players change without asking (4.3.4.1.1)."""
    groups: dict[str | None, list[Rendition]] = {}
    by_codec: dict[str | None, list[Rendition]] = {}
    for one in audio:
        by_codec.setdefault(one.track.codec, []).append(one)
    for members in by_codec.values():
        name = "audio" if len(by_codec) == 1 else f"audio-{len(groups) + 1}"
        groups[name] = members
    return groups


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
