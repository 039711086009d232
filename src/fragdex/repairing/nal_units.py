"""Samples of AVC, HEVC and VVC: units after their lengths, and the pictures that they make.

A sample is an access unit (ISO/IEC 14496-15, 4.3.3): it ends where a unit begins the next picture,
or where no unit begins. A unit proves itself by its length, its header, what its type requires, and
by having no two zeros without a 3 after them, which no codec of these allows inside of a unit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fragdex.indexing.access import SEI_BYTES
from fragdex.repairing.syntax import FoundSample, Kind, NativeSyntax, Syntax, Window, units_table

HEADER_BYTES: Final = 96
"""Bytes of a slice that its picture's place is read from."""
MOST_UNITS: Final = 4096
"""Units of a sample."""
MOST_LEAD: Final = 32
"""Units in front of the first slice of a sample that is known to be whole."""
MOST_UNIT_BYTES: Final = 1 << 27
MOST_SETS: Final = 4096
"""Bytes of a parameter set."""

BEFORE, SLICE, AFTER = "before", "slice", "after"
"""A unit begins an access unit, is a slice of a picture, or belongs to the picture before it."""


class Slice(NamedTuple):
    """The beginning of a slice.

    Attributes:
        first: whether it is the first of its picture.
        picture: what all slices of a picture have in common.
        sync, fresh: as `FoundSample` has them.
        head: what the order of pictures follows from.
        field: 0: of a frame, 1: of a top field, 2: of a bottom field.
    """

    first: bool
    picture: tuple[int, ...]
    sync: bool
    fresh: bool
    head: tuple[int, ...]
    field: int = 0


class NalUnits(Syntax):
    """Samples of NAL units.

    Args:
        length_size: bytes of the length in front of each unit.

    Attributes:
        sets: parameter sets by (type, id), as they stand in samples or sample entries.
    """

    holes = True  # what a unit may not have is looked for in any case
    open_ended = True  # further slices
    ends_alike = True  # messages and parameter sets are in front of some pictures
    open_sync = False
    """Whether the file marks pictures sync that others only recover at."""
    type_bits = 0x1F
    """Bits of the first byte of a unit that say its type."""
    header = 1
    """Bytes of the header of a unit."""
    messages: int
    """The type of units with messages (SEI) in front of pictures."""

    def __init__(self, length_size: int = 4) -> None:
        self.length_size = length_size
        self.sets: dict[tuple[int, int], Any] = {}
        self.raw: dict[tuple[int, int], bytes] = {}
        self._changes: list[tuple[tuple[int, int], Any, bytes | None]] = []
        self._looking = False
        self._leads: dict[int, set[tuple[int, ...]]] = {}
        self._tables: tuple[bytes, ...] | None = None

    @classmethod
    def type_of(cls, unit: bytes) -> int:
        """The type of a unit, by its header."""
        bits = cls.type_bits
        return (unit[0] & bits) >> (bits & -bits).bit_length() - 1

    def mark_of(self, slice: bytes) -> int:
        """What tells slices apart that other units are in front of: the type."""
        return self.type_of(slice)

    @abstractmethod
    def kind_of(self, unit: bytes, size: int) -> str | None:
        """What a unit is, by its header and its first bytes; None: it cannot be one."""

    @abstractmethod
    def slice_of(self, unit: bytes) -> Slice | None:
        """What a slice says; None: it cannot be one."""

    def recovers(self, unit: bytes) -> bool:
        """Whether a unit says that pictures are right from here on."""
        return False

    @abstractmethod
    def learn(self, unit: bytes) -> bool:
        """Take a parameter set that stands among samples; whether it can be one."""

    def _keep(self, kind: int, number: int, fields: Any, unit: bytes) -> None:
        """Take a parameter set: what was read of it, and its bytes."""
        self._keep_raw(kind, number, unit)
        self.sets[kind, number] = fields

    def _keep_raw(self, kind: int, number: int, unit: bytes) -> None:
        key = (kind, number)
        known = self.raw.get(key)
        if known == unit:
            return
        if self._looking:
            self._changes.append((key, self.sets.get(key), known))
        self.raw[key] = unit
        self._tables = None

    def _undo(self, count: int) -> None:
        """Know what was known before all changes but so many."""
        while len(self._changes) > count:
            key, fields, unit = self._changes.pop()
            for known, one in ((self.sets, fields), (self.raw, unit)):
                if one is None:
                    known.pop(key, None)
                else:
                    known[key] = one
            self._tables = None

    def forget_ahead(self) -> bool:
        """As `Syntax.forget_ahead`: what looks like a parameter set may be bytes of anything."""
        changed = bool(self._changes)
        self._undo(0)
        return changed

    def trust(self, sample: FoundSample) -> None:
        """As `Syntax.trust`: know the parameter sets that are in it."""
        self.forget_ahead()
        for unit in sample.sets:
            self.learn(unit)

    def _lent(
        self, kind: Kind, state: tuple[int, int], rows: Sequence[tuple[int, ...]]
    ) -> NativeSyntax:
        """As `lent`, with a row of what slice headers need of each picture parameter set."""
        if self._tables is None:
            first = self.first_headers().astype(np.uint8).tobytes()
            leads = (
                bytes((slice, *lead))
                for slice, known in self._leads.items()
                for lead in known
                if not _ends_any(lead, known)
            )
            self._tables = (units_table(self.raw.values()), first, units_table(leads))
        numbers = [int(self.holes), self.length_size, *state, int(self.open_sync), len(rows)]
        return NativeSyntax(
            kind, [*numbers, *(number for row in rows for number in row)], self._tables
        )

    def find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        """The access unit that begins here.

        Its parameter sets are known from here on, so that what follows it can be read, and until
        `forget_ahead` where it is not accepted.
        """
        count = len(self._changes)
        self._looking = True
        try:
            sample = self._find(window, at, stop)
        finally:
            self._looking = False
        if sample is None:
            self._undo(count)
            return None
        return sample._replace(sets=tuple(self.raw[key] for key, *_ in self._changes[count:]))

    def _find(self, window: Window, at: int, stop: int) -> FoundSample | None:
        begin: Slice | None = None
        last: Slice | None = None
        start, recovers = at, False
        for _ in range(MOST_UNITS):
            one = self._unit(window, at, stop, last)
            if one is None:
                break
            kind, slice, end = one
            if kind == BEFORE and begin is not None:
                break
            if kind == BEFORE and self.open_sync:
                recovers = recovers or self.recovers(window.take(at + self.length_size, SEI_BYTES))
            if kind == AFTER and begin is None:
                return None
            if slice is not None:
                if begin is None or last is None:
                    begin = slice
                elif slice.first:
                    # the other field of the same frame belongs to the sample
                    second = {begin.field, slice.field} == {1, 2} and last.field == begin.field
                    if not second or begin.picture[0] != slice.picture[0]:
                        break
                last = slice
            at = end
        if begin is None or at == start:
            return None
        return FoundSample(at, begin.sync or recovers, begin.fresh, 0, begin.head)

    def _lead(self, window: Window, at: int) -> tuple[int, tuple[int, ...]]:
        """The mark of a sample's first slice, and the types of the units before it."""
        types: list[int] = []
        for _ in range(MOST_LEAD + 1):
            head = window.take(at, self.length_size + HEADER_BYTES)
            unit = head[self.length_size :]
            if len(unit) < 2:
                break
            size = int.from_bytes(head[: self.length_size], "big")
            if self.kind_of(unit, size) == SLICE:
                return self.mark_of(unit), tuple(types)
            types.append(self.type_of(unit))
            at += self.length_size + size
        return -1, tuple(types)

    def study(self, window: Window, at: int, sample: FoundSample) -> None:
        """Which units stand in front of pictures."""
        slice, lead = self._lead(window, at)
        if slice >= 0:
            self._leads.setdefault(slice, set()).add(lead)
            self._tables = None

    def is_whole(self, window: Window, at: int, sample: FoundSample) -> bool:
        """Whether the units in front of the picture are all that a good file has there."""
        slice, lead = self._lead(window, at)
        known = self._leads.get(slice, set())
        return lead in known and not _ends_any(lead, known)

    def _unit(
        self, window: Window, at: int, stop: int, last: Slice | None
    ) -> tuple[str, Slice | None, int] | None:
        """Kind, slice and end of the unit that begins here; None: none does."""
        head = window.take(at, self.length_size + HEADER_BYTES)
        size = int.from_bytes(head[: self.length_size], "big")
        begin = at + self.length_size
        end = begin + size
        unit = head[self.length_size : self.length_size + size]
        if size <= self.header or size > MOST_UNIT_BYTES or end > stop or len(unit) <= self.header:
            return None
        kind = self.kind_of(unit, size)
        if kind is None:
            return None
        slice = None
        if kind == SLICE:
            slice = self.slice_of(unit)
            if slice is None or (not slice.first and last is None):
                return None
            if not slice.first and last is not None and slice.picture != last.picture:
                return None
        if window.take(end - 1, 1) == b"\0" or not window.is_escaped(begin, end):
            return None
        if kind == BEFORE and size <= MOST_SETS and not self.learn(window.take(begin, size)):
            return None
        return kind, slice, end

    def may_begin(self, window: Window, at: int) -> bool:
        """As `Syntax.may_begin`: the length and header of a unit."""
        head = window.take(at, self.length_size + HEADER_BYTES)
        size = int.from_bytes(head[: self.length_size], "big")
        unit = head[self.length_size :]
        if size > MOST_UNIT_BYTES or at + self.length_size + size <= window.stop:
            return False
        if len(unit) < 3:
            return False  # what follows the header tells a delimiter
        return self.kind_of(unit, size) in (BEFORE, SLICE)

    def begins(self, window: Window, at: int) -> bool:
        """A unit that could begin a sample, but for its length."""
        head = window.take(at, self.length_size + HEADER_BYTES)
        size = int.from_bytes(head[: self.length_size], "big")
        unit = head[self.length_size :]
        if not self.may_begin(window, at) or len(unit) < HEADER_BYTES // 2:
            return False
        if self.kind_of(unit, size) != SLICE:
            return True
        slice = self.slice_of(unit)
        return slice is not None and slice.first

    def starts(self, data: bytes) -> list[int]:
        """Places where a length of less than 2^24 and a header of a first unit stand."""
        if self.length_size < 4 or len(data) < 5:
            return super().starts(data)
        column = np.frombuffer(data, np.uint8)
        first = self.first_headers()
        places = np.flatnonzero((column[:-4] <= MOST_UNIT_BYTES >> 24) & first[column[4:]])
        return [*places.tolist(), *range(len(data) - 4, len(data))]

    @abstractmethod
    def first_headers(self) -> Any:
        """Of each byte, whether a unit that begins a sample may begin with it."""


def _ends_any(lead: tuple[int, ...], known: Iterable[tuple[int, ...]]) -> bool:
    """Whether a longer lead ends as this one does."""
    return any(len(one) > len(lead) and one[len(one) - len(lead) :] == lead for one in known)


def high_order(low: int, bits: int, before: tuple[int, int]) -> int:
    """PicOrderCntMsb, from the low bits of a picture and from both of the one before.

    ISO/IEC 14496-10, 8.2.1.1; ISO/IEC 23008-2 and 23090-3, 8.3.1.
    """
    high, low_before = before
    wrap = 1 << bits
    if low < low_before and low_before - low >= wrap // 2:
        return high + wrap
    if low > low_before and low - low_before > wrap // 2:
        return high - wrap
    return high


class OrderedByLsb(NalUnits):
    """Codecs whose pictures say the low bits of their order count (HEVC, VVC: 8.3.1 of both).

    The head of a slice is the number of its sequence parameter set, those bits, whether later
    pictures count from it, and whether counting begins again.
    """

    sequence_set: int
    """The type of units with a sequence parameter set, which says how many bits those are."""
    header = 2

    def __init__(self, length_size: int = 4) -> None:
        super().__init__(length_size)
        self._before = (0, 0)

    def accept(self, sample: FoundSample) -> FoundSample:
        """With its picture order count (8.3.1)."""
        self.trust(sample)
        assert sample.head is not None
        owner, low, counts, fresh = sample.head
        bits = self.sets[self.sequence_set, owner].order_bits
        high = 0 if fresh else high_order(low, bits, self._before)
        if counts:
            self._before = (high, low)
        return sample._replace(order=high + low, head=None)

    def resume(self, state: tuple[int, int], spent: int) -> None:
        """As `Syntax.resume`."""
        self._before = state

    def interrupted(self) -> None:
        """The next picture may be any."""
        self._before = (0, 0)
