"""How a box is declared.

A box is declared once, as a list of fields. From that list come the parser, the builder and the
byte offsets that the batch reader of fragments uses, so that the three cannot drift apart.

A field has a name, a type and at most one condition: on `version` and `flags` of a full box
(ISO/IEC 14496-12, 4.2.2), on fields before it, or on the bytes that follow. For each (version,
flags) met, the fields whose place is fixed are joined into runs that one `struct` call reads; the
rest is read by construct, or by numpy where it is a table of rows.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np

from fragdex.boxes.kinds import (
    LATIN_1,
    Array,
    Bits,
    Code,
    Descriptor,
    Greedy,
    Integer,
    Items,
    KindError,
    Packed,
    Payload,
    Raw,
    Record,
    Rest,
    Sized,
    String,
    Text,
    exactly,
    letters,
)
from fragdex.boxes.rows import Rows
from fragdex.errors import BuildError, FragdexError, MalformedBox
from fragdex.record import record

Fields = Mapping[str, Any]


@record(frozen=True, slots=True)
class Field:
    """One field of a box.

    Attributes:
        name: the standard's own name.
        kind: a word of `kinds`, `Rows`, or a dict from version to one of them.
        flag: present only if one of these bits of `flags` is set (0: always).
        version: present only in these versions (empty: in all).
        when: present only if this holds for the fields before it.
        probe: present in a file only if this holds for the fields before it and the bytes that
            follow, and written where the fields name it: for what the fields cannot tell.
        default: what a maker of boxes gets where it names no value; None: zero or nothing.
    """

    name: str
    kind: Any
    flag: int = 0
    version: tuple[int, ...] = ()
    when: Callable[[Fields], bool] | None = None
    probe: Callable[[Fields, memoryview], bool] | None = None
    default: Any = None

    def resolved(self, version: int, flags: int) -> Any:
        """The type under this version and these flags, or None where the field is absent."""
        if (self.flag and not flags & self.flag) or (self.version and version not in self.version):
            return None
        if isinstance(self.kind, dict):
            return self.kind.get(version, self.kind[max(self.kind)])
        return self.kind

    @property
    def key(self) -> str:
        """The name under which the value stands: bit fields stand under their own names."""
        return self.kind.names[0][0] if isinstance(self.kind, Bits) else self.name

    @property
    def counted_by(self) -> str:
        """The field that holds the number of rows of this table, or ""."""
        kinds = self.kind.values() if isinstance(self.kind, dict) else (self.kind,)
        return next((kind.count for kind in kinds if isinstance(kind, Rows) and kind.count), "")

    def written(self, fields: Fields) -> bool:
        """Whether a box with these fields has this one (version and flags aside)."""
        if self.probe is not None:
            return self.key in fields
        return self.when is None or self.when(fields)


def where(kind: Any, **conditions: Any) -> tuple[Any, dict[str, Any]]:
    """A field with a condition: `where(u64, flag=1)`, `where(u8, version=(1,))`."""
    return (kind, conditions)


def declare(declared: Mapping[str, Any]) -> tuple[Field, ...]:
    """Fields from names, and kinds or what `where` gives."""
    return tuple(
        Field(**{"name": name, "kind": kind[0], **kind[1]})
        if isinstance(kind, tuple)
        else Field(name, kind)
        for name, kind in declared.items()
    )


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


@record(frozen=True, slots=True)
class Run:
    """Neighbouring fields of fixed size, read by one struct call."""

    names: tuple[str, ...]
    codec: struct.Struct
    parts: tuple[Part, ...]
    defaults: tuple[Any, ...]
    plain: bool
    reads: tuple[tuple[str, int | slice, bool], ...]
    """Name, which of the values of `codec`, whether these are letters."""

    @classmethod
    def of(cls, fields: Sequence[tuple[Field, Part]]) -> Run:
        """Of fields that stand one after the other."""
        names = tuple(declared.name for declared, _ in fields)
        parts = tuple(piece for _, piece in fields)
        codec = struct.Struct(">" + "".join(piece.format for piece in parts))
        reads, at = [], 0
        for name, piece in zip(names, parts, strict=True):
            is_array = piece.dtype.subdtype is not None
            reads.append(
                (name, slice(at, at + piece.values) if is_array else at, piece.dtype == "S4")
            )
            at += piece.values
        plain = not any(piece.decode for piece in parts)
        defaults = tuple(declared.default for declared, _ in fields)
        return cls(names, codec, parts, defaults, plain, tuple(reads))

    def parse(self, body: memoryview, at: int, fields: dict[str, Any]) -> None:
        """Read the fields at `at` into `fields`."""
        values = self.codec.unpack_from(body, at)
        if self.plain:
            fields.update(zip(self.names, values, strict=True))
            return
        for name, which, is_text in self.reads:
            value: Any = values[which]
            fields[name] = value.decode(LATIN_1) if is_text else value

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


_WORD = struct.Struct(">I").unpack_from
_MAX_STEPS = 256  # hostile flags must not fill the memory with plans


@record(frozen=True, repr=False)
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
        child_count: the field that holds the number of children, or None.
        structure: whether it says only where samples lie, how large they are and when, or how the
            file is arranged: what a copy says again. All else is content.
    """

    code: str
    title: str
    source: str
    fields: tuple[Field, ...] = ()
    full: bool = False
    children: bool = False
    versions: tuple[int, ...] = (0, 1)
    child_count: str | None = None
    structure: bool = False
    _steps: dict[tuple[int, int], tuple[Run | Field, ...]] = field(
        default_factory=dict, compare=False
    )

    def __repr__(self) -> str:
        return f"<layout of {self.code}: {self.title}>"

    def steps(self, version: int, flags: int) -> tuple[Run | Field, ...]:
        """The plan for this version and these flags: struct runs, and fields read one by one."""
        known = self._steps.get((version, flags))
        if known is None:
            if len(self._steps) > _MAX_STEPS:
                self._steps.clear()
            known = self._steps[version, flags] = tuple(self._plan(version, flags))
        return known

    def _plan(self, version: int, flags: int) -> list[Run | Field]:
        plan: list[Run | Field] = []
        pending: list[tuple[Field, Part]] = []

        def close() -> None:
            if pending:
                plan.append(Run.of(pending))
                pending.clear()

        for declared in self.fields:
            kind = declared.resolved(version, flags)
            if kind is None:
                continue
            piece = None if declared.when or declared.probe else part(kind)
            if piece is None:
                close()
                plan.append(replace(declared, kind=kind, flag=0, version=()))
            else:
                pending.append((declared, piece))
        close()
        return plan

    def offsets(self, version: int, flags: int) -> dict[str, tuple[int, np.dtype[Any]]]:
        """Where the leading fixed fields stand: name → (bytes after the header, dtype).

        A full box's version and flags are the first four bytes and not listed. The table of
        rows, if one follows directly and has no bit columns, is listed with its row dtype.

        >>> from fragdex.boxes.fragments import TFHD
        >>> TFHD.offsets(0, 0x8)["default_sample_duration"]
        (8, dtype('>u4'))
        """
        at = 4 if self.full else 0
        places: dict[str, tuple[int, np.dtype[Any]]] = {}
        for step in self.steps(version, flags):
            if isinstance(step, Field):
                conditional = step.when or step.probe
                if (
                    isinstance(step.kind, Rows)
                    and not conditional
                    and step.kind.stored_as_shown(flags)
                ):
                    places[step.name] = (at, step.kind.dtype(flags))
                break
            for name, piece in zip(step.names, step.parts, strict=True):
                places[name] = (at, piece.dtype)
                at += piece.dtype.itemsize
        return places

    def parse(self, body: memoryview) -> tuple[dict[str, Any], int]:
        """Read the fields from a box body; returns them and the bytes they took.

        Raises:
            MalformedBox: the body ends inside a field, or a count does not fit.
            LimitExceeded: a claimed count passes a named limit.
        """
        fields: dict[str, Any] = {}
        at = version = flags = 0
        if self.full:
            if len(body) < 4:
                raise MalformedBox("no room for version and flags", expected=4, found=len(body))
            (flags,) = _WORD(body)
            version, flags = flags >> 24, flags & 0xFFFFFF
            fields["version"], fields["flags"] = version, flags
            at = 4
        for step in self._steps.get((version, flags)) or self.steps(version, flags):
            if isinstance(step, Run):
                stop = at + step.codec.size
                if stop > len(body):
                    raise MalformedBox(
                        f"the box ends inside {step.names[0]} … {step.names[-1]}",
                        expected=f"{stop} bytes",
                        found=len(body),
                    )
                step.parse(body, at, fields)
                at = stop
            elif (step.when is None or step.when(fields)) and (
                step.probe is None or step.probe(fields, body[at:])
            ):
                at += _parse_field(step, body[at:], fields, flags)
        return fields, at

    def build(self, fields: Fields) -> bytes:
        """The body that these fields make, without box header and children.

        Raises:
            BuildError: a field is missing or does not fit.
        """
        out = bytearray()
        version = flags = 0
        names: tuple[str, ...] = ("version", "flags")
        try:
            if self.full:
                version, flags = fields["version"], fields["flags"]
                out += struct.pack(">B", version) + int(flags).to_bytes(3, "big")
            for step in self.steps(version, flags):
                if isinstance(step, Run):
                    names = step.names
                    out += step.build(fields)
                elif step.written(fields):
                    names = (step.name,)
                    out += _build_field(step, fields, flags)
        except FragdexError as error:
            error.path = f"{self.code}/{error.path or ', '.join(names)}"
            raise
        except (KeyError, struct.error, KindError, *_VALUE_ERRORS) as error:
            raise BuildError(
                f"cannot write {', '.join(names)}: {error!r}", path=self.code
            ) from error
        return bytes(out)

    def complete(self, given: Fields) -> dict[str, Any]:
        """All fields of a box of which some are given: others get their defaults, counts follow.

        Raises:
            BuildError: a name that the box does not have, or rows that do not fit.
        """
        fields: dict[str, Any] = {}
        version = flags = 0
        if self.full:
            fields["version"] = version = given.get("version", self.versions[0])
            fields["flags"] = flags = given.get("flags", 0)
        for step in self.steps(version, flags):
            if isinstance(step, Run):
                for name, piece, default in zip(step.names, step.parts, step.defaults, strict=True):
                    fields[name] = given.get(name, zero(default, piece))
            elif step.probe is None or step.key in given:
                if not step.written({**fields, step.key: None}):
                    continue
                if isinstance(step.kind, Rows):
                    table = step.kind.table(given.get(step.name, ()), fields, flags)
                    fields[step.name] = table
                    if step.kind.count and step.kind.count not in given:
                        fields[step.kind.count] = len(table)
                elif isinstance(step.kind, Bits):
                    blank = empty(step.kind, fields)
                    fields.update({name: given.get(name, blank[name]) for name in blank})
                elif step.name in given:
                    value = given[step.name]
                    packs = isinstance(step.kind, Packed)
                    fields[step.name] = step.kind.shown(value, fields) if packs else value
                else:
                    chosen = step.default
                    fields[step.name] = empty(step.kind, fields) if chosen is None else chosen
        return fields


_VALUE_ERRORS = (TypeError, ValueError, OverflowError, AttributeError, UnicodeError)


def _parse_field(step: Field, body: memoryview, fields: dict[str, Any], flags: int) -> int:
    kind = step.kind
    if isinstance(kind, Rows):
        fields[step.name], size = kind.parse(body, fields, flags)
        return size
    if isinstance(kind, Payload):
        fields[step.name] = body
        return len(body)
    stream = io.BytesIO(body)
    try:
        value = kind._parse(stream, fields, step.name)
    except KindError as error:
        reason = str(error).strip().splitlines()[-1]
        raise MalformedBox(f"{step.name} cannot be read: {reason}") from error
    if isinstance(kind, Bits):
        fields.update(value)
    else:
        fields[step.name] = value
    return stream.tell()


def _build_field(step: Field, fields: Fields, flags: int) -> bytes:
    kind = step.kind
    if isinstance(kind, Rows):
        return kind.build(fields[step.name], fields, flags)
    stream = io.BytesIO()
    value = fields if isinstance(kind, Bits) else fields[step.name]
    kind._build(value, stream, fields, step.name)
    return stream.getvalue()


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
        values: dict[str, Any] = {}
        for name, inner, conditions in kind.fields:
            if not conditions or conditions["when"]({**fields, **values}):
                value = empty(inner, {**fields, **values})
                values.update(value if isinstance(inner, Bits) else {name: value})
        return values
    return 0


def box(
    code: str,
    title: str,
    source: str,
    *,
    children: bool = False,
    child_count: str | None = None,
    structure: bool = False,
    **fields: Any,
) -> BoxLayout:
    """Declare a plain box."""
    about = (code, title, source, declare(fields))
    return BoxLayout(*about, False, children, (), child_count, structure)


def fullbox(
    code: str,
    title: str,
    source: str,
    *,
    children: bool = False,
    child_count: str | None = None,
    versions: tuple[int, ...] = (0, 1),
    structure: bool = False,
    **fields: Any,
) -> BoxLayout:
    """Declare a full box: version and flags stand first."""
    about = (code, title, source, declare(fields))
    return BoxLayout(*about, True, children, versions, child_count, structure)


def uuid_box(
    user_type: str, title: str, source: str, *, full: bool, structure: bool = False, **fields: Any
) -> BoxLayout:
    """Declare a uuid box by the 32 hex digits of its user type (ISO/IEC 14496-12, 4.2.2)."""
    code = user_type.replace("-", "").lower()
    return BoxLayout(code, title, source, declare(fields), full, structure=structure)
