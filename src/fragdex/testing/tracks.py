"""Initialization segments, tracks and runs of samples described as data, and what is true of them.

What a description leaves to defaults is worked out here by plain Python, sample by sample: trun
over tfhd over trex, and first_sample_flags over the first sample's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from math import floor
from typing import NamedTuple

from fragdex.box_header import SizeForm
from fragdex.boxes import Box, build, make_box
from fragdex.boxes.fragments import (
    DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    DEFAULT_SAMPLE_DURATION,
    DEFAULT_SAMPLE_FLAGS,
    DEFAULT_SAMPLE_SIZE,
    FIRST_SAMPLE_FLAGS,
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.fragments.track_info import Edit
from fragdex.record import record

SYNC = 0x02000000
"""Sample flags of a picture that needs no other (sample_depends_on 2)."""
NON_SYNC = 0x01010000
"""Sample flags of a picture that needs others (sample_depends_on 1, sample_is_non_sync_sample)."""

ALL_COLUMNS = DATA_OFFSET | SAMPLE_DURATION | SAMPLE_SIZE | SAMPLE_FLAGS


class TrueSample(NamedTuple):
    """What is true of one sample: bytes from the start of the file, ticks of the media timeline.

    >>> TrueSample(0, 8, 0, 0, 1, True).size
    8
    """

    offset: int
    size: int
    dts: int
    cts: int
    duration: int
    sync: bool


@record(frozen=True, slots=True)
class Sample:
    """One sample as its writer knows it; a run writes down what its flags name.

    Attributes:
        size: bytes.
        duration: ticks.
        flags: 32 bits of sample flags (ISO/IEC 14496-12, 8.8.3.1).
        offset: composition offset in ticks, as the 32 bits of the field would be read.

    >>> Sample(size=100).duration
    1
    """

    size: int = 16
    duration: int = 1
    flags: int = SYNC
    offset: int = 0


@record(frozen=True, slots=True)
class Run:
    """A trun.

    Attributes:
        samples: in decode order.
        flags: of the trun: what stands in it. What does not is taken from the defaults.
        version: 0: composition offsets are unsigned, from 2^31 up meant as signed; 1: signed.
        first_sample_flags: written where the flags name it.
        gap: unused bytes before the run's data.
        mdat: number of the fragment's mdat that holds the data.

    >>> len(Run((Sample(), Sample())).samples)
    2
    """

    samples: tuple[Sample, ...]
    flags: int = ALL_COLUMNS
    version: int = 0
    first_sample_flags: int = SYNC
    gap: int = 0
    mdat: int = 0


@record(frozen=True, slots=True)
class Traf:
    """A traf: one track's part of a fragment.

    Attributes:
        track: track_ID.
        runs: in file order.
        flags: of the tfhd; the defaults below are written where they name them.
        tfdt: decode time of its first sample; None: no tfdt.
        tfdt_version: 0 or 1.
        tfxd: the same in PIFF's own box, or None.
        base: what base_data_offset leads to where it is written: "moof" or "data".
        stale: bytes by which the written base_data_offset is wrong.
        undeclared: positions count from the moof though nothing says so; a reader can only tell
            where those that the rule gives lie outside of every mdat up to the next moof.
        extra: boxes after the runs, such as senc.

    >>> Traf(1, (Run((Sample(),)),)).tfdt
    0
    """

    track: int
    runs: tuple[Run, ...]
    flags: int = DEFAULT_BASE_IS_MOOF
    default_sample_duration: int = 0
    default_sample_size: int = 0
    default_sample_flags: int = 0
    tfdt: int | None = 0
    tfdt_version: int = 1
    tfxd: int | None = None
    base: str = "moof"
    stale: int = 0
    undeclared: bool = False
    extra: tuple[Box, ...] = ()


def default_of(traf: Traf, defaults: Mapping[int, tuple[int, int, int]]) -> tuple[int, int, int]:
    """Duration, size and flags: tfhd over trex (8.8.7.1)."""
    duration, size, flags = defaults.get(traf.track, (0, 0, 0))
    return (
        traf.default_sample_duration if traf.flags & DEFAULT_SAMPLE_DURATION else duration,
        traf.default_sample_size if traf.flags & DEFAULT_SAMPLE_SIZE else size,
        traf.default_sample_flags if traf.flags & DEFAULT_SAMPLE_FLAGS else flags,
    )


def effective(run: Run, traf: Traf, defaults: Mapping[int, tuple[int, int, int]]) -> list[Sample]:
    """The run's samples as a reader must understand them: trun, tfhd, trex."""
    duration, size, flags = default_of(traf, defaults)
    samples = []
    for number, sample in enumerate(run.samples):
        own = sample.flags if run.flags & SAMPLE_FLAGS else flags
        if number == 0 and run.flags & FIRST_SAMPLE_FLAGS:
            own = run.first_sample_flags
        samples.append(
            Sample(
                sample.size if run.flags & SAMPLE_SIZE else size,
                sample.duration if run.flags & SAMPLE_DURATION else duration,
                own,
                sample.offset if run.flags & SAMPLE_COMPOSITION_TIME_OFFSET else 0,
            )
        )
    return samples


HANDLERS = {"video": "vide", "audio": "soun", "text": "text", "metadata": "meta"}


@record(frozen=True, slots=True)
class Track:
    """A trak, and its trex.

    Attributes:
        id: track_ID.
        kind: video, audio, text or metadata.
        timescale: ticks a second.
        edits: the edit list; durations in the movie's timescale.
        trex: default duration, size and flags; None: no trex for this track.
        chunks: samples that the moov itself names, chunk by chunk.
        sizes: "stsz", "constant" (one size for all), or bits of an stz2: "4", "8", "16".
        large_offsets: co64 instead of stco.
        ctts: version of the ctts, or None for no such box.
        stss: whether the sync samples are listed; without it all are sync.
        entry: the sample entry; None: one that fits the kind.
        language: three letters.

    >>> Track(1, "audio", 48000).timescale
    48000
    """

    id: int = 1
    kind: str = "video"
    timescale: int = 1000
    edits: tuple[Edit, ...] = ()
    trex: tuple[int, int, int] | None = (0, 0, 0)
    chunks: tuple[tuple[Sample, ...], ...] = ()
    sizes: str = "stsz"
    large_offsets: bool = False
    ctts: int | None = None
    stss: bool = True
    entry: Box | None = None
    language: str = "und"

    def truth(self, places: Sequence[int]) -> list[TrueSample]:
        """What is true of the samples in the chunks, given the place of each chunk."""
        samples, time = [], 0
        for place, chunk in zip(places, self.chunks, strict=True):
            for sample in chunk:
                offset = (sample.offset + 2**31) % 2**32 - 2**31 if self.ctts is not None else 0
                sync = not sample.flags & 0x10000 if self.stss else True
                samples.append(
                    TrueSample(place, sample.size, time, time + offset, sample.duration, sync)
                )
                place += sample.size
                time += sample.duration
        return samples

    def shift(self, movie_timescale: int) -> Fraction:
        """Ticks from composition to presentation time: leading empty edits, then the first edit."""
        delay = Fraction(0)
        for edit in self.edits:
            if edit.media_time != -1:
                return delay - edit.media_time
            if movie_timescale:
                delay += Fraction(edit.duration, movie_timescale) * self.timescale
        return delay

    def box(self, places: Sequence[int] | None) -> Box:
        """The trak; chunk offsets are zero where they are not known yet."""
        children = [
            make_box(
                "tkhd",
                flags=3,
                track_ID=self.id,
                volume=0x100 if self.kind == "audio" else 0,
                width=64 << 16 if self.kind == "video" else 0,
                height=48 << 16 if self.kind == "video" else 0,
            )
        ]
        if self.edits:
            children.append(make_box("edts", children=[_elst(self.edits)]))
        letters = [ord(letter) - 0x60 for letter in self.language]
        language = letters[0] << 10 | letters[1] << 5 | letters[2]
        duration = sum(sample.duration for chunk in self.chunks for sample in chunk)
        header = make_box({"video": "vmhd", "audio": "smhd"}.get(self.kind, "nmhd"))
        media = [
            make_box(
                "mdhd", version=1, timescale=self.timescale, duration=duration, language=language
            ),
            make_box("hdlr", handler_type=HANDLERS[self.kind], name=f"{self.kind} track"),
            make_box("minf", children=[header, _dinf(), self._stbl(places)]),
        ]
        return make_box("trak", children=[*children, make_box("mdia", children=media)])

    def _stbl(self, places: Sequence[int] | None) -> Box:
        samples = [sample for chunk in self.chunks for sample in chunk]
        entry = self.entry if self.entry is not None else _entry(self.kind)
        children = [
            make_box("stsd", children=[entry]),
            make_box("stts", entries=_runs([sample.duration for sample in samples])),
        ]
        if self.ctts is not None:
            wrap = 2**31 if self.ctts else 0
            offsets = [(sample.offset + wrap) % 2**32 - wrap for sample in samples]
            children.append(make_box("ctts", version=self.ctts, entries=_runs(offsets)))
        if self.stss and samples:
            sync = [(n,) for n, sample in enumerate(samples, 1) if not sample.flags & 0x10000]
            children.append(make_box("stss", entries=sync))
        counts = [len(chunk) for chunk in self.chunks]
        changes = [
            (n + 1, count, 1) for n, count in enumerate(counts) if n == 0 or count != counts[n - 1]
        ]
        children.append(make_box("stsc", entries=changes))
        sizes = [sample.size for sample in samples]
        if self.sizes == "stsz":
            children.append(make_box("stsz", entries=[(size,) for size in sizes]))
        elif self.sizes == "constant":
            size = sizes[0] if sizes else 1
            children.append(make_box("stsz", sample_size=size, sample_count=len(sizes)))
        else:
            children.append(
                make_box(
                    "stz2", field_size=int(self.sizes), sample_count=len(sizes), entry_size=sizes
                )
            )
        offsets = [0] * len(counts) if places is None else list(places)
        children.append(
            make_box(
                "co64" if self.large_offsets else "stco", entries=[(place,) for place in offsets]
            )
        )
        return make_box("stbl", children=children)


@record(frozen=True, slots=True)
class Moov:
    """A moov.

    Attributes:
        tracks: in file order.
        timescale: of the movie: edit durations count in it.
        fragmented: whether an mvex announces fragments.
        form: size form.
        trailing: bytes after the last box inside; QuickTime writes four zero bytes there.

    >>> len(Moov((Track(),)).data({}))
    609
    """

    tracks: tuple[Track, ...]
    timescale: int = 1000
    fragmented: bool = True
    form: SizeForm = "compact"
    trailing: bytes = b""

    def data(self, places: Mapping[int, Sequence[int]]) -> bytes:
        """Its bytes, given the places of each track's chunks."""
        header = make_box(
            "mvhd",
            timescale=self.timescale,
            next_track_ID=max((track.id for track in self.tracks), default=0) % (2**32 - 1) + 1,
        )
        children = [header, *(track.box(places.get(track.id)) for track in self.tracks)]
        if self.fragmented:
            extends = [
                make_box(
                    "trex",
                    track_ID=track.id,
                    default_sample_description_index=1,
                    default_sample_duration=track.trex[0],
                    default_sample_size=track.trex[1],
                    default_sample_flags=track.trex[2],
                )
                for track in self.tracks
                if track.trex is not None
            ]
            children.append(make_box("mvex", children=extends))
        return build(
            make_box("moov", children=children, size_form=self.form, trailing=self.trailing)
        )


def _runs(values: Sequence[int]) -> list[tuple[int, int]]:
    """Values as (count, value), as stts and ctts write them."""
    return [(len(list(group)), value) for value, group in itertools.groupby(values)]


def _elst(edits: Sequence[Edit]) -> Box:
    wide = any(edit.duration >= 2**32 or abs(edit.media_time) >= 2**31 for edit in edits)
    return make_box(
        "elst",
        version=int(wide),
        entries=[
            # The fraction is a signed field; its 16 bits are those of a 16.16 number.
            (
                e.duration,
                e.media_time,
                int(e.rate // 1),
                (int(e.rate % 1 * 65536) + 2**15) % 2**16 - 2**15,
            )
            for e in edits
        ],
    )


def _dinf() -> Box:
    here = make_box("url ", flags=1)  # the media data lies in this file
    return make_box("dinf", children=[make_box("dref", children=[here])])


def _entry(kind: str) -> Box:
    if kind == "video":
        config = make_box(
            "avcC", configurationVersion=1, AVCProfileIndication=66, AVCLevelIndication=10
        )
        return make_box("avc1", parent="stsd", width=64, height=48, children=[config])
    if kind == "audio":
        config = make_box("dOps", OutputChannelCount=2, InputSampleRate=48000)
        return make_box("Opus", parent="stsd", samplerate=48000 << 16, children=[config])
    if kind == "text":
        return make_box("wvtt", parent="stsd", children=[make_box("vttC", config="WEBVTT")])
    return make_box("mett", parent="stsd", mime_format="application/octet-stream")


@record(frozen=True, slots=True)
class TrueFragment:
    """One fragment of the truth.

    Attributes:
        part: number of the part it was made from.
        start, moof, stop: bytes from the start of the file: the first box that introduces it, the
            moof, and after its last mdat.
        samples: track_ID → numbers of the track's samples, first and after the last.
        next_dts: track_ID → decode time after it.
    """

    part: int
    start: int
    moof: int
    stop: int
    samples: dict[int, tuple[int, int]]
    next_dts: dict[int, int]


@record(slots=True)
class TruePeriod:
    """What is true of one moov and the fragments it governs.

    Attributes:
        moov: as described; None where there is none.
        samples: track_ID → its samples in decode order.
        in_moov: track_ID → how many of them the moov itself names.
        fragments: in file order.
    """

    moov: Moov | None = None
    samples: dict[int, list[TrueSample]] = field(default_factory=dict)
    in_moov: dict[int, int] = field(default_factory=dict)
    fragments: list[TrueFragment] = field(default_factory=list)

    def timescale(self, track: int) -> int:
        """Ticks a second; 0 where no moov tells."""
        tracks = self.moov.tracks if self.moov is not None else ()
        return next((t.timescale for t in tracks if t.id == track), 0)

    def shift(self, track: int) -> Fraction:
        """Ticks from composition to presentation time."""
        if self.moov is None:
            return Fraction(0)
        mine = next((t for t in self.moov.tracks if t.id == track), None)
        if mine is None:
            return Fraction(0)
        return mine.shift(self.moov.timescale) - self._hidden(mine, self.moov.timescale)

    def _hidden(self, track: Track, movie_timescale: int) -> int:
        """Ticks from the start of an edit to the first picture that begins in it.

        Other than 0 where a picture is cut in two, in a video track without fragments: what is
        left of it is not shown (docs/disagreements.md).
        """
        cts = [sample.cts for sample in self.samples.get(track.id, [])]
        shown = [edit for edit in track.edits if edit.media_time != -1]
        has_fragments = any(track.id in one.samples for one in self.fragments)
        if track.kind != "video" or len(shown) != 1 or has_fragments:
            return 0
        edit = shown[0]
        if not (movie_timescale and edit.duration and edit.rate):
            return 0
        lasts = Fraction(edit.duration, movie_timescale) * track.timescale * Fraction(edit.rate)
        after = [one - edit.media_time for one in cts if one >= edit.media_time]
        is_cut = min(cts, default=edit.media_time) < edit.media_time
        # a duration is rounded to ticks of the track, halves up
        return min(after) if is_cut and after and min(after) < floor(lasts + Fraction(1, 2)) else 0


@record(frozen=True, slots=True, repr=False)
class Made:
    """A file and what is true of it.

    Attributes:
        data: its bytes.
        periods: one for each moov, or one without.
        parts: the descriptions it was made from.
        spans: (start, stop) of each part, bytes.
    """

    data: bytes
    periods: tuple[TruePeriod, ...]
    parts: tuple[object, ...]
    spans: tuple[tuple[int, int], ...]

    def __repr__(self) -> str:
        return f"make_file({', '.join(map(repr, self.parts))})"

    @property
    def truth(self) -> TruePeriod:
        """The only period.

        Raises:
            ValueError: there are several.
        """
        (period,) = self.periods
        return period
