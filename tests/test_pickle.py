"""An index, its answers and its errors go from process to process as they are."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import fragdex
import sending
from forged_indexes import checksummed
from fragdex import errors
from fragdex.boxes import make_box
from fragdex.formats import fidx, wire
from fragdex.formats.fidx_head import parse_head
from fragdex.testing import movie
from strategies.boxes import boxes
from strategies.files import files


def unpickled(data, **options):
    return pickle.loads(data, **options)  # noqa: S301


def sent(value, protocol=pickle.DEFAULT_PROTOCOL):
    return unpickled(pickle.dumps(value, protocol))


def grown(data, *, steps=3):
    """The index of a file that was indexed while it grew."""
    index = fragdex.index(data[: len(data) // 3])
    for step in range(1, steps + 1):
        index = index.extend(data[: len(data) // 3 + (2 * len(data) // 3) * step // steps])
    return index


def sought(index):
    for track in index.tracks:
        track.seek(0)
        track.seek_many([0.0, 1.0])
        if track.has_samples:
            _ = track.samples
    return index


def damaged(index):
    """A saved index with a place that no file has, which opening does not notice."""
    whole = fidx.write(index)
    plain, _, start = parse_head(memoryview(whole))
    columns = bytearray(whole[start:])
    offsets = plain["periods"][0]["tracks"][0]["tables"]["fragments"]["columns"][0]
    columns[offsets[2] : offsets[2] + 8] = b"\xff" * 8
    return fidx.read(checksummed(plain, bytes(columns)))


@pytest.fixture(scope="module")
def states(root, tmp_path_factory):
    """{name: an index in this state}."""
    folder = tmp_path_factory.mktemp("states")
    film = movie(fragments=9, tracks=2, reordered=True)
    fixture = (root / "fixtures").joinpath
    fragmented, progressive = fixture("frag-cmaf.mp4"), fixture("faststart.mp4")
    fragdex.index(fragmented).save(folder / "plain.fidx")
    fragdex.index(progressive).save(folder / "samples.fidx", samples=True)
    half_read = fragdex.open_index(folder / "samples.fidx")
    half_read.tracks[0].seek(0)
    return {
        "from a path": fragdex.index(fragmented),
        "from bytes": fragdex.index(film),
        "progressive": fragdex.index(progressive),
        "hybrid": fragdex.index(fixture("hybrid.mp4")),
        "after seeks": sought(fragdex.index(fragmented)),
        "progressive after seeks": sought(fragdex.index(progressive)),
        "from a sidx": fragdex.index(fixture("frag-global-sidx.mp4")),
        "growing": grown(film),
        "of a cut file": fragdex.index(film[: len(film) // 2]),
        "extended": fragdex.index(film[: len(film) // 2]).extend(film),
        "opened": fragdex.open_index(folder / "plain.fidx"),
        "opened with samples": fragdex.open_index(folder / "samples.fidx"),
        "partly read": half_read,
        "opened and extended": fidx.read(fidx.write(fragdex.index(film[: len(film) // 2]))).extend(
            film
        ),
        "opened and sought": sought(fragdex.open_index(folder / "samples.fidx")),
        "from JSON": wire.read(fragdex.index(film).export("json")),
        "with findings": fragdex.index(fixture("hybrid-crashed.mp4")),
        "damaged": damaged(fragdex.index(film)),
        "of nothing": fidx.read(fidx.write(fragdex.index(make_init(film)))),
    }


def make_init(data):
    """The initialization segment of a file."""
    return data[: fragdex.index(data).periods[0].init[-1].stop]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_an_index_in_any_state_is_the_same_behind_a_pickle(states, protocol):
    for name, index in states.items():
        again = sent(index, protocol)
        assert sending.describe(again) == sending.describe(index), name
        if name != "damaged":
            assert again == index, name
            assert hash(again) == hash(index), name


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_an_index_goes_to_another_process_and_comes_back(states, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        for name, index in states.items():
            description, data = pool.submit(sending.there_and_back, pickle.dumps(index)).result()
            assert description == sending.describe(index), name
            assert sending.describe(unpickled(data)) == description, name
        # As an argument, without a pickle of our own.
        fresh = states["from a path"]
        assert pool.submit(sending.describe, fresh).result() == sending.describe(fresh)


def test_an_index_can_be_copied(states):
    for name, index in states.items():
        for copied in (copy.copy(index), copy.deepcopy(index)):
            assert copied is not index
            assert sending.describe(copied) == sending.describe(index), name


def test_a_pickle_holds_no_media_and_nothing_twice(root):
    for name in ("frag-cmaf.mp4", "faststart.mp4", "hybrid.mp4"):
        path = root / "fixtures" / name
        pickled = pickle.dumps(fragdex.index(path))
        for box in fragdex.boxes.parse(path.read_bytes()):
            if box.type == "mdat" and box.size > 100:
                assert bytes(box["data"][:64]) not in pickled
    # Whether or not it was used, and however it grew.
    data = movie(fragments=200, samples=25)
    before = len(pickle.dumps(fragdex.index(data)))
    assert before < len(data)
    assert len(pickle.dumps(sought(fragdex.index(data)))) == before
    assert len(pickle.dumps(grown(data))) < before * 1.5


def test_a_process_that_only_unpickles_can_do_everything(root, tmp_path):
    """Saving, exporting and extending are done by rooms that unpickling does not import."""
    path = root / "fixtures" / "frag-cmaf.mp4"
    index = fragdex.index(path)
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(index))
    index.save(tmp_path / "a.fidx")
    opening = ["pickle.load(open('a.pickle', 'rb'))", "fragdex.open_index('a.fidx')"]
    doing = ["save('b.fidx')", "export('hls')", f"extend({str(path)!r})", "span(0, 1)"]
    for how in opening:
        for what in doing:
            program = f"import fragdex, pickle; {how}.{what}"
            subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)


def test_an_index_of_a_deleted_file_is_sent_whole(tmp_path):
    path = tmp_path / "movie.fidx"
    data = movie(fragments=4)
    fragdex.index(data).save(path, samples=True)
    opened = fragdex.open_index(path)
    pickled = pickle.dumps(opened)
    path.unlink()
    assert unpickled(pickled) == fragdex.index(data)
    assert len(pickled) < len(fidx.write(opened, samples=True)) + 4096


def test_the_columns_of_a_saved_index_can_travel_out_of_band(states):
    buffers = []
    data = pickle.dumps(states["opened with samples"], 5, buffer_callback=buffers.append)
    assert sum(buffer.raw().nbytes for buffer in buffers) > len(data)
    again = unpickled(data, buffers=buffers)
    assert again == states["opened with samples"]


@settings(max_examples=40)
@given(files())
def test_any_index_is_the_same_behind_a_pickle(film):
    for exact in (False, True):
        index = fragdex.index(film.data, exact=exact)
        assert sending.describe(sent(index)) == sending.describe(index)


def test_values_are_the_same_behind_a_pickle(states):
    index = states["from a path"]
    track = index.track(1)
    values = [
        track.seek(0.5),
        track.seek_many([0.0, 0.5]),
        index.span(0, 1),
        index.plan(0.5),
        track.start,
        fragdex.Time(Fraction(1, 3), 90_000),
        fragdex.ByteRange(0, 10),
        fragdex.tables.FragmentFlags(3),
        fragdex.Finding("code", "message", offset=3),
        index.file,
        index.how,
        index.periods[0],
        track,
        track.info,
        track.fragments,
        track.sync_samples,
        track.samples,
    ]
    for value in values:
        for again in (sent(value), copy.copy(value), copy.deepcopy(value)):
            assert again == value
            assert type(again) is type(value)
            assert repr(again) == repr(value)


def test_hits_are_compared_by_their_columns(states):
    track = states["from a path"].track(1)
    assert track.seek_many([0.0]) == track.seek_many(np.zeros(1))
    assert track.seek_many([0.0]) != track.seek_many([1.5])
    assert track.seek_many([0.0]) != 1


def test_indexes_of_other_files_differ(states):
    assert states["from a path"] != states["progressive"]
    assert states["from a path"] != None  # noqa: E711
    assert states["from a path"].track(1) != states["from a path"].track(2)


# ---- boxes -----------------------------------------------------------------------------------


def test_boxes_are_the_same_behind_a_pickle(root):
    for name in ("frag-cmaf.mp4", "faststart.mp4", "encrypted.mp4", "captions.mov"):
        for box in fragdex.boxes.parse((root / "fixtures" / name).read_bytes()):
            for again in (sent(box), copy.copy(box), copy.deepcopy(box)):
                assert again == box
                assert (again.offset, again.size, again.layout) == (
                    box.offset,
                    box.size,
                    box.layout,
                )
                assert again.replace() == box.replace()


@settings(max_examples=100)
@given(boxes())
def test_any_box_is_the_same_behind_a_pickle(box):
    assert sent(box) == box


def test_a_made_box_can_be_sent():
    box = make_box("tfdt", version=1, baseMediaDecodeTime=7)
    assert sent(box) == box
    assert sent(box).layout.steps(1, 0)


# ---- errors ----------------------------------------------------------------------------------


def everything_that_can_be_raised():
    for name in errors.__all__:
        kind = getattr(errors, name)
        if kind is errors.UndecodableMedia:
            yield kind("no decoder", start=1.0, stop=2.5, advice="transcode it")
            continue
        yield kind("something is wrong")
        yield kind(
            "something is wrong",
            path="moof/traf",
            offset=96,
            expected=fragdex.ByteRange(0, 3),
            found=(1, b"2", None),
            advice="do this",
        )
        yield kind("it cannot be sent", expected=memoryview(b"abc"), found=lambda: 0)


@pytest.mark.parametrize(
    "error", list(everything_that_can_be_raised()), ids=lambda e: type(e).__name__
)
def test_an_error_is_the_same_behind_a_pickle(error):
    again = sent(error)
    assert type(again) is type(error)
    assert again.args == error.args
    for name in ("message", "path", "offset", "advice", "start", "stop"):
        assert getattr(again, name, None) == getattr(error, name, None)
    if error.message != "it cannot be sent":
        assert str(again) == str(error)
        assert (again.expected, again.found) == (error.expected, error.found)
    else:
        assert again.expected == b"abc"
        assert "lambda" in again.found
    assert again.placed("moov", 4).path.startswith("moov")


def test_an_error_of_another_process_is_raised_here_with_its_attributes():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for error in everything_that_can_be_raised():
            with pytest.raises(type(error)) as caught:
                pool.submit(sending.fail_with, error).result()
            assert caught.value.message == error.message
            assert caught.value.offset == error.offset
