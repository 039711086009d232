"""`fragdex package`: files as HLS and DASH, without re-encoding."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import expand
from fragdex.cli.output import json_line, say
from fragdex.cli.report import complain, counting

__all__ = ["package"]

ENTRIES = ("master.m3u8", "manifest.mpd")
"""What players open."""


@options.opens("strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def package(
    files: options.Files,
    output: Annotated[
        str | None,
        options.placed("The folder to write into; it is made."),
    ] = None,
    seconds: options.Seconds = None,
    tracks: options.Tracks = None,
    captions: Annotated[
        list[str] | None,
        typer.Option(
            "--captions",
            metavar="[LANG=]FILE",
            help="Subtitles beside the film: WebVTT, SubRip or JSON; may be repeated. "
            "The language is in the name (film.fr.srt), or given as fr=FILE.",
            show_default=False,
        ),
    ] = None,
    single_file: Annotated[
        bool,
        typer.Option(
            "--single-file", help="One file for each rendition; its segments are ranges of it."
        ),
    ] = False,
    json: options.Json = False,
    *,
    opening: dict[str, Any],
) -> int:
    """Write HLS and DASH of one title, without re-encoding.

    All FILEs are renditions of one title: the same film in several sizes, or its sound in several
    languages. Each track of video, audio and subtitles becomes a rendition. The folder gets
    `master.m3u8` and `manifest.mpd`, which players open, and the playlists and segments that they
    name. What keeps players from changing between renditions goes to stderr.

    Examples:
      fragdex package movie.mp4 -o movie/
      fragdex package 1080p.mp4 720p.mp4 french.m4a -o movie/ --seconds 2
      fragdex package movie.mp4 --captions movie.fr.srt --captions en=signs.vtt -o movie/
      fragdex package movie.mp4 --single-file -o movie/
    """
    if output is None or output == "-":
        raise typer.BadParameter("a folder is needed: -o DIR")
    length = options.parse_seconds(seconds)
    names = expand(files)
    texts = [_captions(one) for one in captions or ()]
    wanted = {"seconds": length, "tracks": tracks, "captions": texts, "single_file": single_file}
    with ExitStack() as stack:
        made, sources = _described(names, wanted, opening, stack)
        # Playlists come last: none names a file that is not there yet.
        order = sorted(made, key=lambda name: ("/" not in name, name in ENTRIES))
        written = _write(made, order, sources, output, names)
    for finding in made.findings:
        complain(finding)
    value = {
        "files": names,
        "package": output,
        "renditions": [one.name for one in (*made.title.renditions, *made.title.subtitles)],
        "written": len(order),
        "size": written,
        "findings": list(made.findings),
    }
    say(json_line(value) if json else _line(value))
    return 0


def _captions(given: str) -> Any:
    """A caption file, its language by `LANG=` or by its name."""
    from fragdex.views.subtitles import read_captions

    language, mark, path = given.partition("=")
    if mark and re.fullmatch(r"[a-zA-Z]{2,3}(-[a-zA-Z0-9]{2,8})*", language):
        return read_captions(path, language=language)
    return read_captions(given)


def _described(
    names: Sequence[str],
    wanted: Mapping[str, Any],
    opening: Mapping[str, Any],
    stack: ExitStack,
) -> tuple[Any, list[tuple[Any, Any]]]:
    """The package, and what each index says of its source with that source, open."""
    import fragdex
    from fragdex.cli.opening import exact_again, notes, opened_media

    indexes, sources = [], []
    for name in names:
        index, source, _ = stack.enter_context(opened_media(name, opening))
        if not all(track.has_samples for track in index.tracks):
            # A saved index without its samples, or one from a sidx or mfra.
            index = exact_again(index, source, opening)
        for note in notes(index, findings=False):
            complain(f"{name}: {note}")
        indexes.append(index)
        sources.append(source)
    made = fragdex.package(indexes, source=sources, **wanted)
    return made, [(i.source, s) for i, s in zip(indexes, sources, strict=True)]


def _write(
    made: Any,
    order: Sequence[str],
    sources: Sequence[tuple[Any, Any]],
    folder: str,
    inputs: Sequence[str],
) -> int:
    """Write the files of a package; returns their bytes.

    Raises:
        typer.BadParameter: one of them would replace an input.
    """
    from fragdex.cli.copying import bytes_of_view
    from fragdex.sources.files import write_file

    places = {name: os.path.join(folder, *name.split("/")) for name in order}
    taken = {os.path.realpath(name) for name in inputs}
    for place in places.values():
        if os.path.realpath(place) in taken:
            raise typer.BadParameter(f"{place} would be overwritten: give another -o")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise typer.BadParameter(f"{folder} is not a folder: give one with -o")
    for place in {os.path.dirname(place) for place in places.values()}:
        os.makedirs(place, exist_ok=True)
    size = 0
    with counting("package", len(order)) as advance:
        for name, place in places.items():
            view = made[name]
            source = [next(s for info, s in sources if info is known) for known in view.sources]
            size += write_file(place, bytes_of_view(view, source))
            advance()
    return size


def _line(value: dict[str, Any]) -> str:
    from fragdex.seeking.show import byte_count

    return (
        f"{value['package']}: {', '.join(value['files'])} as {', '.join(value['renditions'])}, "
        f"{value['written']} files, {byte_count(value['size'])}\n"
    )
