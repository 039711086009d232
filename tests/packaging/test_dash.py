"""DASH manifests: what they name is there, and a player gets the packets of the file."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import fragdex
from fragdex.errors import BuildError
from fragdex.packaging import mpd
from fragdex.sources import open_source
from fragdex.testing import RangeServer, movie

FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = {"": "urn:mpeg:dash:schema:mpd:2011"}


def manifest(data: bytes, **options: Any) -> ET.Element:
    return ET.fromstring(fragdex.index(data, exact=True).export("dash", **options))


def spans(manifest_of: ET.Element) -> list[tuple[int, int]]:
    """(first, last) bytes of the listed segments, both inclusive."""
    urls = manifest_of.findall(".//SegmentURL", NAMES)
    pairs = [url.attrib["mediaRange"].split("-") for url in urls]
    return [(int(first), int(last)) for first, last in pairs]


def packets(url: str, *options: str) -> list[tuple[Any, ...]]:
    program = shutil.which("ffprobe")
    if program is None:
        pytest.skip("needs ffprobe")
    command = [program, "-v", "error", *options, "-show_packets", "-of", "json", url]
    output = subprocess.run(command, check=True, capture_output=True, timeout=30).stdout
    rows = json.loads(output)["packets"]
    return [(p["size"], p.get("dts_time"), p.get("pts_time"), p["flags"][0]) for p in rows]


# That player reads no more than one track from a representation; these have one.
PLAYED = ["frag-audio.m4a", "frag-audio-sidx.m4a", "frag-hvc1.mp4", "frag-global-sidx-video.mp4"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.parametrize("with_source", [False, True])
def test_a_player_gets_the_packets_of_the_file(name: str, with_source: bool) -> None:
    path = FIXTURES / name
    data = path.read_bytes()
    source = data if with_source else None
    written = fragdex.index(path, exact=True).export("dash", segment_duration=0, source=source)
    assert (b"SegmentBase" in written) == (with_source and "sidx" in name)
    with RangeServer({f"/{name}": data, "/list.mpd": written}) as server:
        assert packets(server.at("/list.mpd"), "-f", "dash") == packets(str(path))


def test_segments_are_listed_from_the_first_moof_to_the_end() -> None:
    data = movie(6, tracks=2, samples=10, fps=10)
    document = manifest(data, uri="film.mp4")
    index = fragdex.index(data, exact=True)
    listed = spans(document)
    assert [first for first, _ in listed] == index.track(1).fragments.offset[::2].tolist()
    assert [last + 1 for _, last in listed] == [*(first for first, _ in listed[1:]), len(data)]
    representation = document.find(".//Representation", NAMES)
    assert representation is not None
    init = representation.find(".//Initialization", NAMES)
    assert init is not None
    assert init.attrib["range"] == f"0-{index.periods[0].init[-1].stop - 1}"
    assert representation.findtext("BaseURL", namespaces=NAMES) == "film.mp4"
    run = representation.findall(".//S", NAMES)
    assert [s.attrib for s in run] == [{"t": "0", "d": "20000", "r": "2"}]
    assert document.attrib["mediaPresentationDuration"] == "PT6S"
    assert document.attrib["type"] == "static"


def test_an_index_of_the_file_is_no_part_of_the_first_segment() -> None:
    data = movie(3, sidx=True)
    index = fragdex.index(data, exact=True)
    table = index.track(1).fragments
    assert table.offset[0] < table.moof_offset[0]
    assert spans(manifest(data))[0][0] == table.moof_offset[0]


def test_a_sidx_that_lists_everything_is_named() -> None:
    data = movie(3, sidx=True)
    assert fragdex.index(data).how.method == "sidx"
    for index in (fragdex.index(data), fragdex.index(data, exact=True)):
        manifest = ET.fromstring(index.export("dash", source=data))
        base = manifest.find(".//SegmentBase", NAMES)
        assert base is not None
        first, last = map(int, base.attrib["indexRange"].split("-"))
        assert data[first + 4 : first + 8] == b"sidx"
        assert last + 1 == first + int.from_bytes(data[first : first + 4], "big")
        assert manifest.attrib["profiles"] == mpd.ON_DEMAND


@pytest.mark.parametrize(
    "name",
    [
        "frag-dash.mp4",  # one in front of every fragment
        "frag-default-base.mp4",  # none
    ],
)
def test_other_indexes_are_not_named(name: str) -> None:
    path = FIXTURES / name
    with open_source(path) as source:
        written = fragdex.index(path, exact=True).export("dash", source=source)
    assert b"SegmentBase" not in written


def test_a_sidx_that_lies_is_not_named() -> None:
    data = bytearray(movie(3, sidx=True))
    index = fragdex.index(bytes(data), exact=True)
    at = data.find(b"sidx") - 4
    size = int.from_bytes(data[at : at + 4], "big")
    data[at + size - 12 : at + size - 8] = (5).to_bytes(4, "big")  # the last referenced_size
    assert b"SegmentBase" not in index.export("dash", source=bytes(data))
    data[at + 8] = 9  # an unknown version
    assert b"SegmentBase" not in index.export("dash", source=bytes(data))
    data[at : at + 4] = (3).to_bytes(4, "big")
    assert b"SegmentBase" not in index.export("dash", source=bytes(data))


def test_the_tracks_are_described() -> None:
    manifest = ET.fromstring(fragdex.index(FIXTURES / "frag-default-base.mp4").export("dash"))
    representation = manifest.find(".//Representation", NAMES)
    assert representation is not None
    attributes = {k: representation.attrib[k] for k in ("codecs", "width", "height", "frameRate")}
    expected = {"codecs": "avc1.64000A,mp4a.40.2", "width": "64", "height": "48", "frameRate": "25"}
    assert attributes == expected
    assert representation.attrib["audioSamplingRate"] == "16000"
    kinds = [c.attrib["contentType"] for c in manifest.findall(".//ContentComponent", NAMES)]
    assert kinds == ["video", "audio"]
    ntsc = ET.fromstring(fragdex.index(FIXTURES / "frag-ntsc.mp4").export("dash"))
    rates = [r.attrib["frameRate"] for r in ntsc.findall(".//Representation", NAMES)]
    assert rates == ["30000/1001"]


def test_languages_are_told() -> None:
    written = fragdex.index(FIXTURES / "frag-two-languages.mp4").export("dash")
    manifest = ET.fromstring(written)
    languages = {
        c.attrib["lang"]
        for c in manifest.findall(".//ContentComponent", NAMES)
        if "lang" in c.attrib
    }
    assert len(languages) == 2


def test_periods_follow_each_other() -> None:
    manifest = ET.fromstring(fragdex.index(FIXTURES / "two-inits.mp4").export("dash"))
    first, second = manifest.findall("Period", NAMES)
    assert first.attrib["duration"] == second.attrib["start"]


def test_a_name_is_escaped_twice_where_it_must() -> None:
    document = manifest(movie(2), uri="a&b <c>.mp4?x=1&y=2")
    assert document.findtext(".//BaseURL", namespaces=NAMES) == "a&b%20%3Cc%3E.mp4?x=1&y=2"


def test_a_file_without_fragments_has_no_manifest() -> None:
    with pytest.raises(BuildError, match="movie fragments"):
        fragdex.index(movie(fragmented=False)).export("dash")
