"""Exact frames of a track of pictures, many at a time, from anywhere (extra `media`).

frames        all of it together: `fragdex.Frames`
frame_reader  pictures of samples: reads ahead, several runs at once, some held for later
frame_batch   what is handed out, and how a notebook shows it; all frames as one lazy array
frame_track   a track that is open: its source, samples, numbers and decoders
decode_runs   runs of samples to pictures
changes       where the picture changes
references    which samples no other picture refers to
decoders      contexts of the decoder, reused by videos with the same coding
pixels        decoded pictures to arrays
crop          parts of pictures
arrays        the same as arrays of other libraries, where they were decoded
conversion    colours and sizes in whole numbers
"""

from fragdex.frames.decoders import FrameCache
from fragdex.frames.frame_batch import Frame, FrameBatch
from fragdex.frames.frames import Frames
from fragdex.frames.pixels import Rows

__all__ = ["Frame", "FrameBatch", "FrameCache", "Frames", "Rows"]
