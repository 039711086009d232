"""A damaged last field costs that field: what stands before it is read, and the damage is said."""

import contextlib
import random
from pathlib import Path

import pytest

import fragdex
import fragdex.media
from fragdex.boxes import Box, build, make_box, parse, parse_box
from fragdex.boxes.parsing import ESSENTIAL
from fragdex.boxes.tree import entries, layout_of
from fragdex.errors import BuildError, MalformedBox, TruncatedInput
from fragdex.testing import edit
from laws import brute

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILMS = ("moov-last.mp4", "faststart.mp4", "frag-cmaf.mp4", "frag-skip-trailer.mp4")
NOISE = random.Random(3).randbytes(70_000)
TAILS = {
    "noise": NOISE,
    "a box of noise": b"\0\0\0\x10\x9b\1\2\3" + NOISE[:40],
    "a size of noise": b"\0\0\0\3\x9b\1\2\3" + NOISE[:40],
    "noise to the end": b"\0\0\0\0\x9b\1\2\3" + NOISE[:40],
    "zeros": bytes(500),
    "a few zeros": bytes(4),
    "a line end": b"\r\n",
}


def codes(index):
    return [finding.code for finding in index.findings]


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("name", FILMS)
def test_what_is_not_a_box_behind_the_last_one_is_said(name, tail):
    film = (FIXTURES / name).read_bytes()
    whole = fragdex.index(film, exact=True)
    index = fragdex.index(film + TAILS[tail], exact=True)
    assert index.complete
    assert [(f.code, f.offset) for f in index.findings if f not in whole.findings] == [
        ("trailing-bytes", len(film))
    ]
    for track in whole.tracks:
        brute.same_tables(index.track(track.id), track)


@pytest.mark.parametrize("tail", TAILS)
def test_pieces_say_it_too(tail):
    data = (FIXTURES / "frag-cmaf.mp4").read_bytes() + TAILS[tail]
    indexer = fragdex.Indexer()
    for at in range(0, len(data), 997):
        indexer.feed(data[at : at + 997])
    assert codes(indexer.finish()) == codes(fragdex.index(data)) == ["trailing-bytes"]


@pytest.mark.parametrize("tail", [b"\0\0\1\0mdat", b"\0\0\1\0", b"\0\0\1\0free" + bytes(9)])
def test_a_box_that_is_cut_off_is_still_cut_off(tail):
    index = fragdex.index((FIXTURES / "frag-cmaf.mp4").read_bytes() + tail)
    assert not index.complete
    assert codes(index) == ["truncated"]


def test_a_moov_without_its_last_bytes_says_what_it_still_has():
    film = (FIXTURES / "moov-last.mp4").read_bytes()
    whole, begin = fragdex.index(film), film.rindex(b"moov") - 4
    counts = set()
    for stop in range(begin, len(film)):
        try:
            index = fragdex.index(film[:stop])
        except TruncatedInput:
            counts.add(())
            continue
        assert not index.complete
        assert {"cut-moov", "truncated"} <= set(codes(index))
        count = tuple(len(track.samples) for track in index.tracks)
        for track in index.tracks:
            if len(track.samples):
                assert brute.rows(track.samples) == brute.rows(whole.track(track.id).samples)
        counts.add(count)
    assert counts == {(), (50,), (50, 0), (50, 33)}


def test_what_a_cut_moov_has_is_played():
    film = (FIXTURES / "moov-last.mp4").read_bytes()
    for cut in (1, 30, 300, 700):
        picture = fragdex.media.thumbnail(film[:-cut], 1).data
        assert picture == fragdex.media.thumbnail(film, 1).data
    grown = fragdex.index(film[:-30]).extend(film)
    assert [len(track.samples) for track in grown.tracks] == [50, 33]


def texts():
    """Boxes that may end in a text, with one in it."""
    codes = {entry.code: layout_of(entry.code) for entry in entries() if len(entry.code) == 4}
    for code, layout in codes.items():
        for version in () if layout is None else layout.versions or (0,):
            more = {"version": version} if layout.full else {}
            for field in layout.fields:
                with contextlib.suppress(BuildError, TypeError):
                    data = build(make_box(code, **{field.name: "de-CH"}, **more))
                    names = [
                        name for name, value in parse(data)[0].fields.items() if value == "de-CH"
                    ]
                    if names and data.endswith(b"de-CH\0"):
                        yield code, names[0], data


def test_a_text_without_its_zero_costs_nothing():
    seen = set()
    for code, name, data in texts():
        cut = (len(data) - 1).to_bytes(4, "big") + data[4:-1]
        (box,) = parse(cut)
        kept = [*box.fields.values(), box.trailing]
        assert "de-CH" in kept or b"de-CH" in kept, code
        assert build(box) == cut
        if name in box and code not in ESSENTIAL:
            with pytest.raises(MalformedBox):
                parse(cut, strict=True)
        seen.add(code)
    assert {"elng", "url ", "urn ", "hdlr", "kind", "cprt"} <= seen


def without_zero(box):
    data = build(box)[:-1]
    return parse_box(len(data).to_bytes(4, "big") + data[4:])


@pytest.fixture(scope="module")
def moov_last():
    film = (FIXTURES / "moov-last.mp4").read_bytes()
    at = film.rindex(b"moov") - 4
    return film[:at], parse_box(film[at:])


def test_a_location_without_its_zero_is_in_this_file_if_its_flag_says_so(moov_last):
    media, moov = moov_last
    here = without_zero(make_box("url ", flags=1, location="https://example.org/"))
    index = fragdex.index(media + build(edit(moov, "**/url", lambda _: here)))
    assert codes(index) == ["open-text", "open-text"]
    assert [len(track.samples) for track in index.tracks] == [50, 33]


def test_a_language_without_its_zero_is_read(moov_last):
    media, moov = moov_last
    elng = without_zero(make_box("elng", extended_language="de-CH"))

    def with_elng(box: Box) -> Box:
        children = [with_elng(child) for child in box.children]
        if box.type == "mdia":
            children.append(elng)
        return box.replace(children=children) if children else box

    index = fragdex.index(media + build(with_elng(moov)))
    assert [track.info.extended_language for track in index.tracks] == ["de-CH", "de-CH"]
    assert codes(index) == ["open-text", "open-text"]
