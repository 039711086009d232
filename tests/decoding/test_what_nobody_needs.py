"""Text in any encoding and side data of any kind disable nothing that does not ask for them."""

import ast
import io
from pathlib import Path

import av
import pytest
from av.sidedata.sidedata import Type

import fragdex
from decoding.filming import number_in, numbered
from fragdex.decoding.comparison import compare
from fragdex.decoding.pictures import PictureReader, shown_size
from fragdex.frames import Frames
from fragdex.transcode.probe import opened, probe

SRC = Path(__file__).parents[2] / "src"


def box(kind, *parts):
    body = b"".join(parts)
    return (8 + len(body)).to_bytes(4, "big") + kind + body


def inside_moov(film, extra):
    """The film with more boxes at the end of its moov; its fragments count from their moofs."""
    at = film.index(b"moov") - 4
    size = int.from_bytes(film[at : at + 4], "big")
    moov = (size + len(extra)).to_bytes(4, "big") + film[at + 4 : at + size] + extra
    return film[:at] + moov + film[at + size :]


def without_udta(film):
    return film.replace(b"udta", b"free")


def tags(*items):
    hdlr = box(b"hdlr", bytes(8), b"mdirappl", bytes(9))
    return box(b"udta", box(b"meta", bytes(4), hdlr, box(b"ilst", *items)))


def value(text):
    return box(b"data", (1).to_bytes(4, "big"), bytes(4), text)


CAFE = b"Caf\xe9"
NAME = b"VideoHandler"
TEXTS = {
    "ilst": lambda film: inside_moov(film, tags(box(b"\xa9nam", value(CAFE)))),
    "freeform": lambda film: inside_moov(
        film,
        tags(box(b"----", box(b"mean", bytes(4), CAFE), box(b"name", bytes(4), CAFE), value(CAFE))),
    ),
    "QuickTime": lambda film: inside_moov(
        film, box(b"udta", box(b"\xa9nam", len(CAFE).to_bytes(2, "big"), b"\0\0", CAFE))
    ),
    "3GPP": lambda film: inside_moov(film, box(b"udta", box(b"titl", bytes(6), CAFE, b"\0"))),
    "handler": lambda film: film.replace(NAME, (CAFE + NAME)[: len(NAME)]),
}  # fmt: skip


@pytest.mark.parametrize("place", TEXTS)
def test_text_in_another_encoding_disables_nothing(place, tmp_path):
    film = TEXTS[place](without_udta(numbered(3, 25, bframes=0)))
    assert CAFE in film
    index = fragdex.index(film)
    with PictureReader(index, film) as reader:
        assert number_in(reader.at(0.04).frame.to_ndarray(format="gray")) == 1
    with Frames(film) as frames:
        assert len(frames[:]) == 3
    path = tmp_path / "film.mp4"
    path.write_bytes(film)
    assert compare(str(path), str(path)).is_equal
    with opened(io.BytesIO(film)) as container:
        assert len(probe(container).streams) == 1


def jpegs():
    file = io.BytesIO()
    with av.open(file, "w", format="mov") as container:
        stream = container.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = 256, 48, "yuvj420p"
        for _ in range(3):
            container.mux(stream.encode(av.VideoFrame(256, 48, "yuvj420p")))
        container.mux(stream.encode())
    return file.getvalue()


def with_units(codec, unit):
    """A film of three pictures with bytes before each, or after the start of each JPEG."""
    film = jpegs() if codec == "mjpeg" else numbered(3, 25, bframes=0, keys=1, codec=codec)
    file = io.BytesIO()
    with av.open(io.BytesIO(film)) as made, av.open(file, "w", format="mov") as out:
        stream = out.add_stream_from_template(made.streams.video[0])
        for packet in made.demux(video=0):
            if packet.size:
                start = 2 if codec == "mjpeg" else 0
                changed = av.Packet(bytes(packet)[:start] + unit + bytes(packet)[start:])
                changed.pts, changed.dts, changed.time_base = (
                    packet.pts,
                    packet.dts,
                    packet.time_base,
                )
                changed.duration, changed.is_keyframe, changed.stream = (
                    packet.duration,
                    True,
                    stream,
                )
                out.mux_one(changed)
    return file.getvalue()


def sei(kind, payload, header=b"\6"):
    unit = header + bytes([kind, len(payload)]) + payload + b"\x80"
    return len(unit).to_bytes(4, "big") + unit


IN_HEVC = b"\x4e\1"
EXIF = b"Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\1\0\0\0" + bytes(4)
MASTERING = bytes.fromhex("33c2 86c4 1d4c 0bb8 84d0 3e80 3d13 4042 00989680 00000032")
# Codec, unit, and the kind of side data that FFmpeg makes of it.
SIDE_DATA = {
    "A53_CC": ("libx264", sei(4, b"\xb5\0\x31GA94\3\x41\xff\xfc\x80\x80\xff")),
    "AFD": ("libx264", sei(4, b"\xb5\0\x31DTG1\x41\xf8")),
    "SEI_UNREGISTERED": ("libx264", sei(5, b"an identifier of" + b"text")),
    "STEREO3D": ("libx264", sei(45, bytes.fromhex("81 82 00 00 08 40"))),
    "DISPLAYMATRIX": ("libx264", sei(47, bytes.fromhex("40 00 00 c0"))),
    "MASTERING_DISPLAY_METADATA": ("libx265", sei(137, MASTERING, IN_HEVC)),
    "CONTENT_LIGHT_LEVEL": ("libx265", sei(144, b"\3\xe8\1\x90", IN_HEVC)),
    "AMBIENT_VIEWING_ENVIRONMENT": (
        "libx265", sei(148, bytes.fromhex("0000c350 3d13 4042"), IN_HEVC)
    ),
    "UNNAMED_31": ("mjpeg", b"\xff\xe1" + (len(EXIF) + 2).to_bytes(2, "big") + EXIF),
}  # fmt: skip


@pytest.mark.parametrize("kind", SIDE_DATA)
def test_side_data_of_any_kind_disables_nothing(kind):
    film = with_units(*SIDE_DATA[kind])
    with PictureReader(fragdex.index(film), film) as reader:
        picture = reader.at(0.04)
        assert set(shown_size(picture)) == {256, 48}
        assert kind in [one.type.name for one in picture.frame.side_data]
    with Frames(film) as frames:
        assert len(frames[:]) == 3


def test_every_number_of_side_data_has_a_name():
    test_side_data_of_any_kind_disables_nothing("SEI_UNREGISTERED")
    assert [Type(number).value for number in range(100)] == list(range(100))


def test_media_is_opened_in_one_place():
    """Each other one would have to remember that text may be anything."""
    calls = [
        str(path.relative_to(SRC))
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "av.open"
        and not (len(node.args) > 1 and ast.unparse(node.args[1]) == "'w'")
    ]
    assert calls == ["fragdex/decoding/codec.py"]
