"""avcC: profile, level and parameter sets of AVC (ISO/IEC 14496-15, 5.3.3).

Four more fields follow in High profiles; writers leave them out.
"""

from fragdex.boxes.layout import Fields, array, bits, box, items, sized, u8, u16, where


def _high(fields: Fields, body: memoryview) -> bool:
    return fields["AVCProfileIndication"] in (100, 110, 122, 144, 244) and len(body) >= 4


def _extended(fields: Fields, body: memoryview) -> bool:
    return "chroma_format" in fields


AVCC = box(
    "avcC",
    "AVC Configuration",
    "ISO/IEC 14496-15, 5.3.3",
    configurationVersion=where(u8, default=1),
    AVCProfileIndication=u8,
    profile_compatibility=u8,
    AVCLevelIndication=u8,
    lengths=bits(2, reserved=6, lengthSizeMinusOne=2, reserved_2=3, numOfSequenceParameterSets=5),
    sequenceParameterSets=array(lambda fields: fields["numOfSequenceParameterSets"], sized(u16)),
    pictureParameterSets=items(u8, sized(u16), 2),
    high=where(
        bits(
            3,
            reserved_3=6,
            chroma_format=2,
            reserved_4=5,
            bit_depth_luma_minus8=3,
            reserved_5=5,
            bit_depth_chroma_minus8=3,
        ),
        probe=_high,
    ),
    sequenceParameterSetExts=where(items(u8, sized(u16), 2), probe=_extended),
)
