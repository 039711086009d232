"""tmcd: how a time code is shown (QuickTime File Format, Timecode Media)."""

from fragdex.boxes.layout import box

GMHD_TMCD = box(
    "tmcd",
    "Time Code Media Information",
    "QuickTime File Format, Timecode Media",
    children=True,
)
