"""stvi: how two views are packed (ISO/IEC 14496-12, 8.15.4)."""

from fragdex.boxes.layout import bits, fullbox, sized, u32

STVI = fullbox(
    "stvi",
    "Stereo Video",
    "ISO/IEC 14496-12, 8.15.4",
    children=True,
    views=bits(4, reserved=30, single_view_allowed=2),
    stereo_scheme=u32,
    stereo_indication_type=sized(u32),
)
