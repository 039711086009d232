"""FFmpeg's word on a file, through PyAV: the packets of each track.

What it says is not always what the file says. Seen with libavformat 62.12 on our fixtures, which
otherwise agree with the boxes in position, size, dts, pts, duration and key flag:

- Filling in. By default missing durations are guessed, and parsers look into the media: dts may
  move, key flags follow the bitstream (of frag-global-sidx-stale-base.mp4 they turn false, its
  positions being off), VP9 loses its durations. `fflags=+nofillin+noparse` leaves the boxes' word;
  both sets of options below have it.
- Edit lists. `ignore_editlist=1` gives the media timeline. With the list applied dts and pts move
  by one shift: leading empty edits, in the movie's timescale, less the media time of the first
  real edit. `advanced_editlist=1` (FFmpeg's default) drops packets outside the edits besides,
  such as the last, empty sample of text.mp4; samples to skip inside a packet (AAC's priming) come
  as side data, and the packet stays.
- Negative composition offsets. FFmpeg takes the most negative offset of a track, as `shift`. In
  a progressive file (negative-cts.mp4) its dts is smaller by `shift` and its pts is right; in
  fragments (frag-cmaf.mp4, piff.ismv) its dts is right and its pts too large by `shift`. pts - dts
  is always the composition offset + shift, and the edit list does not mend it.
- PCM and other codecs of constant stsz come as packets of 1,024 samples or so: the rows of
  pcm.mov are fewer than its samples. The bytes covered are the same.
- PIFF: tfxd is not read, times accumulate from 0. piff.ismv's audio begins at tfxd -640000.
- Partial sync samples (stps, mpeg2.mov) count as key packets.
- A chapter track has no packets; the cover is a stream of its own, left out here; an AVIF's items
  come as packets too.
- A second moov is passed over: the packets after it go to the tracks of the first, by their ids.
- Truncated: a packet cut short keeps the bytes that are there (its size is smaller than trun says;
  PyAV's `is_corrupt` tells); a moof whose mdat is missing gives nothing, one that is cut short
  makes the file unreadable altogether (cut-in-moof.mp4), as does a moov that is missing.
- Segments without a moov cannot be opened: give their header as `init`.
- Encrypted tracks come as they are; their positions and sizes are right.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import av
from av.stream import Disposition

MEDIA_TIMELINE = {"ignore_editlist": "1", "fflags": "+nofillin+noparse"}
PRESENTATION = {
    "ignore_editlist": "0",
    "advanced_editlist": "1",
    "fflags": "+nofillin+noparse",
}


class Packet(NamedTuple):
    """One packet; times in ticks of the track's timescale, `pos` from the start of the file."""

    pos: int | None
    size: int
    dts: int | None
    pts: int | None
    duration: int | None
    is_keyframe: bool


def packets(
    path: str | Path, options: Mapping[str, str] = MEDIA_TIMELINE, init: bytes = b""
) -> dict[int, list[Packet]]:
    """The packets of each track in FFmpeg's order, which within a track is decode order.

    Keys are track ids; a track without packets has an empty list. `init` stands before the file's
    bytes, for segments without a moov, and counts in no position. Raises av.error.FFmpegError
    where FFmpeg cannot open the file.
    """
    data = io.BytesIO(init + Path(path).read_bytes())
    by_track: dict[int, list[Packet]] = {}
    with av.open(data, "r", format="mp4", options=dict(options)) as container:
        streams = [s for s in container.streams if Disposition.attached_pic not in s.disposition]
        for stream in streams:
            by_track.setdefault(stream.id, [])
        for packet in container.demux(streams):
            # demux ends with an empty packet a stream, which flushes decoders
            if packet.size == 0 and packet.dts is None:
                continue
            by_track[packet.stream.id].append(
                Packet(
                    None if packet.pos is None else packet.pos - len(init),
                    packet.size,
                    packet.dts,
                    packet.pts,
                    packet.duration,
                    packet.is_keyframe,
                )
            )
    return by_track
