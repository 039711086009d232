"""audio_sample_entry: how the samples of an audio track are coded (ISO/IEC 14496-12, 12.2.3).

samplerate is 16.16 fixed-point. QuickTime files reuse the reserved words (version, revision,
vendor, compression id, packet size) and put 16 bytes behind version 1 and 36 behind version 2; the
ISO standard has an entry_version 1 without them. The two are told apart by where the child boxes
start.
"""

from collections.abc import Callable

from fragdex.boxes.chain import is_chain
from fragdex.boxes.layout import Fields, box, i16, raw, record, u16, u32, u64, where

# QuickTime File Format, Sound Sample Description (Version 1).
_VERSION_1 = record(samplesPerPacket=u32, bytesPerPacket=u32, bytesPerFrame=u32, bytesPerSample=u32)
# Version 2; audioSampleRate is the bit pattern of a 64-bit floating-point number.
_VERSION_2 = record(
    sizeOfStructOnly=u32,
    audioSampleRate=u64,
    numAudioChannels=u32,
    always7F000000=u32,
    constBitsPerChannel=u32,
    formatSpecificFlags=u32,
    constBytesPerAudioPacket=u32,
    constLPCMFramesPerAudioPacket=u32,
)


def _quicktime(version: int, size: int) -> Callable[[Fields, memoryview], bool]:
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
    sound_description_v1=where(_VERSION_1, probe=_quicktime(1, 16)),
    sound_description_v2=where(_VERSION_2, probe=_quicktime(2, 36)),
)
