"""piff_tenc: how samples are encrypted unless said otherwise (PIFF 1.1, 5.3.3)."""

from fragdex.boxes.layout import raw, u8, u24, uuid_box

PIFF_TENC = uuid_box(
    "8974dbce-7be7-4c51-84f9-7148f9882554",
    "PIFF Track Encryption",
    "PIFF 1.1, 5.3.3",
    full=True,
    default_AlgorithmID=u24,
    default_IV_size=u8,
    default_KID=raw(16),
)
