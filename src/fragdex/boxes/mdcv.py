"""mdcv: the display the video was mastered on (ISO/IEC 14496-12, 12.1.7).

Primaries (green, blue, red) and white point in 0.00002, luminances in 0.0001 cd/m2.
"""

from fragdex.boxes.layout import array, box, u16, u32

MDCV = box(
    "mdcv",
    "Mastering Display Colour Volume",
    "ISO/IEC 14496-12, 12.1.7",
    display_primaries=array(6, u16),
    white_point=array(2, u16),
    max_display_mastering_luminance=u32,
    min_display_mastering_luminance=u32,
)
