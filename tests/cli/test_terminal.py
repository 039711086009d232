"""Texts of files and their names reach a terminal escaped, and machines by their own rules."""

import copy
import dataclasses
import json
import re
from xml.etree import ElementTree as ET

import pytest

import fragdex
from fragdex.boxes import build, make_box
from fragdex.errors import printable
from fragdex.packaging import dash, hls
from fragdex.testing import movie

EVIL = "a\x1b[31m\x9b\u202egpj\r\n[red]b"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def evil(tmp_path):
    """A file whose name, box types, brands, handler names and tags hold what a terminal obeys."""
    data = movie(fragments=2)
    boxes = list(fragdex.boxes.parse(data))
    boxes[0] = make_box("ftyp", major_brand="a\x1b[m", compatible_brands=("\x9b\r\n ",))
    boxes += [
        make_box("\x1b[31", data=b""),
        make_box("emsg", scheme_id_uri=EVIL, value=EVIL, message_data=b"\x1b"),
        make_box("udta", children=[make_box("name", name=EVIL)]),
    ]
    path = tmp_path / "evil\x1b[31m\x9b\n.mp4"
    path.write_bytes(build(boxes).replace(b"fragdex", b"\x1b[31m\x9b"))
    return path.name


COMMANDS = ["info", "dump", "dump --full", "md5", "seek 0", "plan 0", "verify"]


@pytest.mark.parametrize("form", ["", "--json"])
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_that_a_terminal_obeys_is_printed(call, evil, command, form):
    name, *rest = command.split()
    if name == "verify":
        call("index", evil, "-o", "a.fidx")
        rest = ["a.fidx"]
    ran = call(name, evil, *rest, *filter(None, [form]))
    assert ran.out or ran.err
    if (name, form) == ("md5", ""):
        return  # as md5sum prints it: names can be read again
    for text in (ran.out, ran.err):
        assert not OBEYED.search(text)
    if form:
        for line in ran.lines:
            json.loads(line)


def test_errors_and_findings_are_escaped(call, tmp_path):
    (tmp_path / "no\x1b[31m\nfile.mp4").write_bytes(b"\x1b[31m" * 4)
    for name in ("no\x1b[31m\nfile.mp4", "missing\x9b.mp4"):
        ran = call("info", name)
        assert ran.code == 2
        assert ran.err.count("\n") == 1
        assert not OBEYED.search(ran.err)


def test_printed_indexes_are_escaped(evil, tmp_path):
    index = fragdex.index(str(tmp_path / evil))
    assert not OBEYED.search(repr(index))
    assert repr(index).count("\n") == 1 + len(index.findings)


def test_markup_of_rich_is_text_like_any_other():
    assert printable("[red]x[/red]") == "[red]x[/red]"


def test_what_is_escaped_and_what_is_not():
    assert printable("\u00e9\u200d\U0001f600 \u05d0") == "\u00e9\u200d\U0001f600 \u05d0"
    assert printable("a\tb\n", lines=True) == "a\tb\n"
    assert json.loads(printable(json.dumps("a\x9b\u2028", ensure_ascii=False))) == "a\x9b\u2028"


def hostile_index(**values):
    index = fragdex.index(movie(fragments=2))
    for name, value in values.items():
        object.__setattr__(index.track(1).info, name, value)
    track = copy.copy(index.track(1))  # what a track has of its moov at hand is taken anew
    index.periods = (dataclasses.replace(index.periods[0], tracks=(track,)),)
    return index


@pytest.mark.parametrize("codec", ['avc1",URI="x', "avc1\n#EXT-X-ENDLIST", "a,b", "\x00", "\udc80"])
def test_playlists_hold_no_codec_that_leaves_its_quotes(codec):
    index = hostile_index(codec=codec)
    text = hls.write_master(index).decode()
    assert "CODECS" not in text
    assert "URI=" not in text
    assert ET.fromstring(dash.write(index)) is not None


@pytest.mark.parametrize("name", ['a"b\n#X.mp4', "a\x00b.mp4", "caf\udce9.mp4", "\ud800.mp4"])
def test_playlists_and_manifests_quote_names(name):
    index = fragdex.index(movie(fragments=2))
    index.file = type(index.file)(name, index.file.size)
    for line in hls.write(index).decode("ascii").splitlines():
        assert line.startswith("#EXT") or re.fullmatch(r"[\w.%-]+", line)
    assert ET.fromstring(dash.write(index, uri=name)) is not None


def test_a_language_that_no_xml_can_hold():
    index = hostile_index(language='d\x00"\udc80')
    assert ET.fromstring(dash.write(index))[0][0].get("lang") == 'd\ufffd"\ufffd'
