"""A box as a value: its fields, its children, and where it stood."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import numpy as np

from fragdex.box_header import SizeForm
from fragdex.boxes.kinds import LISTS
from fragdex.boxes.layout import BoxLayout, Field
from fragdex.boxes.rows import Rows
from fragdex.errors import BuildError
from fragdex.record import record

_Levels: TypeAlias = tuple[tuple[tuple[str, str] | None, int], ...]
"""Each step of a path: the types that it takes (None: any), and a number or 0."""
_STEP = re.compile(r"(.{1,4}?)(?:\[([1-9]\d*)\])?\Z", re.DOTALL)


@record(frozen=True, slots=True, eq=False, repr=False)
class Box:
    """One box (ISO/IEC 14496-12, 4.2): a value that does not change.

    Two boxes are equal if they build the same bytes, wherever they are.

    Attributes:
        type: four-letter code, each letter one latin-1 byte; `uuid` for user types.
        fields: the standard's names and raw integers; full boxes have version and flags, uuid
            boxes user_type as 32 hex digits, opaque boxes all their bytes as `data`. A list is a
            tuple, or for many records a sequence that parses each when it is used.
        children: the boxes inside, in file order.
        trailing: bytes after the last field or child, which the declaration does not cover.
        size_form: a 32-bit size, a 64-bit size, or size 0 that reaches to the end of the file.
        offset: where the header starts, bytes from the start of the file; 0 if made, not parsed.
        size: bytes with the header, as parsed; 0 if made.
        header_size: bytes before the fields: 8, 16 with a 64-bit size, 16 more in a uuid box.
        layout: the declaration that fields follow; None for opaque boxes.
        misfit: why a box of a declared type was kept opaque, or "".

    >>> from fragdex.boxes import parse
    >>> (box,) = parse(bytes.fromhex("00000010 6d666864 00000000 00000007"))
    >>> box.type, box["sequence_number"], box.size
    ('mfhd', 7, 16)
    """

    type: str
    fields: Mapping[str, Any]
    children: tuple[Box, ...] = ()
    trailing: bytes = b""
    size_form: SizeForm = "compact"
    offset: int = field(default=0, kw_only=True)
    size: int = field(default=0, kw_only=True)
    header_size: int = field(default=8, kw_only=True)
    layout: BoxLayout | None = field(default=None, kw_only=True)
    misfit: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.fields, MappingProxyType):
            object.__setattr__(self, "fields", MappingProxyType(self.fields))

    @property
    def opaque(self) -> bool:
        """Whether the body is kept as bytes only: an unknown type, version, or a misfit."""
        return self.layout is None and "data" in self.fields

    @property
    def stop(self) -> int:
        """The first byte after the box, from the start of the file."""
        return self.offset + self.size

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def __contains__(self, name: object) -> bool:
        return name in self.fields

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or `default` where this box does not have it."""
        return self.fields.get(name, default)

    def __iter__(self) -> Iterator[Box]:
        return iter(self.children)

    def find(self, path: str) -> Box | None:
        """The first box at a path below this one: `trak/mdia/mdhd`, `trak[2]`, `trak/*/mdhd`.

        >>> from fragdex.boxes import make_box
        >>> moof = make_box("moof", children=[make_box("mfhd", sequence_number=3)])
        >>> moof.find("mfhd")["sequence_number"]
        3
        """
        return _first(self.children, _levels(path), 0)

    def find_all(self, path: str) -> tuple[Box, ...]:
        """All boxes at a path below this one, in file order."""
        return find_all(self.children, path)

    def replace(
        self,
        *,
        children: Iterable[Box] | None = None,
        trailing: bytes | None = None,
        size_form: SizeForm | None = None,
        **fields: Any,
    ) -> Box:
        """A copy of the box with some fields or its children changed; it has no position in a file.

        The field that counts the rows of a table, or the children, follows if it is not given.
        Fields and columns that `version` or `flags` switch off are removed; those they switch on
        are zero. A box that reaches to the end of the file says its size once its children change,
        as the file around it most likely changes, too.

        Raises:
            BuildError: the box has no such field, or rows do not fit.
        """
        kept = self.children if children is None else tuple(children)
        form = self.size_form
        if children is not None and form == "to_end":
            form = "compact"
        given = {**self.fields, **fields}
        if not fields and not (self.layout and self.layout.child_count):
            done, unknown = given, set()
        elif self.layout is not None:
            for declared in self.layout.fields:
                count = declared.counted_by
                if not count:
                    continue
                if declared.name in fields:
                    if count not in fields:
                        given.pop(count, None)
                elif declared.name in given:
                    given[declared.name] = _conformed(declared, given)
            if self.layout.child_count and children is not None:
                given[self.layout.child_count] = fields.get(self.layout.child_count, len(kept))
            done = self.layout.complete(given)
            if self.type == "uuid":
                done = {"user_type": given["user_type"], **done}
            unknown = fields.keys() - done.keys()
        else:
            done, unknown = given, fields.keys() - self.fields.keys()
        if unknown:
            raise BuildError(
                f"no field {', '.join(sorted(unknown))}",
                path=self.type,
                expected=", ".join(done) or "no fields",
                found=", ".join(sorted(unknown)),
            )
        return Box(
            self.type,
            done,
            kept,
            self.trailing if trailing is None else trailing,
            form if size_form is None else size_form,
            layout=self.layout,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Box):
            return NotImplemented
        return (
            self.type == other.type
            and self.size_form == other.size_form
            and self.trailing == other.trailing
            and self.children == other.children
            and _same(self.fields, other.fields)
        )

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> Self:
        return self  # a value that does not change

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with its bytes: what is a view of the file here is a copy elsewhere."""
        place = (self.offset, self.size, self.header_size, self.layout, self.misfit)
        plain = _without_views(self.fields)
        return _restored, (self.type, plain, self.children, self.trailing, self.size_form, *place)

    def __repr__(self) -> str:
        words = [repr(self.type)]
        words += [f"{name}={_brief(name, value)}" for name, value in self.fields.items()]
        if self.children:
            words.append(f"children=({' '.join(child.type for child in self.children)})")
        if self.trailing:
            words.append(f"trailing={len(self.trailing)} bytes")
        if self.size:
            words.append(f"at {self.offset}, {self.size} bytes")
        return f"Box({', '.join(words)})"


class _Unsealed:
    """A box whose attributes can be set yet.

    What a dataclass that does not change does to be made takes longer than parsing most boxes.
    """

    __slots__ = Box.__slots__

    def __init__(
        self,
        type: str,
        fields: Mapping[str, Any],
        children: tuple[Box, ...],
        trailing: bytes,
        size_form: SizeForm,
        offset: int,
        size: int,
        header_size: int,
        layout: BoxLayout | None,
        misfit: str,
    ) -> None:
        self.type, self.fields, self.children = type, fields, children
        self.trailing, self.size_form = trailing, size_form
        self.offset, self.size, self.header_size = offset, size, header_size
        self.layout, self.misfit = layout, misfit


def parsed(
    type: str,
    fields: Mapping[str, Any],
    children: tuple[Box, ...],
    trailing: bytes,
    size_form: SizeForm,
    *place: Any,
) -> Box:
    """A box as a parser makes it.

    Args:
        place: offset, size, header_size, layout, misfit.
    """
    box: Any = _Unsealed(type, fields, children, trailing, size_form, *place)
    box.__class__ = Box
    return box  # type: ignore[no-any-return]


def _restored(type: str, fields: dict[str, Any], *rest: Any) -> Box:
    return parsed(type, MappingProxyType(fields), *rest)


class _Swapped:
    """An array on its way into a pickle: numpy's own turns big-endian numbers into native ones."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __reduce__(self) -> tuple[Any, ...]:
        return _numbers, (self._array.dtype.str, self._array.tobytes())


def _numbers(dtype: str, data: bytes) -> np.ndarray[Any, Any]:
    return np.frombuffer(data, dtype).copy()


def _without_views(value: Any) -> Any:
    """A field value in which bytes stand for every view of them."""
    if isinstance(value, np.ndarray) and not value.dtype.isnative and value.dtype.names is None:
        return _Swapped(value)
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        return {name: _without_views(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_without_views, value))
    return value


def _conformed(declared: Field, given: Mapping[str, Any]) -> Any:
    """A kept table with the columns that the new version and flags ask for."""
    kind = declared.resolved(given.get("version", 0), given.get("flags", 0))
    if not isinstance(kind, Rows):
        return given[declared.name]
    return kind.conformed(given[declared.name], given, given.get("flags", 0))


def find(boxes: Iterable[Box], path: str) -> Box | None:
    """The first box at a path, or None: `moov/trak[2]/mdia`; `*` stands for any one type.

    >>> from fragdex.boxes import make_box
    >>> find([make_box("free"), make_box("moof")], "moof").type
    'moof'
    """
    return _first(boxes, _levels(path), 0)


def _first(boxes: Iterable[Box], levels: _Levels, at: int) -> Box | None:
    """The first box at the rest of a path."""
    codes, number = levels[at]
    at += 1
    for box in boxes:
        if codes is None or box.type in codes:
            if number > 1:
                number -= 1
                continue
            match = box if at == len(levels) else _first(box.children, levels, at)
            if match is not None or number:
                return match
    return None


def find_all(boxes: Iterable[Box], path: str) -> tuple[Box, ...]:
    """All boxes at a path, in file order; a number in brackets counts from 1 inside one parent."""
    matches, levels = list(boxes), _levels(path)
    for at, (codes, number) in enumerate(levels):
        parents = [matches] if at == 0 else [box.children for box in matches]
        matches = []
        for children in parents:
            here = [box for box in children if codes is None or box.type in codes]
            matches += here[number - 1 : number] if number else here
    return tuple(matches)


def with_changes(box: Box, changes: Mapping[str, Callable[[Box], Box | Sequence[Box]]]) -> Box:
    """A box with others in place of those at some paths below it; itself where none is another.

    Args:
        changes: by path (`mvhd`, `mdia/minf/stbl`) what gives a box, or several, for one that is
            there; none: it goes.
    """
    children: list[Box] = []
    for child in box.children:
        within = f"{child.type}/"
        inner = {path[5:]: one for path, one in changes.items() if path.startswith(within)}
        changed = with_changes(child, inner) if inner else child
        new = changes[child.type](changed) if child.type in changes else changed
        children += (new,) if isinstance(new, Box) else new
    same = len(children) == len(box.children)
    if same and all(new is old for new, old in zip(children, box.children, strict=True)):
        return box
    return box.replace(children=children)


@lru_cache(maxsize=512)
def _levels(path: str) -> _Levels:
    """Each step of a path: the types that it takes (None: any), and a number or 0."""
    levels = []
    for step in path.split("/"):
        match = _STEP.match(step)
        if match is None:
            raise ValueError(f"no box path: {path!r}")
        code = match[1]
        levels.append((None if code == "*" else (code, code.ljust(4)), int(match[2] or 0)))
    return tuple(levels)


def _same(one: Any, other: Any) -> bool:
    """Equality of field values; arrays by dtype and content."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
            return False
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, LISTS) and isinstance(other, LISTS):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _brief(name: str, value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{len(value)} rows>" if value.dtype.names else f"<{len(value)} numbers>"
    if isinstance(value, (bytes, memoryview)) and len(value) > 16:
        return f"<{len(value)} bytes>"
    if isinstance(value, memoryview):
        return repr(bytes(value))
    if name == "flags":
        return f"{value:#x}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
