"""How a box is declared; the one importer of construct.

A box is declared once, as a list of fields. From that list come the parser, the builder and the
byte offsets that the batch reader of fragments uses, so that the three cannot drift apart.

A field has a name, a type and at most one condition: on `version` and `flags` of a full box
(ISO/IEC 14496-12, 4.2.2), or on fields before it. For each (version, flags) met, the fields whose
place is fixed are joined into runs that one `struct` call reads; the rest is read by construct,
or by numpy where it is a table of rows.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import construct
import numpy as np

from fragdex.errors import BuildError, LimitExceeded, MalformedBox

__all__ = ["BoxLayout", "Field", "Fields", "Rows", "box", "fullbox", "uuid_box"]

Fields = Mapping[str, Any]

u8, u16, u24, u32, u64 = (
    construct.Int8ub,
    construct.Int16ub,
    construct.Int24ub,
    construct.Int32ub,
    construct.Int64ub,
)
i8, i16, i32, i64 = construct.Int8sb, construct.Int16sb, construct.Int32sb, construct.Int64sb

LATIN_1 = "latin-1"  # maps all 256 byte values both ways, so that no four-letter code is lost


class _Text(construct.Adapter):  # type: ignore[misc]
    """Bytes shown as text without loss: what is no UTF-8 becomes lone surrogates and comes back."""

    def __init__(self, subcon: Any, encoding: str = "utf-8") -> None:
        super().__init__(subcon)
        self.encoding = encoding

    def _decode(self, obj: bytes, context: Any, path: Any) -> str:
        return obj.decode(self.encoding, "surrogateescape")

    def _encode(self, obj: str, context: Any, path: Any) -> bytes:
        return obj.encode(self.encoding, "surrogateescape")


class _Items(construct.Subconstruct):  # type: ignore[misc]
    """A counted list whose count is held against the bytes that remain before it is believed."""

    def __init__(self, count: Any, item: Any, least: int) -> None:
        super().__init__(item)
        self.count, self.least = count, least

    def _parse(self, stream: Any, context: Any, path: Any) -> list[Any]:
        count = self.count._parsereport(stream, context, path)
        remaining = len(stream.getbuffer()) - stream.tell()
        if count * self.least > remaining:
            raise LimitExceeded(
                "a list claims more items than its box has bytes for",
                expected=f"at most {remaining // self.least}",
                found=count,
            )
        return [self.subcon._parsereport(stream, context, path) for _ in range(count)]

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        self.count._build(len(obj), stream, context, path)
        for item in obj:
            self.subcon._build(item, stream, context, path)
        return obj


class _Bits(construct.Adapter):  # type: ignore[misc]
    """Named bit fields packed into a big-endian integer; they stand flat among the box's fields."""

    def __init__(self, size: int, names: Sequence[tuple[str, int]]) -> None:
        super().__init__(construct.Bytes(size))
        if sum(width for _, width in names) != size * 8:
            raise TypeError(f"bit widths of {names} do not fill {size} bytes")
        self.size, self.names = size, names

    def _decode(self, obj: bytes, context: Any, path: Any) -> dict[str, int]:
        value, shift = int.from_bytes(obj, "big"), self.size * 8
        fields = {}
        for name, width in self.names:
            shift -= width
            fields[name] = value >> shift & ((1 << width) - 1)
        return fields

    def _encode(self, obj: Mapping[str, int], context: Any, path: Any) -> bytes:
        value = 0
        for name, width in self.names:
            if not 0 <= obj[name] < 1 << width:
                raise BuildError("a bit field does not fit", path=name, found=obj[name])
            value = value << width | obj[name]
        return value.to_bytes(self.size, "big")


fourcc = _Text(construct.Bytes(4), LATIN_1)
rest = construct.GreedyBytes
text_rest = _Text(construct.GreedyBytes)
cstring = _Text(construct.NullTerminated(construct.GreedyBytes))


def raw(size: int) -> Any:
    """`size` bytes, as they are."""
    return construct.Bytes(size)


def array(count: int, item: Any) -> Any:
    """A fixed number of items."""
    return construct.Array(count, item)


def greedy(item: Any) -> Any:
    """Items until the end of the box."""
    return construct.GreedyRange(item)


def items(count: Any, item: Any, least: int) -> Any:
    """A count of type `count`, then so many items of at least `least` bytes each."""
    return _Items(count, item, least)


def record(**fields: Any) -> Any:
    """Named fields that stand together inside a list; parsed to a dict."""
    return construct.Struct(*(construct.Renamed(kind, name) for name, kind in fields.items()))


def sized(size: Any) -> Any:
    """Bytes behind their own length of type `size`."""
    return construct.Prefixed(size, construct.GreedyBytes)


def pascal(size: Any) -> Any:
    """Text behind its own length in bytes of type `size`."""
    return _Text(construct.Prefixed(size, construct.GreedyBytes))


def bits(size: int, **names: int) -> Any:
    """Bit fields of the given widths, first one in the highest bits, `size` bytes in all."""
    return _Bits(size, tuple(names.items()))


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of fixed-size rows, read by numpy as one structured array (big-endian).

    Attributes:
        columns: (name, numpy type code, flag mask or 0) of each column in file order.
        count: name of the field that holds the number of rows; None: as many as fit.
    """

    columns: tuple[tuple[str, str, int], ...]
    count: str | None = None

    def dtype(self, flags: int) -> np.dtype[np.void]:
        """The row's dtype under these flags: big-endian, packed, unaligned."""
        return _rows_dtype(self.columns, flags)


@lru_cache(maxsize=4096)
def _rows_dtype(columns: tuple[tuple[str, str, int], ...], flags: int) -> np.dtype[np.void]:
    return np.dtype([(name, code) for name, code, mask in columns if not mask or flags & mask])


def rows(count: str | None, *columns: tuple[str, str] | tuple[str, str, int]) -> Rows:
    """Declare a table: `rows("entry_count", ("sample_count", ">u4"), …)`."""
    return Rows(tuple((*c, 0) if len(c) == 2 else c for c in columns), count)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a box.

    Attributes:
        name: the standard's own name.
        kind: a construct type, `Rows`, or a dict from version to a type.
        flag: present only if one of these bits of `flags` is set (0: always).
        version: present only in these versions (empty: in all).
        when: present only if this holds for the fields before it.
        default: what a maker of boxes gets where it names no value.
    """

    name: str
    kind: Any
    flag: int = 0
    version: tuple[int, ...] = ()
    when: Callable[[Fields], bool] | None = None
    default: Any = None

    def resolved(self, version: int, flags: int) -> Any:
        """The type under this version and these flags, or None where the field is absent."""
        if (self.flag and not flags & self.flag) or (self.version and version not in self.version):
            return None
        if isinstance(self.kind, dict):
            return self.kind.get(version, self.kind[max(self.kind)])
        return self.kind


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring fields of fixed size, read by one struct call."""

    names: tuple[str, ...]
    codec: struct.Struct


@dataclass(frozen=True)
class BoxLayout:
    """The declaration of one box type.

    Attributes:
        code: four-letter code; for uuid boxes the 32 hex digits of the user type.
        title: the standard's name of the box.
        source: standard and clause.
        fields: in file order, without the box header and without version and flags.
        full: whether version and flags stand first (ISO/IEC 14496-12, 4.2.2).
        children: whether boxes follow the fields until the end.
        versions: versions this declaration covers; others are kept as opaque bytes.
    """

    code: str
    title: str
    source: str
    fields: tuple[Field, ...] = ()
    full: bool = False
    children: bool = False
    versions: tuple[int, ...] = (0, 1)
    _steps: dict[tuple[int, int], tuple[Any, ...]] = field(default_factory=dict, repr=False)

    def steps(self, version: int, flags: int) -> tuple[_Run | Field, ...]:
        """The plan for this version and these flags: struct runs, and fields read one by one."""
        key = (version, flags)
        if key not in self._steps:
            if len(self._steps) > 256:  # hostile flags must not fill the memory
                self._steps.clear()
            self._steps[key] = tuple(self._plan(version, flags))
        return self._steps[key]

    def _plan(self, version: int, flags: int) -> list[_Run | Field]:
        plan: list[_Run | Field] = []
        names: list[str] = []
        formats = ">"

        def close() -> None:
            nonlocal names, formats
            if names:
                plan.append(_Run(tuple(names), struct.Struct(formats)))
            names, formats = [], ">"

        for declared in self.fields:
            kind = declared.resolved(version, flags)
            if kind is None:
                continue
            if isinstance(kind, construct.FormatField) and declared.when is None:
                names.append(declared.name)
                formats += kind.fmtstr[1]
            else:
                close()
                plan.append(Field(declared.name, kind, when=declared.when))
        close()
        return plan

    def offsets(self, version: int, flags: int) -> dict[str, tuple[int, np.dtype[Any]]]:
        """Where the leading fixed fields stand: name → (bytes after the header, dtype).

        A full box's version and flags are the first four bytes and not listed. The table of
        rows, if one follows directly, is listed with its row dtype.

        >>> from fragdex.boxes.tfhd import TFHD
        >>> TFHD.offsets(0, 0x8)["default_sample_duration"]
        (8, dtype('>u4'))
        """
        at = 4 if self.full else 0
        found: dict[str, tuple[int, np.dtype[Any]]] = {}
        for step in self.steps(version, flags):
            if isinstance(step, Field):
                if isinstance(step.kind, Rows):
                    found[step.name] = (at, step.kind.dtype(flags))
                break
            for name, code in zip(step.names, step.codec.format[1:], strict=True):
                # struct's ">" sizes are the standard ones; numpy's letters are the machine's.
                kind = "u" if code.isupper() else "i"
                dtype = np.dtype(f">{kind}{struct.calcsize('>' + code)}")
                found[name] = (at, dtype)
                at += dtype.itemsize
        return found

    def parse(self, body: memoryview) -> tuple[dict[str, Any], int]:
        """Read the fields from a box body; returns them and the bytes they took.

        Raises:
            MalformedBox: the body ends inside a field, or a count does not fit.
        """
        fields: dict[str, Any] = {}
        at = version = flags = 0
        if self.full:
            if len(body) < 4:
                raise MalformedBox("no room for version and flags", expected=4, found=len(body))
            flags = int.from_bytes(body[:4], "big")
            version, flags = flags >> 24, flags & 0xFFFFFF
            fields["version"], fields["flags"] = version, flags
            at = 4
        for step in self.steps(version, flags):
            if isinstance(step, _Run):
                if at + step.codec.size > len(body):
                    raise MalformedBox(
                        f"the box ends inside {step.names[0]} … {step.names[-1]}",
                        expected=f"{at + step.codec.size} bytes",
                        found=len(body),
                    )
                fields.update(zip(step.names, step.codec.unpack_from(body, at), strict=True))
                at += step.codec.size
            elif step.when is None or step.when(fields):
                at += _parse_field(step, body[at:], fields, flags)
        return fields, at

    def build(self, fields: Fields) -> bytes:
        """The body that these fields make, without box header and children.

        Raises:
            BuildError: a field is missing or does not fit.
        """
        out = bytearray()
        version = flags = 0
        if self.full:
            version, flags = fields["version"], fields["flags"]
            out += (version << 24 | flags).to_bytes(4, "big")
        for step in self.steps(version, flags):
            try:
                if isinstance(step, _Run):
                    out += step.codec.pack(*(fields[name] for name in step.names))
                elif step.when is None or step.when(fields):
                    out += _build_field(step, fields, flags)
            except (KeyError, struct.error, construct.ConstructError, TypeError) as error:
                names = step.names if isinstance(step, _Run) else (step.name,)
                raise BuildError(
                    f"cannot write {', '.join(names)}: {error!r}", path=self.code
                ) from error
        return bytes(out)


def _parse_field(step: Field, body: memoryview, fields: dict[str, Any], flags: int) -> int:
    kind = step.kind
    if isinstance(kind, Rows):
        dtype = kind.dtype(flags)
        size = dtype.itemsize
        count = len(body) // size if kind.count is None else fields[kind.count]
        if count * size > len(body):
            raise MalformedBox(
                f"{kind.count} claims more rows than the box has bytes for",
                expected=f"at most {len(body) // size}",
                found=count,
            )
        # A row without columns has no bytes: the count alone says how many there are.
        fields[step.name] = (
            np.frombuffer(body, dtype, count).copy() if size else np.zeros(0, dtype)
        )
        return count * size
    stream = io.BytesIO(body)
    try:
        value = kind._parsereport(stream, construct.Container(fields), step.name)
    except construct.ConstructError as error:
        raise MalformedBox(f"the box ends inside {step.name}", found=str(error)) from error
    if isinstance(kind, _Bits):
        fields.update(value)
    else:
        fields[step.name] = _plain(value)
    return stream.tell()


def _build_field(step: Field, fields: Fields, flags: int) -> bytes:
    kind = step.kind
    if isinstance(kind, Rows):
        table = np.asarray(fields[step.name])
        dtype = kind.dtype(flags)
        if table.dtype != dtype:
            raise BuildError(
                "rows of the wrong dtype", path=step.name, expected=dtype, found=table.dtype
            )
        if kind.count is not None and dtype.itemsize and fields[kind.count] != len(table):
            raise BuildError(
                f"{kind.count} is not the number of rows",
                path=step.name,
                expected=len(table),
                found=fields[kind.count],
            )
        return table.tobytes()
    value = fields if isinstance(kind, _Bits) else fields[step.name]
    stream = io.BytesIO()
    kind._build(value, stream, construct.Container(fields), step.name)
    return stream.getvalue()


def _plain(value: Any) -> Any:
    """Construct's containers as plain dicts and tuples, without its private entries."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if not str(k).startswith("_")}
    if isinstance(value, list):
        return tuple(_plain(v) for v in value)
    return value


def _fields(declared: Mapping[str, Any]) -> tuple[Field, ...]:
    return tuple(
        Field(name, *kind[:1], **kind[1]) if isinstance(kind, tuple) else Field(name, kind)
        for name, kind in declared.items()
    )


def where(kind: Any, **conditions: Any) -> tuple[Any, dict[str, Any]]:
    """A field with a condition: `where(u64, flag=1)`, `where(u8, version=(1,))`."""
    return (kind, conditions)


def box(code: str, title: str, source: str, children: bool = False, **fields: Any) -> BoxLayout:
    """Declare a plain box."""
    return BoxLayout(code, title, source, _fields(fields), children=children)


def fullbox(
    code: str,
    title: str,
    source: str,
    *,
    children: bool = False,
    versions: tuple[int, ...] = (0, 1),
    **fields: Any,
) -> BoxLayout:
    """Declare a full box: version and flags stand first."""
    return BoxLayout(code, title, source, _fields(fields), True, children, versions)


def uuid_box(user_type: str, title: str, source: str, *, full: bool, **fields: Any) -> BoxLayout:
    """Declare a uuid box by the 32 hex digits of its user type (ISO/IEC 14496-12, 4.2.2)."""
    return BoxLayout(user_type.replace("-", "").lower(), title, source, _fields(fields), full)
