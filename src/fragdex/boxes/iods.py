"""iods: the initial object descriptor of MPEG-4 systems (ISO/IEC 14496-14, 5.1)."""

from fragdex.boxes.descriptor import descriptor
from fragdex.boxes.layout import fullbox

IODS = fullbox(
    "iods",
    "Object Descriptor",
    "ISO/IEC 14496-14, 5.1",
    OD=descriptor({}),
)
