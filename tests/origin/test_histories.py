"""Whatever happens to a file that somebody writes: what an address and a tag name is one body."""

import os
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from fragdex.origin.titles import Titles
from fragdex.testing import make_file, movie
from fragdex.testing.files import Brand
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Run, Sample, Track, Traf
from origin.serving import serving
from origin.test_growing_films import FOR_EVER, append, quiet
from strategies.recordings import fragment_starts

ADDRESS = re.compile(r"(?:p\d+-)?[av]\d/(?!gap\.)[\w-]+\.m(?:4s|p4)")
READY = {200}
NOT_READY = {404, 422, 503}


def pieces(number):
    """The moov of a recording, and its fragments; each recording has others."""
    whole = movie(16, tracks=2, samples=4 + number, fps=4 + number)
    edges = [0, *fragment_starts(fragdex.index(whole, exact=True)), len(whole)]
    return [whole[low:high] for low, high in pairwise(edges)]


RECORDINGS = [pieces(number) for number in range(3)]


class Writer:
    """Writes a recording to a file that others may write, cut, and replace, too."""

    def __init__(self, path, number):
        self._path, self._number = path, number
        self._data, self._at = b"".join(RECORDINGS[number]), 0
        self._edges = [len(b"".join(RECORDINGS[number][:n])) for n in range(len(RECORDINGS[0]) + 1)]

    def write(self, fragments, torn):
        """The next fragments; of the last one some bytes are missing if it is torn."""
        stop = next(at for at in self._edges if at > self._at or at == self._edges[-1])
        stop = self._edges[min(self._edges.index(stop) + fragments, len(self._edges) - 1)]
        stop = max(stop - torn, self._at)
        append(self._path, self._data[self._at : stop])
        self._at = stop

    def begin_again(self):
        """A restarted recorder writes its moov at the end of what is there."""
        self._at = 0


WRITE = st.tuples(st.just("write"), st.integers(0, 5), st.sampled_from([0, 0, 0, 1, 30]))
"""How many fragments, and how many bytes the last write lacks."""
EVENTS = st.one_of(
    WRITE,
    WRITE,
    st.tuples(st.just("another writes"), st.integers(0, 5), st.sampled_from([0, 0, 30])),
    st.tuples(st.just("cut"), st.floats(0, 1)),
    st.tuples(st.just("hole"), st.integers(1, 3000)),
    st.sampled_from([("pause",), ("restart",), ("rename",), ("delete",), ("rewrite",)]),
)


def happens(path, writers, event):
    kind, *given_ = event
    if kind == "write":
        writers[0].write(*given_)
    elif kind == "another writes":
        writers[1].write(*given_)
    elif kind == "restart":
        writers[0].begin_again()
        writers[0].write(2, 0)
    elif kind in ("rename", "rewrite"):
        other = path.with_name("other.tmp") if kind == "rename" else path
        other.write_bytes(b"".join(RECORDINGS[2][:9]))
        os.replace(other, path)
    elif path.exists():
        if kind == "cut":
            os.truncate(path, int(given_[0] * path.stat().st_size))
        elif kind == "hole":
            os.truncate(path, path.stat().st_size + given_[0])
        elif kind == "pause":
            quiet(path)
        else:
            path.unlink()


def looked_at(client, film, seen):
    """Get all that is listed: it is there, and equal tags of an address mean equal bytes."""
    master = client.get(f"/{film}/hls/master.m3u8")
    manifest = client.get(f"/{film}/dash/manifest.mpd")
    assert master.status_code in READY | NOT_READY, master.text
    assert manifest.status_code == master.status_code, manifest.text
    if master.status_code != 200:
        return 0
    for name in sorted(set(re.findall(r"\b[av]\d\.m3u8", master.text))):
        text = client.get(f"/{film}/hls/{name}").text.partition("#EXT-X-PRELOAD-HINT")[0]
        for one in sorted(set(ADDRESS.findall(text))):
            answer = client.get(f"/{film}/hls/{one}")
            assert answer.status_code == 200, (one, answer.text)
            assert len(answer.content) == int(answer.headers["content-length"])
            key = f"{film}/{one}", answer.headers["etag"]
            assert seen.setdefault(key, answer.content) == answer.content, one
    for name in ("faststart.mp4", "fragmented.mp4"):
        answer = client.get(f"/{film}/{name}")
        assert answer.status_code in READY | NOT_READY, answer.text
        if answer.status_code == 200:
            key = f"{film}/{name}", answer.headers["etag"]
            assert seen.setdefault(key, answer.content) == answer.content, name
    return len(seen)


def test_a_film_that_lost_the_end_of_a_large_fragment_is_another_one(tmp_path):
    pictures = (Sample(90_000, 1000, SYNC), *[Sample(40, 1000, NON_SYNC)] * 4)
    parts = [Fragment((Traf(1, (Run(pictures),), tfdt=5000 * n),)) for n in range(6)]
    data = make_file(Brand(), Moov((Track(1, "video", 5000),)), *parts).data
    path, seen = tmp_path / "live.mp4", {}
    with serving(Titles(tmp_path, segment_duration=1, growing=FOR_EVER)) as client:
        for size, end in ((0, b""), (100, b""), (100, b"x" * 100)):
            path.write_bytes(data) if not size else os.truncate(path, len(data) - size)
            append(path, end)
            assert looked_at(client, "live.mp4", seen)


@pytest.fixture(scope="module")
def client_and_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    with serving(Titles(folder, segment_duration=1, growing=FOR_EVER)) as client:
        yield client, folder


@settings(max_examples=20)
@given(st.lists(EVENTS, min_size=2, max_size=9))
def test_every_history(client_and_folder, events):
    """Paused, restarted, cut, with a hole, replaced, with two writers, deleted."""
    client, folder = client_and_folder
    film = f"film-{len(os.listdir(folder))}.mp4"
    path, seen = folder / film, {}
    (folder / f"{film}.was").touch()
    writers = Writer(path, 0), Writer(path, 1)
    writers[0].write(5, 0)
    assert looked_at(client, film, seen)
    for event in events:
        happens(path, writers, event)
        looked_at(client, film, seen)
