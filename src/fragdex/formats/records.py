"""The small parts of an index as plain JSON values, and back: frozen dataclasses by their fields.

What equals its default is left out, so that old readers and new writers get along. Reading trusts
nothing: each value is held against the annotation of its field.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from fragdex.digest import Digest, parse_digest
from fragdex.errors import DamagedIndex, InvalidDigest
from fragdex.fragments.track_info import Edit, Movie, TrackInfo

T = TypeVar("T")
Reader = Callable[[Any, str], Any]

_COUNT: Final = (0, 2**63 - 1)
_FIELD: Final = (0, 2**32 - 1)
_TICKS: Final = (-(2**62), 2**62)
_BOUNDS: Final[dict[tuple[type, str], tuple[int, int]]] = {
    (Edit, "media_time"): _TICKS,
    (Movie, "timescale"): _FIELD,
    (TrackInfo, "timescale"): _FIELD,
    # -1 is a track made for scrubbing.
    (TrackInfo, "id"): (-1, 2**32 - 1),
}
"""Least and greatest value of integers that are more or less than a count of 63 bits."""


def refuse(pointer: str, expected: object, found: object) -> DamagedIndex:
    """The error for a value that is not as it should be; `pointer`: a JSON pointer (RFC 6901)."""
    shown = repr(found)
    if len(shown) > 60:
        shown = shown[:57] + "..."
    return DamagedIndex("the index is damaged", path=pointer, expected=expected, found=shown)


def to_plain(value: Any) -> Any:
    """Dataclasses as objects without the fields that equal their defaults, tuples as lists."""
    kind = type(value)
    if kind in _VALUES:
        return value
    if is_dataclass(kind):
        plain = {}
        for name, default in _fields(kind):
            given = getattr(value, name)
            if default is MISSING or given != default:
                plain[name] = given if type(given) in _VALUES else to_plain(given)
        return plain
    if isinstance(value, tuple):
        return [to_plain(element) for element in value]
    return value


_VALUES: Final = frozenset((int, str, bool, float, NoneType))
"""Types of what is plain as it is."""


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Name and default of each field of a dataclass that says something of the media."""
    return tuple((field.name, field.default) for field in fields(kind) if field.compare)


def from_plain(kind: type[T], value: Any, pointer: str = "") -> T:
    """A dataclass from its plain form; unknown keys are skipped.

    Raises:
        DamagedIndex: a field is missing or of the wrong type; `path` is its JSON pointer.
    """
    reader: Reader = _reader(kind)  # type: ignore[arg-type]
    checked: T = reader(value, pointer)
    return checked


def item(value: Any, key: str, pointer: str = "") -> Any:
    """The value under a key of an object.

    Raises:
        DamagedIndex: it is not an object, or the key is missing.
    """
    if not isinstance(value, dict):
        raise refuse(pointer, "an object", value)
    if key not in value:
        raise refuse(f"{pointer}/{key}", "a value", "nothing")
    return value[key]


def integer(value: Any, pointer: str = "", least: int = -(2**63), most: int = 2**63 - 1) -> int:
    """An integer within bounds (both inclusive); a float with a whole value counts as one.

    Raises:
        DamagedIndex: it is invalid, or out of bounds.
    """
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or not least <= value <= most:
        raise refuse(pointer, f"an integer from {least} to {most}", value)
    return value


@cache
def _reader(kind: Any) -> Reader:
    if is_dataclass(kind):
        return _dataclass_reader(kind)
    origin = get_origin(kind)
    if origin is tuple:
        read = _reader(get_args(kind)[0])

        def read_all(value: Any, pointer: str) -> Any:
            if not isinstance(value, list):
                raise refuse(pointer, "a list", value)
            return tuple(read(element, f"{pointer}/{i}") for i, element in enumerate(value))

        return read_all
    if origin in (UnionType, Union):
        (inner,) = (k for k in get_args(kind) if k is not NoneType)
        read = _reader(inner)
        return lambda value, pointer: None if value is None else read(value, pointer)
    plain = {int: _bounded(*_COUNT), float: _number, str: _text, bool: truth, Digest: _digest}
    return plain[kind]


def _dataclass_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    readers = []
    for field in fields(kind):
        if not field.compare:
            continue
        plain, bounds = _plain(hints[field.name]), _BOUNDS.get((kind, field.name), _COUNT)
        reader = _bounded(*bounds) if hints[field.name] is int else _reader(hints[field.name])
        readers.append((field.name, field.default is MISSING, reader, plain, *bounds))

    def read(value: Any, pointer: str) -> Any:
        if not isinstance(value, dict):
            raise refuse(pointer, "an object", value)
        fields_read = {}
        for name, needed, reader, plain, least, most in readers:
            if name in value:
                given = value[name]
                # Most of a file is this; only errors say where a value stands.
                if (
                    type(given) is not plain
                    or (plain is int and not least <= given <= most)
                    or (plain is str and not given.isascii())
                ):
                    given = reader(given, f"{pointer}/{name}")
                fields_read[name] = given
            elif needed:
                raise refuse(f"{pointer}/{name}", "a value", "nothing")
        return kind(**fields_read)

    return read


def _bounded(least: int, most: int) -> Reader:
    return lambda value, pointer: integer(value, pointer, least, most)


def _plain(kind: Any) -> Any:
    """The type whose values need no reader if they are small integers or ASCII; None: none."""
    if get_origin(kind) in (UnionType, Union):
        (kind,) = (k for k in get_args(kind) if k is not NoneType)
    return kind if kind in (int, str, bool) else None


def _number(value: Any, pointer: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or abs(value) > 2**63:
        raise refuse(pointer, "a finite number", value)
    return float(value)


def _text(value: Any, pointer: str) -> str:
    if not isinstance(value, str):
        raise refuse(pointer, "a string", value)
    try:
        # Lone surrogates stand for bytes of a file name that is not UTF-8; others say nothing.
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise refuse(pointer, "characters of Unicode", ascii(value)) from None
    return value


def _digest(value: Any, pointer: str) -> Digest:
    try:
        return parse_digest(_text(value, pointer))
    except InvalidDigest:
        raise refuse(pointer, "32 hex digits", value) from None


def truth(value: Any, pointer: str) -> bool:
    """A bool; DamagedIndex: it is something else."""
    if not isinstance(value, bool):
        raise refuse(pointer, "true or false", value)
    return value
