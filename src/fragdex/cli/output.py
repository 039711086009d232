"""What a command writes: data on stdout or to files; complaints, notes and progress on stderr."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from fragdex.errors import printable

FLUSH_S = 0.1
"""So long a reader of stdout waits at most for what is written."""


def to_stdout(target: str | None) -> bool:
    """Whether an `-o` names stdout."""
    return target is None or target == "-"


def json_line(value: Any) -> str:
    """One compact JSON document and a line break; NaN and infinities are refused."""
    return json_text(value) + "\n"


def json_text(value: Any) -> str:
    """A value as JSON, safe on a terminal; NaN and infinities are refused."""
    return printable(json.dumps(value, ensure_ascii=False, allow_nan=False))


def emit(pieces: Iterable[str | bytes], target: str | None) -> None:
    """Write pieces as they come to stdout, or to a file, which is replaced at the very end.

    Text is for people or JSON: what a terminal would obey in it is escaped. Give bytes where a form
    has an escaping of its own.

    Raises:
        OSError: as the system gives it.
    """
    if to_stdout(target):
        stream = sys.stdout.buffer
        flushed = 0.0
        for piece in _encoded(pieces):
            stream.write(piece)
            # The first piece at once, and no system call for each of a million lines.
            if (now := time.monotonic()) - flushed > FLUSH_S:
                stream.flush()
                flushed = now
        stream.flush()
        return
    assert target is not None
    from fragdex.sources.files import write_file

    validate_folder(target)
    write_file(target, _encoded(pieces))


def say(text: str, *, err: bool = False) -> None:
    """One line or a few for people, on stdout or stderr; what a terminal would obey is escaped."""
    stream = sys.stderr if err else sys.stdout
    stream.write(printable(text, lines=True))
    stream.flush()


def validate_folder(target: str) -> None:
    """Say plainly that the folder a file should go into is not there.

    Raises:
        FileNotFoundError: it is not.
    """
    folder = os.path.dirname(target) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)


def _encoded(pieces: Iterable[str | bytes]) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, str):
            # Box fields that are no UTF-8 hold lone surrogates: they go out as the bytes they were.
            yield printable(piece, lines=True).encode("utf-8", "surrogateescape")
        else:
            yield piece


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


def system_message(error: OSError) -> str:
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
