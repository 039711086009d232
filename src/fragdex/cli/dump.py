"""`fragdex dump`: the tree of boxes, with offsets and fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import InputWork, expand
from fragdex.cli.output import emit, json_text
from fragdex.errors import FragdexError, printable

_STEP = r"[^/\[\]]{1,4}(?:\[[1-9]\d*\])?"
_BOX_PATH = re.compile(f"{_STEP}(?:/{_STEP})*")


@options.opens("max_bytes", "max_requests")
def dump(
    files: options.Files,
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--path",
            "-p",
            metavar="PATH",
            help="Only the boxes at this path, such as moof/traf/trun, moov/trak[2] or moov/*/tkhd;"
            " may be repeated.",
            show_default=False,
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show every row of tables and every byte of fields.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse any box that does not fit its declaration.")
    ] = False,
    json: options.Json = False,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Print the tree of boxes, with offsets, sizes and fields; media data is not read.

    Tables are cut after a few rows, long bytes after 16, and reserved fields are left out, unless
    --full is given. JSON has all fields and rows; bytes that no declaration covers are in it with
    --full. It is one document per file, written box by box; for a damaged file it ends with the key
    error.

    Examples:
      fragdex dump movie.mp4
      fragdex dump movie.mp4 --path moof/traf/trun --full
    """
    for one in path or ():
        if not _BOX_PATH.fullmatch(one):
            raise typer.BadParameter(f"no box path: {one!r}; one is moof/traf/trun or moov/trak[2]")
    work = InputWork("dump")
    names = expand(files)

    whole = partial(_whole, paths=path, full=full, strict=strict, json=json, opening=opening)

    def pieces() -> Iterator[str]:
        title = len(names) > 1 and not json
        if jobs > 1:
            for name, text in work.each(whole, names, jobs):
                yield f"{name}:\n{text}" if title else text
            return
        # What stands before damage is shown before the complaint.
        for name in names:
            if title:
                yield f"{printable(name)}:\n"
            try:
                if json:
                    yield from _as_json(name, path, full, strict, opening)
                else:
                    yield from _as_text(name, path, full, strict, opening)
            except FragdexError as error:
                work.fail(name, str(error))

    emit(pieces(), output)
    return work.code


def _whole(
    name: str,
    paths: list[str] | None,
    full: bool,
    strict: bool,
    json: bool,
    opening: dict[str, Any],
) -> tuple[str, Sequence[str]]:
    written = _as_json if json else _as_text
    return "".join(written(name, paths, full, strict, opening)), ()


def _as_text(
    name: str, paths: list[str] | None, full: bool, strict: bool, opening: dict[str, Any]
) -> Iterator[str]:
    from fragdex.cli.box_tree import box_lines
    from fragdex.sources import open_source

    with open_source(name, **opening) as source:
        for box in _chosen(source, paths, strict):
            for line in box_lines(box, full=full):
                yield line + "\n"


def _as_json(
    name: str, paths: list[str] | None, full: bool, strict: bool, opening: dict[str, Any]
) -> Iterator[str]:
    """One document on one line, piece by piece; it ends with the error where there is one."""
    from fragdex.cli.box_tree import box_pieces
    from fragdex.sources import open_source

    with open_source(name, **opening) as source:
        between = f'{{"file": {json_text(name)}, "boxes": ['
        try:
            for box in _chosen(source, paths, strict):
                yield between
                yield from box_pieces(box, full=full)
                between = ", "
        except FragdexError as error:
            if between != ", ":
                raise
            yield f'], "error": {json_text(str(error))}}}\n'
            raise
        yield f"{between if between != ', ' else ''}]}}\n"


def _chosen(source: Any, paths: list[str] | None, strict: bool) -> Iterator[Any]:
    """All top-level boxes, or those at the paths, in file order."""
    from fragdex.boxes import find_all
    from fragdex.cli.box_tree import top_level_boxes

    numbers: dict[str, int] = {}
    hit = False
    for box in top_level_boxes(source, paths, strict):
        if not paths:
            hit = True
            yield box
            continue
        # `moof[3]` counts among the top-level boxes, which come one at a time.
        code = box.type.rstrip()
        numbers[code] = numbers.get(code, 0) + 1
        by_offset: dict[int, Any] = {}
        for path in paths:
            first, slash, below = path.partition("/")
            wanted, _, number = first.partition("[")
            if wanted not in ("*", code, box.type):
                continue
            if number and number != f"{numbers[code]}]":
                continue
            boxes = find_all(box.children, below) if slash else (box,)
            by_offset.update({one.offset: one for one in boxes})
        for _, chosen in sorted(by_offset.items()):
            hit = True
            yield chosen
    if paths and not hit:
        raise FragdexError(f"{source.name}: there is no box at {', '.join(paths)}")
