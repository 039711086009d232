"""smhd: where sound stands between the speakers (8.8 fixed-point) (ISO/IEC 14496-12, 12.2.2)."""

from fragdex.boxes.layout import fullbox, i16, u16

SMHD = fullbox(
    "smhd",
    "Sound Media Header",
    "ISO/IEC 14496-12, 12.2.2",
    balance=i16,
    reserved=u16,
)
