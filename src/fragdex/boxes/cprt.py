"""cprt: a copyright notice and its language (ISO/IEC 14496-12, 8.10.2)."""

from fragdex.boxes.layout import cstring, fullbox, u16

CPRT = fullbox(
    "cprt",
    "Copyright",
    "ISO/IEC 14496-12, 8.10.2",
    language=u16,
    notice=cstring,
)
