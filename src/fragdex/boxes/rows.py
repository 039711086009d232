"""Tables inside boxes: rows of fixed size, read by numpy as one structured array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any

import numpy as np

from fragdex.boxes.limits import MAX_IMPLIED_ROWS, MAX_ITEMS
from fragdex.errors import BuildError, LimitExceeded, MalformedBox
from fragdex.record import record

Code = str | Callable[[Mapping[str, Any]], str]
Table = np.ndarray[Any, np.dtype[Any]]

MOST_PLANS = 256
"""Flags of a table whose plans are kept; hostile files have more."""


@record(frozen=True, slots=True)
class Rows:
    """A table of fixed-size rows, read by numpy as one structured array (big-endian).

    A column is a name, a numpy type code and a mask of flags (0: always there). The code may be a
    function of the fields before; `u3` is a 24-bit integer, shown as `>u4`. A name like
    `"reference_type:1 referenced_size:31"` splits its integer into bit columns, first one in the
    highest bits.

    Attributes:
        columns: (name, numpy type code, flag mask or 0) of each column in file order.
        count: the field that holds the number of rows; None: as many as fit.
    """

    columns: tuple[tuple[str, Code, int], ...]
    count: str | None = None
    _plans: dict[int, _Plan] = field(default_factory=dict, compare=False, repr=False)

    def dtype(self, flags: int, fields: Mapping[str, Any] | None = None) -> np.dtype[np.void]:
        """The row's dtype under these flags: big-endian, packed, unaligned."""
        return self._plan(flags, fields).shown

    def stored_as_shown(self, flags: int) -> bool:
        """Whether the rows in the file have the shown dtype: no bit columns, no told widths."""
        return not self._has_stated_widths and self._plan(flags, None).splits is None

    @property
    def _has_stated_widths(self) -> bool:
        """Whether fields before the table say how wide a column is."""
        return any(callable(code) for _, code, _ in self.columns)

    def widths(self, flags: int, fields: Mapping[str, Any] | None = None) -> dict[str, int]:
        """How many bits each shown column holds."""
        by_name = {}
        for name, code, mask in self.columns:
            if mask and not flags & mask:
                continue
            chosen = code(fields or {}) if callable(code) else code
            for part in name.split():
                column, _, width = part.partition(":")
                by_name[column] = int(width) if width else int(chosen[-1]) * 8
        return by_name

    def _plan(self, flags: int, fields: Mapping[str, Any] | None) -> _Plan:
        known = self._plans.get(flags)
        if known is None:
            known = _plan(
                tuple(
                    (name, code(fields or {}) if callable(code) else code)
                    for name, code, mask in self.columns
                    if not mask or flags & mask
                )
            )
            if not self._has_stated_widths:
                if len(self._plans) > MOST_PLANS:
                    self._plans.clear()
                self._plans[flags] = known
        return known

    def parse(self, body: memoryview, fields: Mapping[str, Any], flags: int) -> tuple[Table, int]:
        """The rows at the start of `body`, read-only, and the bytes they took.

        Raises:
            MalformedBox: more rows are claimed than there are bytes.
            LimitExceeded: more rows without bytes are claimed than MAX_IMPLIED_ROWS.
        """
        plan = self._plan(flags, fields)
        size = plan.stored.itemsize
        if not size:
            # A row without columns has no bytes: the count alone says how many there are.
            if self.count is not None and fields[self.count] > MAX_IMPLIED_ROWS:
                raise LimitExceeded(
                    f"{self.count} claims too many rows that have no bytes",
                    expected=f"at most {MAX_IMPLIED_ROWS}",
                    found=fields[self.count],
                )
            return np.zeros(0, plan.shown), 0
        count = len(body) // size if self.count is None else fields[self.count]
        if count * size > len(body):
            raise MalformedBox(
                f"{self.count} claims more rows than the box has bytes for",
                expected=f"at most {len(body) // size}",
                found=count,
            )
        stored = np.frombuffer(body, plan.stored, count)
        # A table may look into the buffer that it was read from where nobody can change that.
        is_kept = type(body.obj) is bytes and count * size * MOST_KEPT >= len(body.obj)
        if plan.splits is None and is_kept:
            return stored, count * size
        table = plan.widen(stored)
        table.setflags(write=False)
        return table, count * size

    def build(self, value: Any, fields: Mapping[str, Any], flags: int) -> bytes:
        """The bytes of the rows.

        Raises:
            BuildError: other columns than declared, a value that does not fit, a wrong count.
        """
        table = self.table(value, fields, flags)
        plan = self._plan(flags, fields)
        if self.count is not None and plan.stored.itemsize and fields[self.count] != len(table):
            raise BuildError(
                f"{self.count} is not the number of rows",
                expected=len(table),
                found=fields[self.count],
            )
        return plan.narrow(table).tobytes()

    def conformed(self, table: Table, fields: Mapping[str, Any], flags: int) -> Table:
        """A table of other columns with the declared ones: those it lacks become zero.

        Raises:
            LimitExceeded: rows that had no bytes are too many to be written out.
        """
        dtype = self.dtype(flags, fields)
        if table.dtype.names == dtype.names or not dtype.names:
            return table if dtype.names else np.zeros(0, dtype)
        count = len(table) if table.dtype.names or self.count is None else fields[self.count]
        if count > MAX_ITEMS and not table.dtype.names:
            raise LimitExceeded("too many rows to write out", expected=MAX_ITEMS, found=count)
        rows = np.zeros(count, dtype)
        for name in set(dtype.names) & set(table.dtype.names or ()):
            rows[name] = table[name]
        return rows

    def table(self, value: Any, fields: Mapping[str, Any], flags: int) -> Table:
        """`value` (an array with these columns, or a list of tuples) with the declared dtype."""
        dtype = self.dtype(flags, fields)
        try:
            given = value if isinstance(value, np.ndarray) else _from_tuples(value, dtype)
        except (OverflowError, TypeError, ValueError) as error:
            raise BuildError("rows that do not fit", expected=dtype, found=error) from error
        if given.dtype == dtype:
            return given
        if given.dtype.names is None or given.dtype.names != dtype.names:
            raise BuildError("rows with other columns", expected=dtype, found=given.dtype)
        cast = np.zeros(len(given), dtype)
        for name in dtype.names or ():
            cast[name] = given[name]
            if not np.array_equal(cast[name], given[name]):
                raise BuildError("a value does not fit its column", path=name, expected=dtype)
        return cast


MOST_KEPT = 16
"""How many times its own size a table may keep in memory where it is seen and not copied."""


@record(frozen=True, slots=True)
class _Plan:
    """How rows are stored and shown; the two differ by bit columns and 24-bit integers."""

    stored: np.dtype[np.void]
    shown: np.dtype[np.void]
    splits: tuple[tuple[str, tuple[tuple[str, int, int], ...]], ...] | None

    def widen(self, stored: Table) -> Table:
        if self.splits is None:
            return stored.copy()
        table = np.zeros(len(stored), self.shown)
        for word, parts in self.splits:
            values = stored[word]
            if values.ndim == 2:
                table[word] = values.astype("u4") @ np.array([65536, 256, 1], "u4")
                continue
            for name, shift, mask in parts:
                table[name] = values >> shift & mask if shift or mask else values
        return table

    def narrow(self, table: Table) -> Table:
        if self.splits is None:
            return table
        stored = np.zeros(len(table), self.stored)
        for word, parts in self.splits:
            if stored[word].ndim == 2:
                values = table[word].astype("u4")
                if len(values) and int(values.max()) >> 24:
                    raise BuildError("a value does not fit in 24 bits", path=word)
                stored[word] = values[:, None] >> np.array([16, 8, 0], "u4") & 255
                continue
            for name, shift, mask in parts:
                values = table[name].astype("u8") if mask else table[name]
                if mask and len(values) and int(values.max()) > mask:
                    raise BuildError("a value does not fit its bits", path=name, expected=mask)
                if mask:
                    stored[word] |= (values << np.uint64(shift)).astype(stored[word].dtype)
                else:
                    stored[word] = values
        return stored


def _from_tuples(value: Any, dtype: np.dtype[np.void]) -> Table:
    tuples = [tuple(row) for row in value]
    table = np.array(tuples, dtype)
    # Some releases of numpy cut what does not fit, all cut fractions.
    if table.tolist() != tuples:
        raise ValueError("a value changes when it is stored")
    return table


@lru_cache(maxsize=4096)
def _plan(columns: tuple[tuple[str, str], ...]) -> _Plan:
    if not any(":" in name or code == "u3" for name, code in columns):
        dtype = np.dtype(list(columns))
        return _Plan(dtype, dtype, None)
    stored: list[Any] = []
    shown: list[Any] = []
    splits: list[tuple[str, tuple[tuple[str, int, int], ...]]] = []
    for name, code in columns:
        if code == "u3":
            stored.append((name, "u1", (3,)))
            shown.append((name, ">u4"))
            splits.append((name, ((name, 0, 0),)))
            continue
        stored.append((name, code))
        names = [part.split(":") for part in name.split()]
        if len(names[0]) == 1:
            shown.append((name, code))
            splits.append((name, ((name, 0, 0),)))
            continue
        shift = np.dtype(code).itemsize * 8
        parts = []
        for part, width in names:
            shift -= int(width)
            shown.append((part, code))
            parts.append((part, shift, (1 << int(width)) - 1))
        if shift:
            raise TypeError(f"bit columns {name!r} do not fill {code}")
        splits.append((name, tuple(parts)))
    return _Plan(np.dtype(stored), np.dtype(shown), tuple(splits))


def rows(count: str | None, *columns: tuple[str, Code] | tuple[str, Code, int]) -> Rows:
    """Declare a table."""
    return Rows(tuple((*c, 0) if len(c) == 2 else c for c in columns), count)
