"""CoLL: brightest pixel and frame, in cd/m2 (VP Codec ISO Media File Format Binding)."""

from fragdex.boxes.layout import fullbox, u16

COLL = fullbox(
    "CoLL",
    "Content Light Level of VP9",
    "VP Codec ISO Media File Format Binding",
    maxCLL=u16,
    maxFALL=u16,
)
