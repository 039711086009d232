"""What decoding a whole track in order gives, by the demuxer of FFmpeg's libraries."""

import io

import av
import numpy as np


def planes(frame):
    """The decoded planes of a picture, without what lines are filled up with."""
    arrays = []
    if frame.format.name == "yuyv422":
        frame = frame.reformat(format="yuv444p", interpolation="BICUBIC")
    for part, plane in enumerate(frame.planes):
        deep = frame.format.components[part].bits > 8
        lines = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: plane.height]
        arrays.append(lines[:, : plane.width * (1 + deep)].view(np.uint16 if deep else np.uint8))
    return arrays


def linear(film, track_id=None, **options):
    """The planes of every picture, hidden ones included, in presentation order."""
    file = io.BytesIO(film) if isinstance(film, bytes) else str(film)
    with av.open(file, options={"ignore_editlist": "1", **options}) as container:
        streams = container.streams.video
        stream = next((s for s in streams if s.id == track_id), streams[0])
        frames = []
        for packet in container.demux(stream):
            try:
                frames += packet.decode()
            except av.error.InvalidDataError:
                break  # the file is cut off here
        return [[plane.copy() for plane in planes(frame)] for frame in frames]


def same(one, other):
    return len(one) == len(other) and all(map(np.array_equal, one, other))
