"""Fixtures that one call of the C extension indexes, and small changes of them."""

import struct
from pathlib import Path

from fragdex.indexing import native, simple_files
from fragdex.sources import open_source

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = {
    str(path.relative_to(FIXTURES)): path.read_bytes()
    for path in sorted(FIXTURES.rglob("*.*"))
    if path.suffix in (".mp4", ".m4a", ".3gp", ".f4v", ".mov") and path.stat().st_size < 1 << 20
}
"""Bytes by name."""
SIMPLE = {
    name: data
    for name, data in FILES.items()
    if native.compiled is not None and simple_files.read_simple_file(open_source(data)) is not None
}


def structure(data):
    """Where boxes other than the media data lie, and the header of that."""
    at, spans = 0, []
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        spans.append((at, at + (16 if kind == b"mdat" else size)))
        at += size if size > 1 else struct.unpack_from(">Q", data, at + 8)[0]
    return spans


def edited(data, chance):
    """The same file with a few words, bytes or stretches of its boxes changed."""
    out, spans = bytearray(data), structure(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        start, stop = chance.choice([*spans, max(spans, key=lambda span: span[1] - span[0])])
        at, kind = chance.randrange(start, stop), chance.random()
        if kind < 0.5:
            at = min(at - (at - start) % 4, len(out) - 4)
            (word,) = struct.unpack_from(">I", out, at)
            words = (0, 1, 2, word + 1, word - 1, word << 8, 2**31, 2**32 - 1, len(data), 2 * word)
            struct.pack_into(">I", out, at, chance.choice(words) % 2**32)
        elif kind < 0.85:
            out[at] = chance.choice((0, 1, 255, out[at] ^ 1, out[at] ^ 128))
        elif kind < 0.95:
            other, size = chance.randrange(start, stop), chance.randrange(1, 64)
            out[at : at + size] = out[other : other + size]
        else:
            del out[at : at + chance.choice((1, 4, 8, 20))]
        if len(out) < 8:
            break
    return bytes(out)
