"""mp4a: a word of zero inside wave (QuickTime File Format, Sound Extensions)."""

from fragdex.boxes.layout import box, u32

WAVE_FORMAT = box(
    "mp4a",
    "Decompression Format",
    "QuickTime File Format, Sound Extensions",
    reserved=u32,
)
