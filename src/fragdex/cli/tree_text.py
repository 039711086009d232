"""Boxes as lines for people and as values for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fragdex.boxes import Box

__all__ = ["box_lines", "box_value"]

WIDTH = 100
FIRST_ROWS = 5
FIRST_BYTES = 16
INDENT = "  "


def box_lines(box: Box, depth: int = 0, *, full: bool = False) -> Iterator[str]:
    """A box, its fields and its children, one line or a few each.

    >>> from fragdex.boxes import parse
    >>> for line in box_lines(parse(bytes.fromhex("00000010 6d666864 00000000 00000007"))[0]):
    ...     print(line)
    mfhd @0 +16  version=0 flags=0x000000 sequence_number=7
    """
    indent = INDENT * depth
    size = f"+{box.size}" + {"large": " (64-bit size)", "to_end": " (to the end)"}.get(
        box.size_form, ""
    )
    head = f"{indent}{box.type} @{box.offset} {size}"
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


def box_value(box: Box, *, full: bool = False) -> dict[str, Any]:
    """A box as a value for JSON: type, offset, size, fields, children.

    Bytes are hex; a table is a list with an object for each row. The bytes of opaque boxes are
    left out (`size` and `offset` say where they are) unless `full`.
    """
    value: dict[str, Any] = {"type": box.type, "offset": box.offset, "size": box.size}
    if box.size_form != "compact":
        value["size_form"] = box.size_form
    if box.misfit:
        value["misfit"] = box.misfit
    value["fields"] = {
        name: _plain(field)
        for name, field in box.fields.items()
        if full or not (box.opaque and name == "data")
    }
    if box.trailing:
        value["trailing"] = box.trailing.hex()
    if box.children:
        value["children"] = [box_value(child, full=full) for child in box.children]
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and any(isinstance(v, Mapping) for v in value)


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
    if isinstance(value, (tuple, list)):
        shown = value if full or len(value) <= 2 * FIRST_BYTES else value[:FIRST_BYTES]
        tail = "" if len(shown) == len(value) else f" … {len(value) - len(shown):,} more"
        return "[" + " ".join(_word("", v, full) for v in shown) + tail + "]"
    return str(value)


def _quoted(text: str) -> str:
    """Text as it is where that is safe on a terminal, else quoted and escaped."""
    if text and text.isprintable() and " " not in text:
        return text
    return ascii(text) if not text.isprintable() else repr(text)


def _table(name: str, value: Any, indent: str, full: bool) -> Iterator[str]:
    count = len(value)
    shown = value if full or count <= FIRST_ROWS + 1 else value[:FIRST_ROWS]
    yield f"{indent}{name}: {count:,} row{'' if count == 1 else 's'}"
    if isinstance(value, np.ndarray) and value.dtype.names is None:
        yield from _wrapped(indent + " ", [str(v) for v in shown.tolist()], indent + INDENT)
    elif isinstance(value, np.ndarray) and not value.dtype.names:
        return  # rows without columns: every value is a default
    elif count:
        rows = [_row(row, full) for row in shown]
        titles = list(rows[0])
        cells = [titles, *([row.get(title, "") for title in titles] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            yield (
                indent
                + INDENT
                + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            )
    if len(shown) < count:
        yield f"{indent}{INDENT}… {count - len(shown):,} more rows (--full shows all)"


def _row(row: Any, full: bool) -> dict[str, str]:
    if isinstance(row, Mapping):
        return {k: _word(k, _plain_number(v), full) for k, v in row.items()}
    return {k: _word(k, _plain_number(row[k]), full) for k in row.dtype.names}


def _plain_number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        names = value.dtype.names
        if names is None:
            return [_plain(v) for v in value.tolist()]
        # Rows without columns have no bytes; only their count is claimed, and it has a field.
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
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, str):
        # a lone surrogate stands for a byte that is no UTF-8; JSON must have none
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return value
