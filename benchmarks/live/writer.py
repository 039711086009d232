"""Write a fragmented MP4 in real time: python writer.py FILE SECONDS GROUP FRAGMENT.

Each picture says its own number; FILE.log says when each was given to the encoder, as `number time`
with seconds since 1970. GROUP is seconds from key frame to key frame, FRAGMENT those of a fragment
(0: one at each key frame).
"""

from __future__ import annotations

import sys
import time
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

import av  # noqa: E402

from service.console.films import HEIGHT, RATE, WIDTH, picture_of, tone  # noqa: E402

NUMBERS = 1024
"""Pictures with numbers of their own; then they begin again."""


def write(path: Path, seconds: float, group: float, fragment: float) -> None:
    """Write pictures and sound, each when its time has come."""
    options = {"movflags": "+empty_moov+default_base_moof", "flush_packets": "1"}
    if fragment:
        options["frag_duration"] = str(round(fragment * 1e6))
    else:
        options["movflags"] += "+frag_keyframe"
    every = str(round(group * RATE))
    with av.open(path, "w", format="mp4", options=options) as out, open(f"{path}.log", "w") as log:
        video = out.add_stream("libx264", rate=RATE)
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        video.options = {
            "preset": "ultrafast", "tune": "zerolatency", "sc_threshold": "0", "threads": "1",
            "g": every, "keyint_min": every,
        }  # fmt: skip
        audio = out.add_stream("aac", rate=48_000, layout="stereo")
        began, sounded = time.time(), 0
        for number in range(round(seconds * RATE)):
            frame = picture_of(number % NUMBERS)
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            time.sleep(max(0.0, began + number / RATE - time.time()))
            log.write(f"{number % NUMBERS} {time.time():.4f}\n")
            log.flush()
            out.mux(video.encode(frame))
            while sounded * RATE < number * 48_000:
                out.mux(audio.encode(tone(sounded)))
                sounded += 1024
        for stream in (video, audio):
            out.mux(stream.encode(None))


if __name__ == "__main__":
    write(Path(sys.argv[1]), *map(float, sys.argv[2:5]))
