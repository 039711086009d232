"""Say what pymp4 reads in a file, as JSON lines. Runs in .venv-pymp4, as a process of its own.

    python pymp4_dump.py FILE...

One line per top-level box: {"file", "offset", "type", "size", "tree"}, where tree is

    {"type", "offset", "size", "header_size",
     "fields": {...}            what pymp4 says; bytes as hex, its flags and enumerations unchanged
     "children": [...]          of a container, in order
     "error": "..."             instead of fields, where pymp4 or the walk fails
     "unread": n}               bytes at the end of the box that pymp4 did not look at

Tables (trun's sample_info, sidx's references, the entries of stts, stsc ...) are given as columns:
{"sample_size": [...], "sample_duration": [...]}.

The headers and the nesting of containers are walked here, and pymp4 gets every other box alone.
Boxes it does not declare come back with "data" alone. It knows no 64-bit sizes, and drops,
without a word, the rest of a container behind a child that it cannot parse.
"""

import io
import json
import struct
import sys
import uuid

CONTAINERS = {"moov", "trak", "mdia", "minf", "dinf", "stbl", "edts", "mvex", "udta", "tref"}
CONTAINERS |= {"moof", "traf", "mfra", "sinf", "schi"}
# The payload is never handed over: media bytes, and what is there to be ignored.
SKIPPED = frozenset(["mdat", "free", "skip", "wide"])
TABLES = {
    ("trun", "sample_info"),
    ("sidx", "references"),
    ("senc", "sample_encryption_info"),
    *((code, "entries") for code in ("stts", "stss", "stsc", "stco", "co64", "stz2")),
}


class Broken(Exception):
    """A header that leaves nothing to walk."""


def header(data, offset, end):
    """(type, size, header_size) of the box at offset; its end is at most `end`."""
    if end - offset < 8:
        raise Broken(f"{end - offset} bytes where a box header should be")
    size, code = struct.unpack_from(">I4s", data, offset)
    header_size = 8
    if size == 1:
        if end - offset < 16:
            raise Broken("no room for a 64-bit size")
        (size,) = struct.unpack_from(">Q", data, offset + 8)
        header_size = 16
    elif size == 0:
        size = end - offset
    if size < header_size:
        raise Broken(f"size {size} is smaller than the header")
    if size > end - offset:
        raise Broken(f"size {size} runs {size - (end - offset)} bytes past the end")
    return code.decode("latin-1"), size, header_size


def plain(value):
    """A value of construct's as JSON knows it."""
    if isinstance(value, bool | int | float | str | None):
        return value
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items() if not private(key)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)


def private(key):
    return str(key).startswith("_")


def columns(rows):
    if not rows:
        return {}
    return {str(key): [plain(row[key]) for row in rows] for key in rows[0] if not private(key)}


def leaf(code, data, offset, size, header_size):
    """What pymp4 says of one box; a 64-bit header is written short, it knows no other."""
    from pymp4.parser import Box

    body = data[offset + header_size : offset + size]
    stream = io.BytesIO(struct.pack(">I4s", 8 + len(body), code.encode("latin-1")) + body)
    parsed = Box.parse_stream(stream)
    fields = {
        key: columns(value) if (code, key) in TABLES else plain(value)
        for key, value in parsed.items()
        if key not in ("type", "offset", "end") and not private(key)
    }
    node = {"fields": fields}
    # `end` is where its declaration stopped, the box itself may go on.
    unread = 8 + len(body) - parsed["end"]
    if unread > 0:
        node["unread"] = unread
    return node


def tree(data, offset, end):
    code, size, header_size = header(data, offset, end)
    node = {"type": code, "offset": offset, "size": size, "header_size": header_size}
    try:
        if code in CONTAINERS:
            node["children"] = children(data, offset + header_size, offset + size)
        elif code not in SKIPPED:
            node.update(leaf(code, data, offset, size, header_size))
    except Exception as error:  # noqa: BLE001 - whatever construct raises is the oracle's answer
        node["error"] = f"{type(error).__name__}: {error}"
    return node


def children(data, start, end):
    boxes = []
    while start < end:
        if data[start:end].strip(b"\0") == b"":
            break  # QuickTime may end a container with four zero bytes
        boxes.append(tree(data, start, end))
        start += boxes[-1]["size"]
    return boxes


def dump(name, out):
    with open(name, "rb") as file:
        data = file.read()
    offset = 0
    while offset < len(data):
        line = {"file": name, "offset": offset}
        try:
            line["tree"] = tree(data, offset, len(data))
        except Broken as error:
            line["error"] = str(error)
            out.write(json.dumps(line) + "\n")
            return
        line["type"], line["size"] = line["tree"]["type"], line["tree"]["size"]
        out.write(json.dumps(line) + "\n")
        offset += line["size"]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        dump(argument, sys.stdout)
