"""The writer of DASH manifests (ISO/IEC 23009-1). Those who call it decide what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final
from xml.etree import ElementTree as ET

from fragdex.byterange import ByteRange
from fragdex.fragments.track_info import TrackInfo
from fragdex.muxing.protection import Keys
from fragdex.packaging.m3u8 import WRITABLE_CODEC
from fragdex.record import record

NAMESPACE: Final = "urn:mpeg:dash:schema:mpd:2011"
LIVE: Final = "urn:mpeg:dash:profile:isoff-live:2011"
ON_DEMAND: Final = "urn:mpeg:dash:profile:isoff-on-demand:2011"
LISTED: Final = "urn:mpeg:dash:profile:isoff-main:2011,urn:mpeg:dash:profile:full:2011"
_CENC: Final = "urn:mpeg:cenc:2013"
ET.register_namespace("cenc", _CENC)
_SCTE: Final = "urn:scte:dash:scte214-extensions"
ET.register_namespace("scte214", _SCTE)
_CICP: Final = ("ColourPrimaries", "TransferCharacteristics", "MatrixCoefficients")
_ROLE: Final = "urn:mpeg:dash:role:2011"
HTTP_HEAD: Final = "urn:mpeg:dash:utc:http-head:2014"
"""The Date of an answer to HEAD, in whole seconds."""
HTTP_ISO: Final = "urn:mpeg:dash:utc:http-iso:2014"
"""The body of an answer, as ISO 8601 has it."""
_CHANNELS: Final = "urn:mpeg:mpegB:cicp:ChannelConfiguration"
"""By number of channels, where that is the layout's number as well: 1 to 6 (ISO/IEC 23091-3)."""
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Attributes = Mapping[str, str]
"""In the order in which they are written; characters that XML cannot hold are replaced."""


@record(frozen=True, slots=True)
class Timeline:
    """Runs of a SegmentTimeline that only grows (5.3.9.6): those that are over as text.

    Attributes:
        text: the elements of runs that are over, as they stand in a Representation.
        time: of the last run; None: it begins where the run before ends.
        duration: ticks of each of its segments.
        count: of its segments; 0: there is no run.
        reached: where it ends.
    """

    text: str = ""
    time: int | None = None
    duration: int = 0
    count: int = 0
    reached: int | None = None

    def then(self, times: Iterable[int], durations: Iterable[int]) -> Timeline:
        """With segments after these."""
        lines = [self.text] if self.text else []
        time, duration, count, reached = self.time, self.duration, self.count, self.reached
        for at, lasts in zip(times, durations, strict=True):
            if count and (at, lasts) == (reached, duration):
                count += 1
            else:
                if count:
                    lines.append(f"<S {_spelled(_run(time, duration, count))} />")
                time, duration, count = None if at == reached else at, lasts, 1
            reached = at + lasts
        return Timeline(_BETWEEN_RUNS.join(lines), time, duration, count, reached)


_BETWEEN_RUNS: Final = "\n" + " " * 12
"""What is between the runs of a Representation: each stands on a line."""


def _run(time: int | None, duration: int, count: int) -> dict[str, str]:
    begins = {} if time is None else {"t": str(time)}
    repeats = {"r": str(count - 1)} if count > 1 else {}
    return begins | {"d": str(duration)} | repeats


def _spelled(attributes: Attributes) -> str:
    return " ".join(f'{name}="{value}"' for name, value in attributes.items())


@record(frozen=True, slots=True)
class Segments:
    """Where the segments of a representation are (5.3.9).

    Attributes:
        element: SegmentTemplate, SegmentList or SegmentBase.
        attributes: of it.
        init: attributes of Initialization; None: it is in the template.
        times, durations: ticks of each segment; None: nothing says them here.
        ranges: bytes of each segment; None: they are not listed.
        all_times: say the time of each run of equal durations, also where it is where the one
            before ended.
        before: the runs of segments before these; only of a Representation.
    """

    element: str
    attributes: Attributes
    init: Attributes | None = None
    times: Sequence[int] = ()
    durations: Sequence[int] | None = None
    ranges: Sequence[ByteRange] = ()
    all_times: bool = False
    before: Timeline | None = None


@record(frozen=True, slots=True)
class Representation:
    """One version of the content of a set (5.3.5).

    Attributes:
        attributes: `id`, `bandwidth` and others that come before those below.
        codecs: RFC 6381 strings; one that is not known or not writable: none is named.
        size: width and height in pixels.
        frame_rate: pictures a second.
        sampling_rate, channels: of sound.
        keys: which keys decrypt it, where they are not those of its set.
        address: of its bytes, as text; None: the template says it.
        segments: None: those of the set, or it is one file without them.
        properties: scheme and value of what players have to know to show it (EssentialProperty).
        about: what is known of the track: colours, shape of pixels, further codecs, objects.
    """

    attributes: Attributes
    codecs: Sequence[str | None] = ()
    size: tuple[int, int] | None = None
    frame_rate: Fraction | None = None
    sampling_rate: int | None = None
    channels: int | None = None
    keys: Keys | None = None
    address: str | None = None
    segments: Segments | None = None
    properties: Sequence[tuple[str, str]] = ()
    about: TrackInfo | None = None


@record(frozen=True, slots=True)
class AdaptationSet:
    """Representations that players may change between (5.3.3).

    Attributes:
        attributes: of the element.
        representations: at least one.
        label: what people choose it by.
        roles: of urn:mpeg:dash:role:2011.
        keys: which keys decrypt all of them.
        components: attributes of ContentComponent, where several kinds lie together.
        segments: of all representations.
        events: scheme and value of the event messages in their segments (5.10.3.3).
        produced: presentation time in ticks, and when in UTC it was made (5.12).
    """

    attributes: Attributes
    representations: Sequence[Representation]
    label: str | None = None
    roles: Sequence[str] = ()
    keys: Keys | None = None
    components: Sequence[Attributes] = ()
    segments: Segments | None = None
    events: Sequence[tuple[str, str]] = ()
    produced: tuple[int, str] | None = None

    def text(self) -> str:
        """The element alone, for a manifest that has been written."""
        period = ET.Element("Period")
        _adaptation_set(period, self)
        (element,) = period
        ET.indent(element)
        return ET.tostring(element, encoding="unicode") + "\n"


@record(frozen=True, slots=True)
class Period:
    """A part of the presentation on its own timeline (5.3.2).

    Attributes:
        attributes: of the element.
        sets: what players choose from.
        address: what the addresses in it are relative to; None: the manifest.
    """

    attributes: Attributes
    sets: Sequence[AdaptationSet]
    address: str | None = None

    def text(self) -> str:
        """The element alone, as it stands in a manifest."""
        mpd = ET.Element("MPD")
        _period(mpd, self)
        ET.indent(mpd)
        (element,) = mpd
        return ET.tostring(element, encoding="unicode").rstrip()


def manifest(
    attributes: Attributes,
    periods: Iterable[Period],
    clocks: Iterable[tuple[str, str]] = (),
    latency: Fraction | None = None,
    written: str = "",
) -> bytes:
    """The manifest, as UTF-8 text.

    Args:
        attributes, periods: what it says.
        clocks: scheme and address of what tells the time that it counts by, the best first
            (5.8.4.11).
        latency: seconds after its production at which media should be on show (Annex K.3);
            players keep to it without another pace. None: as they like.
        written: periods before these, as `Period.text` gives them, one after the other.
    """
    periods = list(periods)
    mpd = ET.Element("MPD", {"xmlns": NAMESPACE} | _clean(attributes))
    if latency is not None:
        service = _add(mpd, "ServiceDescription", {"id": "0"})
        _add(service, "Latency", {"target": str(int(latency * 1000))})
        _add(service, "PlaybackRate", {"min": "1", "max": "1"})
    if written:
        mpd.append(ET.Comment(_WRITTEN))
    for period in periods:
        _period(mpd, period)
    for scheme, place in clocks:
        _add(mpd, "UTCTiming", {"schemeIdUri": scheme, "value": place})
    ET.indent(mpd)
    text: bytes = ET.tostring(mpd, encoding="utf-8", xml_declaration=True)
    known = {
        _place_of(segments.before): segments.before.text
        for period in periods
        for one in period.sets
        for segments in (representation.segments for representation in one.representations)
        if segments is not None and segments.before is not None
    }
    text = _PLACES.sub(lambda found: known[found[1].decode()].encode(), text)
    if written:
        text = text.replace(f"<!--{_WRITTEN}-->".encode(), written.encode(), 1)
    return text + b"\n"


_WRITTEN: Final = "periods"
"""A comment that stands where the text of periods goes."""


def _period(mpd: ET.Element, period: Period) -> None:
    element = _add(mpd, "Period", period.attributes)
    if period.address is not None:
        _add(element, "BaseURL").text = _xml_text(period.address)
    for one in period.sets:
        _adaptation_set(element, one)


def _place_of(before: Timeline) -> str:
    """A comment that stands where the text of a timeline goes."""
    return f"runs {id(before)}"


_PLACES = re.compile(rb"<!--(runs \d+)-->")


def _adaptation_set(period: ET.Element, one: AdaptationSet) -> None:
    element = _add(period, "AdaptationSet", one.attributes)
    _protection(element, one.keys)
    for scheme, value in one.events:
        about = {"schemeIdUri": scheme} | ({"value": value} if value else {})
        _add(element, "InbandEventStream", about)
    if one.label is not None:
        _add(element, "Label").text = _xml_text(one.label)
    if one.produced is not None:
        time, clock = one.produced
        about = {"id": "0", "type": "encoder", "presentationTime": str(time)}
        _add(element, "ProducerReferenceTime", about | {"wallClockTime": clock})
    for role in one.roles:
        _add(element, "Role", {"schemeIdUri": _ROLE, "value": role})
    for component in one.components:
        _add(element, "ContentComponent", component)
    if one.segments is not None:
        _segments(element, one.segments)
    for representation in one.representations:
        _representation(element, representation)


def _protection(parent: ET.Element, keys: Keys | None) -> None:
    """Which key, and what each protection system needs (ISO/IEC 23001-7, 11.2)."""
    if keys is None:
        return
    about = {"schemeIdUri": "urn:mpeg:dash:mp4protection:2011", "value": keys.scheme}
    about[f"{{{_CENC}}}default_KID"] = keys.uuid
    _add(parent, "ContentProtection", about)
    for system in keys.systems:
        about = {"schemeIdUri": f"urn:uuid:{system.id}"}
        element = _add(parent, "ContentProtection", about)
        ET.SubElement(element, f"{{{_CENC}}}pssh").text = system.base64


def _representation(adaptation: ET.Element, one: Representation) -> None:
    about = dict(one.attributes)
    named = [codec for codec in one.codecs if codec and WRITABLE_CODEC.fullmatch(codec)]
    if named and len(named) == len(one.codecs):
        about["codecs"] = ",".join(dict.fromkeys(named))
    if one.size is not None:
        about["width"], about["height"] = map(str, one.size)
    if one.frame_rate is not None:
        text = f"{one.frame_rate.numerator}/{one.frame_rate.denominator}"
        about["frameRate"] = text.removesuffix("/1")
    info = one.about
    if info is not None and info.pixel_aspect is not None and one.size is not None:
        about["sar"] = "{}:{}".format(*info.pixel_aspect)
    if info is not None and (supplemental := info.supplemental_codec):
        about[f"{{{_SCTE}}}supplementalCodecs"], about[f"{{{_SCTE}}}supplementalProfiles"] = (
            supplemental
        )
    if one.sampling_rate:
        about["audioSamplingRate"] = str(one.sampling_rate)
    element = _add(adaptation, "Representation", about)
    if one.channels in range(1, 7):
        value = {"schemeIdUri": _CHANNELS, "value": str(one.channels)}
        _add(element, "AudioChannelConfiguration", value)
    _protection(element, one.keys)
    for scheme, meaning in one.properties:
        _add(element, "EssentialProperty", {"schemeIdUri": scheme, "value": meaning})
    for name, scheme, meaning in () if info is None else _properties(info):
        _add(element, name, {"schemeIdUri": scheme, "value": meaning})
    if one.address is not None:
        _add(element, "BaseURL").text = _xml_text(one.address)
    if one.segments is not None:
        _segments(element, one.segments)


def _properties(info: TrackInfo) -> list[tuple[str, str, str]]:
    """Colours (ISO/IEC 23001-8; others cannot show PQ) and objects (ETSI TS 103 420)."""
    properties = []
    if info.colour is not None:
        colour = info.colour
        name = "EssentialProperty" if colour.dynamic_range == "PQ" else "SupplementalProperty"
        codes = (colour.primaries, colour.transfer, colour.matrix)
        for what, code in zip(_CICP, codes, strict=True):
            if code != 2:  # not said
                properties.append((name, f"urn:mpeg:mpegB:cicp:{what}", str(code)))
    if info.joint_objects:
        for what, value in (("Type", "JOC"), ("ComplexityIndex", str(info.joint_objects))):
            scheme = f"tag:dolby.com,2018:dash:EC3_Extension{what}:2018"
            properties.append(("SupplementalProperty", scheme, value))
    return properties


def _segments(representation: ET.Element, segments: Segments) -> None:
    element = _add(representation, segments.element, segments.attributes)
    if segments.init is not None:
        _add(element, "Initialization", segments.init)
    if segments.durations is not None:
        timeline = _add(element, "SegmentTimeline")
        run: ET.Element | None = None
        reached: int | None = None
        before = segments.before
        if before is not None and before.count:
            if before.text:
                timeline.append(ET.Comment(_place_of(before)))
            run = _add(timeline, "S", _run(before.time, before.duration, before.count))
            reached = before.reached
        for time, duration in zip(segments.times, segments.durations, strict=True):
            if run is not None and reached == time and run.get("d") == str(duration):
                run.set("r", str(int(run.get("r", "0")) + 1))
            else:
                is_said = reached != time or segments.all_times
                begins = {"t": str(time)} if is_said else {}
                run = _add(timeline, "S", begins | {"d": str(duration)})
            reached = time + duration
    for part in segments.ranges:
        _add(element, "SegmentURL", {"mediaRange": span(part)})


def _add(parent: ET.Element, tag: str, attributes: Attributes | None = None) -> ET.Element:
    return ET.SubElement(parent, tag, _clean(attributes or {}))


def _clean(attributes: Attributes) -> dict[str, str]:
    return {name: _xml_text(value) for name, value in attributes.items()}


def _xml_text(text: str) -> str:
    """Text without the characters that XML cannot hold in any form (XML 1.0, 2.2)."""
    return _NO_XML.sub("\ufffd", text)


def bandwidth(size: int, seconds: Fraction) -> str:
    """Bits a second, rounded up, as text; 1 where it lasts no time."""
    return str(int(8 * size / seconds) + 1 if seconds else 1)


def span(part: ByteRange) -> str:
    """First and last byte, both inclusive (5.3.9.2.2)."""
    return f"{part.start}-{part.stop - 1}"


def xml_duration(seconds: Fraction) -> str:
    """Seconds as an XML duration, to the microsecond."""
    text = f"{float(round(seconds, 6)):.6f}".rstrip("0").rstrip(".")
    return f"PT{text}S"
