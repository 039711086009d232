"""prhd: where the sphere is turned to, 16.16 degrees (Spherical Video V2)."""

from fragdex.boxes.layout import fullbox, i32

PRHD = fullbox(
    "prhd",
    "Projection Header",
    "Spherical Video V2",
    pose_yaw_degrees=i32,
    pose_pitch_degrees=i32,
    pose_roll_degrees=i32,
)
