"""Words for fields made of others: lists, records, and what stands behind its own length."""

from __future__ import annotations

import io
import itertools
from array import array as numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import eq
from typing import Any, overload

from fragdex.boxes.kinds import Bits, Kind, KindError, Mapped, rest, take, text_rest
from fragdex.boxes.limits import MAX_ITEMS
from fragdex.errors import BuildError, MalformedBox

FEW = 32
"""Records of one list that are kept as dicts."""


class LazyList(Sequence[Any]):
    """The records of a long list, each parsed when it is asked for; a slice of it is a tuple.

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
        return tuple, (self[:],)  # how an item is parsed is no value

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
    """A fixed number of items."""

    def __init__(self, count: int | Callable[[Mapping[str, Any]], int], item: Any) -> None:
        super().__init__()
        self.count, self.item = count, item

    def length(self, context: Any) -> int:
        """How many items, told by the fields before."""
        return self.count(context) if callable(self.count) else self.count

    def _parse(self, stream: Any, context: Any, path: Any) -> Sequence[Any]:
        # Every item takes a byte or more: a count beyond what is left fails before it grows.
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
    """Hold a claimed count against the bytes that remain."""
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
    """A counted list whose count is held against the bytes that remain before it is believed."""

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


class Sized(Kind):
    """Something behind its own length in bytes."""

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


def array(count: int | Callable[[Mapping[str, Any]], int], item: Any) -> Any:
    """A fixed number of items; `count` may be told by the fields before."""
    return Array(count, item)


def greedy(item: Any) -> Any:
    """Items until the end of the box."""
    return Greedy(item)


def items(count: Any, item: Any, least: int) -> Any:
    """A count of type `count`, then so many items of at least `least` bytes each."""
    return Items(count, item, least)


def record(**fields: Any) -> Any:
    """Named fields that stand together inside a list; `where(kind, when=…)` makes one optional."""
    return Record(fields)


def sized(size: Any, item: Any = rest) -> Any:
    """Bytes, or `item`, behind their own length of type `size`."""
    return Sized(size, item)


def pascal(size: Any) -> Any:
    """Text behind its own length in bytes of type `size`."""
    return Sized(size, text_rest)
