"""Pictures that no other picture of a run refers to: unless they are wanted, they are skipped.

A picture that is skipped must not change the pixels of any other. Where a sample has more that
later pictures need (parameter sets, film grain, a state of the decoder), it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fragdex.indexing.access import MOST_UNITS, SEI_BYTES, family_of, leb128, sei_messages
from fragdex.indexing.codecs import BitReader, Missing
from fragdex.repairing import av1
from fragdex.repairing.vp9 import superframe

_FILM_GRAIN: Final = 19
"""payloadType of film grain characteristics, which may hold for later pictures (H.274, 8.5)."""
_MOST_OBUS: Final = 64
_HEAD_BYTES: Final = 64
_KEPT: Final = -1


class References:
    """Which samples of a run others refer to.

    Args:
        data: bytes of the samples, in decode order; None or empty: there is nothing to decode.

    AVC: nal_ref_idc is 0 (ISO/IEC 14496-10, 7.4.1). HEVC: sub-layer non-reference pictures of the
    highest sub-layer of the run (ISO/IEC 23008-2, 7.4.2.2). AV1: refresh_frame_flags is 0, so
    that nothing of a frame is kept (AV1 bitstream, 7.20). VP9: the same, where the frame after it
    is error resilient or a key frame: any other takes probabilities and motion from the frame
    decoded before it, which may be referred to by nothing (VP9 bitstream, 6.1.2, 6.4.22).
    """

    def __init__(self, data: Sequence[bytes | None], format: str, length_size: int | None) -> None:
        self._data = data
        self._size = 4 if length_size is None else length_size
        rules: dict[str | None, Callable[[bytes, int], bool]] = {
            "avc": self._avc, "hevc": self._hevc, "av01": self._av1, "vp09": self._vp9,
        }  # fmt: skip
        self._rule = rules.get(family_of(format) or format)
        self._layers: list[int] | None = None
        self._sequences: list[av1.Sequence | None] | None = None

    def may_be_skipped(self, place: int) -> bool:
        """Whether the pixels of all other pictures are the same if a sample is not decoded.

        Of damage: False.
        """
        data = self._data[place]
        if self._rule is None or not data:
            return False
        try:
            return self._rule(data, place)
        except (Missing, IndexError):
            return False

    def _avc(self, data: bytes, place: int) -> bool:
        slices = 0
        for head, unit in _units(data, self._size):
            kind = head & 31
            if 1 <= kind <= 5:
                if head & 0x60:
                    return False
                slices += 1
            elif kind in (7, 8, 10, 11, 13, 15):
                return False  # parameter sets that later samples need; ends of sequences
            elif kind == 6 and _has_film_grain(unit[1:]):
                return False
        return slices > 0

    def _hevc(self, data: bytes, place: int) -> bool:
        if _hevc_layer(data, self._size) == _KEPT:
            return False
        if self._layers is None:
            self._layers = [_temporal_id(one or b"", self._size) for one in self._data]
        return self._layers[place] == max(self._layers)

    def _av1(self, data: bytes, place: int) -> bool:
        if self._sequences is None:
            self._sequences = []
            for one in self._data:
                last = self._sequences[-1] if self._sequences else None
                self._sequences.append(_sequence_in(one or b"") or last)
        sequence = self._sequences[place]
        if sequence is None or sequence.reduced or sequence.timed:
            return False
        frames = 0
        for kind, begin, stop in _obus(data):
            if kind in (av1.HEADER, av1.FRAME):
                if not _refreshes_nothing(data[begin : min(stop, begin + _HEAD_BYTES)], sequence):
                    return False
                frames += 1
            elif kind == av1.SEQUENCE:
                return False
        return frames > 0

    def _vp9(self, data: bytes, place: int) -> bool:
        after = self._data[place + 1]
        return bool(after) and _vp9_frame(data).keeps_nothing and _vp9_frame(after or b"").resets


def _units(data: bytes, size: int) -> list[tuple[int, bytes]]:
    """The NAL units of a sample with the first byte of each."""
    units: list[tuple[int, bytes]] = []
    at, end = 0, len(data)
    while at < end:
        length = int.from_bytes(data[at : at + size], "big")
        at += size
        if not size or not length or at + length > end or len(units) == MOST_UNITS:
            raise Missing
        units.append((data[at], data[at : at + min(length, SEI_BYTES)]))
        at += length
    return units


def _has_film_grain(sei: bytes) -> bool:
    return any(kind == _FILM_GRAIN for kind, _ in sei_messages(sei))


def _hevc_layer(data: bytes, size: int) -> int:
    """TemporalId of a sub-layer non-reference picture; -1: it is another, or others need more."""
    layer = _KEPT
    for head, unit in _units(data, size):
        kind = head >> 1 & 63
        if kind < 32:
            # TRAIL_N, TSA_N, STSA_N, RADL_N, RASL_N and those reserved: table 7-1.
            if kind > 14 or kind % 2:
                return _KEPT
            layer = unit[1] & 7
        elif kind in (32, 33, 34, 36, 37):
            return _KEPT  # parameter sets; ends of sequences
        elif kind in (39, 40) and _has_film_grain(unit[2:]):
            return _KEPT
    return layer


def _temporal_id(data: bytes, size: int) -> int:
    """TemporalId of a picture (nuh_temporal_id_plus1); of damage the highest."""
    try:
        for head, unit in _units(data, size):
            if head >> 1 & 63 < 32:
                return unit[1] & 7
    except (Missing, IndexError):
        pass
    return 0 if not data else 8


def _obus(data: bytes) -> list[tuple[int, int, int]]:
    """Kind of each OBU of a temporal unit, and where its payload begins and stops."""
    obus: list[tuple[int, int, int]] = []
    at = 0
    while at < len(data):
        head = data[at]
        at += 2 if head & 4 else 1
        size, stop = 0, len(data)
        if head & 2:
            size, used = leb128(data[at : at + 8])
            if not used:
                raise Missing
            at += used
            stop = at + size
        if head & 0x80 or stop > len(data) or len(obus) == _MOST_OBUS:
            raise Missing
        obus.append((head >> 3 & 15, at, stop))
        at = stop
    return obus


def _sequence_in(data: bytes) -> av1.Sequence | None:
    """The last sequence header of a temporal unit."""
    sequence = None
    try:
        for kind, begin, stop in _obus(data):
            if kind == av1.SEQUENCE:
                sequence = av1.sequence_of(data[begin:stop])
    except (Missing, IndexError):
        return None
    return sequence


def _refreshes_nothing(head: bytes, sequence: av1.Sequence) -> bool:
    """Whether refresh_frame_flags of a frame header is 0 (AV1 bitstream, 5.9.2)."""
    bits = BitReader(head)
    if bits.take(1):
        return False  # a frame is shown again: nothing is decoded, or all of it is kept
    kind, shown = bits.take(2), bits.take(1)
    if not shown:
        bits.take(1)
    if kind == av1.SWITCH or (kind == av1.KEY and shown):
        return False
    resilient = bits.take(1)
    bits.take(1)
    tools = bits.take(1) if sequence.tools == av1.SELECT else sequence.tools
    if tools and sequence.integer_motion == av1.SELECT:
        bits.take(1)
    bits.take(sequence.frame_id_bits + 1 + sequence.order_bits)
    if kind not in (av1.KEY, av1.INTRA_ONLY) and not resilient:
        bits.take(3)
    return not bits.take(8)


class _Vp9Frame(NamedTuple):
    """What a frame header says (VP9 bitstream, 6.2).

    Attributes:
        keeps_nothing: error_resilient_mode is 1, so that no probabilities are kept, and
            refresh_frame_flags is 0.
        resets: nothing but what it refers to decides its pixels.
    """

    keeps_nothing: bool
    resets: bool


def _vp9_frame(data: bytes) -> _Vp9Frame:
    """The first frame of a sample."""
    several = len(superframe(data) or ()) > 1
    bits = BitReader(data[:16])
    if bits.take(2) != 2:
        raise Missing
    profile = bits.take(1) + 2 * bits.take(1)
    if profile == 3:
        bits.take(1)
    if bits.take(1):
        return _Vp9Frame(False, False)  # a frame is shown again
    if not bits.take(1):
        return _Vp9Frame(False, True)
    shown, resilient = bits.take(1), bits.take(1)
    if not shown or not resilient or several:
        return _Vp9Frame(False, bool(resilient))
    return _Vp9Frame(not bits.take(8), True)
