"""The writer of HLS playlists (RFC 8216). Those who call it decide which segments are listed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from fragdex.fragments.table import Int64
from fragdex.fragments.track_info import language_tag
from fragdex.record import record
from fragdex.seeking.model import Track

VERSION: Final = 7
"""EXT-X-MAP in playlists that are not of I-frames alone (7), with fMP4."""
VERSION_OF_GAPS: Final = 8
"""Of playlists with EXT-X-GAP."""
VERSION_OF_EVENTS: Final = 9
"""Of playlists that grow, be there gaps or not: it never changes (EXT-X-SKIP)."""
GAP: Final = "#EXT-X-GAP"
START, END, BREAK = "#EXTM3U", "#EXT-X-ENDLIST", "#EXT-X-DISCONTINUITY"
STREAM_INF, MEDIA = "#EXT-X-STREAM-INF:", "#EXT-X-MEDIA:"
INDEPENDENT: Final = "#EXT-X-INDEPENDENT-SEGMENTS"
WRITABLE_CODEC = re.compile(r"[!#-+\--~]+")
"""Printable ASCII without quotes and commas, which part a list of codecs (RFC 6381, 3.2)."""

Range = tuple[Fraction, int, int]
"""Seconds, offset and size of a segment."""
Rates = tuple[int, int]
"""Peak and average bit rate, bits a second."""
MOST_TOGETHER = 256
"""Segments of a stretch whose bit rate is looked at."""


def address(uri: str) -> str:
    """A URI as it may stand on a line and in quotes; what is escaped already stays."""
    return quote(bytes_of_name(uri), safe="%/:?#[]@!$&'()*+,;=~")


def quoted(text: str) -> str:
    """What may be in quotes: no quotes, no ends of lines and no other controls (RFC 8216, 4.2)."""
    return "".join("'" if c == '"' else c if c.isprintable() else " " for c in text)


def bytes_of_name(name: str) -> bytes:
    """The bytes of a file name: what is not UTF-8 in it is in it as lone surrogates."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return name.encode("utf-8", "replace")


@record(frozen=True, slots=True)
class Stretch:
    """Segments of a media playlist without a discontinuity between them.

    Attributes:
        durations: of each, seconds as text.
        uris: their addresses.
        ranges: size and offset of each; None: whole files.
        init: address of the initialization segment; None: they have none.
        init_range: its size and offset; None: the whole file.
        keys: attributes of EXT-X-KEY from some segments on, by their numbers.
        tags: other lines in front of each segment's address.
        before: lines in front of some segments, by their numbers.
    """

    durations: Sequence[str]
    uris: Sequence[str]
    ranges: Sequence[tuple[int, int]] | None = None
    init: str | None = None
    init_range: tuple[int, int] | None = None
    keys: Mapping[int, Sequence[str]] = field(default_factory=dict)
    tags: Sequence[str] = ()
    before: Mapping[int, Sequence[str]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The lines of the stretch; players read what EXT-X-MAP names without the keys after it."""
        head = []
        if self.init is not None:
            part = "" if self.init_range is None else ',BYTERANGE="{}@{}"'.format(*self.init_range)
            head.append(f'#EXT-X-MAP:URI="{self.init}"{part}')
        return [*head, *(line for lines in self.of_each() for line in lines)]

    def of_each(self) -> list[list[str]]:
        """The lines of each segment."""
        columns: list[Sequence[str]] = [[f"#EXTINF:{duration}," for duration in self.durations]]
        if self.ranges is not None:
            columns.append([f"#EXT-X-BYTERANGE:{size}@{at}" for size, at in self.ranges])
        columns += [[tag] * len(self.uris) for tag in self.tags]
        rows = zip(*columns, self.uris, strict=True)
        return [[*self._before(n), *row] for n, row in enumerate(rows)]

    def _before(self, number: int) -> Iterator[str]:
        yield from (f"#EXT-X-KEY:{key}" for key in self.keys.get(number, ()))
        yield from self.before.get(number, ())


SKIPPED_UNTIL: Final = 6
"""Target durations before the end of a list up to which players may have it without segments."""


@record(frozen=True, slots=True)
class LowLatency:
    """What a list says of the parts of its last segments (RFC 8216bis, 4.4.3.7, 4.4.3.8, 4.4.5).

    Attributes:
        part: seconds that no part exceeds.
        tail: lines after the last segment: of the segment that is not complete, and of the part
            that comes next.
        skip: leave out segments that players have already (`_HLS_skip`).
        until: how many segments the list has, and does not say that it ends; None: all.
    """

    part: Fraction
    tail: Sequence[str]
    skip: bool = False
    until: int | None = None

    def head(self, target: int) -> list[str]:
        """The lines of the list's head."""
        part = -(-self.part * 1_000_000 // 1) / 1_000_000
        return [
            "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,"
            f"CAN-SKIP-UNTIL={SKIPPED_UNTIL * target:.1f},"
            f"PART-HOLD-BACK={3 * part:.6f},HOLD-BACK={3 * target:.1f}",
            f"#EXT-X-PART-INF:PART-TARGET={part:.6f}",
        ]

    def without_skipped(self, segments: Sequence[str], target: int, before: int = 0) -> list[str]:
        """The lines of segments, the early ones as one EXT-X-SKIP (6.2.5.1).

        Args:
            segments: lines.
            target: the target duration.
            before: segments in front of them, of which none is needed.
        """
        seconds = [
            (number, Fraction(line[len(_EXTINF) : -1]))
            for number, line in enumerate(segments)
            if line.startswith(_EXTINF)
        ]
        left, skipped = Fraction(SKIPPED_UNTIL * target), 0
        for place, (_, lasts) in reversed(list(enumerate(seconds))):
            left -= lasts
            if left < 0:
                skipped = place
                break
        if skipped:
            uris = [number for number, line in enumerate(segments) if not line.startswith("#")]
            segments = segments[uris[skipped - 1] + 1 :]
        if not skipped + before:
            return list(segments)
        return [f"#EXT-X-SKIP:SKIPPED-SEGMENTS={skipped + before}", *segments]


_EXTINF: Final = "#EXTINF:"


def part(micros: int, uri: str, independent: bool) -> str:
    """EXT-X-PART (RFC 8216bis, 4.4.4.9), which lasts so many microseconds."""
    lasts = f"{micros // 1_000_000}.{micros % 1_000_000:06d}"
    return f'#EXT-X-PART:DURATION={lasts},URI="{uri}"' + ",INDEPENDENT=YES" * independent


def preload_hint(uri: str) -> str:
    """EXT-X-PRELOAD-HINT of the part that comes next (RFC 8216bis, 4.4.5.3)."""
    return f'#EXT-X-PRELOAD-HINT:TYPE=PART,URI="{uri}"'


def rendition_report(uri: str, segment: int, part: int) -> str:
    """EXT-X-RENDITION-REPORT: the last segment and part of another list (8216bis, 4.4.5.4)."""
    return f'#EXT-X-RENDITION-REPORT:URI="{uri}",LAST-MSN={segment},LAST-PART={part}'


def media_playlist(
    stretches: Iterable[Stretch],
    target: int,
    tags: Iterable[str] = (),
    *,
    event: bool = False,
    ended: bool = True,
    low_latency: LowLatency | None = None,
    written: Written | None = None,
) -> bytes:
    """A media playlist (4.3.3), as UTF-8 text; EXT-X-DISCONTINUITY parts stretches.

    Args:
        target: whole seconds that no segment exceeds when it is rounded.
        tags: other lines of its head.
        event: whether it grows, or has grown.
        ended: whether nothing comes any more.
        low_latency: parts of its last segments; None: it has none.
        written: lines of the segments up to the first one of the first stretch.
    """
    segments, before = lines_of(stretches, written), written
    if low_latency is not None:
        tags = [*low_latency.head(target), *tags]
        count = 0 if written is None else written.count
        if low_latency.until is not None:
            uris = [number for number, line in enumerate(segments) if not line.startswith("#")]
            segments, ended = segments[: uris[low_latency.until - count - 1] + 1], False
        if low_latency.skip:
            segments, before = low_latency.without_skipped(segments, target, count), None
    version = VERSION_OF_EVENTS if event else VERSION_OF_GAPS if GAP in segments else VERSION
    lines = [
        "#EXTM3U",
        f"#EXT-X-VERSION:{version}",
        f"#EXT-X-TARGETDURATION:{target}",
        "#EXT-X-MEDIA-SEQUENCE:0",
        f"#EXT-X-PLAYLIST-TYPE:{'EVENT' if event else 'VOD'}",
        *tags,
    ]
    text = text_of(lines) + (b"" if before is None else before.text)
    lines = segments
    if low_latency is not None:
        lines += low_latency.tail
    if ended:
        lines.append("#EXT-X-ENDLIST")
    return text + text_of(lines)


def lines_of(stretches: Iterable[Stretch], written: Written | None = None) -> list[str]:
    """The lines of stretches, and of what parts them, after those that are written."""
    lines: list[str] = []
    for number, stretch in enumerate(stretches):
        if written is not None and not number:
            # the last one that is written is the first one of a stretch that continues it
            lines += [line for each in stretch.of_each()[1:] for line in each]
            continue
        lines += [BREAK] * bool(number)
        lines += stretch.lines()
    return lines


@record(frozen=True, slots=True)
class Written:
    """Lines of the first segments of a list that only grows.

    Attributes:
        text: as UTF-8.
        count: of segments.
    """

    text: bytes
    count: int


def multivariant(lines: Iterable[str], *, independent: bool = True) -> bytes:
    """A multivariant playlist (4.3.4), as UTF-8 text.

    Args:
        lines: of `media`, `variant` and `iframes_variant`, and other tags.
        independent: whether all segments of all renditions can be decoded by themselves.
    """
    head = ["#EXTM3U", f"#EXT-X-VERSION:{VERSION}", *[INDEPENDENT] * independent]
    return text_of([*head, *lines])


def text_of(lines: Iterable[str]) -> bytes:
    """Lines as UTF-8."""
    return "".join(f"{line}\n" for line in lines).encode()


@record(frozen=True, slots=True)
class Variant:
    """A variant stream, or what an I-frame playlist shows.

    Attributes:
        uri: of its media playlist.
        rates: of its segments with the renditions that need most.
        codecs: of its tracks and those renditions.
        track: that its pictures come from, if it has any.
        frame_rate: pictures a second, where they are known.
        dynamic_range: SDR, HLG or PQ, where it is known; None: that of the track.
        groups: AUDIO, VIDEO or SUBTITLES → GROUP-ID.
        captioned: whether its pictures may carry closed captions (CEA-608, CEA-708).
    """

    uri: str
    rates: Rates
    codecs: Iterable[str | None]
    track: Track
    frame_rate: Fraction | None = None
    dynamic_range: str | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    captioned: bool = True

    def lines(self) -> list[str]:
        """EXT-X-STREAM-INF (4.3.4.2) and the address."""
        groups = [f'{kind}="{quoted(name)}"' for kind, name in self.groups.items()]
        none = [] if self.captioned else ["CLOSED-CAPTIONS=NONE"]
        about = ",".join([*self._attributes(), *groups, *none])
        return [f"#EXT-X-STREAM-INF:{about}", address(self.uri)]

    def iframes_line(self) -> str:
        """EXT-X-I-FRAME-STREAM-INF (4.3.4.3)."""
        about = ",".join([*self._attributes(), f'URI="{address(self.uri)}"'])
        return f"#EXT-X-I-FRAME-STREAM-INF:{about}"

    def _attributes(self) -> list[str]:
        peak, average = self.rates
        about = [f"BANDWIDTH={peak}", f"AVERAGE-BANDWIDTH={average}"]
        known = list(dict.fromkeys(self.codecs))
        if known and all(codec and WRITABLE_CODEC.fullmatch(codec) for codec in known):
            about.append(f'CODECS="{",".join(map(str, known))}"')
        if supplemental := self.track.info.supplemental_codec:
            about.append('SUPPLEMENTAL-CODECS="{}/{}"'.format(*supplemental))
        if size := shown_size(self.track):
            about.append("RESOLUTION={}x{}".format(*size))
        if self.frame_rate is not None:
            about.append(f"FRAME-RATE={float(self.frame_rate):.3f}")
        if self.dynamic_range is not None:
            about.append(f"VIDEO-RANGE={self.dynamic_range}")
        return about


def media(
    kind: str,
    name: str,
    *,
    group: str | None = None,
    language: str | None = None,
    channels: str | None = None,
    default: bool = True,
    forced: bool = False,
    uri: str | None = None,
) -> str:
    """An EXT-X-MEDIA line (4.3.4.1).

    Args:
        kind: audio, video or subtitles.
        name: what people choose the rendition by.
        group: GROUP-ID; None: the kind.
        language: BCP 47 tag.
        channels: of audio.
        default: whether players take it unless people choose another one.
        forced: whether subtitles are shown to those who chose none.
        uri: address of its media playlist; None: its media is in that of the variant.
    """
    about = [f"TYPE={kind.upper()}", f'GROUP-ID="{quoted(group or kind)}"']
    about.append(f'NAME="{quoted(name)}"')
    if language:
        about.append(f'LANGUAGE="{quoted(language)}"')
    about += [f"DEFAULT={'YES' if default else 'NO'}", "AUTOSELECT=YES"]
    if kind == "subtitles":
        about.append(f"FORCED={'YES' if forced else 'NO'}")
    if channels:
        about.append(f'CHANNELS="{channels}"')
    if uri is not None:
        about.append(f'URI="{address(uri)}"')
    return "#EXT-X-MEDIA:" + ",".join(about)


def durations_between(ends: Iterable[int]) -> list[str]:
    """Seconds as text of segments that end at these microseconds, the first one where they begin.

    Ends are rounded, not durations: so the sum does not drift.
    """
    lasts = (stop - start for start, stop in pairwise(ends))
    return [f"{micros // 1_000_000}.{micros % 1_000_000:06d}" for micros in lasts]


def gap(ends: Iterable[int], uri: str) -> list[str]:
    """The lines of segments that are missing (RFC 8216bis, 4.4.4.7).

    Args:
        ends: microseconds, as of `durations_between`.
        uri: their address, where nothing is.
    """
    return [
        line for seconds in durations_between(ends) for line in (GAP, f"#EXTINF:{seconds},", uri)
    ]


def target_duration(durations: Iterable[Fraction]) -> int:
    """Whole seconds that no segment exceeds when it is rounded (4.3.3.1); at least 1."""
    return max(1, int(max(durations, default=Fraction(1)) + Fraction(1, 2)))


def bandwidths(segments: Sequence[Range]) -> Rates:
    """Peak and average segment bit rate in bits a second, rounded up; 1 where nothing is.

    The peak is that of the stretch that needs most, among those of consecutive segments that last
    from half to one and a half target durations (4.3.4.2).
    """
    unit = lcm(*(seconds.denominator for seconds, _, _ in segments))
    ticks = np.array([int(seconds * unit) for seconds, _, _ in segments], object)
    sizes = np.array([size for _, _, size in segments], object)
    return bit_rates(ticks, sizes, unit)


def bit_rates(ticks: npt.NDArray[Any], sizes: npt.NDArray[Any], timescale: int) -> Rates:
    """`bandwidths` of segments whose durations are in ticks."""
    if not len(ticks):
        return 1, 1
    target = max(1, (2 * int(ticks.max()) + timescale) // (2 * timescale)) * timescale
    times, bytes_ = (np.concatenate([[0], np.cumsum(column)]) for column in (ticks, sizes))
    best: tuple[float, int, int] = (0.0, 0, 1)
    for count in range(1, min(len(ticks), MOST_TOGETHER) + 1):
        lasts = times[count:] - times[:-count]
        if 2 * int(lasts.min()) > 3 * target:
            break
        fits = np.flatnonzero((2 * lasts >= target) & (2 * lasts <= 3 * target) & (lasts > 0))
        if len(fits):
            in_window = (bytes_[count:] - bytes_[:-count])[fits]
            at = int((in_window.astype(float) / lasts[fits].astype(float)).argmax())
            rate = int(in_window[at]) / int(lasts[fits][at])
            best = max(best, (rate, int(in_window[at]), int(lasts[fits][at])))
    _, most, lasts_ = best
    peak = Fraction(8 * most * timescale, lasts_)
    whole, all_bytes = int(times[-1]), int(bytes_[-1])
    average = Fraction(8 * all_bytes * timescale, whole) if whole else Fraction(0)
    if not peak:
        known = [(int(s), int(t)) for s, t in zip(sizes, ticks, strict=True) if t]
        peak = max((Fraction(8 * s * timescale, t) for s, t in known), default=Fraction(0))
    return int(max(peak, average)) + 1, int(average) + 1


def picture_size(track: Track) -> tuple[int, int] | None:
    """Pixels of a video track, where they are known."""
    info = track.info
    is_known = track.kind == "video" and info.width and info.height
    return (info.width or 0, info.height or 0) if is_known else None


MOST_WIDTH: Final = 1 << 16
"""Pixels: a sample entry has 16 bits for the coded width; what pasp claims may be anything."""


def shown_size(track: Track) -> tuple[int, int] | None:
    """Pixels of a video track as it is shown, where each is square (pasp); None: not known."""
    size, aspect = picture_size(track), track.info.pixel_aspect
    if size is None or aspect is None:
        return size
    width = round(Fraction(size[0] * aspect[0], aspect[1]))
    return min(max(width, 1), MOST_WIDTH), size[1]


def channels_of(track: Track) -> str | None:
    """CHANNELS of a sound: how many, or how many objects are joined to them (RFC 8216bis)."""
    joined = track.info.joint_objects
    count = track.info.channel_count
    return f"{joined}/JOC" if joined else None if count is None else str(count)


def highest_rate(durations: Int64, timescale: int, mean: Fraction) -> Fraction:
    """Most pictures a second (4.3.4.2): by the shortest duration that is not an exception.

    Durations that differ by a tick or a millisecond are equal ones that were rounded: then it is
    the mean.
    """
    lasting = np.sort(durations[durations > 0])
    if not len(lasting):
        return mean
    low, high = (int(lasting[len(lasting) * part // 100]) for part in (1, 99))
    return (
        mean if high - low <= max(1, -(-timescale // 1000)) else max(mean, Fraction(timescale, low))
    )


def spoken(track: Track) -> str | None:
    """The language of a track as a BCP 47 tag, or None."""
    return language_tag(track.info.extended_language or track.info.language)
