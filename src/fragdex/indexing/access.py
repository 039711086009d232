"""Whether a decoder can start at a sample, from its first bytes.

One place for all codecs: seeking uses it to go past samples that are wrongly marked sync, the
service to tell which pictures of a copied track are closed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fragdex.fragments.track_info import TrackInfo

CHUNK = 4096
"""Bytes of a sample that are read at once: the headers in front of nearly every picture."""
MOST_READS = 64
"""Pieces of one sample that are read; what is not found in them is not looked for."""


class Access(IntEnum):
    """Whether decoding can start at a sample."""

    NONE = 0
    """It needs samples before it, or holds no picture that a decoder takes."""
    OPEN = 1
    """It needs none; samples after it that are shown before it may (SAP type 3)."""
    CLOSED = 2
    """Neither it nor any sample after it needs one before it (SAP types 1 and 2)."""


class CannotTell(Exception):
    """The bytes that would say it cannot be read; its text says why."""


class SampleBytes:
    """The bytes of a sample.

    Args:
        read: start and stop in the sample (exclusive) → those bytes, fewer where the file ends.
        clear: starts and stops (exclusive) of what is not encrypted, rising; None: all is clear.
    """

    def __init__(
        self,
        size: int,
        read: Callable[[int, int], bytes],
        clear: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.size = size
        self._read, self._clear = read, clear
        self._start, self._held = 0, b""
        self._reads = 0

    @classmethod
    def of(cls, data: bytes | memoryview) -> SampleBytes:
        """A sample that is at hand."""
        return cls(len(data), lambda start, stop: bytes(data[start:stop]))

    def take(self, at: int, count: int) -> bytes:
        """`count` bytes from `at` on; fewer where the sample ends.

        Raises:
            CannotTell: one of them is encrypted, or they are too far apart from one another.
        """
        stop = min(at + count, self.size)
        if stop <= at:
            return b""
        if self._clear is not None and self._clear_from(at) < stop:
            raise CannotTell("it is encrypted")
        if not self._start <= at <= stop <= self._start + len(self._held):
            if self._reads == MOST_READS:
                raise CannotTell("too many other units come before its first picture")
            self._reads += 1
            self._start = at
            self._held = self._read(at, min(max(stop, at + CHUNK), self.size))
        return self._held[at - self._start : stop - self._start]

    def clear(self, at: int, count: int) -> bytes:
        """As `take`, but only up to what is encrypted."""
        if self._clear is not None:
            count = min(count, self._clear_from(at) - at)
        return self.take(at, min(count, CHUNK))

    def _clear_from(self, at: int) -> int:
        """Where the clear bytes that begin at or before `at` end."""
        assert self._clear is not None
        place = bisect_right(self._clear, (at, self.size + 1)) - 1
        return self._clear[place][1] if place >= 0 else at


MOST_UNITS = 512
"""Units looked at in front of the first slice; real samples have a dozen."""
MOST_BEFORE = 1 << 18
"""Bytes searched for a start code (Annex B)."""
RECOVERY_POINT = 6
"""payloadType of a recovery point SEI message (ISO/IEC 14496-10, D.1.8)."""
SEI_BYTES = 2048
"""Bytes of an SEI unit that are looked at."""


class _Unit(NamedTuple):
    """A NAL unit: where it begins in its sample, and how long it is."""

    start: int
    size: int


def _units(sample: SampleBytes, length_size: int) -> Iterator[_Unit]:
    """The NAL units from the first one on; ends at damage."""
    at = 0
    for _ in range(MOST_UNITS):
        if not length_size:
            place = find_start_code(sample, at, MOST_BEFORE)
            if place is None or place + 3 >= sample.size:
                return
            at = place + 3
            yield _Unit(at, sample.size - at)
            continue
        length = sample.take(at, length_size)
        if len(length) < length_size:
            return
        size = int.from_bytes(length, "big")
        at += length_size
        # A unit that exceeds its sample is invalid: the lengths were read at a wrong place.
        if at + size > sample.size:
            return
        if size:
            yield _Unit(at, size)
        at += size


def find_start_code(sample: SampleBytes, at: int, most: int) -> int | None:
    """Place of the next 00 00 01 within `most` bytes, or None."""
    stop = min(sample.size, at + most)
    while at < stop:
        data = sample.take(at, CHUNK)
        place = data.find(b"\0\0\1")
        if place >= 0:
            return at + place
        if len(data) < CHUNK:
            return None
        at += len(data) - 2  # a code may lie over the edge
    return None


def _avc(sample: SampleBytes, length_size: int) -> Access:
    # ISO/IEC 14496-10, 7.4.1.2.4: after an IDR picture nothing refers to what came before. A
    # recovery point SEI with recovery_frame_cnt 0 says the same of all pictures that are shown
    # from its own on (D.2.8); with a higher count they become right later.
    recovers = False
    for unit in _units(sample, length_size):
        head = sample.take(unit.start, 1)
        kind = head[0] & 0x1F if head else 0
        if kind == 5:
            return Access.CLOSED
        if 1 <= kind <= 4:
            return Access.OPEN if recovers else Access.NONE
        if kind == 6:
            recovers = recovers or is_recovery_point(
                sample.clear(unit.start + 1, min(unit.size - 1, SEI_BYTES))
            )
    return Access.NONE


def is_recovery_point(sei: bytes) -> bool:
    """Whether an SEI has a recovery point with recovery_frame_cnt 0, in its first bytes."""
    for kind, body in sei_messages(sei):
        if kind == RECOVERY_POINT:
            # ue(v): a leading 1 is the number 0.
            return body[:1] >= b"\x80"
    return False


def sei_messages(sei: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind (payloadType) and payload of the messages of an SEI, in its first bytes.

    ISO/IEC 14496-10, 7.3.2.3.1, and ISO/IEC 23008-2, 7.3.5; without the header of the NAL unit.
    """
    data = sei.replace(b"\0\0\3", b"\0\0")  # emulation prevention
    at = 0
    while at + 2 <= len(data):
        numbers = []
        for _ in range(2):  # payloadType and payloadSize
            number = 0
            while at < len(data) and data[at] == 0xFF:
                number, at = number + 255, at + 1
            if at == len(data):
                return
            number, at = number + data[at], at + 1
            numbers.append(number)
        yield numbers[0], data[at : at + numbers[1]]
        at += numbers[1]


def _first_slice(sample: SampleBytes, length_size: int, fields: tuple[int, int, int]) -> int:
    """nal_unit_type of the first slice of the base layer, -1: none.

    `fields`: from which bits of a header type and layer begin, and the first type of no slice.
    """
    kind_at, layer_at, others = fields
    for unit in _units(sample, length_size):
        head = sample.take(unit.start, 2)
        if len(head) < 2:
            break
        word = int.from_bytes(head, "big")
        kind = word >> kind_at & (0x3F if kind_at == 9 else 0x1F)
        if kind < others and not word >> layer_at & 0x3F:
            return kind
    return -1


def _hevc(sample: SampleBytes, length_size: int) -> Access:
    # ISO/IEC 23008-2, 7.4.2.2: BLA 16 to 18, IDR 19 and 20, CRA 21, reserved IRAP 22 and 23.
    # Leading pictures of a BLA_W_LP or a CRA may not be decodable when one starts there.
    kind = _first_slice(sample, length_size, (9, 3, 32))
    if kind in (17, 18, 19, 20):
        return Access.CLOSED
    return Access.OPEN if 16 <= kind <= 23 else Access.NONE


def _vvc(sample: SampleBytes, length_size: int) -> Access:
    # ISO/IEC 23090-3, 7.4.2.2: IDR 7 and 8, CRA 9, gradual refresh 10, reserved IRAP 11.
    kind = _first_slice(sample, length_size, (3, 8, 12))
    if kind in (7, 8):
        return Access.CLOSED
    return Access.OPEN if kind in (9, 11) else Access.NONE


FAMILIES = {"avc": _avc, "hevc": _hevc, "vvc": _vvc}
"""Family of codecs → what its first slice says."""


MOST_OBUS = 256

_NAL = {
    **dict.fromkeys(("avc1", "avc2", "avc3", "avc4", "dva1", "dvav"), "avc"),
    **dict.fromkeys(("hvc1", "hev1", "hvc2", "hev2", "dvh1", "dvhe"), "hevc"),
    **dict.fromkeys(("vvc1", "vvi1"), "vvc"),
}
_INTRA = {
    *("jpeg", "mjpa", "mjpb", "png ", "mjp2", "raw ", "yuvs", "2vuy", "v210", "v308", "v408"),
    *("apch", "apcn", "apcs", "apco", "ap4h", "ap4x", "aprn", "aprh", "AVdn", "AVdh", "CFHD"),
    *("dvc ", "dvcp", "dvpp", "dv5n", "dv5p", "dvh2", "dvh3", "dvh5", "dvh6", "dvhp", "dvhq"),
    *("DXD3", "DXDI", "Hap1", "Hap5", "HapY", "mp4v.6C", "mp4v.6D", "mp4v.6E"),
}
"""Formats of which every picture stands by itself."""
_DEPENDENT_SOUND = ("ac-4", "mha1", "mha2", "mhm1", "mhm2", "mp4a.40.42", "mlpa")
"""Sound of which not every sample can be decoded first, and none is looked into here."""


def every_sample(kind: str, format: str, codec: str | None) -> bool:
    """Whether decoding can start at each sample of such a track, so that none must be looked at."""
    if kind == "video":
        return format in _INTRA or codec in _INTRA
    return format not in _DEPENDENT_SOUND and codec not in _DEPENDENT_SOUND


def family_of(format: str) -> str | None:
    """`avc`, `hevc` or `vvc`; None: samples of this format have no NAL units."""
    return _NAL.get(format)


def can_tell(format: str, codec: str | None) -> bool:
    """Whether `access_of` knows such samples."""
    return format in _NAL or _reader(format, codec) is not None


def access_of(
    sample: SampleBytes, format: str, codec: str | None, length_size: int | None = None
) -> Access:
    """Whether decoding can start at a sample.

    Args:
        format: four-letter code of its sample entry.
        codec: its RFC 6381 string, which tells the videos of mp4v apart.
        length_size: bytes of the length in front of each NAL unit; 0: start codes; None: unknown,
            so 4 is taken, which nearly all files have.

    Raises:
        CannotTell: what would say it is encrypted, or the codec is not known here.

    AVC: IDR, or a recovery point SEI with recovery_frame_cnt 0. HEVC and VVC: an IRAP picture.
    AV1: a sequence header and a key frame that is shown. VP8, VP9: a key frame. MPEG-4 part 2,
    MPEG-1, MPEG-2 and H.263: an intra picture.
    """
    if format in _NAL:
        return FAMILIES[_NAL[format]](sample, 4 if length_size is None else length_size)
    reader = _reader(format, codec)
    if reader is None:
        raise CannotTell(f"{codec or format!r} is not known here")
    return reader(sample)


def can_start(info: TrackInfo, data: bytes) -> bool:
    """Whether decoding can start at a sample of a track, as far as its bytes say."""
    if every_sample(info.kind, info.format, info.codec):
        return True
    try:
        sample = SampleBytes.of(data)
        return bool(access_of(sample, info.format, info.codec, info.nal_length_size))
    except CannotTell:
        return True


def _reader(format: str, codec: str | None) -> Callable[[SampleBytes], Access] | None:
    if format == "mp4v":
        kind = (codec or "").split(".")[1:2]
        return _MP4V.get(kind[0]) if kind else None
    return _READERS.get(format)


def _av1(sample: SampleBytes) -> Access:
    # AV1 in ISOBMFF, 2.4: a sync sample has a sequence header OBU, and its first frame is a key
    # frame that is shown. Headers: AV1 bitstream, 5.3.2, 5.5.1, 5.9.2.
    at, sequence, still = 0, False, False
    for _ in range(MOST_OBUS):
        head = sample.take(at, 2)
        if not head or head[0] & 0x80:
            return Access.NONE
        kind, extended, sized = head[0] >> 3 & 15, head[0] >> 2 & 1, head[0] >> 1 & 1
        at += 1 + extended
        size = sample.size - at
        if sized:
            size, used = leb128(sample.take(at, min(8, sample.size - at)))
            at += used
            if not used or size > sample.size - at:
                return Access.NONE
        first = (sample.take(at, 1) or b"\0")[0] if size and kind in (1, 3, 6) else 0
        if kind == 1:
            # seq_profile(3), still_picture(1), reduced_still_picture_header(1)
            sequence, still = True, bool(first & 0x08)
        elif kind in (3, 6):
            # show_existing_frame(1), frame_type(2), show_frame(1)
            shown_key = still or (first & 0xF0) == 0x10
            return Access.CLOSED if sequence and shown_key else Access.NONE
        at += size
    return Access.NONE


def leb128(data: bytes) -> tuple[int, int]:
    """A number of seven bits a byte, lowest first, and its bytes; 0 bytes: it does not end."""
    value = 0
    for place, byte in enumerate(data):
        value |= (byte & 0x7F) << 7 * place
        if not byte & 0x80:
            return value, place + 1
    return 0, 0


def _vp8(sample: SampleBytes) -> Access:
    # RFC 6386, 9.1: the lowest bit of the frame tag is 0 for key frames.
    head = sample.take(0, 3)
    return Access.CLOSED if len(head) == 3 and not head[0] & 1 else Access.NONE


def _vp9(sample: SampleBytes) -> Access:
    # VP9 bitstream, 6.2: frame_marker(2), profile(2), a reserved bit in profile 3,
    # show_existing_frame(1), frame_type(1).
    head = sample.take(0, 1)
    if not head or head[0] >> 6 != 2:
        return Access.NONE
    later = 1 if head[0] & 0x30 == 0x30 else 0
    existing, inter = head[0] >> 3 - later & 1, head[0] >> 2 - later & 1
    return Access.NONE if existing or inter else Access.CLOSED


def _behind(sample: SampleBytes, code: int) -> bytes:
    """Two bytes after the first start code of this value; b"" where there is none."""
    at = 0
    while at < MOST_BEFORE:
        place = find_start_code(sample, at, MOST_BEFORE - at)
        if place is None:
            return b""
        behind = sample.take(place + 3, 3)
        if len(behind) == 3 and behind[0] == code:
            return behind[1:]
        at = place + 3
    return b""


def _mpeg4(sample: SampleBytes) -> Access:
    # ISO/IEC 14496-2, 6.2.5: vop_coding_type, two bits after vop_start_code; 0 is intra.
    vop = _behind(sample, 0xB6)
    return Access.OPEN if vop and not vop[0] >> 6 else Access.NONE


def _mpeg2(sample: SampleBytes) -> Access:
    # ISO/IEC 13818-2, 6.2.3: picture_coding_type after ten bits of temporal_reference; 1 is I.
    picture = _behind(sample, 0x00)
    return Access.OPEN if picture and picture[1] >> 3 & 7 == 1 else Access.NONE


def _h263(sample: SampleBytes) -> Access:
    # ITU-T H.263, 5.1: start code (22 bits), TR (8), PTYPE (13), whose ninth bit is 0 for intra;
    # a source format of 7 leads to PLUSPTYPE, where the type is 0 for intra.
    head = int.from_bytes(sample.take(0, 9).ljust(9, b"\xff"), "big")

    def bits(at: int, count: int) -> int:
        return head >> 72 - at - count & (1 << count) - 1

    if bits(0, 22) != 0x20:
        return Access.NONE
    if bits(35, 3) != 7:
        return Access.NONE if bits(38, 1) else Access.CLOSED
    whole = bits(38, 3) == 1  # UFEP: OPPTYPE's 18 bits come first
    return Access.NONE if bits(59 if whole else 41, 3) else Access.CLOSED


_READERS: dict[str, Callable[[SampleBytes], Access]] = {
    "av01": _av1,
    "dav1": _av1,
    "vp08": _vp8,
    "vp09": _vp9,
    "m2v1": _mpeg2,
    "m1v ": _mpeg2,
    "s263": _h263,
    "h263": _h263,
    "H263": _h263,
}
_MP4V = {"20": _mpeg4, **{f"{kind:02X}": _mpeg2 for kind in (*range(0x60, 0x66), 0x6A)}}
"""Object type indication of mp4v → what reads its pictures (ISO/IEC 14496-1, 7.2.6.6.2)."""
