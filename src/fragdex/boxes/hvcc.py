"""hvcC: profile, level and parameter sets of HEVC (ISO/IEC 14496-15, 8.3.3)."""

from fragdex.boxes.layout import bits, box, items, record, sized, u8, u16, u32, where

_ARRAY = record(
    kind=bits(1, array_completeness=1, reserved=1, NAL_unit_type=6),
    nalus=items(u16, sized(u16), 2),
)

HVCC = box(
    "hvcC",
    "HEVC Configuration",
    "ISO/IEC 14496-15, 8.3.3",
    configurationVersion=where(u8, default=1),
    profile=bits(1, general_profile_space=2, general_tier_flag=1, general_profile_idc=5),
    general_profile_compatibility_flags=u32,
    constraints=bits(6, general_constraint_indicator_flags=48),
    general_level_idc=u8,
    formats=bits(
        6,
        reserved=4,
        min_spatial_segmentation_idc=12,
        reserved_2=6,
        parallelismType=2,
        reserved_3=6,
        chroma_format_idc=2,
        reserved_4=5,
        bit_depth_luma_minus8=3,
        reserved_5=5,
        bit_depth_chroma_minus8=3,
    ),
    avgFrameRate=u16,
    layers=bits(
        1, constantFrameRate=2, numTemporalLayers=3, temporalIdNested=1, lengthSizeMinusOne=2
    ),
    arrays=items(u8, _ARRAY, 3),
)
