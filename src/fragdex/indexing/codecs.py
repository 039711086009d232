"""Codec strings (RFC 6381), and channels, rate and depth of sound.

A configuration box is read as bytes here, not through its declared fields: whatever its
declaration makes of a damaged one, a string or a number of channels needs a few bytes of it, or
cannot be said.

An AudioSampleEntry has fields for channels, rate and depth, and for many formats they are fixed to
2 channels and 16 bits, whatever the sound is (ISO/IEC 14496-14, 5.6.1; 3GPP TS 26.244, 6.5). A
decoder goes by its own configuration; where there is one, so do we.
"""

from __future__ import annotations

import re
import struct
from base64 import b32encode
from collections.abc import Callable, Iterable

from fragdex.boxes import Box, build
from fragdex.record import record


class Missing(Exception):
    """The bytes that are requested are not there."""


class BitReader:
    """Bits of a byte string, highest first."""

    def __init__(self, data: bytes) -> None:
        self.value, self.left = int.from_bytes(data, "big"), len(data) * 8

    def take(self, count: int) -> int:
        """The next bits as a number.

        Raises:
            Missing: there are not so many.
        """
        if count > self.left:
            raise Missing
        self.left -= count
        return self.value >> self.left & ((1 << count) - 1)

    def align(self) -> None:
        """Pass over the rest of a byte that was begun."""
        self.left -= self.left % 8


def body(box: Box) -> bytes:
    """What stands after the size and the type of a box."""
    if box.layout is None and box.fields.keys() == {"data"}:
        return bytes(box["data"]) + box.trailing
    data = build(box)
    return data[16 if data[:4] == b"\0\0\0\1" else 8 :]


def config(entry: Box, *paths: str, least: int) -> bytes:
    """The body of the first box at one of these paths that has `least` bytes.

    Raises:
        Missing: there is none.
    """
    for path in paths:
        for box in entry.find_all(path):
            data = body(box)
            if len(data) >= least:
                return data
    raise Missing


def decoder_config(data: bytes) -> tuple[int, bytes, bytes]:
    """Of an ES_Descriptor the object type, its DecoderConfigDescriptor and DecoderSpecificInfo.

    ISO/IEC 14496-1, 7.2.6; the last one is empty where there is none.

    Raises:
        Missing, IndexError: the descriptors are damaged.
    """
    tag, es, _ = _descriptor(data)
    if tag != 3:
        raise Missing
    at = 3
    if es[2] & 0x80:  # streamDependenceFlag
        at += 2
    if es[2] & 0x40:  # URL_Flag
        at += 1 + es[at]
    if es[2] & 0x20:  # OCRstreamFlag
        at += 2
    tag, decoder, _ = _descriptor(es[at:])
    if tag != 4 or len(decoder) < 13:
        raise Missing
    inner = decoder[13:]
    while inner:
        tag, specific, inner = _descriptor(inner)
        if tag == 5:
            return decoder[0], decoder, specific
    return decoder[0], decoder, b""


def _descriptor(data: bytes) -> tuple[int, bytes, bytes]:
    """Tag, body and what follows; the length takes up to four bytes of 7 bits (8.3.3)."""
    size, at = 0, 1
    for at in range(1, 5):
        size = size << 7 | data[at] & 0x7F
        if not data[at] & 0x80:
            break
    return data[0], data[at + 1 : at + 1 + size], data[at + 1 + size :]


@record(frozen=True, slots=True)
class Sound:
    """What comes out of a decoder.

    Attributes:
        sample_rate: samples a second of each channel, with spectral band replication.
        sample_size: bits of a sample, or what the sample entry says where the format has none.
    """

    channel_count: int | None = None
    sample_rate: int | None = None
    sample_size: int | None = None


def sound_of(entry: Box, code: str) -> Sound:
    """Channels, rate and depth of an audio sample entry.

    Args:
        code: its format, before protection.

    What the configuration of the decoder does not say, or says damaged, is taken from the entry.
    """
    claimed = _sound_of_entry(entry)
    reader = READERS.get(code)
    if reader is None:
        return claimed
    try:
        sound = reader(entry)
    except (Missing, IndexError):
        return claimed
    return Sound(
        sound.channel_count or claimed.channel_count,
        sound.sample_rate or claimed.sample_rate,
        sound.sample_size or claimed.sample_size,
    )


def _sound_of_entry(entry: Box) -> Sound:
    """ISO/IEC 14496-12, 12.2.3; QuickTime File Format, Sound Sample Description (Version 2)."""
    values = entry.fields
    second = values.get("sound_description_v2")
    if second:
        rate = struct.unpack(">d", second["audioSampleRate"].to_bytes(8, "big"))[0]
        return Sound(
            second["numAudioChannels"] or values.get("channelcount"),
            int(rate) if 1 <= rate < 2**31 else None,
            second["constBitsPerChannel"] or values.get("samplesize"),
        )
    rate = None
    if "samplerate" in values:
        rate = int(values["samplerate"]) >> 16  # 16.16 fixed point
        srat = entry.find("srat")
        if srat is not None and "sampling_rate" in srat.fields:
            rate = int(srat["sampling_rate"])
    return Sound(values.get("channelcount"), rate, values.get("samplesize"))


# ---- AAC

RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350)
"""samplingFrequencyIndex → Hz (ISO/IEC 14496-3, 1.6.3.4)."""
CHANNELS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 8, 11: 7, 12: 8, 13: 24, 14: 8}
"""channelConfiguration → channels (ISO/IEC 14496-3, 1.6.3.5)."""
GENERAL_AUDIO = {1, 2, 3, 4, 6, 7, 17, 19, 20, 21, 22, 23}
"""Audio object types with a GASpecificConfig (1.6.2.1)."""
SBR, PS = 5, 29
MPEG2_AAC = (0x66, 0x67, 0x68)
"""Object type indications of AAC by ISO/IEC 13818-7, configured like that of MPEG-4."""


@record(frozen=True, slots=True)
class AacConfig:
    """What an AudioSpecificConfig says (ISO/IEC 14496-3, 1.6.2.1).

    Attributes:
        object_type: that a player must know to play all of it: 5 or 29 where SBR or PS is said,
            at the beginning or at the end.
        channel_count: channels that come out, or None where it is not told here.
        sample_rate: Hz that come out, or None.
        channel_configuration: as it is said (1.6.3.5): 0 where a program_config_element names the
            channels; None where it is not told here.
    """

    object_type: int
    channel_count: int | None
    sample_rate: int | None
    channel_configuration: int | None = None


def aac_config(specific: bytes) -> AacConfig:
    """An AudioSpecificConfig, as far as it is whole.

    Raises:
        Missing: not even the audio object type is there.
    """
    bits = BitReader(specific)
    kind, rate, channels, configuration = _object_type(bits), None, None, None
    signalled = kind
    try:
        rate = _rate(bits)
        configuration = bits.take(4)
        channels = CHANNELS.get(configuration)
        if kind in (SBR, PS):
            rate = _rate(bits) or rate
            kind = _object_type(bits)
            if kind == 22:
                bits.take(4)  # extensionChannelConfiguration
        if kind in GENERAL_AUDIO:
            channels = _general_audio(bits, kind, configuration) or channels
        # How long the rest of the other object types is cannot be known here.
        if signalled == kind and kind in GENERAL_AUDIO and kind < 17:
            signalled, rate = _extension(bits, kind, rate)
    except Missing:
        pass
    if signalled == PS and channels == 1:
        channels = 2  # parametric stereo makes two of one
    return AacConfig(signalled, channels, rate, configuration)


def _object_type(bits: BitReader) -> int:
    kind = bits.take(5)
    return 32 + bits.take(6) if kind == 31 else kind


def _rate(bits: BitReader) -> int | None:
    index = bits.take(4)
    if index == 15:
        return bits.take(24) or None
    return RATES[index] if index < len(RATES) else None


def _general_audio(bits: BitReader, kind: int, configuration: int) -> int | None:
    """Pass a GASpecificConfig (4.4.1); the channels of its program_config_element, if any."""
    channels = None
    bits.take(1)  # frameLengthFlag
    if bits.take(1):  # dependsOnCoreCoder
        bits.take(14)
    extended = bits.take(1)
    if not configuration:
        channels = _program_config(bits)
    if kind in (6, 20):
        bits.take(3)  # layerNr
    if extended:
        if kind == 22:
            bits.take(5 + 11)
        if kind in (17, 19, 20, 23):
            bits.take(3)
        bits.take(1)
    return channels


def _program_config(bits: BitReader) -> int:
    """Channels of a program_config_element (4.5.1.1): pairs count twice."""
    bits.take(4 + 2 + 4)
    places = [bits.take(4) for _ in range(3)]
    effects, associated, coupling = bits.take(2), bits.take(3), bits.take(4)
    for width in (4, 4, 3):  # mixdown elements
        if bits.take(1):
            bits.take(width)
    channels = effects
    for elements in places:
        for _ in range(elements):
            channels += 1 + bits.take(1)
            bits.take(4)
    bits.take(4 * (effects + associated))
    bits.take(5 * coupling)
    bits.align()
    bits.take(8 * bits.take(8))  # comment
    return channels


def _extension(bits: BitReader, kind: int, rate: int | None) -> tuple[int, int | None]:
    """SBR and PS that are said at the end, so that older decoders play the core (1.6.6.1)."""
    if bits.left < 16 or bits.take(11) != 0x2B7 or bits.take(5) != SBR or not bits.take(1):
        return kind, rate
    try:
        rate = _rate(bits) or rate
        return (PS if bits.take(11) == 0x548 and bits.take(1) else SBR), rate
    except Missing:
        return SBR, rate


def _mpeg4_sound(entry: Box) -> Sound:
    object_type, _, specific = decoder_config(config(entry, "esds", "wave/esds", least=5)[4:])
    if object_type != 0x40 and object_type not in MPEG2_AAC:
        raise Missing
    aac = aac_config(specific)
    return Sound(aac.channel_count, aac.sample_rate)


# ---- other formats


def _alac(entry: Box) -> Sound:
    # Apple Lossless magic cookie, after version and flags.
    cookie = config(entry, "alac", "wave/alac", least=28)
    return Sound(cookie[13], int.from_bytes(cookie[24:28], "big"), cookie[9])


def _flac(entry: Box) -> Sound:
    # STREAMINFO comes first (RFC 9639, 8.2): after block and frame sizes 20 bits of rate, 3 of
    # channels and 5 of depth, the last two less one.
    blocks = config(entry, "dfLa", least=22)
    if blocks[4] & 0x7F:
        raise Missing
    bits = BitReader(blocks[18:22])
    rate, channels, depth = bits.take(20), bits.take(3) + 1, bits.take(5) + 1
    return Sound(channels, rate, depth)


def _opus(entry: Box) -> Sound:
    # Opus always comes out at 48 kHz; InputSampleRate is what went in (Opus in ISOBMFF, 4.3.2).
    return Sound(config(entry, "dOps", least=2)[1], 48000)


AC3_RATES = (48000, 44100, 32000, None)
AC3_CHANNELS = (2, 1, 2, 3, 3, 4, 4, 5)
"""acmod → full bandwidth channels (ETSI TS 102 366, 4.4.2.3)."""
EC3_LOCATIONS = (2, 2, 1, 1, 2, 2, 2, 1, 1)
"""Channels of each bit of chan_loc, the highest first: Lc/Rc, Lrs/Rrs, Cs, Ts, Lsd/Rsd, Lw/Rw,
Lvh/Rvh, Cvh, LFE2 (ETSI TS 102 366, F.6.2.13)."""


def _ac3(entry: Box) -> Sound:
    bits = BitReader(config(entry, "dac3", least=3))
    rate = AC3_RATES[bits.take(2)]
    bits.take(5 + 3)
    return Sound(AC3_CHANNELS[bits.take(3)] + bits.take(1), rate)


def _ec3(entry: Box) -> Sound:
    # The first independent substream is the programme that is played.
    bits = BitReader(config(entry, "dec3", least=5))
    bits.take(13 + 3)
    rate = AC3_RATES[bits.take(2)]
    bits.take(5 + 1 + 1 + 3)
    channels = AC3_CHANNELS[bits.take(3)] + bits.take(1)
    bits.take(3)
    if bits.take(4):  # num_dep_sub
        more = bits.take(9)
        channels += sum(n for place, n in enumerate(EC3_LOCATIONS) if more & 0x100 >> place)
    return Sound(channels, rate)


def _pcm(entry: Box) -> Sound:
    return Sound(sample_size=config(entry, "pcmC", least=6)[5])


READERS: dict[str, Callable[[Box], Sound]] = {
    "mp4a": _mpeg4_sound,
    "alac": _alac,
    "fLaC": _flac,
    "Opus": _opus,
    "ac-3": _ac3,
    "ec-3": _ec3,
    "ipcm": _pcm,
    "fpcm": _pcm,
    # 3GPP TS 26.244, 6.5: the entry always says 2 channels; AMR has one.
    "samr": lambda _entry: Sound(1, 8000),
    "sawb": lambda _entry: Sound(1, 16000),
}
"""Format → how its decoder's configuration is read; of every other format the entry is believed."""


ENCRYPTED = frozenset(["encv", "enca", "enct", "encs", "encm", "encu", "drms", "drmi"])
"""Sample entries whose samples are encrypted (ISO/IEC 14496-12, 8.12; the last two of a store)."""
PROTECTED = ENCRYPTED | {"resv"}
"""Those that hide their format in a frma (8.12 and 8.15)."""


def encrypted_entries(entries: Iterable[Box]) -> list[int]:
    """Numbers from 1 of the sample entries whose samples are encrypted: their type says it."""
    return [number for number, entry in enumerate(entries, 1) if entry.type in ENCRYPTED]


def codec_string(entry: Box) -> str | None:
    """The RFC 6381 codec string of a sample entry.

    Args:
        entry: a child of stsd; protected and restricted ones give the string of what they hide.

    Returns: such as `avc1.64001F` or `mp4a.40.2`; the four-letter code itself for formats that
    define no more; None where the configuration box that it is made from is missing or damaged.
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


def joint_objects(entry: Box) -> int | None:
    """complexity_index_type_a of E-AC-3 with joint objects (ETSI TS 103 420, C.3); or None."""
    try:
        dec3 = config(entry, "dec3", least=5)
        at = 2
        for _ in range((dec3[1] & 7) + 1):
            at += 4 if dec3[at + 2] >> 1 & 15 else 3  # num_dep_sub: chan_loc follows
        return dec3[at + 1] if dec3[at] & 1 else None
    except (Missing, IndexError):
        return None


def original_format(entry: Box) -> str:
    """The four-letter code of a sample entry, before protection (8.12.3)."""
    if entry.type in PROTECTED:
        for path in ("sinf/frma", "rinf/frma"):
            frma = entry.find(path)
            if frma is not None and len(body(frma)) >= 4:
                return body(frma)[:4].decode("latin-1")
    return entry.type


def nal_length_size(entry: Box) -> int | None:
    """Bytes of the length in front of each NAL unit of AVC, HEVC or VVC; None: nothing says it.

    ISO/IEC 14496-15, 5.3.3.1, 8.3.3.1 and 11.2.4.2: lengthSizeMinusOne.
    """
    for name, place, shift in (("avcC", 4, 0), ("hvcC", 21, 0), ("vvcC", 4, 1)):
        for box in entry.find_all(name):
            data = body(box)
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
    bits = BitReader(config(entry, "vvcC", least=5)[4:])
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
    stated = _colour(entry)
    if not mono and chroma == "110" and stated in (None, (1, 1, 1, 0)):
        return text
    colour = stated or UNSPECIFIED
    if not _in_two_digits(colour):
        raise Missing
    return f"{text}.{mono}.{chroma}.{colour[0]:02}.{colour[1]:02}.{colour[2]:02}.{colour[3]}"


UNSPECIFIED = (2, 2, 2, 0)
"""Primaries, transfer and matrix of which nobody says anything, in limited range (23091-2, 8)."""


def _colour(entry: Box) -> tuple[int, int, int, int] | None:
    """Primaries, transfer, matrix and full range of a colr of type nclx (12.1.5)."""
    for box in entry.find_all("colr"):
        colr = body(box)
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


def _mpeg4_codec(code: str, entry: Box) -> str:
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
    bits = BitReader(config(entry, "dac4", least=4))
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
    **dict.fromkeys(("mp4a", "mp4v", "mp4s"), _mpeg4_codec),
    ".mp3": lambda _code, _entry: "mp3",
    "ac-4": _ac4,
    "mha1": _mpegh,
    "mha2": _mpegh,
    "mhm1": _mpegh,
    "mhm2": _mpegh,
    "stpp": _stpp,
}
"""Sample entry code → how its string is made; every other format is named by its code alone."""
