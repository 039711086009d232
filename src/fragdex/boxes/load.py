"""load: what to load before playing (QuickTime File Format, Track)."""

from fragdex.boxes.layout import box, u32

LOAD = box(
    "load",
    "Track Load Settings",
    "QuickTime File Format, Track",
    preload_start_time=u32,
    preload_duration=u32,
    preload_flags=u32,
    default_hints=u32,
)
