"""Many films to a set: indexed in parallel, going on where a run before ended."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Unpack

from fragdex.data.film_listing import ListedFilm, listed
from fragdex.data.set_parts import Known, SetParts, row_of
from fragdex.errors import FragdexError
from fragdex.sources import SourceOptions, check_options

_AHEAD: Final = 4
"""Films a thread that wait for their turn."""


@dataclass(slots=True)
class SetSummary:
    """What came of writing a set.

    Attributes:
        films: names in the set, broken ones too.
        indexed: films that were indexed.
        unchanged: films that were as the set knew them.
        gone: films that the set had, and that are no longer named.
        broken: name → what is wrong with it; the set has these rows, without an index.

    >>> SetSummary(films=2, indexed=1, unchanged=1)
    SetSummary(films=2, indexed=1, unchanged=1, gone=0, broken={})
    """

    films: int = 0
    indexed: int = 0
    unchanged: int = 0
    gone: int = 0
    broken: dict[str, str] = field(default_factory=dict)


def write_set(
    what: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    executor: Executor | None = None,
    each: Callable[[str, str | None], object] | None = None,
    **options: Unpack[SourceOptions],
) -> SetSummary:
    """Index many films into one Parquet file, a row a film.

    A film that the file has already, of the same size and of the same entity tag or date, is not
    indexed again; one that was broken is tried again. What is done is saved every few films in a
    folder beside the file, so that a run that was ended goes on there. The file itself is replaced
    at the end.

    Args:
        what: paths, folders (all films below them), globs with `**`, URLs, and the same for
            buckets (`s3://bucket/folder/`, `s3://bucket/**/*.mp4`).
        path: of the set. Paths of films are written as they are seen from there.
        jobs: films that are indexed at once; None: twice the processors.
        executor: where they are indexed, such as a `ProcessPoolExecutor`; None: in `jobs` threads.
        each: called with the name of each film once it is done, and with what is wrong with it.
        options: passed on to `open_source`; with `store` or `filesystem`, names are looked up
            there.

    Raises:
        SourceNotFound: a folder or glob has no film.
        DamagedIndex: the file is there, and is no set.
        MissingExtra: pyarrow is not installed.
        OSError: the file cannot be written.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "set.parquet")
    >>> write_set(["fixtures/open-gop.mp4", "fixtures/frag-cmaf.mp4"], path)
    SetSummary(films=2, indexed=2, unchanged=0, gone=0, broken={})
    >>> write_set(["fixtures/open-gop.mp4"], path)
    SetSummary(films=1, indexed=0, unchanged=1, gone=1, broken={})
    """
    check_options("write_set", options, ("jobs", "executor", "each"))
    if jobs is not None and jobs < 1:
        raise ValueError(f"at least one job, not {jobs}")
    names = [what] if isinstance(what, str | os.PathLike) else what
    films = listed(
        [os.fspath(name) for name in names],
        store=options.get("store"),
        filesystem=options.get("filesystem"),
    )
    elsewhere = options.get("store") is not None or options.get("filesystem") is not None
    folder = os.path.dirname(os.path.abspath(path))
    named = {(f.name if elsewhere else _seen_from(folder, f.name)): f for f in films}
    summary = SetSummary(films=len(named))
    with SetParts(os.fspath(path)) as parts:
        known = parts.known()
        summary.gone = len(known.keys() - named.keys())
        work: list[tuple[str, ListedFilm]] = []
        for name, film in named.items():
            if name in known and known[name].same_as(film):
                parts.keep(name)
                summary.unchanged += 1
            else:
                work.append((name, film))
        workers = jobs or 2 * (os.cpu_count() or 1)
        own = ThreadPoolExecutor(workers, "fragdex-set") if executor is None else None
        run = executor or own
        assert run is not None
        try:
            ordered = _in_order(run, work, known, options, _AHEAD * workers)
            for name, (row, error) in ordered:
                if row is not None:
                    summary.indexed += 1
                    parts.add(row)
                elif error is not None:
                    summary.broken[name] = error
                    parts.add(_broken(name, named[name], error))
                else:
                    summary.unchanged += 1
                    parts.keep(name)
                if each is not None:
                    each(name, error)
        finally:
            if own is not None:
                own.shutdown(cancel_futures=True)
        parts.finish()
    return summary


Result = tuple[dict[str, Any] | None, str | None]


def _in_order(
    run: Executor,
    work: list[tuple[str, ListedFilm]],
    known: dict[str, Known],
    options: SourceOptions,
    ahead: int,
) -> Iterator[tuple[str, Result]]:
    waiting: list[tuple[str, Future[Result]]] = []
    left = iter(work)
    try:
        while True:
            while len(waiting) < ahead and (one := next(left, None)) is not None:
                name, film = one
                job = partial(_indexed, film, known.get(name), name, options)
                waiting.append((name, run.submit(job)))
            if not waiting:
                return
            name, future = waiting.pop(0)
            yield name, future.result()
    finally:
        for _, future in waiting:
            future.cancel()


def _indexed(film: ListedFilm, known: Known | None, name: str, options: SourceOptions) -> Result:
    try:
        return row_of(film, known, name, options), None
    except (FragdexError, OSError) as error:
        return None, str(error)


def _broken(name: str, film: ListedFilm, error: str) -> dict[str, Any]:
    return {
        "path": name, "size": film.size, "etag": film.etag, "mtime_ns": film.mtime_ns,
        "error": error, "tracks": [], "init": None, "index": None,
    }  # fmt: skip


def _seen_from(folder: str, name: str) -> str:
    """A local path as seen from the folder of the set, if it is below; else the whole path."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name):
        return name
    path = os.path.abspath(name)
    inside = os.path.commonpath([folder, path]) == folder
    return os.path.relpath(path, folder).replace(os.sep, "/") if inside else path
