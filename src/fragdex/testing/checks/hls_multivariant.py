"""Rules of a multivariant playlist, by its text alone (RFC 8216, 4.3.4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from fragdex.testing.checks.hls_media import key_rules, once
from fragdex.testing.checks.hls_syntax import Line
from fragdex.testing.checks.violation import Violation

__all__ = ["Variant", "multivariant"]

GROUPS = ("AUDIO", "VIDEO", "SUBTITLES", "CLOSED-CAPTIONS")
VARIANTS = {
    *("EXT-X-STREAM-INF", "EXT-X-I-FRAME-STREAM-INF", "EXT-X-IMAGE-STREAM-INF"),
}


@dataclass(frozen=True, slots=True)
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


def multivariant(lines: list[Line], found: list[Violation]) -> list[Variant]:
    """Read the lines of a multivariant playlist; what is wrong goes to `found`."""
    found += once(lines)
    groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        about = line.attributes
        if line.tag == "EXT-X-MEDIA":
            groups[about.get("TYPE", ""), about.get("GROUP-ID", "")].append(line)
            found += _media(line)
        elif line.tag == "EXT-X-SESSION-KEY":
            found += key_rules(line)
            if about.get("METHOD") == "NONE":
                found.append(line.violation("session-key", "4.3.4.5", "METHOD=NONE"))
        elif line.tag == "EXT-X-SESSION-DATA" and ("VALUE" in about) == ("URI" in about):
            message = "expected either VALUE or URI"
            found.append(line.violation("session-data", "4.3.4.4", message))
    found += _groups(groups)
    variants = list(_variants(lines, groups, found))
    streams = [one.line for one in variants if one.line.tag == "EXT-X-STREAM-INF"]
    words = {line.attributes.get("CLOSED-CAPTIONS") == "NONE" for line in streams}
    if len(words) > 1:
        message = "CLOSED-CAPTIONS=NONE for some variants and not for others"
        found.append(streams[0].violation("captions-none", "4.3.4.2", message))
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
    lines: list[Line], groups: dict[tuple[str, str], list[Line]], found: list[Violation]
) -> Iterator[Variant]:
    pending: Line | None = None
    for line in lines:
        if pending is not None and line.tag:
            message = "the line behind EXT-X-STREAM-INF is no URI"
            found.append(pending.violation("stream-uri", "4.3.4.2", message))
            pending = None
        if not line.tag:
            if pending is None:
                message = "a URI without EXT-X-STREAM-INF"
                found.append(line.violation("stream-inf", "4.3.4.2", message))
            else:
                yield Variant(pending, line.value, _beside(pending, groups, found))
            pending = None
        elif line.tag in VARIANTS:
            found += _rates(line)
            if line.tag == "EXT-X-STREAM-INF":
                pending = line
                continue
            wrong = {"FRAME-RATE", "AUDIO", "SUBTITLES", "CLOSED-CAPTIONS"} & line.attributes.keys()
            if wrong:
                message = f"{line.tag} has {', '.join(sorted(wrong))}"
                found.append(line.violation("iframe-attributes", "4.3.4.3", message))
            yield Variant(line, line.attributes.get("URI", ""), ())
    if pending is not None:
        message = "no URI behind EXT-X-STREAM-INF"
        found.append(pending.violation("stream-uri", "4.3.4.2", message))


def _rates(line: Line) -> Iterator[Violation]:
    peak, average = (line.attributes.get(name) for name in ("BANDWIDTH", "AVERAGE-BANDWIDTH"))
    if peak and average and peak.isdecimal() and average.isdecimal() and int(average) > int(peak):
        message = f"AVERAGE-BANDWIDTH {average} exceeds BANDWIDTH {peak}"
        yield line.violation("average-bandwidth", "4.3.4.2", message)


def _beside(
    line: Line, groups: dict[tuple[str, str], list[Line]], found: list[Violation]
) -> tuple[tuple[str, ...], ...]:
    uris = []
    for kind in GROUPS:
        name = line.attributes.get(kind)
        if name is None or (kind == "CLOSED-CAPTIONS" and name == "NONE"):
            continue
        members = groups.get((kind, name))
        if members is None:
            message = f"no EXT-X-MEDIA has TYPE={kind} and GROUP-ID {name!r}"
            found.append(line.violation("group", "4.3.4.2", message))
            continue
        uris.append(tuple(one.attributes["URI"] for one in members if one.attributes.get("URI")))
    return tuple(uris)
