"""Films whose pictures say their own number, as blocks that a page can read from a canvas."""

from fractions import Fraction

import av
import numpy as np

RATE = 25
WIDTH, HEIGHT = 320, 180
BLOCKS = 10
BLOCK = WIDTH // BLOCKS
BAND = 60
"""The pictures' upper pixels hold the number, the highest bit on the left; then the same inverted,
so that a picture that is not a film's is never read as a number."""

TONES = (330, 1320)
"""Hertz of the first and of the second audio track."""

READ_NUMBER = """
() => {
  const video = document.querySelector("video");
  const canvas = new OffscreenCanvas(320, 180);
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.drawImage(video, 0, 0, 320, 180);
  let number = 0;
  for (let n = 0; n < 10; n++) {
    const x = n * 32 + 16;
    const [bit, other] = [30, 90].map((y) => pen.getImageData(x, y, 1, 1).data[1] > 127);
    if (bit === other) return `not readable at block ${n}`;
    number = number * 2 + bit;
  }
  return number;
}
"""


def picture_of(number):
    """The picture of this number, below 1024."""
    bits = [(number >> (BLOCKS - 1 - n)) & 1 for n in range(BLOCKS)]
    luma = np.full((HEIGHT, WIDTH), 96, np.uint8)
    luma[:BAND] = np.repeat(np.array(bits, np.uint8) * 200 + 28, BLOCK)
    luma[BAND : 2 * BAND] = 256 - luma[:BAND].astype(int)
    # something that moves, for people who look
    x = number * (WIDTH - 30) // (1 << BLOCKS)
    luma[2 * BAND + 15 : HEIGHT - 15, x : x + 30] = 220
    rgb = np.repeat(luma[:, :, None], 3, axis=2)
    rgb[2 * BAND :, :, 0] //= 2
    return av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")


def film(path, pictures, *, picture=True, sound=False, fragments=None):
    """H.264, coded in another order than shown, a key picture a second; perhaps with AAC.

    `sound`: languages of audio tracks, each of a tone of its own; True: one of no language.
    `fragments`: seconds of each, or "key" for one at each key picture.
    """
    flags = {"movflags": "+empty_moov+default_base_moof"} if fragments else {}
    if fragments == "key":
        flags["movflags"] += "+frag_keyframe"
    elif fragments:
        flags["frag_duration"] = str(round(float(fragments) * 1e6))
    with av.open(path, "w", format="mp4", options=flags) as out:
        video = _video(out) if picture else None
        languages = (None,) if sound is True else sound or ()
        audio = [_audio(out, language) for language in languages]
        sounded = 0
        for number in range(pictures):
            if video is not None:
                frame = picture_of(number)
                frame.pts, frame.time_base = number, Fraction(1, RATE)
                out.mux(video.encode(frame))
            while audio and sounded * RATE < (number + 1) * 48_000:
                for nth, stream in enumerate(audio):
                    out.mux(stream.encode(tone(sounded, TONES[nth])))
                sounded += 1024
        for stream in filter(None, (video, *audio)):
            out.mux(stream.encode(None))
    return path


def _video(out):
    video = out.add_stream("libx264", rate=RATE)
    video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
    video.options = {
        "preset": "veryfast", "bf": "2", "b_strategy": "0", "sc_threshold": "0",
        "g": str(RATE), "keyint_min": str(RATE), "crf": "20", "threads": "2",
        "x264-params": "open-gop=0",
    }  # fmt: skip
    return video


def _audio(out, language):
    stream = out.add_stream("aac", rate=48_000, layout="stereo")
    if language:
        stream.metadata["language"] = language
    return stream


def tone(start, hertz=TONES[0]):
    """1024 samples of a sine."""
    at = np.arange(start, start + 1024) / 48_000
    wave = (0.2 * np.sin(2 * np.pi * hertz * at)).astype(np.float32)
    frame = av.AudioFrame.from_ndarray(np.stack([wave, wave]), "fltp", "stereo")
    frame.sample_rate, frame.pts = 48_000, start
    return frame
