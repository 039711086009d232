"""Whether a decoder can start at a sample, told from its first bytes.

One place for all codecs: seeking uses it to go past samples that are marked sync and are none, the
service to tell which pictures of a copied track are closed.
"""

from __future__ import annotations

from collections.abc import Callable

from fragdex.fragments.nal_units import access_of_units, find_start_code
from fragdex.fragments.sample_bytes import Access, CannotTell, SampleBytes

__all__ = [
    "Access",
    "CannotTell",
    "SampleBytes",
    "access_of",
    "every_sample",
    "family_of",
    "is_told",
]

MOST_OBUS = 256
MOST_BEFORE = 1 << 18
"""Bytes searched for the start code of a picture."""

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
    """Whether decoding can start at each sample of such a track, so that none must be looked at.

    Args:
        kind, format, codec: as `TrackInfo` has them.

    >>> every_sample("audio", "mp4a", "mp4a.40.2"), every_sample("video", "avc1", "avc1.640028")
    (True, False)
    """
    if kind == "video":
        return format in _INTRA or codec in _INTRA
    return format not in _DEPENDENT_SOUND and codec not in _DEPENDENT_SOUND


def family_of(format: str) -> str | None:
    """`avc`, `hevc` or `vvc`; None: samples of this format have no NAL units.

    >>> family_of("hev1"), family_of("av01")
    ('hevc', None)
    """
    return _NAL.get(format)


def is_told(format: str, codec: str | None) -> bool:
    """Whether `access_of` knows such samples.

    >>> is_told("avc1", None), is_told("SVQ3", None)
    (True, False)
    """
    return format in _NAL or _reader(format, codec) is not None


def access_of(
    sample: SampleBytes, format: str, codec: str | None, length_size: int | None = None
) -> Access:
    """Whether decoding can start at a sample.

    Args:
        sample: its bytes.
        format: four-letter code of its sample entry.
        codec: its RFC 6381 string, which tells the videos of mp4v apart.
        length_size: bytes of the length in front of each NAL unit; 0: start codes; None: unknown,
            so 4 is taken, which nearly all files have.

    Raises:
        CannotTell: what would say it is encrypted, or the codec is not known here.

    AVC: IDR, or a recovery point SEI with recovery_frame_cnt 0. HEVC and VVC: an IRAP picture.
    AV1: a sequence header and a key frame that is shown. VP8, VP9: a key frame. MPEG-4 part 2,
    MPEG-1, MPEG-2 and H.263: an intra picture.

    >>> idr = SampleBytes.of(bytes.fromhex("00000002 0910 0000029b 65"))
    >>> access_of(SampleBytes.of(bytes.fromhex("00000002 0910 00000002 6588")), "avc1", None)
    <Access.CLOSED: 2>
    """
    if format in _NAL:
        return access_of_units(_NAL[format], sample, 4 if length_size is None else length_size)
    reader = _reader(format, codec)
    if reader is None:
        raise CannotTell(f"{codec or format!r} is not known here")
    return reader(sample)


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
            size, used = _leb128(sample.take(at, min(8, sample.size - at)))
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


def _leb128(data: bytes) -> tuple[int, int]:
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
    """Two bytes behind the first start code of this value; b"" where there is none."""
    at = 0
    while at < MOST_BEFORE:
        found = find_start_code(sample, at, MOST_BEFORE - at)
        if found is None:
            return b""
        behind = sample.take(found + 3, 3)
        if len(behind) == 3 and behind[0] == code:
            return behind[1:]
        at = found + 3
    return b""


def _mpeg4(sample: SampleBytes) -> Access:
    # ISO/IEC 14496-2, 6.2.5: vop_coding_type, two bits behind vop_start_code; 0 is intra.
    vop = _behind(sample, 0xB6)
    return Access.OPEN if vop and not vop[0] >> 6 else Access.NONE


def _mpeg2(sample: SampleBytes) -> Access:
    # ISO/IEC 13818-2, 6.2.3: picture_coding_type behind ten bits of temporal_reference; 1 is I.
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
