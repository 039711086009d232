"""Lines, tags and attribute lists of HLS playlists (RFC 8216, 4.1 and 4.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fragdex.testing.checks.violation import Violation

__all__ = ["MEDIA_TAGS", "MULTIVARIANT_TAGS", "Line", "lines_of"]

RANGE = re.compile(r"(\d+)(?:@(\d+))?")
_PAIR = re.compile(r'([A-Z0-9-]+)=("[^"\r\n]*"|[^",\s][^",]*)(?:,|\Z)')
_KINDS = {
    "integer": re.compile(r"\d{1,20}"),
    "hex": re.compile(r"0[xX][0-9A-Fa-f]+"),
    "float": re.compile(r"\d+(?:\.\d+)?"),
    "signed": re.compile(r"-?\d+(?:\.\d+)?"),
    "quoted": re.compile(r'"[^"]*"'),
    "size": re.compile(r"\d+x\d+"),
    "range": re.compile(r'"\d+(?:@\d+)?"'),
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


@dataclass(frozen=True, slots=True)
class Line:
    """A tag or a URI, with the number of its line.

    Attributes:
        number: from 1.
        tag: without `#`; "" for a URI.
        value: what stands behind the colon, or the URI.
        attributes: of a tag that has an attribute list; quotes are taken off.

    >>> next(lines_of('#EXT-X-MAP:URI="init.mp4"', [])).attributes
    {'URI': 'init.mp4'}
    """

    number: int
    tag: str
    value: str
    attributes: Mapping[str, str] = field(default_factory=dict)

    def violation(self, rule: str, clause: str, message: str) -> Violation:
        """What is wrong with this line."""
        return Violation(rule, f"RFC 8216, {clause}", f"line {self.number}", message)


def lines_of(text: str, found: list[Violation]) -> Iterator[Line]:
    """Tags and URIs in order; comments and empty lines are left out.

    Args:
        found: takes what is wrong with attribute lists.
    """
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or (line.startswith("#") and not line.startswith("#EXT")):
            continue
        if not line.startswith("#"):
            if line != line.strip() or any(c.isspace() for c in line):
                message = "a URI holds white space"
                found.append(Line(number, "", line).violation("uri", "4.1", message))
            yield Line(number, "", line)
            continue
        tag, _, value = line[1:].partition(":")
        declared = ATTRIBUTES.get(tag)
        about = Line(number, tag, value, {})
        if declared is not None:
            about = Line(number, tag, value, _attributes(about, declared, found))
        yield about


def _attributes(line: Line, declared: str, found: list[Violation]) -> dict[str, str]:
    given: dict[str, str] = {}
    at = 0
    while at < len(line.value):
        pair = _PAIR.match(line.value, at)
        if pair is None:
            message = f"no attribute list from {line.value[at : at + 20]!r} on"
            found.append(line.violation("attribute-list", "4.2", message))
            break
        if pair[1] in given:
            found.append(line.violation("attribute-twice", "4.2", f"{pair[1]} stands twice"))
        given[pair[1]] = pair[2]
        at = pair.end()
        if at == len(line.value) and pair[0].endswith(","):
            message = "the attribute list ends with a comma"
            found.append(line.violation("attribute-list", "4.2", message))
    for name, needed, kind in re.findall(r"(\S+?)([!:])(\S+)", declared):
        value = given.get(name)
        if value is None:
            if needed == "!":
                message = f"{line.tag} has no {name}"
                found.append(line.violation("attribute-required", "4.3", message))
        elif kind in _KINDS:
            if not _KINDS[kind].fullmatch(value):
                message = f"{name}={value} is no {kind} value"
                found.append(line.violation("attribute-kind", "4.2", message))
        elif value not in kind.split("|"):
            message = f"{name}={value}: expected {kind.replace('|', ', ')}"
            found.append(line.violation("attribute-word", "4.2", message))
    return {name: value[1:-1] if value.startswith('"') else value for name, value in given.items()}
