"""Storyboards: what is read for them, what is on their sheets, and what their lists say."""

import io
import re
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import webvtt
from PIL import Image

import fragdex
from decoding.filming import MATRICES, number_in, numbered, shown_by
from fragdex.errors import LimitExceeded, TrackNotFound, UndecodableMedia
from fragdex.sources import open_source

FIXTURES = Path(__file__).parents[2] / "fixtures"


def pixels(sheet):
    return np.asarray(Image.open(io.BytesIO(sheet.data)).convert("RGB"))


def part_of(sheet, cue):
    return pixels(sheet)[cue.y : cue.y + cue.height, cue.x : cue.x + cue.width]


@pytest.mark.parametrize("fragmented", [True, False])
@pytest.mark.parametrize("format", ["jpeg", "png", "webp", "avif"])
def test_each_tile_is_the_key_frame_nearest_to_its_time(fragmented, format):
    film = numbered(250, Fraction(10), keys=20, fragmented=fragmented)
    options = {"every": 3, "width": 256, "columns": 2, "rows": 2, "format": format}
    with fragdex.decoding.storyboard(fragdex.index(film), film, **options) as board:
        assert (board.count, board.sheet_count, board.height) == (9, 3, 48)
        sheets = list(board.sheets())
        cues = list(board.cues)
        for number, cue in enumerate(cues):
            assert (cue.start, cue.stop) == (3 * number, min(3 * number + 3, 25))
            shown = number_in(part_of(sheets[cue.sheet], cue)[:, :, 1])
            # of two as near the earlier one, and every second lies between two
            assert shown == round(30 * number / 20 - 0.01) * 20
            assert board.times[number] == Fraction(shown, 10)
            assert sheets[cue.sheet].times[number % 4] == board.times[number]
        assert {pixels(sheet).shape for sheet in sheets} == {(96, 512, 3)}
        assert not pixels(sheets[2])[50:].max() > 30


def test_only_the_bytes_of_key_frames_are_read():
    film = numbered(1000, Fraction(10), keys=20, size=(64, 32), fragmented=False)
    index = fragdex.index(film)
    table = index.track(1).samples
    keys = {
        int(o): int(s) for o, s, k in zip(table.offset, table.size, table.sync, strict=True) if k
    }
    read = []
    source = open_source(film)
    read_up_to = type(source).read_up_to

    class Counting(type(source)):
        def read_up_to(self, range):
            read.append((range.start, range.size))
            return read_up_to(self, range)

    source.__class__ = Counting
    init = [(part.start, part.size) for part in index.periods[0].init]
    with fragdex.decoding.storyboard(index, source, every=5, width=64) as board:
        assert read == init
        assert len(list(board.sheets())) == 1
    assert {start for start, _ in read[len(init) :]} <= keys.keys()
    assert all(keys[start] == size for start, size in read[len(init) :])
    assert len(read) - len(init) == 20


def test_neighbours_with_one_key_frame_share_what_was_decoded():
    film = numbered(600, Fraction(1), keys=600, size=(64, 32), fragmented=False)
    source = open_source(film)
    with fragdex.decoding.storyboard(fragdex.index(film), source, every=1, width=32) as board:
        before = source.requests
        sheets = list(board.sheets())
        assert source.requests == before + 1
    assert (board.count, len(sheets)) == (600, 6)
    assert set(board.times) == {0}
    assert not any(sheet.missing for sheet in sheets)


def test_webvtt_is_read_by_another_parser():
    film = numbered(90, Fraction(2), keys=4, size=(64, 36))
    with fragdex.decoding.storyboard(
        fragdex.index(film), film, every=Fraction(10, 3), width=64, columns=3, rows=2
    ) as board:
        captions = webvtt.from_string(board.webvtt("a b/{}.jpg"))
        cues = list(board.cues)
    assert len(captions) == len(cues) == 14
    for shown, cue in zip(captions, cues, strict=True):
        assert shown.text == f"a%20b/{cue.sheet}.jpg#xywh={cue.x},{cue.y},{cue.width},{cue.height}"
        assert abs(shown.start_in_seconds - float(cue.start)) < 1
    assert captions[-1].end == "00:00:45.000"
    assert captions[1].start == "00:00:03.333"


def test_the_hls_image_playlist_and_its_line():
    film = numbered(90, Fraction(2), keys=4, size=(64, 36))
    with fragdex.decoding.storyboard(
        fragdex.index(film), film, every=4, width=64, columns=2, rows=2
    ) as board:
        lines = board.hls().splitlines()
        sizes = [len(sheet.data) for sheet in board.sheets()]
        line = board.hls_stream_inf("x.m3u8", bandwidth=board.bandwidth_of(sizes))
    assert lines[0] == "#EXTM3U"
    assert "#EXT-X-IMAGES-ONLY" in lines
    assert "#EXT-X-TARGETDURATION:16" in lines
    assert lines[-1] == "#EXT-X-ENDLIST"
    spans = [float(one[8:-1]) for one in lines if one.startswith("#EXTINF:")]
    assert spans == [16, 16, 13]
    tiles = {one for one in lines if one.startswith("#EXT-X-TILES:")}
    assert tiles == {"#EXT-X-TILES:RESOLUTION=64x36,LAYOUT=2x2,DURATION=4.000000"}
    assert [one for one in lines if not one.startswith("#")] == [
        "sheet-0.jpg", "sheet-1.jpg", "sheet-2.jpg"
    ]  # fmt: skip
    peak = max(8 * size / span for size, span in zip(sizes, spans, strict=True))
    match = re.fullmatch(
        r'#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=(\d+),RESOLUTION=64x36,CODECS="jpeg",URI="x.m3u8"', line
    )
    assert match
    assert peak <= int(match[1]) <= peak + 1


def test_the_adaptation_set():
    film = numbered(90, Fraction(2), keys=4, size=(64, 36))
    with fragdex.decoding.storyboard(
        fragdex.index(film), film, every=2.5, width=64, columns=3, rows=1, format="webp"
    ) as board:
        element = ET.fromstring(board.dash("t/{}.webp"))
    assert (element.get("contentType"), element.get("mimeType")) == ("image", "image/webp")
    template = element.find("SegmentTemplate")
    assert template.get("media") == "t/$Number$.webp"
    assert template.get("startNumber") == "0"
    assert Fraction(int(template.get("duration")), int(template.get("timescale"))) == 7.5
    representation = element.find("Representation")
    assert (representation.get("width"), representation.get("height")) == ("192", "36")
    assert int(representation.get("bandwidth")) > 0
    tile = representation.find("EssentialProperty")
    assert tile.get("schemeIdUri") == "http://dashif.org/guidelines/thumbnail_tile"
    assert tile.get("value") == "3x1"


def test_tiles_are_upright_and_have_the_shape_of_the_picture():
    for matrix in (MATRICES["90"], MATRICES["transposed"]):
        film = shown_by(numbered(20, Fraction(10)), matrix[0])
        with fragdex.decoding.storyboard(fragdex.index(film), film, every=1, width=24) as board:
            assert board.height == 128
    with fragdex.decoding.storyboard(fragdex.index(film), film, every=1, width=24) as board:
        assert board.height == 128
    wide = numbered(20, Fraction(10), aspect="2/1")
    with fragdex.decoding.storyboard(fragdex.index(wide), wide, every=1, width=512) as board:
        assert board.height == 48
        sheet = next(board.sheets())
        assert number_in(part_of(sheet, next(board.cues))[:, :, 1]) == 0


def test_a_film_that_begins_late_has_its_first_tile_there():
    path = FIXTURES / "start-7s.mp4"
    with fragdex.decoding.storyboard(fragdex.index(path), path, every=0.5) as board:
        assert board.start == fragdex.index(path).track(1).start.fraction >= 7
        assert board.times[0] == board.start


def test_tiles_that_cannot_be_decoded_are_black_and_told():
    film = numbered(90, Fraction(1), keys=10, size=(64, 32), fragmented=False)
    index = fragdex.index(film, exact=True)
    init = b"".join(film[part.start : part.stop] for part in index.periods[0].init)
    table = index.track(1).samples
    cut = film[: int(table.offset[35])]
    options = {"every": 10, "width": 64, "columns": 2, "rows": 2, "init": init}
    with fragdex.decoding.storyboard(index, cut, **options) as board:
        sheets = list(board.sheets())
    assert [sheet.missing for sheet in sheets] == [(), (0, 1, 2, 3), (0,)]
    assert pixels(sheets[1]).max() == 0
    with (
        fragdex.decoding.storyboard(index, cut[: int(table.offset[0])], **options) as board,
        pytest.raises(UndecodableMedia),
    ):
        next(board.sheets())


def test_a_damaged_key_frame_gives_way_to_one_before():
    film = bytearray(numbered(90, Fraction(1), keys=10, size=(64, 32)))
    index = fragdex.index(bytes(film), exact=True)
    table = index.track(1).samples
    at, size = (int(c[np.flatnonzero(table.sync)[3]]) for c in (table.offset, table.size))
    film[at : at + size] = bytes(size)
    with fragdex.decoding.storyboard(index, bytes(film), every=10, width=64) as board:
        sheet = board.sheet(0)
    assert sheet.times[2:5] == (20, 20, 40)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"every": 0}, ValueError),
        ({"every": -1}, ValueError),
        ({"every": float("nan")}, ValueError),
        ({"every": float("inf")}, ValueError),
        ({"every": "1e-9"}, ValueError),
        ({"every": Fraction(1, 10**9)}, LimitExceeded),
        ({"width": 0}, ValueError),
        ({"width": 10**12}, ValueError),
        ({"width": 16000, "columns": 1, "rows": 1, "every": 0.1}, None),
        ({"width": 9000, "every": 0.1}, LimitExceeded),
        ({"columns": 0}, ValueError),
        ({"rows": 10**9}, ValueError),
        ({"quality": 200}, ValueError),
        ({"format": "bmp"}, ValueError),
        ({"track": 5}, TrackNotFound),
    ],
)
def test_what_is_refused(asked, error):
    film = numbered(20, Fraction(10))
    if error is None:
        with fragdex.decoding.storyboard(fragdex.index(film), film, **asked) as board:
            assert board.count == 20
        return
    with pytest.raises(error):
        fragdex.decoding.storyboard(fragdex.index(film), film, **asked)


def test_files_without_pictures_say_so():
    for name, error in (("aac.m4a", TrackNotFound), ("encrypted.mp4", UndecodableMedia)):
        path = FIXTURES / name
        with pytest.raises(error):
            fragdex.decoding.storyboard(fragdex.index(path), path)
