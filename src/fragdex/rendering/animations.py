"""Slices → a picture that moves: GIF or animated WebP, encoded as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from fragdex.rendering.films import Film
from fragdex.rendering.packets import pictures_of
from fragdex.rendering.plan import View

__all__ = ["animate"]

_FOR_EVER: Final = "0"
_OPAQUE: Final = 128
_FLAGS_AT, _ALPHA = 20, 0x10
_SIDE: Final = 16  # of a palette


def animate(
    slices: Sequence[Callable[[], BinaryIO]],
    view: View,
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


def _in_palette(slices: Sequence[Callable[[], BinaryIO]], view: View, film: Film) -> Iterator[Any]:
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


def _palette(slices: Sequence[Callable[[], BinaryIO]], view: View, film: Film) -> Any:
    import av.filter

    graph = av.filter.Graph()
    pictures = _source(graph, *view.frame, view)
    made = graph.add("palettegen", f"reserve_transparent={int(film.transparency)}")
    sink = graph.add("buffersink")
    pictures.link_to(made)
    made.link_to(sink)
    graph.configure()
    for number, picture in enumerate(_pictures(slices)):
        picture.pts, picture.time_base = number, 1 / view.fps
        pictures.push(picture)
    pictures.push(None)
    palette = sink.pull()
    palette.pts, palette.time_base = 0, 1 / view.fps
    return palette


def _source(graph: Any, width: int, height: int, view: View) -> Any:
    return graph.add_buffer(width=width, height=height, format="bgra", time_base=1 / view.fps)


def _pulled(sink: Any) -> Iterator[Any]:
    import av

    while True:
        try:
            yield sink.pull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return
