"""proj: the projection (Spherical Video V2)."""

from fragdex.boxes.layout import box

PROJ = box(
    "proj",
    "Projection",
    "Spherical Video V2",
    children=True,
)
