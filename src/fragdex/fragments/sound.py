"""Channels, rate and depth of sound, from whoever says it with authority.

An AudioSampleEntry has fields for all three, and for many formats they are fixed to 2 channels and
16 bits, whatever the sound is (ISO/IEC 14496-14, 5.6.1; 3GPP TS 26.244, 6.5). A decoder goes by
its own configuration; where there is one, so do we.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from fragdex.boxes import Box
from fragdex.fragments.configurations import Bits, Missing, config, decoder_config

__all__ = ["AacConfig", "Sound", "aac_config", "sound_of"]


@dataclass(frozen=True, slots=True)
class Sound:
    """What comes out of a decoder.

    Attributes:
        channel_count: channels, low frequency effects included.
        sample_rate: samples a second of each channel, with spectral band replication.
        sample_size: bits of a sample, or what the sample entry says where the format has none.

    >>> Sound(1, 44100, 16).channel_count
    1
    """

    channel_count: int | None = None
    sample_rate: int | None = None
    sample_size: int | None = None


def sound_of(entry: Box, code: str) -> Sound:
    """Channels, rate and depth of an audio sample entry.

    Args:
        entry: a child of stsd.
        code: its format, before protection.

    What the configuration of the decoder does not say, or says damaged, is taken from the entry.

    >>> sound_of(Box("Opus", {"channelcount": 2, "samplesize": 16, "samplerate": 48000 << 16}), "")
    Sound(channel_count=2, sample_rate=48000, sample_size=16)
    """
    said = _of_entry(entry)
    reader = READERS.get(code)
    if reader is None:
        return said
    try:
        found = reader(entry)
    except (Missing, IndexError):
        return said
    return Sound(
        found.channel_count or said.channel_count,
        found.sample_rate or said.sample_rate,
        found.sample_size or said.sample_size,
    )


def _of_entry(entry: Box) -> Sound:
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


@dataclass(frozen=True, slots=True)
class AacConfig:
    """What an AudioSpecificConfig says (ISO/IEC 14496-3, 1.6.2.1).

    Attributes:
        object_type: that a player must know to play all of it: 5 or 29 where SBR or PS is said,
            at the beginning or at the end.
        channel_count: channels that come out, or None where it is not told here.
        sample_rate: Hz that come out, or None.
        channel_configuration: as it is said (1.6.3.5): 0 where a program_config_element names the
            channels; None where it is not told here.

    >>> aac_config(bytes.fromhex("1208"))
    AacConfig(object_type=2, channel_count=1, sample_rate=44100, channel_configuration=1)
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
    bits = Bits(specific)
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


def _object_type(bits: Bits) -> int:
    kind = bits.take(5)
    return 32 + bits.take(6) if kind == 31 else kind


def _rate(bits: Bits) -> int | None:
    index = bits.take(4)
    if index == 15:
        return bits.take(24) or None
    return RATES[index] if index < len(RATES) else None


def _general_audio(bits: Bits, kind: int, configuration: int) -> int | None:
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


def _program_config(bits: Bits) -> int:
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


def _extension(bits: Bits, kind: int, rate: int | None) -> tuple[int, int | None]:
    """SBR and PS that are said at the end, so that older decoders play the core (1.6.6.1)."""
    if bits.left < 16 or bits.take(11) != 0x2B7 or bits.take(5) != SBR or not bits.take(1):
        return kind, rate
    try:
        rate = _rate(bits) or rate
        return (PS if bits.take(11) == 0x548 and bits.take(1) else SBR), rate
    except Missing:
        return SBR, rate


def _mpeg4(entry: Box) -> Sound:
    object_type, _, specific = decoder_config(config(entry, "esds", "wave/esds", least=5)[4:])
    if object_type != 0x40 and object_type not in MPEG2_AAC:
        raise Missing
    found = aac_config(specific)
    return Sound(found.channel_count, found.sample_rate)


# ---- other formats


def _alac(entry: Box) -> Sound:
    # Apple Lossless magic cookie, behind version and flags.
    cookie = config(entry, "alac", "wave/alac", least=28)
    return Sound(cookie[13], int.from_bytes(cookie[24:28], "big"), cookie[9])


def _flac(entry: Box) -> Sound:
    # STREAMINFO comes first (RFC 9639, 8.2): behind block and frame sizes 20 bits of rate, 3 of
    # channels and 5 of depth, the last two less one.
    blocks = config(entry, "dfLa", least=22)
    if blocks[4] & 0x7F:
        raise Missing
    bits = Bits(blocks[18:22])
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
    bits = Bits(config(entry, "dac3", least=3))
    rate = AC3_RATES[bits.take(2)]
    bits.take(5 + 3)
    return Sound(AC3_CHANNELS[bits.take(3)] + bits.take(1), rate)


def _ec3(entry: Box) -> Sound:
    # The first independent substream is the programme that is played.
    bits = Bits(config(entry, "dec3", least=5))
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
    "mp4a": _mpeg4,
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
