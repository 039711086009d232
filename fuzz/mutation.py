"""Damage that gets past the first check: boxes keep fitting one another, checksums keep holding.

Bytes changed at random die early: nearly every one breaks the size of an outer box, or a checksum.
Here a change is made inside the structure, and the sizes around it are mended afterwards. Each
function takes a `random.Random` and nothing else decides, so that a seed tells what comes out.
"""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from fragdex.formats.fidx_head import BYTE_ORDER, CHECKED, HEADER, MAGIC, aligned

__all__ = ["CODES", "Base", "mutate_boxes", "mutate_fidx", "scramble"]

Base = Callable[[bytes, int], bytes]
"""Any other mutator: bytes and the most that may come out → bytes."""

CONTAINERS = (
    b"moov trak mdia minf stbl dinf edts mvex moof traf mfra udta sinf schi meta stsd tref wave"
).split()
HEADERS = {b"meta": 12, b"stsd": 16}
"""Bytes before the first child, where they are more than the header."""
CODES = [
    *CONTAINERS,
    *b"ftyp styp sidx mdat free mvhd tkhd mdhd hdlr elst stts ctts stss stsc stsz stz2".split(),
    *b"stco co64 sdtp sbgp sgpd subs saiz saio senc tenc pssh trex mehd mfhd tfhd tfdt".split(),
    *b"trun tfra mfro ssix prft emsg uuid avc1 hvc1 hev1 av01 vp09 mp4a Opus fLaC stpp".split(),
    *b"wvtt tx3g encv enca avcC hvcC av1C vpcC esds dOps dfLa frma schm btrt pasp colr".split(),
    *b"padb leva cslg skip".split(),
]
"""Four-letter codes that the library treats in a way of their own."""

NUMBERS = (0, 1, 2, 7, 8, 0x7F, 0xFF, 0x100, 0x7FFF, 0xFFFF, 0x10000, 0xFFFFFF, 2**28, 2**31 - 1)
NUMBERS += (2**31, 2**32 - 1, 2**32 - 2)


def scramble(data: bytes, dice: random.Random) -> bytes:
    """A few changes at random: a bit, a number, a code, a piece taken out or doubled."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        if not changed:
            return dice.randbytes(8)
        at = dice.randrange(len(changed))
        match dice.randrange(6):
            case 0:
                changed[at] ^= 1 << dice.randrange(8)
            case 1:
                changed[at : at + 4] = struct.pack(">I", dice.choice(NUMBERS))[: len(changed) - at]
            case 2:
                changed[at : at + 4] = dice.choice(CODES)[: len(changed) - at]
            case 3:
                del changed[at : at + dice.choice((1, 4, 8, 64))]
            case 4:
                changed[at:at] = changed[at : at + dice.choice((1, 4, 8, 64))]
            case 5:
                del changed[at:]
    return bytes(changed)


Place = tuple[int, int, tuple[int, ...]]
"""Offset and size of a box, and the offsets of the boxes around it."""


def _boxes(data: bytes, start: int, stop: int, around: tuple[int, ...]) -> Iterator[Place]:
    at = start
    while at + 8 <= stop and len(around) < 12:
        size, code = struct.unpack_from(">I4s", data, at)
        if size == 0:
            size = stop - at
        if size < 8 or at + size > stop:
            return
        yield at, size, around
        if code in CONTAINERS:
            yield from _boxes(data, at + HEADERS.get(code, 8), at + size, (*around, at))
        at += size


def _resize(data: bytearray, around: tuple[int, ...], by: int) -> None:
    for at in around:
        (size,) = struct.unpack_from(">I", data, at)
        if size > 1:
            struct.pack_into(">I", data, at, max(0, min(size + by, 2**32 - 1)))


def mutate_boxes(data: bytes, most: int, dice: random.Random, base: Base) -> bytes:
    """Change one box of a file in one way, and mend the sizes of the boxes around it.

    Every fourth time the whole is left to `base`.
    """
    places = list(_boxes(data, 0, len(data), ()))
    if not places or not dice.randrange(4):
        return base(data, most)
    at, size, around = dice.choice(places)
    whole = data[at : at + size]
    match dice.randrange(8):
        case 0:  # another number in it, mostly near its start, where counts and flags stand
            changed = bytearray(whole)
            place = 8 + dice.randrange(max(1, min(size - 8, dice.choice((8, 16, 64, 4096)))))
            number = struct.pack(dice.choice((">I", ">H", ">Q")), dice.choice(NUMBERS) & 0xFFFF)
            if dice.randrange(2):
                number = struct.pack(">I", dice.choice(NUMBERS))
            changed[place : place + len(number)] = number
            new = _sized(bytes(changed[: max(size, 8)]))
        case 1:  # other bytes in it
            new = _sized(whole[:8] + base(whole[8:], max(1, most - len(data) + size)))
        case 2:
            new = b""
        case 3:
            new = whole + whole
        case 4:  # another kind of box with the same inside
            new = whole[:4] + dice.choice(CODES) + whole[8:]
        case 5:  # another box of the file in its place
            other, length, _ = dice.choice(places)
            new = data[other : other + length]
        case 6:  # another box of the file behind it
            other, length, _ = dice.choice(places)
            new = whole + data[other : other + length]
        case _:  # cut off
            new = _sized(whole[: 8 + dice.randrange(max(1, size - 8))])
    result = bytearray(data[:at] + new + data[at + size :])
    _resize(result, around, len(new) - size)
    return bytes(result[:most])


def _sized(box: bytes) -> bytes:
    if struct.unpack_from(">I", box)[0] <= 1:
        return box  # size 0 and 1 mean something else
    return struct.pack(">I", len(box)) + box[4:]


def mutate_fidx(data: bytes, most: int, dice: random.Random, base: Base) -> bytes:
    """Change the JSON part or the columns of a binary index, and mend its checksums."""
    if len(data) < HEADER.size or data[:8] != MAGIC or not dice.randrange(8):
        return base(data, most)
    text_size, start = HEADER.unpack_from(data)[5:7]
    text, columns = data[HEADER.size : HEADER.size + text_size], data[start:]
    if dice.randrange(2):
        columns = base(columns, max(1, most - start)) if columns else columns
        columns = columns.ljust(aligned(len(columns)), b"\0")
        text = _with_checksums(text, columns)
    elif dice.randrange(2):
        text = base(text, max(1, most - len(columns) - 128))
    else:
        text = _other_value(text, dice)
    return mend_fidx(text, columns)[:most]


def mend_fidx(text: bytes, columns: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    """A binary index of this JSON part and these columns whose header and checksum are right."""
    start = aligned(HEADER.size + len(text))
    sizes = (start + len(columns), len(text), start)
    header = HEADER.pack(MAGIC, *version, BYTE_ORDER, *sizes, 0)
    checksum = zlib.crc32(text, zlib.crc32(header[:CHECKED]))
    head = header[:CHECKED] + struct.pack("<I", checksum) + text
    return head.ljust(start, b"\0") + columns


def _tables(plain: Any) -> Iterator[dict[str, Any]]:
    """Every table entry of a JSON part."""
    if isinstance(plain, dict):
        if "rows" in plain and isinstance(plain.get("columns"), list):
            yield plain
        for value in plain.values():
            yield from _tables(value)
    elif isinstance(plain, list):
        for value in plain:
            yield from _tables(value)


def _with_checksums(text: bytes, columns: bytes) -> bytes:
    try:
        plain = json.loads(text)
        for table in _tables(plain):
            for entry in table["columns"]:
                width = int(entry[1][-1])
                part = columns[entry[2] : entry[2] + width * table["rows"]]
                entry[3] = zlib.crc32(part)
        return json.dumps(plain, separators=(",", ":")).encode()
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return text


VALUES = (0, 1, -1, 2**31, 2**63 - 1, -(2**63), 2**64, 2**70, 0.5, True, None, "", "x", [], {}, [1])


def _other_value(text: bytes, dice: random.Random) -> bytes:
    """The JSON part with one value put in place of another."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        return text
    node = plain
    while True:
        if isinstance(node, dict) and node:
            key: Any = dice.choice(sorted(node))
        elif isinstance(node, list) and node:
            key = dice.randrange(len(node))
        else:
            return text
        below = node[key]
        if not isinstance(below, dict | list) or not below or not dice.randrange(6):
            if dice.randrange(8) or not isinstance(node, dict):
                node[key] = dice.choice(VALUES)
            else:
                del node[key]
            return json.dumps(plain, separators=(",", ":")).encode()
        node = below
