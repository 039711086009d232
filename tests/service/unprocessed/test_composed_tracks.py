"""Where an upload has the bytes of a track is found, and believed only where it is true."""

from dataclasses import replace

import av
import numpy as np
import pytest

from fragdex.service.records.blobs import Blob
from fragdex.service.store.composing import Composition
from fragdex.service.unprocessed.worker import Original, record_of_track
from fragdex.transcode.process import process_file
from fragdex.transcode.tracks import COPIED_RANGE
from service.working import FIXTURES


def remuxed(path):
    """A film of the fixtures in another container."""
    with av.open(str(FIXTURES / "faststart.mp4")) as film, av.open(str(path), "w") as out:
        streams = {one.index: out.add_stream_from_template(one) for one in film.streams}
        for packet in film.demux():
            if packet.dts is not None:
                packet.stream = streams[packet.stream_index]
                out.mux(packet)
    return path


def made_of(path, folder):
    with path.open("rb") as file:
        tracks = process_file(file, folder, ranges=True)
    blob = Blob(bytes(16), bytes(32), path.stat().st_size, "blobs/whole")
    return [one for one in tracks if one.track_id > 0], Original(blob, path)


@pytest.mark.parametrize(("name", "least"), [("a.mp4", 2), ("a.mkv", 1), ("a.flv", 2), ("a.ts", 0)])
def test_tracks_of_any_container_are_composed_where_it_has_their_bytes(name, least, tmp_path):
    path = remuxed(tmp_path / name)
    tracks, original = made_of(path, tmp_path)
    data, composed = path.read_bytes(), 0
    # what had to be encoded is nowhere in the film
    for one in filter(lambda one: one.probe_info["copied"], tracks):
        with open(one.path, "rb") as file:
            track = file.read()
        ranges = np.fromfile(one.ranges_path, COPIED_RANGE.base).reshape(-1, 3)
        for start, place, size in ranges.tolist():
            assert track[start : start + size] == data[place : place + size]
        record = record_of_track(one, original, lambda: None)
        if record is not None:
            composition, composed = Composition.parsed(record), composed + 1
            assert composition.view().read(source=data) == track
            # of such a small track, its boxes are a third
            assert len(composition.made) <= 0.5 * len(track)
    assert composed >= least


@pytest.fixture(scope="module")
def track(tmp_path_factory):
    folder = tmp_path_factory.mktemp("composed")
    tracks, original = made_of(FIXTURES / "faststart.mp4", folder)
    assert record_of_track(tracks[0], original, lambda: None) is not None
    return tracks[0], original


def changed(rows, column, value):
    rows = rows.copy()
    rows[1, column] = value
    return rows


@pytest.mark.parametrize(
    "lie",
    [
        lambda rows: rows[:0],
        lambda rows: rows[::-1],
        lambda rows: np.concatenate((rows, rows[-1:])),
        lambda rows: changed(rows, 1, rows[1, 1] + 1),
        lambda rows: changed(rows, 0, rows[1, 0] - 1),
        lambda rows: changed(rows, 0, -1),
        lambda rows: changed(rows, 1, -1),
        lambda rows: changed(rows, 1, 1 << 62),
        lambda rows: changed(rows, 2, 0),
        lambda rows: changed(rows, 2, (1 << 63) - 1),
        lambda rows: rows.reshape(-1)[:-1],
        lambda rows: rows[:1],  # true, and not worth it
    ],
)
def test_a_track_of_which_lies_are_told_is_stored(lie, track, tmp_path):
    """Whoever broke the process that read a hostile file may tell anything."""
    one, original = track
    rows = np.fromfile(one.ranges_path, COPIED_RANGE.base).reshape(-1, 3)
    path = tmp_path / "ranges"
    np.ascontiguousarray(lie(rows)).tofile(path)
    assert record_of_track(replace(one, ranges_path=str(path)), original, lambda: None) is None
