"""A file on disk is read or mapped, in few steps or many; its index is the same."""

import io
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.errors import BudgetExceeded, FragdexError, LimitExceeded, TruncatedInput
from fragdex.indexing import native, reading
from fragdex.indexing.headers import DENSE, DONE
from fragdex.sources import Source, open_source
from fragdex.testing import movie
from laws import brute
from strategies.files import files

needs_native = pytest.mark.skipif(
    native.compiled is None, reason="the C extension was not compiled"
)


@needs_native
@given(files(), st.integers(1, 9), st.sampled_from([0, 200, 1 << 40]), st.integers(1, 9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reads_and_mappings_mixed_in_any_way(tmp_path, film, probe, dense, rows):
    path = tmp_path / "movie.mp4"
    path.write_bytes(film.data)
    with (
        mock.patch.object(reading, "PROBE_ROWS", probe),
        mock.patch.object(reading, "DENSE", dense),
        mock.patch.object(reading, "MOST_ROWS", rows),
    ):
        index = fragdex.index(path, exact=True)
    brute.same(index, fragdex.index(film.data, exact=True))


@pytest.fixture
def opened(tmp_path):
    path = tmp_path / "movie.mp4"
    path.write_bytes(movie(fragments=6))
    with path.open("rb") as file:
        yield file.fileno(), path.stat().st_size


def walked(opened, **options):
    descriptor, size = opened
    return native.walk_file(descriptor, 0, size, max_rows=1 << 20, max_bytes=1 << 28, **options)


@needs_native
def test_the_walk_stops_where_fragments_are_dense(opened):
    met, kept, _, _ = walked(opened, probe=4, dense=1 << 20)
    assert met.status == DENSE
    assert len(met.top) >= 4
    assert met.top["size"][met.top["whole"]].sum() == len(kept)
    assert walked(opened, probe=4, dense=8)[0].status == DONE


@needs_native
def test_a_shape_is_asked_for_until_there_is_none(opened):
    asked = []

    def learn(box):
        asked.append(bytes(box[4:8]))
        return

    met = walked(opened, learn=learn)[0]
    assert asked == [b"moof"]
    assert (met.shaped.shown, met.shaped.missed) == (6, 6)


@needs_native
def test_a_learned_shape_is_looked_for_at_once(opened):
    met = walked(opened, learn=lambda box: (bytes(len(box)), bytes(len(box)), b""))[0]
    # Of the ftyp and the moov none is asked for.
    assert (met.shaped.shown, met.shaped.missed, sum(met.shaped.met)) == (6, 0, 6)


@needs_native
@pytest.mark.parametrize(
    ("answer", "error"), [(5, TypeError), ((b"a", b"", b""), ValueError), (ZeroDivisionError,) * 2]
)
def test_what_goes_wrong_while_a_shape_is_learned_is_raised(opened, answer, error):
    def learn(box):
        if isinstance(answer, type):
            raise answer
        return answer

    with pytest.raises(error):
        walked(opened, learn=learn)


@needs_native
def test_too_many_shapes_are_refused(opened):
    # None of them fits, so that another one is asked for at the next fragment.
    with pytest.raises(ValueError, match="too many"):
        walked(opened, shapes=((b"", b"", b""),) * 32, learn=lambda box: (b"", b"", b""))


@given(files(), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_budget_is_held_to_before_each_read(tmp_path, film, data):
    path = tmp_path / "movie.mp4"
    path.write_bytes(film.data)
    most = data.draw(st.integers(0, 2 * len(film.data)))
    with open_source(path, max_bytes=most) as source:
        try:
            index = fragdex.index(source, exact=True)
        except BudgetExceeded:
            index = None
        assert source.bytes_read <= most
    if index is not None:
        brute.same(index, fragdex.index(film.data, exact=True))


class Untold(Source):
    """A source that never says how long it is."""

    def __init__(self, data):
        super().__init__("untold", size=None)
        self.data = data

    def read_up_to(self, range):
        self.requests += 1
        return self.data[range.start : range.stop]


@given(files(), st.data())
def test_a_source_that_does_not_tell_its_length(film, data):
    cut = film.data[: data.draw(st.integers(0, len(film.data)))]

    def indexed(what):
        try:
            return fragdex.index(what, exact=True)
        except FragdexError as error:
            return type(error)

    index, expected = indexed(Untold(cut)), indexed(cut)
    if isinstance(expected, type):
        assert index is expected
    else:
        brute.same(index, expected)
        assert index.file.size == len(cut)


@pytest.mark.parametrize("gap", [0, 1, 70_000, 5_000_000])
def test_the_end_behind_what_was_passed_over_is_found(gap):
    """The last box is not read, and claims more than there is."""
    free = (6_000_000).to_bytes(4, "big") + b"free" + bytes(gap)
    source = Untold(movie(fragments=2) + free)
    index = fragdex.index(source)
    assert (index.file.size, index.complete) == (len(source.data), False)
    assert index.resume_offset == len(movie(fragments=2))
    assert source.requests < 60


def test_media_data_to_an_end_that_is_not_told():
    data = movie(fragments=2)
    at = data.rindex(b"mdat") - 4
    source = Untold(data[:at] + bytes(4) + data[at + 4 :] + bytes(100_000))
    index = fragdex.index(source)
    assert (index.file.size, index.complete) == (len(source.data), True)


HEADERS = {
    "32 bits": (300 << 20).to_bytes(4, "big") + b"moof",
    "64 bits": b"\0\0\0\1moof" + (1 << 40).to_bytes(8, "big"),
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("form", ["bytes", "path", "file", "untold"])
def test_a_box_too_large_to_keep_that_the_end_cuts_off(tmp_path, header, form):
    data = movie(fragments=2) + header + bytes(50)
    path = tmp_path / "movie.mp4"
    path.write_bytes(data)
    what = {"bytes": data, "path": path, "file": io.BytesIO(data), "untold": Untold(data)}[form]
    index = fragdex.index(what)
    assert (index.complete, index.resume_offset) == (False, len(movie(fragments=2)))
    assert [finding.code for finding in index.findings] == ["truncated"]
    # None of it was read, however much is there.
    assert index.how.bytes_read < len(data) + 100


@pytest.mark.parametrize("lead", [b"", b"\0\0\0\x10ftypisom\0\0\0\0"])
@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_nothing_but_a_box_too_large_that_is_cut_off(lead, header):
    with pytest.raises(TruncatedInput, match="ends"):
        fragdex.index(lead + header + bytes(50))


def test_a_box_too_large_is_refused_once_all_of_it_is_there():
    data = movie(fragments=2) + HEADERS["32 bits"]
    end = len(movie(fragments=2)) + (300 << 20)
    indexer = fragdex.Indexer()
    indexer.feed(data)
    assert indexer.need is None
    indexer.feed(b"\0", end - 2)
    cut = indexer.finish()
    assert (cut.complete, cut.file.size) == (False, end - 1)
    with pytest.raises(LimitExceeded, match="too large"):
        indexer.finish(end)
    with pytest.raises(LimitExceeded, match="too large"):
        indexer.feed(b"\0", end - 1)


@needs_native
def test_a_box_too_large_is_refused_in_a_file_that_holds_all_of_it(tmp_path):
    """Where it is read; in a mapping it need not be kept."""
    path = tmp_path / "movie.mp4"
    with path.open("wb") as file:
        file.write(movie(fragments=2) + HEADERS["32 bits"])
        file.truncate(len(movie(fragments=2)) + (300 << 20))
    with pytest.raises(LimitExceeded, match="too large"):
        fragdex.index(path)
