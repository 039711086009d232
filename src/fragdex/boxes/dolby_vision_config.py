"""dvcC: profile, level and layers of Dolby Vision (Dolby Vision in ISOBMFF, 3.2)."""

from fragdex.boxes.layout import array, bits, box, u8, u32

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
