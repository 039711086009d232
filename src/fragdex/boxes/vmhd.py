"""vmhd: how video is drawn (ISO/IEC 14496-12, 12.1.2)."""

from fragdex.boxes.layout import array, fullbox, u16

VMHD = fullbox(
    "vmhd",
    "Video Media Header",
    "ISO/IEC 14496-12, 12.1.2",
    graphicsmode=u16,
    opcolor=array(3, u16),
)
