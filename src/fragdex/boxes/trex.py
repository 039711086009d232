"""trex: defaults for the samples of a track in all movie fragments (ISO/IEC 14496-12, 8.8.3)."""

from fragdex.boxes.layout import fullbox, u32

TREX = fullbox(
    "trex",
    "Track Extends",
    "ISO/IEC 14496-12, 8.8.3",
    track_ID=u32,
    default_sample_description_index=u32,
    default_sample_duration=u32,
    default_sample_size=u32,
    default_sample_flags=u32,
)
