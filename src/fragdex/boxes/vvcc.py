"""vvcC: profile, level and parameter sets of VVC (ISO/IEC 14496-15, 11.2.4).

The two highest bits of general_constraint_info are ptl_frame_only_constraint_flag and
ptl_multi_layer_enabled_flag.
"""

from fragdex.boxes.layout import (
    Fields,
    array,
    bits,
    fullbox,
    items,
    raw,
    record,
    sized,
    u8,
    u16,
    u32,
    where,
)

_DCI, _OPI = 13, 12  # NAL unit types of which an array holds one, uncounted


def _ptl(fields: Fields) -> bool:
    return bool(fields["ptl_present_flag"])


def _sublayers(fields: Fields) -> bool:
    return _ptl(fields) and fields["num_sublayers"] > 1


def _levels(fields: Fields) -> int:
    # One flag for each sublayer below the highest, from the highest bit down.
    flags = fields["ptl_sublayer_level_present_flags"] >> (9 - fields["num_sublayers"])
    return int(flags).bit_count()


_ARRAY = record(
    kind=bits(1, array_completeness=1, reserved=2, NAL_unit_type=5),
    nalus=where(
        items(u16, sized(u16), 2), when=lambda array: array["NAL_unit_type"] not in (_DCI, _OPI)
    ),
    nalu=where(sized(u16), when=lambda array: array["NAL_unit_type"] in (_DCI, _OPI)),
)

VVCC = fullbox(
    "vvcC",
    "VVC Configuration",
    "ISO/IEC 14496-15, 11.2.4",
    versions=(0,),
    lengths=bits(1, reserved=5, LengthSizeMinusOne=2, ptl_present_flag=1),
    format=where(
        bits(
            3,
            ols_idx=9,
            num_sublayers=3,
            constant_frame_rate=2,
            chroma_format_idc=2,
            bit_depth_minus8=3,
            reserved_2=5,
        ),
        when=_ptl,
    ),
    ptl=where(
        bits(
            3,
            reserved_3=2,
            num_bytes_constraint_info=6,
            general_profile_idc=7,
            general_tier_flag=1,
            general_level_idc=8,
        ),
        when=_ptl,
    ),
    general_constraint_info=where(
        raw(lambda fields: fields["num_bytes_constraint_info"]), when=_ptl
    ),
    ptl_sublayer_level_present_flags=where(u8, when=_sublayers),
    sublayer_level_idc=where(array(_levels, u8), when=_sublayers),
    general_sub_profile_idc=where(items(u8, u32, 4), when=_ptl),
    max_picture_width=where(u16, when=_ptl),
    max_picture_height=where(u16, when=_ptl),
    avg_frame_rate=where(u16, when=_ptl),
    arrays=items(u8, _ARRAY, 3),
)
