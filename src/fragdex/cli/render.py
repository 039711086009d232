"""`fragdex render`: a page becomes a film or a still, without any service."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from fragdex.cli import options, render_tools
from fragdex.cli.output import json_line, say
from fragdex.cli.render_batch import Batch, data_of
from fragdex.cli.render_caps import Caps, MaxCost, MaxSeconds
from fragdex.cli.render_notes import tell
from fragdex.cli.render_report import facts_of, line_of
from fragdex.cli.render_request import Kind, bits, wanted_of
from fragdex.cli.render_target import target_of
from fragdex.cli.report import complain, part_progress
from fragdex.cli.serving import service

__all__ = ["render"]

_INCOMPLETE: Final = 3


def render(
    page: Annotated[
        str,
        typer.Argument(
            metavar="PAGE",
            help="An HTML file, a folder with an index.html, or a URL; - for HTML from stdin.",
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
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            metavar="WxH",
            help="Of the page's window, in pixels.",
            show_default="what the page says, or 1280x720",
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            metavar="N",
            help="Pixels for each pixel of the page: 2 draws 1280x720 as 2560x1440.",
        ),
    ] = "1",
    fps: Annotated[
        str,
        typer.Option("--fps", metavar="RATE", help="Frames a second: 30, 29.97, 30000/1001."),
    ] = "30",
    page_fps: Annotated[
        str | None,
        typer.Option(
            "--page-fps",
            metavar="RATE",
            help="Call the page so often a second: a multiple of --fps, if it counts frames.",
            show_default="as --fps",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration",
            metavar="TIME",
            help="Duration: seconds, or 1:02.5.",
            show_default="the page's longest animation or media",
        ),
    ] = None,
    crop: Annotated[
        str | None,
        typer.Option(
            "--crop",
            metavar="X,Y,W,H",
            help="Keep only this of the page's window, in its pixels.",
            show_default=False,
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Begin there in the film.", show_default="0"),
    ] = None,
    stop: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="End there.", show_default="the film's end"),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="The time of a still.", show_default="0"),
    ] = None,
    quality: Annotated[
        int | None,
        typer.Option(
            "--quality",
            min=1,
            max=100,
            metavar="N",
            help="Quality of .jpeg and .webp.",
            show_default="80",
        ),
    ] = None,
    transparent: Annotated[
        bool,
        typer.Option(
            "--transparent",
            help="Leave unpainted parts transparent: stills, .gif, VP9, ProRes, FFV1.",
        ),
    ] = False,
    codec: Annotated[
        str | None,
        typer.Option(
            "--codec",
            metavar="NAME",
            help="Of a film: h264, hevc, av1, vp9, prores, ffv1.",
            show_default="h264; in .webm vp9",
        ),
    ] = None,
    crf: Annotated[
        int | None,
        typer.Option(
            "--crf",
            metavar="N",
            help="Constant quality, lower is better; the codec has its own scale.",
            show_default="h264: 18, hevc: 20, vp9: 20, av1: 24",
        ),
    ] = None,
    bit_rate: Annotated[
        str | None,
        typer.Option(
            "--bit-rate",
            metavar="RATE",
            help="Bits a second of the pictures instead: 800k, 5M.",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="Of the encoder: fast or small; of ProRes its profile.",
            show_default="h264, hevc: veryfast, av1: 8, vp9: 4, prores: hq",
        ),
    ] = None,
    pixel_format: Annotated[
        str | None,
        typer.Option(
            "--pixel-format",
            metavar="NAME",
            help="Such as yuv444p, yuv420p10le.",
            show_default="yuv420p; what the codec is for",
        ),
    ] = None,
    color: Annotated[
        str | None,
        typer.Option(
            "--color",
            metavar="NAME",
            help="Of the pictures: bt709, or bt2020-pq for HDR with hevc, av1, prores.",
            show_default="bt709",
        ),
    ] = None,
    gop: Annotated[
        int | None,
        typer.Option(
            "--gop",
            metavar="FRAMES",
            help="Frames from one key frame to the next.",
            show_default="2 s of them",
        ),
    ] = None,
    audio_codec: Annotated[
        str | None,
        typer.Option(
            "--audio-codec",
            metavar="NAME",
            help="Of the sound: aac, opus, mp3, flac, pcm.",
            show_default="aac; in .webm opus",
        ),
    ] = None,
    audio_bit_rate: Annotated[
        str | None,
        typer.Option(
            "--audio-bit-rate", metavar="RATE", help="Bits a second.", show_default="192k"
        ),
    ] = None,
    loudness: Annotated[
        float | None,
        typer.Option(
            "--loudness",
            metavar="LUFS",
            help="Bring the sound to this loudness, such as -23 or -14, by one gain.",
            show_default=False,
        ),
    ] = None,
    no_sound: Annotated[bool, typer.Option("--no-sound", help="Leave the sound out.")] = False,
    faststart: Annotated[
        bool,
        typer.Option("--faststart", help="One moov in front, no fragments (.mp4); so is a .mov."),
    ] = False,
    animated: Annotated[
        bool, typer.Option("--animated", help="Make a .webp that moves, not a still.")
    ] = False,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="Data for the page, as window.fragdex.data: .json, or .csv for a film a row.",
            show_default=False,
        ),
    ] = None,
    slices: Annotated[
        int | None,
        typer.Option(
            "--slices",
            min=1,
            metavar="N",
            help="Divide the frames into N parts.",
            show_default="as many as jobs",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            metavar="N",
            help="Browsers at the same time.",
            show_default="one per processor, if there is enough work",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="HOST",
            show_default=False,
            help="The page may read from this host by https; may be repeated.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            envvar="FRAGDEX_KEY",
            show_default=False,
            help="API key for the host of the URL.",
        ),
    ] = None,
    allow_incomplete: Annotated[
        bool,
        typer.Option(
            "--allow-incomplete",
            help="Exit with 0 though a script of the page failed, was blocked or is missing.",
        ),
    ] = False,
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
        "faststart": faststart,
    }
    kind = Kind.of(output or "-", animated=animated) if tool is None else Kind("mp4", True)
    still = {"quality": None if tool else quality, "transparency": transparent or None}
    wanted = wanted_of(
        kind, still=still, film={**film, "transparency": transparent}, size=size, fps=fps,
        duration=duration, at=at, scale=scale, start=start, stop=stop,
        crop=crop, page_fps=page_fps,
    )  # fmt: skip
    if page == "-":
        site = service("renders.site").Page(sys.stdin.buffer.read().decode("utf-8", "replace"))
        outside = service("renders.outside").NOTHING
    else:
        site, outside = service("renders.site_locator").site_at(page, key)
    if allow:
        hosts = service("renders.hosts").AllowedHosts(allow)
        outside = service("renders.outside").FirstOf(outside, hosts)
    given = None if data is None else data_of(data)
    if tool is not None:
        # of a table the first row tells
        row = given[0] if isinstance(given, list) else given
        site = site if row is None else service("renders.site").WithData(site, row)
        return tool(page, service("renders.pool").PageSource("", site, outside), wanted, json)
    assert output is not None
    if isinstance(given, list) and kind.image is not None:
        raise typer.BadParameter("--data of rows and an image sequence do not go together")
    if isinstance(given, list):
        films = Batch(site, outside, wanted, output, given)
        return _batch(page, films, jobs, json, allow_incomplete, max_seconds, max_cost)
    if given is not None:
        site = service("renders.site").WithData(site, given)
    began = time.monotonic()
    with (
        target_of(output, kind) as (target, finish),
        part_progress(Path(page).name, "frames") as progress,
    ):
        made = service("renders.render").render(
            site,
            wanted,
            target,
            jobs=jobs,
            slices=slices,
            outside=outside,
            progress=Caps(max_seconds, max_cost, progress),
        )
        seconds = time.monotonic() - began
        facts = facts_of(page, output, wanted.film, made, seconds, given)
        finish()
    tell(made.notes)
    # The film itself may be on stdout: then words go to stderr.
    say(json_line(facts) if json else line_of(facts), err=output == "-")
    return _INCOMPLETE if made.notes.incomplete and not allow_incomplete else 0


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
                    code = code or _INCOMPLETE
                seconds = sum(sum(one.seconds.values()) for one in film.rendered.slices)
                facts = facts_of(
                    page, str(film.path), films.stored, film.rendered, seconds, film.row
                )
                say(json_line(facts) if json else line_of(facts))
    return code
