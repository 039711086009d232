"""What sample entries say of video: codecs, shape, colours, light, several views, spheres."""

from __future__ import annotations

from fragdex.boxes.kinds import (
    array,
    bits,
    cstring,
    fourcc,
    i32,
    items,
    raw,
    record,
    rest,
    sized,
    u8,
    u16,
    u32,
)
from fragdex.boxes.layout import Fields, box, fullbox, where


def _is_high(fields: Fields, body: memoryview) -> bool:
    return fields["AVCProfileIndication"] in (100, 110, 122, 144, 244) and len(body) >= 4


def _is_extended(fields: Fields, body: memoryview) -> bool:
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
        probe=_is_high,
    ),
    sequenceParameterSetExts=where(items(u8, sized(u16), 2), probe=_is_extended),
)
"""Profile, level and parameter sets of AVC.

Four more fields follow in High profiles; writers leave them out.
"""

_HEVC_ARRAY = record(
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
    arrays=items(u8, _HEVC_ARRAY, 3),
)
"""Profile, level and parameter sets of HEVC."""

_DCI, _OPI = 13, 12  # NAL unit types of which an array holds one, uncounted


def _has_ptl(fields: Fields) -> bool:
    return bool(fields["ptl_present_flag"])


def _has_sublayers(fields: Fields) -> bool:
    return _has_ptl(fields) and fields["num_sublayers"] > 1


def _level_count(fields: Fields) -> int:
    # One flag for each sublayer below the highest, from the highest bit down.
    flags = fields["ptl_sublayer_level_present_flags"] >> (9 - fields["num_sublayers"])
    return int(flags).bit_count()


_VVC_ARRAY = record(
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
        when=_has_ptl,
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
        when=_has_ptl,
    ),
    general_constraint_info=where(
        raw(lambda fields: fields["num_bytes_constraint_info"]), when=_has_ptl
    ),
    ptl_sublayer_level_present_flags=where(u8, when=_has_sublayers),
    sublayer_level_idc=where(array(_level_count, u8), when=_has_sublayers),
    general_sub_profile_idc=where(items(u8, u32, 4), when=_has_ptl),
    max_picture_width=where(u16, when=_has_ptl),
    max_picture_height=where(u16, when=_has_ptl),
    avg_frame_rate=where(u16, when=_has_ptl),
    arrays=items(u8, _VVC_ARRAY, 3),
)
"""Profile, level and parameter sets of VVC.

The two highest bits of general_constraint_info are ptl_frame_only_constraint_flag and
ptl_multi_layer_enabled_flag.
"""

AV1C = box(
    "av1C",
    "AV1 Configuration",
    "AV1 in ISOBMFF, 2.3",
    profile=bits(
        4,
        marker=1,
        version=7,
        seq_profile=3,
        seq_level_idx_0=5,
        seq_tier_0=1,
        high_bitdepth=1,
        twelve_bit=1,
        monochrome=1,
        chroma_subsampling_x=1,
        chroma_subsampling_y=1,
        chroma_sample_position=2,
        reserved=3,
        initial_presentation_delay_present=1,
        initial_presentation_delay_minus_one=4,
    ),
    configOBUs=rest,
)
"""Profile, level and header units of AV1."""

VPCC = fullbox(
    "vpcC",
    "VP Codec Configuration",
    "VP Codec ISO Media File Format Binding",
    versions=(1,),
    profile=u8,
    level=u8,
    format=bits(1, bitDepth=4, chromaSubsampling=3, videoFullRangeFlag=1),
    colourPrimaries=u8,
    transferCharacteristics=u8,
    matrixCoefficients=u8,
    codecInitializationData=sized(u16),
)
"""Profile, level and colours of VP8 and VP9."""

DOLBY_VISION_CONFIG = box(
    "dvcC",
    "Dolby Vision Configuration",
    "Dolby Vision in ISOBMFF, 3.2",
    dv_version_major=u8,
    dv_version_minor=u8,
    stream=bits(
        6,
        dv_profile=7,
        dv_level=6,
        rpu_present_flag=1,
        el_present_flag=1,
        bl_present_flag=1,
        dv_bl_signal_compatibility_id=4,
        reserved=28,
    ),
    reserved_2=array(4, u32),
)
"""Profile, level and layers of Dolby Vision."""

D263 = box(
    "d263",
    "H.263 Specific",
    "3GPP TS 26.244, 6.8",
    children=True,
    vendor=fourcc,
    decoder_version=u8,
    H263_Level=u8,
    H263_Profile=u8,
)
"""Profile and level of H.263."""

PASP = box(
    "pasp",
    "Pixel Aspect Ratio",
    "ISO/IEC 14496-12, 12.1.4",
    hSpacing=where(u32, default=1),
    vSpacing=where(u32, default=1),
)
"""Shape of a pixel."""

CLAP = box(
    "clap",
    "Clean Aperture",
    "ISO/IEC 14496-12, 12.1.4",
    cleanApertureWidthN=u32,
    cleanApertureWidthD=u32,
    cleanApertureHeightN=u32,
    cleanApertureHeightD=u32,
    horizOffN=i32,
    horizOffD=u32,
    vertOffN=i32,
    vertOffD=u32,
)
"""The part of the picture that is shown."""


def _is_coded(fields: Fields) -> bool:
    return fields["colour_type"] in ("nclx", "nclc")


COLR = box(
    "colr",
    "Colour Information",
    "ISO/IEC 14496-12, 12.1.5",
    colour_type=where(fourcc, default="nclx"),
    colour_primaries=where(u16, when=_is_coded),
    transfer_characteristics=where(u16, when=_is_coded),
    matrix_coefficients=where(u16, when=_is_coded),
    range=where(
        bits(1, full_range_flag=1, reserved=7),
        when=lambda fields: fields["colour_type"] == "nclx",
    ),
    ICC_profile=where(rest, when=lambda fields: not _is_coded(fields)),
)
"""What the colours mean."""

MDCV = box(
    "mdcv",
    "Mastering Display Colour Volume",
    "ISO/IEC 14496-12, 12.1.7",
    display_primaries=array(6, u16),
    white_point=array(2, u16),
    max_display_mastering_luminance=u32,
    min_display_mastering_luminance=u32,
)
"""The display the video was mastered on.

Primaries (green, blue, red) and white point in 0.00002, luminances in 0.0001 cd/m2.
"""

CLLI = box(
    "clli",
    "Content Light Level",
    "ISO/IEC 14496-12, 12.1.6",
    max_content_light_level=u16,
    max_pic_average_light_level=u16,
)
"""Brightest pixel and frame, in cd/m2."""

AMVE = box(
    "amve",
    "Ambient Viewing Environment",
    "ISO/IEC 14496-12, 12.1.9",
    ambient_illuminance=u32,
    ambient_light_x=u16,
    ambient_light_y=u16,
)
"""The light the video is meant to be seen in.

Illuminance in 0.0001 lux, light in 0.00002.
"""

SMDM = fullbox(
    "SmDm",
    "SMPTE-2086 Mastering Display Metadata",
    "VP Codec ISO Media File Format Binding",
    primaryRChromaticity_x=u16,
    primaryRChromaticity_y=u16,
    primaryGChromaticity_x=u16,
    primaryGChromaticity_y=u16,
    primaryBChromaticity_x=u16,
    primaryBChromaticity_y=u16,
    whitePointChromaticity_x=u16,
    whitePointChromaticity_y=u16,
    luminanceMax=u32,
    luminanceMin=u32,
)
"""The display VP9 was mastered on.

Chromaticities are 0.16 fixed-point, luminanceMax 24.8, luminanceMin 18.14.
"""

COLL = fullbox(
    "CoLL",
    "Content Light Level of VP9",
    "VP Codec ISO Media File Format Binding",
    maxCLL=u16,
    maxFALL=u16,
)
"""Brightest pixel and frame, in cd/m2."""

FIEL = box(
    "fiel",
    "Field Handling",
    "QuickTime File Format, Video Sample Description",
    fields=u8,
    detail=u8,
)
"""Fields in a picture, and their order."""

GAMA = box("gama", "Gamma Level", "QuickTime File Format, Video Sample Description", gamma=u32)
"""Gamma, 16.16 fixed-point."""

CCST = fullbox(
    "ccst",
    "Coding Constraints",
    "ISO/IEC 23008-12, 7.2.3",
    constraints=bits(4, all_ref_pics_intra=1, intra_pred_used=1, max_ref_per_pic=4, reserved=26),
)
"""How pictures refer to each other."""

RINF = box("rinf", "Restricted Scheme Information", "ISO/IEC 14496-12, 8.15.3", children=True)
"""What a player must do to show restricted samples."""

STVI = fullbox(
    "stvi",
    "Stereo Video",
    "ISO/IEC 14496-12, 8.15.4",
    children=True,
    views=bits(4, reserved=30, single_view_allowed=2),
    stereo_scheme=u32,
    stereo_indication_type=sized(u32),
)
"""How two views are packed."""

ST3D = fullbox("st3d", "Stereoscopic 3D Video", "Spherical Video V2", stereo_mode=u8)
"""How two views share the picture."""

SV3D = box("sv3d", "Spherical Video", "Spherical Video V2", children=True)
"""How the picture lies on a sphere."""

SVHD = fullbox("svhd", "Spherical Video Header", "Spherical Video V2", metadata_source=cstring)
"""Which tool said so."""

PROJ = box("proj", "Projection", "Spherical Video V2", children=True)
"""The projection."""

PRHD = fullbox(
    "prhd",
    "Projection Header",
    "Spherical Video V2",
    pose_yaw_degrees=i32,
    pose_pitch_degrees=i32,
    pose_roll_degrees=i32,
)
"""Where the sphere is turned to, 16.16 degrees."""

EQUI = fullbox(
    "equi",
    "Equirectangular Projection",
    "Spherical Video V2",
    projection_bounds_top=u32,
    projection_bounds_bottom=u32,
    projection_bounds_left=u32,
    projection_bounds_right=u32,
)
"""Which part of the sphere is there, 0.32 fractions."""
