"""What the HLS playlists and the DASH manifest of a title say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from math import ceil, prod
from typing import Final

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.fragments.table import Int64
from fragdex.muxing.between import MOST_SCHEMES
from fragdex.muxing.protection import Keys
from fragdex.packaging import m3u8, mpd
from fragdex.packaging.continued import Continued
from fragdex.packaging.m3u8 import GAP, INDEPENDENT, Rates, Stretch, Variant, bit_rates
from fragdex.packaging.mpd import AdaptationSet, Representation, Segments, xml_duration
from fragdex.packaging.renditions import Rendition
from fragdex.packaging.stretches import (
    after_kept,
    durations_of,
    gap_lines,
    last_shortened,
    micro,
    shortened,
    stretch_of,
    stretches_of,
    with_lines,
)
from fragdex.packaging.subtitles import Subtitles
from fragdex.packaging.titling import Title, uneven
from fragdex.seeking.model import Track

MANIFEST: Final = "manifest.mpd"
"""The name of the MPD."""
CLOCK: Final = "time.txt"
"""The name of what tells players of a growing title the time of day, to the millisecond."""


def manifest(title: Title, low_latency: bool = False) -> bytes:
    """The DASH manifest, as UTF-8 text: each rendition has a SegmentTimeline in ticks, or one file.

    Video renditions whose segments begin at the same times are one adaptation set, audio
    renditions are one if they have one language and codec.

    Args:
        low_latency: whether it also lists the segment that is not complete, of a title that grows,
            for servers that answer with its parts as they come.
    """
    renditions = [one for period in title.periods for one in period.renditions]
    lasts = [Fraction(int(one.lasts.max()), one.timescale) for one in renditions]
    longest = xml_duration(max(lasts, default=Fraction(2)))
    about = _kind(title, sum((one.seconds for one in title.periods), Fraction(0)))
    if any(one.single_file for one in renditions):
        about |= {"profiles": mpd.ON_DEMAND, "maxSubsegmentDuration": longest}
    else:
        about["maxSegmentDuration"] = longest
    about["minBufferTime"] = "PT2S"
    is_ahead = low_latency and about["type"] == "dynamic"
    latency = low_latency_of(title, about) if is_ahead else None
    periods = []
    start = Fraction(0)
    for number, period in enumerate(title.periods):
        grows = is_ahead and number == len(title.later)
        sets = media_sets(period, title, grows)
        for text in period.subtitles:
            # one file of WebVTT cannot grow
            if text.rendition is not None or title.growth is None or title.growth.ended:
                sets.append(_subtitles(len(sets), text))
        # how long the last one lasts, nobody knows while it grows
        is_open = about["type"] == "dynamic" and number == len(title.later)
        lasts_ = {"duration": xml_duration(period.seconds)} if title.later and not is_open else {}
        place = {"id": str(number), "start": xml_duration(start)} | lasts_
        periods.append(mpd.Period(place, sets))
        start += period.seconds
    # players need no other host to know the time of day
    clocks = [(mpd.HTTP_ISO, CLOCK)] if is_ahead else []
    clocks += [(mpd.HTTP_HEAD, MANIFEST)] if about["type"] == "dynamic" else []
    return mpd.manifest(about, periods, clocks, latency)


_UPDATES: Final = Fraction(1)
"""Seconds from one update of a manifest to the next: dash.js makes no more of them."""


def low_latency_of(title: Title, about: dict[str, str]) -> Fraction:
    """Seconds from when media are made until they should be on show; the rest is put into `about`.

    It is what the writer needs from one write to the next and before it, three parts, and the
    time until a player knows of the next segment.
    """
    last, growth = title.periods[-1], title.growth
    lead = last.renditions[0]
    assert growth is not None
    assert lead.promised is not None
    part, scale = lead.promised.part, lead.timescale
    known = sum((one.seconds for one in title.periods), Fraction(0)) + _begun(lead)
    written = lead.track.fragments.duration[-_FRAGMENTS:]
    hold = Fraction(int(written.max()), lead.track.timescale) + 3 * part + _UPDATES
    since = Fraction((growth.changed - growth.began) // timedelta(microseconds=1), 10**6)
    about["minimumUpdatePeriod"] = xml_duration(_UPDATES)
    about["minBufferTime"] = xml_duration(part)
    # Shaka counts from the end that the timeline has of the segment that is not complete, and
    # adds the offset of its availability
    ahead = Fraction(_expected(lead), scale) - _begun(lead) + _early(lead)
    about["suggestedPresentationDelay"] = xml_duration(ahead + hold)
    return Fraction(ceil(2 * (hold + max(since - known, Fraction(0)))), 2)


_FRAGMENTS: Final = 8
"""Last fragments by which the time from one write to the next is judged."""
_EXPECTED: Final = 8
"""Last segments by which the length of the next one is judged."""


def _expected(one: Rendition) -> int:
    """Ticks that the segment lasts that is not complete, as those before it.

    A player requests what follows at its end: an end too late costs it less than one too early.
    """
    lasts = one.lasts
    return int(lasts[1:][-_EXPECTED:].max() if len(lasts) > 1 else lasts[0])


def _begun(one: Rendition) -> Fraction:
    """Seconds of the segment that is not complete, as far as it is there."""
    ticks = 0 if one.open is None else int(one.open.durations.sum())
    return Fraction(ticks, one.timescale)


def _early(one: Rendition) -> Fraction:
    """Seconds before its end at which a segment can be requested: all but a part of it."""
    assert one.promised is not None
    return max(Fraction(int(one.lasts[0]), one.timescale) - one.promised.part, Fraction(0))


def _kind(title: Title, total: Fraction) -> dict[str, str]:
    """Whether it grows, and what players need to know then (5.3.1.2)."""
    growth = title.growth
    if growth is None or growth.ended:
        ends = {"mediaPresentationDuration": xml_duration(total)}
        return {"type": "static", "profiles": mpd.LIVE, **ends}
    return {
        "type": "dynamic",
        "profiles": mpd.LIVE,
        "availabilityStartTime": utc(growth.began),
        "publishTime": utc(growth.changed),
        "minimumUpdatePeriod": xml_duration(Fraction(growth.target, 2)),
    }


def utc(time: datetime) -> str:
    """A time as XML Schema and ISO 8601 have it, to the millisecond."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def media_sets(period: Title, title: Title, grows: bool = False) -> list[AdaptationSet]:
    """The video and audio of a period; `grows`: with the segment that is not complete."""
    sets = enumerate(_sets(period))
    return [_adaptation(n, members, period, title, grows) for n, members in sets]


def _sets(title: Title) -> list[list[Rendition]]:
    """Renditions that players may change between without a break."""
    video = title.of("video")
    sets = [video] if video and not uneven(video) else [[one] for one in video]
    audio: dict[object, list[Rendition]] = {}
    for one in title.of("audio"):
        key = one.language, one.track.codec, one.timescale, one.edges.tobytes()
        audio.setdefault(key, []).append(one)
    return [*sets, *audio.values()]


def _adaptation(
    number: int, members: Sequence[Rendition], period: Title, title: Title, grows: bool
) -> AdaptationSet:
    first = members[0]
    sap = None
    if _independent(members, title):
        sap = "1" if all(one.is_closed for one in members) else "3"
    about = {"id": str(number), "contentType": first.kind, "mimeType": f"{first.kind}/mp4"}
    about |= _alignment(first, sap) | _language(first.language)
    same = len({one.keys for one in members}) == 1
    representations = [
        _representation(one, None if same else one.keys, grows and one.parts is not None)
        for one in members
    ]
    label, roles = None, []
    if first.kind == "audio":
        label, roles = first.title, ["main" if first is period.of("audio")[0] else "alternate"]
    keys = first.keys if same else None
    made = None
    if grows and first.produced is not None:
        time, clock = first.produced
        made = time * first.timescale // first.track.timescale, utc(clock)
    schemes = dict.fromkeys(scheme for one in members for scheme in one.event_schemes)
    events = tuple(schemes)[:MOST_SCHEMES]
    return AdaptationSet(about, representations, label, roles, keys, events=events, produced=made)


def _independent(parts: Sequence[Rendition], title: Title) -> bool:
    """Whether each segment can be decoded alone; of what grows, nobody knows what comes."""
    return title.growth is None and all(one.starts_with_sync for one in parts)


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
    events = () if text.rendition is None else text.rendition.event_schemes
    return AdaptationSet(about, [one], text.title, roles, events=events)


def _representation(
    one: Rendition, keys: Keys | None = None, grows: bool = False
) -> Representation:
    info = one.track.info
    is_sound = one.kind == "audio"
    return Representation(
        {
            "id": one.name,
            "bandwidth": mpd.bandwidth(int(one.sizes.sum()), one.seconds),
        },
        [one.track.codec],
        m3u8.picture_size(one.track),
        one.frame_rate,
        info.sample_rate if is_sound else None,
        info.channel_count if is_sound else None,
        keys,
        f"{one.name}.mp4" if one.single_file else None,
        _listed(one, grows),
        about=info,
    )


def _listed(one: Rendition, grows: bool) -> Segments:
    """Its segments: by their times, or in one file by a sidx, whose place is said (5.3.9.2).

    Args:
        grows: whether the one that is not complete is listed too.
    """
    about = {"timescale": str(one.timescale), "presentationTimeOffset": str(int(one.edges[0]))}
    if one.single_file:
        init = ByteRange(0, len(one.made.init))
        about["indexRange"] = mpd.span(ByteRange.of(init.stop, len(one.made.sidx)))
        return Segments("SegmentBase", about, {"range": mpd.span(init)})
    about["initialization"] = "$RepresentationID$/init.mp4"
    about["media"] = "$RepresentationID$/$Time$.m4s"
    stretch, before, first = one, None, 0
    if isinstance(one, Continued):
        # the last one that is kept is the first one of the stretch
        stretch, before, first = one.stretch, one.kept.timeline, 1
    elif not one.later:
        before, first = one.timeline, one.count
    times, lasts = stretch.times[first:].tolist(), stretch.ticks[first:].tolist()
    if grows:
        about |= {
            "availabilityTimeOffset": f"{float(_early(one)):.6g}",
            "availabilityTimeComplete": "false",
        }
        times, lasts = [*times, int(one.edges[-1])], [*lasts, _expected(one)]
    return Segments("SegmentTemplate", about, None, times, lasts, before=before)


def open_name(one: Rendition) -> str:
    """The name of the segment of a rendition that is not complete."""
    return f"{one.name}/{int(one.edges[-1])}.m4s"


def multivariant(title: Title) -> bytes:
    """The multivariant playlist (4.3.4), as UTF-8 text.

    Each video rendition is a variant, once for each codec of sound; of sound alone each audio
    rendition is one.
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
            about = (_largest(parts), rate, _dynamic_range(parts), chosen_groups, title.captioned)
            lines += Variant(
                f"{one.name}.m3u8", (peak, average), [*codecs, *text_codecs], *about
            ).lines()
    for one in video:
        if has_iframes(one, title):
            parts = title.through(one)
            rates = _dearest(
                [bit_rates(part.lasts, part.picture_sizes, part.timescale) for part in parts]
            )
            named = (_codecs(one, title), _largest(parts), None, _dynamic_range(parts))
            lines.append(Variant(f"{one.name}-iframes.m3u8", rates, *named).iframes_line())
    independent = _independent(renditions, title)
    return m3u8.multivariant(lines, independent=independent)


def media_writer(
    rendition: Rendition,
    title: Title,
    low_latency: bool = False,
    ahead: bool = False,
    until: int | None = None,
) -> Callable[[bool], bytes]:
    """Gives the media playlist of a rendition (4.3.3), as UTF-8 text.

    It is given whether to leave out segments that players have already, in lists that name parts.

    Args:
        low_latency: whether it names parts, of a title that grows.
        ahead: whether it also names those of a segment that is not complete, which some players
            do not expect in the first list that they load.
        until: number of the segment before which it ends, as of `shown_until`, without saying that
            the title has ended; None: all.
    """
    parts = title.through(rendition)
    tags = [INDEPENDENT] if _independent(parts, title) else []
    stretches, written = after_kept(parts, title)
    if not low_latency or title.growth is None or parts[-1].parts is None:
        return lambda _: _playlist(parts, title, tags, stretches, written=written)
    is_open = ahead and not title.growth.ended and names_open(rendition, title)
    listed, tail = _parts(rendition, title, until)
    stretches = list(map(with_lines, stretches, listed))
    if until is None and not is_open:
        tail = []
    if not title.growth.ended:
        tail += _reports(rendition, title)
    promised = parts[-1].promised
    assert promised is not None
    latency = partial(m3u8.LowLatency, promised.part, tail, until=until)
    return lambda skip: _playlist(parts, title, tags, stretches, latency(skip=skip), written)


_PARTS_LISTED: Final = 3
"""Target durations before the end of a list whose segments have their parts listed."""


def _parts(
    rendition: Rendition, title: Title, until: int | None
) -> tuple[list[dict[int, list[str]]], list[str]]:
    """The lines of parts in front of the segments that they are of, and those after the last one.

    The next part is named too: it may be requested before it is there.

    Args:
        until: as of `media`.
    """
    listed: list[dict[int, list[str]]] = []
    tail: list[str] = []
    growth = title.growth
    assert growth is not None
    left = Fraction(_PARTS_LISTED * growth.target)
    for one, numbers in reversed(_numbered(rendition, title)):
        edges, scale = one.edges, one.timescale
        shown = one.count if until is None else int(np.searchsorted(numbers[:-1], until))
        before: dict[int, list[str]] = {}
        listed.insert(0, before)
        if not shown:
            tail = [m3u8.preload_hint(part_name(one, one.first_part))]
        if not shown or (left <= 0 and (until is None or numbers[shown - 1] < until - 2)):
            continue
        since = int(edges[shown] - left * scale)
        first = min(int(np.searchsorted(edges, since)), shown - 1)
        if until is not None:  # a gap may be as long
            first = min(first, int(np.searchsorted(numbers, until - 2)))
        # the first segment may begin before its first picture, which no part of it can
        first = max(first, 1)
        left -= Fraction(int(edges[shown] - edges[0]), scale)
        rows = one.part_rows(first)
        number = one.part_count - len(rows)
        at, segment = 0, -1
        for of, ticks, independent in rows:
            if of == shown < one.count:
                break
            # ends are rounded, not durations: so parts end where their segment does
            at, segment = at if of == segment else int(edges[of]), of
            begin, end = micro(at, scale), micro(at + ticks, scale)
            at += ticks
            line = m3u8.part(end - begin, part_name(one, number), independent)
            before.setdefault(segment, []).append(line)
            number += 1
        if not tail and not (shown == one.count and growth.ended):
            opened = before.pop(shown, [])
            if opened:
                opened = [*gap_lines(one).get(shown, ()), *opened]
            tail = [*opened, m3u8.preload_hint(part_name(one, number))]
    return listed, tail


_SEGMENTS_FIRST: Final = 3
"""Complete segments of a list that also names one that is not: players look into some at first."""


def names_open(rendition: Rendition, title: Title) -> bool:
    """Whether a list of a growing title names the parts of a segment that is not complete."""
    parts = title.through(rendition)
    is_enough = sum(one.count for one in parts) >= _SEGMENTS_FIRST
    return (is_enough or not title.captioned) and parts[-1].parts is not None


def part_name(one: Rendition, number: int) -> str:
    """The name of a part of a rendition, by its number from 0."""
    return f"{one.name}/part-{number}.m4s"


def progress(rendition: Rendition, title: Title) -> tuple[int, int]:
    """How many segments of a list are complete, and parts of the one after them."""
    one, numbers = _numbered(rendition, title)[-1]
    begun = one.open_count if names_open(rendition, title) else 0
    return int(numbers[-1 if begun else -2]) + (not begun), begun


def shown_until(rendition: Rendition, title: Title, segment: int | None) -> int | None:
    """Where the list ends for who waits for a segment: the number of the first one without.

    It has no more than the one after it, so that a player that has parts of a segment finds the
    next ones in each list, whatever came at once; and only lists for a segment that never comes
    say that the title has ended. hls.js (1.7.4, `getFragmentAtPosition`) leaves out the
    rest of a segment of which it has a part once a list has its parts no more, or has ended.

    Args:
        segment: its number.

    Returns: None: at its end.
    """
    growth = title.growth
    if segment is None or growth is None or title.through(rendition)[-1].parts is None:
        return None
    complete, until = int(_numbered(rendition, title)[-1][1][-2]) + 1, segment + 2
    if growth.ended:
        return min(until, complete) if segment < complete else None
    # players that have less than the segments at hand load whole ones
    kept = shortened(rendition, title)
    known = 0 if kept is None else kept.written.count
    return until if known < until <= complete else None


def last_part(rendition: Rendition, title: Title) -> tuple[int, int]:
    """Number of the last segment of a list, be it complete or not, and of its last part."""
    complete, begun = progress(rendition, title)
    if begun:
        return complete, begun - 1
    last = title.through(rendition)[-1]
    return complete - 1, len(last.parts_in(last.count - 1)) - 1


def _numbered(rendition: Rendition, title: Title) -> list[tuple[Rendition, Int64]]:
    """The stretches of a list, and the number in it of each segment, and of the one after them.

    Segments that stand for gaps have numbers too. They begin with the last line that is kept.
    """
    stretches, before, parts = [], 0, title.through(rendition)
    first, kept = last_shortened(parts)
    if kept is not None:
        parts, before = [kept.stretch, *parts[first + 1 :]], kept.written.count - 1
    for one in parts:
        gaps = np.zeros(one.count + 1, np.int64)
        for number, lines in gap_lines(one).items():
            gaps[number] = len(lines) // 3
        numbers = before + np.arange(one.count + 1) + np.cumsum(gaps)
        stretches.append((one, numbers))
        before = int(numbers[-1])
    return stretches


def _reports(rendition: Rendition, title: Title) -> list[str]:
    """Where the other lists are by now."""
    return [
        m3u8.rendition_report(f"{one.name}.m3u8", *last_part(one, title))
        for one in title.renditions
        if one is not rendition and one.parts is not None
    ]


def subtitles(text: Subtitles, title: Title) -> bytes:
    """The media playlist of subtitles: WebVTT where they have cues, else fragments."""
    parts = title.text_through(text)
    leads = [one.lead if one.cues is not None else _fragments_of(one) for one in parts]
    if text.cues is None:
        tags = [INDEPENDENT] if _independent(leads, title) else []
        return _playlist(leads, title, tags, map(stretch_of, leads))
    stretches = []
    for one in parts:
        uris = [f"{one.name}/{time}.vtt" for time in one.times]
        before = gap_lines(one.lead)
        stretches.append(Stretch(durations_of(one.lead)[: len(uris)], uris, before=before))
    return _playlist(leads, title, [], stretches)


def _fragments_of(text: Subtitles) -> Rendition:
    assert text.rendition is not None
    return text.rendition


def iframes(rendition: Rendition, title: Title) -> bytes:
    """The I-frame playlist of a video rendition (4.3.3.6): the first picture of each segment.

    Segments that begin with another picture, since key frames are too far apart, have none.
    """
    parts = title.through(rendition)
    stretches = [
        with_lines(stretch, {n: [GAP] for n in np.flatnonzero(~one.syncs).tolist()})
        for one, stretch in zip(
            parts, stretches_of(parts, [one.picture_sizes for one in parts]), strict=True
        )
    ]
    return _playlist(parts, title, ["#EXT-X-I-FRAMES-ONLY"], stretches)


def _playlist(
    parts: Sequence[Rendition],
    title: Title,
    tags: Sequence[str],
    stretches: Iterable[Stretch],
    low_latency: m3u8.LowLatency | None = None,
    written: m3u8.Written | None = None,
) -> bytes:
    growth = title.growth
    if growth is not None:
        return m3u8.media_playlist(
            stretches,
            growth.target,
            tags,
            event=True,
            ended=growth.ended,
            low_latency=low_latency,
            written=written,
        )
    longest = []
    for one in parts:
        lasts = one.lasts
        lasts[0] += one.hidden
        longest.append(Fraction(int(lasts.max()), one.timescale))
    return m3u8.media_playlist(stretches, m3u8.target_duration(longest), tags)


def has_iframes(rendition: Rendition, title: Title) -> bool:
    """Whether an I-frame playlist can be written: segments begin with sync samples.

    Where key frames may be too far apart for the target duration, not all need to.
    """
    parts = title.through(rendition)
    all_sync = title.promised is not None or all(one.starts_with_sync for one in parts)
    return rendition.kind == "video" and all_sync


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
    size = sum(int(one.sizes.sum()) for one in parts)
    return max(peak for peak, _ in rates), int(mpd.bandwidth(size, seconds))


def _bit_rates(rendition: Rendition) -> Rates:
    return bit_rates(rendition.lasts, rendition.sizes, rendition.timescale)


def _text_rates(text: Subtitles) -> Rates:
    if text.cues is None:
        return _bit_rates(_fragments_of(text))
    lasts = text.lead.lasts[: len(text.times)]
    return bit_rates(lasts, text.sizes, text.lead.timescale)


def _dynamic_range(parts: Sequence[Rendition]) -> str | None:
    """Of all periods; None: not known of one, or not one."""
    ranges = {one.track.info.dynamic_range if one.kind == "video" else None for one in parts}
    return ranges.pop() if len(ranges) == 1 else None
