"""From the names on the command line to inputs, several at a time, and to where output goes."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import typer

from fragdex.cli.output import complain, counting, emit, exit_code, system_message
from fragdex.errors import FragdexError

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
    inputs: list[str] = []
    for name in names:
        if is_url(name) or os.path.lexists(name) or not glob.has_magic(name):
            inputs.append(name)
            continue
        matches = sorted(glob.glob(name, recursive=True))
        if not matches:
            raise typer.BadParameter(f"nothing matches {name}")
        inputs += matches
    return inputs if repeated else list(dict.fromkeys(inputs))


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """What came of one input: a value or a complaint, and notes for stderr."""

    name: str
    value: Result | None = None
    error: str | None = None
    code: int = 0
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class InputWork:
    """Work on many inputs; a bad one is complained about and the others continue.

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
        return Outcome(name, error=system_message(error), code=exit_code(error))
    return Outcome(name, value, notes=tuple(notes))


def into_folder(output: str | None) -> bool:
    """Whether an -o names a folder: one that is there, or any that ends like one.

    >>> into_folder("clips/"), into_folder("clip.mp4"), into_folder(None)
    (True, False, False)
    """
    return output is not None and (output.endswith(("/", os.sep)) or os.path.isdir(output))


def places(
    names: Sequence[str], output: str | None, suffix: Callable[[str], str], what: str
) -> dict[str, str]:
    """The output of each input.

    Args:
        names: the inputs.
        output: a file (- is stdout) for one input; a folder, which is created; None: next to each.
        suffix: name → how the file ends that is called after it.
        what: the things that are written, for complaints.

    Raises:
        typer.BadParameter: two inputs would go to one place, or one over itself.

    >>> places(["a/b.mp4"], None, lambda name: ".png", "plots")
    {'a/b.mp4': 'a/b.png'}
    """
    if output is not None and not into_folder(output):
        if len(names) > 1:
            raise typer.BadParameter(
                f"{len(names)} inputs, and one place for their {what}: give a folder with -o"
            )
        outputs = {names[0]: output}
    else:
        if output is not None:
            os.makedirs(output, exist_ok=True)
        outputs = {
            name: os.path.join(_folder(name, output), stem(name) + suffix(name)) for name in names
        }
    owners: dict[str, str] = {}
    for name, place in outputs.items():
        if place == STDIN:
            continue
        where = os.path.realpath(place)
        if where == os.path.realpath(name):
            raise typer.BadParameter(f"{name} would overwrite itself: give another -o")
        if where in owners:
            raise typer.BadParameter(f"{owners[where]} and {name} would both be written to {place}")
        owners[where] = name
    return outputs


def _folder(name: str, output: str | None) -> str:
    if output is not None:
        return output
    return "" if is_url(name) or name == STDIN else os.path.dirname(name)


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
    work = InputWork(title)

    def pieces() -> Iterator[str]:
        for name, text in work.each(ask, names, jobs):
            yield f"{name}:\n{text}" if titles and len(names) > 1 else text

    emit(pieces(), output)
    return work.code
