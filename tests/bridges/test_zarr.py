"""A film as a zarr array, read by zarr, xarray and dask themselves."""

from __future__ import annotations

import copy
import io
import json
import threading
from pathlib import Path

import numpy as np
import pytest

import fragdex
from fragdex.bridges.references import references, sound_references
from fragdex.errors import SourceChanged
from fragdex.media import audio
from fragdex.testing import RangeServer

WHY = "it is tried beside zarr, xarray and dask by ./dev bridges"
zarr = pytest.importorskip("zarr", "3.0", reason=WHY)
xarray = pytest.importorskip("xarray", reason=WHY)
dask_array = pytest.importorskip("dask.array", reason=WHY)
av = pytest.importorskip("av")
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


class Bucket:
    """A bucket that counts what is read of it, after it is `counting`."""

    def __init__(self, name, film):
        boto3 = pytest.importorskip("boto3", reason=WHY)
        moto = pytest.importorskip("moto.server", reason=WHY)
        serving = pytest.importorskip("werkzeug.serving", reason=WHY)
        self._app = moto.DomainDispatcherApplication(moto.create_backend_app)
        self.requests = self.bytes = 0
        self._server = serving.make_server("127.0.0.1", 0, self, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        client = boto3.client("s3", endpoint_url=self.url, region_name="us-east-1")
        client.create_bucket(Bucket=name)
        client.put_object(Bucket=name, Key="film.mp4", Body=film)

    def __call__(self, environ, start):
        self.requests += 1
        for part in self._app(environ, start):
            self.bytes += len(part)
            yield part

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def film_of(count, group):
    """A film whose pictures differ."""
    buffer = io.BytesIO()
    noise = np.random.default_rng(7).integers(0, 255, (48, 64, 3), np.uint8)
    with av.open(buffer, "w", format="mp4") as container:
        options = {"preset": "ultrafast", "x264-params": f"keyint={group}:scenecut=0:bframes=2"}
        stream = container.add_stream("libx264", 25, options=options)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(count):
            frame = av.VideoFrame.from_ndarray(np.roll(noise, number, axis=1))
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return buffer.getvalue()


def test_random_frames_of_a_bucket_cost_their_groups(monkeypatch):
    registered = pytest.importorskip("obstore.fsspec", reason=WHY).register
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    film = film_of(480, 24)
    bucket = Bucket("films", film)
    try:
        for name, value in (
            ("AWS_ENDPOINT", bucket.url), ("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "us-east-1"),
        ):  # fmt: skip
            monkeypatch.setenv(name, value)
        registered("s3", asynchronous=True)
        refs = references("s3://films/film.mp4", "s3://films/film.mp4")
        data = opened(refs, "s3")
        with fragdex.Frames(film) as frames:
            groups = np.add.reduceat(
                frames.track.samples.size, np.flatnonzero(frames.track.samples.sync)
            )
            chosen = np.random.default_rng(5).integers(0, 480, 100)
            expected = frames[chosen.tolist()].data
        bucket.requests = bucket.bytes = 0
        pictures = np.stack([data.frames[number].values for number in chosen.tolist()])
        assert (pictures == expected).all()
        assert bucket.requests <= 1.1 * len(chosen)
        assert bucket.bytes <= 1.05 * groups[chosen // 24].sum()
    finally:
        bucket.close()


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


def test_xarray_opens_the_sound_of_a_film():
    film = (FIXTURES / "audio-late.mp4").read_bytes()
    with RangeServer(film) as server:
        data = opened(sound_references(film, server.url, seconds=0.25))
        assert data.sound.dims == ("time", "channel")
        rate = data.sound.attrs["rate"]
        expected = audio(film, 0, data.sound.shape[0] / rate, rate=rate)
        assert (data.sound.values[:, 0] == expected).all()
        assert expected.any()
        server.requests.clear()
        assert (data.sound[9000:9100, 0].values == expected[9000:9100]).all()
        assert len(server.requests) == 1
        server.content = film[1:] + b"\0"
        with pytest.raises(SourceChanged):
            data.sound[9000].compute()


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


def test_napari_shows_frames():
    components = pytest.importorskip("napari.components", reason=WHY)
    frames = fragdex.Frames(FIXTURES / "open-gop.mp4")
    viewer = components.ViewerModel()
    layer = viewer.add_image(frames, rgb=True)
    assert layer.ndim == 3  # time, y, x
    for number in (7, 31):
        viewer.dims.set_point(0, number)
        assert (layer.get_value((number, 5, 9)) == frames[number].data[5, 9]).all()
