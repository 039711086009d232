"""Whatever a playlist or manifest says, the checks of it answer with what is wrong."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.testing import check_dash, check_hls, movie

DATA = movie(3)
TEXTS = [
    (name, b"".join(view.chunks()))
    for name, view in fragdex.package(DATA).items()
    if name.endswith((".mpd", ".m3u8"))
]
TEXTS.append(("film.mpd", fragdex.index(DATA).export("dash", uri="film.mp4")))
PLACES = re.compile(rb'[0-9][0-9.]*|"[^"]*"|utf-8|PT[^"]*')
VALUES = [
    b"-1", b"1e308", b"NaN", b"inf", b"9" * 400, b"0", b"1e-400", b"\xc2\xb2", b"\xd9\xa3",
    b"P99999999999Y", b"1/0", b"utf1e308", b"PT" + b"9" * 5000 + b"S", b"http://[", b"//[::1",
    b"\0", b"",
]  # fmt: skip


@given(
    st.sampled_from(TEXTS),
    st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(VALUES)), min_size=1, max_size=3),
    st.booleans(),
)
def test_hostile_values_are_violations(named, changes, as_text):
    name, text = named
    for number, value in changes:
        places = list(PLACES.finditer(text))
        if not places:
            break
        place = places[number % len(places)]
        value = b'"' + value + b'"' if place[0].startswith(b'"') else value
        text = text[: place.start()] + value + text[place.end() :]
    check = check_dash if name.endswith("mpd") else check_hls
    given = text.decode(errors="replace") if as_text else text
    for read in (None, lambda uri: DATA):
        assert all(one.message for one in check(given, read))


@pytest.mark.parametrize("encoding", ["utf1e308", "x", "utf-7"])
def test_an_encoding_that_nobody_knows_is_a_violation(encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?><MPD/>'.encode()
    assert next(one.rule for one in check_dash(text)) in ("xml", "root")


def test_an_address_that_is_none_is_a_violation():
    playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nhttp://[\n"
    assert "uri" in [one.rule for one in check_hls(playlist, lambda uri: DATA)]
