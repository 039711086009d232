"""One pass over the packets of a file: what can be copied, and what must be encoded.

Copied is what browsers play from an MP4 through MediaSource (`playable.py`); all else is encoded.

A copied video must let players start anywhere: every segment begins at a picture that needs none
before it and none of the pictures after it does (SAP type 1 or 2). For AVC that is an IDR picture
(ISO/IEC 14496-10, 7.4.1.2.4); what a muxer wrongly marked sync loses the mark. Where IDR
pictures are more than 10 s apart, the track is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import av
import av.error
from av.container import InputContainer

from fragdex.errors import Unprocessable
from fragdex.indexing.access import Access, CannotTell, SampleBytes, access_of
from fragdex.transcode.playable import why_not_begun, why_not_played
from fragdex.transcode.probe import LONGEST_SECONDS, codec_of, streams_of

LONGEST_GAP: Final = 10.0
"""Seconds between access points above which a video is encoded again."""


@dataclass(slots=True)
class StreamSurvey:
    """What the packets of a stream told.

    Attributes:
        packets, bytes: how many, and of what size.
        start, end: presentation times, seconds: of the first packet, and where the last one ends.
        reasons: why it cannot be copied; empty where it can.
    """

    packets: int = 0
    bytes: int = 0
    start: float | None = None
    end: float | None = None
    reasons: list[str] = field(default_factory=list)

    @property
    def copied(self) -> bool:
        """Whether its packets go into the track as they are."""
        return not self.reasons


def random_access(stream: Any) -> Callable[[Any], bool]:
    """A function that tells whether a packet is an access point that needs nothing before it."""
    if codec_of(stream) != "h264":
        return lambda packet: bool(packet.is_keyframe)
    extra = stream.codec_context.extradata
    # avcC (ISO/IEC 14496-15, 5.3.3): version 1, then lengthSizeMinusOne in the fifth byte
    size = (extra[4] & 3) + 1 if extra and len(extra) > 4 and extra[0] == 1 else 0

    def is_idr(packet: Any) -> bool:
        if not packet.is_keyframe:
            return False
        try:
            access = access_of(SampleBytes.of(memoryview(packet)), "avc1", None, size)
        except CannotTell:
            return False
        return access is Access.CLOSED

    return is_idr


def packets(container: InputContainer, streams: list[Any]) -> Iterator[Any]:
    """Packets of the streams to the end of the file, or to where its damage makes it end."""
    demuxed = container.demux(*streams)
    while True:
        try:
            packet = next(demuxed)
        except (StopIteration, av.error.EOFError, av.error.InvalidDataError):
            return
        if packet.size:
            yield packet


def survey(
    container: InputContainer, progress: Callable[[int], None] = lambda _: None
) -> dict[int, StreamSurvey]:
    """Read every packet once; returns what was found by stream index.

    Args:
        progress: called with the bytes of each packet; may raise to end it all.

    Raises:
        Unprocessable: no packets, encrypted, or times beyond reason.
    """
    streams = streams_of(container)
    surveys = {stream.index: StreamSurvey(reasons=_why_not(stream)) for stream in streams}
    looks = {stream.index: _Look(stream, surveys[stream.index]) for stream in streams}
    for packet in packets(container, streams):
        looks[packet.stream_index].see(packet)
        progress(packet.size)
    if not any(one.packets for one in surveys.values()):
        raise Unprocessable("the file holds no media data")
    for look in looks.values():
        look.end()
    return surveys


def _why_not(stream: Any) -> list[str]:
    return why_not_played(codec_of(stream), stream.codec_context)


class _Look:
    """Looks at the packets of one stream."""

    def __init__(self, stream: Any, result: StreamSurvey) -> None:
        self.result = result
        self.stream = stream
        self.video = stream.type == "video"
        self.base: Fraction = stream.time_base or Fraction(1, 1000)
        self.access = random_access(stream)
        self.last_dts: int | None = None
        self.last_access: float | None = None

    def see(self, packet: Any) -> None:
        result = self.result
        if packet.has_sidedata("encryption_info") or packet.has_sidedata("encryption_init_info"):
            raise Unprocessable("the file is encrypted")
        if packet.has_sidedata("new_extradata"):
            self.refuse("its parameters change on the way")
        if not result.packets:
            for reason in why_not_begun(codec_of(self.stream), self.stream.codec_context, packet):
                self.refuse(reason)
        result.packets += 1
        result.bytes += packet.size
        if packet.pts is None or packet.dts is None:
            self.refuse("its packets have no times")
            if packet.pts is None:
                return
        else:
            if packet.pts < packet.dts or (
                self.last_dts is not None and packet.dts <= self.last_dts
            ):
                self.refuse("its times are out of order")
            self.last_dts = packet.dts
        time = float(packet.pts * self.base)
        if abs(time) > LONGEST_SECONDS:
            raise Unprocessable(f"its times reach beyond {LONGEST_SECONDS // 3600} hours")
        end = time + float((packet.duration or 0) * self.base)
        result.start = time if result.start is None else min(result.start, time)
        result.end = end if result.end is None else max(result.end, end)
        if self.video and not result.reasons:
            self.look_for_access(packet, time)

    def look_for_access(self, packet: Any, time: float) -> None:
        if self.access(packet):
            if self.last_access is not None and time - self.last_access > LONGEST_GAP:
                self.refuse("its access points are too far apart")
            self.last_access = time
        elif self.last_access is None and packet.is_keyframe:
            self.refuse("it begins with a picture that needs others before it")

    def end(self) -> None:
        if not self.video or not self.result.packets or self.result.reasons:
            return
        if self.last_access is None:
            self.refuse("it has no access point")
        elif self.result.end is not None and self.result.end - self.last_access > LONGEST_GAP:
            self.refuse("its access points are too far apart")

    def refuse(self, reason: str) -> None:
        if reason not in self.result.reasons:
            self.result.reasons.append(reason)
