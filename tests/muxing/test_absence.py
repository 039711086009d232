"""Proof that nothing of a span is left: of what was removed none is found, of what stays all is."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, FragdexError, NoSyncSample
from fragdex.muxing import absence
from fragdex.muxing.absence import left_of
from oracle.media_files import fixture_files, init_of

FILES = fixture_files()


def codes(output, index, data, *spans):
    return [one.code for one in left_of(output, index, data, spans).findings]


def films():
    for name, path in FILES.items():
        data = path.read_bytes()
        try:
            index = fragdex.index(data, exact=True, init=init_of(name) or None)
        except FragdexError:
            continue
        if index.duration and index.duration > 0.5 and all(t.has_samples for t in index.tracks):
            yield name, data, index


def test_every_film_has_its_own_spans_and_lacks_those_that_were_removed():
    proved = refuted = 0
    for name, data, index in films():
        span = (index.duration / 3, index.duration * 2 / 3)
        try:
            own = left_of(data, index, data, [span])
        except ValueError:  # there is none in the middle third
            continue
        if own.blocks:
            assert own.findings or own.elsewhere, name
        refuted += bool(own.findings)
        try:
            rest = fragdex.clip(index, without=[span], source=data).read()
        except (NoSyncSample, BuildError):
            continue
        assert left_of(rest, index, data, [span]).findings == (), name
        proved += 1
    assert refuted > 40
    assert proved > 15


FILM = FILES["faststart.mp4"]


@pytest.fixture(scope="module")
def film():
    data = FILM.read_bytes()
    return data, fragdex.index(data, exact=True)


def sample(film, track, time):
    data, index = film
    table, own = index.track(track).samples, index.track(track)
    at = (table.cts + round(own.shift)) / own.timescale
    number = int(np.flatnonzero((at >= time) & (table.size >= 64))[0])
    start = int(table.offset[number])
    return data[start : start + int(table.size[number])], float(at[number])


@pytest.mark.parametrize("track", [1, 2])
def test_one_sample_anywhere_is_found_and_named(film, track):
    data, index = film
    rest = fragdex.clip(index, without=[(0.5, 1)], source=data).read()
    inside, time = sample(film, track, 0.7)
    outside, _ = sample(film, track, 0.2)
    for junk in (b"", b"\0" * 5, bytes(range(200))):
        box = junk + inside + junk
        other = rest + (len(box) + 8).to_bytes(4, "big") + b"free" + box
        (finding,) = left_of(other, index, data, [(0.5, 1)]).findings
        assert (finding.code, finding.track) == ("sample-left", track)
        assert finding.offset == len(rest) + 8 + len(junk)
        assert f"{time:.3f} s" in finding.message
    assert codes(rest + outside, index, data, (0.5, 1)) == []


def test_what_an_edit_list_hides_is_found(film):
    """A clip has pictures from before its start, hidden, that others need."""
    data, index = film
    clip = fragdex.clip(index, 0.8, source=data).read()
    assert "sample-left" in codes(clip, index, data, (0, 0.8))


@given(st.data())
def test_any_piece_of_a_sample_that_is_long_enough_is_found(draw):
    data = FILM.read_bytes()
    index = fragdex.index(data, exact=True)
    inside, _ = sample((data, index), 1, draw.draw(st.sampled_from([0.5, 0.7, 0.9])))
    size = draw.draw(st.integers(2 * absence.BLOCK - 1, max(len(inside), 2 * absence.BLOCK)))
    start = draw.draw(st.integers(0, max(len(inside) - size, 0)))
    piece = inside[start : start + size]
    noise = random.Random(draw.draw(st.integers(0, 99))).randbytes(5000)
    at = draw.draw(st.integers(0, 5000))
    found = codes(noise[:at] + piece + noise[at:], index, data, (0.5, 1))
    assert bool(found) == (len(piece) >= 2 * absence.BLOCK - 1)


def test_what_the_rest_of_the_source_has_too_is_no_trace(film):
    """Silence, or a black picture, is the same bytes inside of a span and outside of it."""
    data, index = film
    twice = fragdex.join([index, index], source=[data, data]).read()
    known = fragdex.index(twice, exact=True)
    report = left_of(data, known, twice, [(0, 2)])
    assert report.findings == ()
    assert report.elsewhere


@pytest.mark.parametrize("around", ["video", "text"])
def test_short_texts_are_found_anywhere_and_what_is_shorter_is_counted(around):
    """Words of a subtitle lie in a box that nobody reads, or in a file that is no MP4."""
    data = FILES["frag-text.mp4"].read_bytes()
    index = fragdex.index(data, exact=True)
    rest = fragdex.clip(index, without=[(1, 2)], source=data).read()
    assert left_of(rest, index, data, [(1, 2)]).findings == ()
    words = b"\0\x0bsecond line"
    assert words not in rest
    hidden = {"video": rest + b"\0\0\0\x20free" + words + bytes(11), "text": b"notes: " + words}
    report = left_of(hidden[around], index, data, [(1, 2)])
    assert [one.code for one in report.findings] == ["sample-left"]
    assert "text sample at 1.080 s" in str(report.findings[0])
    assert report.short == 6


def test_reads_no_more_than_the_span_where_nothing_is_found(film, tmp_path):
    data, index = film
    rest = fragdex.clip(index, without=[(0.5, 1)], source=data).read()
    with fragdex.open_source(data) as source:
        left_of(rest, index, source, [(0.5, 1)])
        inside = sum(
            int(one.samples.size[((at := one.samples.cts + round(one.shift)) >= 0.4 * one.timescale)
                                 & (at < 1.1 * one.timescale)].sum())
            for one in index.tracks
        )  # fmt: skip
        assert source.bytes_read <= inside + 4096


def test_a_span_without_samples_and_wrong_ones_are_refused(film):
    data, index = film
    with pytest.raises(ValueError, match="after"):
        left_of(data, index, data, [(1, 0.5)])
    with pytest.raises(ValueError, match="no sample"):
        left_of(data, index, data, [(50, 60)])


def test_blocks_are_found_at_any_offset_and_across_pieces(monkeypatch):
    monkeypatch.setattr(absence, "PIECE", 100)
    pattern = bytes(range(16))
    blocks = absence.Blocks([pattern, bytes(16)])
    for at in range(250):
        hay = b"\xff" * at + pattern + b"\xff" * 50
        assert [*blocks.found(fragdex.open_source(hay), [ByteRange(0, len(hay))])] == [(at, 0)]
