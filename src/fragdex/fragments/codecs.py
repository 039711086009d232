"""Codec strings: what a player is asked before it is given a track (RFC 6381).

A configuration box is read as bytes here, not through its declared fields: whatever its
declaration makes of a damaged one, the string needs a few bytes of it or there is none.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Callable

from fragdex.boxes import Box
from fragdex.fragments.configurations import Bits, Missing, body, config, decoder_config
from fragdex.fragments.sound import aac_config

__all__ = ["codec_string", "nal_length_size", "original_format"]

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
    except (Missing, IndexError):
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
            if frma is not None and len(body(frma)) >= 4:
                return body(frma)[:4].decode("latin-1")
    return entry.type


def nal_length_size(entry: Box) -> int | None:
    """Bytes of the length in front of each NAL unit of AVC, HEVC or VVC; None: nothing says it.

    ISO/IEC 14496-15, 5.3.3.1, 8.3.3.1 and 11.2.4.2: lengthSizeMinusOne.

    >>> nal_length_size(Box("avc1", {}, [Box("avcC", {"data": bytes.fromhex("01640028ff")})]))
    4
    """
    for name, place, shift in (("avcC", 4, 0), ("hvcC", 21, 0), ("vvcC", 4, 1)):
        for found in entry.find_all(name):
            data = body(found)
            if len(data) > place:
                return (data[place] >> shift & 3) + 1
    return None


def _avc(code: str, entry: Box) -> str:
    # RFC 6381, 3.3: profile_idc, constraint_set flags and level_idc, two hex digits each.
    avcc = config(entry, "avcC", least=4)
    if avcc[0] != 1:
        raise Missing
    return f"{code}.{avcc[1:4].hex().upper()}"


def _hevc(code: str, entry: Box) -> str:
    # ISO/IEC 14496-15, E.3: the compatibility flags are written in reverse bit order, trailing
    # zero bytes of the constraint flags are left out.
    hvcc = config(entry, "hvcC", least=13)
    space = ("", "A", "B", "C")[hvcc[1] >> 6]
    compatible = int(f"{int.from_bytes(hvcc[2:6], 'big'):032b}"[::-1], 2)
    tier = "H" if hvcc[1] & 0x20 else "L"
    constraints = "".join(f".{byte:X}" for byte in hvcc[6:12].rstrip(b"\0"))
    return f"{code}.{space}{hvcc[1] & 31}.{compatible:X}.{tier}{hvcc[12]}{constraints}"


def _vvc(code: str, entry: Box) -> str:
    # ISO/IEC 14496-15, 11.2.4.2 (record) and Annex E (string).
    bits = Bits(config(entry, "vvcC", least=5)[4:])
    bits.take(7)
    if not bits.take(1):  # ptl_present_flag
        raise Missing
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
    # AV1 in ISOBMFF, 5: the optional part is all or nothing. Left out, it stands for 4:2:0 with
    # unknown chroma position, BT.709 and limited range, so that it is left out where nothing says
    # otherwise.
    av1c = config(entry, "av1C", least=4)
    if av1c[0] != 0x81:
        raise Missing
    profile, level = av1c[1] >> 5, av1c[1] & 31
    tier, high, twelve, mono, x, y = (av1c[2] >> shift & 1 for shift in range(7, 1, -1))
    depth = (12 if profile == 2 and twelve else 10) if high else 8
    text = f"{code}.{profile}.{level:02}{'H' if tier else 'M'}.{depth:02}"
    chroma = f"{x}{y}{av1c[2] & 3 if x and y else 0}"
    said = _colour(entry)
    if not mono and chroma == "110" and said in (None, (1, 1, 1, 0)):
        return text
    colour = said or UNSPECIFIED
    if not _in_two_digits(colour):
        raise Missing
    return f"{text}.{mono}.{chroma}.{colour[0]:02}.{colour[1]:02}.{colour[2]:02}.{colour[3]}"


UNSPECIFIED = (2, 2, 2, 0)
"""Primaries, transfer and matrix of which nobody says anything, in limited range (23091-2, 8)."""


def _colour(entry: Box) -> tuple[int, int, int, int] | None:
    """Primaries, transfer, matrix and full range of a colr of type nclx (12.1.5)."""
    for found in entry.find_all("colr"):
        colr = body(found)
        if colr[:4] == b"nclx" and len(colr) >= 11:
            values = [int.from_bytes(colr[at : at + 2], "big") for at in (4, 6, 8)]
            return values[0], values[1], values[2], colr[10] >> 7
    return None


def _in_two_digits(colour: tuple[int, int, int, int]) -> bool:
    """Whether code points of ISO/IEC 23091-2 can be written, and 0 is not among them.

    0 is reserved for primaries and transfer, and as a matrix it says RGB.
    """
    return all(0 < value < 100 for value in colour[:2]) and colour[2] < 100


def _vp(code: str, entry: Box) -> str:
    # VP codec ISO media file format binding: the optional part is all or nothing, and packagers
    # and players look for it. What says something that cannot be written is left out.
    vpcc = config(entry, "vpcC", least=7)
    depth = vpcc[6] >> 4
    text = f"{code}.{vpcc[4]:02}.{vpcc[5]:02}.{depth:02}"
    if vpcc[0] != 1 or len(vpcc) < 10:  # version 0 was a draft with other colour fields
        return text
    chroma, full = vpcc[6] >> 1 & 7, vpcc[6] & 1
    colour = (vpcc[7], vpcc[8], vpcc[9], full)
    # RGB goes with 4:4:4 alone.
    if chroma > 3 or not _in_two_digits(colour) or (not colour[2] and chroma != 3):
        return text
    return f"{text}.{chroma:02}.{colour[0]:02}.{colour[1]:02}.{colour[2]:02}.{full:02}"


def _dolby_vision(code: str, entry: Box) -> str:
    # Dolby Vision streams within ISOBMFF: profile and level, two decimal digits each.
    record = config(entry, "dvcC", "dvvC", "dvwC", least=4)
    profile, level = record[2] >> 1, (record[2] & 1) << 5 | record[3] >> 3
    return f"{code}.{profile:02}.{level:02}"


def _mpeg4(code: str, entry: Box) -> str:
    # RFC 6381, 3.3: object type indication in hex; for MPEG-4 audio the audio object type, for
    # MPEG-4 video the profile_and_level_indication in decimal.
    object_type, _, specific = decoder_config(config(entry, "esds", "wave/esds", least=5)[4:])
    text = f"{code}.{object_type:02X}"
    if code == "mp4a" and object_type == 0x40:
        return f"{text}.{aac_config(specific).object_type}"
    if code == "mp4v" and object_type == 0x20 and specific[:4] == b"\0\0\1\xb0":
        return f"{text}.{specific[4]}"
    return text


def _ac4(code: str, entry: Box) -> str:
    # ETSI TS 103 190-2, E.13: bitstream version, presentation version, compatibility level.
    bits = Bits(config(entry, "dac4", least=4))
    if bits.take(3) != 1:  # ac4_dsi_version
        raise Missing
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
        raise Missing
    presentation = bits.take(8)
    if bits.take(8) == 255:
        bits.take(16)
    level = bits.take(3) if bits.take(5) != 6 else 0
    return f"{code}.{version:02X}.{presentation:02X}.{level:02X}"


def _mpegh(code: str, entry: Box) -> str:
    # ISO/IEC 23008-3, 20.6: the profile and level indication in hex.
    return f"{code}.0x{config(entry, 'mhaC', least=2)[1]:02X}"


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
    # ISO/IEC 14496-30, 7.5: the TTML profile's short name, from a mime box or the namespaces. The
    # codecs parameter of a mime box may be that of the document ("im1t") or of the track.
    for mime in entry.find_all("mime"):
        named = re.search(rb"codecs\s*=\s*\"?([A-Za-z0-9.+|]+)", body(mime)[4:])
        if named:
            profile = named[1].decode().removeprefix("stpp").strip(".")
            profile = profile.removeprefix("ttml").strip(".")
            return f"{code}.ttml.{profile}" if profile else code
    names = b" ".join(body(entry)[8:].split(b"\0", 3)[:3]).decode("utf-8", "replace")
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
