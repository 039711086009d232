"""Samples of a progressive file as fragments: one moof for about a second, a traf for each track.

Positions count from the moof (default-base-is-moof), so that the fragments can be moved again.

What decrypts them is taken along.

For each encrypted sample a file has auxiliary information: an initialization vector, and the
ranges of clear and of protected bytes where not the whole sample is protected (ISO/IEC 23001-7, 7).
The sample table says where (saio) and how long (saiz, ISO/IEC 14496-12, 8.7.8 and 8.7.9); in a
fragment the same stands in a senc, and saiz and saio point into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, build, make_box, parse, parse_box
from fragdex.boxes.fragments import (
    DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DESCRIPTION_INDEX,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.byterange import ByteRange, coalesce
from fragdex.errors import BuildError
from fragdex.fragments.table import Int64, SampleTable
from fragdex.muxing.clip_movie import traks_of
from fragdex.seeking.model import Track

Read = Callable[[ByteRange], bytes]

SUBSAMPLES = 2
"""The flag of a senc whose samples have ranges of clear and protected bytes."""
SCHEMES = ("cenc", "cens", "cbc1", "cbcs")
GAP = 64 << 10
"""Bytes between two parts that are read for nothing, rather than asking twice."""
VECTORS = (0, 8, 16)


@dataclass(frozen=True, slots=True)
class Protection:
    """The auxiliary information of samples in a row.

    Attributes:
        parts: of each sample; empty for one that has none.
        vectors: sample_description_index → bytes of the initialization vector of each sample; an
            index that is not in it stands for clear samples.
    """

    parts: tuple[bytes, ...]
    vectors: dict[int, int]

    def boxes(self, low: int, high: int, description: int) -> list[Box]:
        """The saiz, saio and senc of samples `low` to `high` (exclusive), all of one description.

        The saio still says 0: `with_offsets` fills it in.

        Raises:
            BuildError: the information of a sample is shorter than its vector.
        """
        vector = self.vectors.get(description)
        parts = self.parts[low:high]
        if vector is None or not any(parts):
            return []
        divided = any(len(part) > vector for part in parts)
        if divided:
            # A sample that is protected as a whole has no ranges next to others that have.
            parts = tuple(part + b"\0\0" if len(part) == vector else part for part in parts)
        least = vector + 2 if divided else vector
        if any(len(part) < least for part in parts):
            raise BuildError(
                "auxiliary information of a sample is shorter than its initialization vector",
                path="moov/trak/mdia/minf/stbl/saiz",
                expected=f"at least {least} bytes",
                found=min(map(len, parts)),
            )
        sizes = np.array([len(part) for part in parts])
        alike = bool((sizes == sizes[0]).all())
        saiz = make_box(
            "saiz",
            default_sample_info_size=int(sizes[0]) if alike else 0,
            sample_count=len(parts),
        )
        if not alike:
            saiz = saiz.replace(entries=sizes.astype([("sample_info_size", ">u1")]))
        return [
            saiz,
            make_box("saio", entry_count=1, entries=np.zeros(1, [("offset", ">u4")])),
            make_box(
                "senc",
                flags=SUBSAMPLES if divided else 0,
                sample_count=len(parts),
                samples=b"".join(parts),
            ),
        ]


def protection(
    trak: Box,
    track_id: int,
    first: int,
    chunks: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    read: Read,
) -> Protection | None:
    """The auxiliary information of a track's samples; None where they need none.

    Args:
        trak: of the source.
        track_id: for complaints.
        first: number of the first sample, from 0.
        chunks: of each sample from that one on, its chunk and the first sample of that chunk.
        read: exactly the bytes of a range of the source.

    Raises:
        BuildError: keys change from sample to sample, or the information is not all there.
    """
    stbl = trak.find("mdia/minf/stbl")
    if stbl is None:
        return None
    vectors = vectors_of(stbl, track_id)
    information = auxiliary(stbl, track_id, first, chunks)
    if information is None:
        needed_by(vectors, track_id)
        return None
    return Protection(_read_all(*information, read), vectors)


def vectors_of(stbl: Box, track_id: int) -> dict[int, int]:
    """sample_description_index → bytes of the vector of each sample, of encrypted descriptions.

    Raises:
        BuildError: keys change from sample to sample, or the track is encrypted in another way.
    """
    for group in stbl.find_all("sbgp"):
        if group.get("grouping_type") == "seig":
            raise BuildError(
                f"the keys of track {track_id} change between samples (a seig sample group), "
                "and that cannot be moved into fragments yet",
                path="moov/trak/mdia/minf/stbl/sbgp",
                advice="leave it out with tracks=",
            )
    vectors = _vectors(stbl)
    if vectors is None:
        raise BuildError(
            f"track {track_id} is encrypted, but not as ISO/IEC 23001-7 says",
            path="moov/trak/mdia/minf/stbl/stsd",
            advice="leave it out with tracks=",
        )
    return vectors


def needed_by(vectors: dict[int, int], track_id: int) -> None:
    """Refuse a track without auxiliary information, where its samples have vectors of their own.

    Raises:
        BuildError: they have.
    """
    if any(vectors.values()):
        raise BuildError(
            f"track {track_id} is encrypted, and its initialization vectors cannot be found",
            path="moov/trak/mdia/minf/stbl",
            expected="a saiz and a saio",
            advice="leave it out with tracks=",
        )


def auxiliary(
    stbl: Box,
    track_id: int,
    first: int,
    chunks: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Where the auxiliary information of samples from `first` on lies, and bytes of each.

    None: there is no saiz or no saio.

    Args: as of `protection`.

    Raises:
        BuildError: it is not all there.
    """
    saiz, saio = _of_encryption(stbl, "saiz"), _of_encryption(stbl, "saio")
    if saiz is None or saio is None:
        return None
    chunk, chunk_first = chunks
    sizes = sizes_of(saiz, first + len(chunk), track_id)
    starts = np.cumsum(sizes) - sizes
    offsets = saio["entries"]["offset"].astype(np.uint64).astype(np.int64)
    if len(offsets) == 1:
        places = starts[first:] + offsets[0]
    elif chunk.min() >= 0 and chunk.max() < len(offsets) and chunk_first.min() >= 0:
        places = offsets[chunk] + starts[first:] - starts[chunk_first]
    else:
        raise BuildError(
            f"auxiliary information of track {track_id} is missing",
            path="moov/trak/mdia/minf/stbl/saio",
            expected=f"an offset for each of {int(chunk.max()) + 1} chunks, or one for all",
            found=len(offsets),
        )
    if (places < 0).any():
        raise BuildError(
            "auxiliary information is beyond 2^63 bytes", path="moov/trak/mdia/minf/stbl/saio"
        )
    return places, sizes[first:]


def _vectors(stbl: Box) -> dict[int, int] | None:
    """Bytes of the vectors of each encrypted sample description; None: there is no tenc."""
    stsd = stbl.find("stsd")
    vectors = {}
    for number, entry in enumerate(stsd.children if stsd is not None else (), 1):
        tenc = entry.find("sinf/schi/tenc")
        if tenc is not None and not tenc.opaque and tenc["default_isProtected"]:
            vectors[number] = int(tenc["default_Per_Sample_IV_Size"])
    return vectors if vectors and set(vectors.values()) <= set(VECTORS) else None


def _of_encryption(stbl: Box, code: str) -> Box | None:
    """The box on the encryption's auxiliary information: its type is said, or goes without."""
    for box in stbl.find_all(code):
        if not box.opaque and box.get("aux_info_type", "cenc") in SCHEMES:
            return box
    return None


def sizes_of(saiz: Box, needed: int, track_id: int) -> npt.NDArray[np.int64]:
    """Bytes of the information of the first `needed` samples of the track."""
    if saiz["sample_count"] < needed:
        raise BuildError(
            f"auxiliary information of track {track_id} is missing",
            path="moov/trak/mdia/minf/stbl/saiz",
            expected=f"sizes of {needed} samples",
            found=saiz["sample_count"],
        )
    if saiz["default_sample_info_size"]:
        return np.full(needed, saiz["default_sample_info_size"], np.int64)
    sizes: npt.NDArray[np.int64] = saiz["entries"]["sample_info_size"][:needed].astype(np.int64)
    return sizes


def _read_all(
    places: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], read: Read
) -> tuple[bytes, ...]:
    pairs = list(zip(places.tolist(), sizes.tolist(), strict=True))
    merged = coalesce([ByteRange.of(at, size) for at, size in pairs if size], max_gap=GAP)
    starts = np.array([block.start for block in merged], np.int64)
    blocks = [read(block) for block in merged]
    owners = (np.searchsorted(starts, places, side="right") - 1).tolist()
    return tuple(
        blocks[n][at - merged[n].start : at - merged[n].start + size] if size else b""
        for n, (at, size) in zip(owners, pairs, strict=True)
    )


def with_offsets(moof: Box) -> Box:
    """A moof whose saio boxes point at the first sample in the senc of their traf.

    Offsets count from the moof (default-base-is-moof, 8.7.9.1).
    """
    trafs = iter(parse_box(build(moof)).find_all("traf"))
    children: list[Box] = []
    for child in moof.children:
        senc: Any = next(trafs).find("senc") if child.type == "traf" else None
        if senc is not None:
            entries = np.array([(senc.offset + 16,)], [("offset", ">u4")])
            inner = [b.replace(entries=entries) if b.type == "saio" else b for b in child.children]
            child = child.replace(children=inner)
        children.append(child)
    return moof.replace(children=children)


LEAST_SECONDS = 1.0
"""A fragment starts at a sync sample, at least so long after the one before."""

# sample_depends_on 2 (on none), and 1 with sample_is_non_sync_sample (8.8.3.1)
SYNC_FLAGS, OTHER_FLAGS = 0x02000000, 0x01010000
ALL_COLUMNS = (
    DATA_OFFSET | SAMPLE_DURATION | SAMPLE_SIZE | SAMPLE_FLAGS | SAMPLE_COMPOSITION_TIME_OFFSET
)
ROW = np.dtype(
    [
        ("sample_duration", ">u4"),
        ("sample_size", ">u4"),
        ("sample_flags", ">u4"),
        ("sample_composition_time_offset", ">i4"),
    ]
)


@dataclass(frozen=True, slots=True)
class TrimmedPart:
    """Samples of one track that go into a clip.

    Attributes:
        track: where they come from.
        samples: in decode order.
        first: number of the first one in the track.
        made: bytes of samples that are not copied, by their number here.
        numbers: of the samples in the track; None: they are neighbours.
    """

    track: Track
    samples: SampleTable
    first: int
    made: Mapping[int, bytes] = field(default_factory=dict)
    numbers: Int64 | None = None


def sample_fragments(
    cuts: Sequence[TrimmedPart], init: bytes, back: Mapping[int, int], read: Read
) -> Iterator[bytes | ByteRange]:
    """The pieces of fragments with these samples: boxes as bytes, media data as ranges.

    Args:
        cuts: at least one, each with at least one sample.
        init: the source's ftyp and moov, for the sample descriptions.
        back: track_ID → ticks to take off decode times.
        read: exactly the bytes of a range of the source: what decrypts encrypted samples.

    Raises:
        BuildError: what decrypts a track cannot be found or moved, or a value does not fit into a
            fragment.
    """
    traks = traks_of(parse(init))
    protections = [_protection(traks.get(c.track.id), c, read) for c in cuts]
    bounds = _bounds(cuts)
    places = [np.searchsorted(_seconds(c), bounds[1:-1]).tolist() for c in cuts]
    edges = [[0, *at, len(c.samples)] for c, at in zip(cuts, places, strict=True)]
    descriptions = [
        described(traks[c.track.id], _numbers(c))
        if c.track.id in traks
        else np.ones(len(c.samples), np.int64)
        for c in cuts
    ]
    for number in range(len(bounds) - 1):
        trafs: list[Box] = []
        sizes: list[int] = []
        media: list[bytes | ByteRange] = []
        for cut, edge, mine, protected in zip(cuts, edges, descriptions, protections, strict=True):
            earlier = back.get(cut.track.id, 0)
            for low, high in _runs(mine, edge[number], edge[number + 1]):
                part = cut.samples.rows(slice(low, high))
                description = int(mine[low])
                more = protected.boxes(low, high, description) if protected else []
                trafs.append(_traf(cut.track.id, description, part, earlier, more))
                sizes.append(int(part.size.sum()))
                media += _media(cut, low, high)
        if trafs:
            yield _moof(number + 1, trafs, sizes)
            yield from media


def _media(cut: TrimmedPart, low: int, high: int) -> Iterator[bytes | ByteRange]:
    """The samples from `low` to `high` (exclusive), made or copied."""
    for number in sorted(cut.made):
        if low <= number < high:
            yield from ranges(cut.samples.rows(slice(low, number)))
            yield cut.made[number]
            low = number + 1
    yield from ranges(cut.samples.rows(slice(low, high)))


def decoded_sooner(cut: TrimmedPart) -> TrimmedPart:
    """Samples with composition offsets of 0 or more: players disagree about negative ones."""
    samples = cut.samples
    least = int((samples.cts - samples.dts).min())
    if least >= 0:
        return cut
    return replace(cut, samples=replace(samples, dts=samples.dts + least))


def _seconds(cut: TrimmedPart) -> npt.NDArray[np.float64]:
    seconds: npt.NDArray[np.float64] = cut.samples.dts / cut.track.timescale
    return seconds


def _bounds(cuts: Sequence[TrimmedPart]) -> npt.NDArray[np.float64]:
    """Decode times in seconds at which fragments start, and infinity."""
    pace = next((c for c in cuts if c.track.kind == "video"), cuts[0])
    starts = _seconds(pace)[pace.samples.sync]
    bounds = [-np.inf]
    last = starts[0] if len(starts) else 0.0
    for at in starts[1:].tolist():
        if at - last >= LEAST_SECONDS:
            bounds.append(at)
            last = at
    return np.array([*bounds, np.inf])


def described(trak: Box, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """sample_description_index of samples of the moov by their numbers, from stsc (8.7.4)."""
    stsd = trak.find("mdia/minf/stbl/stsd")
    if stsd is None or len(stsd.children) < 2:
        return np.ones(len(numbers), np.int64)
    return chunks_of(trak, numbers)[0]


def chunks_of(
    trak: Box, numbers: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """By stsc (8.7.4) of each sample: description, chunk, first sample of that chunk.

    All count from 0 but descriptions, which count from 1.
    """
    stbl = trak.find("mdia/minf/stbl")
    stsc = None if stbl is None else stbl.find("stsc")
    entries: Any = None if stsc is None else stsc.get("entries")
    if entries is None or not len(entries):
        nothing = np.zeros(len(numbers), np.int64)
        return nothing + 1, nothing, nothing
    index = entries["sample_description_index"].astype(np.int64)
    firsts = entries["first_chunk"].astype(np.int64) - 1
    each = np.maximum(entries["samples_per_chunk"].astype(np.int64), 1)
    # The last entry holds to the end, however many chunks that is.
    ends = np.cumsum(np.diff(firsts) * each[:-1])
    entry = np.searchsorted(ends, numbers, side="right")
    before = np.append(0, ends)[entry]
    turn = (numbers - before) // each[entry]
    return index[entry], firsts[entry] + turn, before + turn * each[entry]


def _runs(described: npt.NDArray[np.int64], low: int, high: int) -> Iterator[tuple[int, int]]:
    """Neighbouring samples that share a description: a traf has one."""
    if low == high:
        return
    changes = np.flatnonzero(np.diff(described[low:high])) + low + 1
    edges = [low, *changes.tolist(), high]
    yield from pairwise(edges)


def _numbers(cut: TrimmedPart) -> npt.NDArray[np.int64]:
    return cut.first + np.arange(len(cut.samples)) if cut.numbers is None else cut.numbers


def with_bytes(track: Track, samples: SampleTable) -> Int64 | None:
    """Those of pictures and sound that have bytes; None: all, or it is unknown.

    What stands before a sample of no bytes continues. FFmpeg reads no trun that has one; to decrypt
    some, their number among the others is needed.
    """
    if track.kind not in ("video", "audio") or track.info.encryption is not None:
        return None
    empty = samples.size == 0
    return np.flatnonzero(~empty) if empty.any() and not empty.all() else None


def without_empty(cut: TrimmedPart) -> TrimmedPart:
    """A cut whose samples all have bytes: each lasts until the next one that has some."""
    filled = with_bytes(cut.track, cut.samples)
    if filled is None:
        return cut
    columns = cut.samples.rows(filled).columns()
    columns = columns | {"duration": np.add.reduceat(cut.samples.duration, filled)}
    return replace(cut, samples=SampleTable.of(columns), numbers=_numbers(cut)[filled])


def _protection(trak: Box | None, cut: TrimmedPart, read: Read) -> Protection | None:
    """What decrypts the samples of a cut."""
    if trak is None or cut.track.info.encryption is None:
        return None
    _, chunk, chunk_first = chunks_of(trak, _numbers(cut))
    return protection(trak, cut.track.id, cut.first, (chunk, chunk_first), read)


def _traf(
    track_id: int, description: int, samples: SampleTable, back: int, more: Sequence[Box]
) -> Box:
    rows = np.zeros(len(samples), ROW)
    if len(samples) and int(samples.duration.min()) < 0:
        raise BuildError(
            f"decode times of track {track_id} fall back (negative-duration), and a clip cannot "
            "say that",
            path="moov/trak/mdia/minf/stbl/stts",
            advice="make a fragmented view first (fragdex view), and the clip of that",
        )
    columns = {
        "sample_duration": samples.duration,
        "sample_size": samples.size,
        "sample_flags": np.where(samples.sync, SYNC_FLAGS, OTHER_FLAGS),
        "sample_composition_time_offset": samples.cts - samples.dts,
    }
    for name, column in columns.items():
        rows[name] = column
        if (rows[name].astype(np.int64) != column).any():
            raise BuildError(f"{name} does not fit into a fragment", path="moof/traf/trun")
    flags = DEFAULT_BASE_IS_MOOF | SAMPLE_DESCRIPTION_INDEX
    time = int(samples.dts[0]) - back
    return make_box(
        "traf",
        children=[
            make_box("tfhd", flags=flags, track_ID=track_id, sample_description_index=description),
            make_box("tfdt", version=1, baseMediaDecodeTime=time % (1 << 64)),
            *more,
            make_box("trun", version=1, flags=ALL_COLUMNS, samples=rows),
        ],
    )


def _moof(number: int, trafs: Sequence[Box], sizes: Sequence[int]) -> bytes:
    """A moof and the header of its mdat."""
    header = make_box("mfhd", sequence_number=number)
    payload = sum(sizes)
    large = payload + 8 >= 1 << 32
    mdat = b"\0\0\0\1mdat" + (payload + 16).to_bytes(8, "big")
    if not large:
        mdat = (payload + 8).to_bytes(4, "big") + b"mdat"
    # data_offset has a fixed size: the moof's own size does not depend on it
    at = len(build(make_box("moof", children=[header, *trafs]))) + len(mdat)
    placed = []
    for traf, size in zip(trafs, sizes, strict=True):
        *before, trun = traf.children
        placed.append(traf.replace(children=[*before, trun.replace(data_offset=at)]))
        at += size
    return build(with_offsets(make_box("moof", children=[header, *placed]))) + mdat


class Ranges(NamedTuple):
    """Many ranges of a source, to be written one after the other.

    Attributes:
        start, size: int64 columns: first byte and bytes of each.

    >>> ranges = Ranges.joined(np.array([8, 10, 30]), np.array([2, 5, 1]))
    >>> [(part.start, part.stop) for part in ranges.parts()]
    [(8, 15), (30, 31)]
    """

    start: Int64
    size: Int64

    @classmethod
    def joined(cls, start: Int64, size: Int64) -> Ranges:
        """Without empty ones, and those that touch as one."""
        filled = size > 0
        start, size = start[filled], size[filled]
        if not len(start):
            return cls(start, size)
        heads = np.append(0, np.flatnonzero(start[1:] != start[:-1] + size[:-1]) + 1)
        return cls(start[heads], np.add.reduceat(size, heads))

    def parts(self) -> Iterator[ByteRange]:
        """The ranges one by one."""
        stops = (self.start + self.size).tolist()
        yield from map(ByteRange, self.start.tolist(), stops)


def ranges(samples: SampleTable) -> list[ByteRange]:
    """The bytes of samples, in their order; those that touch are joined."""
    return list(Ranges.joined(samples.offset, samples.size).parts())
