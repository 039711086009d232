"""dac4: presentations of AC-4, kept as bytes (ETSI TS 103 190-2, E.5)."""

from fragdex.boxes.layout import box, rest

DAC4 = box(
    "dac4",
    "AC-4 Specific",
    "ETSI TS 103 190-2, E.5",
    ac4_dsi=rest,
)
