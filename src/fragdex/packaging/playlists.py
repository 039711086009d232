"""What the HLS playlists and the DASH manifest of a title say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.fragments.table import Int64
from fragdex.muxing.protection import Keys
from fragdex.packaging import m3u8, mpd
from fragdex.packaging.m3u8 import INDEPENDENT, Rates, Stretch, Variant, bit_rates
from fragdex.packaging.mpd import AdaptationSet, Representation, Segments, xml_duration
from fragdex.packaging.renditions import Rendition
from fragdex.packaging.subtitles import Subtitles
from fragdex.packaging.titling import Title, uneven


def manifest(title: Title) -> bytes:
    """The DASH manifest, as UTF-8 text: each rendition has a SegmentTimeline in ticks, or one file.

    Video renditions whose segments begin at the same times are one adaptation set, audio
    renditions are one if they have one language and codec.

    >>> manifest(Title(()))[:38]
    b"<?xml version='1.0' encoding='utf-8'?>"
    """
    lasts = [Fraction(int(np.diff(one.edges).max()), one.timescale) for one in title.renditions]
    longest = xml_duration(max(lasts, default=Fraction(2)))
    total = max((one.seconds for one in title.renditions), default=Fraction(0))
    about = _kind(title, total)
    if any(one.single_file for one in title.renditions):
        about |= {"profiles": mpd.ON_DEMAND, "maxSubsegmentDuration": longest}
    else:
        about["maxSegmentDuration"] = longest
    about["minBufferTime"] = "PT2S"
    sets = [_adaptation(number, members) for number, members in enumerate(_sets(title))]
    for text in title.subtitles:
        # one file of WebVTT cannot grow
        if text.rendition is not None or title.growth is None or title.growth.ended:
            sets.append(_subtitles(len(sets), text))
    return mpd.manifest(about, [mpd.Period({"id": "0", "start": "PT0S"}, sets)])


def _kind(title: Title, total: Fraction) -> dict[str, str]:
    """Whether it grows, and what players need to know then (5.3.1.2)."""
    growth = title.growth
    if growth is None or growth.ended:
        ends = {"mediaPresentationDuration": xml_duration(total)}
        return {"type": "static", "profiles": mpd.LIVE, **ends}
    return {
        "type": "dynamic",
        "profiles": mpd.LIVE,
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


def _adaptation(number: int, members: Sequence[Rendition]) -> AdaptationSet:
    first = members[0]
    sap = None
    if all(one.starts_with_sync for one in members):
        sap = "1" if all(one.is_closed for one in members) else "3"
    about = {"id": str(number), "contentType": first.kind, "mimeType": f"{first.kind}/mp4"}
    about |= _alignment(first, sap) | _language(first.language)
    same = len({one.keys for one in members}) == 1
    representations = [_representation(one, None if same else one.keys) for one in members]
    label, roles = None, []
    if first.kind == "audio":
        label, roles = first.title, ["main" if first.name == "a1" else "alternate"]
    return AdaptationSet(about, representations, label, roles, first.keys if same else None)


def _alignment(rendition: Rendition, sap: str | None) -> dict[str, str]:
    """That segments begin at the same times, and how; of one file they are its subsegments."""
    if rendition.single_file:
        return {"subsegmentAlignment": "true", "subsegmentStartsWithSAP": sap or "0"}
    return {"segmentAlignment": "true"} | ({"startWithSAP": sap} if sap else {})


def _language(language: str | None) -> dict[str, str]:
    return {"lang": language} if language else {}


def _subtitles(number: int, text: Subtitles) -> AdaptationSet:
    """Text in fragments, or else one file of WebVTT."""
    kind = "application/mp4" if text.rendition is not None else "text/vtt"
    about = {"id": str(number), "contentType": "text", "mimeType": kind}
    about |= _language(text.language)
    if text.rendition is not None:
        about |= _alignment(text.rendition, "1")
        one = _representation(text.rendition)
    else:
        rate = mpd.bandwidth(text.size, text.lead.seconds)
        one = Representation({"id": text.name, "bandwidth": rate}, address=f"{text.name}.vtt")
    roles = ["forced-subtitle" if text.forced else "subtitle"] + ["main"] * text.default
    return AdaptationSet(about, [one], text.title, roles)


def _representation(one: Rendition, keys: Keys | None = None) -> Representation:
    info = one.track.info
    is_sound = one.kind == "audio"
    return Representation(
        {
            "id": one.name,
            "bandwidth": mpd.bandwidth(int(one.made.fragments.sizes.sum()), one.seconds),
        },
        [one.track.codec],
        m3u8.picture_size(one.track),
        one.frame_rate,
        info.sample_rate if is_sound else None,
        info.channel_count if is_sound else None,
        keys,
        f"{one.name}.mp4" if one.single_file else None,
        _listed(one),
    )


def _listed(one: Rendition) -> Segments:
    """Its segments: by their times, or in one file by a sidx, whose place is said (5.3.9.2)."""
    about = {"timescale": str(one.timescale), "presentationTimeOffset": str(int(one.edges[0]))}
    if one.single_file:
        init = ByteRange(0, len(one.made.init))
        about["indexRange"] = mpd.span(ByteRange.of(init.stop, len(one.made.sidx)))
        return Segments("SegmentBase", about, {"range": mpd.span(init)})
    about["initialization"] = "$RepresentationID$/init.mp4"
    about["media"] = "$RepresentationID$/$Time$.m4s"
    times = one.made.time.tolist(), one.made.duration.tolist()
    return Segments("SegmentTemplate", about, None, *times)


def multivariant(title: Title) -> bytes:
    """The multivariant playlist (4.3.4), as UTF-8 text.

    Each video rendition is a variant, once for each codec of sound; of sound alone each audio
    rendition is one.

    >>> multivariant(Title(())).splitlines()[0]
    b'#EXTM3U'
    """
    lines = []
    video, audio = title.of("video"), title.of("audio")
    if any(one.media.hidden for one in video) and (not title.growth or title.growth.ended):
        # before players play, they show the picture where they begin
        lines.append("#EXT-X-START:TIME-OFFSET=0.001,PRECISE=YES")
    groups = _groups(audio) if video else {}
    for name, members in groups.items():
        chosen = next((one for one in members if one.track.info.enabled), members[0])
        lines += [
            m3u8.media(
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
        m3u8.media(
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
    # one rendition of a group plays at a time: the variant needs the dearest (4.3.4.2)
    texts = _dearest([_text_rates(one) for one in title.subtitles])
    sounds = {name: _dearest(list(map(_bit_rates, members))) for name, members in groups.items()}
    fragments = (one.rendition for one in title.subtitles if one.cues is None)
    text_codecs = dict.fromkeys(one.track.codec for one in fragments if one is not None)
    shown = {"SUBTITLES": "subtitles"} if title.subtitles else {}
    for one in video or audio:
        own = _bit_rates(one)
        for name, members in groups.items() or [("", [])]:
            parts = (own, sounds.get(name, (0, 0)), texts)
            peak, average = (sum(rates) for rates in zip(*parts, strict=True))
            codecs = [one.track.codec, *(other.track.codec for other in members[:1]), *text_codecs]
            chosen_groups = ({"AUDIO": name} if members else {}) | shown
            about = (one.track, one.frame_rate, _dynamic_range(one), chosen_groups)
            lines += Variant(f"{one.name}.m3u8", (peak, average), codecs, *about).lines()
    for one in filter(has_iframes, video):
        rates = bit_rates(np.diff(one.edges), _pictures(one), one.timescale)
        about_iframes = ([one.track.codec], one.track, None, _dynamic_range(one))
        lines.append(Variant(f"{one.name}-iframes.m3u8", rates, *about_iframes).iframes_line())
    independent = all(one.starts_with_sync for one in title.renditions)
    return m3u8.multivariant(lines, independent=independent)


def media(rendition: Rendition, title: Title) -> bytes:
    """The media playlist of a rendition (4.3.3), as UTF-8 text."""
    tags = [INDEPENDENT] if rendition.starts_with_sync else []
    return _playlist(rendition, title, tags, _stretch(rendition))


def subtitles(text: Subtitles, title: Title) -> bytes:
    """The media playlist of subtitles: WebVTT where they have cues, else fragments."""
    if text.cues is None:
        assert text.rendition is not None
        return media(text.rendition, title)
    uris = [f"{text.name}/{time}.vtt" for time in text.times]
    stretch = Stretch(_durations(text.lead)[: len(uris)], uris)
    return _playlist(text.lead, title, [], stretch)


def iframes(rendition: Rendition, title: Title) -> bytes:
    """The I-frame playlist of a video rendition (4.3.3.6): the first picture of each segment."""
    stretch = _stretch(rendition, _pictures(rendition))
    return _playlist(rendition, title, ["#EXT-X-I-FRAMES-ONLY"], stretch)


def _playlist(rendition: Rendition, title: Title, tags: Sequence[str], stretch: Stretch) -> bytes:
    growth = title.growth
    if growth is not None:
        ended = growth.ended
        return m3u8.media_playlist([stretch], growth.target, tags, event=True, ended=ended)
    lasts = np.diff(rendition.edges)
    lasts[0] += rendition.hidden
    target = m3u8.target_duration([Fraction(int(lasts.max()), rendition.timescale)])
    return m3u8.media_playlist([stretch], target, tags)


def _stretch(rendition: Rendition, sizes: Int64 | None = None) -> Stretch:
    """The segments, or their first `sizes` bytes; what is no whole file is a range (4.3.2.2)."""
    made, name = rendition.made, rendition.name
    durations, init = _durations(rendition), f"{name}/init.mp4"
    keys = list(rendition.keys.lines()) if rendition.keys is not None else []
    place = None
    if rendition.single_file:
        init, place = f"{name}.mp4", (len(made.init), 0)
        sizes = made.fragments.sizes if sizes is None else sizes
        offsets, uris = rendition.offsets.tolist(), [init] * len(made)
    else:
        offsets, uris = [0] * len(made), [f"{name}/{time}.m4s" for time in made.time.tolist()]
    ranges = None if sizes is None else list(zip(sizes.tolist(), offsets, strict=True))
    return Stretch(durations, uris, ranges, init, place, keys)


def has_iframes(rendition: Rendition) -> bool:
    """Whether an I-frame playlist can be written: each segment begins with a sync sample."""
    return rendition.kind == "video" and rendition.starts_with_sync


def _pictures(rendition: Rendition) -> Int64:
    """int64 bytes of each segment up to the end of its first picture."""
    fragments = rendition.made.fragments
    sizes = rendition.media.samples.size[rendition.cuts[:-1]]
    ends: Int64 = fragments.sizes - fragments.payload + sizes
    return ends


def _groups(audio: Sequence[Rendition]) -> dict[str, list[Rendition]]:
    """Audio renditions by codec: within a group players change without asking (4.3.4.1.1)."""
    groups: dict[str, list[Rendition]] = {}
    by_codec: dict[str | None, list[Rendition]] = {}
    for one in audio:
        by_codec.setdefault(one.track.codec, []).append(one)
    for members in by_codec.values():
        name = "audio" if len(by_codec) == 1 else f"audio-{len(groups) + 1}"
        groups[name] = members
    return groups


def _dearest(rates: Sequence[Rates]) -> Rates:
    return max((peak for peak, _ in rates), default=0), max((mean for _, mean in rates), default=0)


def _bit_rates(rendition: Rendition) -> Rates:
    sizes = rendition.made.fragments.sizes
    return bit_rates(np.diff(rendition.edges), sizes, rendition.timescale)


def _text_rates(text: Subtitles) -> Rates:
    if text.cues is None:
        assert text.rendition is not None
        return _bit_rates(text.rendition)
    lasts = np.diff(text.lead.edges)[: len(text.times)]
    return bit_rates(lasts, text.sizes, text.lead.timescale)


def _dynamic_range(rendition: Rendition) -> str | None:
    colour = rendition.track.info.colour
    if rendition.kind != "video" or colour is None:
        return None
    return colour.dynamic_range or "SDR"


def _durations(rendition: Rendition) -> list[str]:
    """Seconds of each segment."""
    scale = rendition.timescale
    edges = rendition.edges.copy()
    # Players put segments where the ones before them end; a segment lasts as long as its samples,
    # be some of them hidden.
    edges[0] -= rendition.hidden
    return m3u8.durations_between((2_000_000 * at + scale) // (2 * scale) for at in edges.tolist())
