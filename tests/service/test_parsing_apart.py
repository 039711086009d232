"""Boxes that strangers send are parsed in children, and beside answers only where they are few."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest

import fragdex
from fragdex.muxing.captions import with_captions
from fragdex.service.indexing.isolated import IN_THREAD, exact_index, run_in_child, run_isolated
from fragdex.speech.captions import MADE, PLACES, Pieces, pieces_of_copy
from fragdex.testing import movie
from service.isobmff.conftest import context  # noqa: F401

HOME = Path(fragdex.__file__).parent
ROOMS = ("sandbox", "transcode", "speech", "rendering", "service")
"""The service, and its engines."""
PARSES = {"index", "with_captions", "Indexer", "why_not", "true_time"}

WHERE = {
    "rendering/page_media/medium.py": "a child",
    "service/indexing/child.py": "a child",
    "service/indexing/isolated.py": "files of at most IN_THREAD",
    "service/indexing/repairing.py": "a child",
    "service/isobmff/tracks.py": "at most IN_THREAD is read",
    "service/renders/worker.py": "what the service made itself",
    "service/streaming/arriving.py": "at most IN_THREAD is read, and a child",
    "service/streaming/child.py": "a child",
    "service/unprocessed/passthrough.py": "a child",
    "service/unprocessed/operations.py": "files of at most IN_THREAD",
    "service/unprocessed/inspection.py": "boxes of at most IN_THREAD",
    "speech/captions.py": "a child",
    "speech/transcribe.py": "not called by the service",
    "transcode/probe.py": "a child",
    "transcode/process.py": "a child",
    "transcode/seams.py": "not called by the service",
    "transcode/track_writers.py": "a child",
}


def calls(path):
    """What a module calls by one of these names, of the library's."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = node.func
            if isinstance(name, ast.Name) and name.id in PARSES:
                yield name.id
            elif ast.unparse(name) == "fragdex.index":
                yield "index"


def test_whoever_parses_is_known():
    files = [path for room in ROOMS for path in (HOME / room).rglob("*.py")]
    paths = {str(path.relative_to(HOME)) for path in files if any(calls(path))}
    assert paths == set(WHERE)


LARGE = (8 + IN_THREAD).to_bytes(4, "big") + b"free" + bytes(IN_THREAD)
FILMS = {"small": movie(fragments=3), "large": movie(fragments=3) + LARGE}


@pytest.fixture
def stored(context):  # noqa: F811
    def store(data):
        context.store.write("test/film", [data])
        return context, "one", "test/film", len(data)

    return store


@pytest.mark.parametrize("data", FILMS.values(), ids=FILMS)
def test_an_exact_index_is_that_of_the_library(stored, data):
    index, wanted = exact_index(*stored(data)), fragdex.index(data, exact=True)
    assert index.exact
    for ours, theirs in zip(index.tracks, wanted.tracks, strict=True):
        assert ours.fragments.offset.tolist() == theirs.fragments.offset.tolist()


@pytest.mark.parametrize("data", [b"no film", b"no film" * IN_THREAD])
def test_what_is_no_film_is_told_so(stored, data):
    with pytest.raises(fragdex.errors.FormatError):
        exact_index(*stored(data))


@pytest.mark.parametrize("data", [*FILMS.values(), movie(fragments=0)], ids=[*FILMS, "progressive"])
def test_a_copy_is_put_together_of_what_the_library_says(stored, tmp_path, data):
    cues = [(0, 500, "one"), (700, 900, "two")]
    wanted = with_captions(
        fragdex.index(data, exact=True), lambda part: data[part.start : part.stop], cues
    )
    pieces = Pieces(tmp_path / PLACES, tmp_path / MADE)
    into = {PLACES: pieces.places, MADE: pieces.made}
    run_isolated(*stored(data), pieces_of_copy, into, cues=cues, language=None)
    file, copy = pieces.made.open("rb"), b""
    for start, stop in pieces:
        copy += file.read(stop - start) if start < 0 else data[start:stop]
    assert copy == b"".join(
        piece if isinstance(piece, bytes) else data[piece.start : piece.stop] for piece in wanted
    )
    file.close()


def test_files_of_a_child_stay_in_the_folder_that_takes_them(tmp_path, monkeypatch, pytestconfig):
    """A child that was taken over names no file of ours."""
    monkeypatch.setenv("PYTHONPATH", str(pytestconfig.rootpath / "tests/sandbox"))
    do = SimpleNamespace(__module__="inside", __name__="files_elsewhere")
    answer = run_in_child(lambda: fragdex.open_source(b"film"), 4, do, taken=tmp_path)
    assert [(tmp_path / name).resolve() for name in answer["files"]] == [tmp_path / "made"]
    assert (tmp_path / "made").read_bytes() == b"film"
