"""`fragdex plot`: draw what is in a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import InputWork, expand, into_folder, is_url, notes, open_any, places
from fragdex.cli.output import emit, json_line, say


class PlotForm(StrEnum):
    """What a plot can be written as."""

    PNG = "png"
    SVG = "svg"
    HTML = "html"


@options.opens("init", "strict", "ignore_mtime", "follow", "max_bytes", "max_requests")
def plot(
    files: options.Files,
    output: Annotated[
        str | None,
        options.placed(
            "Write there: a file, a folder, or - for stdout. Default: FILE's name with .png"
            " (or .svg, .html), in the same folder."
        ),
    ] = None,
    format: Annotated[
        PlotForm | None,
        typer.Option("--format", "-f", help="The kind of picture.", show_default="as in PATH"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the numbers that would be drawn, as JSON.")
    ] = False,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Plot fragments, bit rate, key frame distance and interleaving over time.

    HTML is one file that needs nothing else, and shows values under the pointer; PNG and SVG need
    matplotlib (pip install 'fragdex[plot]').

    Examples:
      fragdex plot movie.mp4 -o movie.png
      fragdex plot *.mp4 -f html -o plots/
    """
    names = expand(files)
    chosen = _form(output, format)
    targets = {} if json else places(names, output, lambda name: f".{chosen.value}", "plots")
    # without samples there is no telling the tracks' bytes apart
    opening["exact"] = True
    work = InputWork("plot")
    drawing = partial(
        _plot, targets=targets, form="json" if json else chosen.value, opening=opening
    )
    results = work.each(drawing, names, jobs)
    if json:
        emit((text for _, text in results), output)
        return work.code
    for _, line in results:
        say(line)
    return work.code


def _form(output: str | None, given: PlotForm | None) -> PlotForm:
    if given is not None:
        return given
    suffix = os.path.splitext(output or "")[1].lower().removeprefix(".")
    if suffix == "htm":
        return PlotForm.HTML
    if suffix in tuple(PlotForm):
        return PlotForm(suffix)
    if suffix and output is not None and not into_folder(output):
        raise typer.BadParameter(f"no picture is called .{suffix}: png, svg or html")
    return PlotForm.PNG


def _plot(
    name: str, targets: dict[str, str], form: str, opening: dict[str, Any]
) -> tuple[str, Sequence[str]]:
    from fragdex.cli.charts import series
    from fragdex.seeking.show import counted

    index = open_any(name, **opening)
    lines = notes(index, findings=False)
    shown = series(index, os.path.basename(name) if not is_url(name) else name)
    if form == "json":
        return json_line({"file": name, **_values(shown)}), lines
    if form == PlotForm.HTML:
        from fragdex.cli.charts import page

        data = page(shown, index).encode()
    else:
        from fragdex.cli.charts import draw

        data = draw(shown, form)
    target = targets[name]
    emit([data], target)
    drawn = f"{target}: {counted(len(shown.lanes), 'track')} of {name}\n"
    return ("" if target == "-" else drawn), lines


def _values(shown: Any) -> dict[str, Any]:
    lanes = [
        {
            "label": lane.label,
            "fragments": [lane.starts.tolist(), lane.stops.tolist()],
            "sync": lane.sync.tolist(),
            "rate": {"edges": lane.edges.tolist(), "bits_per_second": lane.rates.tolist()},
            "position": {"times": lane.times.tolist(), "bytes": lane.positions.tolist()},
        }
        for lane in shown.lanes
    ]
    return {"start": shown.first, "stop": shown.last, "tracks": lanes}
