"""HLS playlists held against RFC 8216, and against the segments that they name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from fractions import Fraction

from fragdex.errors import MalformedCaptions
from fragdex.muxing.captions import parse_webvtt
from fragdex.record import record
from fragdex.testing.checks.samples import (
    InitTrack,
    SegmentSample,
    init_tracks,
    segment_samples,
    segment_seconds,
)
from fragdex.testing.checks.violation import BadAddress, Read, Violation, joined

RANGE = re.compile(r"(\d{1,20})(?:@(\d{1,20}))?")
_PAIR = re.compile(r'([A-Z0-9-]+)=("[^"\r\n]*"|[^",\s][^",]*)(?:,|\Z)')
_KINDS = {
    "integer": re.compile(r"\d{1,20}"),
    "hex": re.compile(r"0[xX][0-9A-Fa-f]+"),
    "float": re.compile(r"\d{1,20}(?:\.\d{1,20})?"),
    "signed": re.compile(r"-?\d{1,20}(?:\.\d{1,20})?"),
    "quoted": re.compile(r'"[^"]*"'),
    "size": re.compile(r"\d{1,20}x\d{1,20}"),
    "range": re.compile(r'"\d{1,20}(?:@\d{1,20})?"'),
    "captions": re.compile(r'"[^"]*"|NONE'),
}
_VARIANT = (
    "BANDWIDTH!integer AVERAGE-BANDWIDTH:integer SCORE:float CODECS:quoted RESOLUTION:size"
    " HDCP-LEVEL:TYPE-0|TYPE-1|NONE VIDEO-RANGE:SDR|HLG|PQ VIDEO:quoted SUPPLEMENTAL-CODECS:quoted"
)
_KEY = (
    "METHOD!NONE|AES-128|SAMPLE-AES|SAMPLE-AES-CTR URI:quoted IV:hex KEYFORMAT:quoted"
    " KEYFORMATVERSIONS:quoted"
)
_MEDIA = (
    "TYPE!AUDIO|VIDEO|SUBTITLES|CLOSED-CAPTIONS URI:quoted GROUP-ID!quoted LANGUAGE:quoted"
    " ASSOC-LANGUAGE:quoted NAME!quoted DEFAULT:YES|NO AUTOSELECT:YES|NO FORCED:YES|NO"
    " INSTREAM-ID:quoted CHARACTERISTICS:quoted CHANNELS:quoted BIT-DEPTH:integer"
    " SAMPLE-RATE:integer"
)
ATTRIBUTES = {
    "EXT-X-KEY": _KEY,
    "EXT-X-SESSION-KEY": _KEY,
    "EXT-X-MAP": "URI!quoted BYTERANGE:range",
    "EXT-X-START": "TIME-OFFSET!signed PRECISE:YES|NO",
    "EXT-X-MEDIA": _MEDIA,
    "EXT-X-STREAM-INF": _VARIANT
    + " FRAME-RATE:float AUDIO:quoted SUBTITLES:quoted CLOSED-CAPTIONS:captions",
    "EXT-X-I-FRAME-STREAM-INF": _VARIANT + " URI!quoted",
    "EXT-X-IMAGE-STREAM-INF": _VARIANT + " URI!quoted",
    "EXT-X-TILES": "RESOLUTION!size LAYOUT!size DURATION!float",
    "EXT-X-SESSION-DATA": "DATA-ID!quoted VALUE:quoted URI:quoted LANGUAGE:quoted",
    "EXT-X-DATERANGE": "ID!quoted CLASS:quoted START-DATE!quoted END-DATE:quoted DURATION:float"
    " PLANNED-DURATION:float END-ON-NEXT:YES",
}
"""Attributes of each tag: `!` where one is required, then its kind or the words it may be."""
SEGMENT_TAGS = {"EXTINF", "EXT-X-BYTERANGE", "EXT-X-GAP", "EXT-X-BITRATE", "EXT-X-TILES"} | {
    *("EXT-X-DISCONTINUITY", "EXT-X-KEY", "EXT-X-MAP", "EXT-X-PROGRAM-DATE-TIME"),
    "EXT-X-DATERANGE",
}
MEDIA_TAGS = SEGMENT_TAGS | {
    *("EXT-X-TARGETDURATION", "EXT-X-MEDIA-SEQUENCE", "EXT-X-DISCONTINUITY-SEQUENCE"),
    *("EXT-X-ENDLIST", "EXT-X-PLAYLIST-TYPE", "EXT-X-I-FRAMES-ONLY", "EXT-X-IMAGES-ONLY"),
}
"""Tags that make a playlist a media playlist (4.3.2, 4.3.3)."""
MULTIVARIANT_TAGS = {
    *("EXT-X-MEDIA", "EXT-X-STREAM-INF", "EXT-X-I-FRAME-STREAM-INF", "EXT-X-IMAGE-STREAM-INF"),
    *("EXT-X-SESSION-DATA", "EXT-X-SESSION-KEY"),
}
"""Tags that make it a multivariant playlist (4.3.4)."""


@record(frozen=True, slots=True)
class Line:
    """A tag or a URI, with the number of its line.

    Attributes:
        number: from 1.
        tag: without `#`; "" for a URI.
        value: what stands after the colon, or the URI.
        attributes: of a tag that has an attribute list; quotes are taken off.
    """

    number: int
    tag: str
    value: str
    attributes: Mapping[str, str] = field(default_factory=dict)

    def violation(self, rule: str, clause: str, message: str) -> Violation:
        """What is wrong with this line."""
        return Violation(rule, f"RFC 8216, {clause}", f"line {self.number}", message)


def lines_of(text: str, violations: list[Violation]) -> Iterator[Line]:
    """Tags and URIs in order; comments and empty lines are left out.

    Args:
        violations: takes what is wrong with attribute lists.
    """
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or (line.startswith("#") and not line.startswith("#EXT")):
            continue
        if not line.startswith("#"):
            if line != line.strip() or any(c.isspace() for c in line):
                message = "a URI holds white space"
                violations.append(Line(number, "", line).violation("uri", "4.1", message))
            yield Line(number, "", line)
            continue
        tag, _, value = line[1:].partition(":")
        declared = ATTRIBUTES.get(tag)
        about = Line(number, tag, value, {})
        if declared is not None:
            about = Line(number, tag, value, _attributes(about, declared, violations))
        yield about


def _attributes(line: Line, declared: str, violations: list[Violation]) -> dict[str, str]:
    given: dict[str, str] = {}
    at = 0
    while at < len(line.value):
        pair = _PAIR.match(line.value, at)
        if pair is None:
            message = f"no attribute list from {line.value[at : at + 20]!r} on"
            violations.append(line.violation("attribute-list", "4.2", message))
            break
        if pair[1] in given:
            violations.append(line.violation("attribute-twice", "4.2", f"{pair[1]} stands twice"))
        given[pair[1]] = pair[2]
        at = pair.end()
        if at == len(line.value) and pair[0].endswith(","):
            message = "the attribute list ends with a comma"
            violations.append(line.violation("attribute-list", "4.2", message))
    for name, needed, kind in re.findall(r"(\S+?)([!:])(\S+)", declared):
        value = given.get(name)
        if value is None:
            if needed == "!":
                message = f"{line.tag} has no {name}"
                violations.append(line.violation("attribute-required", "4.3", message))
        elif kind in _KINDS:
            if not _KINDS[kind].fullmatch(value):
                message = f"{name}={value} is no {kind} value"
                violations.append(line.violation("attribute-kind", "4.2", message))
        elif value not in kind.split("|"):
            message = f"{name}={value}: expected {kind.replace('|', ', ')}"
            violations.append(line.violation("attribute-word", "4.2", message))
    return {name: value[1:-1] if value.startswith('"') else value for name, value in given.items()}


_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_EXTINF = re.compile(r"(\d{1,20}(?:\.(\d{1,20}))?),(.*)|(\d{1,20}(?:\.(\d{1,20}))?)")
_FMP4 = re.compile(r"\.(?:mp4|m4s|m4v|m4a|cmf[vamt])(?:[?#]|\Z)", re.IGNORECASE)
ONCE = {
    *("EXTM3U", "EXT-X-VERSION", "EXT-X-TARGETDURATION", "EXT-X-MEDIA-SEQUENCE", "EXT-X-ENDLIST"),
    *("EXT-X-DISCONTINUITY-SEQUENCE", "EXT-X-PLAYLIST-TYPE", "EXT-X-I-FRAMES-ONLY"),
    *("EXT-X-INDEPENDENT-SEGMENTS", "EXT-X-START"),
}
NUMBERS = {
    "EXT-X-VERSION": "4.3.1.2",
    "EXT-X-TARGETDURATION": "4.3.3.1",
    "EXT-X-MEDIA-SEQUENCE": "4.3.3.2",
    "EXT-X-DISCONTINUITY-SEQUENCE": "4.3.3.3",
}


@record(frozen=True, slots=True)
class MediaSegment:
    """A segment as its playlist describes it.

    Attributes:
        line: number of the line of its URI.
        uri: as it stands there.
        seconds: EXTINF; 0 where there is none.
        step: of the last decimal of EXTINF.
        part: start and stop in the resource, exclusive; None: all of it.
        init: URI and part of the EXT-X-MAP that is in force.
        discontinuity: whether EXT-X-DISCONTINUITY stands before it.
        gap: whether it is missing (EXT-X-GAP).
        encrypted: whether an EXT-X-KEY is in force.
    """

    line: int
    uri: str
    seconds: Fraction
    step: Fraction
    part: tuple[int, int] | None
    init: tuple[str, tuple[int, int] | None] | None
    discontinuity: bool
    gap: bool
    encrypted: bool


@record(frozen=True, slots=True)
class MediaPlaylist:
    """The segments of a media playlist, and what it says of all."""

    segments: tuple[MediaSegment, ...]
    target: int
    independent: bool
    iframes: bool
    images: bool


def once(lines: list[Line]) -> Iterator[Violation]:
    """Tags that stand twice, and invalid numbers."""
    seen: set[str] = set()
    for line in lines:
        if line.tag in ONCE:
            if line.tag in seen:
                yield line.violation("tag-twice", "4.3", f"{line.tag} stands twice")
            seen.add(line.tag)
        clause = NUMBERS.get(line.tag)
        if clause and not re.fullmatch(r"\d{1,20}", line.value):
            message = f"{line.tag}:{line.value} is not a decimal integer"
            yield line.violation("tag-number", clause, message)


def media_playlist(lines: list[Line], violations: list[Violation]) -> MediaPlaylist:
    """Read the lines of a media playlist; what is wrong goes to `found`."""
    first = {line.tag: line for line in reversed(lines)}
    violations += once(lines)
    violations += _head(lines, first)
    segments = list(_segments(lines, first, violations))
    target = _number(first.get("EXT-X-TARGETDURATION"))
    for segment in segments:
        if target is not None and int(segment.seconds + Fraction(1, 2)) > target:
            where = f"line {segment.line}"
            message = f"EXTINF {float(segment.seconds)} exceeds the target duration {target}"
            violations.append(Violation("target-exceeded", "RFC 8216, 4.3.3.1", where, message))
    violations += _versions(lines, first, segments)
    return MediaPlaylist(
        tuple(segments),
        target or 1,
        "EXT-X-INDEPENDENT-SEGMENTS" in first,
        "EXT-X-I-FRAMES-ONLY" in first,
        "EXT-X-IMAGES-ONLY" in first or "EXT-X-TILES" in first,
    )


def _number(line: Line | None) -> int | None:
    return int(line.value) if line is not None and re.fullmatch(r"\d{1,20}", line.value) else None


def _head(lines: list[Line], first: dict[str, Line]) -> Iterator[Violation]:
    if "EXT-X-TARGETDURATION" not in first:
        message = "EXT-X-TARGETDURATION is missing"
        yield Line(1, "", "").violation("target-duration", "4.3.3.1", message)
    behind = False
    discontinuity = False
    for line in lines:
        behind |= line.tag in ("EXTINF", "")
        discontinuity |= line.tag == "EXT-X-DISCONTINUITY"
        if line.tag in ("EXT-X-MEDIA-SEQUENCE", "EXT-X-DISCONTINUITY-SEQUENCE") and behind:
            message = f"{line.tag} is after the first segment"
            yield line.violation("sequence-late", NUMBERS[line.tag], message)
        elif line.tag == "EXT-X-DISCONTINUITY-SEQUENCE" and discontinuity:
            message = f"{line.tag} is after an EXT-X-DISCONTINUITY"
            yield line.violation("sequence-late", "4.3.3.3", message)
        if line.tag == "EXT-X-PROGRAM-DATE-TIME" and not _DATE.fullmatch(line.value):
            yield line.violation("date", "4.3.2.6", f"{line.value!r} is no ISO 8601 date and time")
    kind = first.get("EXT-X-PLAYLIST-TYPE")
    if kind is not None and kind.value not in ("VOD", "EVENT"):
        yield kind.violation("playlist-type", "4.3.3.5", f"{kind.value}: expected VOD or EVENT")
    if kind is not None and kind.value == "VOD" and "EXT-X-ENDLIST" not in first:
        message = "a VOD playlist cannot change and has no EXT-X-ENDLIST"
        yield kind.violation("endlist", "4.3.3.5 and 6.2.1", message)
    ranges = first.get("EXT-X-DATERANGE")
    if ranges is not None and "EXT-X-PROGRAM-DATE-TIME" not in first:
        message = "EXT-X-DATERANGE without an EXT-X-PROGRAM-DATE-TIME"
        yield ranges.violation("daterange", "4.3.2.7", message)


def _segments(
    lines: list[Line], first: dict[str, Line], violations: list[Violation]
) -> Iterator[MediaSegment]:
    pending: dict[str, Line] = {}
    init: tuple[str, tuple[int, int] | None] | None = None
    encrypted = False
    before: tuple[str, int] | None = None
    images = "EXT-X-IMAGES-ONLY" in first or "EXT-X-TILES" in first
    for line in lines:
        if line.tag == "EXT-X-MAP":
            init = line.attributes.get("URI", ""), _part(line.attributes.get("BYTERANGE"), 0)
        elif line.tag == "EXT-X-KEY":
            encrypted = line.attributes.get("METHOD") != "NONE"
            violations += key_rules(line)
        if line.tag in ("EXTINF", "EXT-X-BYTERANGE") and line.tag in pending:
            violations.append(line.violation("tag-of-segment", "4.3.2", f"a second {line.tag}"))
        if line.tag in SEGMENT_TAGS:
            pending[line.tag] = line
        if line.tag:
            continue
        timed = _EXTINF.fullmatch(pending["EXTINF"].value) if "EXTINF" in pending else None
        if "EXTINF" not in pending:
            violations.append(line.violation("extinf", "4.3.2.1", "a segment without EXTINF"))
        elif timed is None or timed[3] is None:
            wrong = pending["EXTINF"]
            message = f"{wrong.value!r}: expected a duration and a comma"
            violations.append(wrong.violation("extinf", "4.3.2.1", message))
        part = None
        if "EXT-X-BYTERANGE" in pending:
            byterange = pending["EXT-X-BYTERANGE"]
            follows = before[1] if before is not None and before[0] == line.value else None
            part = _part(byterange.value, follows)
            if RANGE.fullmatch(byterange.value) is None:
                violations.append(
                    byterange.violation("byterange", "4.3.2.2", f"{byterange.value!r}")
                )
            elif part is None:
                message = "no offset, and the segment before is not a range of this resource"
                violations.append(byterange.violation("byterange-offset", "4.3.2.2", message))
        before = None if part is None else (line.value, part[1])
        if init is None and not images and _FMP4.search(line.value):
            message = "a segment of fragmented MP4 without EXT-X-MAP"
            violations.append(line.violation("map", "3.3", message))
        decimals = len((timed[2] or timed[5] or "") if timed else "")
        yield MediaSegment(
            line.number,
            line.value,
            Fraction(timed[1] or timed[4]) if timed else Fraction(0),
            Fraction(1, 10**decimals),
            part,
            init,
            "EXT-X-DISCONTINUITY" in pending,
            "EXT-X-GAP" in pending,
            encrypted,
        )
        pending = {}
    for tag in ("EXTINF", "EXT-X-BYTERANGE"):
        if tag in pending:
            message = f"{tag} without a segment after it"
            violations.append(pending[tag].violation("tag-of-segment", "4.3.2", message))


def _part(text: str | None, follows: int | None) -> tuple[int, int] | None:
    match = RANGE.fullmatch(text or "")
    if match is None or (match[2] is None and follows is None):
        return None
    start = int(match[2]) if match[2] is not None else follows or 0
    return start, start + int(match[1])


def key_rules(line: Line) -> Iterator[Violation]:
    """Rules of EXT-X-KEY and EXT-X-SESSION-KEY (4.3.2.4)."""
    about = line.attributes
    if about.get("METHOD") == "NONE" and len(about) > 1:
        yield line.violation("key-none", "4.3.2.4", "METHOD=NONE with other attributes")
    elif about.get("METHOD", "NONE") != "NONE" and "URI" not in about:
        yield line.violation("key-uri", "4.3.2.4", "a key without URI")
    if len(about.get("IV", "0x")) > 34:
        yield line.violation("key-iv", "4.3.2.4", "IV has more than 128 bits")


def _versions(
    lines: list[Line], first: dict[str, Line], segments: list[MediaSegment]
) -> Iterator[Violation]:
    """What needs a later version than the playlist has (7)."""
    version = _number(first.get("EXT-X-VERSION")) or 1
    iframes = "EXT-X-I-FRAMES-ONLY" in first
    needs = {"EXT-X-BYTERANGE": 4, "EXT-X-I-FRAMES-ONLY": 4, "EXT-X-MAP": 5 if iframes else 6}
    needs |= {"EXT-X-GAP": 8, "EXT-X-DEFINE": 8}
    for line in lines:
        need = needs.get(line.tag, 1)
        if line.tag == "EXTINF" and "." in line.value.partition(",")[0]:
            need = 3
        elif line.tag == "EXT-X-KEY":
            need = 2 if "IV" in line.attributes else 1
            if {"KEYFORMAT", "KEYFORMATVERSIONS"} & line.attributes.keys():
                need = 5
        if version < need:
            message = f"{line.tag} needs version {need}, the playlist has {version}"
            yield line.violation("version", "7", message)
            return


GROUPS = ("AUDIO", "VIDEO", "SUBTITLES", "CLOSED-CAPTIONS")
VARIANTS = {
    *("EXT-X-STREAM-INF", "EXT-X-I-FRAME-STREAM-INF", "EXT-X-IMAGE-STREAM-INF"),
}


@record(frozen=True, slots=True)
class Variant:
    """A media playlist that the multivariant playlist names.

    Attributes:
        line: the tag.
        uri: of the media playlist.
        beside: group by group, the URIs of the renditions that may play with it.
    """

    line: Line
    uri: str
    beside: tuple[tuple[str, ...], ...]


def multivariant(lines: list[Line], violations: list[Violation]) -> list[Variant]:
    """Read the lines of a multivariant playlist; what is wrong goes to `found`."""
    violations += once(lines)
    groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        about = line.attributes
        if line.tag == "EXT-X-MEDIA":
            groups[about.get("TYPE", ""), about.get("GROUP-ID", "")].append(line)
            violations += _media(line)
        elif line.tag == "EXT-X-SESSION-KEY":
            violations += key_rules(line)
            if about.get("METHOD") == "NONE":
                violations.append(line.violation("session-key", "4.3.4.5", "METHOD=NONE"))
        elif line.tag == "EXT-X-SESSION-DATA" and ("VALUE" in about) == ("URI" in about):
            message = "expected either VALUE or URI"
            violations.append(line.violation("session-data", "4.3.4.4", message))
    violations += _groups(groups)
    variants = list(_variants(lines, groups, violations))
    streams = [one.line for one in variants if one.line.tag == "EXT-X-STREAM-INF"]
    words = {line.attributes.get("CLOSED-CAPTIONS") == "NONE" for line in streams}
    if len(words) > 1:
        message = "CLOSED-CAPTIONS=NONE for some variants and not for others"
        violations.append(streams[0].violation("captions-none", "4.3.4.2", message))
    return variants


def _media(line: Line) -> Iterator[Violation]:
    about = line.attributes
    kind = about.get("TYPE")
    if kind == "CLOSED-CAPTIONS" and "URI" in about:
        yield line.violation("media-uri", "4.3.4.1", "closed captions have no URI")
    if kind == "SUBTITLES" and "URI" not in about:
        yield line.violation("media-uri", "4.3.4.1", "subtitles need a URI")
    if (kind == "CLOSED-CAPTIONS") != ("INSTREAM-ID" in about):
        yield line.violation("instream-id", "4.3.4.1", "INSTREAM-ID is of closed captions alone")
    if about.get("DEFAULT") == "YES" and about.get("AUTOSELECT") == "NO":
        yield line.violation("autoselect", "4.3.4.1", "DEFAULT=YES with AUTOSELECT=NO")
    if "FORCED" in about and kind != "SUBTITLES":
        yield line.violation("forced", "4.3.4.1", "FORCED is of subtitles alone")


def _groups(groups: dict[tuple[str, str], list[Line]]) -> Iterator[Violation]:
    members: dict[str, tuple[str, set[tuple[str, ...]]]] = {}
    for (kind, name), lines in groups.items():
        seen: set[str] = set()
        for line in lines:
            own = line.attributes.get("NAME", "")
            if own in seen:
                message = f"NAME {own!r} stands twice in group {name!r}"
                yield line.violation("name-twice", "4.3.4.1.1", message)
            seen.add(own)
        chosen = [line for line in lines if line.attributes.get("DEFAULT") == "YES"]
        for line in chosen[1:]:
            message = f"a second DEFAULT=YES in group {name!r}"
            yield line.violation("default-twice", "4.3.4.1.1", message)
        same = ("NAME", "LANGUAGE", "ASSOC-LANGUAGE", "DEFAULT", "AUTOSELECT", "FORCED")
        shown = {tuple(line.attributes.get(key, "") for key in same) for line in lines}
        other, expected = members.setdefault(kind, (name, shown))
        if shown != expected:
            message = f"groups {other!r} and {name!r} have different members"
            yield lines[0].violation("group-members", "4.3.4.1.1", message)


def _variants(
    lines: list[Line], groups: dict[tuple[str, str], list[Line]], violations: list[Violation]
) -> Iterator[Variant]:
    pending: Line | None = None
    for line in lines:
        if pending is not None and line.tag:
            message = "the line after EXT-X-STREAM-INF is not a URI"
            violations.append(pending.violation("stream-uri", "4.3.4.2", message))
            pending = None
        if not line.tag:
            if pending is None:
                message = "a URI without EXT-X-STREAM-INF"
                violations.append(line.violation("stream-inf", "4.3.4.2", message))
            else:
                yield Variant(pending, line.value, _beside(pending, groups, violations))
            pending = None
        elif line.tag in VARIANTS:
            violations += _rates(line)
            if line.tag == "EXT-X-STREAM-INF":
                pending = line
                continue
            wrong = {"FRAME-RATE", "AUDIO", "SUBTITLES", "CLOSED-CAPTIONS"} & line.attributes.keys()
            if wrong:
                message = f"{line.tag} has {', '.join(sorted(wrong))}"
                violations.append(line.violation("iframe-attributes", "4.3.4.3", message))
            yield Variant(line, line.attributes.get("URI", ""), ())
    if pending is not None:
        message = "no URI after EXT-X-STREAM-INF"
        violations.append(pending.violation("stream-uri", "4.3.4.2", message))


def _rates(line: Line) -> Iterator[Violation]:
    peak, average = (line.attributes.get(name) for name in ("BANDWIDTH", "AVERAGE-BANDWIDTH"))
    if peak and average and peak.isdecimal() and average.isdecimal() and int(average) > int(peak):
        message = f"AVERAGE-BANDWIDTH {average} exceeds BANDWIDTH {peak}"
        yield line.violation("average-bandwidth", "4.3.4.2", message)


def _beside(
    line: Line, groups: dict[tuple[str, str], list[Line]], violations: list[Violation]
) -> tuple[tuple[str, ...], ...]:
    uris = []
    for kind in GROUPS:
        name = line.attributes.get(kind)
        if name is None or (kind == "CLOSED-CAPTIONS" and name == "NONE"):
            continue
        members = groups.get((kind, name))
        if members is None:
            message = f"no EXT-X-MEDIA has TYPE={kind} and GROUP-ID {name!r}"
            violations.append(line.violation("group", "4.3.4.2", message))
            continue
        uris.append(tuple(one.attributes["URI"] for one in members if one.attributes.get("URI")))
    return tuple(uris)


def check_hls(
    playlist: str | bytes | Mapping[str, str | bytes], read: Read | None = None
) -> list[Violation]:
    r"""What breaks a MUST of RFC 8216 in a media or a multivariant playlist, in order of lines.

    Args:
        playlist: its text; or several playlists and segments by URI, the first of which is
            checked and the others are read.
        read: gives the bytes of a URI. With it the playlists that a multivariant one names are
            checked too, and segments are held against EXTINF, BANDWIDTH, CODECS and
            EXT-X-INDEPENDENT-SEGMENTS. Relative URIs of nested playlists are resolved first.

    Raises: what `read` raises.

    >>> [str(one) for one in check_hls("#EXTM3U\n#EXTINF:4,\na.ts\n#EXT-X-TARGETDURATION:3")]
    ['line 3: EXTINF 4.0 exceeds the target duration 3 (target-exceeded; RFC 8216, 4.3.3.1)']
    """
    base = ""
    if isinstance(playlist, Mapping):
        files = dict(playlist)
        base = next(iter(files))
        if len(files) > 1 or read is not None:
            read = _reader(files, read)
        text = files[base]
    else:
        text = playlist
    violations: list[Violation] = []
    lines = _text(text, violations)
    tags = {line.tag for line in lines}
    if tags & MEDIA_TAGS and tags & MULTIVARIANT_TAGS:
        message = "tags of a media playlist and of a multivariant playlist"
        violations.append(Line(1, "", "").violation("one-kind", "4.1", message))
    else:
        try:
            violations += _of_kind(lines, base, read, violations)
        except BadAddress as error:
            violations.append(Line(1, "", "").violation("uri", "4.1", str(error)))
    return sorted(violations, key=_place)


def _of_kind(
    lines: list[Line], base: str, read: Read | None, violations: list[Violation]
) -> Iterable[Violation]:
    if {line.tag for line in lines} & MULTIVARIANT_TAGS:
        variants = multivariant(lines, violations)
        return () if read is None else _follow(variants, base, read)
    media = media_playlist(lines, violations)
    return () if read is None else _Media(media, base, read).violations()


def _place(one: Violation) -> tuple[str, int]:
    name, _, number = one.where.rpartition("line ")
    return name, int(number)


def _reader(files: Mapping[str, str | bytes], read: Read | None) -> Read:
    def read_file(uri: str) -> bytes:
        if uri in files:
            data = files[uri]
            return data.encode() if isinstance(data, str) else data
        if read is None:
            raise KeyError(uri)
        return read(uri)

    return read_file


def _text(playlist: str | bytes, violations: list[Violation]) -> list[Line]:
    start = Line(1, "", "")
    if isinstance(playlist, bytes):
        data = playlist
        try:
            playlist = data.decode()
        except UnicodeDecodeError as error:
            violations.append(start.violation("utf-8", "4.1", str(error)))
            playlist = data.decode(errors="replace")
    if playlist.startswith("\ufeff"):
        violations.append(start.violation("bom", "4.1", "a byte order mark"))
        playlist = playlist[1:]
    lines = list(lines_of(playlist, violations))
    if playlist.splitlines()[:1] != ["#EXTM3U"]:
        violations.append(start.violation("extm3u", "4.3.1.1", "#EXTM3U is not the first line"))
    return lines


class _Media:
    """A media playlist together with its segments."""

    def __init__(self, playlist: MediaPlaylist, base: str, read: Read) -> None:
        self.playlist = playlist
        self.sizes: list[tuple[Fraction, int]] = []
        self.codecs: set[str] = set()
        self._base, self._read = base, read

    def _bytes(self, uri: str, part: tuple[int, int] | None) -> bytes:
        data = self._read(joined(self._base, uri))
        return data if part is None else data[slice(*part)]

    def violations(self) -> Iterator[Violation]:
        """What is wrong with the segments, one by one and where one follows another."""
        before: tuple[MediaSegment, InitTrack, list[SegmentSample]] | None = None
        at = Fraction(0)
        for segment in self.playlist.segments:
            now = None
            at += segment.seconds
            if segment.uri.endswith((".vtt", ".webvtt")):
                last = segment is self.playlist.segments[-1]
                yield from self._text(segment, at - segment.seconds, None if last else at)
                continue
            if segment.gap:
                self.sizes.append((segment.seconds, 0))
            else:
                data = self._bytes(segment.uri, segment.part)
                self.sizes.append((segment.seconds, len(data)))
                broken: list[Violation] = []
                now = self._segment(segment, data, broken)
                yield from broken
            if before is not None:
                follows = not segment.discontinuity and segment.init == before[0].init
                yield from _duration(*before, now[2] if now is not None and follows else None)
            before = None if now is None else now
        if before is not None:
            yield from _duration(*before, None)

    def _text(
        self, segment: MediaSegment, start: Fraction, stop: Fraction | None
    ) -> Iterator[Violation]:
        """A segment of WebVTT: it can be read, and holds what is shown in its time."""
        line = Line(segment.line, "", segment.uri)
        data = self._bytes(segment.uri, segment.part)
        self.sizes.append((segment.seconds, len(data)))
        try:
            cues = parse_webvtt(data)
        except MalformedCaptions as error:
            yield line.violation("webvtt", "3.5", str(error))
            return
        head = data.partition(b"\n\n")[0]
        if b"X-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000" not in head:
            return  # its times are not those of the presentation
        for cue in cues:
            begin, end = Fraction(cue.start_ms, 1000), Fraction(cue.end_ms, 1000)
            if end < start or (stop is not None and begin > stop):
                message = f"a cue from {float(begin)} to {float(end)} s is of another segment"
                yield line.violation("webvtt-cue", "3.5", message)

    def _segment(
        self, segment: MediaSegment, data: bytes, violations: list[Violation]
    ) -> tuple[MediaSegment, InitTrack, list[SegmentSample]] | None:
        line = Line(segment.line, "", segment.uri)
        if segment.part is not None and len(data) < segment.part[1] - segment.part[0]:
            message = "the range ends after the resource"
            violations.append(line.violation("byterange-end", "4.3.2.2", message))
        if segment.init is None or self.playlist.images:
            return None
        tracks = init_tracks(self._bytes(*segment.init))
        if not tracks:
            message = "EXT-X-MAP names no initialization segment"
            violations.append(line.violation("map-content", "3.3", message))
            return None
        self.codecs |= {track.codec for track in tracks if track.codec}
        if self.playlist.iframes or (segment.encrypted and b"moof" not in data):
            return None
        reference = next((track for track in tracks if track.kind == "vide"), tracks[0])
        samples = segment_samples(data, reference)
        if not samples:
            message = f"no sample of track {reference.id}"
            violations.append(line.violation("segment-empty", "3", message))
            return None
        if self.playlist.independent and reference.kind == "vide" and not samples[0].sync:
            message = "an independent segment begins with no sync sample"
            violations.append(line.violation("independent", "4.3.5.1", message))
        return segment, reference, samples

    def peak(self) -> Fraction:
        """Largest bit rate of consecutive segments of 0.5 to 1.5 target durations (4.3.4.2)."""
        low, high = (Fraction(self.playlist.target * n, 2) for n in (1, 3))
        best = Fraction(0)
        for first in range(len(self.sizes)):
            seconds, size = Fraction(0), 0
            for more, bytes_ in self.sizes[first:]:
                seconds, size = seconds + more, size + bytes_
                if seconds > high:
                    break
                if seconds >= low:
                    best = max(best, 8 * size / seconds)
        return best


def _duration(
    segment: MediaSegment,
    track: InitTrack,
    samples: list[SegmentSample],
    following: list[SegmentSample] | None,
) -> Iterator[Violation]:
    """EXTINF against the segment: its durations, its span, or the time until the next one."""
    real = list(segment_seconds(samples, track))
    if following and track.timescale:
        begin = max(min(sample.cts for sample in samples), track.start)
        until = min(sample.cts for sample in following) - begin
        real.append(Fraction(until, track.timescale))
    if all(abs(one - segment.seconds) > segment.step for one in real):
        message = f"EXTINF {float(segment.seconds)}, the segment lasts {float(real[0])} s"
        line = Line(segment.line, "", segment.uri)
        yield line.violation("extinf-real", "4.3.2.1", message)


def _follow(variants: list[Variant], base: str, read: Read) -> Iterator[Violation]:
    known: dict[str, _Media] = {}
    for uri in dict.fromkeys(
        uri for one in variants for uri in (one.uri, *(u for group in one.beside for u in group))
    ):
        address = joined(base, uri)
        violations: list[Violation] = []
        lines = _text(read(address), violations)
        known[uri] = _Media(media_playlist(lines, violations), address, read)
        violations += known[uri].violations()
        yield from (replace(one, where=f"{uri} {one.where}") for one in violations)
    for variant in variants:
        yield from _variant(variant, known)


def _variant(variant: Variant, known: Mapping[str, _Media]) -> Iterator[Violation]:
    line, main = variant.line, known[variant.uri]
    groups = [[known[uri] for uri in group if uri != variant.uri] for group in variant.beside]
    peak = main.peak() + sum(max((one.peak() for one in group), default=0) for group in groups)
    stated = line.attributes.get("BANDWIDTH", "")
    if stated.isdecimal() and int(stated) < peak:
        message = f"BANDWIDTH {stated}, the segments need {-(-peak.numerator // peak.denominator)}"
        yield line.violation("bandwidth-real", "4.3.4.2", message)
    named = {name.strip() for name in line.attributes.get("CODECS", "").split(",")}
    real = main.codecs.union(*(one.codecs for group in groups for one in group))
    if "CODECS" in line.attributes and real - named:
        message = f"CODECS does not name {', '.join(sorted(real - named))}"
        yield line.violation("codecs-real", "4.3.4.2", message)
    wanted = line.tag == "EXT-X-I-FRAME-STREAM-INF"
    if wanted != main.playlist.iframes:
        message = "EXT-X-I-FRAMES-ONLY is of I-frame playlists, and of them alone"
        yield line.violation("iframes-only", "4.3.4.3", message)
