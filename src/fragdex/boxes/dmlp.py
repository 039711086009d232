"""dmlp: format and peak rate of MLP (Dolby TrueHD (MLP) in ISOBMFF)."""

from fragdex.boxes.layout import bits, box, u32

DMLP = box(
    "dmlp",
    "MLP Specific",
    "Dolby TrueHD (MLP) in ISOBMFF",
    format_info=u32,
    rate=bits(2, peak_data_rate=15, reserved=1),
    reserved_2=u32,
)
