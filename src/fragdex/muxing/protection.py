"""What decrypts samples, taken along into made fragments; nothing is decrypted here.

For each encrypted sample a file has auxiliary information: an initialization vector, and the
ranges of clear and protected bytes (ISO/IEC 23001-7, 7). A progressive file says in its moov where
that lies and how long it is, fragments say it in each traf. In a made fragment it is a senc of
ranges of the source, with a saiz and a saio (ISO/IEC 14496-12, 8.7.8 and 8.7.9).

Which keys decrypt a track is said as playlists and manifests say it, never the keys themselves.
"""

from __future__ import annotations

import struct
import uuid
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from fragdex.boxes import Box, build, find_all, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, FormatError
from fragdex.fragments.table import NULL, FragmentFlags, Int64
from fragdex.muxing.movie import chunks_of, protected_entries
from fragdex.muxing.plan import PlannedTrack
from fragdex.muxing.view import Block, Scattered
from fragdex.record import record

_PLAYREADY: Final = "9a04f079-9840-4286-ab92-e65be0885f95"
_METHODS: Final = {"cenc": "SAMPLE-AES-CTR", "cbcs": "SAMPLE-AES"}
"""Schemes that HLS has a method for (RFC 8216, 4.3.2.4; 8216bis, 4.4.4.4)."""


@record(frozen=True, slots=True)
class System:
    """What one protection system needs (ISO/IEC 23001-7, 8.1).

    Attributes:
        id: SystemID as a UUID.
    """

    id: str
    data: bytes
    pssh: bytes

    @property
    def base64(self) -> str:
        """The box in base64."""
        return b64encode(self.pssh).decode()


@record(frozen=True, slots=True)
class Keys:
    """The keys of a track.

    Attributes:
        scheme: cenc, cens, cbc1 or cbcs.
        default_kid: 32 hex digits of the key's identifier.
        systems: whose pssh boxes the moov has.
    """

    scheme: str
    default_kid: str
    systems: tuple[System, ...]

    @property
    def uuid(self) -> str:
        """The identifier of the key as DASH writes it."""
        return str(uuid.UUID(self.default_kid))

    def lines(self) -> Iterator[str]:
        """The attributes of EXT-X-KEY, for each protection system.

        A system without a pssh has no URI here, and a scheme that HLS does not know no method: then
        there is no line.
        """
        method = _METHODS.get(self.scheme)
        for one in self.systems if method is not None else ():
            form, uri = f"urn:uuid:{one.id}", f"data:text/plain;base64,{one.base64}"
            if one.id == _PLAYREADY:
                form = "com.microsoft.playready"
                uri = f"data:text/plain;charset=UTF-16;base64,{b64encode(one.data).decode()}"
            yield (
                f'METHOD={method},URI="{uri}",KEYID=0x{self.default_kid.upper()},'
                f'KEYFORMAT="{form}",KEYFORMATVERSIONS="1"'
            )


def keys_of(moov: Sequence[Box], trak: Box) -> tuple[Keys | None, ...]:
    """The keys of each sample description of a track; None: what it describes is clear."""
    systems = tuple(
        System(str(uuid.UUID(bytes=bytes(box["SystemID"]))), bytes(box["Data"]), build(box))
        for box in find_all(moov, "moov/pssh")
        if not box.opaque
    )
    found: list[Keys | None] = []
    for entry in trak.find_all("mdia/minf/stbl/stsd/*"):
        scheme, tenc = entry.find("sinf/schm"), entry.find("sinf/schi/tenc")
        if scheme is None or tenc is None or tenc.opaque:
            found.append(None)
        else:
            kid = bytes(tenc["default_KID"]).hex()
            found.append(Keys(str(scheme["scheme_type"]), kid, systems))
    return tuple(found)


Read = Callable[[ByteRange], bytes]

_SAIZ, _SAIO, _SENC = 17, 20, 16
"""Bytes of the boxes without their rows."""
_SUBSAMPLES = 2
"""The flag of a senc whose samples have ranges of clear and protected bytes."""
_MOST = 255
_SCHEMES: Final = ("cenc", "cens", "cbc1", "cbcs")
_VECTORS: Final = (0, 8, 16)
"""Bytes that a vector may have."""


@record(frozen=True, eq=False)
class Protected:
    """The auxiliary information of a track's samples, where it lies in the source.

    Attributes:
        start, size: int64 bytes of each sample's; size 0: it has none.
        vector: int64 bytes of the initialization vector that begins it; more are subsamples.
    """

    source: int
    start: Int64
    size: Int64
    vector: Int64

    def __post_init__(self) -> None:
        # a sample that is protected as a whole has no ranges next to others that have
        padded = self.size + 2 * (self.size == self.vector)
        for name, value in (
            ("_padded", padded),
            ("_any", _before(self.size > 0)),
            ("_divided", _before(self.size > self.vector)),
            ("_short", _before((self.size < self.vector) | (padded > _MOST))),
            ("_plain", (_before(self.size), _changes(self.size))),
            ("_pads", (_before(padded), _changes(padded))),
        ):
            object.__setattr__(self, name, value)

    def rows(self, which: slice | Int64) -> Protected:
        """That of some of the samples."""
        return Protected(self.source, self.start[which], self.size[which], self.vector[which])

    def boxes(self, low: Int64, high: Int64) -> Int64:
        """Bytes of the boxes of runs of samples."""
        has, divided = self._has(low, high)
        wrong = has & (self._short[high] > self._short[low])  # type: ignore[attr-defined]
        if wrong.any():
            first = int(low[int(wrong.argmax())])
            raise BuildError(
                "auxiliary information of a sample is shorter than its initialization vector, or "
                f"longer than {_MOST} bytes",
                path="moof/traf/saiz",
                offset=int(self.start[first]),
                expected=f"{int(self.vector[first])} to {_MOST} bytes",
                found=int(self.size[first : int(high[int(wrong.argmax())])].min()),
            )
        sums, alike = self._sums(low, high, divided)
        count = high - low
        sizes: Int64 = np.where(has, _SAIZ + _SAIO + _SENC + sums + np.where(alike, 0, count), 0)
        return sizes

    def _has(self, low: Any, high: Any) -> tuple[Any, Any]:
        have = self._any[high] > self._any[low]  # type: ignore[attr-defined]
        return have, self._divided[high] > self._divided[low]  # type: ignore[attr-defined]

    def _sums(self, low: Any, high: Any, divided: Any) -> tuple[Any, Any]:
        """Bytes of runs, and whether their samples have equally many."""
        (plain, changes), (padded, padded_changes) = self._plain, self._pads  # type: ignore[attr-defined]
        last = np.maximum(high - 1, low)
        sums = np.where(divided, padded[high] - padded[low], plain[high] - plain[low])
        # a run without samples has no row to look at
        last, low = (np.minimum(one, len(changes) - 1) for one in (last, low))
        alike = np.where(
            divided,
            padded_changes[last] == padded_changes[low],
            changes[last] == changes[low],
        )
        return sums, alike

    def blocks(self, low: int, high: int, place: int) -> list[Block]:
        """The saiz, saio and senc of samples `low` to `high` (exclusive).

        Args:
            place: bytes from the moof's start to the first of these boxes.
        """
        has, divided = self._has(low, high)
        if not has:
            return []
        sizes = (self._padded if divided else self.size)[low:high]  # type: ignore[attr-defined]
        alike = bool((sizes == sizes[0]).all())
        rows = b"" if alike else sizes.astype(np.uint8).tobytes()
        count, first = high - low, int(sizes[0]) if alike else 0
        saiz = struct.pack(">I4sIBI", _SAIZ + len(rows), b"saiz", 0, first, count) + rows
        at = place + len(saiz) + _SAIO + _SENC
        saio = struct.pack(">I4sIII", _SAIO, b"saio", 0, 1, at)
        flags = _SUBSAMPLES if divided else 0
        senc = struct.pack(">I4sII", _SENC + int(sizes.sum()), b"senc", flags, count)
        return [saiz + saio + senc, *self._information(low, high, bool(divided))]

    def _information(self, low: int, high: int, divided: bool) -> Iterator[Block]:
        start, size = self.start[low:high], self.size[low:high]
        ends = size == self.vector[low:high]
        edges = np.flatnonzero(ends) + 1 if divided else np.zeros(0, np.int64)
        at = 0
        for stop in [*edges.tolist(), high - low]:
            is_protected = size[at:stop] > 0
            if is_protected.any():
                yield Scattered(
                    self.source, start[at:stop][is_protected], size[at:stop][is_protected]
                )
            if divided and stop > at and ends[stop - 1]:
                yield b"\0\0"
            at = stop


def _before(column: Any) -> Int64:
    sums: Int64 = np.concatenate([[0], np.cumsum(column)]).astype(np.int64)
    return sums


def _changes(column: Int64) -> Int64:
    changes: Int64 = np.concatenate([[0], np.cumsum(column[1:] != column[:-1])]).astype(np.int64)
    return changes


def vectors_of(stbl: Box, track_id: int) -> dict[int, int]:
    """sample_description_index → bytes of the vector of each sample, of encrypted descriptions."""
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
    """Refuse a track without auxiliary information, where its samples have vectors of their own."""
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
    chunks: tuple[Int64, Int64],
) -> tuple[Int64, Int64] | None:
    """Where the auxiliary information of samples from `first` on lies, and bytes of each.

    None: there is no saiz or no saio.
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
    return vectors if vectors and set(vectors.values()) <= set(_VECTORS) else None


def _of_encryption(parent: Box, code: str) -> Box | None:
    """The box on the encryption's auxiliary information: its type is said, or goes without."""
    for box in parent.find_all(code):
        if not box.opaque and box.get("aux_info_type", "cenc") in _SCHEMES:
            return box
    return None


def sizes_of(saiz: Box, needed: int, track_id: int) -> Int64:
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
    sizes: Int64 = saiz["entries"]["sample_info_size"][:needed].astype(np.int64)
    return sizes


def protected(trak: Box, media: PlannedTrack, read: Read) -> Protected | None:
    """Where what decrypts a track's samples lies; None: it is clear, or needs nothing more.

    Raises:
        BuildError: keys change from sample to sample, or the information is not all there.
    """
    track = media.track
    if not protected_entries(trak) or not len(media):
        return None
    stbl = trak.find("mdia/minf/stbl")
    assert stbl is not None  # there are sample descriptions in it
    vectors = vectors_of(stbl, track.id)
    each = np.ones(len(media), np.int64) if media.descriptions is None else media.descriptions
    vector = np.array([vectors.get(int(n), 0) for n in range(int(each.max()) + 1)])[each]
    table = track.fragments
    virtual = (table.flags & FragmentFlags.VIRTUAL) != 0
    first = int(media.source_numbers[0])
    count = min(max(int(table.sample_count[virtual].sum()) - first, 0), len(media))
    start, size = np.zeros(len(media), np.int64), np.zeros(len(media), np.int64)
    if count:
        chunks = chunks_of(trak, np.arange(first, first + count))[1:]
        information = auxiliary(stbl, track.id, first, chunks)
        if information is None:
            needed_by(vectors, track.id)
        else:
            start[:count], size[:count] = information
    if count < len(media):
        rows = _moofs_with(table, virtual, first + count, first + len(media))
        pieces = list(_of_moofs(table, rows, track.id, int(vector.max()), read))
        starts, sizes = (np.concatenate(column) for column in zip(*pieces, strict=True))
        low = first + count - int(table.sample_start[rows[0]])
        part = slice(low, low + len(media) - count)
        start[count:], size[count:] = starts[part], sizes[part]
        if vector[count:].any() and not size[count:].any():
            needed_by(vectors, track.id)
    return Protected(int(media.source[0]), start, size, vector)


def _moofs_with(table: Any, virtual: Any, low: int, high: int) -> Int64:
    """The rows of all moofs that have samples `low` to `high` (exclusive) of a track."""
    ends = table.sample_start + table.sample_count
    has = ~virtual & (table.sample_start < high) & (ends > low)
    return np.flatnonzero(~virtual & np.isin(table.moof_offset, table.moof_offset[has]))


def _of_moofs(
    table: Any, rows: Int64, track_id: int, vector: int, read: Read
) -> Iterator[tuple[Int64, Int64]]:
    """Places and sizes of the information of the samples of fragments, moof by moof."""
    moofs, counts = table.moof_offset[rows].tolist(), table.sample_count[rows].tolist()
    at = 0
    while at < len(rows):
        stop = at
        while stop < len(rows) and moofs[stop] == moofs[at]:
            stop += 1
        if moofs[at] == NULL:
            raise BuildError(
                f"where the fragments of track {track_id} begin is not in the index",
                path="moof",
                advice="index the file again",
            )
        head = read(ByteRange.of(moofs[at], 8))
        size = int.from_bytes(head[:4], "big")
        try:
            moof = parse_box(read(ByteRange.of(moofs[at], size)), offset=moofs[at])
        except FormatError as error:
            raise BuildError(
                f"the moof cannot be read: {error.message}", path="moof", offset=moofs[at]
            ) from error
        mine = [traf for traf in moof.find_all("traf") if _is_of(traf, track_id)]
        parts = [_of_traf(traf, moof, track_id, vector) for traf in mine]
        wanted = sum(counts[at:stop])
        for number, one in enumerate(parts):
            if not len(one[0]):  # a traf without: its samples are clear
                trun = sum(int(t["sample_count"]) for t in mine[number].find_all("trun"))
                parts[number] = np.zeros(trun, np.int64), np.zeros(trun, np.int64)
        starts, sizes = (np.concatenate(column) for column in zip(*parts, strict=True))
        if len(sizes) != wanted:
            raise BuildError(
                f"auxiliary information of track {track_id} is missing",
                path="moof/traf/saiz",
                offset=moofs[at],
                expected=f"sizes of {wanted} samples",
                found=len(sizes),
            )
        yield starts, sizes
        at = stop


def _is_of(traf: Box, track_id: int) -> bool:
    head = traf.find("tfhd")
    return head is not None and head.get("track_ID") == track_id


def _of_traf(traf: Box, moof: Box, track_id: int, vector: int) -> tuple[Int64, Int64]:
    nothing = np.zeros(0, np.int64)
    if any(one.get("grouping_type") == "seig" for one in traf.find_all("sbgp")):
        raise BuildError(
            f"the keys of track {track_id} change between samples (a seig sample group), and that "
            "cannot be moved into made fragments yet",
            path="moof/traf/sbgp",
            offset=moof.offset,
            advice="leave it out with tracks=",
        )
    senc, count = traf.find("senc"), sum(int(t["sample_count"]) for t in traf.find_all("trun"))
    saiz, saio = _of_encryption(traf, "saiz"), _of_encryption(traf, "saio")
    sizes = nothing
    if saiz is not None:
        sizes = sizes_of(saiz, count, track_id)
    elif senc is not None and not senc.opaque:
        # a senc of nothing for each sample can claim any number of them
        sizes = np.fromiter(islice(_sizes(senc, vector), count), np.int64)
    if not len(sizes):
        return nothing, nothing
    if senc is not None and not senc.opaque:
        first = int(senc.offset) + _SENC
    elif saio is not None and saio["entry_count"] == 1:
        head = traf.find("tfhd")
        base = head.get("base_data_offset", moof.offset) if head is not None else moof.offset
        first = int(base) + int(saio["entries"]["offset"][0])
    else:
        raise BuildError(
            f"auxiliary information of track {track_id} cannot be found",
            path="moof/traf",
            offset=moof.offset,
            expected="a senc, or a saio with one offset",
        )
    return first + np.cumsum(sizes) - sizes, sizes


def _sizes(senc: Box, vector: int) -> Iterable[int]:
    """Bytes of each sample's information, by the counts in it."""
    data, at = senc["samples"], 0
    for _ in range(senc["sample_count"]):
        size = vector
        if senc["flags"] & _SUBSAMPLES:
            size += 2 + 6 * int.from_bytes(data[at + vector : at + vector + 2], "big")
        if at + size > len(data):
            return
        yield size
        at += size
