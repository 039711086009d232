"""Sample entries: how the samples of a track are coded, and what of it any codec may have."""

from __future__ import annotations

from collections.abc import Callable

from fragdex.box_header import is_chain
from fragdex.boxes.kinds import array, cstring, i16, raw, record, rest, u8, u16, u32, u64
from fragdex.boxes.layout import Fields, box, fullbox, where

SAMPLE_ENTRY = box(
    "*",
    "Sample Entry",
    "ISO/IEC 14496-12, 8.5.2",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
)
"""The start that all sample entries share, and boxes."""

VISUAL_SAMPLE_ENTRY = box(
    "*",
    "Visual Sample Entry",
    "ISO/IEC 14496-12, 12.1.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    pre_defined=u16,
    reserved_2=u16,
    pre_defined_2=array(3, u32),
    width=u16,
    height=u16,
    horizresolution=where(u32, default=0x480000),
    vertresolution=where(u32, default=0x480000),
    reserved_3=u32,
    frame_count=where(u16, default=1),
    compressorname=raw(32),
    depth=where(u16, default=24),
    pre_defined_3=where(i16, default=-1),
)
"""How the samples of a video track are coded.

Resolutions are 16.16 fixed-point pixels per inch; compressorname counts its letters in the first
byte.
"""

# QuickTime File Format, Sound Sample Description (Version 1).
_DESCRIPTION_V1 = record(
    samplesPerPacket=u32, bytesPerPacket=u32, bytesPerFrame=u32, bytesPerSample=u32
)
# Version 2; audioSampleRate is the bit pattern of a 64-bit floating-point number.
_DESCRIPTION_V2 = record(
    sizeOfStructOnly=u32,
    audioSampleRate=u64,
    numAudioChannels=u32,
    always7F000000=u32,
    constBitsPerChannel=u32,
    formatSpecificFlags=u32,
    constBytesPerAudioPacket=u32,
    constLPCMFramesPerAudioPacket=u32,
)


def _is_quicktime(version: int, size: int) -> Callable[[Fields, memoryview], bool]:
    def probe(fields: Fields, body: memoryview) -> bool:
        return (
            fields["entry_version"] == version
            and len(body) >= size
            and not is_chain(body)
            and is_chain(body[size:])
        )

    return probe


AUDIO_SAMPLE_ENTRY = box(
    "*",
    "Audio Sample Entry",
    "ISO/IEC 14496-12, 12.2.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    entry_version=u16,
    reserved_2=u16,
    reserved_3=u32,
    channelcount=where(u16, default=2),
    samplesize=where(u16, default=16),
    pre_defined=i16,
    reserved_4=u16,
    samplerate=u32,
    sound_description_v1=where(_DESCRIPTION_V1, probe=_is_quicktime(1, 16)),
    sound_description_v2=where(_DESCRIPTION_V2, probe=_is_quicktime(2, 36)),
)
"""How the samples of an audio track are coded.

samplerate is 16.16 fixed-point. QuickTime files reuse the reserved words (version, revision,
vendor, compression id, packet size) and put 16 bytes after version 1 and 36 after version 2; the
ISO standard has an entry_version 1 without them. The two are told apart by where the child boxes
start.
"""

BTRT = box(
    "btrt",
    "Bit Rate",
    "ISO/IEC 14496-12, 8.5.2",
    bufferSizeDB=u32,
    maxBitrate=u32,
    avgBitrate=u32,
)
"""Decoding buffer in bytes, bit rates per second."""

METX = box(
    "metx",
    "XML Metadata Sample Entry",
    "ISO/IEC 14496-12, 12.3.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    content_encoding=cstring,
    namespace=cstring,
    schema_location=cstring,
)
"""Timed metadata as XML."""

METT = box(
    "mett",
    "Text Metadata Sample Entry",
    "ISO/IEC 14496-12, 12.3.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    content_encoding=cstring,
    mime_format=cstring,
)
"""Timed metadata as text."""

URIM = box(
    "urim",
    "URI Metadata Sample Entry",
    "ISO/IEC 14496-12, 12.3.3",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
)
"""Timed metadata whose form a URI names."""

URI = fullbox("uri ", "URI", "ISO/IEC 14496-12, 12.3.3", theURI=cstring)
"""The URI that names the form of timed metadata."""

URII = fullbox("uriI", "URI Init", "ISO/IEC 14496-12, 12.3.3", uri_initialization_data=rest)
"""What decoding by that URI needs."""

MIME = fullbox("mime", "MIME", "ISO/IEC 14496-12, 12.3.3", content_type=cstring)
"""The media type of samples."""

TMCD = box(
    "tmcd",
    "Time Code Sample Entry",
    "QuickTime File Format, Timecode Media",
    children=True,
    reserved=raw(6),
    data_reference_index=where(u16, default=1),
    reserved_2=u32,
    time_code_flags=u32,
    timescale=u32,
    frame_duration=u32,
    number_of_frames=u8,
    reserved_3=u8,
)
"""How samples count frames."""
