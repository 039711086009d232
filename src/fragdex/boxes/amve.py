"""amve: the light the video is meant to be seen in (ISO/IEC 14496-12, 12.1.9).

Illuminance in 0.0001 lux, light in 0.00002.
"""

from fragdex.boxes.layout import box, u16, u32

AMVE = box(
    "amve",
    "Ambient Viewing Environment",
    "ISO/IEC 14496-12, 12.1.9",
    ambient_illuminance=u32,
    ambient_light_x=u16,
    ambient_light_y=u16,
)
