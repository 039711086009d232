"""Data sets of many films: an index of all in one Parquet file, and windows of frames to train on.

film_listing    folders, globs, URLs and buckets to names of films
set_rows        a film to its row: tracks, groups of pictures, its index
set_writing     many films to a set, in parallel, going on where a run before ended
video_set       a set, opened
open_films      the films that are open in this process
windows         map-style: windows of frames, by number
window_order    in which order they are taken: a sampler
window_stream   iterable: the windows of this process in that order
costs           what samples cost: bytes, requests, decoded frames

pyarrow reads and writes Parquet (extra `data`); torch is imported by `WindowStream.dataset` alone.
"""

from fragdex.data.costs import Costs
from fragdex.data.set_writing import SetSummary, write_set
from fragdex.data.video_set import Video, VideoSet
from fragdex.data.window_stream import WindowSampler, WindowStream
from fragdex.data.windows import Windows

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
