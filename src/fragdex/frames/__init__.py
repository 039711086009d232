"""Exact frames of a track of pictures, many at a time, from anywhere (extra `media`).

decode_plan     wanted frames to runs of samples and the reads that bring them
references      samples that no other picture refers to
forks           what a forked process must neither use nor free
decoders        contexts of the decoder, used again and again by films that are coded alike
decode_runs     one run of samples to decoded pictures, and what of it is damaged
pixels          decoded pictures to arrays
notebook_sheet  frames as a notebook shows them
frame_batch     what is handed out
frame_cache     pictures and bytes that were used last, up to a limit
frame_times     when frames are shown, without decoding
frames          all of it together: `fragdex.Frames`
"""

from fragdex.frames.decoders import FrameCache
from fragdex.frames.frame_batch import Frame, FrameBatch
from fragdex.frames.frames import Frames

__all__ = ["Frame", "FrameBatch", "FrameCache", "Frames"]
