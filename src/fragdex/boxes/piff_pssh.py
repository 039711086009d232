"""piff_pssh: what one protection system needs (PIFF 1.1, 5.3.1)."""

from fragdex.boxes.layout import raw, sized, u32, uuid_box

PIFF_PSSH = uuid_box(
    "d08a4f18-10f3-4a82-b6c8-32d8aba183d3",
    "PIFF Protection System Specific Header",
    "PIFF 1.1, 5.3.1",
    full=True,
    SystemID=raw(16),
    Data=sized(u32),
)
