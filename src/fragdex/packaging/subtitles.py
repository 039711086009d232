"""Subtitles of a title: WebVTT segments of cues, or fragments of text as they are.

Cues come from caption files (WebVTT, SubRip, JSON) and from samples of wvtt and tx3g tracks. How
long a segment is has to be known before its text is read. A segment of samples therefore has a
bound that follows from their sizes, and ends in empty lines up to it, which WebVTT ignores.
"""

from __future__ import annotations

import os
import re
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cached_property, partial
from hashlib import md5
from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from fragdex.boxes import Box, parse
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, FragdexError, LimitExceeded, MalformedCaptions
from fragdex.fragments.table import FAR, Int64
from fragdex.fragments.track_info import language_tag
from fragdex.muxing.plan import PlannedTrack
from fragdex.muxing.view import Block, Derived, Scattered, View, size_of
from fragdex.packaging.renditions import Rendition
from fragdex.record import record
from fragdex.seeking.origin import FileInfo
from fragdex.sources import open_source

if TYPE_CHECKING:
    from fragdex.muxing.captions import CaptionCue

SAMPLE_BYTES: Final = 1 << 16
"""A sample of text that is larger is left out: it is no subtitle."""
_ESCAPED: Final = 5
"""Bytes that one byte of text becomes at most: & is written as &amp;."""
TIMING: Final = 64
"""Bytes of the times of a cue at most, with the lines around it."""
_TAGS: Final = ((1, "b"), (2, "i"), (4, "u"))
"""face_style_flags of a style record (3GPP TS 26.245, 5.17.1.1)."""
_escaped: Final = partial(escape, quote=False)


class VttCue(NamedTuple):
    """Text from `start` (inclusive) to `end` (exclusive), seconds of presentation.

    Attributes:
        start, end: as said.
        text: the payload as it stands in WebVTT, escaped.
        settings: after the times, or "".
    """

    start: Fraction
    end: Fraction
    text: str
    settings: str = ""


def header(blocks: Iterable[str] = ()) -> str:
    """What each segment begins with: styles, and that its times are those of the presentation.

    X-TIMESTAMP-MAP ties the times of cues to those of the media (RFC 8216, 3.5), which are the
    same here.
    """
    text = "".join(f"{block}\n\n" for block in blocks)
    return f"WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n{text}"


def written(head: str, cues: Iterable[VttCue]) -> bytes:
    """A WebVTT text. Cues of one text that touch are one."""
    # A title without subtitles does not load what reads and writes them.
    from fragdex.muxing.captions import timing

    joined: list[VttCue] = []
    for cue in cues:
        for number in range(len(joined) - 1, max(len(joined) - 9, -1), -1):
            if joined[number][1:] == (cue.start, *cue[2:]):
                joined[number] = joined[number]._replace(end=cue.end)
                break
        else:
            joined.append(cue)
    blocks = [
        _block(timing(start, end), cue.settings, cue.text)
        for cue in joined
        if (start := _milliseconds(cue.start)) < (end := _milliseconds(cue.end))
    ]
    return (head + "".join(blocks)).encode("utf-8", "replace")


def _block(times: str, settings: str, text: str) -> str:
    return f"{times}{' ' if settings else ''}{settings}\n{text}\n\n"


def sample_bound(sizes: Int64) -> Int64:
    """Bytes that the cues of each sample need at most, by the samples' sizes."""
    return _ESCAPED * sizes + TIMING


def cues_of_sample(data: bytes, code: str, start: Fraction, end: Fraction) -> Iterator[VttCue]:
    """The cues of a sample: one of tx3g, any number of wvtt; none where it cannot be read.

    Args:
        data: of the sample.
        code: of its sample entry: wvtt or tx3g.
        start, end: seconds of presentation.
    """
    if len(data) > SAMPLE_BYTES:
        return
    if code == "tx3g":
        text = _lines(_styled(data))
        if text:
            yield VttCue(start, end, text)
        return
    try:
        boxes = parse(data)
    except (FragdexError, ValueError):
        return
    for box in boxes:
        text = _lines(_field(box, "payl", "cue_text")) if box.type == "vttc" else ""
        if text:
            settings = " ".join(_field(box, "sttg", "settings").split())
            yield VttCue(start, end, text, "" if "-->" in settings else settings)


def _field(box: Box, child: str, name: str) -> str:
    below = box.find(child)
    value = below.get(name) if below is not None else None
    return value if isinstance(value, str) else ""


def _lines(text: str) -> str:
    """Without empty lines, which would end the cue, and without what would begin another."""
    lines = re.split(r"\r\n|\r|\n", text.replace("\0", "").replace("-->", "--&gt;"))
    return "\n".join(line for line in lines if line.strip())


def _styled(data: bytes) -> str:
    """The text of a tx3g sample (3GPP TS 26.245, 5.17), its styles as tags."""
    size = int.from_bytes(data[:2], "big")
    raw = data[2 : 2 + size]
    wide = {b"\xfe\xff": "utf-16-be", b"\xff\xfe": "utf-16-le"}.get(raw[:2])
    text = raw[2:].decode(wide, "replace") if wide else raw.decode("utf-8", "replace")
    pieces, at = [], 0
    for start, stop, flags in _styles(data[2 + size :]):
        tags = [tag for flag, tag in _TAGS if flags & flag]
        if tags and at <= start < stop:
            pieces.append(_escaped(text[at:start]))
            pieces += [f"<{tag}>" for tag in tags]
            pieces.append(_escaped(text[start:stop]))
            pieces += [f"</{tag}>" for tag in reversed(tags)]
            at = stop
    return "".join([*pieces, _escaped(text[at:])])


def _styles(data: bytes) -> Iterator[Sequence[int]]:
    """First character, the one after the last, and face flags of style records."""
    at = 0
    while at + 8 <= len(data):
        size, code = struct.unpack_from(">I4s", data, at)
        if size < 8:
            return
        if code == b"styl" and at + 10 <= len(data):
            count = int.from_bytes(data[at + 8 : at + 10], "big")
            stop = min(at + size, len(data))
            for place in range(at + 10, min(at + 10 + 12 * count, stop - 11), 12):
                yield struct.unpack_from(">HHxxB", data, place)
        at += size


def _milliseconds(seconds: Fraction) -> int:
    return int(max(seconds, Fraction(0)) * 1000 + Fraction(1, 2))


MOST_BYTES: Final = 16 << 20
"""Bytes of a caption file; ten hours have about one million."""
_SUFFIXES: Final = (".vtt", ".srt", ".json")
_TAG: Final = re.compile(r"[a-zA-Z]{2,3}(?:-[a-zA-Z0-9]{2,8})*")
_MARKUP: Final = re.compile(r"<(/?[biu])>|</?[a-zA-Z][^<>\n]*>|\{\\[^{}\n]*\}")
"""Tags of SubRip, and overrides of SubStation as in {\\an8}; another < is a character."""


@record(frozen=True, slots=True)
class Captions:
    """Subtitles of a title.

    Attributes:
        cues: in the order of WebVTT (text track cue order: by start, the one that ends later
            first), each with its settings; their text is as in WebVTT.
        language: BCP 47 tag, or None.
        title: what people choose them by; None: the language.
        forced: whether they are shown to those who chose no subtitles: translations of signs.
        default: whether they are shown unless people choose something else.
        blocks: styles and regions.
        digest: hex digits that two files of other bytes do not share.
    """

    cues: tuple[tuple[CaptionCue, str], ...]
    language: str | None = None
    title: str | None = None
    forced: bool = False
    default: bool = False
    blocks: tuple[str, ...] = field(default=())
    digest: str = ""


def read_captions(path: str | os.PathLike[str], *, language: str | None = None) -> Captions:
    """A caption file, its language and kind by its name: `film.fr.srt`, `film.en-GB.forced.vtt`.

    Args:
        path: ends in .vtt, .srt or .json; or a URL.
        language: BCP 47 tag; None: by the name.

    Raises:
        MalformedCaptions: it is none of these kinds, or breaks their rules; names the line.
        LimitExceeded: it is too large.
        SourceError: it cannot be read.
    """
    name = os.fspath(path)
    words = name.rpartition("/")[2].partition("?")[0].split(".")
    kind = f".{words.pop().lower()}"
    if kind not in _SUFFIXES:
        raise MalformedCaptions(f"{name}: captions end in {', '.join(_SUFFIXES)}")
    with open_source(name) as source:
        data = source.read_up_to(ByteRange(0, MOST_BYTES + 1))
    if len(data) > MOST_BYTES:
        raise LimitExceeded(f"{name} has more than {MOST_BYTES} bytes of captions")
    forced = words[-1:] == ["forced"]
    default = words[-1:] == ["default"]
    if forced or default:
        words.pop()
    if language is None and len(words) > 1 and _TAG.fullmatch(words[-1]):
        language = words[-1]
    try:
        return captions_of(data, kind, language=language, forced=forced, default=default)
    except MalformedCaptions as error:
        error.args = (f"{name}: {error.message}",)
        error.message = error.args[0]
        raise


def captions_of(
    data: bytes,
    kind: str,
    *,
    language: str | None = None,
    title: str | None = None,
    forced: bool = False,
    default: bool = False,
) -> Captions:
    """The captions in the bytes of a file.

    Args:
        data: of it.
        kind: .vtt, .srt or .json.
        language, title, forced, default: as in `Captions`.

    Raises:
        MalformedCaptions: they break the rules of their kind.
    """
    from fragdex.muxing.captions import parse_json, parse_srt, webvtt_cues

    blocks: list[str] = []
    if kind == ".vtt":
        blocks, cues = webvtt_cues(data)
    else:
        plain = parse_srt(data) if kind == ".srt" else parse_json(data)
        cues = [(cue._replace(text=_payload(cue.text, kind == ".srt")), "") for cue in plain]
    ordered = sorted(cues, key=lambda one: (one[0].start_ms, -one[0].end_ms))
    digest = md5(data, usedforsecurity=False).hexdigest()
    tag = language_tag(language)
    return Captions(tuple(ordered), tag, title, forced, default, tuple(blocks), digest)


def _payload(text: str, markup: bool) -> str:
    """Plain text as a payload of WebVTT; of SubRip's markup, what both know stays."""
    pieces, at = [], 0
    for tag in _MARKUP.finditer(text) if markup else ():
        pieces.append(_escaped(text[at : tag.start()]))
        pieces.append(f"<{tag[1]}>" if tag[1] else "")
        at = tag.end()
    return _lines("".join([*pieces, _escaped(text[at:])]))


def as_webvtt(captions: Captions) -> bytes:
    """All cues as a WebVTT file: none is joined or left out, and each is a block of its own."""
    from fragdex.muxing.captions import timing

    blocks = [f"{block}\n\n" for block in captions.blocks]
    blocks += [
        _block(timing(cue.start_ms, cue.end_ms), settings, cue.text)
        for cue, settings in captions.cues
    ]
    return "".join(["WEBVTT\n\n", *blocks]).encode("utf-8", "replace")


CUES: Final = ("wvtt", "tx3g")
"""Formats of text whose samples become WebVTT."""
FRAGMENTS: Final = ("wvtt", "stpp")
"""Formats of text that players take in fragments."""
_AT_ONCE: Final = 16 << 20
"""Bytes of samples that are read for one text."""
_ROLES: Final = ("urn:mpeg:dash:role:2011", "about:html-kind")
_FORCED: Final = ("forced-subtitle", "forced_subtitle", "forced")
_ALL_FORCED: Final = 0x80000000
"""displayFlags of tx3g: all samples are forced (QuickTime File Format, subtitle media)."""


@record(frozen=True, eq=False)
class FileCues:
    """The cues of a caption file."""

    captions: Captions

    @property
    def sources(self) -> tuple[FileInfo, ...]:
        """No file of the title: they are in memory."""
        return ()

    @property
    def recipe(self) -> str:
        """What decides them."""
        return self.captions.digest

    @cached_property
    def _times(self) -> tuple[Int64, Int64]:
        """Milliseconds of starts, which rise, and the latest end up to each cue."""
        starts = np.array([cue.start_ms for cue, _ in self.captions.cues], np.int64)
        return starts, np.maximum.accumulate(self._ends)

    def block(self, start: Fraction, stop: Fraction | None) -> Block:
        """WebVTT with the cues that are shown between two times in seconds."""
        low, high = (int(one[0]) for one in _rows(*self._times, 1000, [start], [stop]))
        shown = (low + np.flatnonzero(self._ends[low:high] > min(start * 1000 // 1, FAR))).tolist()
        head = header(self.captions.blocks)
        if self._texts is None:
            return written(head, (self._cues[number] for number in shown))
        return head.encode() + b"".join([self._texts[number] for number in shown])

    @cached_property
    def _ends(self) -> Int64:
        return np.array([cue.end_ms for cue, _ in self.captions.cues], np.int64)

    @cached_property
    def _cues(self) -> list[VttCue]:
        return [
            VttCue(Fraction(cue.start_ms, 1000), Fraction(cue.end_ms, 1000), cue.text, settings)
            for cue, settings in self.captions.cues
        ]

    @cached_property
    def _texts(self) -> list[bytes] | None:
        """Each cue as it is written; None: some touch, and what is written is their sum.

        A cue that lasts is in every segment that shows it, and is put into words once.
        """
        ends = {(cue.end, cue.text, cue.settings) for cue in self._cues}
        if any((cue.start, cue.text, cue.settings) in ends for cue in self._cues):
            return None
        return [written("", [cue]) for cue in self._cues]

    def sizes(self, starts: Sequence[Fraction], stops: Sequence[Fraction | None]) -> Int64:
        """Bytes of each of such texts, at most."""
        sizes = [len(f"{cue.text}{settings}".encode()) for cue, settings in self.captions.cues]
        bounds = np.cumsum([0, *(TIMING + size for size in sizes)])
        low, high = _rows(*self._times, 1000, starts, stops)
        lengths: Int64 = len(header(self.captions.blocks).encode()) + bounds[high] - bounds[low]
        return lengths


@record(frozen=True, eq=False)
class TrackCues:
    """The cues of a track of text.

    Attributes:
        media: its samples.
        source: the file that holds them.
        code: of the sample entry: wvtt or tx3g.
        blocks: styles and regions.
    """

    media: PlannedTrack
    source: FileInfo
    code: str
    blocks: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[FileInfo, ...]:
        """The file that is read."""
        return (self.source,)

    @property
    def recipe(self) -> int:
        """What decides them: the track."""
        return self.media.track.id

    @cached_property
    def _times(self) -> tuple[Int64, Int64]:
        """Ticks of starts, which rise, and of ends."""
        begins = np.maximum.accumulate(self.media.presentation)
        return begins, begins + self.media.durations

    def _readable(self, rows: slice) -> Int64:
        """Samples that hold text, and not more than subtitles have."""
        sizes = self.media.samples.size[rows]
        numbers: Int64 = np.flatnonzero((sizes > 2) & (sizes <= SAMPLE_BYTES)) + (rows.start or 0)
        return numbers

    def block(self, start: Fraction, stop: Fraction | None) -> Block:
        """As `FileCues.block`; the text is read when it is needed.

        Raises:
            BuildError: there is more text than a title has.
        """
        media, scale = self.media, self.media.timescale
        low, high = (int(one[0]) for one in _rows(*self._times, scale, [start], [stop]))
        rows = self._readable(slice(low, high))
        sizes = media.samples.size[rows]
        head = header(self.blocks)
        if not len(rows):
            return head.encode()
        if int(sizes.sum()) > _AT_ONCE:
            raise BuildError(
                f"the samples of text track {media.track.id} are too large for subtitles",
                expected=f"at most {_AT_ONCE} bytes",
                found=int(sizes.sum()),
                advice="leave it out with tracks=",
            )
        columns = (times[rows].tolist() for times in self._times)
        times = [(Fraction(a, scale), Fraction(b, scale)) for a, b in zip(*columns, strict=True)]
        size = len(head.encode()) + int(sample_bound(sizes).sum())

        def make(data: Sequence[bytes]) -> bytes:
            cues = [
                cue
                for one, (begin, end) in zip(data, times, strict=True)
                for cue in cues_of_sample(one, self.code, begin, end)
            ]
            return written(head, cues).ljust(size, b"\n")

        ranges = Scattered(int(media.source[low]), media.samples.offset[rows], sizes)
        return Derived(ranges, make, 0, size)

    def sizes(self, starts: Sequence[Fraction], stops: Sequence[Fraction | None]) -> Int64:
        """Bytes of each of such texts."""
        bounds = np.zeros(len(self.media) + 1, np.int64)
        rows = self._readable(slice(0, None))
        bounds[rows + 1] = sample_bound(self.media.samples.size[rows])
        bounds = np.cumsum(bounds)
        low, high = _rows(*self._times, self.media.timescale, starts, stops)
        lengths: Int64 = len(header(self.blocks).encode()) + bounds[high] - bounds[low]
        return lengths


def _rows(
    begins: Int64,
    ends: Int64,
    scale: int,
    starts: Sequence[Fraction],
    stops: Sequence[Fraction | None],
) -> tuple[Int64, Int64]:
    """Of some spans the first cue that is shown in each, and the one after the last."""
    lows = np.searchsorted(ends, [min(at * scale // 1, FAR) for at in starts], side="right")
    most = [FAR if at is None else min(-(-at * scale // 1), FAR) for at in stops]
    highs = np.searchsorted(begins, most, side="left")
    return lows, np.maximum(lows, highs)


@record(frozen=True, eq=False)
class Subtitles:
    """A rendition of text.

    Attributes:
        name: its part of addresses: s1, s2, …
        title: what people choose it by.
        language: BCP 47 tag, or None.
        forced: whether players show it to those who chose no subtitles.
        default: whether players show it unless people choose something else.
        lead: the rendition whose segments cut it.
        cues: as WebVTT; None: it has fragments alone.
        rendition: its fragments; None: it has cues alone.
        growing: whether only segments are named whose text is all there.
    """

    name: str
    title: str
    language: str | None
    forced: bool
    default: bool
    lead: Rendition
    cues: FileCues | TrackCues | None
    rendition: Rendition | None = None
    growing: bool = False

    @cached_property
    def _edges(self) -> list[int]:
        edges: list[int] = self.lead.edges.tolist()
        if self.growing and isinstance(self.cues, TrackCues):
            media = self.cues.media
            reached = Fraction(media.end * self.lead.timescale, media.timescale)
            edges = [at for at in edges if at <= reached]
        return edges

    @property
    def times(self) -> list[int]:
        """Names of its WebVTT segments: ticks of the lead at which they begin."""
        return self._edges[:-1]

    def segment(self, time: int, recipe: Any) -> View | None:
        """The WebVTT segment of this name, or None."""
        number = bisect_left(self.times, time)
        if self.cues is None or self.times[number : number + 1] != [time]:
            return None
        start, stop = self._spans[number]
        return self._view(start, stop, [*recipe, number])

    @cached_property
    def _spans(self) -> list[tuple[Fraction, Fraction | None]]:
        """What its segments hold: what is shown before or after the title, the outer ones do."""
        scale = self.lead.timescale
        starts: list[Fraction] = [Fraction(at, scale) for at in self._edges]
        stops: list[Fraction | None] = [*starts[1:-1], *([starts[-1]] if self.growing else [None])]
        return list(zip([Fraction(0), *starts[1:-1]], stops, strict=True)) if self.times else []

    @property
    def sizes(self) -> Int64:
        """int64 bytes of each of its WebVTT segments, at most."""
        if self.cues is None or not self._spans:
            return np.zeros(len(self._spans), np.int64)
        starts, stops = zip(*self._spans, strict=True)
        return self.cues.sizes(starts, stops)

    @property
    def size(self) -> int:
        """Bytes of all cues as one file, at most."""
        return 0 if self.cues is None else int(self.cues.sizes([Fraction(0)], [None])[0])

    def whole(self, recipe: Any) -> View | None:
        """All cues as one WebVTT file, or None."""
        return self._view(Fraction(0), None, [*recipe, "all"])

    def _view(self, start: Fraction, stop: Fraction | None, recipe: Any) -> View | None:
        if self.cues is None:
            return None
        block = self.cues.block(start, stop)
        recipe = [*recipe, self.cues.recipe]
        return View("text/vtt", self.cues.sources, recipe, [size_of(block)], lambda _: [block])


def forced(trak: Box) -> bool:
    """Whether a track of text is said to hold forced subtitles alone."""
    for kind in trak.find_all("udta/kind"):
        if kind.get("schemeURI") in _ROLES and kind.get("value") in _FORCED:
            return True
    entry = trak.find("mdia/minf/stbl/stsd/tx3g")
    return entry is not None and bool(entry.get("displayFlags", 0) & _ALL_FORCED)


def styles(trak: Box) -> tuple[str, ...]:
    """Styles and regions of a track of WebVTT (ISO/IEC 14496-30, 7.5)."""
    config = trak.find("mdia/minf/stbl/stsd/wvtt/vttC")
    text = config.get("config") if config is not None else None
    if not isinstance(text, str) or "-->" in text:
        return ()
    blocks = text.replace("\r\n", "\n").replace("\r", "\n").split("\n\n")
    return tuple(b.strip("\n") for b in blocks if b.lstrip("\n").startswith(("STYLE", "REGION")))
