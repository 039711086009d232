"""SmDm: the display VP9 was mastered on (VP Codec ISO Media File Format Binding).

Chromaticities are 0.16 fixed-point, luminanceMax 24.8, luminanceMin 18.14.
"""

from fragdex.boxes.layout import fullbox, u16, u32

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
