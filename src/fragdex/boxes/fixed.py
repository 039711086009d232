"""Neighbouring fields of fixed size, joined into one struct call."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fragdex.boxes.kinds import LATIN_1, Code, Integer, Raw, exactly, letters
from fragdex.boxes.lists import Array
from fragdex.errors import BuildError


class Part(NamedTuple):
    """How a field of fixed size takes its place in a struct call."""

    format: str
    values: int
    dtype: np.dtype[Any]
    decode: Callable[[tuple[Any, ...]], Any] | None
    encode: Callable[[Any], tuple[Any, ...]] | None


def part(kind: Any) -> Part | None:
    """How a field of this kind joins a struct call, or None where its size is not fixed."""
    if isinstance(kind, Integer):
        code = kind.fmtstr[1]
        # struct's ">" sizes are the standard ones; numpy's letters are the machine's.
        dtype = np.dtype(f">{'i' if code.islower() else 'u'}{struct.calcsize('>' + code)}")
        return Part(code, 1, dtype, None, None)
    if isinstance(kind, Code):
        return Part("4s", 1, np.dtype("S4"), lambda v: v[0].decode(LATIN_1), letters)
    if isinstance(kind, Raw) and isinstance(kind.size, int):
        return Part(
            f"{kind.size}s", 1, np.dtype(f"V{kind.size}"), lambda v: v[0], exactly(kind.size)
        )
    if isinstance(kind, Array) and isinstance(kind.count, int):
        item = part(kind.item)
        if item is not None and item.decode is None:
            count = kind.count

            def encode(value: Sequence[Any]) -> tuple[Any, ...]:
                if len(value) != count:
                    raise BuildError("wrong length", expected=count, found=len(value))
                return tuple(value)

            dtype = np.dtype((item.dtype, (count,)))
            return Part(f"{count}{item.format}", count, dtype, tuple, encode)
    return None


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring fields of fixed size, read by one struct call."""

    names: tuple[str, ...]
    codec: struct.Struct
    parts: tuple[Part, ...]
    defaults: tuple[Any, ...]
    plain: bool

    def parse(self, body: memoryview, at: int, fields: dict[str, Any]) -> None:
        """Read the fields at `at` into `fields`."""
        values = self.codec.unpack_from(body, at)
        if self.plain:
            fields.update(zip(self.names, values, strict=True))
            return
        i = 0
        for name, piece in zip(self.names, self.parts, strict=True):
            stop = i + piece.values
            fields[name] = piece.decode(values[i:stop]) if piece.decode else values[i]
            i = stop

    def build(self, fields: Mapping[str, Any]) -> bytes:
        """The bytes of the fields."""
        if self.plain:
            return self.codec.pack(*[fields[name] for name in self.names])
        values: list[Any] = []
        for name, piece in zip(self.names, self.parts, strict=True):
            values.extend(piece.encode(fields[name]) if piece.encode else (fields[name],))
        return self.codec.pack(*values)


def zero(default: Any, piece: Part) -> Any:
    """The declared default, or the value of zero bytes."""
    if default is not None:
        return default
    if piece.decode is None:
        return 0
    return piece.decode(struct.unpack(">" + piece.format, bytes(piece.dtype.itemsize)))
