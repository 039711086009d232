"""sv3d: how the picture lies on a sphere (Spherical Video V2)."""

from fragdex.boxes.layout import box

SV3D = box(
    "sv3d",
    "Spherical Video",
    "Spherical Video V2",
    children=True,
)
