"""The fragmented file of one track, and holes in time that no sample can last over.

A muxer writes how long each sample lasts, in 31 bits: a hole of hours makes it write wrong times
for all that follows. So it never sees such a hole: times behind one are moved to at most 2 s behind
what is before it, a fragment begins there, and when the file is complete, the decode times (tfdt)
of the fragments behind are set right. Shorter holes stay in the duration of the sample before
them, over which players play on.
"""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import av

import fragdex
from fragdex import ByteRange, open_source, parse, parse_box
from fragdex.boxes import build
from fragdex.errors import Unprocessable
from fragdex.formats.clip_movie import with_next_id
from fragdex.formats.embed import walked

__all__ = ["MOST_HOLE_SECONDS", "SEGMENT_SECONDS", "TrackFile", "hole_after"]

SEGMENT_SECONDS: Final = 2
MOST_HOLE_SECONDS: Final = 3600
"""Longer holes are left out between fragments; so long a sample may last."""
_LEFT: Final = Fraction(SEGMENT_SECONDS)
# Ticks.
_ROUNDING: Final = 2
# Half of what a duration can be: another sample's own length fits beside it.
_MOST_TICKS: Final = 1 << 30


def hole_after(end: Fraction, time: Fraction, left: Fraction = _LEFT) -> Fraction:
    """Seconds of a hole that have to be left out; 0 where a sample can last over it.

    Args:
        end, time: where what is before ends, and where what follows begins, seconds.
        left: seconds of the hole that stay: where no key frame does it, so many begin a fragment.

    >>> hole_after(Fraction(10), Fraction(20)), hole_after(Fraction(10), Fraction(9010))
    (Fraction(0, 1), Fraction(8998, 1))
    """
    hole = time - end
    return hole - left if hole > MOST_HOLE_SECONDS else Fraction(0)


class TrackFile:
    """A fragmented file of one track, opened when its first packet is there.

    Args:
        path, track_id: of it.
        every_key: whether each key frame begins a fragment, however near the last one is.

    Attributes:
        path: where it lies.
        stream: of the muxer; set by whoever makes the file.
        packets: how many are in it.
    """

    def __init__(self, path: Path, track_id: int, *, every_key: bool = False) -> None:
        self.path = path
        self.every_key = every_key
        self.track_id = track_id
        self.container = av.open(
            str(path), "w", format="mp4", options={"use_stream_ids_as_track_ids": "1"}
        )
        self.stream: Any = None
        self.packets = 0
        self._end: Fraction | None = None
        self._left_out = Fraction(0)
        # Time as the muxer sees it, and what has been left out before it, seconds.
        self._leaps: list[tuple[Fraction, Fraction]] = []

    def leap(self, time: Fraction, left_out: Fraction) -> None:
        """Say that what is shown from a time on, as the muxer sees it, is so much later."""
        self._leaps.append((time, left_out))

    def mux(self, packet: Any) -> None:
        """Take the next packet, in decode order; long holes of sound are left out here."""
        if not self.packets:
            self._begin(packet)
        self.packets += 1
        if self.stream.type == "audio":
            self._close_up(packet)
        base = Fraction(packet.time_base or self.stream.time_base)
        most = min(Fraction(MOST_HOLE_SECONDS), _MOST_TICKS * Fraction(self.stream.time_base))
        if (packet.duration or 0) * base > most:
            packet.duration = int(most / base)
        packet.stream = self.stream
        self.container.mux_one(packet)

    def close(self) -> None:
        """Complete the file.

        Raises:
            Unprocessable: a hole in it is not between two fragments.
        """
        self.container.close()
        _set_next_id(self.path)
        if self._leaps:
            _set_times(self.path, self._leaps)

    def _begin(self, packet: Any) -> None:
        # delay_moov: the header is written with the first fragment, when parameters that come
        # with the first packet and the edit list are known.
        flags = ["delay_moov", "default_base_moof", "skip_trailer"]
        options = self.container.options
        duration = str(SEGMENT_SECONDS * 1_000_000)
        if self.stream.type == "video":
            flags.append("frag_keyframe")
            if not self.every_key:
                options["min_frag_duration"] = duration
        else:
            options["frag_duration"] = duration
        if packet.pts >= 0:
            flags.append("frag_discont")
        options["movflags"] = "+".join(flags)
        options["avoid_negative_ts"] = "disabled"
        self.container.start_encoding()  # which decides the time base

    def _close_up(self, packet: Any) -> None:
        base = Fraction(packet.time_base or self.stream.time_base)
        time = packet.dts * base
        if self._end is not None:
            hole = hole_after(self._end, time)
            if hole:
                self._left_out += int(hole / base) * base
                self.leap(time - self._left_out, self._left_out)
        # how long a sample claims to last says nothing of how long its sound is
        self._end = time + min((packet.duration or 0) * base, _LEFT)
        ticks = int(self._left_out / base)
        packet.pts, packet.dts = packet.pts - ticks, packet.dts - ticks


def _set_next_id(path: Path) -> None:
    """Set next_track_ID above the track_ID (8.2.2): the muxer counts its streams."""
    with open_source(path) as source, path.open("r+b") as file:
        size = source.size or 0
        place = next((part for code, part in walked(source.read, 0, size) if code == "moov"), None)
        if place is None:
            return  # nothing was written
        moov = parse_box(source.read(place))
        mvhd, made = moov.find("mvhd"), with_next_id(moov).find("mvhd")
        if mvhd is not None and made is not None and made is not mvhd:
            file.seek(place.start + mvhd.offset)
            file.write(build(made))


def _set_times(path: Path, leaps: list[tuple[Fraction, Fraction]]) -> None:
    """Set the decode times of fragments behind what was left out (ISO/IEC 14496-12, 8.8.12)."""
    with open_source(path) as source, path.open("r+b") as file:
        (track,) = fragdex.index(source, exact=True).tracks
        table, left = track.fragments, list(leaps)
        later = 0
        for moof, first in zip(table.moof_offset.tolist(), table.cts_min.tolist(), strict=True):
            shown = track.presentation(first).exact + Fraction(_ROUNDING, track.timescale)
            while left and shown >= left[0][0]:
                later = round(left.pop(0)[1] * track.timescale)
            if later:
                _add(source, file, moof, later)
        if left:
            raise Unprocessable("a hole in the times of the file could not be kept")


def _add(source: Any, file: Any, moof: int, ticks: int) -> None:
    size = int.from_bytes(source.read(ByteRange(moof, moof + 4)), "big")
    (box,) = parse(source.read(ByteRange(moof, moof + size)))
    tfdt = box.find("traf/tfdt")
    assert tfdt is not None  # the muxer's own
    width = 8 if tfdt.fields["version"] else 4
    time = tfdt.fields["baseMediaDecodeTime"] + ticks
    file.seek(moof + tfdt.offset + tfdt.header_size + 4, os.SEEK_SET)
    file.write(time.to_bytes(width, "big"))
