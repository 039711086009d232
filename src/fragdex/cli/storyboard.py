"""`fragdex storyboard`: sheets of small pictures, and the lists that players find them by."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import Work, expand, stem
from fragdex.cli.output import emit, json_line, say
from fragdex.cli.thumbnail import PictureKind

__all__ = ["storyboard"]


@options.opens("init", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def storyboard(
    files: options.Files,
    output: Annotated[
        str | None,
        options.placed("The folder to write to; of several inputs, one for each in it."),
    ] = None,
    every: Annotated[
        str, typer.Option("--every", metavar="SECONDS", help="From one picture to the next.")
    ] = "10",
    width: Annotated[int, typer.Option("--width", metavar="N", help="Pixels of a picture.")] = 160,
    columns: Annotated[
        int, typer.Option("--columns", metavar="N", help="Pictures side by side on a sheet.")
    ] = 10,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", help="Pictures one below the other.")
    ] = 10,
    format: Annotated[
        PictureKind, typer.Option("--format", "-f", help="The kind of picture.")
    ] = PictureKind.JPEG,
    quality: Annotated[
        int, typer.Option("--quality", min=1, max=100, metavar="N", help="1 to 100; not of PNG.")
    ] = 75,
    track: options.Track = None,
    json: options.Json = False,
    *,
    opening: dict[str, Any],
) -> int:
    """Make sheets of small pictures for a player's timeline.

    Writes sheet-0.jpg and so on, storyboard.vtt (WebVTT), images.m3u8 (an HLS image playlist),
    and the lines to put in a multivariant playlist (image-stream-inf.m3u8) and in an MPD
    (adaptation-set.xml). Only key frames are read. Needs PyAV and Pillow
    (pip install 'fragdex[media]').

    Examples:
      fragdex storyboard movie.mp4 -o storyboard/
      fragdex storyboard movie.mp4 -o storyboard/ --every 5 --width 240 --columns 5 --rows 5
    """
    if output is None or output == "-":
        raise typer.BadParameter("a folder is needed: -o storyboard/")
    names = expand(files)
    folders = [output if len(names) == 1 else os.path.join(output, stem(name)) for name in names]
    if len(set(folders)) < len(folders):
        raise typer.BadParameter("two inputs have one name, and would be written to one folder")
    making = partial(
        _make, targets=dict(zip(names, folders, strict=True)), opening=opening,
        every=options.parse_time(every), width=width, columns=columns, rows=rows,
        format=format.value, quality=quality, track=track,
    )  # fmt: skip
    work = Work("storyboard")
    for name, made in work.each(making, names, 1):
        sheets = f"{len(made['sheets'])} sheet{'' if len(made['sheets']) == 1 else 's'}"
        line = (
            f"{made['folder']}: {made['tiles']:,} pictures of {made['width']} × {made['height']}"
            f" on {sheets}, {made['key_frames']:,} key frames of {name}\n"
        )
        say(json_line({"file": name, **made}) if json else line)
    return work.code


def _make(
    name: str, targets: dict[str, str], opening: dict[str, Any], **asked: Any
) -> tuple[dict[str, Any], Sequence[str]]:
    from fragdex import storyboard
    from fragdex.cli.opening import notes, opened_media

    folder = targets[name]
    with (
        opened_media(name, opening) as (index, source, init),
        options.usage(),
        storyboard(index, source, init=init, **asked) as board,
    ):
        os.makedirs(folder, exist_ok=True)
        sizes, sheets, missing = [], [], 0
        for sheet in board.sheets():
            path = os.path.join(folder, f"sheet-{sheet.number}{board.suffix}")
            emit([sheet.data], path)
            sheets.append(path)
            sizes.append(len(sheet.data))
            missing += len(sheet.missing)
        bandwidth = board.bandwidth_of(sizes)
        lists = {
            "storyboard.vtt": board.webvtt(),
            "images.m3u8": board.hls(),
            "image-stream-inf.m3u8": board.hls_stream_inf(bandwidth=bandwidth) + "\n",
            "adaptation-set.xml": board.dash(bandwidth=bandwidth),
        }
        for file, text in lists.items():
            emit([text.encode()], os.path.join(folder, file))
        told = list(notes(index, findings=False))
        if missing:
            told.append(f"{missing:,} pictures could not be decoded, and are black")
        return {
            "folder": folder, "sheets": sheets, "tiles": board.count, "width": board.width,
            "height": board.height, "columns": board.columns, "rows": board.rows,
            "every": float(board.every), "start": float(board.start), "stop": float(board.stop),
            "key_frames": len(set(board.times)), "missing": missing, "bandwidth": bandwidth,
        }, told  # fmt: skip
