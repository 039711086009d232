"""What a command says beside its data: complaints, notes and progress bars, all on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fragdex.errors import printable

__all__ = ["byte_progress", "complain", "counting", "exit_code", "part_progress", "told"]

Progress = Callable[[int, int | None], object]


def complain(message: str) -> None:
    """One line on stderr, whatever line breaks a file name or a file brings in.

    Control characters are shown escaped: a terminal would obey them.
    """
    line = printable(message)
    try:
        print(f"fragdex: {line}", file=sys.stderr)
    except UnicodeEncodeError:
        print(f"fragdex: {line.encode('ascii', 'backslashreplace').decode()}", file=sys.stderr)


def told(error: OSError) -> str:
    """What the system says went wrong, without its number; errors of ours as they are."""
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def exit_code(error: Exception) -> int:
    """2 for what the user named or gave, 1 for a machine that fails (a full disk, say)."""
    from fragdex.errors import FragdexError

    named = (
        FragdexError,
        FileNotFoundError,
        NotADirectoryError,
        IsADirectoryError,
        PermissionError,
    )
    return 2 if isinstance(error, named) else 1


@contextmanager
def byte_progress(title: str) -> Iterator[Progress | None]:
    """A bar of bytes done, to be called with (done, total or None); None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[[], object]]:
    """A bar of inputs done, to be called after each; silent for one input or without a terminal."""
    if total < 2 or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=total)
        yield lambda: bars.advance(task)


@contextmanager
def part_progress(title: str, parts: str) -> Iterator[Callable[[int, int], object]]:
    """A bar of parts done, to be called with (done, total); silent where nobody watches.

    What goes to stdout meanwhile stays above the bar where both are on one terminal, and goes by
    itself into a pipe.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(parts),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
    ) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
