"""Frames that show the picture before them once more, without an encoder.

An encoder looks at every macroblock to find that nothing changed, and then says so in some 30
bytes, the same for every such frame but for its number. So these bytes are asked for once, of a
picture of the same size, and written again and again. As H.264 numbers its frames (`frame_num`,
ISO/IEC 14496-10 7.4.3), those that the encoder makes afterwards are numbered anew.

This holds for streams as `encode.py` makes them: one slice a picture, one reference, output in the
order of coding (pic_order_cnt_type 2), `frame_num` of 4 bits.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, Final

_START: Final = b"\0\0\0\1"
_NON_IDR: Final = 1
_FRAME_NUMS: Final = 16
# NAL unit header, then first_mb_in_slice 0 (1 bit), slice_type 5 (00110), picture parameter set 0
# (1): frame_num begins at bit 15.
_P_SLICE: Final = 0b1001101
_SHIFT: Final = 24 - 15 - 4
_EMULATED: Final = re.compile(rb"\x00\x00(?=[\x00-\x03])")
# Coarse enough that nothing is left to be made better in the second frame.
_QP: Final = "45"
_PLAIN: Final = 3
# Brightness that any bytes become: neither near black nor near white.
_MIDDLE: Final = bytes(40 + value % 160 for value in range(256))
_TRIED: Final = 3


def _renumbered(unit: bytes, number: int) -> bytes:
    """The access unit of a P picture, with another frame_num.

    Raises:
        ValueError: it is none, or of another kind than those meant here.
    """
    if not unit.startswith(_START) or unit[4] & 31 != _NON_IDR or _START[1:] in unit[4:]:
        raise ValueError("the encoder gave another kind of picture than was asked for")
    body = bytearray(unit[4:].replace(b"\0\0\3", b"\0\0"))
    head = int.from_bytes(body[:3])
    if head >> 9 & 0x7F != _P_SLICE:
        raise ValueError("the encoder gave another kind of slice than was asked for")
    head = head & ~(0xF << _SHIFT) | number % _FRAME_NUMS << _SHIFT
    body[:3] = head.to_bytes(3)
    return _START + _EMULATED.sub(b"\0\0\3", bytes(body))


class Numbered:
    """Numbers the pictures of a stream, repeated ones among them.

    Attributes:
        unit: the access unit that repeats, of `repeat_unit`.
    """

    def __init__(self, unit: bytes | None = None) -> None:
        self.unit = unit
        self._last = 0
        self._added = False

    def begin(self) -> None:
        """An IDR picture: its number is 0."""
        self._last, self._added = 0, False

    def next(self, unit: Any) -> bytes | None:
        """Another picture of the encoder's, renumbered; None where its number is right."""
        self._last += 1
        return _renumbered(bytes(unit), self._last) if self._added else None

    def repeat(self) -> bytes:
        """One more frame of the same picture."""
        if self.unit is None:
            raise ValueError("frames are missing, and there is nothing to repeat")
        self._last += 1
        self._added = True
        return _renumbered(self.unit, self._last)


@cache
def repeat_unit(
    width: int, height: int, encoder: Callable[[int, int, dict[str, str]], Any]
) -> bytes | None:
    """The access unit that repeats any picture of a size; None where it cannot be made.

    It is made of a plain picture, and tried on one that is nowhere like the place beside: what
    leaves that as it is, several times over, moves nothing, adds nothing and paints nothing.

    Args:
        width, height: even.
        encoder: makes the encoder of a stream, with these options of x264 changed.
    """
    plain = bytes([128]) * (width * height * 3 // 2)
    context = encoder(width, height, {"crf": "", "qp": _QP})
    packets = []
    for number, samples in enumerate([plain] * _PLAIN + [_noise(width, height)]):
        picture = _picture(width, height, samples)
        picture.pts, picture.time_base = number, Fraction(1, 30)
        picture.pict_type = 1 if number in (0, _PLAIN) else 0
        packets += context.encode(picture)
    units = [bytes(packet) for packet in packets + context.encode(None)]
    repeat, other = units[_PLAIN - 1], units[_PLAIN]
    try:
        numbered = Numbered(repeat)
        stream = [other, *(numbered.repeat() for _ in range(_TRIED))]
    except ValueError:
        return None
    return repeat if _is_still(context, stream) else None


def _noise(width: int, height: int) -> bytes:
    """Samples of a picture in blocks that have nothing in common with each other."""
    across = width // 16 + 1
    blocks = hashlib.shake_256(b"noise").digest(across * (height // 32 + 1)).translate(_MIDDLE)
    lines = []
    for at in range(0, len(blocks), across):
        line = b"".join(bytes([value]) * 16 for value in blocks[at : at + across])
        lines.append(line[:width] * 48)
    return b"".join(lines)


def _picture(width: int, height: int, samples: bytes) -> Any:
    """A picture in 4:2:0 of samples plane by plane."""
    import av

    picture: Any = av.VideoFrame(width, height, "yuv420p")
    at = 0
    for plane in picture.planes:
        stop = at + plane.width * plane.height
        rest = bytes(plane.line_size - plane.width)
        lines = (samples[i : i + plane.width] + rest for i in range(at, stop, plane.width))
        plane.update(b"".join(lines))
        at = stop
    return picture


def _is_still(context: Any, stream: list[bytes]) -> bool:
    """Whether a stream of one picture and what may repeat it shows nothing else."""
    import av

    decoder = av.CodecContext.create("h264", "r")
    decoder.thread_count = 1
    decoder.extradata = context.extradata
    decoder.options = {"err_detect": "explode"}
    shown = []
    try:
        for unit in stream:
            packet = av.Packet(len(unit))  # with the padding that decoders read over the end
            packet.update(unit)
            shown += decoder.decode(packet)
        shown += decoder.decode(None)
    except av.error.FFmpegError:
        return False
    pictures = [[bytes(plane) for plane in frame.planes] for frame in shown]
    return len(pictures) == len(stream) and all(one == pictures[0] for one in pictures)
