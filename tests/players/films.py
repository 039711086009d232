"""Short films whose pictures say their own number, in the codecs and with the times that matter.

A program of its own: an encoder changes how the process that it runs in is scheduled.
"""

import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

import fragdex
from service.console.films import HEIGHT, RATE, WIDTH, picture_of, tone

PICTURES = 60
"""2.4 s at 25 pictures a second, a key picture each 0.8 s."""
GROUP = 20

X264 = {
    "preset": "veryfast", "bf": "2", "b_strategy": "0", "sc_threshold": "0", "crf": "24",
    "g": str(GROUP), "keyint_min": str(GROUP), "threads": "1",
}  # fmt: skip
CODECS = {
    "libx264": X264 | {"x264-params": "open-gop=0"},
    "libx265": {
        "preset": "ultrafast",
        "x265-params": f"keyint={GROUP}:min-keyint={GROUP}:open-gop=0:log-level=none:pools=1",
    },
    "libsvtav1": {"preset": "10", "g": str(GROUP), "svtav1-params": "lp=1"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "g": str(GROUP), "threads": "1"},
}


def written(
    path,
    video="libx264",
    audio="aac",
    *,
    late=0,
    sound_late=0,
    sound=None,
    languages=(None,),
    times=lambda number: number,
    options=None,
    container=None,
    count=PICTURES,
):
    """Write a film.

    `late`, `sound_late`: seconds before the first picture, before the first sound; `sound`: seconds
    of it; `times`: at which 25th of a second each picture is shown, from `late` on; `count`: how
    many pictures.
    """
    with av.open(path, "w", format="mp4", options=container or {}) as out:
        if video:
            pictures = out.add_stream(video, rate=RATE)
            pictures.width, pictures.height, pictures.pix_fmt = WIDTH, HEIGHT, "yuv420p"
            pictures.options = CODECS[video] | (options or {})
            pictures.codec_context.gop_size = GROUP
        sounds = [_sound(out, audio, language) for language in languages if audio]
        packets = []
        for number in range(count if video else 0):
            frame = picture_of(number)
            frame.pts = round(late * RATE) + times(number)
            frame.time_base = Fraction(1, RATE)
            packets += pictures.encode(frame)
        if video:
            packets += pictures.encode(None)
        long = Fraction(count, RATE) + late if sound is None else Fraction(sound)
        for stream in sounds:
            for start in range(0, round((long - sound_late) * 48_000), 1024):
                frame = tone(start)
                if audio == "flac":
                    frame = _whole(frame)
                frame.pts += round(sound_late * 48_000)
                packets += stream.encode(frame)
            packets += stream.encode(None)
        for packet in packets:
            out.mux(packet)
    return path


def _sound(out, codec, language):
    stream = out.add_stream(codec, rate=48_000, layout="stereo")
    if codec == "flac":
        stream.format = "s16"
    if language:
        stream.metadata["language"] = language
    return stream


def _whole(frame):
    """The same sound as 16-bit integers, its channels interleaved."""
    data = np.clip(frame.to_ndarray() * 32767, -32768, 32767).astype(np.int16).T.reshape(1, -1)
    whole = av.AudioFrame.from_ndarray(np.ascontiguousarray(data), "s16", "stereo")
    whole.sample_rate, whole.pts = frame.sample_rate, frame.pts
    return whole


def uneven(number):
    """Pictures at 25 a second, then fewer and fewer: the times of a variable frame rate."""
    return number + number * number // 200


def trimmed(path, start=Fraction(1, 2)):
    """A copy that begins within a group of pictures, in the middle of one: the edit list hides."""
    written(path)
    index = fragdex.index(path, exact=True)
    path.write_bytes(fragdex.clip(index, start=start).read())


FRAGMENTED = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}
MADE = {
    "avc-aac": written,
    "avc-open-gop": lambda path: written(path, options={"x264-params": "open-gop=1"}),
    "avc-alone": lambda path: written(path, audio=None, options={"bf": "0"}),
    "hevc-aac": lambda path: written(path, "libx265"),
    "av1-opus": lambda path: written(path, "libsvtav1", "libopus", container=FRAGMENTED),
    "vp9-flac": lambda path: written(path, "libvpx-vp9", "flac"),
    "variable": lambda path: written(path, audio="libopus", times=uneven, sound=3.1),
    "picture-late": lambda path: written(path, late=Fraction(2, 5)),
    "sound-late": lambda path: written(path, sound_late=Fraction(436, 1000)),
    "sound-long": lambda path: written(path, sound=Fraction(33, 10)),
    "languages": lambda path: written(path, languages=("deu", "fra")),
    "trimmed": trimmed,
    "sound-alone": lambda path: written(path, None),
}
KID, KEY = "0123456789abcdef0123456789abcdef", "00112233445566778899aabbccddeeff"
PROTECTED = {
    "encryption_scheme": "cenc-aes-ctr", "encryption_kid": KID, "encryption_key": KEY,
}  # fmt: skip
PLAYED_ONLY = {"avc-open-gop"}
"""Films in which Chromium's decoder fails when it begins in the middle, in one file as well."""

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, make in MADE.items():
        make(folder / f"{name}.mp4")
    written(folder / "protected.mp4", container=PROTECTED)
    (folder / "written").mkdir()
    written(folder / "written" / "fragmented.mp4", container=FRAGMENTED, count=2 * PICTURES)
