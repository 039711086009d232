"""One title of several files, one after the other: its lists are made of the lists of each file.

No media is packaged again: addresses in a list lead to the segments of the files, which have their
bytes and tags. A segment has the number that it got when its file joined the title, whatever is
deleted before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from hashlib import md5
from typing import Final, TypeAlias

from fragdex.lru_cache import LRUCache
from fragdex.muxing.segmentation import MARGIN
from fragdex.muxing.view import View
from fragdex.packaging import m3u8, mpd, playlists
from fragdex.packaging.date_ranges import program_date
from fragdex.packaging.mpd import xml_duration
from fragdex.packaging.package import DASH, HLS, MANIFEST, MULTIVARIANT, Package
from fragdex.packaging.titling import UNIX, Growth, Title
from fragdex.record import record

PLACE: Final = "\ue000"
"""What addresses of a file begin with in its lists, until it is known how to get there."""
_MARK: Final = PLACE.encode()
_KEPT: Final = 64 << 20
"""Bytes of lists that are kept; one of a week may have 10 MiB."""
_LED: Final = 8
"""Segments before the last file for which its lists end with the file before."""
_FIRST = re.compile(rb"^#EXT(?:INF:|-X-(?:MAP|KEY|PROGRAM-DATE-TIME|PART):|-X-GAP)", re.MULTILINE)
"""Where the segments of a list begin."""
_DROPPED = re.compile(
    rb"^#EXT-X-(?:PROGRAM-DATE-TIME|RENDITION-REPORT|ENDLIST|DATERANGE).*\n", re.MULTILINE
)
_PARTS = re.compile(rb"^#EXT-X-P(?:ART|RELOAD-HINT):.*\n", re.MULTILINE)
_ADDRESS = re.compile(rb'^(#EXT-X-(?:MAP|PART|PRELOAD-HINT):.*?URI="|(?=[^#\n]))', re.MULTILINE)
_URIS = re.compile(rb"^[^#\n].*\n", re.MULTILINE)
_LASTS = re.compile(rb"^#EXTINF:([\d.]+)", re.MULTILINE)
_TARGET = re.compile(rb"^#EXT-X-TARGETDURATION:(\d+)", re.MULTILINE)


@record(frozen=True, slots=True)
class RotatedFile:
    """Where a file stands in a title.

    Attributes:
        name: of the file.
        inode: number that tells it from another one of this name.
        start: microseconds since 1970 at which its first picture or sound was made.
        discontinuity: number in the title of the one at its beginning.
        first: rendition → number of its first segment.
        counts: rendition → segments; None: it is the last file, and may grow.
        micros: microseconds that it lasts; 0: not known yet.
        discontinuities: in it.
    """

    name: str
    inode: int
    start: int
    discontinuity: int
    first: dict[str, int]
    counts: dict[str, int] | None = None
    micros: int = 0
    discontinuities: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from all other files."""
        return self.name, self.inode

    @property
    def stop(self) -> int:
        """Microseconds since 1970 at which it ends, as far as that is known."""
        return self.start + self.micros

    @property
    def following(self) -> tuple[dict[str, int], int]:
        """`first` and `discontinuity` of the file after it, once nothing more comes to it."""
        counts = self.counts or {}
        first = {name: number + counts.get(name, 0) for name, number in self.first.items()}
        return first, self.discontinuity + self.discontinuities + 1


@record(frozen=True, slots=True)
class FileLists:
    """What the lists of a file say.

    Attributes:
        lists: rendition → lines of its segments; addresses begin with `PLACE`.
        counts: rendition → segments.
        discontinuities: between them.
        seconds: that it lasts.
        master: the multivariant playlist.
        title: the renditions; None: its periods are all that is kept of them.
        periods: of the manifest, as text.
    """

    lists: Mapping[str, bytes]
    counts: dict[str, int]
    discontinuities: int
    seconds: Fraction
    master: bytes
    title: Title | None = None
    periods: str = ""

    @classmethod
    def of(cls, package: Package) -> FileLists:
        """Of a file to which nothing more comes."""
        names = renditions_of(package)
        texts = {name: package[f"{name}.m3u8"].read() for name in names}
        lists = {name: lines_of(text) for name, text in texts.items()}
        return cls(
            lists,
            {name: len(_LASTS.findall(text)) for name, text in lists.items()},
            lists[names[0]].count(b"#EXT-X-DISCONTINUITY\n"),
            seconds_of(package.title),
            package[MULTIVARIANT].read(),
            package.title,
        )

    @property
    def micros(self) -> int:
        """Microseconds that it lasts."""
        return int(self.seconds * 10**6)

    def close(self, file: RotatedFile) -> RotatedFile:
        """The file with what is known of it once nothing more comes to it."""
        return replace(
            file,
            counts=self.counts,
            micros=self.micros,
            discontinuities=self.discontinuities,
        )

    def placed(self, file: RotatedFile, zero: int) -> FileLists:
        """With the periods of the manifest, where the file begins; without what they are made of.

        Args:
            zero: microseconds since 1970 from which the manifest counts.
        """
        assert self.title is not None
        texts = (period.text() for period in periods_of(self.title, file, zero))
        return replace(self, title=None, periods="\n  ".join(texts))


def renditions_of(package: Package) -> list[str]:
    """The names of the renditions of video and audio."""
    return [one.name for one in package.title.renditions]


def seconds_of(title: Title) -> Fraction:
    """How long all periods of a title are."""
    return sum((period.seconds for period in title.periods), Fraction(0))


def target_of(text: bytes) -> int:
    """The target duration of a media playlist."""
    target = _TARGET.search(text)
    return int(target[1]) if target else 0


def lines_of(text: bytes) -> bytes:
    r"""The segments of a media playlist: no dates, no end, addresses marked.

    >>> lines_of(b'#EXTM3U\n#EXT-X-MAP:URI="i.mp4"\n#EXTINF:1,\nv1/0.m4s\n').count(_MARK)
    2
    """
    begins = _FIRST.search(text)
    body = text[begins.start() :] if begins else b""
    return _ADDRESS.sub(rb"\1" + _MARK, _DROPPED.sub(b"", body))


def periods_of(
    title: Title, file: RotatedFile, zero: int, grows: bool = False, is_open: bool = False
) -> list[mpd.Period]:
    """The periods of a file in the manifest of a title.

    Args:
        zero: as of `FileLists.placed`.
        grows: whether the segment is listed that is not complete.
        is_open: whether more of the last one may come.
    """
    periods, start = [], Fraction(file.start - zero, 10**6)
    for number, period in enumerate(title.periods):
        is_last = number == len(title.later)
        about = {"id": str(file.discontinuity + number), "start": xml_duration(start)}
        if not (is_last and is_open):
            about["duration"] = xml_duration(period.seconds)
        sets = playlists.media_sets(period, title, grows and is_last)
        periods.append(mpd.Period(about, sets, f"{PLACE}/dash/"))
        start += period.seconds
    return periods


def gone(file: RotatedFile) -> FileLists:
    """Of a file that was deleted, and others before it were not: its segments are missing."""
    lists = {}
    for name, count in (file.counts or {}).items():
        ends = [file.micros * number // max(count, 1) for number in range(count + 1)]
        lines = m3u8.gap(ends, f"{PLACE}{name}/gap.m4s") if count else []
        lists[name] = m3u8.text_of(lines)
    seconds = Fraction(file.micros, 10**6)
    return FileLists(lists, file.counts or {}, file.discontinuities, seconds, b"")


@record(frozen=True, slots=True)
class Window:
    """Which part of a title is listed: the files that reach into it.

    Attributes:
        start, stop: microseconds since 1970; None: without a bound.
        last: microseconds before the end; None: without a bound.
        query: of the addresses of its lists.
    """

    start: int | None = None
    stop: int | None = None
    last: int | None = None
    query: str = ""

    def begins(self, end: int) -> int:
        """Microseconds since 1970 from which on it lists a title that ends there."""
        return max(self.start or 0, 0 if self.last is None else end - self.last)

    def of(self, files: Sequence[RotatedFile], end: int) -> list[RotatedFile]:
        """The files that reach into it.

        Args:
            end: microseconds since 1970 at which the title ends.
        """
        low = self.begins(end)
        stops = [*(one.stop for one in files[:-1]), end]
        return [
            one
            for one, stop in zip(files, stops, strict=True)
            if stop > low and (self.stop is None or one.start < self.stop)
        ]


WHOLE: Final = Window()


@record(frozen=True, eq=False)
class RotatedPackage:
    """The lists of a title of files, as they are at a moment.

    Attributes:
        files: one after the other; at least one.
        lists_of: gives what the lists of a file say that is closed.
        last: the package of the last file, which may grow; None: it is closed as well.
        target: whole seconds that no segment exceeds when it is rounded.
        part: seconds that no part exceeds; None: there are none.
        zero: microseconds since 1970 from which the manifest counts.
        ended: whether nothing comes any more.
        changed: microseconds since 1970 of the last write.
        findings: which files are not in the title, and why.
        window: what is listed.
        link: gives how to get from a list to the address of a file.
        key: of the link; equal ones give equal addresses.
    """

    files: Sequence[RotatedFile]
    lists_of: Callable[[RotatedFile], FileLists]
    last: Package | None
    target: int
    part: Fraction | None
    zero: int
    ended: bool
    changed: int
    findings: tuple[str, ...] = ()
    window: Window = WHOLE
    link: Callable[[str], str] = str
    key: str = ""
    _kept: LRUCache[View] = field(default_factory=lambda: LRUCache[View](_KEPT))
    sources: tuple[()] = ()

    @property
    def title(self) -> Title:
        """How it grows; its renditions are those of the files."""
        began, changed = (UNIX + timedelta(microseconds=at) for at in (self.zero, self.changed))
        return Title((), growth=Growth(self.target, self._is_over, began, changed))

    @property
    def _is_over(self) -> bool:
        """Whether nothing comes into the window."""
        stop = self.window.stop
        return self.ended or (stop is not None and stop <= self.files[-1].start)

    @property
    def end(self) -> int:
        """Microseconds since 1970 at which it ends by now."""
        last = self.files[-1]
        if self.last is None:
            return last.stop
        return last.start + int(seconds_of(self.last.title) * 10**6)

    def within(self, window: Window, link: Callable[[str], str], key: str) -> RotatedPackage:
        """The same, as somebody requests it; made lists are shared."""
        return replace(self, window=window, link=link, key=key)

    def after(self, files: Sequence[RotatedFile], findings: tuple[str, ...]) -> RotatedPackage:
        """The same with files before those it has."""
        kept, every = LRUCache[View](_KEPT), (*files, *self.files)
        return replace(self, files=every, findings=findings, _kept=kept)

    def __getitem__(self, name: str) -> View:
        """A list, or the manifest.

        Raises:
            KeyError: the title has no such list.
        """
        if name == MULTIVARIANT:
            return self._text(HLS, name, self._multivariant)
        if name == MANIFEST:
            return self._text(DASH, name, self._manifest)
        return self._media_list(name)

    def reloaded(self, name: str, *, skip: bool = False, segment: int | None = None) -> View:
        """As `Package.reloaded`."""
        return self._media_list(name, True, skip, self._shown_until(name, segment))

    def progress(self, name: str) -> tuple[int, int] | None:
        """As `Package.progress`, in the numbers of the title."""
        self._stem(name)
        return None if self._is_over else self._reached(name)

    def last_part(self, name: str) -> tuple[int, int]:
        """As `Package.last_part`."""
        complete, begun = self._reached(name)
        if begun or not self._names_parts:
            return (complete, begun - 1) if begun else (complete - 1, 0)
        assert self.last is not None
        number, part = self.last.last_part(name)
        return self.files[-1].first[self._stem(name)] + number, part

    def hold_back(self, name: str, segment: int | None, part: int | None = None) -> float:
        """As `Package.hold_back`."""
        is_led = self._shown_until(name, segment) is not None
        if segment is None or part or self.part is None or not (is_led or self._is_over):
            return 0.0
        return float(3 * self.part)

    def _shown_until(self, name: str, segment: int | None) -> int | None:
        """Where the list ends for who waits for a segment, as `playlists.shown_until` has it.

        Who waits for the end of a file gets it before the next one.
        """
        stem = self._stem(name)
        if segment is None or self.last is None or not self._names_parts:
            return None
        before = self.files[-1].first[stem]
        if segment + 2 <= before:
            return segment + 2 if before <= segment + _LED else None
        (one,) = (one for one in self.last.title.renditions if one.name == stem)
        until = playlists.shown_until(one, self.last.title, segment - before)
        return None if until is None else before + until

    def parts_of_open(self, name: str) -> None:
        """Segments have the addresses of their files."""

    def is_next_part(self, name: str) -> bool:
        """Segments have the addresses of their files."""
        return False

    def parts_of(self, name: str) -> list[View]:
        """Segments have the addresses of their files."""
        raise KeyError(name)

    def _stem(self, name: str) -> str:
        stem = name.removesuffix(".m3u8")
        if stem == name or stem not in self.files[-1].first:
            raise KeyError(name)
        return stem

    def _reached(self, name: str) -> tuple[int, int]:
        """Number of the segment that comes next, and parts of it."""
        last, stem = self.files[-1], self._stem(name)
        if self.last is None:
            return last.first[stem] + (last.counts or {}).get(stem, 0), 0
        complete, begun = self.last.progress(name) or (self._count(stem), 0)
        return last.first[stem] + complete, begun if self._names_parts else 0

    @property
    def _names_parts(self) -> bool:
        """Whether the parts of the last file are no longer than those of the title."""
        promised = None if self.last is None else self.last.title.promised
        return promised is not None and self.part is not None and promised.part <= self.part

    def _count(self, stem: str) -> int:
        """Segments of the last file that are complete."""
        assert self.last is not None
        return len(_LASTS.findall(self.last[f"{stem}.m3u8"].read()))

    # -- texts

    def _text(self, media_type: str, kind: str, write: Callable[[], bytes]) -> View:
        def make() -> View:
            text = write()
            digest = md5(text, usedforsecurity=False).hexdigest()
            named_by = ["rotated", digest]
            return View(media_type, (), named_by, [len(text)], lambda _: [text], self.findings)

        key = kind, self.window, self.key
        return self._kept.get_or_make(key, _KEPT, make, weight=lambda view: view.size)

    def _media_list(
        self, name: str, ahead: bool = False, skip: bool = False, until: int | None = None
    ) -> View:
        stem = self._stem(name)
        kind = f"{name} {ahead} {skip} {until}"
        return self._text(HLS, kind, lambda: self._media(stem, ahead, skip, until))

    def _media(self, stem: str, ahead: bool, skip: bool, until: int | None) -> bytes:
        files = self.window.of(self.files, self.end)
        if until is not None:
            files = [one for one in files if one.first[stem] < until] or files
        low = None if self.part is None else m3u8.LowLatency(self.part, (), skip)
        head = [
            m3u8.START,
            f"#EXT-X-VERSION:{m3u8.VERSION_OF_EVENTS}",
            f"#EXT-X-TARGETDURATION:{self.target}",
            f"#EXT-X-MEDIA-SEQUENCE:{files[0].first[stem]}",
            f"{m3u8.BREAK}-SEQUENCE:{files[0].discontinuity}",
            *([] if low is None else low.head(self.target)),
        ]
        pieces: list[bytes] = []
        kept, stay = files, (m3u8.SKIPPED_UNTIL + 1) * self.target
        seconds = Fraction(0)
        for number, file in reversed(list(enumerate(files))):
            text = self._lines(file, stem, ahead, until, seconds)
            date = program_date(UNIX + timedelta(microseconds=file.start), Fraction(0))
            tags = f"#EXT-X-PROGRAM-DATE-TIME:{date}\n"
            if number:
                tags = f"{m3u8.BREAK}\n{tags}"
            place = f"{self.link(file.name)}/hls/".encode()
            pieces.append(tags.encode() + text.replace(_MARK, place))
            if seconds <= stay:
                seconds += sum(Fraction(one.decode()) for one in _LASTS.findall(text))
            if skip and seconds > stay:
                kept = files[number:]
                break
        lines = b"".join(reversed(pieces))
        if low is not None and skip:
            before = kept[0].first[stem] - files[0].first[stem]
            left = low.without_skipped(lines.decode().splitlines(), self.target, before)
            lines = m3u8.text_of(left)
        ends = until is None and self._is_over
        tail = [m3u8.END] if ends else self._reports(stem)
        return m3u8.text_of(head) + lines + m3u8.text_of(tail)

    def _lines(
        self, file: RotatedFile, stem: str, ahead: bool, until: int | None, after: Fraction
    ) -> bytes:
        """The segments of a file; parts are only named near the end.

        Args:
            until: number of the first segment that is left out; None: none is.
            after: seconds that follow it in the list.
        """
        count = None if until is None else until - file.first[stem]
        if file is not self.files[-1] or self.last is None:
            text = self.lists_of(file).lists[stem]
            if count is not None and count < (file.counts or {}).get(stem, 0):
                text = text[: list(_URIS.finditer(text))[count - 1].end()]
        elif ahead:
            segment = None if count is None else count - 2
            text = lines_of(self.last.reloaded(f"{stem}.m3u8", segment=segment).read())
        else:
            text = lines_of(self.last[f"{stem}.m3u8"].read())
        if not self._names_parts or after >= 3 * self.target:
            text = _PARTS.sub(b"", text)
        return text

    def _reports(self, stem: str) -> list[str]:
        """Where the other lists are by now, or this one, if there is no other.

        hls.js (1.7.4, `parseLevelPlaylist`) takes a last segment for two that no tag follows.
        """
        if self.last is None or not self._names_parts:
            return []
        title, first = self.last.title, self.files[-1].first
        named = [one for one in title.renditions if one.name != stem] or title.renditions
        return [
            m3u8.rendition_report(self._query(f"{one.name}.m3u8"), first[one.name] + last, part)
            for one in named
            for last, part in [playlists.last_part(one, title)]
        ]

    def _query(self, address: str) -> str:
        return f"{address}?{self.window.query}" if self.window.query else address

    def _multivariant(self) -> bytes:
        files = self.window.of(self.files, self.end)
        # of deleted files there is none
        masters = [self.lists_of(file).master for file in files if file.counts is not None]
        if self.last is not None:
            masters.insert(0, self.last[MULTIVARIANT].read())
        return merged(list(filter(None, masters)), self._query)

    def _manifest(self) -> bytes:
        files = self.window.of(self.files, self.end)
        about, latency, grows = self._kind(), None, False
        clocks = []
        if not self._is_over:
            clocks = [(mpd.HTTP_ISO, playlists.CLOCK), (mpd.HTTP_HEAD, MANIFEST)]
        periods = []
        if self.last is not None and files[-1] is self.files[-1]:
            file, title = files.pop(), self.last.title
            growth = title.growth
            if not self._is_over and growth is not None and title.promised is not None:
                grows = not growth.ended
                began = UNIX + timedelta(microseconds=file.start)
                at = replace(title, growth=replace(growth, began=began))
                latency = playlists.low_latency_of(at, about)
            for period in periods_of(title, file, self.zero, grows, not self._is_over):
                address = f"{self.link(file.name)}/dash/"
                periods.append(replace(period, address=address))
        closed = ((file, self.lists_of(file).periods) for file in files)
        texts = [text.replace(PLACE, self.link(file.name)) for file, text in closed if text]
        return mpd.manifest(about, periods, clocks, latency, "\n  ".join(texts))

    def _kind(self) -> dict[str, str]:
        """Whether it grows, and what players need to know then (5.3.1.2)."""
        about = {"type": "static", "profiles": mpd.LIVE}
        if self._is_over:
            last = self.window.of(self.files, self.end)[-1]
            stop = self.end if last is self.files[-1] else last.stop
            about["mediaPresentationDuration"] = xml_duration(Fraction(stop - self.zero, 10**6))
        else:
            growth = self.title.growth
            assert growth is not None
            about |= {
                "type": "dynamic",
                "availabilityStartTime": playlists.utc(growth.began),
                "publishTime": playlists.utc(growth.changed),
                "minimumUpdatePeriod": "PT1S",
            }
        about["maxSegmentDuration"] = xml_duration(self.target + 2 * MARGIN)
        return about | {"minBufferTime": "PT2S"}


AnyPackage: TypeAlias = Package | RotatedPackage


_NUMBERS: Final = ("BANDWIDTH", "AVERAGE-BANDWIDTH", "FRAME-RATE")
_CODECS = re.compile(r'CODECS="([^"]*)"')


def merged(masters: Sequence[bytes], query: Callable[[str], str]) -> bytes:
    r"""One multivariant playlist for what files need that follow each other.

    Args:
        masters: of the files, which have the same renditions: the names are those of the first.
        query: gives the address of a list from its name.

    >>> line = b'#EXT-X-STREAM-INF:BANDWIDTH=%d,CODECS="%s"\nv1.m3u8\n'
    >>> merged([line % (5, b"avc1"), line % (9, b"hvc1")], str)
    b'#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS="avc1,hvc1"\nv1.m3u8\n'
    """
    first, *others = (_plain(master) for master in dict.fromkeys(masters))
    lines = []
    for number, line in enumerate(first):
        if line.startswith(m3u8.STREAM_INF):
            same = [x[number] for x in others if number < len(x) and x[number][:1] == "#"]
            line = _widest([line, *same])
        elif line and not line.startswith("#"):
            line = query(line)
        elif line.startswith(m3u8.MEDIA):
            line = re.sub(r'URI="(.*?)"', lambda uri: f'URI="{query(uri[1])}"', line)
        lines.append(line)
    keys = [x for one in masters for x in one.decode().splitlines() if "-SESSION-KEY:" in x]
    head = lines[:2] if lines[0] == m3u8.START else []
    return m3u8.text_of([*head, *dict.fromkeys(keys), *lines[len(head) :]])


def _plain(master: bytes) -> list[str]:
    """The lines of a multivariant playlist, of video and audio alone."""
    lines = []
    for line in master.decode().splitlines():
        left_out = ("#EXT-X-I-FRAME", "#EXT-X-IMAGE", "#EXT-X-SESSION-KEY", "#EXT-X-INDEPENDENT")
        if line.startswith(left_out) or "TYPE=SUBTITLES" in line or "#EXT-X-START" in line:
            continue
        lines.append(line.replace(',SUBTITLES="subtitles"', ""))
    return lines


def _widest(lines: Sequence[str]) -> str:
    """One EXT-X-STREAM-INF that says what any of them needs."""
    line = lines[0]
    for name in _NUMBERS:
        values = [x for one in lines for x in re.findall(rf"(?<=[:,]){name}=([\d.]+)", one)]
        if values:
            line = re.sub(rf"(?<=[:,]){name}=[\d.]+", f"{name}={max(values, key=float)}", line)
    codecs = dict.fromkeys(x for one in lines for c in _CODECS.findall(one) for x in c.split(","))
    if codecs:
        line = _CODECS.sub(f'CODECS="{",".join(codecs)}"', line)
    return line


def micros_of(time: datetime) -> int:
    """Microseconds since 1970."""
    return (time - UNIX) // timedelta(microseconds=1)
