"""`fragdex repair`: a file whose index is lost or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import InputWork, bytes_of_view, expand, places
from fragdex.cli.output import emit, json_line, part_progress, say

SHOWN = 40
"""Spans that are shown as text; --json has all of them."""


def repair(
    files: options.Files,
    like: Annotated[
        str | None,
        typer.Option(
            "--like",
            metavar="GOOD",
            help="A good file from the same camera with the same settings.",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="FPS",
            help="Frames a second, if neither a good file nor the stream says it: 25, 30000/1001.",
        ),
    ] = None,
    output: Annotated[
        str | None, options.placed("Write there: a file, a folder, or - for stdout.")
    ] = None,
    spans: Annotated[
        bool,
        typer.Option(
            "--spans", help="Show for each byte of FILE whether it is proved, guessed or lost."
        ),
    ] = False,
    json: options.Json = False,
) -> int:
    """Find the samples of a file whose moov is lost or wrong, and write the repaired file.

    FILE is never written to. Each sample is proved by the syntax of its codec and by what follows
    it; data that does not parse is left out and reported. A good file from the same camera provides
    the tracks. Without -o, FILE is only examined.

    Examples:
      fragdex repair broken.mp4 --like good.mp4 -o repaired.mp4
      fragdex repair broken.mp4 --like good.mp4 --spans
      fragdex repair card/*.mp4 --like good.mp4 -o repaired/
    """
    names = expand(files)
    outputs = {} if output is None else places(names, output, lambda name: ".mp4", "films")
    work = InputWork("repair")
    mending = partial(_repair, outputs=outputs, like=like, rate=_parse_rate(rate))
    for name, repaired in work.each(mending, names, 1):
        text = json_line({"file": name, **repaired}) if json else _text(name, repaired, spans)
        # The video itself may be on stdout: then messages go to stderr.
        say(text, err=output == "-")
    return work.code


def _parse_rate(text: str | None) -> Fraction | None:
    if text is None:
        return None
    try:
        rate = Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise typer.BadParameter(
            f"--rate is pictures a second: 25, 30000/1001; not {text}"
        ) from error
    if not 0 < rate <= 1000:
        raise typer.BadParameter(f"--rate is above 0 and at most 1000: {text}")
    return rate


def _repair(
    name: str, outputs: dict[str, str], like: str | None, rate: Fraction | None
) -> tuple[dict[str, Any], Sequence[str]]:
    import fragdex

    with fragdex.open_source(name) as source, part_progress(name, "bytes") as advance:
        repaired = fragdex.repair(source, like, rate=rate, progress=advance)
        if name in outputs:
            emit(bytes_of_view(repaired.view, source), outputs[name])
    return {
        "repaired": outputs.get(name),
        "size": repaired.view.size,
        "media_type": repaired.view.media_type,
        "tracks": [
            {
                "track_ID": track.id,
                "kind": track.kind,
                "codec": track.codec,
                "samples": track.samples,
                "proved": track.proved,
                "seconds": track.seconds,
            }
            for track in repaired.tracks
        ],
        "lost": repaired.lost,
        "findings": list(repaired.findings),
        "spans": [span._asdict() for span in repaired.spans],
    }, repaired.findings


def _text(name: str, repaired: dict[str, Any], spans: bool) -> str:
    from fragdex.seeking.show import byte_count

    lines = [
        f"track {track['track_ID']}: {track['kind']} {track['codec'] or ''}, "
        f"{track['samples']:,} samples ({track['proved']:,} proved), {track['seconds']:,.3f} s"
        for track in repaired["tracks"]
    ]
    if spans:
        lines += [
            f"{span['start']:>14,} – {span['stop']:>14,}  {span['state']:<9}  {span['what']}"
            for span in repaired["spans"][:SHOWN]
        ]
        if len(repaired["spans"]) > SHOWN:
            lines.append(f"… and {len(repaired['spans']) - SHOWN:,} more: --json has all of them")
    lost = f", {byte_count(repaired['lost'])} lost" if repaired["lost"] else ", nothing lost"
    size, where = byte_count(repaired["size"]), repaired["repaired"]
    head = f"{where}: {name}, {size}{lost}" if where else f"{name}: would be {size}{lost}"
    lines.insert(0, head)
    return "\n".join(lines) + "\n"
