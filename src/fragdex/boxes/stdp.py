"""stdp: priority of each sample (ISO/IEC 14496-12, 8.5.3)."""

from fragdex.boxes.layout import fullbox, rows

STDP = fullbox(
    "stdp",
    "Degradation Priority",
    "ISO/IEC 14496-12, 8.5.3",
    entries=rows(None, ("priority", ">u2")),
)
