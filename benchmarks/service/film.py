"""A film of any size with real fragments: pictures are padded, as if an encoder had more bits.

The loop of the library's benchmarks is muxed by libavformat; each picture gets a filler NAL unit
(ISO/IEC 14496-10, 7.4.2.11), so a gigabyte is an hour and not nine. What is left to the size
asked for is a `free` box, whose bytes are also what tells one upload from the next.
"""

from __future__ import annotations

import struct
from pathlib import Path

import av
import loop

BYTES_PER_SECOND = 300_000
MOVFLAGS = "empty_moov+default_base_moof+frag_keyframe"
SPARE = 0.02  # what moofs may take beyond what is reckoned


def _filler(size: int) -> bytes:
    return struct.pack(">IB", size + 2, 12) + b"\xff" * size + b"\x80"


def make(path: Path, size: int) -> None:
    """Write a film of one video track, exactly `size` bytes long, if it is not there already."""
    if path.exists() and path.stat().st_size == size:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    packets = loop.encode()
    seconds = max(loop.GROUP_SECONDS, int(size * (1 - SPARE) / BYTES_PER_SECOND))
    each = BYTES_PER_SECOND // loop.FRAMES_PER_SECOND
    unfinished = path.with_suffix(".unfinished")
    with av.open(str(unfinished), "w", format="mp4", options={"movflags": MOVFLAGS}) as out:
        stream = out.add_stream_from_template(packets.video)
        for number, packet in packets.packets(seconds):
            if number:
                continue
            data = bytes(packet)
            padded = av.Packet(data + _filler(max(0, each - len(data) - 6)))
            padded.pts, padded.dts, padded.duration = packet.pts, packet.dts, packet.duration
            padded.time_base, padded.is_keyframe = packet.time_base, packet.is_keyframe
            padded.stream = stream
            out.mux_one(padded)
    with unfinished.open("ab") as file:
        left = size - file.tell()
        if left < 64:
            raise SystemExit(f"the film came out {64 - left} bytes too long")
        file.write(struct.pack(">I4s", left, b"free"))
        file.truncate(size)
    unfinished.replace(path)
