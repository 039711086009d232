"""The DASH manifest of made segments (ISO/IEC 23009-1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from xml.etree import ElementTree as ET

import numpy as np

from fragdex.formats.dash import NAMESPACE, xml_duration, xml_text
from fragdex.formats.hls_attributes import WRITABLE_CODEC
from fragdex.views.drm import Keys
from fragdex.views.renditions import Rendition
from fragdex.views.subtitles import Subtitles
from fragdex.views.title import Title, uneven

__all__ = ["write"]

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
    found = [video] if video and not uneven(video) else [[one] for one in video]
    audio: dict[object, list[Rendition]] = {}
    for one in title.of("audio"):
        key = one.language, one.track.codec, one.timescale, one.edges.tolist()
        audio.setdefault(repr(key), []).append(one)
    return [*found, *audio.values()]


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
            told = {} if reached == time else {"t": str(time)}
            run = ET.SubElement(timeline, "S", told | {"d": str(duration)})
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
