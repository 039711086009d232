"""Slices → one film: packets are copied, the sound is encoded once for the whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from fragdex.errors import BrowserGone
from fragdex.rendering.animations import animate
from fragdex.rendering.films import Film
from fragdex.rendering.messages import Joined
from fragdex.rendering.packets import packets_of
from fragdex.rendering.plan import KEY_SECONDS, View
from fragdex.rendering.sequences import archive

if TYPE_CHECKING:
    import numpy as np

__all__ = ["SAMPLE_RATE", "join", "join_sound"]

SAMPLE_RATE: Final = 48_000
AUDIO_BITS: Final = 192_000
"""Bits a second of the sound where nobody asks for others."""
_PLANAR, _WHOLE = ("aac", "libmp3lame"), ("flac", "pcm_s16le")

# One moof a group of pictures, in which every base is the moof itself, and a sidx before the
# first, by which players seek and know the duration. The moov waits for the first packets, and so
# has the edit list that hides the encoder's priming.
_FRAGMENTED: Final = "frag_keyframe+delay_moov+default_base_moof+global_sidx+skip_trailer"
_FORMATS: Final = {"mkv": "matroska", "m4a": "ipod"}
# What Apple's players take HEVC for.
_TAGS: Final = {"hevc": "hvc1"}


def join(
    slices: Sequence[Callable[[], BinaryIO]],
    view: View,
    out: Path,
    sound: Iterable[np.ndarray[Any, Any]] | None = None,
    progress: Callable[[int], None] = lambda _: None,
    film: Film = Film(),  # noqa: B008 — frozen
    first: int = 0,
) -> Joined:
    """Write slices one behind the other; the same slices give the same bytes.

    Args:
        slices: each opens a file of `Encoding`; in order.
        view: theirs.
        out: where to.
        sound: float32, n × 2, 48 kHz, in pieces of any length; None: no sound track.
        progress: told how many frames are written.
        film: how it is stored.
        first: the number of the first frame.

    Raises:
        BrowserGone: slices that do not belong together; they have to be made again.
    """
    if film.container == "zip":
        frames = archive(slices, out, film, first, progress)
        return Joined(str(out), frames, float(frames / view.fps), False)
    if film.is_animation:
        frames = animate(slices, view, out, film, progress)
        return Joined(str(out), frames, float(frames / view.fps), False)
    container = _opened(out, film)
    stream: Any = None
    slice_stream: Any = None
    own = b""
    track: _Sound | None = None
    frames = 0
    for packet, source in packets_of(slices):
        if source is not slice_stream:
            slice_stream = source
            parameters = bytes(source.codec_context.extradata or b"")
            if stream is None:
                own = parameters
                stream = _stream(container, source, view, film)
                track = None if sound is None else _Sound(container, sound, film)
            elif parameters != own:
                raise BrowserGone("slices of different encoders cannot be joined")
        if track is not None:
            track.until(frames / view.fps)
        packet.pts = packet.dts = frames
        packet.duration, packet.time_base, packet.stream = 1, 1 / view.fps, stream
        container.mux_one(packet)
        frames += 1
        progress(frames)
    if stream is None:
        raise ValueError("no slices to join")
    if track is not None:
        track.until(None)
    container.close()
    return Joined(str(out), frames, float(frames / view.fps), track is not None)


def join_sound(
    out: Path,
    sound: Iterable[np.ndarray[Any, Any]],
    film: Film,
) -> None:
    """Write a sound alone; arguments are those of `join`."""
    container = _opened(out, film)
    _Sound(container, sound, film).until(None)
    container.close()


def _opened(out: Path, film: Film) -> Any:
    import av

    options = {"fflags": "+bitexact"}
    if film.fragmented:
        options |= {
            "movflags": _FRAGMENTED,
            "avoid_negative_ts": "disabled",
            # a little under the key frames' distance, which need not be whole in the track's ticks
            "min_frag_duration": str(round(KEY_SECONDS * 900_000)),
        }
    elif film.container in ("mp4", "mov", "m4a"):
        options["movflags"] = "+faststart"
    format = _FORMATS.get(film.container, film.container)
    return av.open(str(out), "w", format=format, options=options)


def _stream(container: Any, source: Any, view: View, film: Film) -> Any:
    """The track of the pictures."""
    stream = container.add_stream_from_template(source, opaque=True)
    stream.id = 1
    stream.time_base = 1 / view.fps
    if film.container in ("mp4", "mov") and film.video_name in _TAGS:
        stream.codec_context.codec_tag = _TAGS[film.video_name]
    return stream


class _Sound:
    """The sound track, encoded as far as the pictures are."""

    def __init__(self, container: Any, pieces: Iterable[np.ndarray[Any, Any]], film: Film) -> None:
        self._container = container
        encoder = film.sound_codec
        self._stream = container.add_stream(encoder, rate=SAMPLE_RATE, layout="stereo")
        self._stream.id = 2
        context = self._stream.codec_context
        context.bit_rate = film.audio_bit_rate or AUDIO_BITS
        # as they are mixed, or as the encoder has them
        self._format = "fltp" if encoder in _PLANAR else "s16" if encoder in _WHOLE else "flt"
        context.format = self._format
        self._packets = self._encoded(pieces)
        self._waiting: deque[Any] = deque()

    def until(self, time: Fraction | None) -> None:
        """Write what begins at a time (seconds) or before; None: the rest."""
        while True:
            if not self._waiting:
                packet = next(self._packets, None)
                if packet is None:
                    return
                self._waiting.append(packet)
            packet = self._waiting[0]
            if time is not None and packet.dts * Fraction(packet.time_base) > time:
                return
            packet.stream = self._stream
            self._container.mux_one(self._waiting.popleft())

    def _encoded(self, pieces: Iterable[np.ndarray[Any, Any]]) -> Iterator[Any]:
        import av

        done = 0
        for block in _blocks(pieces, self._stream.codec_context.frame_size or 1024):
            frame = av.AudioFrame.from_ndarray(
                _samples(block, self._format), format=self._format, layout="stereo"
            )
            frame.sample_rate = SAMPLE_RATE
            frame.pts, frame.time_base = done, Fraction(1, SAMPLE_RATE)
            done += len(block)
            yield from self._stream.codec_context.encode(frame)
        yield from self._stream.codec_context.encode(None)


def _samples(block: np.ndarray[Any, Any], format: str) -> np.ndarray[Any, Any]:
    """Samples as an encoder takes them: channel by channel, or both in turn."""
    import numpy as np

    if format == "fltp":
        return np.ascontiguousarray(block.T)
    if format == "s16":
        block = np.clip(np.rint(block * 32768), -32768, 32767).astype(np.int16)
    return np.ascontiguousarray(block).reshape(1, -1)


def _blocks(pieces: Iterable[np.ndarray[Any, Any]], size: int) -> Iterator[np.ndarray[Any, Any]]:
    """The samples of pieces in blocks of one size; the last may be shorter."""
    import numpy as np

    rest = np.zeros((0, 2), np.float32)
    for piece in pieces:
        rest = np.concatenate([rest, piece]) if len(rest) else piece
        whole = len(rest) // size * size
        for at in range(0, whole, size):
            yield rest[at : at + size]
        rest = rest[whole:]
    if len(rest):
        yield rest
