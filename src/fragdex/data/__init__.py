"""Data sets of many videos: one Parquet file with all indexes, and windows of frames for training.

film_listing   folders, globs, URLs and buckets to names of files
set_file       the file of a set: its columns, and its rows by row group
set_names      the names of a set that is written, in a file next to it
set_parts      files to rows: tracks, groups of pictures, indexes; rows to a set, in parallel
video_set      a set, opened
window_order   the order of windows in an epoch, computed and not stored: a sampler
windows        windows of frames: map-style, by number, and what they cost; reading ahead
window_stream  the same in the order of a sampler: iterable
window_loader  a stream by worker processes, without torch
shared_batches batches in shared memory: workers write them, one process maps them

pyarrow reads and writes Parquet (extra `data`); torch is imported only by
`WindowStream.dataset` and where batches of its workers arrive.
"""

from fragdex.data.set_parts import SetSummary, write_set
from fragdex.data.video_set import Video, VideoSet
from fragdex.data.window_loader import WindowLoader
from fragdex.data.window_order import WindowSampler
from fragdex.data.window_stream import WindowStream
from fragdex.data.windows import Costs, Windows

__all__ = [
    "Costs",
    "SetSummary",
    "Video",
    "VideoSet",
    "WindowLoader",
    "WindowSampler",
    "WindowStream",
    "Windows",
    "write_set",
]
