"""From the names on the command line to inputs, one after the other or several at a time."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import typer

from fragdex.cli.report import complain, counting, exit_code, told
from fragdex.errors import FragdexError

__all__ = ["Outcome", "Work", "expand", "is_url", "stem"]

Result = TypeVar("Result")

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
STDIN = "-"


def is_url(name: str) -> bool:
    """Whether a name is a URL and no path.

    >>> is_url("https://example.org/a.mp4"), is_url("a.mp4")
    (True, False)
    """
    return _URL.match(name) is not None


def stem(name: str) -> str:
    """An input's name without folder, query and suffix: what files made from it are called.

    >>> stem("https://example.org/films/a.mp4?token=1"), stem("b/c.mp4"), stem("-")
    ('a', 'c', 'stdin')
    """
    if name == STDIN:
        return "stdin"
    path = re.split(r"[?#]", name)[0].rstrip("/") if is_url(name) else name
    return os.path.splitext(os.path.basename(path))[0] or "index"


def expand(names: Sequence[str], *, repeated: bool = False) -> list[str]:
    """The inputs that names and globs stand for, in order, each once unless it may be repeated.

    Raises:
        typer.BadParameter: a glob matches nothing.
    """
    found: list[str] = []
    for name in names:
        if is_url(name) or os.path.lexists(name) or not glob.has_magic(name):
            found.append(name)
            continue
        matches = sorted(glob.glob(name, recursive=True))
        if not matches:
            raise typer.BadParameter(f"nothing matches {name}")
        found += matches
    return found if repeated else list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """What came of one input: a value or a complaint, and notes for stderr."""

    name: str
    value: Result | None = None
    error: str | None = None
    code: int = 0
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Work:
    """Work on many inputs; a bad one is complained about and the others go on.

    Attributes:
        code: the exit code so far: 2 after a bad input.
    """

    title: str
    code: int = field(default=0)

    def each(
        self, work: Callable[[str], tuple[Result, Sequence[str]]], names: Sequence[str], jobs: int
    ) -> Iterator[tuple[str, Result]]:
        """Name and result of each good input, in the order given.

        Args:
            work: name → result and notes; at the top of a module, so that a process can find it.
            names: the inputs.
            jobs: processes to use; 1 works in this one.
        """
        with counting(self.title, len(names)) as advance:
            for outcome in _outcomes(work, names, min(jobs, len(names))):
                advance()
                for note in outcome.notes:
                    complain(f"{outcome.name}: {note}")
                if outcome.error is not None:
                    self.fail(outcome.name, outcome.error, outcome.code)
                else:
                    # a value is there wherever no error is
                    yield outcome.name, outcome.value  # type: ignore[misc]

    def fail(self, name: str, error: str, code: int = 2) -> None:
        """Say what is wrong with an input, and remember it for the exit code."""
        complain(error if error.startswith(f"{name}:") or name in error else f"{name}: {error}")
        self.code = max(self.code, code)


def _outcomes(
    work: Callable[[str], Any], names: Sequence[str], jobs: int
) -> Iterator[Outcome[Any]]:
    if jobs < 2:
        for name in names:
            yield _one(work, name)
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(_one, [work] * len(names), names)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _one(work: Callable[[str], Any], name: str) -> Outcome[Any]:
    try:
        value, notes = work(name)
    except BrokenPipeError:
        raise
    except FragdexError as error:
        return Outcome(name, error=str(error), code=2)
    except OSError as error:
        return Outcome(name, error=told(error), code=exit_code(error))
    return Outcome(name, value, notes=tuple(notes))
