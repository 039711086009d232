"""`fragdex peaks`: the waveform of a track, in audiowaveform's forms."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import Work, expand
from fragdex.cli.output import emit, json_line, say
from fragdex.cli.output_paths import places

__all__ = ["peaks"]


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
        int, typer.Option("--samples-per-pixel", "-z", metavar="N", help="Samples of a pixel.")
    ] = 256,
    bits: Annotated[int, typer.Option("--bits", "-b", metavar="N", help="8 or 16.")] = 8,
    split: Annotated[
        bool, typer.Option("--split-channels", help="Each channel by itself, not their mean.")
    ] = False,
    format: Annotated[
        PeaksForm | None,
        typer.Option("--format", "-f", help="JSON or binary data.", show_default="as in PATH"),
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
        _make, targets=targets, form=form, opening=opening, samples_per_pixel=zoom, bits=bits,
        split=split, track=track,
    )  # fmt: skip
    work = Work("peaks")
    for name, made in work.each(making, list(targets), 1):
        line = (
            f"{made['peaks']}: {made['length']:,} pixels of {made['samples_per_pixel']:,} samples,"
            f" {made['channels']} × {made['sample_rate']:,} Hz, of {name}\n"
        )
        say(json_line({"file": name, **made}) if json else line, err=output == "-")
    return work.code


def _make(
    name: str, targets: dict[str, str], form: str, opening: dict[str, Any], **asked: Any
) -> tuple[dict[str, Any], Sequence[str]]:
    from fragdex import peaks
    from fragdex.cli.opening import notes, opened_media

    with opened_media(name, opening) as (index, source, init):
        with options.usage():
            made = peaks(index, source, init=init, **asked)
        emit([made.dat() if form == "dat" else made.json()], targets[name])
        length, channels, _ = made.values.shape
        gaps = [
            f"no sound from {gap.start:.3f} to {gap.stop:.3f} s: {gap.reason}" for gap in made.gaps
        ]
        return {
            "peaks": targets[name], "sample_rate": made.rate, "channels": channels,
            "samples_per_pixel": made.samples_per_pixel, "bits": made.bits, "length": length,
        }, [*notes(index, findings=False), *gaps]  # fmt: skip
