"""Descriptors of MPEG-4 systems: a tag, a length of one to four bytes, a body (14496-1, 8.3.3).

A length may be written with more bytes than it needs; how many is a field, size_length.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from fragdex.boxes.kinds import KindError, Mapped, rest
from fragdex.errors import BuildError

__all__ = ["Descriptor", "descriptor"]


class Descriptor(Mapped):
    """A dict of tag, size_length and the fields of the body; `data` where the tag is not known."""

    def __init__(self, bodies: Mapping[int, Any]) -> None:
        super().__init__()
        self.bodies = bodies

    def _parse(self, stream: io.BytesIO, context: Any, path: Any) -> dict[str, Any]:
        head = stream.read(2)
        size = length = 0
        while len(head) == 2:
            length += 1
            size = size << 7 | head[1] & 0x7F
            if not head[1] & 0x80:
                break
            if length == 4:
                raise KindError("a descriptor length of more than four bytes")
            head = head[:1] + stream.read(1)
        body = stream.read(size)
        if len(head) < 2 or len(body) < size:
            raise KindError("a descriptor that ends early")
        inner = io.BytesIO(body)
        kind = self.bodies.get(head[0])
        fields = {"data": body} if kind is None else kind._parse(inner, {}, path)
        if kind is not None and inner.tell() != size:
            raise KindError("a descriptor with bytes left over")
        return {"tag": head[0], "size_length": length, **fields}

    def _build(self, obj: Mapping[str, Any], stream: io.BytesIO, context: Any, path: Any) -> Any:
        inner = io.BytesIO()
        kind = self.bodies.get(obj["tag"])
        if kind is None:
            rest._build(obj["data"], inner, context, path)
        else:
            kind._build(obj, inner, {}, path)
        body = inner.getvalue()
        length = obj["size_length"]
        if not 1 <= length <= 4 or len(body) >> 7 * length:
            raise BuildError("a descriptor too long for its length bytes", found=len(body))
        stream.write(bytes([obj["tag"]]))
        stream.writelines(
            bytes([len(body) >> 7 * shift & 0x7F | (0x80 if shift else 0)])
            for shift in range(length - 1, -1, -1)
        )
        stream.write(body)
        return obj


def descriptor(bodies: Mapping[int, Any]) -> Any:
    """A descriptor; `bodies` tells the fields by tag."""
    return Descriptor(bodies)
