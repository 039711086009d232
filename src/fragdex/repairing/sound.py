"""Sound that says where a frame of it ends: AAC, MP3, AC-3 and E-AC-3, FLAC."""

from __future__ import annotations

from typing import Final

from fragdex.repairing.aac import MOST_BYTES, read_frame
from fragdex.repairing.syntax import Found, Syntax, Window


class Aac(Syntax):
    """AAC Low Complexity, with or without SBR and PS.

    Args:
        rate_index: samplingFrequencyIndex of the core.
        configuration: channelConfiguration.

    Attributes:
        leads: first bits that frames of the film have, as ids of elements; None: any may come.
    """

    def __init__(self, rate_index: int, configuration: int | None) -> None:
        self._rate_index, self._configuration = rate_index, configuration
        self.leads: set[int] | None = None

    def find(self, window: Window, at: int, stop: int) -> Found | None:
        """The frame that begins here."""
        data = window.take(at, min(MOST_BYTES, stop - at))
        if not data or (self.leads is not None and data[0] >> 5 not in self.leads):
            return None
        size, bits = read_frame(data, self._rate_index, self._configuration)
        self.spent += bits >> 3
        return Found(at + size) if size else None

    def starts(self, data: bytes) -> list[int]:
        """Places where an element may begin that begins frames of this film."""
        if self.leads is None:
            return super().starts(data)
        return [place for place, byte in enumerate(data) if byte >> 5 in self.leads]


_BIT_RATES: Final = {
    # kbit/s by version 1 or not, and layer (ISO/IEC 11172-3, 2.4.2.3; 13818-3, 2.4.2.3)
    (True, 1): (0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_BIT_RATES[False, 3] = _BIT_RATES[False, 2]
_SAMPLE_RATES: Final = (44100, 48000, 32000)


class MpegAudio(Syntax):
    """MPEG-1 and MPEG-2 audio, layers 1 to 3: a header of 32 bits says the size.

    Args:
        rate: samples a second, where it is known.
    """

    def __init__(self, rate: int | None) -> None:
        self._rate = rate

    def find(self, window: Window, at: int, stop: int) -> Found | None:
        """The frame that begins here."""
        head = int.from_bytes(window.take(at, 4).ljust(4, b"\0"), "big")
        version, layer = head >> 19 & 3, 4 - (head >> 17 & 3)
        rates, speed = head >> 12 & 15, head >> 10 & 3
        if head >> 21 != 0x7FF or version == 1 or layer == 4 or rates in (0, 15) or speed == 3:
            return None
        rate = _SAMPLE_RATES[speed] >> (0 if version == 3 else 1 if version == 2 else 2)
        if (self._rate is not None and rate != self._rate) or head & 3 == 2:
            return None
        bits = _BIT_RATES[version == 3, layer][rates] * 1000
        pad = head >> 9 & 1
        if layer == 1:
            size = (12 * bits // rate + pad) * 4
        else:
            size = (72 if layer == 3 and version != 3 else 144) * bits // rate + pad
        return Found(at + size) if at + size <= stop else None

    def starts(self, data: bytes) -> list[int]:
        """Places of a first byte FF."""
        return _places(data, b"\xff")


_AC3_RATES: Final = (
    *(32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640),
)


class Ac3(Syntax):
    """AC-3 and E-AC-3: a sync word and a size (ETSI TS 102 366, 5.3.1 and E.1.2).

    A sample of E-AC-3 is the independent substream with those that depend on it (F.2).
    """

    def find(self, window: Window, at: int, stop: int) -> Found | None:
        """The frame that begins here."""
        size, kind = self._frame(window, at)
        if not size or kind == 1:
            return None
        at += size
        while kind is not None:
            size, kind = self._frame(window, at)
            if not size or kind != 1:
                break
            at += size
        return Found(at) if at <= stop else None

    def _frame(self, window: Window, at: int) -> tuple[int, int | None]:
        """Bytes of a frame, 0: none; and the type of its substream, None: AC-3."""
        head = window.take(at, 6)
        if len(head) < 6 or head[:2] != b"\x0b\x77":
            return 0, None
        identity, speed = head[5] >> 3, head[4] >> 6
        if identity > 10:
            size = ((head[2] & 7) << 8 | head[3]) * 2 + 2
            return (size, head[2] >> 6) if identity <= 16 and head[2] >> 6 < 3 else (0, None)
        code = head[4] & 63
        if speed == 3 or code >= 2 * len(_AC3_RATES):
            return 0, None
        rate = _AC3_RATES[code >> 1]
        words = (2 * rate, rate * 96000 // 44100 + (code & 1), 3 * rate)[speed]
        return 2 * words, None

    def starts(self, data: bytes) -> list[int]:
        """Places of the sync word."""
        return _places(data, b"\x0b")


def _places(data: bytes, first: bytes) -> list[int]:
    places, at = [], data.find(first)
    while at >= 0:
        places.append(at)
        at = data.find(first, at + 1)
    return places
