"""svhd: which tool said so (Spherical Video V2)."""

from fragdex.boxes.layout import cstring, fullbox

SVHD = fullbox(
    "svhd",
    "Spherical Video Header",
    "Spherical Video V2",
    metadata_source=cstring,
)
