"""`fragdex info` and `dump`: what is in a file; and its tree of boxes, with offsets and fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import InputWork, answer, expand, notes, open_any
from fragdex.cli.output import emit, json_line, json_text
from fragdex.errors import FragdexError, printable


@options.opens("init", "exact", "strict", "ignore_mtime", "follow", "max_bytes", "max_requests")
def info(
    files: options.Files,
    json: options.Json = False,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Show what is in files: tracks, codecs, times, fragments and findings.

    Examples:
      fragdex info movie.mp4
      fragdex info 'recordings/**/*.mp4' --json --jobs 4
    """
    telling = partial(_info, json=json, opening=opening)
    return answer("info", telling, files, jobs=jobs, output=output)


def _info(name: str, json: bool, opening: dict[str, Any]) -> tuple[str, Sequence[str]]:
    index = open_any(name, **opening)
    # The findings are the answer here, with nothing else.
    lines = notes(index, findings=False)
    text = json_line({"file": name, **_value(index)}) if json else f"{index!r}\n{_more(index)}"
    return text, lines


class _Rates:
    """The rates of all tracks of an index.

    Bits are counted of no more samples than the file has bytes: each of many tracks can claim them.
    """

    def __init__(self, index: Any) -> None:
        from fragdex.indexing.samples import MAX_WITHOUT_BYTES
        from fragdex.seeking.track import MOST

        size = index.file.size
        self._left = MOST if size is None else size + MAX_WITHOUT_BYTES

    def of(self, track: Any) -> Any:
        from fragdex.seeking.track import rates_of

        rates = rates_of(track, self._left)
        if rates.bit_rate is not None:
            self._left -= track.sample_count
        return rates


def _more(index: Any) -> str:
    """A line a track on what its row has no room for, and one a chapter."""
    from fragdex.seeking.show import MAX_TRACKS, clock

    lines = []
    left, rates = MAX_TRACKS, _Rates(index)
    several = len(index.periods) > 1
    for period in index.periods:
        place = f"period {period.number} " if several else ""
        shown = period.tracks[:left]
        left -= len(shown)
        for track in shown:
            words = _words(track, rates)
            if words:
                lines.append(f"  {place}track {track.id}: {', '.join(map(printable, words))}\n")
        for chapter in period.movie.chapters:
            title = printable(chapter.title)
            lines.append(f"  {place}chapter {clock(chapter.seconds)} {title}".rstrip() + "\n")
    return "".join(lines)


def _words(track: Any, every: _Rates) -> list[str]:
    from fragdex.errors import DamagedIndex
    from fragdex.seeking.show import bit_rate
    from fragdex.seeking.track import Rates

    info = track.info
    try:
        rates = every.of(track)
    except DamagedIndex:
        rates = Rates()
    words = []
    if rates.frame_rate is not None:
        words.append(f"{float(rates.frame_rate):.6g} fps")
    average = rates.bit_rate or info.declared_bit_rate
    peak = rates.peak_bit_rate or info.declared_peak_bit_rate
    if average:
        words.append(bit_rate(average) + (f" (peak {bit_rate(peak)})" if peak else ""))
    if info.rotation is None:
        words.append("transformed")
    elif info.rotation:
        words.append(f"rotated {info.rotation}°")
    if info.mirrored:
        words.append("mirrored")
    if info.pixel_aspect and info.pixel_aspect[0] != info.pixel_aspect[1]:
        words.append("pixels {}:{}".format(*info.pixel_aspect))
    if info.colour is not None and info.colour.dynamic_range:
        words.append(f"HDR {info.colour.dynamic_range}")
    if info.dolby_vision is not None:
        words.append(f"Dolby Vision profile {info.dolby_vision.profile}")
    if info.mastering_display is not None:
        words.append(f"mastered at {info.mastering_display.max_luminance:g} cd/m²")
    if info.content_light is not None:
        words.append(f"MaxCLL {info.content_light.max_content} cd/m²")
    language = info.extended_language or info.language
    if language:
        words.append(language)
    if info.title:
        words.append(f"“{info.title}”")
    if not info.enabled:
        words.append("not enabled")
    if info.auxiliary:
        words.append(f"left out where no track is named: {info.auxiliary}")
    if info.alternate_group:
        words.append(f"alternate group {info.alternate_group}")
    if info.chapter_tracks:
        words.append(f"chapters in track {', '.join(map(str, info.chapter_tracks))}")
    return words


def _value(index: Any) -> dict[str, Any]:
    from dataclasses import asdict

    rates = _Rates(index)
    return {
        "source": asdict(index.file),
        "how": asdict(index.how),
        "duration": index.duration,
        "complete": index.complete,
        "resume_offset": index.resume_offset,
        "periods": [_period_value(period, rates) for period in index.periods],
        "findings": [asdict(finding) for finding in index.findings],
    }


def _period_value(period: Any, rates: _Rates) -> dict[str, Any]:
    return {
        "number": period.number,
        "init": [{"start": part.start, "stop": part.stop} for part in period.init],
        "timescale": period.movie.timescale,
        "fragmented": period.movie.fragmented,
        "chapters": [{"start": one.seconds, "title": one.title} for one in period.movie.chapters],
        "tracks": [_track_value(track, rates) for track in period.tracks],
    }


def _track_value(track: Any, every: _Rates) -> dict[str, Any]:
    from dataclasses import asdict

    rates = every.of(track)
    value = asdict(track.info)
    value |= {
        "frame_rate": None if rates.frame_rate is None else float(rates.frame_rate),
        "bit_rate": rates.bit_rate,
        "peak_bit_rate": rates.peak_bit_rate,
        "shift": float(track.shift),
        "exact": track.exact,
        "fragment_count": len(track.fragments),
        "sample_count": track.sample_count,
        "sync_count": int(track.sync_samples.count.sum()),
        "start": None if track.start is None else track.start.seconds,
        "end": None if track.stop is None else track.stop.seconds,
    }
    return value


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
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show every row of tables and every byte of fields.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--validate", help="Refuse any box that does not fit its declaration.")
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
    written = partial(
        _as_json if json else _as_text, paths=path, full=full, strict=strict, opening=opening
    )

    def pieces() -> Iterator[str]:
        title = len(names) > 1 and not json
        if jobs > 1:
            for name, text in work.each(partial(_whole, written=written), names, jobs):
                yield f"{name}:\n{text}" if title else text
            return
        # What stands before damage is shown before the complaint.
        for name in names:
            if title:
                yield f"{printable(name)}:\n"
            try:
                yield from written(name)
            except FragdexError as error:
                work.fail(name, str(error))

    emit(pieces(), output)
    return work.code


def _whole(name: str, written: Callable[[str], Iterator[str]]) -> tuple[str, Sequence[str]]:
    return "".join(written(name)), ()


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
