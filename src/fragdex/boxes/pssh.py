"""pssh: what one protection system needs (ISO/IEC 23001-7, 8.1)."""

from fragdex.boxes.layout import fullbox, items, raw, sized, u32, where

PSSH = fullbox(
    "pssh",
    "Protection System Specific Header",
    "ISO/IEC 23001-7, 8.1",
    SystemID=raw(16),
    KIDs=where(items(u32, raw(16), 16), version=(1,)),
    Data=sized(u32),
)
