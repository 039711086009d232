"""clap: the part of the picture that is shown (ISO/IEC 14496-12, 12.1.4)."""

from fragdex.boxes.layout import box, i32, u32

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
