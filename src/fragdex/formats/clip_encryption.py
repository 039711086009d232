"""What decrypts samples of a progressive file, taken along into fragments.

Beside each encrypted sample a file keeps auxiliary information: an initialization vector, and the
ranges of clear and of protected bytes where not the whole sample is protected (ISO/IEC 23001-7, 7).
The sample table says where (saio) and how long (saiz, ISO/IEC 14496-12, 8.7.8 and 8.7.9); in a
fragment the same stands in a senc, and saiz and saio point into it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, build, make_box, parse_box
from fragdex.byterange import ByteRange, coalesce
from fragdex.errors import BuildError

__all__ = [
    "Protection",
    "auxiliary",
    "needed_by",
    "protection",
    "sizes_of",
    "vectors_of",
    "with_offsets",
]

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
            # A sample that is protected as a whole has no ranges beside others that have.
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
    found = auxiliary(stbl, track_id, first, chunks)
    if found is None:
        needed_by(vectors, track_id)
        return None
    return Protection(_read_all(*found, read), vectors)


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
    found = {}
    for number, entry in enumerate(stsd.children if stsd is not None else (), 1):
        tenc = entry.find("sinf/schi/tenc")
        if tenc is not None and not tenc.opaque and tenc["default_isProtected"]:
            found[number] = int(tenc["default_Per_Sample_IV_Size"])
    return found if found and set(found.values()) <= set(VECTORS) else None


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
    held = (np.searchsorted(starts, places, side="right") - 1).tolist()
    return tuple(
        blocks[n][at - merged[n].start : at - merged[n].start + size] if size else b""
        for n, (at, size) in zip(held, pairs, strict=True)
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
