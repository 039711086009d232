"""Frame mappings that spare torchcodec's `VideoDecoder` its scan over the whole file.

The form is what ffprobe writes for `-show_entries frame=pts,duration,key_frame -of json`: an object
with a list `frames`. torchcodec takes the first frame for the begin of the stream and the last for
its end, so frames are told in presentation order; times are ticks of the track's timescale with
the edit list applied, as FFmpeg's libraries tell them.

    mapping = index.export("torchcodec")
    VideoDecoder("movie.mp4", custom_frame_mappings=mapping)
"""

from __future__ import annotations

import numpy as np

from fragdex.errors import TrackNotFound
from fragdex.formats.digits import text_rows
from fragdex.formats.sample_csv import whole_ticks
from fragdex.seeking.model import FragmentIndex, TrackIndex

__all__ = ["write"]


def write(index: FragmentIndex, *, track: int | None = None) -> bytes:
    """The frame mappings of one video track as JSON.

    Args:
        track: track id; None: the first video track.

    Samples that the edit list hides because they end before presentation time 0 are left out, as
    decoders drop them.

    Raises:
        TrackNotFound: there is no such track, or none with video.
        InexactIndex: the index holds fragments only.

    >>> from fragdex.seeking.model import How, SourceInfo
    >>> write(FragmentIndex(SourceInfo(), How("boxes", True), ()))
    Traceback (most recent call last):
    ...
    fragdex.errors.TrackNotFound: there is no video track
    """
    chosen = index.track(track) if track is not None else _first_video(index)
    samples = chosen.samples
    pts = samples.cts + np.int64(whole_ticks(chosen.shift))
    shown = np.flatnonzero((pts >= 0) | (pts + samples.duration > 0) | (chosen.shift >= 0))
    order = shown[np.argsort(pts[shown], kind="stable")]
    if not len(order):
        return b'{"frames":[]}'
    rows = b"".join(
        text_rows(
            [
                b'{"pts":',
                pts[order],
                b',"duration":',
                samples.duration[order],
                b',"key_frame":',
                samples.sync[order],
                b"},",
            ]
        )
    )
    return b'{"frames":[' + rows[:-1] + b"]}"


def _first_video(index: FragmentIndex) -> TrackIndex:
    for track in index.tracks:
        if track.kind == "video":
            return track
    raise TrackNotFound("there is no video track")
