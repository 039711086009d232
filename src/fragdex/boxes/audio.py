"""What sample entries say of sound: codecs, channels and loudness."""

from __future__ import annotations

from fragdex.boxes.kinds import (
    array,
    bits,
    descriptor,
    fourcc,
    greedy,
    i16,
    items,
    pascal,
    raw,
    record,
    rest,
    sized,
    u8,
    u16,
    u24,
    u32,
)
from fragdex.boxes.layout import Fields, box, fullbox, where

DECODER_CONFIG = 4
DECODER_SPECIFIC_INFO = 5

_DECODER_CONFIG = record(
    objectTypeIndication=u8,
    stream=bits(1, streamType=6, upStream=1, reserved=1),
    bufferSizeDB=u24,
    maxBitrate=u32,
    avgBitrate=u32,
    descriptors=greedy(descriptor({})),
)
_ELEMENTARY_STREAM = record(
    ES_ID=u16,
    flags=bits(1, streamDependenceFlag=1, URL_Flag=1, OCRstreamFlag=1, streamPriority=5),
    dependsOn_ES_ID=where(u16, when=lambda stream: stream["streamDependenceFlag"] == 1),
    URLstring=where(pascal(u8), when=lambda stream: stream["URL_Flag"] == 1),
    OCR_ES_Id=where(u16, when=lambda stream: stream["OCRstreamFlag"] == 1),
    descriptors=greedy(descriptor({DECODER_CONFIG: _DECODER_CONFIG})),
)

ESDS = fullbox(
    "esds",
    "Elementary Stream Descriptor",
    "ISO/IEC 14496-14, 6.7.2",
    ES=descriptor({3: _ELEMENTARY_STREAM}),
)
"""How an MPEG-4 elementary stream is decoded."""

ALAC_CONFIG = fullbox(
    "alac",
    "ALAC Specific",
    "Apple Lossless magic cookie",
    frameLength=u32,
    compatibleVersion=u8,
    bitDepth=u8,
    pb=u8,
    mb=u8,
    kb=u8,
    numChannels=u8,
    maxRun=u16,
    maxFrameBytes=u32,
    avgBitRate=u32,
    sampleRate=u32,
)
"""Frame length, depth and channels of Apple Lossless."""


def _is_mapped(fields: Fields) -> bool:
    return bool(fields["ChannelMappingFamily"] != 0)


DOPS = box(
    "dOps",
    "Opus Specific",
    "Opus in ISOBMFF, 4.3.2",
    Version=u8,
    OutputChannelCount=u8,
    PreSkip=u16,
    InputSampleRate=u32,
    OutputGain=i16,
    ChannelMappingFamily=u8,
    StreamCount=where(u8, when=_is_mapped),
    CoupledCount=where(u8, when=_is_mapped),
    ChannelMapping=where(raw(lambda fields: fields["OutputChannelCount"]), when=_is_mapped),
)
"""Channels and pre-skip of Opus (samples at 48 kHz)."""

DFLA = fullbox(
    "dfLa",
    "FLAC Specific",
    "FLAC in ISOBMFF, 3.3.2",
    metadata_blocks=greedy(
        record(kind=bits(1, LastMetadataBlockFlag=1, BlockType=7), BlockData=sized(u24))
    ),
)
"""The metadata blocks of a FLAC stream."""

DAC3 = box(
    "dac3",
    "AC-3 Specific",
    "ETSI TS 102 366, F.4",
    stream=bits(3, fscod=2, bsid=5, bsmod=3, acmod=3, lfeon=1, bit_rate_code=5, reserved=5),
)
"""Rate and channels of AC-3."""

_EC3_SUBSTREAM = record(
    stream=bits(
        3,
        fscod=2,
        bsid=5,
        reserved=1,
        asvc=1,
        bsmod=3,
        acmod=3,
        lfeon=1,
        reserved_2=3,
        num_dep_sub=4,
        chan_loc_8=1,
    ),
    chan_loc=where(u8, when=lambda substream: substream["num_dep_sub"] > 0),
)

DEC3 = box(
    "dec3",
    "EC-3 Specific",
    "ETSI TS 102 366, F.6",
    rate=bits(2, data_rate=13, num_ind_sub=3),
    substreams=array(lambda fields: fields["num_ind_sub"] + 1, _EC3_SUBSTREAM),
    extension=rest,
)
"""Rate and channels of Enhanced AC-3.

chan_loc has nine bits where a stream has dependent substreams: chan_loc_8 is the highest; without
them it is reserved.
"""

DAC4 = box("dac4", "AC-4 Specific", "ETSI TS 103 190-2, E.5", ac4_dsi=rest)
"""Presentations of AC-4, kept as bytes."""

DDTS = box(
    "ddts",
    "DTS Specific",
    "ETSI TS 102 114, E.2",
    DTSSamplingFrequency=u32,
    maxBitrate=u32,
    avgBitrate=u32,
    pcmSampleDepth=u8,
    stream=bits(
        7,
        FrameDuration=2,
        StreamConstruction=5,
        CoreLFEPresent=1,
        CoreLayout=6,
        CoreSize=14,
        StereoDownmix=1,
        RepresentationType=3,
        ChannelLayout=16,
        MultiAssetFlag=1,
        LBRDurationMod=1,
        ReservedBoxPresent=1,
        Reserved=5,
    ),
)
"""Rate and channels of DTS."""

DMLP = box(
    "dmlp",
    "MLP Specific",
    "Dolby TrueHD (MLP) in ISOBMFF",
    format_info=u32,
    rate=bits(2, peak_data_rate=15, reserved=1),
    reserved_2=u32,
)
"""Format and peak rate of MLP."""

MHAC = box(
    "mhaC",
    "MHA Configuration",
    "ISO/IEC 23008-3, 20.5",
    configurationVersion=where(u8, default=1),
    mpegh3daProfileLevelIndication=u8,
    referenceChannelLayout=u8,
    mpegh3daConfig=sized(u16),
)
"""Profile and configuration of MPEG-H 3D audio."""

MHAP = box(
    "mhaP",
    "MHA Profile and Level Compatibility",
    "ISO/IEC 23008-3, 20.6",
    compatibleSets=items(u8, u8, 1),
)
"""Profiles that can also decode the stream."""

PCMC = fullbox(
    "pcmC",
    "PCM Configuration",
    "ISO/IEC 23003-5, 5.2",
    format_flags=u8,
    PCM_sample_size=u8,
)
"""Byte order and depth of PCM."""

DAMR = box(
    "damr",
    "AMR Specific",
    "3GPP TS 26.244, 6.7",
    vendor=fourcc,
    decoder_version=u8,
    mode_set=u16,
    mode_change_period=u8,
    frames_per_sample=u8,
)
"""Modes of AMR."""

SRAT = fullbox("srat", "Sampling Rate", "ISO/IEC 14496-12, 12.2.3", sampling_rate=u32)
"""Sampling rate in Hz, for those beyond 16 bits."""

CHNL = fullbox(
    "chnl",
    "Channel Layout",
    "ISO/IEC 14496-12, 12.2.4",
    stream_structure=u8,
    data=rest,
)
"""Where the speakers stand.

What follows the first byte counts the channels of the sample entry, so it is kept as bytes.
"""

DMIX = fullbox("dmix", "Downmix Instructions", "ISO/IEC 14496-12, 12.2.5", data=rest)
"""How channels are mixed down, kept as bytes."""

CHAN = fullbox(
    "chan",
    "Audio Channel Layout",
    "QuickTime File Format, Sound Extensions",
    mChannelLayoutTag=u32,
    mChannelBitmap=u32,
    mChannelDescriptions=items(
        u32, record(mChannelLabel=u32, mChannelFlags=u32, mCoordinates=array(3, u32)), 20
    ),
)
"""Where the speakers stand."""

WAVE = box(
    "wave",
    "Decompression Parameters",
    "QuickTime File Format, Sound Extensions",
    children=True,
)
"""What the sound decoder needs."""

ENDA = box("enda", "Endianness", "QuickTime File Format, Sound Extensions", littleEndian=u16)
"""1: little-endian samples."""

WAVE_FORMAT = box(
    "mp4a",
    "Decompression Format",
    "QuickTime File Format, Sound Extensions",
    reserved=u32,
)
"""A word of zero inside wave."""

LUDT = box("ludt", "Loudness", "ISO/IEC 14496-12, 12.2.7", children=True)
"""Loudness of a track and of its album."""

_MEASUREMENT = record(
    method_definition=u8,
    method_value=u8,
    source=bits(1, measurement_system=4, reliability=4),
)
_LOUDNESS = record(
    eq=where(bits(1, reserved=2, EQ_set_ID=6), when=lambda base: base["version"] >= 1),
    base=bits(
        6,
        reserved_2=3,
        downmix_ID=7,
        DRC_set_ID=6,
        bs_sample_peak_level=12,
        bs_true_peak_level=12,
        measurement_system_for_TP=4,
        reliability_for_TP=4,
    ),
    measurements=items(u8, _MEASUREMENT, 3),
)

LOUDNESS = fullbox(
    "tlou",
    "Loudness Base",
    "ISO/IEC 14496-12, 12.2.7",
    count=where(bits(1, loudness_info_type=2, loudness_base_count=6), version=(1,)),
    loudness=array(lambda fields: fields.get("loudness_base_count", 1), _LOUDNESS),
)
"""Measured loudness."""
