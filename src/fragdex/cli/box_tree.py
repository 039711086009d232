"""Boxes as JSON and as lines for people, read one top-level box at a time without media data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fragdex.box_header import BoxHeader, read_header
from fragdex.boxes import OPAQUE, Box, parse_box
from fragdex.boxes.kinds import LISTS, LazyList
from fragdex.boxes.limits import MAX_BOXES, MAX_MOOV_SIZE
from fragdex.byterange import ByteRange
from fragdex.cli.output import json_text
from fragdex.errors import LimitExceeded, MalformedBox, NotISOBMFF, TruncatedInput
from fragdex.indexing.scan import MEDIA_TYPES

HEADER = 32
"""Bytes of the longest box header: 64-bit size and user type."""

MOST_AHEAD = 1 << 16

_SKIPPED = frozenset(code for code, _ in OPAQUE)


def top_level_boxes(source: Any, paths: list[str] | None, strict: bool) -> Iterator[Box]:
    """Every top-level box in file order; what stands before damage comes before the error.

    Boxes that hold media data or no meaning come without their payload, as do those whose type
    no path selects.

    Raises:
        NotISOBMFF, MalformedBox, LimitExceeded: as `parse`.
        TruncatedInput: the last box is incomplete.
    """
    wanted = {path.partition("/")[0].partition("[")[0] for path in paths or ["*"]}
    at = count = 0
    ahead = _Ahead(source)
    while head := ahead.header(at):
        header, size = _header(head, at, source)
        count += 1
        if count > MAX_BOXES:
            raise LimitExceeded("too many boxes", offset=at, expected=MAX_BOXES)
        code = header.type.decode("latin-1")
        whole = source.size is None or at + size <= source.size
        if not at and not whole and int.from_bytes(header.type, "big") not in MEDIA_TYPES:
            raise _no_media(source)
        if not whole:
            raise TruncatedInput(
                "the input ends inside a box",
                path=code,
                offset=at,
                expected=f"{size} bytes",
                found=source.size - at,
            )
        if code in _SKIPPED or not wanted & {"*", code, code.rstrip()}:
            yield _without_payload(header, code, at, size)
        else:
            if size > MAX_MOOV_SIZE:
                raise LimitExceeded(
                    f"{code} is too large to be read as a whole",
                    offset=at,
                    expected=f"at most {MAX_MOOV_SIZE}",
                    found=size,
                )
            data = ahead.box(at, size)
            yield parse_box(data, offset=at, strict=strict)
        at += size
    if at == 0:
        raise NotISOBMFF(f"{source.name} is empty")


def _no_media(source: Any) -> NotISOBMFF:
    return NotISOBMFF(
        f"{source.name} is not an ISO base media file",
        offset=0,
        expected="a box such as ftyp, styp, moov or moof",
        found="something else",
    )


class _Ahead:
    """Reads a little ahead where boxes are small and many, and no more where they are large."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._data, self._start, self._size = b"", 0, HEADER

    def header(self, at: int) -> bytes:
        """The bytes of a box header, fewer at the end of the source."""
        place = at - self._start
        if place + HEADER > len(self._data):
            # Where the next box lies in what was read before, boxes are small.
            near = 0 <= place <= len(self._data)
            self._size = min(self._size * 4, MOST_AHEAD) if near and at else HEADER
            self._data = self._source.read_up_to(ByteRange.of(at, self._size))
            self._start, place = at, 0
        return bytes(self._data[place : place + HEADER])

    def box(self, at: int, size: int) -> bytes:
        """A whole box."""
        place = at - self._start
        if place + size <= len(self._data):
            return bytes(self._data[place : place + size])
        return bytes(self._source.read(ByteRange.of(at, size)))


def _header(head: bytes, at: int, source: Any) -> tuple[BoxHeader, int]:
    """What the header of a box says, and the bytes of the box."""
    header = read_header(head)
    if header is None:
        raise TruncatedInput("the input ends inside a box header", offset=at)
    if header.form == "to_end" and source.size is not None:
        return header, int(source.size) - at
    if header.size < header.length:
        if at == 0:
            raise _no_media(source)
        raise MalformedBox(
            "a box size smaller than its header",
            offset=at,
            expected=f"at least {header.length}",
            found=header.size,
        )
    return header, header.size


def _without_payload(header: BoxHeader, code: str, at: int, size: int) -> Box:
    return Box(
        code,
        {"data": b""},
        size_form="compact" if header.form == "cut" else header.form,
        offset=at,
        size=size,
        header_size=header.length,
    )


BATCH = 4096
"""Rows of a table that are in memory as text at once."""


def box_pieces(box: Box, *, full: bool = False) -> Iterator[str]:
    """A box as pieces of one JSON object: type, offset, size, fields, children.

    Bytes are hex; a table is a list with an object for each row. The bytes of opaque boxes are
    left out (`size` and `offset` say where they are) unless `full`.
    """
    head: dict[str, Any] = {"type": box.type, "offset": box.offset, "size": box.size}
    if box.size_form != "compact":
        head["size_form"] = box.size_form
    if box.misfit:
        head["misfit"] = box.misfit
    yield json_text(head)[:-1] + ', "fields": {'
    between = ""
    for name, field in box.fields.items():
        if full or not (box.opaque and name == "data"):
            yield f"{between}{json_text(name)}: "
            yield from _field(field)
            between = ", "
    yield "}"
    if box.trailing:
        yield f', "trailing": "{box.trailing.hex()}"'
    if box.children:
        between = ', "children": ['
        for child in box.children:
            yield between
            yield from box_pieces(child, full=full)
            between = ", "
        yield "]"
    yield "}"


def _field(value: Any) -> Iterator[str]:
    # Rows without columns have no bytes; only their count is claimed, and it has a field.
    long = isinstance(value, (np.ndarray, LazyList)) and len(value)
    if not long or (isinstance(value, np.ndarray) and value.dtype.names == ()):
        yield json_text([] if isinstance(value, np.ndarray) else _plain(value))
        return
    between = "["
    for start in range(0, len(value), BATCH):
        yield between + json_text(_plain(value[start : start + BATCH]))[1:-1]
        between = ", "
    yield "]"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        names = value.dtype.names
        if names is None:
            return [_plain(v) for v in value.tolist()]
        columns = [value[name].tolist() for name in names]
        return [
            dict(zip(names, map(_plain, row), strict=True)) for row in zip(*columns, strict=True)
        ]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, LISTS):
        return [_plain(v) for v in value]
    if isinstance(value, str):
        # a lone surrogate stands for a byte that is not UTF-8; JSON must have none
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return value


WIDTH = 100
FIRST_ROWS = 5
"""Rows of a table that are in memory as text at once."""
FIRST_BYTES = 16
INDENT = "  "


def box_lines(box: Box, depth: int = 0, *, full: bool = False) -> Iterator[str]:
    """A box, its fields and its children, one line or a few each."""
    indent = INDENT * depth
    size = f"+{box.size}" + {"large": " (64-bit size)", "to_end": " (to the end)"}.get(
        box.size_form, ""
    )
    head = f"{indent}{_code(box)} @{box.offset} {size}"
    words, tables = [], []
    for name, value in box.fields.items():
        if name.startswith(("reserved", "pre_defined")) and not full:
            continue
        if isinstance(value, np.ndarray) or _is_list(value):
            tables.append((name, value))
        elif name == "data" and box.opaque:
            words.append(_payload(box, value, full))
        else:
            words.append(f"{name}={_word(name, value, full)}")
    if box.misfit:
        words.append(f"({box.misfit})")
    yield from _wrapped(head, [w for w in words if w], indent + INDENT * 2)
    for name, value in tables:
        yield from _table(name, value, indent + INDENT * 2, full)
    for child in box.children:
        yield from box_lines(child, depth + 1, full=full)
    if box.trailing:
        yield f"{indent}{INDENT}trailing {_hex(box.trailing, full)}"


def _is_list(value: Any) -> bool:
    return isinstance(value, LISTS) and any(isinstance(v, Mapping) for v in value)


def _wrapped(head: str, words: list[str], hanging: str) -> Iterator[str]:
    line, gap = head, "  "
    for word in words:
        if len(line) + len(gap) + len(word) > WIDTH and line.strip():
            yield line
            line, gap = hanging + word, " "
        else:
            line, gap = line + gap + word, " "
    yield line


def _payload(box: Box, value: Any, full: bool) -> str:
    if not len(value):
        payload = box.size - box.header_size
        return f"{payload:,} bytes" if payload else ""
    return f"data={_hex(value, full)}"


def _hex(value: Any, full: bool) -> str:
    data = bytes(value)
    if full or len(data) <= FIRST_BYTES:
        return data.hex() or "(empty)"
    return f"{data[:FIRST_BYTES].hex()}… ({len(data):,} bytes)"


def _word(name: str, value: Any, full: bool) -> str:
    if name == "flags" and isinstance(value, int):
        return f"{value:#08x}"
    if name.endswith("_flags") and isinstance(value, int):
        return f"{value:#010x}"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _hex(value, full)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        inner = " ".join(f"{k}={_word(k, v, full)}" for k, v in value.items())
        return f"({inner})"
    if isinstance(value, LISTS):
        shown = value if full or len(value) <= 2 * FIRST_BYTES else value[:FIRST_BYTES]
        tail = "" if len(shown) == len(value) else f" … {len(value) - len(shown):,} more"
        return "[" + " ".join(_word("", v, full) for v in shown) + tail + "]"
    return str(value)


def _quoted(text: str) -> str:
    """Text as it is where that is safe on a terminal, else quoted and escaped."""
    if text and text.isprintable() and " " not in text:
        return text
    return ascii(text) if not text.isprintable() else repr(text)


def _code(box: Box) -> str:
    """Four letters of a box, which may be any bytes."""
    return box.type if box.type.isprintable() else ascii(box.type)


def _table(name: str, value: Any, indent: str, full: bool) -> Iterator[str]:
    count = len(value)
    shown = value if full or count <= FIRST_ROWS + 1 else value[:FIRST_ROWS]
    yield f"{indent}{name}: {count:,} row{'' if count == 1 else 's'}"
    if isinstance(value, np.ndarray) and value.dtype.names is None:
        yield from _wrapped(indent + " ", [str(v) for v in shown.tolist()], indent + INDENT)
    elif isinstance(value, np.ndarray) and not value.dtype.names:
        return  # rows without columns: every value is a default
    elif count:
        yield from _aligned(shown, indent + INDENT, full)
    if len(shown) < count:
        yield f"{indent}{INDENT}… {count - len(shown):,} more rows (--full shows all)"


def _aligned(shown: Any, indent: str, full: bool) -> Iterator[str]:
    """Rows under their titles; a long table goes in batches, each aligned by itself."""
    for start in range(0, len(shown), BATCH):
        rows = [_row(row, full) for row in shown[start : start + BATCH]]
        titles = list(rows[0])
        cells = [[row.get(title, "") for title in titles] for row in rows]
        if not start:
            cells.insert(0, titles)
        widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
        for line in cells:
            yield indent + "  ".join(
                cell.rjust(width) for cell, width in zip(line, widths, strict=True)
            )


def _row(row: Any, full: bool) -> dict[str, str]:
    if isinstance(row, Mapping):
        return {k: _word(k, _plain_number(v), full) for k, v in row.items()}
    return {k: _word(k, _plain_number(row[k]), full) for k in row.dtype.names}


def _plain_number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
