"""A file on disk is read or mapped, in few steps or many; its index is the same."""

from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.build import reading
from fragdex.fragments import hop
from fragdex.fragments.headers import DENSE, DONE, NO_SHAPE
from fragdex.testing import movie
from fragdex.testing.file_strategies import files
from laws import brute

needs_the_hop = pytest.mark.skipif(hop.compiled is None, reason="the hop was not compiled")


@needs_the_hop
@given(files(), st.integers(1, 9), st.sampled_from([0, 200, 1 << 40]), st.integers(1, 9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reads_and_mappings_mixed_in_any_way(tmp_path, made, probe, dense, rows):
    path = tmp_path / "movie.mp4"
    path.write_bytes(made.data)
    with (
        mock.patch.object(reading, "PROBE_ROWS", probe),
        mock.patch.object(reading, "DENSE", dense),
        mock.patch.object(reading, "MOST_ROWS", rows),
    ):
        found = fragdex.index(path, exact=True)
    brute.same(found, fragdex.index(made.data, exact=True))


@pytest.fixture
def opened(tmp_path):
    path = tmp_path / "movie.mp4"
    path.write_bytes(movie(fragments=6))
    with path.open("rb") as file:
        yield file.fileno(), path.stat().st_size


def walked(opened, **options):
    descriptor, size = opened
    return hop.walk_file(descriptor, 0, size, max_rows=1 << 20, max_bytes=1 << 28, **options)


@needs_the_hop
def test_the_walk_stops_where_fragments_are_dense(opened):
    met, kept, _, _ = walked(opened, probe=4, dense=1 << 20)
    assert met.status == DENSE
    assert len(met.top) >= 4
    assert met.top["size"][met.top["whole"]].sum() == len(kept)
    assert walked(opened, probe=4, dense=8)[0].status == DONE


@needs_the_hop
def test_a_shape_is_asked_for_until_there_is_none(opened):
    asked = []

    def learn(box):
        asked.append(bytes(box[4:8]))
        return

    met = walked(opened, learn=learn)[0]
    assert asked == [b"moof"]
    assert met.fits is None


@needs_the_hop
def test_a_learned_shape_is_looked_for_at_once(opened):
    met = walked(opened, learn=lambda box: (bytes(len(box)), bytes(len(box)), b""))[0]
    moofs = met.top[met.top["whole"]]["type"] == int.from_bytes(b"moof", "big")
    assert (met.fits.which[moofs] != NO_SHAPE).all()
    assert (met.fits.which[~moofs] == NO_SHAPE).all()


@needs_the_hop
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


@needs_the_hop
def test_too_many_shapes_are_refused(opened):
    # None of them fits, so that another one is asked for at the next fragment.
    with pytest.raises(ValueError, match="too many"):
        walked(opened, shapes=((b"", b"", b""),) * 32, learn=lambda box: (b"", b"", b""))
