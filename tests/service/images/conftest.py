"""Images of every kind."""

import io
import struct

from PIL import Image

SVG = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20">'
    b"<script>alert(1)</script></svg>"
)


def made(form, size=(30, 20), orientation=None, **more):
    exif = Image.Exif()
    if orientation:
        exif[0x0112] = orientation
        more["exif"] = exif
    written = io.BytesIO()
    Image.new("RGB", size, "green").save(written, form, **more)
    return written.getvalue()


def claimed_png(width, height):
    """A PNG of a few bytes whose header claims a size."""
    import zlib

    def chunk(name, data):
        return (
            struct.pack(">I", len(data))
            + name
            + data
            + struct.pack(">I", zlib.crc32(name + data) & 0xFFFFFFFF)
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def claimed_webp(width, height):
    """A WebP of 30 bytes whose canvas claims a size."""
    canvas = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    chunk = b"VP8X" + struct.pack("<I", 10) + bytes(4) + canvas
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk
