"""Contact sheets of batches, and decoding on devices that this machine lacks."""

from __future__ import annotations

import base64
import io
import re
import struct
import sys
import threading
import warnings

import av
import numpy as np
import pytest
from PIL import Image

import fragdex.data
from decoding.filming import number_in, numbered
from fragdex.decoding import codec
from fragdex.decoding.codec import TrackCodec
from fragdex.frames import decoders, frame_reader
from fragdex.frames.pixels import Converter


@pytest.fixture(scope="module")
def film():
    return numbered(60, 30, keys=20, size=(512, 64))


def pictures_in(html):
    return [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("L"))
        for data in re.findall(r"base64,([^\"]+)", html)
    ]


@pytest.mark.parametrize("format", ["rgb", "gray", "rgb16", "yuv"])
def test_a_batch_is_shown_as_a_contact_sheet(film, format):
    batch = fragdex.Frames(film, format=format)[10:20]
    html = batch._repr_html_()
    assert [number_in(one) for one in pictures_in(html)] == list(range(10, 20))
    assert re.findall(r"<figcaption[^>]*>([^<]*)<", html)[1] == "11 · 0.367 s"
    sheet = np.asarray(Image.open(io.BytesIO(batch._repr_png_())).convert("L"))
    high, wide = pictures_in(html)[0].shape
    assert (high, wide) == (16, 128)
    assert sheet.shape == (2 * high + 4, 6 * (wide + 4) - 4)
    assert number_in(sheet[:high, :wide]) == 10
    assert number_in(sheet[high + 4 :, wide + 4 : 2 * wide + 4]) == 17
    assert repr(batch) == "<FrameBatch of 10 frames: 10, 11, 12, 13, 14, 15, 16, 17, …>"


def test_long_and_empty_batches(film):
    frames = fragdex.Frames(film)
    html = frames[:]._repr_html_()
    assert len(pictures_in(html)) == 48
    assert "and 12 more" in html
    assert "no frames" in frames[[]]._repr_html_()
    assert frames[[]]._repr_png_() is None


def test_without_pillow_there_is_no_sheet(film, monkeypatch):
    batch = fragdex.Frames(film)[:2]
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert batch._repr_html_() is None
    assert batch._repr_png_() is None


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "vaapi", "videotoolbox"])
def test_without_the_device_the_processor_decodes(film, device):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frames = fragdex.Frames(film, format="gray", device=device)
        batch = frames[[30, 4]]
    assert [number_in(frame[..., 0]) for frame in batch.data] == [30, 4]
    if frames.device is None:
        (one,) = caught
        assert one.category is RuntimeWarning
        assert f"not by {device}: " in str(one.message)
        assert re.search(r"this build of PyAV has no|device cannot be opened", str(one.message))
    else:  # a machine that has it
        assert (frames.device, caught) == (device, [])


def test_what_a_device_cannot_decode_the_processor_does_and_says_so_once(film, monkeypatch):
    """FFmpeg opens the decoder of a device, and finds out later that the device cannot do it."""
    opened = []

    def on_device(self, av, device):
        opened.append(device)
        return self._opened().streams[0].codec_context, ""

    monkeypatch.setattr(TrackCodec, "_on_device", on_device)
    for again in (1, 2):  # the next video may be one that it can decode
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frames = fragdex.Frames(film, format="gray", device="cuda", cache=0, threads=2)
            for _ in range(2):
                batch = frames[[50, 4, 30]]
                assert [number_in(one[..., 0]) for one in batch.data] == [50, 4, 30]
                assert frames.device is None
        assert again <= len(opened) <= 2 * again  # a thread may open its own before it is known
        assert [str(one.message) for one in caught] == [
            "track 1 is decoded by the processor, not by cuda: it has no decoder for this coding"
        ]


def test_videos_that_are_coded_alike_share_the_decoders_of_a_device(on_device):
    for count in (20, 30, 40):
        with fragdex.Frames(
            numbered(count, 30, keys=10), format="gray", device="cuda", threads=1
        ) as frames:
            numbers = [count - 1, 3]
            assert [number_in(one[..., 0]) for one in frames[numbers].data] == numbers
            assert frames.device == "cuda"
    assert decoders.pool_of("cuda").made == 1


def test_each_device_has_its_own_decoders_and_works_beside_the_others(film, on_device, monkeypatch):
    monkeypatch.setattr(decoders, "MOST_SIDE_BY_SIDE", 1)
    devices = ["cuda", "cuda:1", "vaapi:/dev/dri/renderD129"]
    pools = [decoders.pool_of(device) for device in devices]
    with pools[0].turns:  # the first one is busy
        for device in devices[1:]:
            frames = fragdex.Frames(film, format="gray", device=device, threads=1)
            assert number_in(frames[7].data[..., 0]) == 7
    assert [pool.made for pool in pools] == [0, 1, 1]


@pytest.fixture
def at_once(monkeypatch):
    """How many runs are decoded at a time, whenever one begins; the first two wait for each other.

    Two at most, if they are of a device.
    """
    monkeypatch.setattr(decoders, "MOST_SIDE_BY_SIDE", 2)
    both, working, counts = threading.Barrier(2), [], []
    decode_run = frame_reader.decode_run

    def counted(run, *given, **options):
        working.append(run)
        counts.append(len(working))
        if len(counts) <= 2:
            both.wait(30)
        try:
            return decode_run(run, *given, **options)
        finally:
            working.remove(run)

    monkeypatch.setattr(frame_reader, "decode_run", counted)
    return counts


def test_videos_of_a_batch_are_decoded_side_by_side_on_a_device(film, tmp_path, at_once, on_device):
    for name in "abc":
        (tmp_path / f"{name}.mp4").write_bytes(film)
    fragdex.data.write_set(tmp_path, tmp_path / "set.parquet")
    windows = fragdex.data.Windows(
        fragdex.data.VideoSet(tmp_path / "set.parquet"), frames=2, step=30, format="gray",
        device="cuda", threads=1, open_films=3,
    )  # fmt: skip
    batch = windows.batch([4, 1, 3, 0])
    assert [[number_in(one[..., 0]) for one in each] for each in batch["frames"]] == [
        [0, 1], [30, 31], [30, 31], [0, 1]
    ]  # fmt: skip
    assert batch["video"].tolist() == [2, 0, 1, 0]
    assert max(at_once) == 2


def test_groups_of_a_video_are_decoded_side_by_side_on_a_device(film, tmp_path, at_once, on_device):
    (tmp_path / "a.mp4").write_bytes(film)
    fragdex.data.write_set(tmp_path, tmp_path / "set.parquet")
    videos = fragdex.data.VideoSet(tmp_path / "set.parquet")
    windows = fragdex.data.Windows(videos, frames=2, step=20, format="gray", device="cuda")
    batch = windows.batch([2, 0, 1])
    assert [number_in(one[0, ..., 0]) for one in batch["frames"]] == [40, 0, 20]
    assert max(at_once) == 2


class Driver:
    """CUDA's driver as far as it says how many engines there are."""

    def __init__(self, engines):
        self.engines, self.current = engines, 0

    def cuInit(self, flags):
        return 0

    def cuDevicePrimaryCtxSetFlags_v2(self, number, flags):
        return 0

    def cuDevicePrimaryCtxRetain(self, context, number):
        return int(number > 0)

    def cuCtxPushCurrent_v2(self, context):
        self.current += 1
        return 0

    def cuCtxPopCurrent_v2(self, context):
        self.current -= 1
        return 0

    def cuvidGetDecoderCaps(self, caps):
        assert self.current == 1
        kind, chroma, deeper = struct.unpack_from("<3I", bytes(caps))
        assert (chroma, deeper) == (1, 0)
        # bIsSupported and nNumNVDECs, after the codec, chroma, depth and three reserved numbers
        struct.pack_into("<2B", caps, 24, kind in (4, 8), self.engines)
        return 0


@pytest.mark.parametrize(("engines", "decoders"), [(1, 2), (3, 6), (7, 14), (20, 16), (0, 4)])
def test_a_device_has_two_decoders_for_each_engine(film, monkeypatch, engines, decoders):
    driver = Driver(engines)
    monkeypatch.setattr(codec.ctypes, "CDLL", lambda name: driver)
    codec.engines_of.cache_clear()
    frames = fragdex.Frames(film)
    frames._opened.decoders.device = "cuda"
    frames._opened.decoders.stays = True
    assert frames._usual_threads() == decoders
    assert (codec.engines_of(0, "av1"), codec.engines_of(1, "h264"), driver.current) == (0, 0, 0)
    codec.engines_of.cache_clear()


def test_windows_of_a_set_are_decoded_on_a_device(film, tmp_path):
    (tmp_path / "a.mp4").write_bytes(film)
    fragdex.data.write_set(tmp_path, tmp_path / "set.parquet")
    videos = fragdex.data.VideoSet(tmp_path / "set.parquet")
    windows = fragdex.data.Windows(videos, frames=4, format="gray", device="videotoolbox")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sample = windows[3]
    assert [number_in(frame[..., 0]) for frame in sample["frames"]] == [12, 13, 14, 15]
    assert len(caught) == 1 or sys.platform == "darwin"
    with pytest.raises(ValueError, match="device is one of"):
        fragdex.data.Windows(videos, frames=4, device="gpu")[0]


def test_what_is_no_device(film):
    with pytest.raises(ValueError, match="device is one of cuda, vaapi, videotoolbox, not 'gpu'"):
        fragdex.Frames(film, device="gpu")


@pytest.mark.parametrize(("given", "deep"), [("nv12", False), ("p010le", True)])
def test_planes_that_hardware_gives_are_those_of_software(given, deep):
    noise = np.random.default_rng(3).integers(0, 255, (96, 64), np.uint8)
    plain = av.VideoFrame.from_ndarray(noise, "yuv420p")
    software = plain.reformat(format="yuv420p10le" if deep else "yuv420p")
    expected = [part.copy() for part in Converter("yuv").pixels(software)]
    planes = Converter("yuv").pixels(software.reformat(format=given))
    assert [part.dtype for part in planes] == [np.uint16 if deep else np.uint8] * 3
    assert all(map(np.array_equal, planes, expected))
