"""Elements and attributes of an MPD, with their kinds of values (ISO/IEC 23009-1, 5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from fragdex.testing.checks.violation import Violation

__all__ = ["NAMESPACE", "Place", "duration", "schema_rules", "walk"]

NAMESPACE = "urn:mpeg:dash:schema:mpd:2011"
_DURATION = re.compile(
    r"P(?=\d|T)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
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
    **dict.fromkeys(_DESCRIPTORS.split(), (_DESCRIPTOR, "")),
}
"""Attributes (`!`: required) and children (`*` any number, `+` one or more, else one at most)."""
OPEN = {"ContentProtection", "EssentialProperty", "SupplementalProperty", "InbandEventStream"}
"""Descriptors that other specifications give attributes of their own."""


@dataclass(frozen=True, slots=True)
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
        found = []
        for child in self.element:
            if not isinstance(child.tag, str):
                continue
            own = child.tag.rpartition("}")[2]
            counts[own] = counts.get(own, 0) + 1
            found.append(Place(child, f"{self.path}/{own}[{counts[own]}]"))
        return [one for one in found if not name or one.name == name]

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
    """Seconds of an xs:duration of days and less; None for what is none.

    >>> duration("PT1M2.5S"), duration("P1D"), duration("4s")
    (62.5, 86400.0, None)
    """
    match = _DURATION.fullmatch(text or "")
    if match is None:
        return None
    units = (86400, 3600, 60, 1)
    return sum(float(part or 0) * unit for part, unit in zip(match.groups(), units, strict=True))
