"""Initialization segments and sample tables described as data, and written."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fragdex.box_header import SizeForm
from fragdex.boxes import Box, build, make_box
from fragdex.fragments.track_info import Edit
from fragdex.testing.descriptions import Sample, TrueSample

__all__ = ["Moov", "Track"]

HANDLERS = {"video": "vide", "audio": "soun", "text": "text", "metadata": "meta"}


@dataclass(frozen=True, slots=True)
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
        found, time = [], 0
        for place, chunk in zip(places, self.chunks, strict=True):
            for sample in chunk:
                offset = (sample.offset + 2**31) % 2**32 - 2**31 if self.ctts is not None else 0
                sync = not sample.flags & 0x10000 if self.stss else True
                found.append(
                    TrueSample(place, sample.size, time, time + offset, sample.duration, sync)
                )
                place += sample.size
                time += sample.duration
        return found

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
        media = [
            make_box(
                "mdhd", version=1, timescale=self.timescale, duration=duration, language=language
            ),
            make_box("hdlr", handler_type=HANDLERS[self.kind], name=f"{self.kind} track"),
            make_box("minf", children=[_media_header(self.kind), _dinf(), self._stbl(places)]),
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


@dataclass(frozen=True, slots=True)
class Moov:
    """A moov.

    Attributes:
        tracks: in file order.
        timescale: of the movie: edit durations count in it.
        fragmented: whether an mvex announces fragments.
        form: size form.
        trailing: bytes behind the last box inside; QuickTime writes four zero bytes there.

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


def _media_header(kind: str) -> Box:
    return make_box({"video": "vmhd", "audio": "smhd"}.get(kind, "nmhd"))


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
