"""Temporal units of AV1 (AV1 bitstream specification, 5.3 to 5.9; AV1 in ISOBMFF, 2.4).

A sample ends with the frame that is shown. Its OBUs prove themselves by their headers and sizes,
by a sequence header that is the file's, and by the order hint of their frames.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fragdex.indexing.access import leb128
from fragdex.indexing.codecs import BitReader, Missing
from fragdex.repairing.syntax import (
    FoundSample,
    Kind,
    NativeSyntax,
    Syntax,
    Window,
    flags_table,
    places_of,
    units_table,
)

SEQUENCE, DELIMITER, HEADER, TILES, METADATA, FRAME, COPY = range(1, 8)
_KNOWN: Final = (SEQUENCE, DELIMITER, HEADER, TILES, METADATA, FRAME, COPY)
KEY, INTRA_ONLY, SWITCH = 0, 2, 3
METADATA_TYPES: Final = range(1, 6)
"""metadata_type: light levels, colour volume, scalability, ITU-T T.35, timecode (6.7.1)."""
MOST_UNITS: Final = 256
HEAD_BYTES: Final = 64
MOST_KNOWN: Final = 64
"""Sequence headers that say the same in other bytes."""
MOST_UNIT_BYTES: Final = 1 << 27
SELECT: Final = 2
NEAR: Final = 8
FAR: Final = 64
"""Places in the order of output that a picture which is shown, or hidden, may be ahead."""


class Sequence(NamedTuple):
    """A sequence_header_obu (5.5), as far as frame headers need it."""

    still: bool
    reduced: bool
    frame_id_bits: int
    tools: int
    integer_motion: int
    order_bits: int
    size: tuple[int, int]
    timed: bool


def sequence_of(data: bytes) -> Sequence:
    """A sequence header, without the header of its OBU."""
    bits = BitReader(data)
    bits.take(3)
    still, reduced = bool(bits.take(1)), bool(bits.take(1))
    if reduced:
        return Sequence(still, True, 0, SELECT, SELECT, 0, (0, 0), False)
    model = 0
    if bits.take(1):
        bits.take(64)
        if bits.take(1):
            while not bits.take(1):
                model += 1
                if model > 32:
                    raise Missing
            bits.take(model)
        model = bits.take(1)
        if model:
            model = bits.take(5) + 1
            bits.take(42)
    delays = bits.take(1)
    for _ in range(bits.take(5) + 1):
        bits.take(12)
        if bits.take(5) > 7:
            bits.take(1)
        if model and bits.take(1):
            bits.take(2 * model + 1)
        if delays and bits.take(1):
            bits.take(4)
    wide, high = bits.take(4) + 1, bits.take(4) + 1
    size = (bits.take(wide) + 1, bits.take(high) + 1)
    ids = 0
    if bits.take(1):
        delta = bits.take(4) + 2
        ids = delta + bits.take(3) + 1
    bits.take(3)
    bits.take(4)
    hints = bits.take(1)
    if hints:
        bits.take(2)
    tools = SELECT if bits.take(1) else bits.take(1)
    motion = SELECT
    if tools:
        motion = SELECT if bits.take(1) else bits.take(1)
    order = bits.take(3) + 1 if hints else 0
    return Sequence(still, False, ids, tools, motion, order, size, bool(model))


class _Obu(NamedTuple):
    kind: int
    begin: int
    stop: int


class _Frame(NamedTuple):
    """What a frame header says.

    Attributes:
        repeats: whether a frame that is there is shown.
        key, shown: whether it is a key frame, and is shown.
        hint: its place in the order of output; -1: not known.
    """

    repeats: bool
    key: bool
    shown: bool
    hint: int


class Av1(Syntax):
    """AV1 in samples of MP4.

    Args:
        config: the OBUs of the sample entry (configOBUs), or nothing.
    """

    remembers = True
    ends_alike = large_leads = True  # frames that are not shown are in front of the one that is

    def __init__(self, config: bytes = b"") -> None:
        self.sequence: Sequence | None = None
        self._shown: int | None = None
        self._coming: int | None = None  # where a key frame that was seen ahead begins again
        self._is_even = True
        self._kinds: set[int] = set()
        self._far = 0
        self._has_leads = self._has_delimiters = False  # as the good file has them
        self._raw: dict[bytes, None] = {}
        if len(config) > 2 and config[0] >> 3 & 15 == SEQUENCE:
            size, used = _leb128(config[1:9])
            self._is_known(config[1 + used : 1 + used + size])

    def _is_known(self, data: bytes) -> bool:
        """Whether a sequence header is that of the file; the first one is.

        Of a file with a good one, those are known that the good one has.
        """
        if data in self._raw or self.learned:
            return data in self._raw
        try:
            sequence = sequence_of(data)
        except Missing:
            return False
        self.sequence = self.sequence or sequence
        if sequence != self.sequence:
            return False
        if len(self._raw) < MOST_KNOWN:
            self._raw[data] = None
        return True

    def lent(self) -> NativeSyntax | None:
        """As `Syntax.lent`."""
        sequence = self.sequence
        if sequence is None:
            return None
        shown, coming = (-1 if one is None else one for one in (self._shown, self._coming))
        marks = (self.holes, shown, coming, self._is_even)
        learned = (self.learned, self._far, sequence.reduced, sequence.frame_id_bits)
        tools = (sequence.tools, sequence.integer_motion, sequence.order_bits, sequence.timed)
        leads = (self._may_have_leads, self._has_delimiters)
        tables = (units_table(self._raw), flags_table(self._kinds, 9), flags_table(_FIRST))
        return NativeSyntax(Kind.AV1, [*map(int, marks + learned + tools + leads)], tables)

    def resume(self, state: tuple[int, int], spent: int) -> None:
        """As `Syntax.resume`."""
        self._shown, self._coming = (one if one >= 0 else None for one in state)

    def find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        """The temporal unit that begins here."""
        known = self.sequence
        sample = self._find(window, at, stop)
        if sample is None and known is None:
            self.sequence = None  # what looks like a sequence header may be bytes of anything
            self._raw.clear()
        return sample

    def _find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        sync = sequenced = open_header = before = False
        start, hint = at, -1
        for _ in range(MOST_UNITS):
            obu = _obu(window, at, stop)
            if obu is None or obu.stop - start > self.most:
                return None
            head = window.take(obu.begin, min(obu.stop - obu.begin, HEAD_BYTES))
            at = obu.stop
            if obu.kind == DELIMITER:
                if obu.begin != obu.stop or at - start > 2:
                    return None
            elif obu.kind == SEQUENCE:
                whole = window.take(obu.begin, min(obu.stop - obu.begin, 4096))
                if not self._is_known(whole) or before:
                    return None
                sequenced = True
            elif obu.kind == METADATA:
                before = True
                if not head or head[0] not in METADATA_TYPES:
                    return None
            elif obu.kind in (HEADER, FRAME, COPY):
                frame = self._frame(head)
                if self.learned and _kind_of(head) not in self._kinds:
                    return None
                if frame is None or (obu.kind == FRAME and frame.repeats):
                    return None
                if frame.key and frame.shown and not sequenced:
                    return None  # a sync sample has a sequence header in front
                begins = frame.hint < 0 or (frame.key and sequenced)
                if not begins and not self._is_near(frame):
                    return None
                sync = sync or (sequenced and frame.key and frame.shown)
                if frame.shown:
                    hint = frame.hint
                if frame.shown and (obu.kind == FRAME or frame.repeats):
                    return self._found(at, sync, hint)
                open_header = frame.shown
            elif obu.kind == TILES and open_header:
                following = _obu(window, at, stop)
                if following is None or following.kind != TILES:
                    return self._found(at, sync, hint)
        return None

    def _found(self, at: int, sync: bool, hint: int) -> FoundSample:
        if sync:
            self._coming = hint if hint >= 0 else None
        return FoundSample(at, sync, head=(hint,))

    def study(self, window: Window, at: int, sample: FoundSample) -> None:
        """Which frames there are, what is in front of them, and how their order continues."""
        self._is_even = self._is_even and self._is_next(sample)
        begin = at
        while at < sample.stop and (obu := _obu(window, at, sample.stop)) is not None:
            head = window.take(obu.begin, min(obu.stop - obu.begin, HEAD_BYTES))
            self._has_delimiters = self._has_delimiters or obu.kind == DELIMITER
            frame = self._frame(head) if obu.kind in (HEADER, FRAME, COPY) else None
            if at == begin and not sample.sync:
                self._has_leads = self._has_leads or frame is None or not frame.shown
            if obu.kind in (HEADER, FRAME) and frame is not None:
                self._kinds.add(_kind_of(head))
                if not frame.shown and frame.hint >= 0 and self._shown is not None:
                    self._far = max(self._far, self._ahead(frame.hint))
            at = obu.stop

    def _is_next(self, sample: FoundSample) -> bool:
        hint = sample.head[0] if sample.head is not None else -1
        if hint < 0 or sample.sync or self._shown is None or self.sequence is None:
            return True
        return hint == self._shown + 1 & (1 << self.sequence.order_bits) - 1

    def may_follow(self, sample: FoundSample) -> bool:
        """Whether it has the next place in the order of output, where a good file leaves none."""
        return not self._is_even or self._is_next(sample)

    def accept(self, sample: FoundSample) -> FoundSample:
        """Count the pictures that are shown."""
        assert sample.head is not None
        hint = sample.head[0]
        if sample.sync:
            self._coming = None
        if hint >= 0 or self._shown is not None:
            self._shown = hint if hint >= 0 else (self._shown or 0) + 1
        return sample._replace(head=None)

    def is_whole(self, window: Window, at: int, sample: FoundSample) -> bool:
        """Whether it begins with what only begins samples.

        Hidden frames may be in front of the one that is shown, but where a good file has none.
        """
        head = window.take(at, 1)
        kind = head[0] >> 3 & 15 if head else 0
        if kind == SEQUENCE:
            return not self._has_delimiters
        return kind == DELIMITER or not self._may_have_leads

    def may_begin(self, window: Window, at: int) -> bool:
        """As `Syntax.may_begin`: the header of an OBU."""
        obu = _obu(window, at, at + MOST_UNIT_BYTES)
        return obu is not None and obu.kind != TILES and obu.stop > window.stop

    @property
    def _may_have_leads(self) -> bool:
        """Whether the first frame of a sample may be another than the one that is shown."""
        return self._has_leads or not self.learned

    def interrupted(self) -> None:
        """The next picture may be any."""
        self._shown = self._coming = None

    def _is_near(self, frame: _Frame) -> bool:
        """Whether a frame is one that may come next in the order of output (7.8)."""
        if self._shown is None:
            return True
        most = NEAR + (0 if frame.shown else self._far if self.learned else FAR)
        if 0 < self._ahead(frame.hint) <= most:
            return True
        return self._coming is not None and 0 < self._ahead(frame.hint, self._coming) <= most

    def _ahead(self, hint: int, of: int | None = None) -> int:
        """Places in the order of output from another picture, or the last that was shown."""
        shown = self._shown if of is None else of
        assert self.sequence is not None
        assert shown is not None
        return hint - shown & (1 << self.sequence.order_bits) - 1

    def _frame(self, head: bytes) -> _Frame | None:
        """The beginning of a frame header (5.9.2)."""
        sequence = self.sequence
        if sequence is None:
            return None
        if sequence.reduced:
            return _Frame(False, True, True, -1)
        bits = BitReader(head)
        try:
            if bits.take(1):
                bits.take(3)
                # trailing bits: a one and zeros (5.3.4), where nothing else is said
                if not sequence.frame_id_bits and bits.left == 4 and bits.take(4) != 8:
                    return None
                return _Frame(True, False, True, -1) if len(head) < 4 else None
            kind, shown = bits.take(2), bool(bits.take(1))
            if not sequence.order_bits or sequence.timed:
                return _Frame(False, kind == KEY, shown, -1)
            if not shown:
                bits.take(1)
            if kind != SWITCH and not (kind == KEY and shown):
                bits.take(1)
            bits.take(1)
            tools = bits.take(1) if sequence.tools == SELECT else sequence.tools
            if tools and sequence.integer_motion == SELECT:
                bits.take(1)
            bits.take(sequence.frame_id_bits)
            if kind != SWITCH:
                bits.take(1)
            return _Frame(False, kind == KEY, shown, bits.take(sequence.order_bits))
        except Missing:
            return None

    def starts(self, data: bytes) -> list[int]:
        """Places where the header of an OBU with a size stands."""
        return places_of(data, _FIRST)


_FIRST: Final = frozenset(kind << 3 | 2 for kind in (SEQUENCE, DELIMITER, HEADER, METADATA, FRAME))


def _kind_of(head: bytes) -> int:
    """Of a frame header show_existing_frame alone, or with frame_type and show_frame (5.9.2)."""
    return 8 if head[0] & 0x80 else head[0] >> 4


def _obu(window: Window, at: int, stop: int) -> _Obu | None:
    """The OBU that begins here; None: none does."""
    head = window.take(at, 10)
    if not head or head[0] & 0x81 or not head[0] & 2:
        return None
    kind, first = head[0] >> 3 & 15, 2 if head[0] & 4 else 1
    if kind not in _KNOWN or (first == 2 and (len(head) < 2 or head[1] & 7)):
        return None
    size, used = _leb128(head[first : first + 8])
    begin = at + first + used
    if not used or size > MOST_UNIT_BYTES or begin + size > stop:
        return None
    if not size and kind != DELIMITER:
        return None
    return _Obu(kind, begin, begin + size)


def _leb128(data: bytes) -> tuple[int, int]:
    """As `leb128`; 0 bytes also where it is not as short as can be."""
    value, used = leb128(data)
    if used < 2 or data[used - 1]:
        return value, used
    return 0, 0
