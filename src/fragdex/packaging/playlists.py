"""What the HLS playlists and the DASH manifest of a title say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import prod

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.fragments.table import Int64
from fragdex.muxing.between import schemes_of
from fragdex.muxing.protection import Keys
from fragdex.packaging import m3u8, mpd
from fragdex.packaging.date_ranges import program_date
from fragdex.packaging.m3u8 import INDEPENDENT, Rates, Stretch, Variant, bit_rates
from fragdex.packaging.mpd import AdaptationSet, Representation, Segments, xml_duration
from fragdex.packaging.renditions import Rendition
from fragdex.packaging.subtitles import Subtitles
from fragdex.packaging.titling import Title, uneven
from fragdex.seeking.model import Track


def manifest(title: Title) -> bytes:
    """The DASH manifest, as UTF-8 text: each rendition has a SegmentTimeline in ticks, or one file.

    Video renditions whose segments begin at the same times are one adaptation set, audio
    renditions are one if they have one language and codec.

    >>> manifest(Title(()))[:38]
    b"<?xml version='1.0' encoding='utf-8'?>"
    """
    renditions = [one for period in title.periods for one in period.renditions]
    lasts = [Fraction(int(np.diff(one.edges).max()), one.timescale) for one in renditions]
    longest = xml_duration(max(lasts, default=Fraction(2)))
    about = _kind(title, sum((one.seconds for one in title.periods), Fraction(0)))
    if any(one.single_file for one in renditions):
        about |= {"profiles": mpd.ON_DEMAND, "maxSubsegmentDuration": longest}
    else:
        about["maxSegmentDuration"] = longest
    about["minBufferTime"] = "PT2S"
    periods = []
    start = Fraction(0)
    for number, period in enumerate(title.periods):
        sets = [_adaptation(at, members, period) for at, members in enumerate(_sets(period))]
        for text in period.subtitles:
            # one file of WebVTT cannot grow
            if text.rendition is not None or title.growth is None or title.growth.ended:
                sets.append(_subtitles(len(sets), text))
        lasts_ = {"duration": xml_duration(period.seconds)} if title.later else {}
        place = {"id": str(number), "start": xml_duration(start)} | lasts_
        periods.append(mpd.Period(place, sets))
        start += period.seconds
    return mpd.manifest(about, periods)


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


def _adaptation(number: int, members: Sequence[Rendition], title: Title) -> AdaptationSet:
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
        label, roles = first.title, ["main" if first is title.of("audio")[0] else "alternate"]
    keys = first.keys if same else None
    return AdaptationSet(about, representations, label, roles, keys, events=_events(members))


def _events(members: Sequence[Rendition]) -> tuple[tuple[str, str], ...]:
    """Which events stand in the segments."""
    return schemes_of(event for one in members for event in one.events)


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
    events = () if text.rendition is None else _events([text.rendition])
    return AdaptationSet(about, [one], text.title, roles, events=events)


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
        about=info,
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
    groups = _groups(audio, title) if video else {}
    for name, members in groups.items():
        chosen = next((one for one in members if one.track.info.enabled), members[0])
        lines += [
            m3u8.media(
                "audio",
                one.title,
                group=name,
                language=one.language,
                channels=m3u8.channels_of(one.track),
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
    renditions = [one for period in title.periods for one in period.renditions]
    keys = (line for one in renditions if one.keys is not None for line in one.keys.lines())
    lines += [f"#EXT-X-SESSION-KEY:{line}" for line in dict.fromkeys(keys)]
    # one rendition of a group plays at a time: the variant needs the most expensive (4.3.4.2)
    texts = _dearest([_text_rates(one) for period in title.periods for one in period.subtitles])
    sounds = {
        name: _dearest([_rates_through(one, title) for one in members])
        for name, members in groups.items()
    }
    subtitles = (text for period in title.periods for text in period.subtitles)
    fragments = (one.rendition for one in subtitles if one.cues is None)
    text_codecs = dict.fromkeys(one.track.codec for one in fragments if one is not None)
    shown = {"SUBTITLES": "subtitles"} if title.subtitles else {}
    for one in video or audio:
        own, parts = _rates_through(one, title), title.through(one)
        for name, members in groups.items() or [("", [])]:
            together = zip(own, sounds.get(name, (0, 0)), texts, strict=True)
            peak, average = (sum(rates) for rates in together)
            codecs = [
                *_codecs(one, title),
                *(c for other in members[:1] for c in _codecs(other, title)),
            ]
            chosen_groups = ({"AUDIO": name} if members else {}) | shown
            rate = max(filter(None, (part.highest_frame_rate for part in parts)), default=None)
            about = (_largest(parts), rate, _dynamic_range(parts), chosen_groups)
            lines += Variant(
                f"{one.name}.m3u8", (peak, average), [*codecs, *text_codecs], *about
            ).lines()
    for one in video:
        if has_iframes(one, title):
            parts = title.through(one)
            rates = _dearest(
                [bit_rates(np.diff(part.edges), _pictures(part), part.timescale) for part in parts]
            )
            named = (_codecs(one, title), _largest(parts), None, _dynamic_range(parts))
            lines.append(Variant(f"{one.name}-iframes.m3u8", rates, *named).iframes_line())
    independent = all(one.starts_with_sync for one in renditions)
    return m3u8.multivariant(lines, independent=independent)


def media(rendition: Rendition, title: Title) -> bytes:
    """The media playlist of a rendition (4.3.3), as UTF-8 text."""
    parts = title.through(rendition)
    tags = [INDEPENDENT] if all(one.starts_with_sync for one in parts) else []
    stretches = map(_stretch, parts)
    if title.zero is not None:
        stretches = map(_dated, stretches, parts, _zeros(title, title.zero))
    return _playlist(parts, title, tags, stretches)


def _zeros(title: Title, zero: datetime) -> Iterator[datetime]:
    """When the presentation time 0 of each period was; periods follow each other."""
    reached: Fraction | None = None
    for one in title.periods:
        begins = one.renditions[0].begins
        reached = begins if reached is None else reached
        yield zero + timedelta(microseconds=int((reached - begins) * 10**6))
        reached += one.seconds


def _dated(stretch: Stretch, rendition: Rendition, zero: datetime) -> Stretch:
    """With the date of its first segment, and the events in front of the segments they are in."""
    scale, made = rendition.timescale, rendition.made
    first = Fraction(int(rendition.edges[0]), scale)
    before = {0: [f"#EXT-X-PROGRAM-DATE-TIME:{program_date(zero, first)}"]}
    for one in rendition.date_ranges:
        at = one.arrives * scale
        if rendition.later and at >= int(rendition.edges[-1]):
            continue  # its segment is not complete
        number = max(int(np.searchsorted(made.time, int(at // 1), side="right")) - 1, 0)
        before.setdefault(number, []).append(one.line(zero))
    return replace(stretch, before=before)


def subtitles(text: Subtitles, title: Title) -> bytes:
    """The media playlist of subtitles: WebVTT where they have cues, else fragments."""
    parts = title.text_through(text)
    leads = [one.lead if one.cues is not None else _fragments_of(one) for one in parts]
    if text.cues is None:
        tags = [INDEPENDENT] if all(one.starts_with_sync for one in leads) else []
        return _playlist(leads, title, tags, map(_stretch, leads))
    stretches = []
    for one in parts:
        uris = [f"{one.name}/{time}.vtt" for time in one.times]
        stretches.append(Stretch(_durations(one.lead)[: len(uris)], uris))
    return _playlist(leads, title, [], stretches)


def _fragments_of(text: Subtitles) -> Rendition:
    assert text.rendition is not None
    return text.rendition


def iframes(rendition: Rendition, title: Title) -> bytes:
    """The I-frame playlist of a video rendition (4.3.3.6): the first picture of each segment."""
    parts = title.through(rendition)
    stretches = [_stretch(one, _pictures(one)) for one in parts]
    return _playlist(parts, title, ["#EXT-X-I-FRAMES-ONLY"], stretches)


def _playlist(
    parts: Sequence[Rendition], title: Title, tags: Sequence[str], stretches: Iterable[Stretch]
) -> bytes:
    growth = title.growth
    if growth is not None:
        ended = growth.ended
        return m3u8.media_playlist(stretches, growth.target, tags, event=True, ended=ended)
    longest = []
    for one in parts:
        lasts = np.diff(one.edges)
        lasts[0] += one.hidden
        longest.append(Fraction(int(lasts.max()), one.timescale))
    return m3u8.media_playlist(stretches, m3u8.target_duration(longest), tags)


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


def has_iframes(rendition: Rendition, title: Title) -> bool:
    """Whether an I-frame playlist can be written: each segment begins with a sync sample."""
    parts = title.through(rendition)
    return rendition.kind == "video" and all(one.starts_with_sync for one in parts)


def _pictures(rendition: Rendition) -> Int64:
    """int64 bytes of each segment up to the end of its first picture."""
    fragments = rendition.made.fragments
    sizes = rendition.media.samples.size[rendition.cuts[:-1]]
    ends: Int64 = fragments.sizes - fragments.payload + sizes
    return ends


def _groups(audio: Sequence[Rendition], title: Title) -> dict[str, list[Rendition]]:
    """Audio renditions by codec: within a group players change without asking (4.3.4.1.1)."""
    groups: dict[str, list[Rendition]] = {}
    by_codec: dict[tuple[str | None, ...], list[Rendition]] = {}
    for one in audio:
        by_codec.setdefault(tuple(_codecs(one, title)), []).append(one)
    for members in by_codec.values():
        name = "audio" if len(by_codec) == 1 else f"audio-{len(groups) + 1}"
        groups[name] = members
    return groups


def _dearest(rates: Sequence[Rates]) -> Rates:
    return max((peak for peak, _ in rates), default=0), max((mean for _, mean in rates), default=0)


def _codecs(rendition: Rendition, title: Title) -> list[str | None]:
    return [one.track.codec for one in title.through(rendition)]


def _largest(parts: Sequence[Rendition]) -> Track:
    """The track with the most pixels: what plays all periods needs its size."""
    return max((one.track for one in parts), key=lambda t: prod(m3u8.picture_size(t) or (0,)))


def _rates_through(rendition: Rendition, title: Title) -> Rates:
    """The peak is that of the period that needs most."""
    parts = title.through(rendition)
    rates = list(map(_bit_rates, parts))
    seconds = sum((one.seconds for one in parts), Fraction(0))
    if len(parts) == 1 or not seconds:
        return rates[0]
    size = sum(int(one.made.fragments.sizes.sum()) for one in parts)
    return max(peak for peak, _ in rates), int(mpd.bandwidth(size, seconds))


def _bit_rates(rendition: Rendition) -> Rates:
    sizes = rendition.made.fragments.sizes
    return bit_rates(np.diff(rendition.edges), sizes, rendition.timescale)


def _text_rates(text: Subtitles) -> Rates:
    if text.cues is None:
        assert text.rendition is not None
        return _bit_rates(text.rendition)
    lasts = np.diff(text.lead.edges)[: len(text.times)]
    return bit_rates(lasts, text.sizes, text.lead.timescale)


def _dynamic_range(parts: Sequence[Rendition]) -> str | None:
    """Of all periods; None: not known of one, or not one."""
    ranges = {one.track.info.dynamic_range if one.kind == "video" else None for one in parts}
    return ranges.pop() if len(ranges) == 1 else None


def _durations(rendition: Rendition) -> list[str]:
    """Seconds of each segment."""
    scale = rendition.timescale
    edges = rendition.edges.copy()
    # Players put segments where the ones before them end; a segment lasts as long as its samples,
    # be some of them hidden.
    edges[0] -= rendition.hidden
    return m3u8.durations_between((2_000_000 * at + scale) // (2 * scale) for at in edges.tolist())
