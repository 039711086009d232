"""pdin: how long to wait before playing, by download rate (ISO/IEC 14496-12, 8.1.3).

Rates in bytes per second, delays in milliseconds.
"""

from fragdex.boxes.layout import fullbox, rows

PDIN = fullbox(
    "pdin",
    "Progressive Download Information",
    "ISO/IEC 14496-12, 8.1.3",
    entries=rows(None, ("rate", ">u4"), ("initial_delay", ">u4")),
)
