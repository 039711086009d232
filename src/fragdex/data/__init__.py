"""Data sets of many videos: one Parquet file with all indexes, and windows of frames for training.

film_listing   folders, globs, URLs and buckets to names of files
set_parts      files to rows: tracks, groups of pictures, indexes; rows to a set, in parallel
video_set      a set, opened
windows        windows of frames: map-style, by number, and what they cost; iterable, by a sampler

pyarrow reads and writes Parquet (extra `data`); torch is imported by `WindowStream.dataset` alone.
"""

from fragdex.data.set_parts import SetSummary, write_set
from fragdex.data.video_set import Video, VideoSet
from fragdex.data.windows import Costs, Windows, WindowSampler, WindowStream

__all__ = [
    "Costs",
    "SetSummary",
    "Video",
    "VideoSet",
    "WindowSampler",
    "WindowStream",
    "Windows",
    "write_set",
]
