"""`fragdex compare`: which frames and samples of two films differ."""

import json

import av
import numpy as np
import pytest
from PIL import Image

RATE = 48_000


def film(path, frames, sound=None, fps=10):
    """A film without loss: FFV1 and PCM in Matroska."""
    with av.open(str(path), "w") as container:
        video = container.add_stream("ffv1", rate=fps)
        video.height, video.width = frames[0].shape[:2]
        video.pix_fmt = "bgra" if frames[0].shape[2] == 4 else "bgr0"
        audio = (
            None if sound is None else container.add_stream("pcm_s16le", rate=RATE, layout="mono")
        )
        for frame in frames:
            name = "rgba" if frame.shape[2] == 4 else "rgb24"
            container.mux(video.encode(av.VideoFrame.from_ndarray(frame, name)))
        container.mux(video.encode(None))
        if audio is not None:
            samples = av.AudioFrame.from_ndarray(sound.reshape(1, -1), "s16", "mono")
            samples.sample_rate = RATE
            container.mux(audio.encode(samples))
            container.mux(audio.encode(None))


@pytest.fixture
def frames():
    return [np.random.default_rng(n).integers(0, 200, (45, 60, 3), np.uint8) for n in range(5)]


@pytest.fixture
def sound():
    return np.arange(RATE // 2, dtype=np.int16)


def compared(call, *arguments):
    ran = call("compare", *arguments, "--json")
    assert ran.err == ""
    return json.loads(ran.out) | {"code": ran.code}


def test_the_same_is_equal(call, tmp_path, frames, sound):
    film(tmp_path / "a.mkv", frames, sound)
    film(tmp_path / "b.mkv", frames, sound)
    out = compared(call, "a.mkv", "b.mkv", "-o", "worst.png")
    assert (out["code"], out["equal"], out["frames"], out["differing"]) == (0, True, [5, 5], 0)
    assert out["sound"]["samples"] == [RATE // 2] * 2
    assert not (tmp_path / "worst.png").exists()
    assert call("compare", "a.mkv", "b.mkv").lines[-1] == "equal"


def test_what_differs_is_said_with_its_place(call, tmp_path, frames, sound):
    film(tmp_path / "a.mkv", frames, sound)
    changed = [frame.copy() for frame in frames]
    changed[2][10:13, 20:30, 1] += 40
    changed[4][0, 0] += 2
    film(tmp_path / "b.mkv", changed, np.concatenate([sound[:240], sound[240:] + 1]))
    answer = compared(call, "a.mkv", "b.mkv", "-o", "worst.png")
    assert (answer["code"], answer["differing"], answer["mistimed"]) == (1, 2, 0)
    two, four = answer["told"]
    assert (two["frame"], two["seconds"], two["box"], two["largest"]) == (
        2,
        0.2,
        [20, 10, 10, 3],
        40,
    )
    # mean of the squares: 30 of 45 · 60 · 3 values are 40 off
    mse = 30 * 40**2 / (45 * 60 * 3)
    assert two["psnr"] == pytest.approx(10 * np.log10(255**2 / mse), abs=0.001)
    assert 0.9 < two["ssim"] < 1
    assert four["box"] == [0, 0, 1, 1]
    assert answer["worst"] == two
    assert answer["sound"]["differing"] == len(sound) - 240
    assert answer["sound"]["first"] == 240 / RATE
    assert answer["sound"]["largest"] == pytest.approx(1 / 32768)
    with Image.open(tmp_path / "worst.png") as picture:
        shown = np.asarray(picture)
    assert shown.shape == (45, 180, 3)
    assert (shown[:, :60] == frames[2]).all()
    assert (shown[:, 60:120] == changed[2]).all()
    assert shown[:, 120:].sum() == 30 * 160
    ran = call("compare", "a.mkv", "b.mkv")
    assert "frame 2 (0.200 s): PSNR " in ran.out
    assert "10×3 pixels at 20,10" in ran.out
    assert "23,760 of 24,000 samples differ, the first at 0.005000 s" in ran.out
    near = compared(call, "a.mkv", "b.mkv", "--tolerance", "2")
    assert [one["frame"] for one in near["told"]] == [2]
    assert near["sound"]["differing"] == 0
    assert compared(call, "a.mkv", "b.mkv", "--tolerance", "40")["code"] == 0


def test_films_of_other_lengths_sizes_times_and_sounds_differ(call, tmp_path, frames, sound):
    film(tmp_path / "a.mkv", frames, sound)
    film(tmp_path / "short.mkv", frames[:3], sound[:100])
    film(tmp_path / "small.mkv", [frame[:40] for frame in frames], sound)
    film(tmp_path / "slow.mkv", frames, sound, fps=5)
    film(tmp_path / "mute.mkv", frames)
    short = compared(call, "a.mkv", "short.mkv")
    assert (short["code"], short["frames"], short["differing"]) == (1, [5, 3], 2)
    assert short["sound"]["first"] == 100 / RATE
    small = compared(call, "a.mkv", "small.mkv")
    assert (small["code"], small["differing"], small["sizes"]) == (1, 5, [[60, 45], [60, 40]])
    slow = compared(call, "a.mkv", "slow.mkv")
    assert (slow["code"], slow["differing"], slow["mistimed"]) == (1, 0, 4)
    mute = compared(call, "a.mkv", "mute.mkv")
    assert (mute["code"], mute["sound"]["samples"]) == (1, [RATE // 2, None])
    assert "only one has any" in call("compare", "a.mkv", "mute.mkv").out
    assert "other sizes: 60×45 and 60×40" in call("compare", "a.mkv", "small.mkv").out


def test_what_is_transparent_counts(call, tmp_path, frames):
    clear = [np.dstack([frame, np.full((45, 60), 255, np.uint8)]) for frame in frames]
    film(tmp_path / "a.mkv", clear)
    clear[1] = clear[1].copy()
    clear[1][5, 7, 3] = 0
    film(tmp_path / "b.mkv", clear)
    answer = compared(call, "a.mkv", "b.mkv", "-o", "worst.png")
    assert (answer["differing"], answer["worst"]["box"]) == (1, [7, 5, 1, 1])
    with Image.open(tmp_path / "worst.png") as picture:
        assert picture.getpixel((120 + 7, 5)) == (255, 255, 255, 255)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.png", "missing.png"], "missing.png"),
        (["a.png", "text.txt"], "text.txt cannot be decoded"),
        (["a.srt", "a.srt"], "neither a.srt nor a.srt has pictures or sound"),
        (["a.png", "a.png", "-o", "worst.jpeg"], "ends in .png is expected"),
        (["a.png", "a.png", "-o", "no/worst.png"], "no such folder"),
        (["http://127.0.0.1:9/a.mp4", "a.png"], "http://127.0.0.1:9/a.mp4"),
    ],
)
def test_bad_input_is_said_in_one_line(call, tmp_path, frames, arguments, message):
    Image.fromarray(frames[0]).save(tmp_path / "a.png")
    (tmp_path / "text.txt").write_text("no film")
    (tmp_path / "a.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nHi\n")
    ran = call("compare", *arguments)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert message in ran.err


def test_stills_are_compared(call, tmp_path, frames):
    Image.fromarray(frames[0]).save(tmp_path / "a.png")
    Image.fromarray(frames[0]).save(tmp_path / "b.webp", lossless=True)
    assert call("compare", "a.png", "b.webp").code == 0
