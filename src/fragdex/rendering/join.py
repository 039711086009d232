"""Slices → one video, animation, archive of pictures, or the sound alone.

Packets are copied; the sound is encoded once for the whole. Animations and archives are made of
the decoded pictures.
"""

from __future__ import annotations

import os
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from fragdex.decoding.codec import open_container
from fragdex.errors import BrowserGone
from fragdex.record import record
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.messages import Joined
from fragdex.rendering.outputs import Film
from fragdex.rendering.pictures import encode_still, pixels_of
from fragdex.rendering.spec import KEY_SECONDS

if TYPE_CHECKING:
    import numpy as np


SAMPLE_RATE: Final = 48_000
AUDIO_BITS: Final = 192_000
"""Default bit rate of the sound."""
_PLANAR, _WHOLE = ("aac", "libmp3lame"), ("flac", "pcm_s16le")

# One moof a group of pictures, in which every base is the moof itself, and a sidx before the
# first, by which players seek and know the duration. The moov waits for the first packets, and so
# has the edit list that hides the encoder's priming.
_FRAGMENTED: Final = "frag_keyframe+delay_moov+default_base_moof+global_sidx+skip_trailer"
# What Apple's players take HEVC for.
_TAGS: Final = {"hevc": "hvc1"}


def join(
    slices: Sequence[Callable[[], BinaryIO]],
    view: PageView,
    out: Path,
    sound: Iterable[np.ndarray[Any, Any]] | None = None,
    progress: Callable[[int], None] = lambda _: None,
    film: Film = Film(),  # noqa: B008 — frozen
    first: int = 0,
) -> Joined:
    """Write slices one after the other; the same slices give the same bytes.

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
    elif film.is_isobmff:
        options["movflags"] = "+faststart"
    return av.open(str(out), "w", format=film.kind.muxer or film.container, options=options)


def _stream(container: Any, source: Any, view: PageView, film: Film) -> Any:
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


_FOR_EVER: Final = "0"
_OPAQUE: Final = 128
_FLAGS_AT, _ALPHA = 20, 0x10
_SIDE: Final = 16  # of a palette


def animate(
    slices: Sequence[Callable[[], BinaryIO]],
    view: PageView,
    out: Path,
    film: Film,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Encode the pictures of slices, again and again from the first; returns how many there are.

    Args:
        slices: each opens a file of `Encoding` that lost nothing; in order.
        film: GIF has one palette of 256 colours for all, and a pixel of it is there or not.
    """
    import av

    gif = film.container == "gif"
    container = av.open(
        str(out), "w", format="gif" if gif else "webp",
        options={"fflags": "+bitexact", "loop": _FOR_EVER},
    )  # fmt: skip
    stream: Any = container.add_stream("gif" if gif else "libwebp_anim", rate=view.fps)
    context = stream.codec_context
    context.width, context.height = view.frame
    context.pix_fmt = "pal8" if gif else "bgra"
    context.time_base = stream.time_base = 1 / view.fps
    frames = 0
    pictures = _in_palette(slices, view, film) if gif else _pictures(slices)
    for picture in pictures:
        picture.pts, picture.time_base = frames, 1 / view.fps
        for packet in stream.encode(picture):
            container.mux_one(packet)
        frames += 1
        progress(frames)
    for packet in stream.encode(None):
        container.mux_one(packet)
    container.close()
    if film.transparency and not gif:
        _say_clear(out)
    return frames


def _say_clear(webp: Path) -> None:
    """Set the flag of transparency in the header (RFC 9649 2.7).

    The encoder leaves it out where opaque rectangles stand on an empty ground, which decoders then
    fill.
    """
    with webp.open("r+b") as file:
        file.seek(_FLAGS_AT)
        flags = file.read(1)[0]
        file.seek(_FLAGS_AT)
        file.write(bytes([flags | _ALPHA]))


def _pictures(slices: Sequence[Callable[[], BinaryIO]]) -> Iterator[Any]:
    from av.video.reformatter import VideoReformatter

    reformatter = VideoReformatter()
    for picture in pictures_of(slices):
        yield reformatter.reformat(picture, format="bgra", threads=1)


def _in_palette(
    slices: Sequence[Callable[[], BinaryIO]], view: PageView, film: Film
) -> Iterator[Any]:
    """The pictures in the 256 colours that fit all of them best."""
    import av.filter

    graph = av.filter.Graph()
    of_palette = _source(graph, _SIDE, _SIDE, view)
    of_pictures = _source(graph, *view.frame, view)
    use = graph.add("paletteuse", f"diff_mode=rectangle:alpha_threshold={_OPAQUE}")
    sink = graph.add("buffersink")
    of_pictures.link_to(use, 0, 0)
    of_palette.link_to(use, 0, 1)
    use.link_to(sink)
    graph.configure()
    of_palette.push(_palette(slices, view, film))
    of_palette.push(None)
    for number, picture in enumerate(_pictures(slices)):
        picture.pts, picture.time_base = number, 1 / view.fps
        of_pictures.push(picture)
        yield from _pulled(sink)
    of_pictures.push(None)
    yield from _pulled(sink)


def _palette(slices: Sequence[Callable[[], BinaryIO]], view: PageView, film: Film) -> Any:
    import av.filter

    graph = av.filter.Graph()
    pictures = _source(graph, *view.frame, view)
    palette_filter = graph.add("palettegen", f"reserve_transparent={int(film.transparency)}")
    sink = graph.add("buffersink")
    pictures.link_to(palette_filter)
    palette_filter.link_to(sink)
    graph.configure()
    for number, picture in enumerate(_pictures(slices)):
        picture.pts, picture.time_base = number, 1 / view.fps
        pictures.push(picture)
    pictures.push(None)
    palette = sink.pull()
    palette.pts, palette.time_base = 0, 1 / view.fps
    return palette


def _source(graph: Any, width: int, height: int, view: PageView) -> Any:
    return graph.add_buffer(width=width, height=height, format="bgra", time_base=1 / view.fps)


def _pulled(sink: Any) -> Iterator[Any]:
    import av

    while True:
        try:
            yield sink.pull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return


_DIGITS: Final = 5
_MOST_AT_ONCE: Final = 8
_DATE: Final = (1980, 1, 1, 0, 0, 0)  # the first that a zip can tell: the same every time


def archive(
    slices: Sequence[Callable[[], BinaryIO]],
    out: Path,
    film: Film,
    first: int,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write the pictures of slices into a zip, uncompressed; returns how many there are.

    They are named by the frame that they show, such as `00030.png`.

    Args:
        slices: each opens a file of `Encoding` that lost nothing; in order.
        film: what each picture is.
        first: the number of the first.
    """
    frames = 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as pictures:
        for data in _encoded(slices, film):
            name = f"{first + frames:0{_DIGITS}}.{film.still.container}"
            pictures.writestr(zipfile.ZipInfo(name, _DATE), data)
            frames += 1
            progress(frames)
    return frames


def _encoded(slices: Sequence[Callable[[], BinaryIO]], film: Film) -> Iterator[bytes]:
    """The pictures of slices in order; as many are compressed at once as there are processors."""
    from av.video.reformatter import VideoReformatter

    still, reformatter = film.still, VideoReformatter()
    rgb = "rgba" if still.is_clear else "rgb24"
    at_once = min(os.cpu_count() or 1, _MOST_AT_ONCE)
    before = b""
    waiting: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(at_once, "pictures") as threads:
        for picture in pictures_of(slices):
            pixels = pixels_of(reformatter.reformat(picture, format=rgb, threads=1))
            shown = pixels.tobytes()
            if shown == before:
                waiting.append(waiting[-1])
            else:
                before = shown
                waiting.append(threads.submit(encode_still, pixels, still))
            # the last one stays: the next picture may be the same
            while len(waiting) > at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def frame_of(name: str) -> int:
    """The frame that a picture of an archive shows."""
    return int(name.partition(".")[0])


def packets_of(slices: Sequence[Callable[[], BinaryIO]]) -> Iterator[tuple[Any, Any]]:
    """The packets of slices in order, each with the stream that it comes from."""
    for opening in slices:
        with (
            opening() as file,
            open_container(file, options={"ignore_editlist": "1"}) as part,
        ):
            source: Any = part.streams.video[0]
            for packet in part.demux(source):
                if packet.pts is not None:
                    yield packet, source


def pictures_of(slices: Sequence[Callable[[], BinaryIO]]) -> Iterator[Any]:
    """The decoded pictures of slices in order."""
    for packet, _ in packets_of(slices):
        yield from packet.decode()


CEILING: Final = -1.0
"""dBTP that no sound is raised above (EBU R 128, 2023)."""

SoundSource = Callable[[], "Iterable[np.ndarray[Any, Any]]"]


@record(frozen=True, slots=True)
class Normalized:
    """How loud a sound was, and what was done about it.

    Attributes:
        integrated: LUFS (ITU-R BS.1770-4), None of silence, and of what is shorter than 400 ms.
        true_peak: dBTP, None of silence.
        gain: dB that it was changed by since.
    """

    integrated: float | None
    true_peak: float | None
    gain: float = 0.0

    def gain_to(self, target: float) -> float:
        """The gain (dB) that brings it to a loudness, or as near as its true peak allows."""
        if self.integrated is None or self.true_peak is None:
            return 0.0
        return round(min(target - self.integrated, CEILING - self.true_peak), 2)


def normalized(
    sound: SoundSource, target: float
) -> tuple[Normalized, Iterator[np.ndarray[Any, Any]]]:
    """A sound at a loudness: measured, and changed by one gain.

    Args:
        sound: begins it, each time it is called.
        target: LUFS.
    """
    import numpy as np

    from fragdex.decoding.sound_levels import measured

    before = measured(sound())
    before_limits = Normalized(before.integrated, before.true_peak)
    gain = before_limits.gain_to(target)
    factor = np.float32(10 ** (gain / 20))
    changed = Normalized(before_limits.integrated, before_limits.true_peak, gain)
    return changed, (piece * factor for piece in sound())
