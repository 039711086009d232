"""Boxes as JSON, piece by piece: a table of millions of rows is never in memory as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fragdex.boxes import Box
from fragdex.boxes.kinds import LISTS, LazyList
from fragdex.cli.output import json_text

__all__ = ["box_pieces"]

BATCH = 4096
"""Rows of a table that are in memory as text at once."""


def box_pieces(box: Box, *, full: bool = False) -> Iterator[str]:
    """A box as pieces of one JSON object: type, offset, size, fields, children.

    Bytes are hex; a table is a list with an object for each row. The bytes of opaque boxes are
    left out (`size` and `offset` say where they are) unless `full`.

    >>> from fragdex.boxes import parse
    >>> "".join(box_pieces(parse(bytes.fromhex("0000000c 66726d61 61766331"))[0]))
    '{"type": "frma", "offset": 0, "size": 12, "fields": {"data_format": "avc1"}}'
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
        # a lone surrogate stands for a byte that is no UTF-8; JSON must have none
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return value
