"""`fragdex render`: a page becomes a video or a still, here or by a service."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fragdex.cli import options, render_tools
from fragdex.cli.inputs import is_url
from fragdex.cli.output import (
    byte_progress,
    complain,
    json_line,
    part_progress,
    say,
    validate_folder,
)
from fragdex.cli.render_fields import (
    INCOMPLETE,
    FileKind,
    facts_of,
    line_of,
    spec_of,
    target_of,
    tell_notes,
)
from fragdex.errors import FragdexError
from fragdex.record import record

if TYPE_CHECKING:
    from fragdex.client import Client
    from fragdex.client.api import RenderRecord
    from fragdex.rendering.outputs import Film
    from fragdex.rendering.render import Rendered
    from fragdex.rendering.site import Outside, Site
    from fragdex.rendering.spec import RenderSpec


# `fragdex render --page-data rows.csv`: a video for each row, several at once.
#
# The list of results is stored next to the videos, with the inputs of each. Running the same
# command again makes only what is missing or would differ now.


_DONE: Final = ".fragdex-renders.json"
_DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}


def data_of(path: str) -> dict[str, Any] | list[dict[str, Any]]:
    """The data in a file: an object, or the rows of a table.

    Raises:
        typer.BadParameter: it holds neither.
    """
    suffix = Path(path).suffix.lower()
    is_table = suffix in _DELIMITERS
    with open(path, encoding="utf-8-sig", newline="") as file:
        try:
            if is_table:
                data: Any = list(csv.DictReader(file, delimiter=_DELIMITERS[suffix], strict=True))
            else:
                data = json.load(file)
                json.dumps(data, allow_nan=False)
        except (ValueError, RecursionError, csv.Error) as error:
            kind = "table" if is_table else "JSON"
            raise typer.BadParameter(f"--page-data {path}: no {kind}: {error}") from None
    if is_table and any(None in row or None in row.values() for row in data):
        raise typer.BadParameter(f"--page-data {path}: rows differ in their number of columns")
    if is_table:
        _need_own_separator(path, _DELIMITERS[suffix], data)
    if isinstance(data, list) and all(isinstance(row, dict) for row in data):
        if not data:
            raise typer.BadParameter(f"--page-data {path}: it has no rows")
        return data
    if not isinstance(data, dict):
        raise typer.BadParameter(f"--page-data {path}: an object is expected, or a list of objects")
    return data


def _need_own_separator(path: str, separator: str, rows: list[dict[str, str]]) -> None:
    """Refuse a table of one column that has another separator in each row."""
    if rows and len(rows[0]) == 1:
        [column] = rows[0]
        lines = [column, *(row[column] for row in rows)]
        for mark in {";", "\t", ","} - {separator}:
            if all(mark in line for line in lines):
                raise typer.BadParameter(
                    f"--page-data {path}: one column was found, {column!r}: columns are separated"
                    f" by {separator!r}, not by {mark!r}"
                )


@record(frozen=True, slots=True)
class BatchFilm:
    """A video of a batch: its row, its file, and how it went.

    Attributes:
        rendered: None where it was there already, or failed.
        error: why it failed, or None.
    """

    row: dict[str, Any]
    path: Path
    rendered: Rendered | None = None
    error: FragdexError | None = None


class _Stopped(Exception):
    """Nobody waits for the videos any more."""


class FilmBatch:
    """Videos of one page, each with its own row as data.

    Args:
        site: of the page; outside: what it may ask for beyond it.
        spec: of each video.
        output: their names, with columns in braces; `{row}` is the number of the row, from 1.
        rows: in order.

    Raises:
        typer.BadParameter: two rows would make the same file, or a column is not there.
    """

    def __init__(
        self, site: Site, outside: Outside, spec: RenderSpec, output: str,
        rows: Sequence[dict[str, Any]],
    ) -> None:  # fmt: skip
        self._site, self._outside, self._spec = site, outside, spec
        self._films = [
            BatchFilm(row, path) for row, path in zip(rows, _paths(output, rows), strict=True)
        ]
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._done: dict[Path, dict[str, Any]] = {}

    @property
    def stored(self) -> Film:
        """How each is stored."""
        return self._spec.film

    def __len__(self) -> int:
        return len(self._films)

    def run(self, jobs: int | None, progress: Callable[[int, int], object]) -> Iterator[BatchFilm]:
        """Make what is to be made; each video, in order, as soon as it and those before are done.

        Args:
            jobs: videos at once; as many as processors.
            progress: told how many frames are done, of how many that are known of.
        """
        frames: dict[Path, tuple[int, int]] = {}

        def render_film(film: BatchFilm) -> BatchFilm:
            def tell(done: int, whole: int) -> None:
                if self._stopped.is_set():
                    raise _Stopped  # ends the browser
                with self._lock:
                    frames[film.path] = (done, whole)
                    progress(*(sum(part) for part in zip(*frames.values(), strict=True)))

            return self._made(film, tell)

        with ThreadPoolExecutor(jobs or os.cpu_count() or 1, "film") as threads:
            try:
                yield from threads.map(render_film, self._films)
            except BaseException:
                self._stopped.set()
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _made(self, film: BatchFilm, progress: Callable[[int, int], None]) -> BatchFilm:
        from fragdex.rendering.render import render as render_page
        from fragdex.rendering.site import WithData

        site = WithData(self._site, film.row)
        if self._is_there(film.path, site):
            return film
        try:
            rendered = render_page(
                site, self._spec, film.path, jobs=1, slices=1, outside=self._outside,
                progress=progress,
            )  # fmt: skip
        except FragdexError as error:
            return BatchFilm(film.row, film.path, error=error)
        reads = {name: digest for one in rendered.slices for name, digest in one.reads.items()}
        self._note(film.path, reads)
        return BatchFilm(film.row, film.path, rendered)

    def _is_there(self, path: Path, site: Site) -> bool:
        """Whether the file was made of what would be read now, and as it is wanted now."""
        with self._lock:
            note = self._notes(path.parent).get(path.name)
        if note is None or not path.exists() or note["wanted"] != self._recipe(path):
            return False
        for name, digest in note["reads"].items():
            asset = site.read(name)
            if (None if asset is None else asset.sha256) != digest:
                return False
        return True

    def _recipe(self, path: Path) -> str:
        seen = path.stat()
        text = f"{self._pixels} {self._spec} {seen.st_size} {seen.st_mtime_ns}"
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def _pixels(self) -> str:
        """What decides them besides the page: our scripts, the encoder, the browser."""
        from fragdex.rendering.recipe import browser_mark
        from fragdex.rendering.recipe import recipe as recipe_of

        mark = browser_mark()
        recipe: bytes = recipe_of(self._spec.view(), range(0), self._spec, mark)
        return recipe.hex()

    def _notes(self, folder: Path) -> dict[str, Any]:
        if folder not in self._done:
            self._done[folder] = {}
            # What cannot be read is made again.
            with suppress(OSError, ValueError):
                notes = json.loads((folder / _DONE).read_text("utf-8"))
                self._done[folder] = notes if isinstance(notes, dict) else {}
        return self._done[folder]

    def _note(self, path: Path, reads: Mapping[str, str | None]) -> None:
        with self._lock:
            notes = self._notes(path.parent)
            notes[path.name] = {"wanted": self._recipe(path), "reads": dict(reads)}
            new = path.parent / f"{_DONE}.new"
            new.write_text(json.dumps(notes), "utf-8")
            new.replace(path.parent / _DONE)


def _paths(output: str, rows: Sequence[Mapping[str, Any]]) -> list[Path]:
    """The file of each row."""
    digits = len(str(len(rows)))
    numbers: dict[Path, int] = {}
    for number, row in enumerate(rows, 1):
        texts = {name: str(value) for name, value in row.items()}
        values = {name: text for name, text in texts.items() if not _leads_away(text)}
        try:
            path = Path(output.format_map({"row": f"{number:0{digits}}", **values}))
        except KeyError as error:
            name = error.args[0]
            why = "cannot be part of a name" if name in row else "is not there"
            found = "" if name in row else f"; its columns are {', '.join(map(repr, row))}"
            raise typer.BadParameter(f"-o {output}: {name} {why} in row {number}{found}") from None
        except (ValueError, IndexError, AttributeError) as error:
            raise typer.BadParameter(f"-o {output}: {error}") from None
        if path in numbers:
            raise typer.BadParameter(
                f"-o {output}: rows {numbers[path]} and {number} would both be {path};"
                " a column in braces tells them apart, such as {row}"
            )
        numbers[path] = number
        validate_folder(str(path))
    return list(numbers)


def _leads_away(value: str) -> bool:
    """Whether a value is not a part of a file's name: the row must not choose the folder."""
    return not value or "\0" in value or value.startswith(".") or "/" in value or "\\" in value


Animated = Annotated[bool, typer.Option("--animated", help="Make an animated .webp.")]
Data = Annotated[
    str | None,
    typer.Option(
        "--page-data",
        metavar="FILE",
        help="Data for the page, as window.fragdex.data: .json, or .csv for a video per row.",
    ),
]
Slices = Annotated[
    int | None,
    typer.Option(
        "--slices",
        min=1,
        metavar="N",
        help="Divide the frames into N parts.",
        show_default="as many as processes",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--processes",
        min=1,
        metavar="N",
        help="Work in N processes: browsers.",
        show_default="one per processor, if there is enough work",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="HOST",
        help="The page may read from this host over https; may be repeated.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        envvar="FRAGDEX_KEY",
        help="API key of the service, or of the host of the URL.",
    ),
]
AllowIncomplete = Annotated[
    bool,
    typer.Option(
        "--allow-incomplete",
        help="Exit with 0 even if a script of the page failed, was blocked or is missing.",
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server", metavar="URL", help="The service, which renders PAGE.", show_default="here"
    ),
]
_RECORD_FACTS: Final = (
    "scale", "frame_rate", "frames", "data", "data_sha256", "blocked", "browser", "console",
    "incomplete", "refused", "loudness", "slices",
)  # fmt: skip


def render(
    page: Annotated[
        str,
        typer.Argument(
            metavar="PAGE",
            help="An HTML file, a folder with an index.html, or a URL; - for HTML from stdin."
            " With --server also a .zip or .tar.gz of such a folder.",
        ),
    ],
    output: str | None = None,
    animated: Animated = False,
    data: Data = None,
    slices: Slices = None,
    jobs: Jobs = None,
    allow: Allow = None,
    server: Server = None,
    key: Key = None,
    allow_incomplete: AllowIncomplete = False,
    check: render_tools.Check = False,
    contact_sheet: render_tools.ContactSheet = None,
    estimate: render_tools.Estimate = False,
    preview: render_tools.Preview = False,
    port: render_tools.Port = None,
    max_seconds: render_tools.MaxSeconds = None,
    max_cost: render_tools.MaxCost = None,
    json: options.Json = False,
    **fields: Any,
) -> int:
    """Render a web page frame by frame: each frame shows exactly its time, however long it takes.

    The browser can read only the page's own files, or the host of the given URL. Blocked requests
    and errors of the page go to stderr. If a script of the page failed, was blocked or is
    missing, the video is still made, and the exit code is 3, as it is if --dry-run finds something.

    Examples:
      fragdex render page.html -o film.mp4 --size 1280x720 --fps 30 --duration 10
      fragdex render site/ -o film.mp4 --slices 4 --processes 2
      fragdex render page.html -o part.mp4 --start 10 --stop 1:02.5 --scale 2
      fragdex render page.html -o poster.png --at 2.5 --transparent
      fragdex render logo.html -o logo.webm --transparent --crf 12
      fragdex render page.html -o master.mov --codec prores --preset 4444
      fragdex render card.html -o 'cards/{name}.mp4' --page-data people.csv
      fragdex render site/ -o film.mp4 --server https://media.example.org
      fragdex render --preview page.html
      fragdex render --dry-run page.html
      fragdex render page.html -o sheet.png --contact-sheet 4x4
    """  # fmt: skip
    tool = render_tools.tool_of(
        output, fields["quality"], jobs, slices, check=check, contact_sheet=contact_sheet,
        estimate=estimate, preview=preview, port=port,
    )  # fmt: skip
    if output is None and tool is None:
        raise typer.BadParameter("an output is needed: -o film.mp4")
    given = None if data is None else data_of(data)
    if server is not None:
        here = {
            "--dry-run": check, "--contact-sheet": contact_sheet, "--estimate": estimate,
            "--preview": preview, "--slices": slices, "--processes": jobs, "--allow": allow,
            "--max-seconds": max_seconds, "--max-cost": max_cost, "-o -": output == "-",
            "--page-data of rows": isinstance(given, list),
        }  # fmt: skip
        if refused := [name for name, value in here.items() if value]:
            raise typer.BadParameter(f"{refused[0]} does not go with --server")
    if tool is None:
        kind = FileKind.of(output or "-", animated=animated)
    else:
        kind, fields["quality"] = FileKind("mp4"), None
    if server is not None:
        request = {**spec_of(kind, fields).as_request(), "data": given}
        return _render_remotely(
            page, str(output), kind, request, server, key,
            json=json, allow_incomplete=allow_incomplete,
        )  # fmt: skip
    with options.extra("render"):
        from fragdex.rendering.pool import PageSource
        from fragdex.rendering.render import render as render_page
        from fragdex.rendering.site import WithData
    spec = spec_of(kind, fields)
    site, outside = _site_of(page, key, allow)
    if tool is not None:
        # of a table the first row tells
        row = given[0] if isinstance(given, list) else given
        site = site if row is None else WithData(site, row)
        return tool(page, PageSource("", site, outside), spec, json)
    assert output is not None
    if isinstance(given, list) and kind.image is not None:
        raise typer.BadParameter("--page-data of rows and an image sequence do not go together")
    if isinstance(given, list):
        films = FilmBatch(site, outside, spec, output, given)
        return _batch(page, films, jobs, json, allow_incomplete, max_seconds, max_cost)
    if given is not None:
        site = WithData(site, given)
    began = time.monotonic()
    with (
        target_of(output, kind) as (target, finish),
        part_progress(Path(page).name, "frames") as progress,
    ):
        rendered = render_page(
            site,
            spec,
            target,
            jobs=jobs,
            slices=slices,
            outside=outside,
            progress=render_tools.Caps(max_seconds, max_cost, progress),
        )
        seconds = time.monotonic() - began
        facts = facts_of(page, output, spec.film, rendered, seconds, given)
        finish()
    tell_notes(rendered.notes)
    # The video itself may be on stdout: then messages go to stderr.
    say(json_line(facts) if json else line_of(facts), err=output == "-")
    return INCOMPLETE if rendered.notes.incomplete and not allow_incomplete else 0


def _site_of(page: str, key: str | None, allow: list[str] | None) -> tuple[Site, Outside]:
    """The files of a page, and what it may ask for beyond them."""
    from fragdex.rendering.site import NOTHING, FirstOf, Page
    from fragdex.rendering.web import AllowedHosts, site_at

    site: Site
    outside: Outside
    if page == "-":
        site, outside = Page(_stdin_html()), NOTHING
    else:
        site, outside = site_at(page, key)
    return site, FirstOf(outside, AllowedHosts(allow)) if allow else outside


def _stdin_html() -> str:
    """The page that is given on stdin."""
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _batch(
    page: str, films: FilmBatch, jobs: int | None, json: bool, allow_incomplete: bool,
    max_seconds: float | None, max_cost: float | None,
) -> int:  # fmt: skip
    """Make videos of rows; 2 where one failed, 3 where a script of one did."""
    code = 0
    with part_progress(f"{Path(page).name}, {len(films)} videos", "frames") as progress:
        for film in films.run(jobs, render_tools.Caps(max_seconds, max_cost, progress)):
            if film.error is not None:
                complain(f"{film.path}: {film.error}")
                code = 2
            elif film.rendered is None:
                say(json_line({"file": str(film.path), "made_before": True}) if json
                    else f"{film.path}: there already\n")  # fmt: skip
            else:
                tell_notes(film.rendered.notes)
                if film.rendered.notes.incomplete and not allow_incomplete:
                    code = code or INCOMPLETE
                seconds = sum(sum(one.seconds.values()) for one in film.rendered.slices)
                facts = facts_of(
                    page, str(film.path), films.stored, film.rendered, seconds, film.row
                )
                say(json_line(facts) if json else line_of(facts))
    return code


def _render_remotely(
    page: str, output: str, kind: FileKind, request: Mapping[str, Any], server: str,
    key: str | None, *, json: bool, allow_incomplete: bool,
) -> int:  # fmt: skip
    """Send a page, have it rendered, receive the result and print what was made.

    Args:
        page: a file, a folder, an archive, or `-`; output: the file to be written.
        request: fields of `api.create_render`.

    Returns: the exit code.

    Raises:
        FragdexError: the page cannot be sent, or its render failed.
        ClientError: the service refuses, or does not answer.
    """
    if is_url(page):
        raise FragdexError(f"{page}: only files and folders can be sent to a service")
    if os.path.isdir(page) and not os.path.isfile(os.path.join(page, "index.html")):
        raise FragdexError(f"{page}: there is no index.html in the folder")
    from fragdex.cli import remote
    from fragdex.client import api

    name, began = Path(page).name, time.monotonic()
    with (
        remote.client_of(server, key) as client,
        target_of(output, kind) as (target, finish),
    ):
        record = _rendered(client, page, name, request)
        progress: Any
        with byte_progress(output) as progress:
            # by this name the service gives any result, with its true type
            client.download(api.download_render(record.id, "mp4"), target, progress=progress)
        facts = _record_facts(page, output, record, time.monotonic() - began)
        finish()
    tell_notes(record)
    say(json_line(facts) if json else line_of(facts))
    return INCOMPLETE if record.incomplete and not allow_incomplete else 0


def _rendered(client: Client, page: str, name: str, request: Mapping[str, Any]) -> RenderRecord:
    """The record of the render, once it is complete."""
    from fragdex.cli import remote
    from fragdex.client import api

    progress: Any
    if page == "-":
        record = client.render(html=_stdin_html(), **request)
    else:
        with byte_progress(name) as progress:
            record = client.render(page, progress=progress, **request)
    cancelled = remote.cancelled_by_ctrl_c(
        client, api.cancel_render(record.id), f"render {record.id}"
    )
    with cancelled, part_progress(name, "frames") as shown:
        remote.follow(client, api.get_render_progress(record.id), shown)
    record = client.send(api.get_render(record.id))
    if record.status != "complete":
        why = record.problem.detail if record.problem else f"the render is {record.status}"
        raise FragdexError(f"{page}: {why} (render {record.id})")
    return record


def _record_facts(page: str, output: str, record: RenderRecord, seconds: float) -> dict[str, Any]:
    from msgspec import to_builtins

    plain: dict[str, Any] = to_builtins(record)
    is_sound = record.media_type.startswith("audio/")
    sides = record.crop or record
    width, height = (
        None if is_sound or side is None else round(side * record.scale)
        for side in (sides.width, sides.height)
    )
    seconds_of_film = (record.frames or 0) / Fraction(record.frame_rate)
    return {
        "page": page,
        "file": output,
        "id": record.id,
        "byte_size": record.byte_size,
        "width": width,
        "height": height,
        "duration": 0 if record.time_ms is not None else round(float(seconds_of_film), 6),
        "sound": is_sound,
        "seconds": round(seconds, 3),
        **{name: plain[name] for name in _RECORD_FACTS},
    }
