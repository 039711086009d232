"""Commands that ask each input the same question and print the answers, in the order given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fragdex.cli.inputs import Work, expand
from fragdex.cli.output import emit

__all__ = ["answer"]


def answer(
    title: str,
    ask: Callable[[str], tuple[str, Sequence[str]]],
    files: Sequence[str],
    *,
    jobs: int,
    output: str | None,
    titles: bool = False,
) -> int:
    """Print what each input answers; the exit code.

    Args:
        title: what a progress bar says.
        ask: name → text and notes for stderr; at the top of a module, so that a process finds it.
        files: names and globs.
        jobs: processes to use.
        output: where to; None and -: stdout.
        titles: put the name of each input above its answer, where there are several.
    """
    names = expand(files)
    work = Work(title)

    def pieces() -> Iterator[str]:
        for name, text in work.each(ask, names, jobs):
            yield f"{name}:\n{text}" if titles and len(names) > 1 else text

    emit(pieces(), output)
    return work.code
