"""The words in which single fields are declared; the one importer of construct.

Integers, codes, texts, bit fields. A word never allocates by a number that the file claims before
it has held the claim against the bytes that remain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import construct  # type: ignore[import-untyped]  # nothing else imports it
import numpy as np

from fragdex.errors import BuildError, MalformedBox

Integer = construct.FormatField
WideInteger = construct.BytesInteger
KindError = construct.ConstructError


def take(stream: Any, size: int, path: Any) -> bytes:
    """Exactly `size` bytes of a stream, or KindError."""
    data: bytes = stream.read(size)
    if len(data) < size:
        raise KindError(f"{size} bytes are needed, {len(data)} are left")
    return data


u8, u16, u24, u32, u64 = (
    construct.Int8ub,
    construct.Int16ub,
    construct.Int24ub,
    construct.Int32ub,
    construct.Int64ub,
)
i8, i16, i24, i32, i64 = (
    construct.Int8sb,
    construct.Int16sb,
    construct.Int24sb,
    construct.Int32sb,
    construct.Int64sb,
)

LATIN_1 = "latin-1"  # maps all 256 byte values both ways, so that no four-letter code is lost


class Kind(construct.Construct):  # type: ignore[misc]
    """A word: it reads its value from a stream of the box body and writes it back."""


class Mapped(Kind):
    """A word whose value is a dict of named fields."""


class Code(Kind):
    """Four bytes as four latin-1 letters."""

    def _parse(self, stream: Any, context: Any, path: Any) -> str:
        return take(stream, 4, path).decode(LATIN_1)

    def _build(self, obj: str, stream: Any, context: Any, path: Any) -> str:
        stream.write(letters(obj)[0])
        return obj


def letters(code: str) -> tuple[bytes]:
    """The four bytes of a code."""
    data = code.encode(LATIN_1)
    if len(data) != 4:
        raise BuildError("a code needs four letters", expected=4, found=repr(code))
    return (data,)


class Raw(Kind):
    """A fixed number of bytes, or as many as the fields before say."""

    def __init__(self, size: int | Callable[[Mapping[str, Any]], int]) -> None:
        super().__init__()
        self.size = size

    def length(self, context: Any) -> int:
        """How many bytes, told by the fields before."""
        return self.size(context) if callable(self.size) else self.size

    def _parse(self, stream: Any, context: Any, path: Any) -> bytes:
        return take(stream, self.length(context), path)

    def _build(self, obj: bytes, stream: Any, context: Any, path: Any) -> bytes:
        stream.write(exactly(self.length(context))(obj)[0])
        return obj


def exactly(size: int) -> Callable[[Any], tuple[bytes]]:
    """A check that a value is so many bytes."""

    def check(value: Any) -> tuple[bytes]:
        data = bytes(value) if not isinstance(value, int) else b""
        if len(data) != size:
            raise BuildError("wrong number of bytes", expected=size, found=len(data))
        return (data,)

    return check


class Rest(Kind):
    """All bytes to the end of the box."""

    def _parse(self, stream: Any, context: Any, path: Any) -> bytes:
        return stream.read()  # type: ignore[no-any-return]

    def _build(self, obj: bytes, stream: Any, context: Any, path: Any) -> bytes:
        stream.write(obj)
        return obj


class Payload(Rest):
    """All bytes to the end of the box, as a view of the input: nothing is copied."""


class String(Kind):
    """UTF-8 up to a zero byte; other bytes become lone surrogates, which come back as they were."""

    def _parse(self, stream: Any, context: Any, path: Any) -> str:
        at = stream.tell()
        end = stream.getvalue().find(0, at)
        if end < 0:
            raise KindError("a string without its closing zero byte")
        stream.seek(end + 1)
        return stream.getvalue()[at:end].decode("utf-8", "surrogateescape")  # type: ignore[no-any-return]

    def _build(self, obj: str, stream: Any, context: Any, path: Any) -> str:
        data = obj.encode("utf-8", "surrogateescape")
        if 0 in data:
            raise BuildError("a text that ends at a zero byte cannot hold one", found=repr(obj))
        stream.write(data + b"\0")
        return obj


class Text(construct.Adapter):  # type: ignore[misc]
    """Bytes shown as text without loss: what is no UTF-8 becomes lone surrogates."""

    def _decode(self, obj: bytes, context: Any, path: Any) -> str:
        return obj.decode("utf-8", "surrogateescape")

    def _encode(self, obj: str, context: Any, path: Any) -> bytes:
        return obj.encode("utf-8", "surrogateescape")


class Bits(Kind):
    """Named bit fields packed into a big-endian integer; they stand flat among their neighbours."""

    def __init__(self, size: int, names: Sequence[tuple[str, int]]) -> None:
        super().__init__()
        if sum(width for _, width in names) != size * 8:
            raise TypeError(f"bit widths of {names} do not fill {size} bytes")
        self.size, self.names = size, names

    def _parse(self, stream: Any, context: Any, path: Any) -> dict[str, int]:
        value = int.from_bytes(take(stream, self.size, path), "big")
        shift = self.size * 8
        fields = {}
        for name, width in self.names:
            shift -= width
            fields[name] = value >> shift & ((1 << width) - 1)
        return fields

    def _build(self, obj: Mapping[str, int], stream: Any, context: Any, path: Any) -> Any:
        value = 0
        for name, width in self.names:
            if not 0 <= obj[name] < 1 << width:
                raise BuildError("a bit field does not fit", path=name, found=obj[name])
            value = value << width | int(obj[name])
        stream.write(value.to_bytes(self.size, "big"))
        return obj


class Packed(Kind):
    """Whole numbers of 4, 8, 16 or 32 bits, as one numpy array; both places told by fields."""

    def __init__(
        self,
        width: Callable[[Mapping[str, Any]], int],
        count: Callable[[Mapping[str, Any]], int],
    ) -> None:
        super().__init__()
        self.width, self.count = width, count

    def _parse(self, stream: Any, context: Any, path: Any) -> np.ndarray[Any, Any]:
        width, count = self.width(context), self.count(context)
        if not count:
            return np.zeros(0, _code_of(width))
        if width not in (4, 8, 16, 32):
            raise KindError(f"entries of {width} bits")
        data = stream.read((count * width + 7) // 8)
        if len(data) * 8 < count * width:
            raise MalformedBox(
                "a list claims more items than its box has bytes for",
                expected=f"at most {len(data) * 8 // width}",
                found=count,
            )
        if width == 4:
            pairs = np.frombuffer(data, ">u1")
            values = np.stack((pairs >> 4, pairs & 15), axis=1).reshape(-1)
            if count % 2 and values[-1]:
                raise KindError("padding bits that are not zero")
            return values[:count]
        return np.frombuffer(data, f">u{width // 8}").copy()

    def shown(self, values: Any, context: Any) -> Any:
        """Numbers as an array of their width; what does not fit stays, for the builder to name."""
        try:
            return np.array(values, _code_of(self.width(context)))
        except (OverflowError, TypeError, ValueError):
            return values

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        width = self.width(context)
        values = np.asarray(obj, "u8") if len(obj) else np.zeros(0, "u8")
        if len(values) != self.count(context):
            raise BuildError("wrong length", expected=self.count(context), found=len(values))
        if not len(values):
            return obj
        if width not in (4, 8, 16, 32) or int(values.max()) >> width:
            raise BuildError("a number does not fit its width", expected=f"{width} bits")
        if width == 4:
            pairs = np.zeros(len(values) + len(values) % 2, "u1")
            pairs[: len(values)] = values
            stream.write((pairs[0::2] << 4 | pairs[1::2]).tobytes())
        else:
            stream.write(values.astype(f">u{width // 8}").tobytes())
        return obj


def _code_of(width: int) -> str:
    return f">u{width // 8}" if width in (8, 16, 32) else "u1"


fourcc = Code()
rest = Rest()
payload = Payload()
text_rest = Text(rest)
cstring = String()


def raw(size: int | Callable[[Mapping[str, Any]], int]) -> Any:
    """`size` bytes, as they are; `size` may be told by the fields before."""
    return Raw(size)


def bits(size: int, **names: int) -> Any:
    """Bit fields of the given widths, first one in the highest bits, `size` bytes in all."""
    return Bits(size, tuple(names.items()))


def packed(
    width: Callable[[Mapping[str, Any]], int], count: Callable[[Mapping[str, Any]], int]
) -> Any:
    """`count` numbers of `width` bits each (4, 8, 16 or 32), the last byte filled with zeros."""
    return Packed(width, count)
