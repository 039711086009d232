"""equi: which part of the sphere is there, 0.32 fractions (Spherical Video V2)."""

from fragdex.boxes.layout import fullbox, u32

EQUI = fullbox(
    "equi",
    "Equirectangular Projection",
    "Spherical Video V2",
    projection_bounds_top=u32,
    projection_bounds_bottom=u32,
    projection_bounds_left=u32,
    projection_bounds_right=u32,
)
