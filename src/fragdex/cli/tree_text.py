"""Boxes as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fragdex.boxes import Box
from fragdex.boxes.kinds import LISTS

__all__ = ["box_lines"]

WIDTH = 100
FIRST_ROWS = 5
BATCH = 4096
"""Rows of a table that are in memory as text at once."""
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
