"""Colours, shapes, rates and objects of a track are in HLS and DASH as they are in its headers."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import av
import pytest

import fragdex
from fragdex.boxes import build, make_box, parse
from fragdex.formats.fidx import open_index
from fragdex.testing import check_dash, check_hls

FIXTURES = Path(__file__).parents[2] / "fixtures"
MPD = "{urn:mpeg:dash:schema:mpd:2011}"
SCTE = "{urn:scte:dash:scte214-extensions}"
CICP = "urn:mpeg:mpegB:cicp:"


def with_boxes(film, *boxes):
    """The film with boxes at the end of each sample entry; fragments count from their moofs."""

    def changed(box, path):
        if not path:
            return box.replace(children=[*box.children, *boxes])
        name, *rest = path
        children = [
            changed(child, rest) if name in ("*", child.type) else child for child in box.children
        ]
        return box.replace(children=children)

    path = ["trak", "mdia", "minf", "stbl", "stsd", "*"]
    return build([changed(box, path) if box.type == "moov" else box for box in parse(film)])


def colr(primaries, transfer, matrix):
    return make_box(
        "colr",
        colour_type="nclx",
        colour_primaries=primaries,
        transfer_characteristics=transfer,
        matrix_coefficients=matrix,
    )


def vision(profile, level, compatibility, code="dvvC"):
    record = bytes([1, 0, profile << 1 | level >> 5, (level & 31) << 3 | 5, compatibility << 4])
    return make_box("free", data=record.ljust(24, b"\0")), code


def with_vision(film, *record, more=()):
    box, code = vision(*record)
    return with_boxes(film, *more, box).replace(
        b"free" + bytes(box["data"]), code.encode() + bytes(box["data"])
    )


def texts(film):
    package = fragdex.package(film)

    def read(name):
        return package[name].read()

    hls, dash = read("master.m3u8").decode(), read("manifest.mpd").decode()
    assert check_hls(hls, read=read) == check_dash(dash, read=read) == []
    return hls, ET.fromstring(dash)


def attribute(name, hls):
    return re.findall(rf'[,:]{name}=("[^"]*"|[^,\n]*)', hls)


@pytest.fixture(scope="module")
def hevc():
    return (FIXTURES / "frag-hvc1.mp4").read_bytes()


RANGES = {
    "PQ": ((9, 16, 9), None, "PQ", None),
    "HLG": ((9, 18, 9), None, "HLG", None),
    "BT.709": ((1, 1, 1), None, "SDR", None),
    "Dolby Vision over HDR10": ((9, 16, 9), (8, 6, 1), "PQ", "dvh1.08.06/db1p"),
    "over SDR": ((1, 1, 1), (8, 1, 2), "SDR", "dvh1.08.01/db2g"),
    "over HLG": ((9, 18, 9), (8, 4, 4), "HLG", "dvh1.08.04/db4h"),
    "over HLG that is called BT.2020": ((9, 14, 9), (8, 4, 4), "SDR", "dvh1.08.04/db4g"),
    "only Dolby Vision says": (None, (8, 6, 1), "PQ", "dvh1.08.06/db1p"),
    "colours that say nothing": ((2, 2, 2), (8, 4, 4), "HLG", "dvh1.08.04/db4h"),
    "no layer for others": (None, (5, 3, 0), "PQ", None),
}


@pytest.mark.parametrize("case", RANGES)
def test_dynamic_range_and_further_codecs(hevc, case):
    colour, record, dynamic_range, supplemental = RANGES[case]
    boxes = [] if colour is None else [colr(*colour)]
    film = with_vision(hevc, *record, more=boxes) if record else with_boxes(hevc, *boxes)
    hls, dash = texts(film)
    assert set(attribute("VIDEO-RANGE", hls)) == {dynamic_range}
    named = {f'"{supplemental}"'} if supplemental else set()
    assert set(attribute("SUPPLEMENTAL-CODECS", hls)) == named
    for one in dash.iter(f"{MPD}Representation"):
        codec, brand = one.get(f"{SCTE}supplementalCodecs"), one.get(f"{SCTE}supplementalProfiles")
        assert (f"{codec}/{brand}" if codec else None) == supplemental
        found = {
            child.get("schemeIdUri").removeprefix(CICP): (child.tag, child.get("value"))
            for child in one
            if child.get("schemeIdUri", "").startswith(CICP)
        }
        tag = f"{MPD}{'Essential' if colour and colour[1] == 16 else 'Supplemental'}Property"
        names = ("ColourPrimaries", "TransferCharacteristics", "MatrixCoefficients")
        pairs = zip(names, colour or (), strict=False)
        assert found == {name: (tag, str(code)) for name, code in pairs if code != 2}


@pytest.mark.parametrize(("h", "v", "width"), [(4, 3, 85), (1, 1, 64), (1, 2, 32)])
def test_pixels_that_are_not_square(hevc, h, v, width):
    hls, dash = texts(with_boxes(hevc, make_box("pasp", hSpacing=h, vSpacing=v)))
    assert set(attribute("RESOLUTION", hls)) == {f"{width}x48"}
    for one in dash.iter(f"{MPD}Representation"):
        assert (one.get("sar"), one.get("width"), one.get("height")) == (f"{h}:{v}", "64", "48")


def test_a_shape_of_pixels_that_cannot_be_stays_in_bounds(hevc):
    hls, _ = texts(with_boxes(hevc, make_box("pasp", hSpacing=2**32 - 1, vSpacing=1)))
    assert set(attribute("RESOLUTION", hls)) == {"65536x48"}


def film_of(codec, *, times=(), layout="5.1", options=None):
    file = io.BytesIO()
    flags = {"movflags": "frag_keyframe+empty_moov+default_base_moof+delay_moov"}
    with av.open(file, "w", format="mp4", options=flags) as container:
        if times:
            stream = container.add_stream(codec, rate=1000)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            stream.options = {"preset": "ultrafast", **(options or {"x264-params": "bframes=0"})}
            frames = [av.VideoFrame(64, 48, "yuv420p") for _ in times]
            for frame, time in zip(frames, times, strict=True):
                frame.pts = time
        else:
            stream = container.add_stream(codec, rate=48000, layout=layout)
            frames = [av.AudioFrame("fltp", layout, 1536) for _ in range(20)]
            for number, frame in enumerate(frames):
                frame.sample_rate, frame.pts = 48000, 1536 * number
        for frame in frames:
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


def test_the_rate_of_a_variable_film_is_the_highest():
    slow, fast = [40 * n for n in range(50)], [2000 + 20 * n for n in range(50)]
    hls, dash = texts(film_of("libx264", times=[*slow, *fast]))
    assert set(attribute("FRAME-RATE", hls)) == {"50.000"}
    assert {one.get("frameRate") for one in dash.iter(f"{MPD}Representation")} != {"50"}
    rounded = [round(n * 1001 / 30) for n in range(100)]
    hls, _ = texts(film_of("libx264", times=rounded))
    assert all(29.9 < float(rate) < 30.3 for rate in attribute("FRAME-RATE", hls))


VUI = "colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc"


@pytest.mark.parametrize("codec", ["libx264", "libx265"])
def test_colours_of_parameter_sets_are_read_and_colr_goes_before_them(codec):
    params = {codec.removeprefix("lib") + "-params": f"{VUI}:bframes=0"}
    film = film_of(codec, times=range(0, 400, 40), options=params)
    assert b"colr" not in film
    index = fragdex.index(film)
    colour = index.video.info.colour
    assert (colour.primaries, colour.transfer, colour.matrix) == (9, 16, 9)
    assert index.findings == ()
    hls, _ = texts(film)
    assert set(attribute("VIDEO-RANGE", hls)) == {"PQ"}
    for values, transfer, codes in (
        ((9, 18, 9), 18, ["colours-differ"]),
        ((9, 16, 9), 16, []),
        ((2, 2, 2), 16, []),
    ):
        index = fragdex.index(with_boxes(film, colr(*values)))
        assert index.video.info.colour.transfer == transfer
        assert [finding.code for finding in index.findings] == codes


def test_joined_objects_are_said(tmp_path):
    film = film_of("eac3")
    at = film.index(b"dec3") - 4
    size = int.from_bytes(film[at : at + 4], "big")
    dec3 = make_box("free", data=film[at + 8 : at + size] + b"\1\x10")
    plain = b"free" + bytes(dec3["data"])
    joined = with_boxes(film.replace(b"dec3", b"skip"), dec3).replace(plain, b"dec3" + plain[4:])
    for data, objects in ((film, None), (joined, 16)):
        index = fragdex.index(data, exact=True)
        index.save(tmp_path / "film.fidx", samples=True)
        for one in (index, open_index(tmp_path / "film.fidx")):
            assert one.audio.info.joint_objects == objects
        _, dash = texts(data)
        values = {child.get("value") for child in dash.iter(f"{MPD}SupplementalProperty")}
        assert values == ({"JOC", "16"} if objects else set())
