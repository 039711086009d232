"""st3d: how two views share the picture (Spherical Video V2)."""

from fragdex.boxes.layout import fullbox, u8

ST3D = fullbox(
    "st3d",
    "Stereoscopic 3D Video",
    "Spherical Video V2",
    stereo_mode=u8,
)
