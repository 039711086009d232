"""HLS playlists held against RFC 8216, and against the segments that they name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from urllib.parse import urljoin

from fragdex.errors import MalformedCaptions
from fragdex.formats.captions_text import parse_webvtt
from fragdex.testing.checks.hls_media import (
    MEDIA_TAGS,
    MULTIVARIANT_TAGS,
    Line,
    MediaPlaylist,
    MediaSegment,
    key_rules,
    lines_of,
    media_playlist,
    once,
)
from fragdex.testing.checks.samples import (
    InitTrack,
    SegmentSample,
    init_tracks,
    segment_samples,
    segment_seconds,
)
from fragdex.testing.checks.violation import Read, Violation

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
    elif tags & MULTIVARIANT_TAGS:
        variants = multivariant(lines, violations)
        if read is not None:
            violations += _follow(variants, base, read)
    else:
        media = media_playlist(lines, violations)
        if read is not None:
            violations += _Media(media, base, read).violations()
    return sorted(violations, key=_place)


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
        data = self._read(urljoin(self._base, uri))
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
            if not segment.gap:
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
        address = urljoin(base, uri)
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
