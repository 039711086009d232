"""The segments that an MPD names, held against what it says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from urllib.parse import urljoin

from fragdex.testing.checks.dash_schema import Place, duration
from fragdex.testing.checks.samples import (
    InitTrack,
    SegmentSample,
    boxes_of,
    init_tracks,
    segment_samples,
    segment_seconds,
)
from fragdex.testing.checks.violation import Read, Violation

__all__ = ["segment_rules"]


@dataclass(frozen=True, slots=True)
class _Named:
    """A segment: address and part, and its time and duration in ticks where they are told."""

    uri: str
    part: str | None
    time: int | None
    ticks: int | None


def segment_rules(mpd: Place, read: Read) -> Iterator[Violation]:
    """What is wrong with the segments of each Representation of fragmented MP4."""
    for period in mpd.children("Period"):
        for adaptation in period.children("AdaptationSet"):
            for representation in adaptation.children("Representation"):
                levels = (period, adaptation, representation)
                mime = representation.element.get("mimeType", adaptation.element.get("mimeType"))
                if (mime or "").endswith("/mp4"):
                    yield from _Representation(mpd, levels, read).violations()


class _Representation:
    def __init__(self, mpd: Place, levels: tuple[Place, Place, Place], read: Read) -> None:
        self._mpd, self._read, self._place = mpd, read, levels[2]
        self._base = ""
        for place in (mpd, *levels):
            for base in place.children("BaseURL")[:1]:
                self._base = urljoin(self._base, (base.element.text or "").strip())
        self.about: dict[str, str] = {}
        self._parts: dict[str, Place] = {}
        self._segments: dict[str, str] = {}
        self._urls: list[Place] = []
        self._kind = ""
        for place in levels:
            self.about |= place.element.attrib
            for one in place.children():
                if one.name in ("SegmentBase", "SegmentList", "SegmentTemplate"):
                    self._kind = one.name
                    self._segments |= one.element.attrib
                    self._parts |= {child.name: child for child in one.children()}
                    self._urls = one.children("SegmentURL")
        self._period = duration(levels[0].element.get("duration")) or duration(
            mpd.element.get("mediaPresentationDuration")
        )

    def _get(self, uri: str, part: str | None) -> bytes:
        data = self._read(urljoin(self._base, uri))
        if part is None:
            return data
        first, _, last = part.partition("-")
        return data[int(first) : int(last) + 1]

    def violations(self) -> Iterator[Violation]:
        if not self._kind:
            return
        self._scale = int(self._segments.get("timescale", "1"))
        init = self._init()
        tracks = init_tracks(init)
        if not tracks:
            yield self._place.wrong("init", "6.3.3", "no moov with a track in the initialization")
            return
        yield from self._codecs(tracks)
        track = next((one for one in tracks if one.kind == "vide"), tracks[0])
        if self._kind == "SegmentBase":
            yield from self._indexed()
            return
        named = list(self._named())
        data = [self._get(one.uri, one.part) for one in named]
        found = [segment_samples(one, track) for one in data]
        for number, (one, samples) in enumerate(zip(named, found, strict=True)):
            following = found[number + 1] if number + 1 < len(found) else []
            yield from self._segment(one, track, samples, following)
        yield from self._rate(named, [len(one) for one in data])

    def _init(self) -> bytes:
        template = self._segments.get("initialization")
        if template is not None:
            return self._get(self._filled(template), None)
        own = self._parts.get("Initialization")
        if own is None:
            return self._get("", None)
        return self._get(own.element.get("sourceURL", ""), own.element.get("range"))

    def _filled(self, template: str, number: int = 0, time: int = 0) -> str:
        words = {"Number": number, "Time": time, "Bandwidth": int(self.about["bandwidth"])}

        def value(match: re.Match[str]) -> str:
            if match[1] == "RepresentationID":
                return self.about["id"]
            return "$" if not match[1] else (match[2] or "%d") % words[match[1]]

        return re.sub(r"\$([A-Za-z]*)(%0\d+d)?\$", value, template)

    def _codecs(self, tracks: list[InitTrack]) -> Iterator[Violation]:
        told = self.about.get("codecs")
        real = {track.codec for track in tracks if track.codec}
        missing = real - {name.strip() for name in (told or "").split(",")}
        if told is not None and missing:
            message = f"@codecs does not name {', '.join(sorted(missing))}"
            yield self._place.wrong("codecs-real", "5.3.7.2", message)

    def _times(self) -> Iterator[tuple[int, int]]:
        """Start and duration of each segment, in ticks."""
        offset = int(self._segments.get("presentationTimeOffset", "0"))
        end = None if self._period is None else offset + round(self._period * self._scale)
        timeline = self._parts.get("SegmentTimeline")
        if timeline is None:
            step = int(self._segments["duration"])
            count = -(-((end or 0) - offset) // step)
            yield from ((offset + n * step, step) for n in range(count))
            return
        runs = [child.element.attrib for child in timeline.children("S")]
        at = 0
        for number, run in enumerate(runs):
            at, step, repeat = int(run.get("t", at)), int(run["d"]), int(run.get("r", "0"))
            if repeat < 0:
                until = int(runs[number + 1]["t"]) if number + 1 < len(runs) else end or at + step
                repeat = -(-(until - at) // step) - 1
            yield from ((at + n * step, step) for n in range(repeat + 1))
            at += step * (repeat + 1)

    def _named(self) -> Iterator[_Named]:
        if self._kind == "SegmentTemplate":
            first = int(self._segments.get("startNumber", "1"))
            for number, (time, ticks) in enumerate(self._times(), first):
                uri = self._filled(self._segments["media"], number, time)
                yield _Named(uri, None, time, ticks)
            return
        timed = "SegmentTimeline" in self._parts or "duration" in self._segments
        times = list(self._times()) if timed else []
        for number, url in enumerate(self._urls):
            told = times[number] if number < len(times) else (None, None)
            yield _Named(url.element.get("media", ""), url.element.get("mediaRange"), *told)

    def _segment(
        self,
        named: _Named,
        track: InitTrack,
        samples: list[SegmentSample],
        following: list[SegmentSample],
    ) -> Iterator[Violation]:
        where = f"{named.uri or self._base} {named.part or ''}".strip()
        if not samples:
            message = f"{where}: no sample of track {track.id}"
            yield self._place.wrong("segment-empty", "6.3.4", message)
            return
        sap = self.about.get("startWithSAP", "0")
        if track.kind == "vide" and sap in ("1", "2") and not samples[0].sync:
            message = f"{where}: @startWithSAP {sap}, and no sync sample is first"
            yield self._place.wrong("sap-real", "5.3.7.2", message)
        if named.time is None or named.ticks is None or "SegmentTimeline" not in self._parts:
            return
        step = Fraction(1, self._scale)
        first = min(sample.cts for sample in samples)
        begins = {first, first - track.start, samples[0].dts, max(first, track.start)}
        times = {Fraction(one, track.timescale) for one in begins}
        times.add(Fraction(first - track.start, track.timescale) + track.delay)
        if all(abs(one - named.time * step) > step for one in times):
            message = f"{where}: S@t {named.time}, it begins at {first} / {track.timescale}"
            yield self._place.wrong("time-real", "5.3.9.6.2", message)
        real = list(segment_seconds(samples, track))
        if following:
            until = min(sample.cts for sample in following) - max(first, track.start)
            real.append(Fraction(until, track.timescale))
        if all(abs(one - named.ticks * step) > step for one in real):
            message = f"{where}: S@d {named.ticks}, it lasts {float(real[0])} s"
            yield self._place.wrong("duration-real", "5.3.9.6.2", message)

    def _rate(self, named: list[_Named], sizes: list[int]) -> Iterator[Violation]:
        """The buffer of @minBufferTime never runs empty at @bandwidth (5.3.5.2)."""
        rate = int(self.about["bandwidth"])
        buffer = duration(self._mpd.element.get("minBufferTime")) or 0
        if any(one.ticks is None for one in named):
            return
        ends = accumulate(Fraction(one.ticks or 0, self._scale) for one in named)
        bits = accumulate(8 * size for size in sizes)
        # how far the bits are ahead of what the rate brought; a later start asks for less
        lead = low = Fraction(0)
        for seconds, total in zip(ends, bits, strict=True):
            lead = total - rate * seconds
            if lead - low > rate * Fraction(buffer):
                message = f"@bandwidth {rate} is too low for a buffer of {buffer} s"
                yield self._place.wrong("bandwidth-real", "5.3.5.2", message)
                return
            low = min(low, lead)

    def _indexed(self) -> Iterator[Violation]:
        part = self._segments.get("indexRange")
        if part is None:
            return
        boxes = boxes_of(self._get("", part))
        if not boxes or boxes[0].type != "sidx" or boxes[0].opaque:
            yield self._place.wrong("index-range", "5.3.9.2.2", f"no sidx at {part}")
            return
        first, _, last = part.partition("-")
        stop = int(first) + boxes[0].size
        if self._segments.get("indexRangeExact") == "true" and stop != int(last) + 1:
            message = f"@indexRangeExact, and the sidx ends at {stop - 1}"
            yield self._place.wrong("index-exact", "5.3.9.2.2", message)
        yield from self._references(boxes[0].fields, stop)

    def _references(self, sidx: Mapping[str, object], stop: int) -> Iterator[Violation]:
        whole = self._get("", None)
        rows: object = sidx["references"]
        sizes = [int(row["referenced_size"]) for row in rows]  # type: ignore[attr-defined]
        at = stop + int(str(sidx["first_offset"]))
        for start, end in pairwise(accumulate(sizes, initial=at)):
            if end > len(whole) or whole[start + 4 : start + 8] not in {
                *(b"moof", b"styp", b"sidx", b"emsg", b"prft"),
            }:
                message = f"the sidx names bytes {start} to {end - 1}: no subsegment"
                yield self._place.wrong("index-reference", "6.3.4.3", message)
                return
