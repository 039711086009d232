"""Messages of the DevTools protocol as CBOR (RFC 8949), the part of it that Chromium speaks.

A message is an envelope: a byte string of known length (tag 24) that holds a map; so is each map
and list within. Maps and lists are of indefinite length. Text that is not ASCII may come as a byte
string of UTF-16, little-endian; bytes have the tag 22.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["HEADER_BYTES", "MalformedMessage", "built", "length_of", "parsed"]

HEADER_BYTES: Final = 7
"""Of an envelope, before what it holds."""

_ENVELOPE: Final = b"\xd8\x18\x5a"  # tag 24, byte string, length of 4 bytes
_UNSIGNED, _NEGATIVE, _BYTES, _TEXT = 0, 1, 2, 3
_ENCODINGS: Final = {_BYTES: "utf-16-le", _TEXT: "utf-8"}
_MAP, _LIST, _STOP = 0xBF, 0x9F, 0xFF
_TAGGED, _ENVELOPE_TAG, _AS_BYTES = 0xD8, 0x18, 0xD6
_DOUBLE: Final = 0xFB
_PLAIN: Final[dict[int, bool | None]] = {0xF4: False, 0xF5: True, 0xF6: None}
_SIZES: Final = {24: ">B", 25: ">H", 26: ">I", 27: ">Q"}
# Chromium's whole numbers; larger ones are told as doubles, as it reads those of JSON.
_LARGEST: Final = 1 << 31


class MalformedMessage(ValueError):
    """What the browser says is no such message."""


def built(value: Any) -> bytes:
    """A value as bytes: of dicts, lists, texts, bytes, numbers, booleans and None.

    >>> built({"id": 1}).hex()
    'd8185a00000006bf62696401ff'
    """
    if isinstance(value, str):
        try:
            return _headed(_TEXT, value.encode())
        except UnicodeEncodeError:  # half of a pair: pages may have such texts
            return _headed(_BYTES, value.encode("utf-16-le", "surrogatepass"))
    if value is None or isinstance(value, bool):
        return b"\xf6" if value is None else b"\xf5" if value else b"\xf4"
    if isinstance(value, int) and -_LARGEST <= value < _LARGEST:
        return _head(_UNSIGNED, value) if value >= 0 else _head(_NEGATIVE, -1 - value)
    if isinstance(value, int | float):
        return struct.pack(">Bd", _DOUBLE, value)
    if isinstance(value, bytes):
        return bytes([_AS_BYTES]) + _headed(_BYTES, value)
    if isinstance(value, Mapping):
        pairs = (built(key) + built(one) for key, one in value.items())
        inside = b"".join((bytes([_MAP]), *pairs, bytes([_STOP])))
    else:
        inside = b"".join((bytes([_LIST]), *map(built, value), bytes([_STOP])))
    return _ENVELOPE + struct.pack(">I", len(inside)) + inside


def _head(kind: int, number: int) -> bytes:
    if number < min(_SIZES):
        return bytes([kind << 5 | number])
    size = 24 + (number > 0xFF) + (number > 0xFFFF)
    return bytes([kind << 5 | size]) + struct.pack(_SIZES[size], number)


def _headed(kind: int, data: bytes) -> bytes:
    return _head(kind, len(data)) + data


def length_of(header: bytes | bytearray) -> int:
    """How many bytes an envelope holds behind its header, of which all is there.

    Raises:
        MalformedMessage: it is none.
    """
    if not header.startswith(_ENVELOPE):
        raise MalformedMessage("a message of the browser is no envelope")
    return int.from_bytes(header[len(_ENVELOPE) : HEADER_BYTES])


def parsed(message: bytes | memoryview) -> Any:
    """The value of a message; bytes and texts are copied.

    Raises:
        MalformedMessage: it is none, or has more or less than one value.

    >>> parsed(built({"a": [1, -2, 0.5, None, True, "é"], "b": b"x"}))
    {'a': [1, -2, 0.5, None, True, 'é'], 'b': b'x'}
    """
    try:
        return _parsed(memoryview(message))
    except (LookupError, TypeError, ValueError, struct.error) as error:
        raise MalformedMessage("a message of the browser cannot be read") from error


def _parsed(message: memoryview) -> Any:
    at = 0
    # Maps and lists are filled from within: a page may nest them deeper than Python may call.
    whole: list[Any] = []
    items = whole
    outer: list[tuple[list[Any], bool]] = []
    is_map = False
    while at < len(message):
        first = message[at]
        if first == _TAGGED and message[at + 1] == _ENVELOPE_TAG:
            at += HEADER_BYTES
            continue
        at += 1
        if first in (_MAP, _LIST):
            outer.append((items, is_map))
            items, is_map = [], first == _MAP
            continue
        if first == _STOP:
            value: Any = dict(zip(items[::2], items[1::2], strict=True)) if is_map else items
            items, is_map = outer.pop()
        elif first in _PLAIN:
            value = _PLAIN[first]
        elif first == _DOUBLE:
            (value,) = struct.unpack_from(">d", message, at)
            at += 8
        else:
            is_bytes = first == _AS_BYTES
            if is_bytes:
                first, at = message[at], at + 1
            kind, number = first >> 5, first & 31
            if number >= min(_SIZES):
                size = _SIZES[number]
                (number,) = struct.unpack_from(size, message, at)
                at += struct.calcsize(size)
            if kind in (_BYTES, _TEXT):
                data = bytes(message[at : at + number])
                at += number
                value = data if is_bytes else data.decode(_ENCODINGS[kind], "surrogatepass")
                if at > len(message):
                    raise IndexError
            else:
                value = number if kind == _UNSIGNED else -1 - number
        items.append(value)
    (value,) = whole
    return value
