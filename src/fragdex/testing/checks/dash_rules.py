"""Rules of an MPD beyond its elements and attributes (ISO/IEC 23009-1, 5.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fragdex.testing.checks.dash_schema import Place, duration
from fragdex.testing.checks.violation import Violation

__all__ = ["mpd_rules", "timeline_rules"]

ADDRESSES = ("SegmentBase", "SegmentList", "SegmentTemplate")
PROFILE = "urn:mpeg:dash:profile:"
ON_DEMAND, LIVE = PROFILE + "isoff-on-demand:2011", PROFILE + "isoff-live:2011"
_IDENTIFIER = re.compile(r"\$(?:(RepresentationID)|(Number|Bandwidth|Time|SubNumber)(%0\d+d)?|)\$")


def mpd_rules(mpd: Place) -> Iterator[Violation]:
    """What is wrong in the MPD, then in each Period."""
    about = mpd.element.attrib
    dynamic = about.get("type") == "dynamic"
    periods = mpd.children("Period")
    if dynamic:
        for name in ("availabilityStartTime", "publishTime"):
            if name not in about:
                yield mpd.wrong("dynamic", "5.3.1.2", f"a dynamic MPD without @{name}")
    else:
        for name in ("minimumUpdatePeriod", "timeShiftBufferDepth"):
            if name in about:
                yield mpd.wrong("static", "5.3.1.2", f"a static MPD with @{name}")
    last = periods[-1].element if periods else None
    ends = last is not None and "duration" in last.attrib
    if not ends and not {"mediaPresentationDuration", "minimumUpdatePeriod"} & about.keys():
        message = "neither @mediaPresentationDuration nor a duration of the last Period"
        yield mpd.wrong("duration", "5.3.1.2", message)
    yield from _periods(periods, dynamic, duration(about.get("mediaPresentationDuration")))
    profiles = [name.strip() for name in about.get("profiles", "").split(",")]
    for name in profiles:
        if not re.fullmatch(r"(?i)urn:[a-z0-9][a-z0-9-]+:\S+|https?://\S+", name):
            yield mpd.wrong("profiles", "8.1", f"{name!r} is no URI")
    for period in periods:
        yield from _period(period, profiles)


def _periods(periods: list[Place], dynamic: bool, total: float | None) -> Iterator[Violation]:
    seen: set[str] = set()
    at = 0.0
    end: float | None = 0.0
    for period in periods:
        own = period.element.get("id")
        if own is None and dynamic:
            yield period.wrong("period-id", "5.3.2.2", "a Period of a dynamic MPD without @id")
        if own is not None and own in seen:
            yield period.wrong("id-twice", "5.3.2.2", f"@id {own!r} stands twice")
        seen.add(own or "")
        start = duration(period.element.get("start"))
        if start is None and end is None:
            message = "no @start, and the Period before has no @duration"
            yield period.wrong("period-start", "5.3.2.1", message)
        start = start if start is not None else end if end is not None else at
        if start < at:
            yield period.wrong("period-order", "5.3.2.1", f"starts at {start}, before {at}")
        at = start
        shown = duration(period.element.get("duration"))
        end = None if shown is None else start + shown
    if periods and end is not None and total is not None and abs(end - total) > 1e-3:
        message = f"ends at {end}, the presentation at {total}"
        yield periods[-1].wrong("period-end", "5.3.1.2", message)


def _period(period: Place, profiles: list[str]) -> Iterator[Violation]:
    ids: dict[str, set[str]] = {"AdaptationSet": set(), "Representation": set()}
    for adaptation in period.children("AdaptationSet"):
        yield from _twice(adaptation, ids["AdaptationSet"])
        if not adaptation.children("Representation"):
            yield adaptation.wrong("representation", "5.3.3.1", "no Representation")
        yield from _bounds(adaptation)
        yield from _distinct(period, adaptation)
        for representation in adaptation.children("Representation"):
            yield from _twice(representation, ids["Representation"])
            yield from _representation((period, adaptation, representation), profiles)


def _twice(place: Place, seen: set[str]) -> Iterator[Violation]:
    own = place.element.get("id")
    if own is not None and own in seen:
        yield place.wrong("id-twice", "5.3.3.2 and 5.3.5.2", f"@id {own!r} stands twice")
    seen.add(own or "")


def _bounds(adaptation: Place) -> Iterator[Violation]:
    for name in ("Width", "Height", "Bandwidth"):
        own = name.lower()
        for representation in adaptation.children("Representation"):
            value = representation.element.get(own, "")
            for mark, wrong in (("min", int.__lt__), ("max", int.__gt__)):
                bound = adaptation.element.get(mark + name, "")
                if value.isdecimal() and bound.isdecimal() and wrong(int(value), int(bound)):
                    message = f"@{own} {value}, @{mark}{name} of the set is {bound}"
                    yield representation.wrong("bounds", "5.3.3.2", message)


def _distinct(period: Place, adaptation: Place) -> Iterator[Violation]:
    """Representations whose segments have one address."""
    seen: set[tuple[str, ...]] = set()
    for one in adaptation.children("Representation"):
        _, template = _address((period, adaptation, one))
        media = template[0].element.get("media") if template else None
        if media is None:
            continue
        media = media.replace("$RepresentationID$", one.element.get("id", ""))
        media = re.sub(r"\$Bandwidth(%0\d+d)?\$", one.element.get("bandwidth", ""), media)
        bases = [base.element.text or "" for base in one.children("BaseURL")]
        if (media, *bases) in seen:
            message = f"segments at {media!r}, as those of another Representation"
            yield one.wrong("template-distinct", "5.3.9.4.4", message)
        seen.add((media, *bases))


def _address(levels: tuple[Place, Place, Place]) -> tuple[set[str], list[Place]]:
    """The kinds of addressing that apply to a Representation, and the elements, inmost first."""
    found = [
        child for place in reversed(levels) for name in ADDRESSES for child in place.children(name)
    ]
    return {child.name for child in found}, found


def _representation(levels: tuple[Place, Place, Place], profiles: list[str]) -> Iterator[Violation]:
    _, adaptation, representation = levels
    mime = representation.element.get("mimeType", adaptation.element.get("mimeType"))
    if mime is None:
        yield representation.wrong("mime-type", "5.3.7.2", "@mimeType is missing")
    content = adaptation.element.get("contentType")
    if mime and content in ("video", "audio", "image") and mime.partition("/")[0] != content:
        message = f"@mimeType {mime}, @contentType {content}"
        yield representation.wrong("content-type", "5.3.3.2", message)
    kinds, found = _address(levels)
    if len(kinds) > 1:
        message = f"addressed by {' and '.join(sorted(kinds))}"
        yield representation.wrong("one-address", "5.3.9.1", message)
    bases = [base for place in levels for base in place.children("BaseURL")]
    if not kinds and not bases:
        yield representation.wrong("address", "5.3.9.1", "neither segments nor a BaseURL")
    if profiles == [ON_DEMAND]:
        ranges = [one for one in found if "indexRange" in one.element.attrib]
        if kinds - {"SegmentBase"} or (kinds and not ranges):
            message = "the on-demand profile needs SegmentBase@indexRange"
            yield representation.wrong("profile", "8.3", message)
    if profiles == [LIVE] and kinds - {"SegmentTemplate"}:
        yield representation.wrong("profile", "8.4", "the live profile needs SegmentTemplate")
    for place in found:
        if len(kinds) == 1:
            yield from _segments(place, found)


def _segments(place: Place, found: list[Place]) -> Iterator[Violation]:
    about = place.element.attrib
    for one in (place, *place.children()):
        for name in ("indexRange", "range", "mediaRange"):
            first, dash, last = one.element.get(name, "").partition("-")
            if dash and first.isdecimal() and last.isdecimal() and int(last) < int(first):
                message = f"@{name} {first}-{last} ends before it begins"
                yield one.wrong("range", "5.3.9.2.2", message)
    if about.get("timescale", "1").strip("0") == "":
        yield place.wrong("timescale", "5.3.9.2.2", "@timescale 0")
    timeline = place.children("SegmentTimeline")
    if timeline and "duration" in about:
        message = "both @duration and SegmentTimeline"
        yield place.wrong("duration-twice", "5.3.9.2.2", message)
    if place.name == "SegmentTemplate":
        known = [one for one in found if one.children("SegmentTimeline")]
        timed = known or any("duration" in one.element.attrib for one in found)
        if place is found[0] and not timed:
            message = "neither @duration nor SegmentTimeline"
            yield place.wrong("template-duration", "5.3.9.2.1", message)
        yield from _template(place)
    for one in timeline:
        yield from timeline_rules(one)


def _template(place: Place) -> Iterator[Violation]:
    for name in ("media", "index", "initialization", "bitstreamSwitching"):
        text = place.element.get(name, "")
        used = {match[2] for match in _IDENTIFIER.finditer(text)}
        if "$" in _IDENTIFIER.sub("", text):
            message = f"@{name} {text!r}: no identifier between dollars"
            yield place.wrong("identifier", "5.3.9.4.4", message)
        if {"Number", "Time"} <= used:
            message = f"@{name} {text!r}: both $Number$ and $Time$"
            yield place.wrong("number-and-time", "5.3.9.4.4", message)
        if name in ("initialization", "bitstreamSwitching") and used & {"Number", "Time"}:
            message = f"@{name} {text!r}: $Number$ or $Time$"
            yield place.wrong("identifier-of-media", "5.3.9.4.2", message)
        if name == "media" and text and not used & {"Number", "Time"}:
            message = f"@media {text!r}: neither $Number$ nor $Time$"
            yield place.wrong("media-constant", "5.3.9.4.4", message)


def timeline_rules(timeline: Place) -> Iterator[Violation]:
    """Rules of S@t, @d and @r (5.3.9.6)."""
    at: int | None = 0
    runs = timeline.children("S")
    for number, run in enumerate(runs):
        try:
            time, length, repeat = (int(run.element.get(name, "0")) for name in "tdr")
        except ValueError:
            return
        if length == 0:
            yield run.wrong("timeline-duration", "5.3.9.6.2", "@d is 0")
        if repeat < -1:
            yield run.wrong("timeline-repeat", "5.3.9.6.2", f"@r {repeat}")
        told = "t" in run.element.attrib
        if told and at is not None and number and time < at:
            message = f"@t {time}, the segments before end at {at}"
            yield run.wrong("timeline-overlap", "5.3.9.6.2", message)
        if not told and at is None:
            message = "no @t behind a run with @r -1"
            yield run.wrong("timeline-open", "5.3.9.6.2", message)
        begin = time if told else at or 0
        at = begin + length * (repeat + 1) if repeat >= 0 else None
