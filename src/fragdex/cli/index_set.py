"""`fragdex index … -o NAME.parquet`: many films to one set."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from fragdex.cli.inputs import is_url
from fragdex.cli.output import need_folder, say
from fragdex.cli.report import complain, counting

__all__ = ["index_set"]


def index_set(names: Sequence[str], output: str, jobs: int) -> int:
    """Write a set; the exit code is 2 where a film is broken."""
    from multiprocessing import get_context

    from fragdex.data import write_set
    from fragdex.data.film_listing import listed

    need_folder(output)
    # Indexing local files is computing: processes. Remote films are waited for: threads.
    local = jobs > 1 and not any(map(is_url, names))
    with counting("index", len(listed(names)) if local else 0) as advance:

        def each(name: str, error: str | None) -> None:
            advance()
            if error is not None:
                complain(error if name in error else f"{name}: {error}")

        if local:
            with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
                summary = write_set(names, output, jobs=jobs, executor=pool, each=each)
        else:
            summary = write_set(names, output, jobs=jobs, each=each)
    told = [f"{summary.films} films", f"{summary.indexed} indexed"]
    for count, word in (
        (summary.unchanged, "unchanged"),
        (summary.gone, "gone"),
        (len(summary.broken), "broken"),
    ):
        if count:
            told.append(f"{count} {word}")
    say(f"{output}: {', '.join(told)}\n")
    return 2 if summary.broken else 0
