"""Codec strings: what a player is asked before it is given a track (RFC 6381).

A configuration box is read as bytes here, not through its declared fields: whatever its
declaration makes of a damaged one, the string needs a few bytes of it or there is none.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Callable

from fragdex.boxes import Box, build

__all__ = ["codec_string", "original_format"]

PROTECTED = {"encv", "enca", "enct", "encs", "encm", "encu", "resv"}
"""Sample entries that hide their format in a frma (ISO/IEC 14496-12, 8.12 and 8.15)."""


def codec_string(entry: Box) -> str | None:
    """The RFC 6381 codec string of a sample entry.

    Args:
        entry: a child of stsd; protected and restricted ones give the string of what they hide.

    Returns: such as `avc1.64001F` or `mp4a.40.2`; the four-letter code itself for formats that
    define no more; None where the configuration box that it is made from is missing or damaged.

    >>> from fragdex.boxes import parse
    >>> codec_string(parse(bytes.fromhex("00000010 77767474 000000000000 0001"))[0])
    'wvtt'
    """
    code = original_format(entry)
    make = MAKERS.get(code)
    try:
        if make is not None:
            return make(code, entry)
    except (_Missing, IndexError):
        return None
    # "raw " and codes with bytes of other alphabets cannot stand in a codecs parameter.
    return code if re.fullmatch(r"[A-Za-z0-9_+-]{4}", code) else None


def original_format(entry: Box) -> str:
    """The four-letter code of a sample entry, before protection (8.12.3).

    >>> from fragdex.boxes import parse
    >>> original_format(parse(bytes.fromhex("00000010 77767474 000000000000 0001"))[0])
    'wvtt'
    """
    if entry.type in PROTECTED:
        for path in ("sinf/frma", "rinf/frma"):
            frma = entry.find(path)
            if frma is not None and len(_body(frma)) >= 4:
                return _body(frma)[:4].decode("latin-1")
    return entry.type


class _Missing(Exception):
    """The bytes that make the string are not there."""


class _Bits:
    """Bits of a byte string, highest first."""

    def __init__(self, data: bytes) -> None:
        self.value, self.left = int.from_bytes(data, "big"), len(data) * 8

    def take(self, count: int) -> int:
        if count > self.left:
            raise _Missing
        self.left -= count
        return self.value >> self.left & ((1 << count) - 1)

    def align(self) -> None:
        self.left -= self.left % 8


def _body(box: Box) -> bytes:
    """What stands behind the size and the type of a box."""
    data = build(box)
    return data[16 if data[:4] == b"\0\0\0\1" else 8 :]


def _config(entry: Box, *paths: str, least: int) -> bytes:
    for path in paths:
        for found in entry.find_all(path):
            body = _body(found)
            if len(body) >= least:
                return body
    raise _Missing


def _avc(code: str, entry: Box) -> str:
    # RFC 6381, 3.3: profile_idc, constraint_set flags and level_idc, two hex digits each.
    avcc = _config(entry, "avcC", least=4)
    if avcc[0] != 1:
        raise _Missing
    return f"{code}.{avcc[1:4].hex().upper()}"


def _hevc(code: str, entry: Box) -> str:
    # ISO/IEC 14496-15, E.3: the compatibility flags are written in reverse bit order, trailing
    # zero bytes of the constraint flags are left out.
    hvcc = _config(entry, "hvcC", least=13)
    space = ("", "A", "B", "C")[hvcc[1] >> 6]
    compatible = int(f"{int.from_bytes(hvcc[2:6], 'big'):032b}"[::-1], 2)
    tier = "H" if hvcc[1] & 0x20 else "L"
    constraints = "".join(f".{byte:X}" for byte in hvcc[6:12].rstrip(b"\0"))
    return f"{code}.{space}{hvcc[1] & 31}.{compatible:X}.{tier}{hvcc[12]}{constraints}"


def _vvc(code: str, entry: Box) -> str:
    # ISO/IEC 14496-15, 11.2.4.2 (record) and Annex E (string).
    bits = _Bits(_config(entry, "vvcC", least=5)[4:])
    bits.take(7)
    if not bits.take(1):  # ptl_present_flag
        raise _Missing
    bits.take(9)
    sublayers = bits.take(3)
    bits.take(4 + 8 + 2)
    constraint_bytes = bits.take(6)
    profile, tier, level = bits.take(7), bits.take(1), bits.take(8)
    constraints = bits.take(8 * max(constraint_bytes, 1)).to_bytes(max(constraint_bytes, 1), "big")
    levels = sum(bits.take(1) for _ in range(sublayers - 1))
    bits.align()
    bits.take(8 * levels)
    profiles = [bits.take(32) for _ in range(bits.take(8))]
    text = f"{code}.{profile}.{'H' if tier else 'L'}{level}"
    if constraints.strip(b"\0"):
        text += ".C" + b32encode(constraints.rstrip(b"\0")).decode().rstrip("=")
    return text + (".S" + "+".join(f"{value:X}" for value in profiles) if profiles else "")


def _av1(code: str, entry: Box) -> str:
    # AV1 in ISOBMFF, 5: the optional part is all or nothing, and only written where a value in it
    # is not the default (4:2:0 with unknown chroma position, BT.709, limited range).
    av1c = _config(entry, "av1C", least=4)
    if av1c[0] != 0x81:
        raise _Missing
    profile, level = av1c[1] >> 5, av1c[1] & 31
    tier, high, twelve, mono, x, y = (av1c[2] >> shift & 1 for shift in range(7, 1, -1))
    depth = (12 if profile == 2 and twelve else 10) if high else 8
    text = f"{code}.{profile}.{level:02}{'H' if tier else 'M'}.{depth:02}"
    chroma = f"{x}{y}{av1c[2] & 3 if x and y else 0}"
    colour = _colour(entry) or (2, 2, 2, 0)
    if not mono and chroma == "110" and _usual(colour):
        return text
    return f"{text}.{mono}.{chroma}.{colour[0]:02}.{colour[1]:02}.{colour[2]:02}.{colour[3]}"


def _colour(entry: Box) -> tuple[int, int, int, int] | None:
    """Primaries, transfer, matrix and full range of a colr of type nclx (12.1.5)."""
    for found in entry.find_all("colr"):
        colr = _body(found)
        if colr[:4] == b"nclx" and len(colr) >= 11:
            values = [int.from_bytes(colr[at : at + 2], "big") for at in (4, 6, 8)]
            return values[0], values[1], values[2], colr[10] >> 7
    return None


def _usual(colour: tuple[int, int, int, int]) -> bool:
    """Whether nothing says otherwise than BT.709 in limited range; 2 is "unspecified"."""
    return all(value in (1, 2) for value in colour[:3]) and not colour[3]


def _vp(code: str, entry: Box) -> str:
    # VP codec ISO media file format binding: the optional part is all or nothing.
    vpcc = _config(entry, "vpcC", least=7)
    depth = vpcc[6] >> 4
    text = f"{code}.{vpcc[4]:02}.{vpcc[5]:02}.{depth:02}"
    if vpcc[0] != 1 or len(vpcc) < 10:  # version 0 was a draft with other colour fields
        return text
    chroma, full = vpcc[6] >> 1 & 7, vpcc[6] & 1
    colour = (vpcc[7], vpcc[8], vpcc[9], full)
    if chroma == 1 and _usual(colour):
        return text
    return f"{text}.{chroma:02}.{colour[0]:02}.{colour[1]:02}.{colour[2]:02}.{full:02}"


def _dolby_vision(code: str, entry: Box) -> str:
    # Dolby Vision streams within ISOBMFF: profile and level, two decimal digits each.
    record = _config(entry, "dvcC", "dvvC", "dvwC", least=4)
    profile, level = record[2] >> 1, (record[2] & 1) << 5 | record[3] >> 3
    return f"{code}.{profile:02}.{level:02}"


def _mpeg4(code: str, entry: Box) -> str:
    # RFC 6381, 3.3: object type indication in hex; for MPEG-4 audio the audio object type, for
    # MPEG-4 video the profile_and_level_indication in decimal.
    object_type, specific = _decoder_config(_config(entry, "esds", "wave/esds", least=5)[4:])
    text = f"{code}.{object_type:02X}"
    if code == "mp4a" and object_type == 0x40:
        return f"{text}.{_audio_object_type(specific)}"
    if code == "mp4v" and object_type == 0x20 and specific[:4] == b"\0\0\1\xb0":
        return f"{text}.{specific[4]}"
    return text


def _decoder_config(data: bytes) -> tuple[int, bytes]:
    """Object type and DecoderSpecificInfo of an ES_Descriptor (ISO/IEC 14496-1, 7.2.6)."""
    tag, es, _ = _descriptor(data)
    if tag != 3:
        raise _Missing
    at = 3
    if es[2] & 0x80:  # streamDependenceFlag
        at += 2
    if es[2] & 0x40:  # URL_Flag
        at += 1 + es[at]
    if es[2] & 0x20:  # OCRstreamFlag
        at += 2
    tag, config, _ = _descriptor(es[at:])
    if tag != 4 or len(config) < 13:
        raise _Missing
    inner = config[13:]
    while inner:
        tag, body, inner = _descriptor(inner)
        if tag == 5:
            return config[0], body
    return config[0], b""


def _descriptor(data: bytes) -> tuple[int, bytes, bytes]:
    """Tag, body and what follows; the length takes up to four bytes of 7 bits (8.3.3)."""
    size, at = 0, 1
    for at in range(1, 5):
        size = size << 7 | data[at] & 0x7F
        if not data[at] & 0x80:
            break
    return data[0], data[at + 1 : at + 1 + size], data[at + 1 + size :]


def _audio_object_type(specific: bytes) -> int:
    """The object type that a player must know to play all of it (ISO/IEC 14496-3, 1.6.2.1).

    A stream that carries SBR or PS behind the AAC-LC part and says so at the end of its
    configuration is named by that (5 or 29), as one that says so at its beginning.
    """
    bits = _Bits(specific)
    kind = bits.take(5)
    if kind == 31:
        kind = 32 + bits.take(6)
    if kind not in (1, 2, 3, 4, 6):  # only for these the length of the rest is known here
        return kind
    try:
        if bits.take(4) == 15:  # the sampling frequency itself follows
            bits.take(24)
        if not bits.take(4):  # a program_config_element follows
            return kind
        bits.take(1)
        if bits.take(1):  # dependsOnCoreCoder
            bits.take(14)
        if bits.take(1) or kind == 6:  # extensionFlag, or layers
            return kind
        if bits.take(11) != 0x2B7 or bits.take(5) != 5 or not bits.take(1):
            return kind
        if bits.take(4) == 15:
            bits.take(24)
        return 29 if bits.take(11) == 0x548 and bits.take(1) else 5
    except _Missing:
        return 5 if bits.left < 12 and _signals_sbr(specific) else kind


def _signals_sbr(specific: bytes) -> bool:
    """Whether bytes 2 and 3 hold the sync word and object type 5, in the common short form."""
    return len(specific) >= 5 and specific[2:4] == b"\x56\xe5" and bool(specific[4] & 0x80)


def _ac4(code: str, entry: Box) -> str:
    # ETSI TS 103 190-2, E.13: bitstream version, presentation version, compatibility level.
    bits = _Bits(_config(entry, "dac4", least=4))
    if bits.take(3) != 1:  # ac4_dsi_version
        raise _Missing
    version = bits.take(7)
    bits.take(5)
    presentations = bits.take(9)
    if version > 1 and bits.take(1):
        bits.take(16)
        if bits.take(1):
            bits.take(128)
    bits.take(66)  # ac4_bitrate_dsi
    bits.align()
    if not presentations:
        raise _Missing
    presentation = bits.take(8)
    if bits.take(8) == 255:
        bits.take(16)
    level = bits.take(3) if bits.take(5) != 6 else 0
    return f"{code}.{version:02X}.{presentation:02X}.{level:02X}"


def _mpegh(code: str, entry: Box) -> str:
    # ISO/IEC 23008-3, 20.6: the profile and level indication in hex.
    return f"{code}.0x{_config(entry, 'mhaC', least=2)[1]:02X}"


TTML_PROFILES = {
    "imsc1/text": "im1t",
    "imsc1/image": "im1i",
    "imsc1.1/text": "im2t",
    "imsc1.1/image": "im2i",
    "imsc1.2/text": "im3t",
    "imsc1.2/image": "im3i",
    "ebu:tt:distribution": "etd1",
}
"""Parts of a profile's name → its short name in the TTML profile registry."""


def _stpp(code: str, entry: Box) -> str:
    # ISO/IEC 14496-30, 7.5: the TTML profile's short name, from a mime box or the namespaces.
    for mime in entry.find_all("mime"):
        named = re.search(rb"codecs\s*=\s*\"?([A-Za-z0-9.+|]+)", _body(mime)[4:])
        if named:
            return f"{code}.ttml.{named[1].decode()}"
    names = b" ".join(_body(entry)[8:].split(b"\0", 3)[:3]).decode("utf-8", "replace")
    for part, short in TTML_PROFILES.items():
        if part in names:
            return f"{code}.ttml.{short}"
    return code


MAKERS: dict[str, Callable[[str, Box], str]] = {
    **dict.fromkeys(("avc1", "avc2", "avc3", "avc4"), _avc),
    **dict.fromkeys(("hvc1", "hev1", "hvc2", "hev2"), _hevc),
    **dict.fromkeys(("vvc1", "vvi1"), _vvc),
    "av01": _av1,
    "vp08": _vp,
    "vp09": _vp,
    **dict.fromkeys(("dvh1", "dvhe", "dva1", "dvav", "dav1"), _dolby_vision),
    **dict.fromkeys(("mp4a", "mp4v", "mp4s"), _mpeg4),
    ".mp3": lambda _code, _entry: "mp3",
    "ac-4": _ac4,
    "mha1": _mpegh,
    "mha2": _mpegh,
    "mhm1": _mpegh,
    "mhm2": _mpegh,
    "stpp": _stpp,
}
"""Sample entry code → how its string is made; every other format is named by its code alone."""
