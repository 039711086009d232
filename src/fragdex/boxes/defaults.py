"""What a maker of boxes gets where it names no value: zero, nothing, no items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fragdex.boxes.descriptor import Descriptor
from fragdex.boxes.kinds import Bits, Code, Packed, Raw, Rest, String, Text
from fragdex.boxes.lists import Array, Greedy, Items, Record, Sized


def empty(kind: Any, fields: Mapping[str, Any]) -> Any:
    """The value of a field that a maker of boxes leaves out: zero, nothing, no items."""
    if isinstance(kind, Code):
        return "\0\0\0\0"
    if isinstance(kind, Raw):
        return bytes(kind.length(fields))
    if isinstance(kind, Rest):
        return b""
    if isinstance(kind, (String, Text)):
        return ""
    if isinstance(kind, Array):
        return (empty(kind.item, fields),) * kind.length(fields)
    if isinstance(kind, (Greedy, Items)):
        return ()
    if isinstance(kind, Packed):
        return np.zeros(kind.count(fields), "u8")
    if isinstance(kind, Sized):
        return empty(kind.item, fields)
    if isinstance(kind, Descriptor):
        tag, body = next(iter(kind.bodies.items()), (0, None))
        inner = {"data": b""} if body is None else empty(body, fields)
        return {"tag": tag, "size_length": 1, **inner}
    if isinstance(kind, Bits):
        return dict.fromkeys((name for name, _ in kind.names), 0)
    if isinstance(kind, Record):
        found: dict[str, Any] = {}
        for name, inner, conditions in kind.fields:
            if not conditions or conditions["when"]({**fields, **found}):
                value = empty(inner, {**fields, **found})
                found.update(value if isinstance(inner, Bits) else {name: value})
        return found
    return 0
