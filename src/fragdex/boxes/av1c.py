"""av1C: profile, level and header units of AV1 (AV1 in ISOBMFF, 2.3)."""

from fragdex.boxes.layout import bits, box, rest

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
