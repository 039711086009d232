"""A film as a zarr array, read by zarr, xarray and dask themselves."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import fragdex
from fragdex.bridges.references import references
from fragdex.errors import SourceChanged
from fragdex.testing import RangeServer

WHY = "it is tried beside zarr, xarray and dask by ./dev bridges"
zarr = pytest.importorskip("zarr", "3.0", reason=WHY)
xarray = pytest.importorskip("xarray", reason=WHY)
dask_array = pytest.importorskip("dask.array", reason=WHY)
pytest.importorskip("aiohttp", reason=WHY)

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILMS = ["open-gop.mp4", "frag-hvc1.mp4", "frag-start-7s.mp4", "av1-opus.mp4", "frag-vp9-opus.mp4"]


def opened(refs, protocol="http"):
    options = {"fo": refs, "remote_protocol": protocol, "remote_options": {"asynchronous": True}}
    return xarray.open_zarr("reference://", storage_options=options, consolidated=False)


@pytest.mark.parametrize("name", FILMS)
def test_xarray_opens_a_film_by_references(name):
    film = (FIXTURES / name).read_bytes()
    expected = np.asarray(fragdex.Frames(film))
    with RangeServer(film) as server:
        refs = references(server.url, server.url)
        data = opened(refs)
        assert data.frames.dims == ("time", "y", "x", "channel")
        assert data.frames.shape == expected.shape
        assert (data.frames.values == expected).all()
        assert (data.frames[7, ::5, :, 1].values == expected[7, ::5, :, 1]).all()
        times = fragdex.Frames(film).times
        assert (data.time.values == times).all()
        at = float(times[20]) + 0.01
        assert (data.frames.sel(time=at, method="pad").values == expected[20]).all()


def test_a_frame_costs_one_request_and_the_bytes_of_its_group():
    film = (FIXTURES / "open-gop.mp4").read_bytes()
    frames = fragdex.Frames(film)
    samples, sync = frames.track.samples, frames.key_frames
    with RangeServer(film) as server:
        data = opened(references(film, server.url))
        chosen = np.random.default_rng(1).integers(0, 48, 20)
        wanted = 0
        server.requests.clear()
        for number in chosen.tolist():
            assert (data.frames[number].values == frames[number].data).all()
            group = int(np.searchsorted(sync, number, side="right")) - 1
            window = frames.index.window("video", int(sync[group]), int(sync[group + 1]))
            wanted += window.ranges[-1].stop - window.ranges[0].start
        asked = [one for one in server.requests if one.range]
        assert len(server.requests) <= 1.1 * len(chosen)
        assert sum(_size(one.range) for one in asked) <= 1.05 * wanted
    assert len(samples) == 50


def _size(header):
    first, last = header.removeprefix("bytes=").split("-")
    return int(last) + 1 - int(first)


@pytest.mark.parametrize("digests", [False, True])
def test_bytes_of_another_film_are_refused(digests):
    film = (FIXTURES / "open-gop.mp4").read_bytes()
    with RangeServer(film) as server:
        data = opened(references(film, server.url, digests=digests))
        server.content = bytes(len(film))
        with pytest.raises(SourceChanged):
            data.frames[3].compute()
        server.content = film[1:] + b"\0"
        with pytest.raises(SourceChanged):
            data.frames[3].compute()


def test_a_changed_pixel_is_refused_by_its_digest():
    film = bytearray((FIXTURES / "open-gop.mp4").read_bytes())
    with RangeServer(bytes(film)) as server:
        refs = references(bytes(film), server.url, digests=True)
        _, offset, length = refs["refs"]["frames/c/1/0/0/0"]
        film[offset + length - 1] ^= 1
        server.content = bytes(film)
        data = opened(refs)
        assert data.frames[3].values.any()
        with pytest.raises(SourceChanged, match="not those that were indexed"):
            data.frames[15].compute()


def test_settings_of_a_stranger_open_nothing_else():
    film = (FIXTURES / "open-gop.mp4").read_bytes()
    with RangeServer(film) as server:
        refs = references(film, server.url)
        array = json.loads(refs["refs"]["frames/zarr.json"])
        settings = array["codecs"][0]["configuration"]
        for name, wrong in (("index", "AAAA"), ("lengths", []), ("frames", 0), ("more", 1)):
            broken = copy.deepcopy(refs)
            array["codecs"][0]["configuration"] = {**settings, name: wrong}
            broken["refs"]["frames/zarr.json"] = json.dumps(array)
            with pytest.raises(fragdex.FragdexError):
                opened(broken).frames[3].compute()


def test_frames_are_an_array_of_dask():
    frames = fragdex.Frames(FIXTURES / "open-gop.mp4")
    expected = np.asarray(frames)
    film = dask_array.from_array(frames, chunks=frames.chunks)
    assert film.chunks == frames.chunks
    assert (film[5:40:3, ::2].compute() == expected[5:40:3, ::2]).all()
    by_time = xarray.DataArray(film, dims=("time", "y", "x", "channel")).assign_coords(
        time=frames.times
    )
    assert (by_time.sel(time=slice(0.5, 0.7)).values == expected[13:18]).all()
