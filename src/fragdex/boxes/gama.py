"""gama: gamma, 16.16 fixed-point (QuickTime File Format, Video Sample Description)."""

from fragdex.boxes.layout import box, u32

GAMA = box(
    "gama",
    "Gamma Level",
    "QuickTime File Format, Video Sample Description",
    gamma=u32,
)
