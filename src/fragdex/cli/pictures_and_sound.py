"""`fragdex thumbnail`, `storyboard`, `peaks` and `loudness`: pictures of a video, and its sound."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import InputWork, expand, notes, opened_media, places, stem
from fragdex.cli.output import emit, json_line, say


class PictureKind(StrEnum):
    """What pictures can be written as."""

    JPEG = "jpeg"
    WEBP = "webp"
    AVIF = "avif"
    PNG = "png"


class ThumbnailKind(StrEnum):
    """Which picture a thumbnail shows."""

    KEY_FRAME = "key_frame"
    FRAME = "frame"


class FitKind(StrEnum):
    """How a picture is brought to a width and a height."""

    CONTAIN = "contain"
    COVER = "cover"
    FILL = "fill"


SUFFIXES = {".jpg": "jpeg", **{f".{kind}": str(kind) for kind in PictureKind}}


Quality = Annotated[
    int,
    typer.Option("--quality", min=1, max=100, metavar="N", help="Quality, 1 to 100; not of PNG."),
]


def picture_kind(output: str | None, format: PictureKind | None) -> str:
    """The format that is requested, by name or by the end of a path; else JPEG."""
    if format is not None:
        return format.value
    return SUFFIXES.get(os.path.splitext(output or "")[1].lower(), "jpeg")


@options.opens("init", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def thumbnail(
    files: options.FilesAndTimes = None,
    time: options.Time = None,
    at_time: options.At = None,
    output: Annotated[
        str | None,
        options.placed("Write there: a file, a folder (FILE's name with .jpg), or - for stdout."),
    ] = None,
    at: Annotated[
        ThumbnailKind,
        typer.Option("--picture", help="The key frame nearest to TIME, or the frame shown then."),
    ] = ThumbnailKind.KEY_FRAME,
    width: Annotated[
        int | None, typer.Option("--width", metavar="N", help="Pixels of a picture.")
    ] = None,
    height: Annotated[
        int | None, typer.Option("--height", metavar="N", help="Pixels of a picture.")
    ] = None,
    fit: Annotated[
        FitKind,
        typer.Option(
            "--fit", help="With width and height: show all of it, cut the edges, or distort."
        ),
    ] = FitKind.CONTAIN,
    format: Annotated[
        PictureKind | None,
        typer.Option("--format", "-f", help="The form to write.", show_default="as in PATH"),
    ] = None,
    quality: Quality = 80,
    track: options.Track = None,
    json: options.Json = False,
    *,
    opening: dict[str, Any],
) -> int:
    """Make a picture at a time: JPEG, WebP, AVIF or PNG.

    It shows the key frame nearest to TIME, unless --picture frame is given; from a remote file,
    only the bytes of this frame are read. Needs PyAV and Pillow (pip install 'fragdex[media]').

    Examples:
      fragdex thumbnail movie.mp4 1:02:03 -o movie.jpg --width 320
      fragdex thumbnail movie.mp4 --at 3 -o movie.jpg
      fragdex thumbnail 'films/*.mp4' 10 -o posters/ --format avif
    """
    names, (text,) = options.split_times(files, [time], {"--at": (at_time, "")})
    moment = options.parse_time(text)
    if output is None:
        raise typer.BadParameter("an output is needed: -o movie.jpg")
    kind = picture_kind(output, format)
    suffix = ".jpg" if kind == "jpeg" else f".{kind}"
    targets = places(expand(names), output, lambda name: suffix, "thumbnails")
    making = partial(
        _make_thumbnail, targets=targets, time=moment, opening=opening, track=track,
        at=at.value, width=width, height=height,
        fit=fit.value, format=kind, quality=quality,
    )  # fmt: skip
    work = InputWork("thumbnail")
    for name, result in work.each(making, list(targets), 1):
        line = (
            f"{result['thumbnail']}: {result['width']} × {result['height']}, "
            f"{result['time']:.3f} s of {name}\n"
        )
        say(json_line({"file": name, **result}) if json else line, err=output == "-")
    return work.code


def _make_thumbnail(
    name: str,
    targets: dict[str, str],
    time: Fraction | float,
    opening: dict[str, Any],
    **options_given: Any,
) -> tuple[dict[str, Any], Sequence[str]]:
    from fragdex.decoding.picture_files import thumbnail

    with opened_media(name, opening) as (index, source, init):
        if math.isinf(time):
            time = max((float(t.stop) for t in index.tracks if t.stop is not None), default=0.0)
        with options.usage():
            picture = thumbnail(index, source, time, init=init, **options_given)
        emit([picture.data], targets[name])
        facts = {
            "thumbnail": targets[name], "time": float(picture.time), "width": picture.width,
            "height": picture.height, "media_type": picture.media_type, "size": len(picture.data),
        }  # fmt: skip
        return facts, notes(index, findings=False)


@options.opens("init", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def storyboard(
    files: options.Files,
    output: Annotated[
        str | None, options.placed("Write there: a folder; of several inputs, one for each in it.")
    ] = None,
    every: Annotated[
        str, typer.Option("--every", metavar="SECONDS", help="From one picture to the next.")
    ] = "10",
    width: Annotated[int, typer.Option("--width", metavar="N", help="Pixels of a picture.")] = 160,
    columns: Annotated[
        int, typer.Option("--columns", metavar="N", help="Pictures in a row of a sheet.")
    ] = 10,
    rows: Annotated[int, typer.Option("--rows", metavar="N", help="Rows of a sheet.")] = 10,
    format: Annotated[
        PictureKind, typer.Option("--format", "-f", help="The form to write.")
    ] = PictureKind.JPEG,
    quality: Quality = 75,
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
        _make_storyboard, targets=dict(zip(names, folders, strict=True)), opening=opening,
        every=options.parse_time(every), width=width, columns=columns, rows=rows,
        format=format.value, quality=quality, track=track,
    )  # fmt: skip
    work = InputWork("storyboard")
    for name, facts in work.each(making, names, 1):
        sheets = f"{len(facts['sheets'])} sheet{'' if len(facts['sheets']) == 1 else 's'}"
        line = (
            f"{facts['folder']}: {facts['tiles']:,} pictures of"
            f" {facts['width']} × {facts['height']} on {sheets},"
            f" {facts['key_frames']:,} key frames of {name}\n"
        )
        say(json_line({"file": name, **facts}) if json else line)
    return work.code


def _make_storyboard(
    name: str, targets: dict[str, str], opening: dict[str, Any], **options_given: Any
) -> tuple[dict[str, Any], Sequence[str]]:
    from fragdex.decoding.storyboards import storyboard

    folder = targets[name]
    with (
        opened_media(name, opening) as (index, source, init),
        options.usage(),
        storyboard(index, source, init=init, **options_given) as board,
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
        lines = list(notes(index, findings=False))
        if missing:
            lines.append(f"{missing:,} pictures could not be decoded, and are black")
        return {
            "folder": folder, "sheets": sheets, "tiles": board.count, "width": board.width,
            "height": board.height, "columns": board.columns, "rows": board.rows,
            "every": float(board.every), "start": float(board.start), "stop": float(board.stop),
            "key_frames": len(set(board.times)), "missing": missing, "bandwidth": bandwidth,
        }, lines  # fmt: skip


class PeaksForm(StrEnum):
    """What waveforms can be written as."""

    JSON = "json"
    DAT = "dat"


@options.opens("init", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def peaks(
    files: options.Files,
    output: Annotated[
        str | None,
        options.placed("Write there: a file, a folder (FILE's name with .json), or - for stdout."),
    ] = None,
    zoom: Annotated[
        int, typer.Option("--samples-per-pixel", "-z", metavar="N", help="Samples per pixel.")
    ] = 256,
    bits: Annotated[int, typer.Option("--bits", "-b", metavar="N", help="8 or 16.")] = 8,
    split: Annotated[
        bool, typer.Option("--split-channels", help="Each channel separately, not their mean.")
    ] = False,
    format: Annotated[
        PeaksForm | None,
        typer.Option("--format", "-f", help="The form to write.", show_default="as in PATH"),
    ] = None,
    track: options.Track = None,
    json: options.Json = False,
    *,
    opening: dict[str, Any],
) -> int:
    """Write the waveform of a track: JSON or .dat (version 2) as BBC's audiowaveform makes them.

    peaks.js and wavesurfer.js draw it without decoding the sound. Needs PyAV
    (pip install 'fragdex[media]').

    Examples:
      fragdex peaks movie.mp4 -o movie.json
      fragdex peaks movie.mp4 -o movie.dat --samples-per-pixel 512 --split-channels
    """
    if output is None:
        raise typer.BadParameter("an output is needed: -o movie.json")
    form = format.value if format is not None else "dat" if output.endswith(".dat") else "json"
    targets = places(expand(files), output, lambda name: f".{form}", "waveforms")
    making = partial(
        _make_peaks, targets=targets, form=form, opening=opening, samples_per_pixel=zoom, bits=bits,
        split=split, track=track,
    )  # fmt: skip
    work = InputWork("peaks")
    for name, facts in work.each(making, list(targets), 1):
        line = (
            f"{facts['peaks']}: {facts['length']:,} pixels of {facts['samples_per_pixel']:,}"
            f" samples, {facts['channels']} × {facts['sample_rate']:,} Hz, of {name}\n"
        )
        say(json_line({"file": name, **facts}) if json else line, err=output == "-")
    return work.code


def _make_peaks(
    name: str, targets: dict[str, str], form: str, opening: dict[str, Any], **options_given: Any
) -> tuple[dict[str, Any], Sequence[str]]:
    from fragdex.decoding.sound_levels import peaks

    with opened_media(name, opening) as (index, source, init):
        with options.usage():
            wave = peaks(index, source, init=init, **options_given)
        emit([wave.dat() if form == "dat" else wave.json()], targets[name])
        length, channels, _ = wave.values.shape
        gaps = [
            f"no sound from {gap.start:.3f} to {gap.stop:.3f} s: {gap.reason}" for gap in wave.gaps
        ]
        return {
            "peaks": targets[name], "sample_rate": wave.rate, "channels": channels,
            "samples_per_pixel": wave.samples_per_pixel, "bits": wave.bits, "length": length,
        }, [*notes(index, findings=False), *gaps]  # fmt: skip


@options.opens("init", "strict", "period", "ignore_mtime", "follow", "max_bytes", "max_requests")
def loudness(
    files: options.Files,
    output: options.Output = None,
    track: options.Track = None,
    json: options.Json = False,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Measure how loud a track is (EBU R 128).

    Prints the integrated loudness (LUFS), the loudness range (LU) and the true peak (dBTP). Needs
    PyAV (pip install 'fragdex[media]').

    Examples:
      fragdex loudness movie.mp4
      fragdex loudness 'podcast/*.m4a' --json --jobs 4
    """
    work = InputWork("loudness")
    measuring = partial(_measure, opening=opening, track=track)

    def lines() -> Iterator[str]:
        for name, result in work.each(measuring, expand(files), jobs):
            parts = (
                _level(result["integrated"], "LUFS"),
                f"range {_level(result['range'], 'LU')}",
                f"true peak {_level(result['true_peak'], 'dBTP')}",
            )
            line = f"{name}: {', '.join(parts)}\n"
            yield json_line({"file": name, **result}) if json else line

    emit(lines(), output)
    return work.code


def _level(value: float | None, unit: str) -> str:
    return "silent" if value is None else f"{value:.1f} {unit}"


def _measure(
    name: str, opening: dict[str, Any], track: int | None
) -> tuple[dict[str, Any], Sequence[str]]:
    from dataclasses import asdict

    from fragdex.decoding.sound_levels import loudness

    with opened_media(name, opening) as (index, source, init):
        measured = loudness(index, source, track=track, init=init)
        return asdict(measured), notes(index, findings=False)
