"""Pictures and sound to look at: thumbnails, storyboards, waveforms, in processor time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import av
import numpy as np
import peers
from clock import Contender
from rows import Row, Setting, Want, median, ratio, run

import fragdex

WIDTH = 320
HD = (1920, 1080)
SECONDS, EVERY = 600, 10
RATE = 48_000
THUMBNAIL, STORYBOARD, PEAKS = (
    "fragdex.decoding.thumbnail",
    "fragdex.decoding.storyboard",
    "fragdex.decoding.peaks",
)
KEYS = "PyAV, skip_frame nokey"
DECODING = "PyAV, decoding alone"


def _processor(name: str, work: Callable[[], object], note: str = "") -> Contender:
    def once() -> Mapping[str, int]:
        began = time.process_time_ns()
        work()
        return {name: time.process_time_ns() - began}

    return Contender(name, once, note=note)


def thumbnail(setting: Setting) -> Row:
    """One key frame of 1920 × 1080 to a JPEG of 320 pixels."""
    path = peers.BUILD / "hd.mp4"
    peers.BUILD.mkdir(exist_ok=True)
    if not path.exists():
        _hd(str(path))
    index = fragdex.index(str(path))
    f = run(
        [
            _processor(
                THUMBNAIL, lambda: fragdex.decoding.thumbnail(index, str(path), 5, width=WIDTH)
            )
        ],
        setting.rounds,
    )
    ours = median(f, THUMBNAIL)
    return Row(
        "thumbnail",
        "a JPEG of 320 pixels of a key frame of 1920 × 1080, processor time",
        f,
        [Want("≤ 15 ms", ours and ours / 1e6, 15, at_most=True, unit="ms")],
    )


def storyboard(setting: Setting) -> Row:
    """A picture each ten seconds of two hours, on sheets."""
    path = str(setting.files["progressive"][0])
    index = fragdex.index(path)

    def ours() -> None:
        with fragdex.decoding.storyboard(index, path, every=EVERY, width=160) as board:
            for _ in board.sheets():
                pass

    f = run([_processor(STORYBOARD, ours), _processor(KEYS, lambda: _key_frames(path))], 3)
    return Row(
        "storyboard",
        "720 pictures of 2 h on sheets, processor time",
        f,
        [
            Want(
                "≤ 1.1 × PyAV that decodes key frames alone and makes the same sheets",
                ratio(median(f, STORYBOARD), median(f, KEYS)),
                1.1,
                at_most=True,
            )
        ],
    )


def peaks(setting: Setting) -> Row:
    """The waveform of ten minutes of AAC, stereo, 48 kHz."""
    path = peers.BUILD / "stereo.m4a"
    peers.BUILD.mkdir(exist_ok=True)
    if not path.exists():
        _stereo(str(path))
    index = fragdex.index(str(path))

    def decode() -> None:
        with av.open(str(path)) as container:
            container.streams[0].codec_context.thread_count = 1
            for _ in container.decode(audio=0):
                pass

    f = run(
        [
            _processor(PEAKS, lambda: fragdex.decoding.peaks(index, str(path))),
            _processor(
                PEAKS + ", six zooms",
                lambda: fragdex.decoding.peaks(
                    index, str(path), samples_per_pixel=[256, 512, 1024, 2048, 4096, 8192]
                ),
            ),
            _processor(DECODING, decode, note="no sample is looked at"),
        ],
        setting.slow,
    )
    return Row(
        "peaks",
        "the waveform of 10 min of AAC, stereo, processor time",
        f,
        [
            Want(
                "≤ 1.1 × PyAV decoding alone",
                ratio(median(f, PEAKS), median(f, DECODING)),
                1.1,
                at_most=True,
            )
        ],
    )


def _key_frames(path: str) -> None:
    """Sheets as ours, by the usual way: the demuxer passes every packet, key frames are decoded."""
    from fragdex.decoding.picture_files import encoded

    sheet, filled, due = np.zeros((900, 1600, 3), np.uint8), 0, 0.0
    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.codec_context.skip_frame = "NONKEY"
        stream.codec_context.thread_count = 1
        for frame in container.decode(stream):
            if frame.time is None or frame.time < due:
                continue
            due += EVERY
            tile = frame.to_ndarray(width=160, height=90, format="rgb24", interpolation="BICUBIC")
            top, left = filled // 10 * 90, filled % 10 * 160
            sheet[top : top + 90, left : left + 160] = tile
            filled += 1
            if filled == 100:
                encoded(sheet, "jpeg", 75)
                filled = 0
    if filled:
        encoded(sheet, "jpeg", 75)


def _hd(path: str) -> None:
    wide, high = HD
    with av.open(path, "w") as out:
        stream = out.add_stream("libx264", rate=25, options={"preset": "veryfast", "g": "50"})
        stream.width, stream.height, stream.pix_fmt = wide, high, "yuv420p"
        blocks = np.random.default_rng(0).integers(0, 255, (high // 8, wide // 8), np.uint8)
        luma = blocks.repeat(8, 0).repeat(8, 1)
        for number in range(250):
            planes = np.full((high * 3 // 2, wide), 128, np.uint8)
            planes[:high] = np.roll(luma, number * 3, 1)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(planes, "yuv420p")))
        out.mux(stream.encode())


def _stereo(path: str) -> None:
    random, clock = np.random.default_rng(1), np.arange(RATE) / RATE
    with av.open(path, "w", format="mp4") as out:
        stream = out.add_stream("aac", rate=RATE)
        stream.layout = "stereo"
        for second in range(SECONDS):
            pitches = np.array([[200 + second], [300 + 2 * second]])
            wave = np.sin(2 * np.pi * pitches * clock) / 2 + random.normal(0, 0.05, (2, RATE))
            frame = av.AudioFrame.from_ndarray(wave.astype(np.float32), "fltp", "stereo")
            frame.sample_rate, frame.pts = RATE, second * RATE
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
