"""Captions: read in every kind, and written into a copy of a file as one more track.

WebVTT is that of W3C (The Web Video Text Tracks Format, 4.1 and 6.1). Players pass over a cue whose
times they cannot read; here it is refused, while somebody is there to put it right.

SubRip has no standard: blocks of a number, a timing and text, with empty lines between them. Taken
is what players take: a missing number, a dot for the comma, hours of one digit, positions after
the timing.

JSON is `{"segments": [{"start", "end", "text"}], "word_segments": [...]}`, times in seconds. Words
are as segments; unknown keys are kept.

The track has WebVTT samples (ISO/IEC 14496-30, 7). Media bytes are copied by range and never read.
The captions go right after the moov: in a movie fragment of their own where the file has fragments,
and in an mdat where it has none. What the moved bytes break is repaired, as by `embed`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final, NamedTuple

import numpy as np

from fragdex.boxes import Box, build, make_box, parse_box
from fragdex.boxes.box import with_changes
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, MalformedCaptions
from fragdex.formats.fidx_head import no_constant
from fragdex.fragments.table import FragmentTable, SampleTable, SyncTable
from fragdex.fragments.track_info import TrackInfo, three_letters
from fragdex.indexing.moov import plain_init
from fragdex.muxing.embed import (
    ChangedFragments,
    Edit,
    Piece,
    Read,
    brands,
    default_sizes,
    mended,
    moofs_of,
    obsolete,
    walked,
)
from fragdex.muxing.fragments import Fragments
from fragdex.muxing.movie import agreeing, empty_tables
from fragdex.muxing.plan import Plan, PlannedTrack, one_source
from fragdex.muxing.progressive import Chunks, tables_of
from fragdex.seeking.model import Index, Track

TIMESCALE = 1000
MAX_CUES = 1 << 20
"""Cues of a track: ten hours have some ten thousand."""
_UNDETERMINED = 0x55C4

Cues = Sequence[tuple[int, int, str]]


class CaptionCue(NamedTuple):
    """Text from `start_ms` (inclusive) to `end_ms` (exclusive), milliseconds of presentation."""

    start_ms: int
    end_ms: int
    text: str


def with_captions(
    index: Index, read: Read, cues: Cues, *, language: str | None = None
) -> list[Piece]:
    """The pieces of the copy, to be written one after the other.

    Args:
        cues: start (inclusive) and end (exclusive) in milliseconds of presentation, and text, in
            order; where two overlap, the earlier one ends first.

    The new track has the track_ID after the highest one.

    Raises:
        BuildError: there is no moov, or several, or too many cues.
        InexactIndex: the places of fragments are not known.
    """
    size = index.file.size
    if size is None:
        raise BuildError("the size of the source is not known")
    if len(cues) > MAX_CUES:
        raise BuildError("too many cues for a track", found=len(cues))
    if len(index.periods) > 1 or any(f.code == "repeated-moov" for f in index.findings):
        raise BuildError(
            "the file has several moovs, and a track in one of them would set it apart",
            path="moov",
            advice="make a clip of the whole first (fragdex extract FILE 0 end -o COPY.mp4), then"
            " add captions",
        )
    moofs = moofs_of(index)
    outside = list(walked(read, 0, min(moofs) if moofs else size))
    place = next((part for code, part in outside if code == "moov"), None)
    if place is None:
        raise BuildError("there is no moov that a track could be added to")
    stops = [stop for tracks in moofs.values() for _, stop, _ in tracks.values()]
    if stops:
        outside += walked(read, max(stops), size)
    samples = _samples(cues)
    moov = agreeing(parse_box(plain_init(read(place)), offset=place.start))
    track = _new_id(moov, index)
    fragments = moov.find("mvex") is not None
    planned = _planned(track, samples)
    everything = np.array([0]), np.array([0]), np.array([1])
    tables = [] if fragments else tables_of(planned, Chunks(*everything), wide=True)
    media = _fragment(planned) if fragments else _mdat(samples)
    grown = build(_with_track(moov, track, tables, samples, language))

    def source(part: ByteRange) -> bytes:
        return grown if part == place else read(part)

    edits: list[Edit] = [(ByteRange(place.stop, place.stop), media)]
    edits += brands(read, outside, fragments, moov)
    existing = ChangedFragments(read, moofs, default_sizes(index.periods[0]))
    if existing.grown:
        edits += obsolete(read, 0, size)
    shifts, changed = mended(source, outside, [*edits, *existing.edits])
    edits += [
        (part, data if part != place or fragments else _pointed(data, shifts.one(part.start)))
        for part, data in changed
    ]
    return existing.finished(edits, shifts, size)


def _samples(cues: Cues) -> list[tuple[int, bytes]]:
    """Duration and bytes of each sample: cues, and what is between them, without a hole."""
    samples: list[tuple[int, bytes]] = []
    nothing = build(make_box("vtte"))
    at = 0
    ordered = sorted(cues, key=lambda cue: cue[0])
    for number, (start, end, text) in enumerate(ordered):
        start = max(start, at)
        if number + 1 < len(ordered):
            end = min(end, max(ordered[number + 1][0], start))
        if end <= start:
            continue
        if start > at:
            samples.append((start - at, nothing))
        payload = escape(text, quote=False)
        cue = make_box("vttc", children=[make_box("payl", cue_text=payload)])
        samples.append((end - start, build(cue)))
        at = end
    return samples or [(1, nothing)]


def _new_id(moov: Box, index: Index) -> int:
    known = [box["track_ID"] for box in moov.find_all("trak/tkhd")]
    highest: int = max([0, *known, *(track.id for track in index.tracks)])
    return highest + 1


def _with_track(
    moov: Box, track: int, tables: list[Box], samples: list[tuple[int, bytes]], language: str | None
) -> Box:
    mvhd = moov.find("mvhd")
    scale = (mvhd["timescale"] if mvhd is not None else 0) or TIMESCALE
    length = sum(duration for duration, _ in samples)
    shown = length * scale // TIMESCALE if tables else 0
    trak = _trak(track, shown, length if tables else 0, tables, language)
    children: list[Box] = []
    for child in moov.children:
        if child.type == "mvhd":
            more: dict[str, Any] = {"next_track_ID": max(child["next_track_ID"], track + 1)}
            if shown > child["duration"]:
                more["duration"] = shown
            child = child.replace(**more)
        elif child.type == "mvex":
            trex = make_box("trex", track_ID=track, default_sample_description_index=1)
            child = child.replace(children=[*child.children, trex])
        children.append(child)
    # After the other tracks: where a player takes what comes first, nothing changes.
    last = max((n for n, child in enumerate(children) if child.type == "trak"), default=-1)
    children.insert(last + 1, trak)
    return moov.replace(children=children)


def _trak(track: int, shown: int, length: int, tables: list[Box], language: str | None) -> Box:
    entry = make_box("wvtt", children=[make_box("vttC", config="WEBVTT")])
    self_contained = make_box("url ", flags=1)
    stbl = [
        make_box("stsd", children=[entry]),
        *(tables or empty_tables()),
    ]
    minf = [
        make_box("nmhd"),
        make_box("dinf", children=[make_box("dref", children=[self_contained])]),
        make_box("stbl", children=stbl),
    ]
    mdhd = make_box("mdhd", timescale=TIMESCALE, duration=length, language=_packed(language))
    tags = [make_box("elng", extended_language=language)] if language else []
    mdia = [
        mdhd,
        make_box("hdlr", handler_type="text", name="captions"),
        *tags,
        make_box("minf", children=minf),
    ]
    return make_box(
        "trak",
        children=[
            make_box("tkhd", flags=3, track_ID=track, duration=shown),
            make_box("mdia", children=mdia),
        ],
    )


def _packed(language: str | None) -> int:
    """The three letters of ISO 639-2 where the tag has them; the tag itself goes into elng."""
    letters = three_letters(language)
    if letters is None:
        return _UNDETERMINED
    first, second, third = (ord(letter) - 0x60 for letter in letters)
    return first << 10 | second << 5 | third


def _planned(track_id: int, samples: list[tuple[int, bytes]]) -> PlannedTrack:
    """The track of captions: samples that are made, one after the other."""
    info = TrackInfo(track_id, "text", "text", TIMESCALE, "wvtt", "wvtt")
    count = len(samples)
    durations = np.array([duration for duration, _ in samples], np.int64)
    begins = np.cumsum(durations) - durations
    columns = {"dts": begins, "cts": begins, "duration": durations, "sync": np.ones(count, bool)}
    columns["offset"] = np.zeros(count, np.int64)
    columns["size"] = np.array([len(data) for _, data in samples], np.int64)
    return PlannedTrack(
        Track(info, FragmentTable.empty(), SyncTable.empty()),
        SampleTable.of(columns),
        TIMESCALE,
        one_source(0, count),
        made={number: data for number, (_, data) in enumerate(samples)},
    )


def _mdat(samples: list[tuple[int, bytes]]) -> bytes:
    data = b"".join(data for _, data in samples)
    return (8 + len(data)).to_bytes(4, "big") + b"mdat" + data


def _pointed(moov: bytes, start: int) -> bytes:
    """The moov with the place of the captions: their mdat stands right after it."""
    box = parse_box(moov, offset=start)
    last = box.find_all("trak")[-1]
    rows = np.array([(start + len(moov) + 8,)], [("chunk_offset", ">u8")])
    changes = {"mdia/minf/stbl/co64": lambda co64: co64.replace(entries=rows)}
    return build(
        with_changes(box, {"trak": lambda one: with_changes(one, changes) if one is last else one})
    )


def _fragment(planned: PlannedTrack) -> bytes:
    """A moof with all samples, and its mdat. It comes first, so that its number is 0."""
    edges = np.array([0, len(planned)])
    fragment = Fragments(Plan((planned,)), [edges], first_number=0)
    return b"".join(block for block in fragment.parts(0) if isinstance(block, bytes))


MAX_MS: Final = 1000 * 3600 * 1000
"""Latest time of a cue; more is no caption of any file."""

_ARROW: Final = "-->"
_VTT_TIME = r"(?:(\d{2,6}):)?([0-5]\d):([0-5]\d)\.(\d{3})"
_VTT_TIMING = re.compile(rf"\s*{_VTT_TIME}\s*-->\s*{_VTT_TIME}(?:\s+(.*))?", re.ASCII)
_SRT_TIME = r"(\d{1,6}):([0-5]?\d):([0-5]?\d)[,.](\d{1,3})"
_SRT_TIMING = re.compile(rf"\s*{_SRT_TIME}\s*-->\s*{_SRT_TIME}(?:\s.*)?", re.ASCII)
_NO_CUES: Final = ("NOTE", "STYLE", "REGION")


def timing(start_ms: int, end_ms: int, point: str = ".") -> str:
    """The line of a cue that says when it is shown.

    Args:
        point: in front of the milliseconds: a dot in WebVTT, a comma in SubRip.

    >>> timing(1000, 3_723_500)
    '00:00:01.000 --> 01:02:03.500'
    """
    return f" {_ARROW} ".join(
        f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"
        for ms in (start_ms, end_ms)
    )


def parse_webvtt(data: bytes) -> list[CaptionCue]:
    r"""The cues of a WebVTT file, in its order.

    Raises:
        MalformedCaptions: no signature, or a cue that cannot be read; names the line.

    >>> parse_webvtt(b"WEBVTT\n\n00:01.000 --> 00:02.500\nHello")
    [CaptionCue(start_ms=1000, end_ms=2500, text='Hello')]
    """
    return [cue for cue, _ in webvtt_cues(data)[1]]


def webvtt_cues(data: bytes) -> tuple[list[str], list[tuple[CaptionCue, str]]]:
    r"""The blocks of styles and regions of a WebVTT file, and its cues with their settings.

    Raises: as `parse_webvtt`.

    >>> webvtt_cues(b"WEBVTT\n\nSTYLE\n::cue{}\n\n00:01.000 --> 00:02.000 line:0\nHello")
    (['STYLE\n::cue{}'], [(CaptionCue(start_ms=1000, end_ms=2000, text='Hello'), 'line:0')])
    """
    lines = _lines_of(data)
    if not re.match(r"WEBVTT(?:[ \t]|$)", lines[0]):
        raise _refused("WebVTT begins with WEBVTT", 1)
    blocks: list[str] = []
    cues: list[tuple[CaptionCue, str]] = []
    at = 1
    while at < len(lines) and lines[at] and _ARROW not in lines[at]:
        at += 1  # the rest of the header
    while at < len(lines):
        if not lines[at]:
            at += 1
            continue
        end = at
        while end < len(lines) and lines[end]:
            end += 1
        cue = _block(lines, at, end)
        if cue is not None:
            cues.append(cue)
        elif not cues and re.match(r"(?:STYLE|REGION)(?:[ \t]|$)", lines[at]):
            blocks.append("\n".join(lines[at:end]))
        at = end
    return blocks, cues


def _block(lines: list[str], at: int, end: int) -> tuple[CaptionCue, str] | None:
    first = lines[at]
    if _ARROW not in first:
        if first.split(" ")[0].split("\t")[0] in _NO_CUES or at + 1 == end:
            return None
        at += 1  # the identifier of a cue
        if _ARROW not in lines[at]:
            return None
    times = _VTT_TIMING.fullmatch(lines[at])
    if times is None:
        raise _refused("this is not the timing of a cue", at + 1)
    text = lines[at + 1 : end]
    for place, line in enumerate(text):
        if _ARROW in line:
            raise _refused("there is no empty line before this cue", at + 2 + place)
    return _cue(times, "\n".join(text), at + 1), (times[9] or "").strip()


def parse_srt(data: bytes) -> list[CaptionCue]:
    r"""The cues of a SubRip file, in its order.

    Raises:
        MalformedCaptions: no cue, or one that cannot be read; names the line.

    >>> parse_srt(b"1\n00:00:01,000 --> 00:00:02,5\nHello\n")
    [CaptionCue(start_ms=1000, end_ms=2500, text='Hello')]
    """
    lines = _lines_of(data)
    cues: list[CaptionCue] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        timing = at + 1 if lines[at].strip().isdecimal() else at
        times = _SRT_TIMING.fullmatch(lines[timing]) if timing < len(lines) else None
        if times is None:
            raise _refused("a number and the timing of a cue are expected", at + 1)
        end = timing + 1
        while end < len(lines) and not _begins(lines, end):
            end += 1
        text = "\n".join(lines[timing + 1 : end]).strip("\n")
        cues.append(_cue(times, text, timing + 1))
        at = end
    if not cues:
        raise _refused("no cues")
    return cues


def _begins(lines: list[str], at: int) -> bool:
    """Whether a cue begins here: text may hold empty lines, and numbers."""
    if lines[at - 1].strip():
        return False
    if _SRT_TIMING.fullmatch(lines[at]):
        return True
    following = lines[at + 1] if at + 1 < len(lines) else ""
    return lines[at].strip().isdecimal() and bool(_SRT_TIMING.fullmatch(following))


def parse_json(data: bytes) -> list[CaptionCue]:
    """The segments of captions in JSON, in their order; the words are looked at, too.

    Raises:
        MalformedCaptions: no JSON, or a member that is not what it should be; names it.

    >>> parse_json(b'{"segments": [{"start": 1, "end": 2.5, "text": "Hello"}]}')
    [CaptionCue(start_ms=1000, end_ms=2500, text='Hello')]
    """
    text = "\n".join(_lines_of(data))
    try:
        document = json.loads(text, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        raise _refused(f"it is not JSON: {error.msg}", error.lineno) from None
    except (RecursionError, ValueError):
        raise _refused("it is JSON, but not captions") from None
    if not isinstance(document, dict) or not isinstance(document.get("segments"), list):
        raise _refused("an object with a list of segments is expected")
    words = document.get("word_segments", [])
    if not isinstance(words, list):
        raise _refused("word_segments is not a list")
    for _ in _cues("word_segments", words):
        pass
    return list(_cues("segments", document["segments"]))


def _cues(name: str, members: list[Any]) -> Iterator[CaptionCue]:
    for place, member in enumerate(members):
        if not isinstance(member, dict) or not isinstance(member.get("text"), str):
            raise _refused(f"{name}[{place}] has no text")
        start, end = (_milliseconds(member.get(key)) for key in ("start", "end"))
        if start is None or end is None:
            raise _refused(f"{name}[{place}]: start and end are seconds from 0 on")
        try:
            yield _timed(start, end, member["text"], 0)
        except MalformedCaptions as error:
            raise _refused(f"{name}[{place}]: it ends before it starts, or too far away") from error


def _milliseconds(seconds: Any) -> int | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        value = float(seconds)
    except OverflowError:
        return None
    return round(value * 1000) if 0 <= value < math.inf else None


def _refused(why: str, line: int | None = None) -> MalformedCaptions:
    """The error for captions that break the rules of their kind; `line` counts from 1."""
    return MalformedCaptions(f"the captions cannot be read: {why}", line=line)


def _lines_of(data: bytes) -> list[str]:
    """Lines of UTF-8 text, whatever ends them; without the mark of the byte order."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused("it is not UTF-8", data.count(b"\n", 0, error.start) + 1) from None
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _timed(start_ms: int, end_ms: int, text: str, line: int) -> CaptionCue:
    """A cue, its times looked at."""
    if end_ms < start_ms:
        raise _refused("a cue ends before it starts", line)
    if end_ms > MAX_MS:
        raise _refused("a cue is too far away", line)
    return CaptionCue(start_ms, end_ms, text)


def _cue(times: re.Match[str], text: str, line: int) -> CaptionCue:
    """A cue by its timing, which stands in a line that counts from 1."""
    fields = times.groups()
    return _timed(_ms(*fields[:4]), _ms(*fields[4:8]), text, line)


def _ms(hours: str | None, minutes: str, seconds: str, fraction: str) -> int:
    whole = (int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)
    return whole * 1000 + int(fraction.ljust(3, "0"))
