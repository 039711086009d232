"""`fragdex render`: a page becomes a film or a still, here or by a service."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from fragdex.cli import options, render_options, render_tools
from fragdex.cli.extras import extra
from fragdex.cli.output import complain, json_line, part_progress, say
from fragdex.cli.render_batch import Batch, data_of
from fragdex.cli.render_caps import Caps, MaxCost, MaxSeconds
from fragdex.cli.render_notes import INCOMPLETE, tell
from fragdex.cli.render_remote import fields_of, render_remotely
from fragdex.cli.render_report import facts_of, line_of
from fragdex.cli.render_request import Kind, bits, spec_of, stdin_html
from fragdex.cli.render_target import target_of

__all__ = ["render"]


def render(
    page: Annotated[
        str,
        typer.Argument(
            metavar="PAGE",
            help="An HTML file, a folder with an index.html, or a URL; - for HTML from stdin."
            " With --server also a .zip or .tar.gz of such a folder.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        options.placed(
            "Write there; the suffix decides: .mp4, .mov, .webm, .mkv, .gif, or a still: .png,"
            " .jpeg, .webp; frames/%05d.png is a file for each frame, .m4a, .mp3, .wav, .flac, .ogg"
            " the sound alone; - is an MP4 to stdout."
        ),
    ] = None,
    size: render_options.Size = None,
    scale: render_options.Scale = "1",
    fps: render_options.Fps = "30",
    page_fps: render_options.PageFps = None,
    duration: render_options.Duration = None,
    crop: render_options.Crop = None,
    start: render_options.Start = None,
    stop: render_options.Stop = None,
    at: render_options.At = None,
    quality: render_options.Quality = None,
    transparent: render_options.Transparent = False,
    codec: render_options.Codec = None,
    crf: render_options.Crf = None,
    bit_rate: render_options.BitRate = None,
    preset: render_options.Preset = None,
    pixel_format: render_options.PixelFormat = None,
    color: render_options.Color = None,
    gop: render_options.Gop = None,
    audio_codec: render_options.AudioCodec = None,
    audio_bit_rate: render_options.AudioBitRate = None,
    loudness: render_options.Loudness = None,
    no_sound: render_options.NoSound = False,
    fragmented: render_options.Fragmented = False,
    animated: render_options.Animated = False,
    data: render_options.Data = None,
    slices: render_options.Slices = None,
    jobs: render_options.Jobs = None,
    allow: render_options.Allow = None,
    server: render_options.Server = None,
    key: render_options.Key = None,
    allow_incomplete: render_options.AllowIncomplete = False,
    check: render_tools.Check = False,
    contact_sheet: render_tools.ContactSheet = None,
    estimate: render_tools.Estimate = False,
    preview: render_tools.Preview = False,
    port: render_tools.Port = None,
    max_seconds: MaxSeconds = None,
    max_cost: MaxCost = None,
    json: options.Json = False,
) -> int:
    """Render a web page frame by frame: each frame shows exactly its moment, however long it takes.

    The browser can read only the page's own files, or the host of the given URL. Blocked requests
    and errors of the page go to stderr. Where a script of the page failed, was blocked or is
    missing, the film is made all the same, and the exit code is 3. So it is where --check finds
    something.

    Examples:
      fragdex render page.html -o film.mp4 --size 1280x720 --fps 30 --duration 10
      fragdex render site/ -o film.mp4 --slices 4 --jobs 2
      fragdex render page.html -o part.mp4 --from 10 --to 1:02.5 --scale 2
      fragdex render page.html -o poster.png --at 2.5 --transparent
      fragdex render logo.html -o logo.webm --transparent --crf 12
      fragdex render page.html -o master.mov --codec prores --preset 4444
      fragdex render card.html -o 'cards/{name}.mp4' --data people.csv
      fragdex render site/ -o film.mp4 --server https://media.example.org
      fragdex render --preview page.html
      fragdex render --check page.html
      fragdex render page.html -o sheet.png --contact-sheet 4x4
    """  # fmt: skip
    tool = render_tools.tool_of(
        output,
        quality,
        jobs,
        slices,
        check=check,
        contact_sheet=contact_sheet,
        estimate=estimate,
        preview=preview,
        port=port,
    )
    if output is None and tool is None:
        raise typer.BadParameter("an output is needed: -o film.mp4")
    times: dict[str, Any] = {"duration": duration, "start": start, "stop": stop, "at": at}
    view: dict[str, Any] = {
        "size": size,
        "scale": scale,
        "fps": fps,
        "page_fps": page_fps,
        "crop": crop,
    }
    film = {
        "codec": codec,
        "crf": crf,
        "bit_rate": bits("--bit-rate", bit_rate),
        "preset": preset,
        "pixel_format": pixel_format,
        "gop": gop,
        "color": color,
        "audio": audio_codec,
        "audio_bit_rate": bits("--audio-bit-rate", audio_bit_rate),
        "sound": not no_sound,
        "loudness": loudness,
        "fragmented": fragmented,
    }
    kind = Kind.of(output or "-", animated=animated) if tool is None else Kind("mp4", True)
    still = {"quality": None if tool else quality, "transparency": transparent or None}
    given = None if data is None else data_of(data)
    if server is not None:
        here = {
            "--check": check, "--contact-sheet": contact_sheet, "--estimate": estimate,
            "--preview": preview, "--slices": slices, "--jobs": jobs, "--allow": allow,
            "--max-seconds": max_seconds, "--max-cost": max_cost, "-o -": output == "-",
            "--data of rows": isinstance(given, list),
        }  # fmt: skip
        if refused := [name for name, value in here.items() if value]:
            raise typer.BadParameter(f"{refused[0]} does not go with --server")
        fields = fields_of(
            kind, still=still, film={**film, "transparency": transparent}, **view, **times
        )
        return render_remotely(
            page, str(output), kind, {**fields, "data": given}, server, key,
            json=json, allow_incomplete=allow_incomplete,
        )  # fmt: skip
    with extra("render"):
        from fragdex.rendering.outside import NOTHING, FirstOf, Outside
        from fragdex.rendering.pool import PageSource
        from fragdex.rendering.render import render as render_page
        from fragdex.rendering.site import Page, Site, WithData
        from fragdex.rendering.site_locator import site_at
    spec = spec_of(kind, still=still, film={**film, "transparency": transparent}, **view, **times)
    if page == "-":
        site: Site = Page(stdin_html())
        outside: Outside = NOTHING
    else:
        site, outside = site_at(page, key)
    if allow:
        from fragdex.rendering.hosts import AllowedHosts

        outside = FirstOf(outside, AllowedHosts(allow))
    if tool is not None:
        # of a table the first row tells
        row = given[0] if isinstance(given, list) else given
        site = site if row is None else WithData(site, row)
        return tool(page, PageSource("", site, outside), spec, json)
    assert output is not None
    if isinstance(given, list) and kind.image is not None:
        raise typer.BadParameter("--data of rows and an image sequence do not go together")
    if isinstance(given, list):
        films = Batch(site, outside, spec, output, given)
        return _batch(page, films, jobs, json, allow_incomplete, max_seconds, max_cost)
    if given is not None:
        site = WithData(site, given)
    began = time.monotonic()
    with (
        target_of(output, kind) as (target, finish),
        part_progress(Path(page).name, "frames") as progress,
    ):
        made = render_page(
            site,
            spec,
            target,
            jobs=jobs,
            slices=slices,
            outside=outside,
            progress=Caps(max_seconds, max_cost, progress),
        )
        seconds = time.monotonic() - began
        facts = facts_of(page, output, spec.film, made, seconds, given)
        finish()
    tell(made.notes)
    # The film itself may be on stdout: then words go to stderr.
    say(json_line(facts) if json else line_of(facts), err=output == "-")
    return INCOMPLETE if made.notes.incomplete and not allow_incomplete else 0


def _batch(
    page: str, films: Batch, jobs: int | None, json: bool, allow_incomplete: bool,
    max_seconds: float | None, max_cost: float | None,
) -> int:  # fmt: skip
    """Make films of rows; 2 where one failed, 3 where a script of one did."""
    code = 0
    with part_progress(f"{Path(page).name}, {len(films)} films", "frames") as progress:
        for film in films.run(jobs, Caps(max_seconds, max_cost, progress)):
            if film.error is not None:
                complain(f"{film.path}: {film.error}")
                code = 2
            elif film.rendered is None:
                say(json_line({"file": str(film.path), "made_before": True}) if json
                    else f"{film.path}: there already\n")  # fmt: skip
            else:
                tell(film.rendered.notes)
                if film.rendered.notes.incomplete and not allow_incomplete:
                    code = code or INCOMPLETE
                seconds = sum(sum(one.seconds.values()) for one in film.rendered.slices)
                facts = facts_of(
                    page, str(film.path), films.stored, film.rendered, seconds, film.row
                )
                say(json_line(facts) if json else line_of(facts))
    return code
