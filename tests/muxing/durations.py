"""How long a progressive file presents media, read with `struct` and nothing of the library."""

from __future__ import annotations

from fractions import Fraction

from laws.reference import Box, boxes, full, inside, numbers


def presented(data: bytes) -> Fraction:
    """Seconds from where the first track begins to where the last one ends (8.6.6)."""
    (moov,) = (box for box in boxes(data, 0, len(data)) if box.type == b"moov")
    (mvhd,) = inside(data, moov, "mvhd")
    version, _, at = full(data, mvhd)
    (scale,) = numbers(data, at + (16 if version else 8), 1)
    (length,) = numbers(data, at + (20 if version else 12), 1, "Q" if version else "I")
    starts, ends = [], []
    for trak in inside(data, moov, "trak"):
        begin, end = track(data, trak)
        starts.append(begin)
        ends.append(end)
    # The header says the same of the whole.
    assert length == max(ends), (length, ends)
    return Fraction(max(ends) - min(starts), scale)


def track(data: bytes, trak: Box) -> tuple[int, int]:
    """Where a track begins and ends, in ticks of the movie."""
    (elst,) = inside(data, trak, "edts/elst")
    version, _, at = full(data, elst)
    (count,) = numbers(data, at, 1)
    edits = [
        numbers(data, at + 4 + n * (20 if version else 12), 2, "q" if version else "i")
        for n in range(count)
    ]
    (tkhd,) = inside(data, trak, "tkhd")
    version, _, at = full(data, tkhd)
    (length,) = numbers(data, at + (24 if version else 16), 1, "Q" if version else "I")
    end = sum(duration for duration, _ in edits)
    assert length == end
    begin = 0
    for duration, media_time in edits:
        if media_time != -1:
            break
        begin += duration
    return begin, end
