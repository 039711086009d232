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
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fragdex.boxes.defaults import empty
from fragdex.boxes.field import Field, Fields, declare, where
from fragdex.boxes.fixed import Part, Run, part, zero
from fragdex.boxes.kinds import (
    Bits,
    KindError,
    Packed,
    Payload,
    bits,
    cstring,
    fourcc,
    i8,
    i16,
    i24,
    i32,
    i64,
    packed,
    payload,
    raw,
    rest,
    text_rest,
    u8,
    u16,
    u24,
    u32,
    u64,
)
from fragdex.boxes.lists import array, greedy, items, pascal, record, sized
from fragdex.boxes.rows import Rows, rows
from fragdex.errors import BuildError, FragdexError, MalformedBox

__all__ = [
    "BoxLayout",
    "Field",
    "Fields",
    "Rows",
    "array",
    "bits",
    "box",
    "cstring",
    "fourcc",
    "fullbox",
    "greedy",
    "i8",
    "i16",
    "i24",
    "i32",
    "i64",
    "items",
    "packed",
    "pascal",
    "payload",
    "raw",
    "record",
    "rest",
    "rows",
    "sized",
    "text_rest",
    "u8",
    "u16",
    "u24",
    "u32",
    "u64",
    "uuid_box",
    "where",
]

_MAX_STEPS = 256  # hostile flags must not fill the memory with plans


@dataclass(frozen=True, repr=False)
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
    """

    code: str
    title: str
    source: str
    fields: tuple[Field, ...] = ()
    full: bool = False
    children: bool = False
    versions: tuple[int, ...] = (0, 1)
    child_count: str | None = None
    _steps: dict[tuple[int, int], tuple[Run | Field, ...]] = field(
        default_factory=dict, compare=False
    )

    def __repr__(self) -> str:
        return f"<layout of {self.code}: {self.title}>"

    def steps(self, version: int, flags: int) -> tuple[Run | Field, ...]:
        """The plan for this version and these flags: struct runs, and fields read one by one."""
        found = self._steps.get((version, flags))
        if found is None:
            if len(self._steps) > _MAX_STEPS:
                self._steps.clear()
            found = self._steps[version, flags] = tuple(self._plan(version, flags))
        return found

    def _plan(self, version: int, flags: int) -> list[Run | Field]:
        plan: list[Run | Field] = []
        pending: list[tuple[Field, Part]] = []

        def close() -> None:
            if pending:
                parts = tuple(piece for _, piece in pending)
                codec = struct.Struct(">" + "".join(piece.format for piece in parts))
                names = tuple(declared.name for declared, _ in pending)
                defaults = tuple(declared.default for declared, _ in pending)
                plain = not any(piece.decode for piece in parts)
                plan.append(Run(names, codec, parts, defaults, plain))
                pending.clear()

        for declared in self.fields:
            kind = declared.resolved(version, flags)
            if kind is None:
                continue
            piece = None if declared.when or declared.probe else part(kind)
            if piece is None:
                close()
                plan.append(
                    Field(
                        declared.name,
                        kind,
                        when=declared.when,
                        probe=declared.probe,
                        default=declared.default,
                    )
                )
            else:
                pending.append((declared, piece))
        close()
        return plan

    def offsets(self, version: int, flags: int) -> dict[str, tuple[int, np.dtype[Any]]]:
        """Where the leading fixed fields stand: name → (bytes after the header, dtype).

        A full box's version and flags are the first four bytes and not listed. The table of
        rows, if one follows directly and has no bit columns, is listed with its row dtype.

        >>> from fragdex.boxes.tfhd import TFHD
        >>> TFHD.offsets(0, 0x8)["default_sample_duration"]
        (8, dtype('>u4'))
        """
        at = 4 if self.full else 0
        found: dict[str, tuple[int, np.dtype[Any]]] = {}
        for step in self.steps(version, flags):
            if isinstance(step, Field):
                conditional = step.when or step.probe
                if (
                    isinstance(step.kind, Rows)
                    and not conditional
                    and step.kind.stored_as_shown(flags)
                ):
                    found[step.name] = (at, step.kind.dtype(flags))
                break
            for name, piece in zip(step.names, step.parts, strict=True):
                found[name] = (at, piece.dtype)
                at += piece.dtype.itemsize
        return found

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
            flags = int.from_bytes(body[:4], "big")
            version, flags = flags >> 24, flags & 0xFFFFFF
            fields["version"], fields["flags"] = version, flags
            at = 4
        for step in self.steps(version, flags):
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


def box(
    code: str,
    title: str,
    source: str,
    *,
    children: bool = False,
    child_count: str | None = None,
    **fields: Any,
) -> BoxLayout:
    """Declare a plain box."""
    return BoxLayout(code, title, source, declare(fields), False, children, (), child_count)


def fullbox(
    code: str,
    title: str,
    source: str,
    *,
    children: bool = False,
    child_count: str | None = None,
    versions: tuple[int, ...] = (0, 1),
    **fields: Any,
) -> BoxLayout:
    """Declare a full box: version and flags stand first."""
    return BoxLayout(code, title, source, declare(fields), True, children, versions, child_count)


def uuid_box(user_type: str, title: str, source: str, *, full: bool, **fields: Any) -> BoxLayout:
    """Declare a uuid box by the 32 hex digits of its user type (ISO/IEC 14496-12, 4.2.2)."""
    code = user_type.replace("-", "").lower()
    return BoxLayout(code, title, source, declare(fields), full)
