"""The words in which fields are declared; the one importer of construct.

Integers, codes, texts, bit fields, lists and records. A word never copies what the file claims
before it has held the claim against the bytes that remain.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import construct  # type: ignore[import-untyped]  # nothing else in the house sees it
import numpy as np

from fragdex.errors import BuildError, MalformedBox

Kind = construct.Construct
KindError = construct.ConstructError

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


class Part(NamedTuple):
    """How a field of fixed size takes its place in a struct call."""

    format: str
    values: int
    dtype: np.dtype[Any]
    decode: Callable[[tuple[Any, ...]], Any] | None
    encode: Callable[[Any], tuple[Any, ...]] | None


class _Code(construct.Construct):  # type: ignore[misc]
    """Four bytes as four latin-1 letters."""

    def _parse(self, stream: Any, context: Any, path: Any) -> str:
        return construct.stream_read(stream, 4, path).decode(LATIN_1)  # type: ignore[no-any-return]

    def _build(self, obj: str, stream: Any, context: Any, path: Any) -> str:
        stream.write(_letters(obj)[0])
        return obj


def _letters(code: str) -> tuple[bytes]:
    data = code.encode(LATIN_1)
    if len(data) != 4:
        raise BuildError("a code needs four letters", expected=4, found=repr(code))
    return (data,)


class _Raw(construct.Construct):  # type: ignore[misc]
    """A fixed number of bytes, or as many as the fields before say."""

    def __init__(self, size: int | Callable[[Mapping[str, Any]], int]) -> None:
        super().__init__()
        self.size = size

    def _length(self, context: Any) -> int:
        return self.size(context) if callable(self.size) else self.size

    def _parse(self, stream: Any, context: Any, path: Any) -> bytes:
        return construct.stream_read(stream, self._length(context), path)  # type: ignore[no-any-return]

    def _build(self, obj: bytes, stream: Any, context: Any, path: Any) -> bytes:
        stream.write(_exactly(self._length(context))(obj)[0])
        return obj


def _exactly(size: int) -> Callable[[Any], tuple[bytes]]:
    def check(value: Any) -> tuple[bytes]:
        data = bytes(value) if not isinstance(value, int) else b""
        if len(data) != size:
            raise BuildError("wrong number of bytes", expected=size, found=len(data))
        return (data,)

    return check


class _Rest(construct.Construct):  # type: ignore[misc]
    """All bytes to the end of the box."""

    def _parse(self, stream: Any, context: Any, path: Any) -> bytes:
        return stream.read()  # type: ignore[no-any-return]

    def _build(self, obj: bytes, stream: Any, context: Any, path: Any) -> bytes:
        stream.write(obj)
        return obj


class Payload(_Rest):
    """All bytes to the end of the box, as a view of the input: nothing is copied."""


class _String(construct.Construct):  # type: ignore[misc]
    """UTF-8 up to a zero byte; other bytes become lone surrogates, which come back as they were."""

    def _parse(self, stream: Any, context: Any, path: Any) -> str:
        at = stream.tell()
        end = stream.getvalue().find(0, at)
        if end < 0:
            raise construct.StreamError("a text without its closing zero byte")
        stream.seek(end + 1)
        return stream.getvalue()[at:end].decode("utf-8", "surrogateescape")  # type: ignore[no-any-return]

    def _build(self, obj: str, stream: Any, context: Any, path: Any) -> str:
        data = obj.encode("utf-8", "surrogateescape")
        if 0 in data:
            raise BuildError("a text that ends at a zero byte cannot hold one", found=repr(obj))
        stream.write(data + b"\0")
        return obj


class _Text(construct.Adapter):  # type: ignore[misc]
    """Bytes shown as text without loss: what is no UTF-8 becomes lone surrogates."""

    def _decode(self, obj: bytes, context: Any, path: Any) -> str:
        return obj.decode("utf-8", "surrogateescape")

    def _encode(self, obj: str, context: Any, path: Any) -> bytes:
        return obj.encode("utf-8", "surrogateescape")


class _Array(construct.Construct):  # type: ignore[misc]
    """A fixed number of items."""

    def __init__(self, count: int | Callable[[Mapping[str, Any]], int], item: Any) -> None:
        super().__init__()
        self.count, self.item = count, item

    def _length(self, context: Any) -> int:
        return self.count(context) if callable(self.count) else self.count

    def _parse(self, stream: Any, context: Any, path: Any) -> tuple[Any, ...]:
        # Every item takes a byte or more: a count beyond what is left fails before it grows.
        count = self._length(context)
        _held(count, 1, stream)
        return tuple(self.item._parse(stream, context, path) for _ in range(count))

    def _build(self, obj: Sequence[Any], stream: Any, context: Any, path: Any) -> Sequence[Any]:
        if len(obj) != self._length(context):
            raise BuildError("wrong length", expected=self._length(context), found=len(obj))
        for item in obj:
            self.item._build(item, stream, context, path)
        return obj


class _Greedy(construct.Construct):  # type: ignore[misc]
    """Items until the end; bytes too few for one more are left."""

    def __init__(self, item: Any) -> None:
        super().__init__()
        self.item = item

    def _parse(self, stream: Any, context: Any, path: Any) -> tuple[Any, ...]:
        found = []
        end = len(stream.getbuffer())
        at = stream.tell()
        while at < end:
            try:
                found.append(self.item._parse(stream, context, path))
            except construct.ConstructError:
                stream.seek(at)
                break
            at = stream.tell()
        return tuple(found)

    def _build(self, obj: Sequence[Any], stream: Any, context: Any, path: Any) -> Sequence[Any]:
        for item in obj:
            self.item._build(item, stream, context, path)
        return obj


def _held(count: int, least: int, stream: Any) -> None:
    """Hold a claimed count against the bytes that remain."""
    remaining = len(stream.getbuffer()) - stream.tell()
    if count * least > remaining:
        raise MalformedBox(
            "a list claims more items than its box has bytes for",
            expected=f"at most {remaining // least}",
            found=count,
        )


class _Items(construct.Construct):  # type: ignore[misc]
    """A counted list whose count is held against the bytes that remain before it is believed."""

    def __init__(self, count: Any, item: Any, least: int) -> None:
        super().__init__()
        self.count, self.item, self.least = count, item, least

    def _parse(self, stream: Any, context: Any, path: Any) -> tuple[Any, ...]:
        count = self.count._parse(stream, context, path)
        if isinstance(count, dict):
            raise TypeError("a count is one number")
        _held(count, self.least, stream)
        return tuple(self.item._parse(stream, context, path) for _ in range(count))

    def _build(self, obj: Sequence[Any], stream: Any, context: Any, path: Any) -> Sequence[Any]:
        self.count._build(len(obj), stream, context, path)
        for item in obj:
            self.item._build(item, stream, context, path)
        return obj


class Bits(construct.Construct):  # type: ignore[misc]
    """Named bit fields packed into a big-endian integer; they stand flat among their neighbours."""

    def __init__(self, size: int, names: Sequence[tuple[str, int]]) -> None:
        super().__init__()
        if sum(width for _, width in names) != size * 8:
            raise TypeError(f"bit widths of {names} do not fill {size} bytes")
        self.size, self.names = size, names

    def _parse(self, stream: Any, context: Any, path: Any) -> dict[str, int]:
        value = int.from_bytes(construct.stream_read(stream, self.size, path), "big")
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


class Record(construct.Construct):  # type: ignore[misc]
    """Named fields that stand together; parsed to a dict, bit fields flat in it."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__()
        self.fields = tuple(
            (name, *kind) if isinstance(kind, tuple) else (name, kind, {})
            for name, kind in fields.items()
        )

    def _parse(self, stream: Any, context: Any, path: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, kind, conditions in self.fields:
            if not conditions or conditions["when"]({**context, **found}):
                value = kind._parse(stream, {**context, **found}, path)
                found.update(value if isinstance(kind, Bits) else {name: value})
        return found

    def _build(self, obj: Mapping[str, Any], stream: Any, context: Any, path: Any) -> Any:
        scope = {**context, **obj}
        for name, kind, conditions in self.fields:
            if not conditions or conditions["when"](scope):
                kind._build(obj if isinstance(kind, Bits) else obj[name], stream, scope, path)
        return obj


class _Sized(construct.Construct):  # type: ignore[misc]
    """Something behind its own length in bytes."""

    def __init__(self, size: Any, item: Any) -> None:
        super().__init__()
        self.size, self.item = size, item

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        body = construct.stream_read(stream, self.size._parse(stream, context, path), path)
        inner = io.BytesIO(body)
        value = self.item._parse(inner, context, path)
        if inner.tell() != len(body):
            raise construct.StreamError("a length that does not fit what it measures")
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        inner = io.BytesIO()
        self.item._build(obj, inner, context, path)
        body = inner.getvalue()
        self.size._build(len(body), stream, context, path)
        stream.write(body)
        return obj


class Packed(construct.Construct):  # type: ignore[misc]
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
        if width not in (4, 8, 16, 32):
            raise construct.StreamError(f"entries of {width} bits")
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
                raise construct.StreamError("padding bits that are not zero")
            return values[:count]
        return np.frombuffer(data, f">u{width // 8}").copy()

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        width = self.width(context)
        values = np.asarray(obj, "u8") if len(obj) else np.zeros(0, "u8")
        if len(values) != self.count(context):
            raise BuildError("wrong length", expected=self.count(context), found=len(values))
        if width not in (4, 8, 16, 32) or (len(values) and int(values.max()) >> width):
            raise BuildError("a number does not fit its width", expected=f"{width} bits")
        if width == 4:
            pairs = np.append(values, 0) if len(values) % 2 else values
            stream.write((pairs[0::2] << 4 | pairs[1::2]).astype("u1").tobytes())
        else:
            stream.write(values.astype(f">u{width // 8}").tobytes())
        return obj


fourcc = _Code()
rest = _Rest()
payload = Payload()
text_rest = _Text(rest)
cstring = _String()


def raw(size: int | Callable[[Mapping[str, Any]], int]) -> Any:
    """`size` bytes, as they are; `size` may be told by the fields before."""
    return _Raw(size)


def array(count: int | Callable[[Mapping[str, Any]], int], item: Any) -> Any:
    """A fixed number of items; `count` may be told by the fields before."""
    return _Array(count, item)


def greedy(item: Any) -> Any:
    """Items until the end of the box."""
    return _Greedy(item)


def items(count: Any, item: Any, least: int) -> Any:
    """A count of type `count`, then so many items of at least `least` bytes each."""
    return _Items(count, item, least)


def record(**fields: Any) -> Any:
    """Named fields that stand together inside a list; `where(kind, when=…)` makes one optional."""
    return Record(fields)


def sized(size: Any, item: Any = rest) -> Any:
    """Bytes, or `item`, behind their own length of type `size`."""
    return _Sized(size, item)


def pascal(size: Any) -> Any:
    """Text behind its own length in bytes of type `size`."""
    return _Sized(size, text_rest)


def bits(size: int, **names: int) -> Any:
    """Bit fields of the given widths, first one in the highest bits, `size` bytes in all."""
    return Bits(size, tuple(names.items()))


def packed(
    width: Callable[[Mapping[str, Any]], int], count: Callable[[Mapping[str, Any]], int]
) -> Any:
    """`count` numbers of `width` bits each (4, 8, 16 or 32), the last byte filled with zeros."""
    return Packed(width, count)


def part(kind: Any) -> Part | None:
    """How a field of this kind joins a struct call, or None where its size is not fixed."""
    if isinstance(kind, construct.FormatField):
        code = kind.fmtstr[1]
        # struct's ">" sizes are the standard ones; numpy's letters are the machine's.
        dtype = np.dtype(f">{'i' if code.islower() else 'u'}{struct.calcsize('>' + code)}")
        return Part(code, 1, dtype, None, None)
    if isinstance(kind, _Code):
        return Part("4s", 1, np.dtype("S4"), lambda v: v[0].decode(LATIN_1), _letters)
    if isinstance(kind, _Raw) and isinstance(kind.size, int):
        return Part(
            f"{kind.size}s", 1, np.dtype(f"V{kind.size}"), lambda v: v[0], _exactly(kind.size)
        )
    if isinstance(kind, _Array) and isinstance(kind.count, int):
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


def empty(kind: Any, fields: Mapping[str, Any]) -> Any:
    """The value of a field that a maker of boxes leaves out: zero, nothing, no items."""
    if isinstance(kind, _Code):
        return "\0\0\0\0"
    if isinstance(kind, _Raw):
        return bytes(kind._length(fields))
    if isinstance(kind, _Rest):
        return b""
    if isinstance(kind, (_String, _Text)):
        return ""
    if isinstance(kind, _Array):
        return (empty(kind.item, fields),) * kind._length(fields)
    if isinstance(kind, (_Greedy, _Items)):
        return ()
    if isinstance(kind, Packed):
        return np.zeros(kind.count(fields), "u8")
    if isinstance(kind, _Sized):
        return empty(kind.item, fields)
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
