"""The words in which fields are declared; the one importer of construct.

Integers, codes, texts, bit fields, and fields made of others: lists, records, what stands after
its own length, descriptors. A word never allocates by a number that the file claims before it has
compared the claim with the bytes that remain.
"""

from __future__ import annotations

import io
import itertools
from array import array as numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import eq
from typing import Any, overload

import construct  # type: ignore[import-untyped]  # nothing else imports it
import numpy as np

from fragdex.boxes.limits import MAX_ITEMS
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


class OpenText(str):
    """A text that its box ends before the closing zero."""

    __slots__ = ()


class String(Kind):
    """UTF-8 up to a zero byte; other bytes become lone surrogates, which come back as they were.

    A text that the box ends in is an `OpenText`, which comes back without the zero.
    """

    def _parse(self, stream: Any, context: Any, path: Any) -> str:
        at = stream.tell()
        end = stream.getvalue().find(0, at)
        text = stream.getvalue()[at : None if end < 0 else end].decode("utf-8", "surrogateescape")
        stream.seek(end + 1 if end >= 0 else len(stream.getvalue()))
        return text if end >= 0 else OpenText(text)

    def _build(self, obj: str, stream: Any, context: Any, path: Any) -> str:
        data = obj.encode("utf-8", "surrogateescape")
        if 0 in data:
            raise BuildError("a text that ends at a zero byte cannot hold one", found=repr(obj))
        stream.write(data if isinstance(obj, OpenText) else data + b"\0")
        return obj


class Text(construct.Adapter):  # type: ignore[misc]
    """Bytes shown as text without loss: what is not UTF-8 becomes lone surrogates."""

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
    """Whole numbers of 4, 8, 16 or 32 bits, as one numpy array; both places told by fields.

    The last byte is filled with zeros.
    """

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


FEW = 32
"""Records of one list that are kept as dicts."""


class LazyList(Sequence[Any]):
    """The records of a long list, each parsed when it is requested; a slice of it is a tuple.

    A record of two bytes would take a hundred times that as a dict.
    """

    __slots__ = ("_context", "_data", "_item", "_starts")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, item: Kind, data: bytes, starts: numbers[int], context: Any) -> None:
        self._item, self._data, self._starts, self._context = item, data, starts, context

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, at: int) -> Any: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Any, ...]: ...

    def __getitem__(self, at: int | slice) -> Any:
        places = range(len(self))[at]
        if isinstance(places, range):
            return tuple(map(self._parsed, places))
        return self._parsed(places)

    def __iter__(self) -> Iterator[Any]:
        return map(self._parsed, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (tuple, list, LazyList)):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __repr__(self) -> str:
        return repr(self[:])

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self[:],)  # how an item is parsed is not a value

    def _parsed(self, at: int) -> Any:
        data = self._data[self._starts[at] : self._starts[at + 1]]
        return self._item._parse(io.BytesIO(data), self._context, "")


LISTS = (tuple, list, LazyList)
"""What a field that is a list may be."""


def _listed(items: Iterable[Any], item: Any, stream: Any, context: Any) -> Sequence[Any]:
    """Items as they are parsed from a stream: a tuple, or where records are many, a LazyList."""
    if not isinstance(item, Mapped):
        return tuple(items)
    few: list[Any] = []
    begin, starts = stream.tell(), numbers("I", [0])
    for value in items:
        if len(few) <= FEW:
            few.append(value)
        starts.append(stream.tell() - begin)
    if len(few) <= FEW:
        return tuple(few)
    return LazyList(item, stream.getvalue()[begin : begin + starts[-1]], starts, dict(context))


class Array(Kind):
    """A fixed number of items; it may come from the fields before."""

    def __init__(self, count: int | Callable[[Mapping[str, Any]], int], item: Any) -> None:
        super().__init__()
        self.count, self.item = count, item

    def length(self, context: Any) -> int:
        """How many items, told by the fields before."""
        return self.count(context) if callable(self.count) else self.count

    def _parse(self, stream: Any, context: Any, path: Any) -> Sequence[Any]:
        # Every item takes a byte or more: a count beyond the rest fails before it grows.
        count = self.length(context)
        _held(count, 1, stream)
        parsed = (self.item._parse(stream, context, path) for _ in range(count))
        return _listed(parsed, self.item, stream, context)

    def _build(self, obj: Sequence[Any], stream: Any, context: Any, path: Any) -> Sequence[Any]:
        if len(obj) != self.length(context):
            raise BuildError("wrong length", expected=self.length(context), found=len(obj))
        for item in obj:
            self.item._build(item, stream, context, path)
        return obj


class Greedy(Kind):
    """Items until the end; bytes too few for one more are left."""

    def __init__(self, item: Any) -> None:
        super().__init__()
        self.item = item

    def _parse(self, stream: Any, context: Any, path: Any) -> Sequence[Any]:
        return _listed(self._parsed(stream, context, path), self.item, stream, context)

    def _parsed(self, stream: Any, context: Any, path: Any) -> Iterator[Any]:
        end = len(stream.getbuffer())
        for count in itertools.count(1):
            at = stream.tell()
            if at >= end:
                return
            if count > MAX_ITEMS:
                raise MalformedBox("a list of too many items", expected=f"at most {MAX_ITEMS}")
            try:
                value = self.item._parse(stream, context, path)
            except KindError:
                stream.seek(at)
                return
            yield value

    def _build(self, obj: Sequence[Any], stream: Any, context: Any, path: Any) -> Sequence[Any]:
        for item in obj:
            self.item._build(item, stream, context, path)
        return obj


def _held(count: int, least: int, stream: Any) -> None:
    """Compare a claimed count with the bytes that remain."""
    remaining = len(stream.getbuffer()) - stream.tell()
    if count > MAX_ITEMS:
        raise MalformedBox("a list of too many items", expected=f"at most {MAX_ITEMS}", found=count)
    if count * least > remaining:
        raise MalformedBox(
            "a list claims more items than its box has bytes for",
            expected=f"at most {remaining // least}",
            found=count,
        )


class Items(Kind):
    """A count, then so many items of `least` bytes or more each.

    The count is held against the bytes that remain before it is believed.
    """

    def __init__(self, count: Any, item: Any, least: int) -> None:
        super().__init__()
        self.count, self.item, self.least = count, item, least

    def _parse(self, stream: Any, context: Any, path: Any) -> Sequence[Any]:
        count = self.count._parse(stream, context, path)
        if isinstance(count, dict):
            raise TypeError("a count is one number")
        _held(count, self.least, stream)
        parsed = (self.item._parse(stream, context, path) for _ in range(count))
        return _listed(parsed, self.item, stream, context)

    def _build(self, obj: Sequence[Any], stream: Any, context: Any, path: Any) -> Sequence[Any]:
        self.count._build(len(obj), stream, context, path)
        for item in obj:
            self.item._build(item, stream, context, path)
        return obj


class Record(Mapped):
    """Named fields that stand together; parsed to a dict, bit fields flat in it."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__()
        self.fields = tuple(
            (name, *kind) if isinstance(kind, tuple) else (name, kind, {})
            for name, kind in fields.items()
        )

    def _parse(self, stream: Any, context: Any, path: Any) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, kind, conditions in self.fields:
            if not conditions or conditions["when"]({**context, **fields}):
                value = kind._parse(stream, {**context, **fields}, path)
                fields.update(value if isinstance(kind, Bits) else {name: value})
        return fields

    def _build(self, obj: Mapping[str, Any], stream: Any, context: Any, path: Any) -> Any:
        scope = {**context, **obj}
        for name, kind, conditions in self.fields:
            if not conditions or conditions["when"](scope):
                kind._build(obj if isinstance(kind, Bits) else obj[name], stream, scope, path)
        return obj


class Sized(Kind):
    """Something after its own length in bytes."""

    def __init__(self, size: Any, item: Any) -> None:
        super().__init__()
        self.size, self.item = size, item

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        body = take(stream, self.size._parse(stream, context, path), path)
        inner = io.BytesIO(body)
        value = self.item._parse(inner, context, path)
        if inner.tell() != len(body):
            raise KindError("a length that does not fit what it measures")
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        inner = io.BytesIO()
        self.item._build(obj, inner, context, path)
        body = inner.getvalue()
        self.size._build(len(body), stream, context, path)
        stream.write(body)
        return obj


class Descriptor(Mapped):
    """A descriptor of MPEG-4 systems (ISO/IEC 14496-1, 8.3.3): a tag, a length, a body by the tag.

    A dict of tag, size_length and the fields of the body; `data` where the tag is not known. The
    length may be written with more bytes than it needs, one to four: size_length says how many.
    """

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


# The words themselves: in a declaration each stands as a function of what makes one field differ
# from another.
fourcc = Code()
rest = Rest()
payload = Payload()
text_rest = Text(rest)
cstring = String()
raw: Any = Raw
packed: Any = Packed
array: Any = Array
greedy: Any = Greedy
items: Any = Items
descriptor: Any = Descriptor


def bits(size: int, **names: int) -> Any:
    """Bit fields of the given widths, first one in the highest bits, `size` bytes in all."""
    return Bits(size, tuple(names.items()))


def record(**fields: Any) -> Any:
    """Named fields that stand together inside a list; `where(kind, when=…)` makes one optional."""
    return Record(fields)


def sized(size: Any, item: Any = rest) -> Any:
    """Bytes, or `item`, after their own length of type `size`."""
    return Sized(size, item)


def pascal(size: Any) -> Any:
    """Text after its own length in bytes of type `size`."""
    return Sized(size, text_rest)
