"""MPDs held against ISO/IEC 23009-1, and against the segments that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import accumulate, pairwise
from xml.etree import ElementTree as ET

from fragdex.record import record
from fragdex.testing.checks.samples import (
    InitTrack,
    SegmentSample,
    boxes_of,
    init_tracks,
    segment_samples,
    segment_seconds,
)
from fragdex.testing.checks.violation import BadAddress, Read, Violation, joined

NAMESPACE = "urn:mpeg:dash:schema:mpd:2011"
_DURATION = re.compile(
    r"P(?=\d|T)(?:(\d{1,9})D)?"
    r"(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12}(?:\.\d{1,20})?)S)?)?"
)
_DATE = r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?"
KINDS = {
    "text": r"(?s).*",
    "uint": r"\+?\d{1,20}",
    "int": r"[+-]?\d{1,20}",
    "double": r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|INF|NaN",
    "bool": r"true|false|0|1",
    "switch": r"true|false|\d{1,10}",
    "duration": r"-?P(?=\d|T)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?",
    "date": _DATE,
    "ratio": r"\d+:\d+",
    "rate": r"[1-9]\d*(/[1-9]\d*)?",
    "range": r"\d+-\d+",
    "sap": r"[0-6]",
    "token": r"\S+",
    "lang": r"[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*",
    "mime": r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(;.*)?",
    "rates": r"\d+( \d+)?",
    "type": r"static|dynamic",
    "scan": r"progressive|interlaced|unknown",
    "words": r"\S+( \S+)*",
}
_DESCRIPTOR = "schemeIdUri!text value:text id:text"
_MULTIPLE = (
    "timescale:uint presentationTimeOffset:uint presentationDuration:uint timeShiftBufferDepth:"
    "duration indexRange:range indexRangeExact:bool availabilityTimeOffset:double"
    " availabilityTimeComplete:bool eptDelta:int pdDelta:int duration:uint startNumber:uint"
    " endNumber:uint"
)
_COMMON = (
    "profiles:text width:uint height:uint sar:ratio frameRate:rate audioSamplingRate:rates"
    " mimeType:mime segmentProfiles:text codecs:text containerProfiles:text maximumSAPPeriod:double"
    " startWithSAP:sap maxPlayoutRate:double codingDependency:bool scanType:scan"
    " selectionPriority:uint tag:text"
)
_COMMON_IN = (
    "FramePacking* AudioChannelConfiguration* ContentProtection* OutputProtection"
    " EssentialProperty* SupplementalProperty* InbandEventStream* Switching* RandomAccess*"
    " GroupLabel* Label* ProducerReferenceTime* ContentPopularityRate* Resync*"
)
_SEGMENTS = "SegmentBase SegmentList SegmentTemplate"
_DESCRIPTORS = (
    "FramePacking AudioChannelConfiguration ContentProtection OutputProtection EssentialProperty"
    " SupplementalProperty InbandEventStream Accessibility Role Rating Viewpoint AssetIdentifier"
    " UTCTiming"
)
_URL = "sourceURL:text range:range"
ELEMENTS = {
    "MPD": (
        "id:text profiles!text type:type availabilityStartTime:date availabilityEndTime:date"
        " publishTime:date mediaPresentationDuration:duration minimumUpdatePeriod:duration"
        " minBufferTime!duration timeShiftBufferDepth:duration suggestedPresentationDelay:duration"
        " maxSegmentDuration:duration maxSubsegmentDuration:duration",
        "ProgramInformation* BaseURL* Location* PatchLocation* ServiceDescription*"
        " InitializationSet* InitializationGroup* InitializationPresentation*"
        " ContentProtection* Period+ Metrics* EssentialProperty* SupplementalProperty* UTCTiming*"
        " LeapSecondInformation",
    ),
    "Period": (
        "id:text start:duration duration:duration bitstreamSwitching:bool",
        f"BaseURL* {_SEGMENTS} AssetIdentifier EventStream* ServiceDescription* ContentProtection*"
        " AdaptationSet* Subset* SupplementalProperty* EmptyAdaptationSet* GroupLabel*"
        " Preselection*",
    ),
    "AdaptationSet": (
        f"id:uint group:uint lang:lang contentType:token par:ratio minBandwidth:uint"
        f" maxBandwidth:uint minWidth:uint maxWidth:uint minHeight:uint maxHeight:uint"
        f" minFrameRate:rate maxFrameRate:rate segmentAlignment:switch subsegmentAlignment:switch"
        f" subsegmentStartsWithSAP:sap bitstreamSwitching:bool initializationSetRef:words"
        f" initializationPrincipal:text {_COMMON}",
        f"{_COMMON_IN} Accessibility* Role* Rating* Viewpoint* ContentComponent* BaseURL*"
        f" {_SEGMENTS} Representation*",
    ),
    "Representation": (
        f"id!token bandwidth!uint qualityRanking:uint dependencyId:words associationId:words"
        f" associationType:words mediaStreamStructureId:words {_COMMON}",
        f"{_COMMON_IN} BaseURL* ExtendedBandwidth* SubRepresentation* {_SEGMENTS}",
    ),
    "SubRepresentation": (
        f"level:uint dependencyLevel:words bandwidth:uint contentComponent:words {_COMMON}",
        _COMMON_IN,
    ),
    "ContentComponent": (
        "id:uint lang:lang contentType:token par:ratio tag:text",
        "Accessibility* Role* Rating* Viewpoint*",
    ),
    "SegmentBase": (_MULTIPLE, "Initialization RepresentationIndex FailoverContent"),
    "SegmentList": (
        _MULTIPLE,
        "Initialization RepresentationIndex FailoverContent SegmentTimeline BitstreamSwitching"
        " SegmentURL*",
    ),
    "SegmentTemplate": (
        f"{_MULTIPLE} media:text index:text initialization:text bitstreamSwitching:text",
        "Initialization RepresentationIndex FailoverContent SegmentTimeline BitstreamSwitching",
    ),
    "SegmentTimeline": ("", "S+ Pattern*"),
    "S": ("t:uint n:uint d!uint r:int k:uint p:uint pE:uint", ""),
    "SegmentURL": ("media:text mediaRange:range index:text indexRange:range", ""),
    "Initialization": (_URL, ""),
    "RepresentationIndex": (_URL, ""),
    "BitstreamSwitching": (_URL, ""),
    "BaseURL": (
        "serviceLocation:text byteRange:text availabilityTimeOffset:double"
        " availabilityTimeComplete:bool timeShiftBufferDepth:duration rangeAccess:bool",
        "",
    ),
    "ProgramInformation": ("lang:lang moreInformationURL:text", "Title Source Copyright"),
    "ServiceDescription": (
        "id!uint",
        "Scope* Latency* PlaybackRate* OperatingQuality* OperatingBandwidth*",
    ),
    "Latency": ("referenceId:uint target:uint max:uint min:uint", "QualityLatency*"),
    "PlaybackRate": ("max:double min:double", ""),
    "ProducerReferenceTime": (
        "id!uint inband:bool type:token applicationScheme:text wallClockTime!date"
        " presentationTime!uint",
        "UTCTiming",
    ),
    **dict.fromkeys(_DESCRIPTORS.split(), (_DESCRIPTOR, "")),
}
"""Attributes (`!`: required) and children (`*` any number, `+` one or more, else one at most)."""
OPEN = {"ContentProtection", "EssentialProperty", "SupplementalProperty", "InbandEventStream"}
"""Descriptors that other specifications give attributes of their own."""


@record(frozen=True, slots=True)
class Place:
    """An element and its path, such as `/MPD/Period[2]/AdaptationSet[1]`."""

    element: ET.Element
    path: str

    @property
    def name(self) -> str:
        """The local name of an element of MPEG-DASH; "" for those of others."""
        space, _, name = self.element.tag.rpartition("}")
        return name if space == "{" + NAMESPACE else ""

    def children(self, name: str = "") -> list[Place]:
        """The elements inside, or those of one name, each counted among those of its name."""
        counts: dict[str, int] = {}
        matches = []
        for child in self.element:
            if not isinstance(child.tag, str):
                continue
            own = child.tag.rpartition("}")[2]
            counts[own] = counts.get(own, 0) + 1
            matches.append(Place(child, f"{self.path}/{own}[{counts[own]}]"))
        return [one for one in matches if not name or one.name == name]

    def wrong(self, rule: str, clause: str, message: str) -> Violation:
        """A rule that is broken here."""
        return Violation(rule, f"ISO/IEC 23009-1, {clause}", self.path, message)


def walk(place: Place) -> Iterator[Place]:
    """An element and all inside, in order."""
    yield place
    for child in place.children():
        yield from walk(child)


def schema_rules(mpd: Place) -> Iterator[Violation]:
    """Elements and attributes that are not declared, are missing, or have another kind of value."""
    for place in walk(mpd):
        declared = ELEMENTS.get(place.name)
        if declared is not None:
            yield from _attributes(place, declared[0])
            yield from _children(place, declared[1])


def _attributes(place: Place, declared: str) -> Iterator[Violation]:
    known = {}
    for text in declared.split():
        name, mark, kind = re.split("([!:])", text)
        known[name] = kind
        if mark == "!" and name not in place.element.attrib:
            yield place.wrong("attribute-required", "5", f"@{name} is missing")
    for name, value in place.element.attrib.items():
        if name.startswith("{") or (name not in known and place.name in OPEN):
            continue
        if name not in known:
            yield place.wrong("attribute-unknown", "5", f"@{name} is not declared")
        elif not re.fullmatch(KINDS[known[name]], value):
            message = f"@{name} {value!r}: not of the form of {known[name]}"
            yield place.wrong("attribute-kind", "5", message)


def _children(place: Place, declared: str) -> Iterator[Violation]:
    known = {name.rstrip("*+"): name[-1:] for name in declared.split()}
    names = [child.name for child in place.children()]
    for child in place.children():
        if child.name and child.name not in known:
            yield child.wrong("element-unknown", "5", f"{place.name} holds no {child.name}")
    for name, mark in known.items():
        if mark == "+" and name not in names:
            yield place.wrong("element-required", "5", f"no {name}")
        elif mark not in "*+" and names.count(name) > 1:
            yield place.wrong("element-twice", "5", f"{names.count(name)} {name}, one at most")


def duration(text: str | None) -> float | None:
    """Seconds of an xs:duration of days and less; None if it is invalid."""
    match = _DURATION.fullmatch(text or "")
    if match is None:
        return None
    units = (86400, 3600, 60, 1)
    return sum(float(part or 0) * unit for part, unit in zip(match.groups(), units, strict=True))


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
            yield mpd.wrong("profiles", "8.1", f"{name!r} is not a URI")
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
    addresses = [
        child for place in reversed(levels) for name in ADDRESSES for child in place.children(name)
    ]
    return {child.name for child in addresses}, addresses


def _representation(levels: tuple[Place, Place, Place], profiles: list[str]) -> Iterator[Violation]:
    _, adaptation, representation = levels
    mime = representation.element.get("mimeType", adaptation.element.get("mimeType"))
    if mime is None:
        yield representation.wrong("mime-type", "5.3.7.2", "@mimeType is missing")
    content = adaptation.element.get("contentType")
    if mime and content in ("video", "audio", "image") and mime.partition("/")[0] != content:
        message = f"@mimeType {mime}, @contentType {content}"
        yield representation.wrong("content-type", "5.3.3.2", message)
    kinds, address = _address(levels)
    if len(kinds) > 1:
        message = f"addressed by {' and '.join(sorted(kinds))}"
        yield representation.wrong("one-address", "5.3.9.1", message)
    bases = [base for place in levels for base in place.children("BaseURL")]
    if not kinds and not bases:
        yield representation.wrong("address", "5.3.9.1", "neither segments nor a BaseURL")
    if profiles == [ON_DEMAND]:
        ranges = [one for one in address if "indexRange" in one.element.attrib]
        if kinds - {"SegmentBase"} or (kinds and not ranges):
            message = "the on-demand profile needs SegmentBase@indexRange"
            yield representation.wrong("profile", "8.3", message)
    if profiles == [LIVE] and kinds - {"SegmentTemplate"}:
        yield representation.wrong("profile", "8.4", "the live profile needs SegmentTemplate")
    for place in address:
        if len(kinds) == 1:
            yield from _segments(place, address)


def _segments(place: Place, segments: list[Place]) -> Iterator[Violation]:
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
        known = [one for one in segments if one.children("SegmentTimeline")]
        timed = known or any("duration" in one.element.attrib for one in segments)
        if place is segments[0] and not timed:
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
        has_time = "t" in run.element.attrib
        if has_time and at is not None and number and time < at:
            message = f"@t {time}, the segments before end at {at}"
            yield run.wrong("timeline-overlap", "5.3.9.6.2", message)
        if not has_time and at is None:
            message = "no @t after a run with @r -1"
            yield run.wrong("timeline-open", "5.3.9.6.2", message)
        begin = time if has_time else at or 0
        at = begin + length * (repeat + 1) if repeat >= 0 else None


@record(frozen=True, slots=True)
class _Named:
    """A segment: address and part, and its time and duration in ticks where they are given."""

    uri: str
    part: str | None
    time: int | None
    ticks: int | None


def segment_rules(mpd: Place, read: Read) -> Iterator[Violation]:
    """What is wrong with the segments of each Representation of fragmented MP4."""
    for period in mpd.children("Period"):
        for adaptation in period.children("AdaptationSet"):
            for representation in adaptation.children("Representation"):
                levels = (period, adaptation, representation)
                mime = representation.element.get("mimeType", adaptation.element.get("mimeType"))
                if (mime or "").endswith("/mp4"):
                    yield from _Representation(mpd, levels, read).violations()


class _Representation:
    def __init__(self, mpd: Place, levels: tuple[Place, Place, Place], read: Read) -> None:
        self._mpd, self._read, self._place = mpd, read, levels[2]
        self._base = ""
        for place in (mpd, *levels):
            for base in place.children("BaseURL")[:1]:
                self._base = joined(self._base, (base.element.text or "").strip())
        self.about: dict[str, str] = {}
        self._parts: dict[str, Place] = {}
        self._segments: dict[str, str] = {}
        self._urls: list[Place] = []
        self._kind = ""
        for place in levels:
            self.about |= place.element.attrib
            for one in place.children():
                if one.name in ("SegmentBase", "SegmentList", "SegmentTemplate"):
                    self._kind = one.name
                    self._segments |= one.element.attrib
                    self._parts |= {child.name: child for child in one.children()}
                    self._urls = one.children("SegmentURL")
        self._period = duration(levels[0].element.get("duration")) or duration(
            mpd.element.get("mediaPresentationDuration")
        )

    def _get(self, uri: str, part: str | None) -> bytes:
        data = self._read(joined(self._base, uri))
        if part is None:
            return data
        first, _, last = part.partition("-")
        return data[int(first) : int(last) + 1]

    def violations(self) -> Iterator[Violation]:
        if not self._kind:
            return
        self._scale = int(self._segments.get("timescale", "1"))
        init = self._init()
        tracks = init_tracks(init)
        if not tracks:
            yield self._place.wrong("init", "6.3.3", "no moov with a track in the initialization")
            return
        yield from self._codecs(tracks)
        track = next((one for one in tracks if one.kind == "vide"), tracks[0])
        if self._kind == "SegmentBase":
            yield from self._indexed()
            return
        named = list(self._named())
        data = [self._get(one.uri, one.part) for one in named]
        of_segments = [segment_samples(one, track) for one in data]
        for number, (one, samples) in enumerate(zip(named, of_segments, strict=True)):
            following = of_segments[number + 1] if number + 1 < len(of_segments) else []
            yield from self._segment(one, track, samples, following)
        yield from self._rate(named, [len(one) for one in data])

    def _init(self) -> bytes:
        template = self._segments.get("initialization")
        if template is not None:
            return self._get(self._filled(template), None)
        own = self._parts.get("Initialization")
        if own is None:
            return self._get("", None)
        return self._get(own.element.get("sourceURL", ""), own.element.get("range"))

    def _filled(self, template: str, number: int = 0, time: int = 0) -> str:
        words = {"Number": number, "Time": time, "Bandwidth": int(self.about["bandwidth"])}

        def value(match: re.Match[str]) -> str:
            if match[1] == "RepresentationID":
                return self.about["id"]
            return "$" if not match[1] else (match[2] or "%d") % words[match[1]]

        return re.sub(r"\$([A-Za-z]*)(%0\d+d)?\$", value, template)

    def _codecs(self, tracks: list[InitTrack]) -> Iterator[Violation]:
        declared = self.about.get("codecs")
        real = {track.codec for track in tracks if track.codec}
        missing = real - {name.strip() for name in (declared or "").split(",")}
        if declared is not None and missing:
            message = f"@codecs does not name {', '.join(sorted(missing))}"
            yield self._place.wrong("codecs-real", "5.3.7.2", message)

    def _times(self) -> Iterator[tuple[int, int]]:
        """Start and duration of each segment, in ticks."""
        offset = int(self._segments.get("presentationTimeOffset", "0"))
        end = None if self._period is None else offset + round(self._period * self._scale)
        timeline = self._parts.get("SegmentTimeline")
        if timeline is None:
            step = int(self._segments["duration"])
            count = -(-((end or 0) - offset) // step)
            yield from ((offset + n * step, step) for n in range(count))
            return
        runs = [child.element.attrib for child in timeline.children("S")]
        at = 0
        for number, run in enumerate(runs):
            at, step, repeat = int(run.get("t", at)), int(run["d"]), int(run.get("r", "0"))
            if repeat < 0:
                until = int(runs[number + 1]["t"]) if number + 1 < len(runs) else end or at + step
                repeat = -(-(until - at) // step) - 1
            yield from ((at + n * step, step) for n in range(repeat + 1))
            at += step * (repeat + 1)

    def _named(self) -> Iterator[_Named]:
        if self._kind == "SegmentTemplate":
            first = int(self._segments.get("startNumber", "1"))
            for number, (time, ticks) in enumerate(self._times(), first):
                uri = self._filled(self._segments["media"], number, time)
                yield _Named(uri, None, time, ticks)
            return
        timed = "SegmentTimeline" in self._parts or "duration" in self._segments
        times = list(self._times()) if timed else []
        for number, url in enumerate(self._urls):
            span = times[number] if number < len(times) else (None, None)
            yield _Named(url.element.get("media", ""), url.element.get("mediaRange"), *span)

    def _segment(
        self,
        named: _Named,
        track: InitTrack,
        samples: list[SegmentSample],
        following: list[SegmentSample],
    ) -> Iterator[Violation]:
        where = f"{named.uri or self._base} {named.part or ''}".strip()
        if not samples:
            message = f"{where}: no sample of track {track.id}"
            yield self._place.wrong("segment-empty", "6.3.4", message)
            return
        sap = self.about.get("startWithSAP", "0")
        if track.kind == "vide" and sap in ("1", "2") and not samples[0].sync:
            message = f"{where}: @startWithSAP {sap}, and no sync sample is first"
            yield self._place.wrong("sap-real", "5.3.7.2", message)
        if named.time is None or named.ticks is None or "SegmentTimeline" not in self._parts:
            return
        step = Fraction(1, self._scale)
        first = min(sample.cts for sample in samples)
        begins = {first, first - track.start, samples[0].dts, max(first, track.start)}
        times = {Fraction(one, track.timescale) for one in begins}
        times.add(Fraction(first - track.start, track.timescale) + track.delay)
        if all(abs(one - named.time * step) > step for one in times):
            message = f"{where}: S@t {named.time}, it begins at {first} / {track.timescale}"
            yield self._place.wrong("time-real", "5.3.9.6.2", message)
        real = list(segment_seconds(samples, track))
        if following:
            until = min(sample.cts for sample in following) - max(first, track.start)
            real.append(Fraction(until, track.timescale))
        if all(abs(one - named.ticks * step) > step for one in real):
            message = f"{where}: S@d {named.ticks}, it lasts {float(real[0])} s"
            yield self._place.wrong("duration-real", "5.3.9.6.2", message)

    def _rate(self, named: list[_Named], sizes: list[int]) -> Iterator[Violation]:
        """The buffer of @minBufferTime never runs empty at @bandwidth (5.3.5.2)."""
        rate = int(self.about["bandwidth"])
        buffer = duration(self._mpd.element.get("minBufferTime")) or 0
        if any(one.ticks is None for one in named):
            return
        ends = accumulate(Fraction(one.ticks or 0, self._scale) for one in named)
        bits = accumulate(8 * size for size in sizes)
        # how far the bits are ahead of what the rate brought; a later start needs less
        lead = low = Fraction(0)
        for seconds, total in zip(ends, bits, strict=True):
            lead = total - rate * seconds
            if lead - low > rate * Fraction(buffer):
                message = f"@bandwidth {rate} is too low for a buffer of {buffer} s"
                yield self._place.wrong("bandwidth-real", "5.3.5.2", message)
                return
            low = min(low, lead)

    def _indexed(self) -> Iterator[Violation]:
        part = self._segments.get("indexRange")
        if part is None:
            return
        boxes = boxes_of(self._get("", part))
        if not boxes or boxes[0].type != "sidx" or boxes[0].opaque:
            yield self._place.wrong("index-range", "5.3.9.2.2", f"no sidx at {part}")
            return
        first, _, last = part.partition("-")
        stop = int(first) + boxes[0].size
        if self._segments.get("indexRangeExact") == "true" and stop != int(last) + 1:
            message = f"@indexRangeExact, and the sidx ends at {stop - 1}"
            yield self._place.wrong("index-exact", "5.3.9.2.2", message)
        yield from self._references(boxes[0].fields, stop)

    def _references(self, sidx: Mapping[str, object], stop: int) -> Iterator[Violation]:
        whole = self._get("", None)
        rows: object = sidx["references"]
        sizes = [int(row["referenced_size"]) for row in rows]  # type: ignore[attr-defined]
        at = stop + int(str(sidx["first_offset"]))
        for start, end in pairwise(accumulate(sizes, initial=at)):
            if end > len(whole) or whole[start + 4 : start + 8] not in {
                *(b"moof", b"styp", b"sidx", b"emsg", b"prft"),
            }:
                message = f"the sidx names bytes {start} to {end - 1}: no subsegment"
                yield self._place.wrong("index-reference", "6.3.4.3", message)
                return


def check_dash(text: str | bytes, read: Read | None = None) -> list[Violation]:
    """What is wrong in an MPD: elements, attributes and their values, then rules between them.

    Args:
        text: the MPD.
        read: gives the bytes of a URI, which is relative to the MPD unless a BaseURL is absolute.
            With it the segments of fragmented MP4 are held against codecs, times, durations,
            bandwidth, startWithSAP and the sidx. They are read only where the text breaks no rule.

    Raises: what `read` raises.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie(3)
    >>> mpd = fragdex.index(data).export("dash", uri="film.mp4")
    >>> check_dash(mpd, lambda uri: data)
    []
    >>> print(*check_dash(mpd.replace(b' minBufferTime="PT2S"', b"")))
    /MPD: @minBufferTime is missing (attribute-required; ISO/IEC 23009-1, 5)
    """
    here = "/MPD"
    data = text if isinstance(text, bytes) else text.encode()
    if b"<!DOCTYPE" in data:
        return [Violation("doctype", "ISO/IEC 23009-1, 5.2", here, "a document type declaration")]
    try:
        root = ET.fromstring(text)
    except (ET.ParseError, LookupError, ValueError) as error:  # the latter two: its encoding
        return [Violation("xml", "ISO/IEC 23009-1, 5.2", here, str(error))]
    mpd = Place(root, here)
    if root.tag != f"{{{NAMESPACE}}}MPD":
        return [mpd.wrong("root", "5.2", f"the root element is {root.tag}")]
    violations = list(schema_rules(mpd))
    if not violations:
        violations += mpd_rules(mpd)
    if not violations and read is not None:
        try:
            violations += segment_rules(mpd, read)
        except BadAddress as error:
            violations.append(mpd.wrong("uri", "5.6", str(error)))
    return list(dict.fromkeys(violations))
