"""ccst: how pictures refer to each other (ISO/IEC 23008-12, 7.2.3)."""

from fragdex.boxes.layout import bits, fullbox

CCST = fullbox(
    "ccst",
    "Coding Constraints",
    "ISO/IEC 23008-12, 7.2.3",
    constraints=bits(4, all_ref_pics_intra=1, intra_pred_used=1, max_ref_per_pic=4, reserved=26),
)
