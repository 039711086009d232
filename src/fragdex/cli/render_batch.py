"""`fragdex render --data rows.csv`: a film for each row, several at once.

What was made is written down beside the films, with what each was made of. Whoever runs the same
command again makes only what is missing, or would be another film now.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from fragdex.cli.output import need_folder
from fragdex.errors import FragdexError

if TYPE_CHECKING:
    from fragdex.rendering.outputs import Film as StoredFilm
    from fragdex.rendering.render import Rendered
    from fragdex.rendering.site import Outside, Site
    from fragdex.rendering.spec import RenderSpec


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
            raise typer.BadParameter(f"--data {path}: no {kind}: {error}") from None
    if is_table and any(None in row or None in row.values() for row in data):
        raise typer.BadParameter(f"--data {path}: rows differ in their number of columns")
    if isinstance(data, list) and all(isinstance(row, dict) for row in data):
        return _need_rows(path, data)
    if not isinstance(data, dict):
        raise typer.BadParameter(f"--data {path}: an object is expected, or a list of objects")
    return data


def _need_rows(path: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not rows:
        raise typer.BadParameter(f"--data {path}: it has no rows")
    return rows


@dataclass(frozen=True, slots=True)
class Film:
    """A film of a batch: its row, its file, and how it went.

    Attributes:
        rendered: None where it was there already, or failed.
        error: why it failed, or None.
    """

    row: dict[str, Any]
    path: Path
    rendered: Rendered | None = None
    error: FragdexError | None = None


class _Stopped(Exception):
    """Nobody waits for the films any more."""


class Batch:
    """Films of one page, each with a row of its own as data.

    Args:
        site: of the page; outside: what it may ask for beyond it.
        spec: of each film.
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
            Film(row, path) for row, path in zip(rows, _paths(output, rows), strict=True)
        ]
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._done: dict[Path, dict[str, Any]] = {}

    @property
    def stored(self) -> StoredFilm:
        """How each is stored."""
        return self._spec.film

    def __len__(self) -> int:
        return len(self._films)

    def run(self, jobs: int | None, progress: Callable[[int, int], object]) -> Iterator[Film]:
        """Make what is to be made; each film, in order, as soon as it and those before are done.

        Args:
            jobs: films at once; as many as processors.
            progress: told how many frames are done, of how many that are known of.
        """
        frames: dict[Path, tuple[int, int]] = {}

        def render_film(film: Film) -> Film:
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

    def _made(self, film: Film, progress: Callable[[int, int], None]) -> Film:
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
            return Film(film.row, film.path, error=error)
        reads = {name: digest for one in rendered.slices for name, digest in one.reads.items()}
        self._note(film.path, reads)
        return Film(film.row, film.path, rendered)

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
            # What cannot be read is made anew.
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
            raise typer.BadParameter(f"-o {output}: {name} {why} in row {number}") from None
        except (ValueError, IndexError, AttributeError) as error:
            raise typer.BadParameter(f"-o {output}: {error}") from None
        if path in numbers:
            raise typer.BadParameter(
                f"-o {output}: rows {numbers[path]} and {number} would both be {path};"
                " a column in braces tells them apart, such as {row}"
            )
        numbers[path] = number
        need_folder(str(path))
    return list(numbers)


def _leads_away(value: str) -> bool:
    """Whether a value is no part of a file's name: the row must not choose the folder."""
    return not value or "\0" in value or value.startswith(".") or "/" in value or "\\" in value
