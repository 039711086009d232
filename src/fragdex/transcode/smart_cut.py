"""Clips that hide no pictures: those at the cuts are encoded again, all others are copied.

A clip that is copied begins at the sync sample before the cut: pictures in front of the cut are in
the file, hidden by an edit list, which some readers ignore; and after the end there are pictures
that those shown before it need. Here the pictures from the cut to the next sync sample are encoded
again, and at the end those that need pictures that are left out. The others stay bit for bit.

AVC has one sample entry for both: the parameter sets of what is encoded have a number that the
video does not use, and stand next to the video's. HEVC and AV1 have two. Key frames of VP9 say all
that a decoder needs: its entry stays. Pictures of other codecs are only copied.

What is next to a picture in its sample is next to the encoded one again (`messages`), or is
named; a picture with further layers is not encoded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from math import floor
from typing import Any, Final, TypeAlias

import av
import numpy as np

from fragdex.boxes import Box
from fragdex.boxes.box import with_changes
from fragdex.byterange import ByteRange
from fragdex.decoding.codec import TrackCodec, hold_back, packet_of
from fragdex.errors import BuildError, UndecodableMedia
from fragdex.fragments.table import Int64, SampleTable
from fragdex.indexing.access import (
    Access,
    CannotTell,
    SampleBytes,
    access_of,
    every_sample,
    family_of,
)
from fragdex.muxing.census import LeftOut
from fragdex.muxing.plan import Edit, PlannedTrack, one_source
from fragdex.muxing.spans import Reader, last_until
from fragdex.record import record
from fragdex.seeking.numbering import reorder_depth
from fragdex.transcode.messages import Messages, messages_of, with_declared, with_messages
from fragdex.transcode.seams import CODECS, MOST_SETS, Seam, SeamSettings, encoded

__all__ = ["CutPlan", "plan", "seamed"]

_CONFIGURATIONS: Final = {"avc": "avcC", "hevc": "hvcC", "av1": "av1C", "vp9": "vpcC"}
_WITHOUT_UNITS: Final = {"av01": "av1", "vp09": "vp9"}
_THREADS: Final = 4
"""That decode the pictures at a cut."""
_LAYERED: Final = ("lhvC", "mvcC", "mvdC", "a3dC", "svcC", "avcE", "hvcE")
"""Boxes of a sample entry that describe layers above the base pictures (ISO/IEC 14496-15)."""
_END_OF_SEQUENCE: Final = bytes.fromhex("00000002 4801")
"""A NAL unit of HEVC after which decoding starts again (ISO/IEC 23008-2, 7.4.2.4.4)."""


@record(frozen=True, slots=True)
class CutPlan:
    """What becomes of the samples of a clip, by their numbers.

    Attributes:
        head: pictures to encode in front of what is copied, in the order of showing.
        copied: samples that stay, in decode order.
        tail: pictures to encode after them, in the order of showing.
    """

    head: Int64
    copied: Int64
    tail: Int64


def plan(samples: SampleTable, low: int, high: int, begins: Any) -> CutPlan:
    """Which pictures of a span are copied, so that none is hidden.

    Args:
        low, high: composition times of the span; high is exclusive.
        begins: whether what is copied may begin at a sample, by its number.
    """
    cts, count = samples.cts, len(samples)
    order = np.argsort(cts, kind="stable")
    first = max(int(np.searchsorted(cts[order], low, side="right")) - 1, 0)
    shown = order[first:][cts[order[first:]] < high]
    if not len(shown):
        raise BuildError("no picture is shown in this span")
    starts = np.flatnonzero(samples.sync & (cts >= cts[shown[0]]) & (cts < high)).tolist()
    start = next((number for number in starts if begins(number)), None)
    if start is None:
        return CutPlan(shown, shown[:0], shown[:0])
    # Pictures that are decoded after a sync sample and shown before it may need those before it.
    behind = np.arange(start, count)
    behind = behind[cts[behind] >= cts[start]]
    late = np.flatnonzero(cts[behind] >= high)
    copied = behind[: int(late[0])] if len(late) else behind
    while True:
        rest = shown[(cts[shown] >= cts[start]) & ~np.isin(shown, copied)]
        if not len(rest) or not len(copied) or cts[copied].max() < cts[rest[0]]:
            break
        copied = copied[:-1]
    if not len(copied):
        return CutPlan(shown, shown[:0], shown[:0])
    return CutPlan(shown[cts[shown] < cts[start]], copied, rest)


def seamed(
    parts: Sequence[tuple[Fraction, PlannedTrack]],
    trak: Box,
    init: bytes,
    timescale: int,
    source: Reader,
) -> tuple[PlannedTrack, Box, tuple[LeftOut, ...]]:
    """The part of a clip that a track of pictures gives, without hidden pictures.

    Args:
        parts: of an exact clip, whose edit list hides some; or of several that follow each other,
            each with the second at which it begins.

    Returns: the part, the trak with what describes its new pictures, and what these lack of what
    their samples in the source had.

    Raises:
        BuildError: the track cannot be cut so; the message says why.
        UndecodableMedia: its pictures cannot be decoded.
    """
    film = _Film([part for _, part in parts], trak, init, source)
    pieces: list[_PieceOfTrack] = []
    entry, until, lasts = None, 0, 0
    first_empty, starts = tuple[Edit, ...](), Fraction(0)
    for number, (seconds, part) in enumerate(parts):
        *empty, (ticks, begin, rate) = part.edits
        if any(at >= 0 for _, at, _ in empty) or begin < 0 or rate != 1:
            raise BuildError(
                f"the edit list of track {part.track.id} has several parts, or another speed",
                advice="cut without smart",
            )
        waits = Fraction(sum(wait for wait, _, _ in empty), timescale) + seconds
        if not number:
            first_empty, starts = tuple(empty), waits
        # As FFmpeg rounds what an edit lasts.
        high = begin + max(floor(Fraction(ticks * part.timescale, timescale) + Fraction(1, 2)), 1)
        first = film.firsts[number]
        cut = plan(part.samples, begin, high, lambda at, first=first: film.begins(at + first))
        at = max(round((waits - starts) * part.timescale), until)
        until = at + high - begin
        lasts = max(round(Fraction(until * timescale, part.timescale)), 1) if number else ticks
        for rows, is_encoded in ((cut.head, True), (cut.copied, False), (cut.tail, True)):
            if len(rows):
                shown = np.maximum(part.samples.cts[rows], begin) - begin + at
                seam = film.encode(rows + first) if is_encoded else None
                entry = entry if seam is None else seam.entry
                order = slice(None) if seam is None else seam.order
                pieces.append((rows[order] + first, shown[order], seam))
    fitted = [
        None if seam is None else film.fitted(seam, rows, last=bool(pieces[place + 1 :]))
        for place, (rows, _, seam) in enumerate(pieces)
    ]
    described = film.described(entry)
    timed = _timed(film.part, pieces, fitted, until, two=described[1])
    edits = (*first_empty, (lasts, *timed.edits[0][1:]))
    return replace(timed, edits=edits), described[0], film.left_out()


_PieceOfTrack: TypeAlias = tuple[Int64, Int64, Seam | None]
"""Samples by number, when each is shown, and their pictures where they are encoded again."""


def _timed(
    part: PlannedTrack,
    pieces: Sequence[_PieceOfTrack],
    fitted: Sequence[tuple[bytes, ...] | None],
    until: int,
    *,
    two: bool,
) -> PlannedTrack:
    """Samples with the times of their pictures; decode times are those of showing, in order."""
    rows = np.concatenate([numbers for numbers, _, _ in pieces])
    columns = {name: column.copy() for name, column in part.samples.rows(rows).columns().items()}
    shown = np.concatenate([times for _, times, _ in pieces])
    times = np.sort(shown)
    late = int((times - shown).max())
    columns["dts"], columns["cts"] = times, shown + late
    columns["duration"] = np.diff(times, append=until)
    encoded_samples: dict[int, bytes] = {}
    descriptions = np.ones(len(rows), np.int64)
    numbers = part.source_numbers[rows].copy()
    at = 0
    for (own, _, _), data in zip(pieces, fitted, strict=True):
        if data is not None:
            stop = at + len(own)
            encoded_samples |= dict(enumerate(data, at))
            columns["size"][at:stop] = [len(one) for one in data]
            columns["sync"][at:stop] = [True, *[False] * (len(own) - 1)]
            descriptions[at:stop] = 2 if two else 1
            numbers[at:stop] = -1
        at += len(own)
    samples = SampleTable.of(columns)
    last_until(samples, late + until)
    return replace(
        part,
        samples=samples,
        source=one_source(0, len(samples)),
        numbers=numbers,
        edits=((0, late, Fraction(1)),),
        made=encoded_samples,
        descriptions=descriptions if encoded_samples else None,
    )


class _Film:
    """The track that is cut: its samples, its decoder, its sample entry.

    Attributes:
        firsts: where each part begins in them.
    """

    def __init__(
        self, parts: Sequence[PlannedTrack], trak: Box, init: bytes, source: Reader
    ) -> None:
        self.trak, self.init, self.source = trak, init, source
        self.part, self.firsts = _joined(parts)
        info = self.part.track.info
        self.family = family_of(info.format) or _WITHOUT_UNITS.get(info.format)
        self.length_size = info.nal_length_size or 4
        self._messages: dict[int, Messages] = {}
        """Of the samples that were decoded, by number."""
        self._encoded: list[int] = []
        self._decoder: Any = None

    @cached_property
    def entry(self) -> Box:
        """The sample entry."""
        stsd = self.trak.find("mdia/minf/stbl/stsd")
        if stsd is None or len(stsd.children) != 1:
            raise BuildError(
                f"the pictures at the cut cannot be encoded: track {self.part.track.id} has "
                "several sample entries",
                advice="cut without smart",
            )
        return stsd.children[0]

    @cached_property
    def configuration(self) -> Box:
        """What the sample entry says of how pictures are coded."""
        info = self.part.track.info
        if self.family not in CODECS:
            raise BuildError(
                f"the pictures at the cut cannot be encoded: track {info.id} is {info.format}, "
                "not AVC, HEVC, AV1 or VP9",
                advice="cut at sync samples, or without smart",
            )
        configuration = self.entry.find(_CONFIGURATIONS[self.family])
        if configuration is None:
            raise BuildError(f"track {info.id} has no {_CONFIGURATIONS[self.family]}")
        return configuration

    @cached_property
    def codec(self) -> TrackCodec:
        """Its decoders."""
        return TrackCodec(self.init, self.part.track.id, self.part.track.info.codec)

    def sample(self, number: int) -> bytes:
        """The bytes of a sample."""
        samples = self.part.samples
        return self.source.read(
            ByteRange.of(int(samples.offset[number]), int(samples.size[number]))
        )

    def begins(self, number: int) -> bool:
        """Whether what is copied may begin at a sample, after pictures of another encoder."""
        # An I picture of AVC that is not an IDR counts on from the pictures before it.
        return self._access(number) >= (Access.CLOSED if self.family == "avc" else Access.OPEN)

    def _access(self, number: int) -> Access:
        """Whether decoding can start at a sample, whatever its mark says."""
        info = self.part.track.info
        if every_sample(info.kind, info.format, info.codec):
            return Access.CLOSED
        try:
            data = SampleBytes.of(self.sample(number))
            return access_of(data, info.format, info.codec, info.nal_length_size)
        except CannotTell:
            return Access.NONE

    def encode(self, numbers: Int64) -> Seam:
        """Encode pictures again, given in the order of showing."""
        samples = self.part.samples
        cts = samples.cts
        span = int(samples.cts.max() - samples.cts.min())
        pace = Fraction(self.part.timescale * max(len(samples) - 1, 1), max(span, 1))
        settings = SeamSettings(
            str(self.family),
            self.configuration,
            # A CRA picture that starts a sequence drops what is not shown yet (ISO/IEC 23008-2,
            # C.5.2.2): pictures of HEVC in front of it are shown as they are decoded.
            self.family == "avc" and bool((np.diff(cts) < 0).any()),
            max(pace, Fraction(1)).limit_denominator(1001),
            self._aspect(),
            self._free_number(),
            lambda: self._decoder,
        )
        layered = next(filter(None, map(self.entry.find, _LAYERED)), None)
        if layered is not None:
            raise self._not_encoded(f"its sample entry has {layered.type}")
        seam = encoded(partial(self._frames, numbers), settings)
        if len(seam.order) != len(numbers):
            raise UndecodableMedia(
                f"{len(seam.order)} of {len(numbers)} pictures of track {self.part.track.id} at "
                "the cut can be decoded"
            )
        self._encoded += numbers.tolist()
        return seam

    def _not_encoded(self, reason: str) -> BuildError:
        return BuildError(
            f"the pictures at the cut have more than one layer, and an encoder makes one: {reason}",
            path=f"track {self.part.track.id}",
            advice="cut at sync samples, or without smart",
        )

    def _aspect(self) -> Fraction:
        pasp = self.entry.find("pasp")
        if pasp is None or not pasp["hSpacing"] or not pasp["vSpacing"]:
            return Fraction(1)
        return Fraction(int(pasp["hSpacing"]), int(pasp["vSpacing"]))

    def _frames(self, numbers: Int64) -> Iterator[Any]:
        """Decoded pictures of samples, in the order of showing; decoded from a sync sample on."""
        samples = self.part.samples
        wanted = set(samples.cts[numbers].tolist())
        begin = self._decoded_from(int(numbers.min()))
        context = self.codec.fresh()
        context.thread_count, context.thread_type = _THREADS, "AUTO"
        self._decoder = context
        hold_back(context, reorder_depth(samples.cts))
        for number in [*range(begin, int(numbers.max()) + 1), None]:
            packet = None
            if number is not None:
                sample = self.sample(number)
                self._look(number, sample, is_encoded=int(samples.cts[number]) in wanted)
                packet = packet_of(sample)
                packet.pts, packet.dts = int(samples.cts[number]), int(samples.dts[number])
                packet.time_base = Fraction(1, self.part.timescale)
            try:
                frames = context.decode(packet)
            except av.FFmpegError as error:
                raise UndecodableMedia(
                    f"the pictures of track {self.part.track.id} at the cut cannot be decoded"
                ) from error
            yield from (frame for frame in frames if frame.pts in wanted)

    def _look(self, number: int, sample: bytes, *, is_encoded: bool) -> None:
        """Keep what a sample has in addition to its picture."""
        if number in self._messages:
            return
        said = messages_of(str(self.family), sample, self.length_size)
        if said.layers and is_encoded:
            raise self._not_encoded(f"sample {number} has {said.layers[0]}")
        self._messages[number] = said

    def left_out(self) -> tuple[LeftOut, ...]:
        """What the encoded pictures lack."""
        counts = Counter(n for at in self._encoded for n in self._messages[at].of_coding)
        of_track = f"of track {self.part.track.id}"
        return tuple(
            LeftOut(
                f"{name} of {count} encoded picture{'s' * (count > 1)} {of_track}",
                "it is about how the source coded them",
            )
            for name, count in counts.items()
        )

    def _decoded_from(self, number: int) -> int:
        """The sample at which decoding starts, so that this one and those after it are right."""
        first = self.firsts[bisect_right(self.firsts, number) - 1]
        marked = np.flatnonzero(self.part.samples.sync[first + 1 : number + 1])[::-1] + first + 1
        is_behind_open = False
        for at in marked.tolist():
            access = self._access(at)
            if access is Access.CLOSED or (access and is_behind_open):
                return int(at)
            # Pictures that are shown in front of an open one may need those before it.
            is_behind_open |= bool(access)
        return first

    def _free_number(self) -> int:
        """A number that no parameter set of the video has."""
        if self.family != "avc":
            return 0
        sets = [
            _first_number(bytes(unit)[start:])
            for name, start in (("sequenceParameterSets", 4), ("pictureParameterSets", 1))
            for unit in self.configuration[name]
        ]
        free = next((n for n in range(1, MOST_SETS) if n not in sets), None)
        if free is None:
            raise BuildError("the track uses the numbers of all parameter sets")
        return free

    def fitted(self, seam: Seam, numbers: Int64, *, last: bool) -> tuple[bytes, ...]:
        """The samples of a seam as the track has them.

        Args:
            numbers: of the source's samples with the same pictures.
        """
        first = int(numbers[0])
        lasting: dict[int, bytes] = {}
        for number in range(self._decoded_from(first), first):
            lasting |= self._messages[number].lasting
        said = [self._messages[number] for number in numbers.tolist()]
        said[0] = said[0].following(lasting)
        samples = [
            with_messages(str(self.family), sample, own)
            for sample, own in zip(seam.samples, said, strict=True)
        ]
        if self.family == "avc" and self.length_size != 4:
            samples = [_with_lengths(sample, self.length_size) for sample in samples]
        if self.family == "hevc" and last:
            samples[-1] += _END_OF_SEQUENCE
        return tuple(samples)

    def described(self, entry: Box | None) -> tuple[Box, bool]:
        """The trak that describes the pictures of a seam too, and whether by a second entry."""
        if entry is None or self.family == "vp9":
            return self.trak, False
        name = self.configuration.type
        configuration = entry.find(name)
        if configuration is None:
            raise BuildError(f"the pictures at the cut have no {name}")
        if self.family != "avc":
            others = [child for child in self.entry if child.type not in (name, "btrt")]
            configuration = with_declared(configuration, self.configuration)
            second = self.entry.replace(children=[configuration, *others])
            return _with_entries(self.trak, [self.entry, second]), True
        sets: dict[str, Any] = {
            name: [*self.configuration[name], *configuration[name]]
            for name in ("sequenceParameterSets", "pictureParameterSets")
        }
        count = len(sets["sequenceParameterSets"])
        joined = self.configuration.replace(**sets, numOfSequenceParameterSets=count)
        children = [joined if child.type == "avcC" else child for child in self.entry]
        return _with_entries(self.trak, [self.entry.replace(children=children)]), False


def _joined(parts: Sequence[PlannedTrack]) -> tuple[PlannedTrack, list[int]]:
    """The samples of parts on one timeline, one after the other, and where each part begins."""
    tables, firsts, reached = list[SampleTable](), [0], 0
    for part in parts:
        columns = part.samples.columns()
        by = reached - int(min(columns["dts"].min(), columns["cts"].min())) if tables else 0
        moved = {name: columns[name] + by for name in ("dts", "cts")}
        tables.append(SampleTable.of(columns | moved))
        reached = int(max(column.max() for column in moved.values())) + 1
        firsts.append(firsts[-1] + len(part))
    numbers = np.concatenate([part.source_numbers for part in parts])
    samples = SampleTable.concat(tables)
    source = one_source(0, len(samples))
    return replace(parts[0], samples=samples, source=source, numbers=numbers), firsts[:-1]


def _with_entries(trak: Box, entries: list[Box]) -> Box:
    changes = {"mdia/minf/stbl/stsd": lambda stsd: stsd.replace(children=entries)}
    return with_changes(trak, changes)


def _first_number(data: bytes) -> int:
    """The Exp-Golomb number that bits begin with (ISO/IEC 14496-10, 9.1)."""
    bits = "".join(f"{byte:08b}" for byte in data[:9])
    zeros = len(bits) - len(bits.lstrip("0"))
    return int(bits[zeros : 2 * zeros + 1] or "1", 2) - 1


def _with_lengths(sample: bytes, size: int) -> bytes:
    """A sample whose NAL units have lengths of another size in front."""
    units, at = [], 0
    while at + 4 <= len(sample):
        length = int.from_bytes(sample[at : at + 4], "big")
        if length >= 1 << 8 * size:
            raise BuildError(f"a picture at the cut needs more than {size} bytes for its length")
        units.append(length.to_bytes(size, "big") + sample[at + 4 : at + 4 + length])
        at += 4 + length
    return b"".join(units)
