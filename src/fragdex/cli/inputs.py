"""From the names on the command line to inputs and their indexes, several at a time; to outputs."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import typer

from fragdex.cli.output import complain, counting, emit, exit_code, system_message
from fragdex.errors import FragdexError
from fragdex.record import record

if TYPE_CHECKING:
    from fragdex.seeking.model import Index
    from fragdex.seeking.times import TimeLike
    from fragdex.sources import Source


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


@record(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """What came of one input: a value or a complaint, and notes for stderr."""

    name: str
    value: Result | None = None
    error: str | None = None
    code: int = 0
    notes: tuple[str, ...] = ()


@record(slots=True)
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


PIECE = 1 << 20


def saved_form(name: str) -> Literal["fidx", "json"] | None:
    """Which form of a saved index a name stands for; None: none, so it is media.

    A local file is recognized by its start, a URL by the end of its path.
    """
    if name == STDIN:
        return None
    if is_url(name):
        return "fidx" if name.partition("?")[0].endswith(".fidx") else None
    from fragdex.formats.fidx_head import MAGIC

    try:
        with open(name, "rb") as file:
            head = file.read(16)
    except OSError:
        return None
    if head.startswith(MAGIC):
        return "fidx"
    # A box that starts with a brace would be one of 2 GiB.
    return "json" if head.lstrip().startswith(b"{") else None


def open_any(name: str, *, compare: bool = True, **options: Any) -> Index:
    """The index that a name stands for; `options` are those of `fragdex.index`, None left out.

    Args:
        options: `period` too, the number of one.
        compare: refuse a .fidx whose media file is at hand and has changed; `ignore_mtime` among
            the options leaves out the modification time, and `follow` opens media anywhere.

    Raises: as `fragdex.index` and `fragdex.open_index`.
    """
    import fragdex

    if (period := options.pop("period", None)) is not None:
        return open_any(name, compare=compare, **options).of_period(period)
    given = {
        key: value for key, value in options.items() if value is not None and value is not False
    }
    ignore_mtime = bool(given.pop("ignore_mtime", False))
    follow = bool(given.pop("follow", False))
    if name == STDIN:
        return _from_stdin(given)
    form = saved_form(name)
    budget = {key: given[key] for key in ("max_bytes", "max_requests") if key in given}
    if form == "fidx":
        # a local file is mapped; anything else is read as a whole, within the budget
        source = fragdex.open_source(name, **budget) if is_url(name) else name
        index = fragdex.open_index(source, follow=follow)
        if compare and (media := media_at_hand(index, name)) is not None:
            from fragdex.formats.fidx import refuse_other_media

            refuse_other_media(index, media, ignore_mtime=ignore_mtime)
        return index
    if form == "json":
        from fragdex.errors import NotISOBMFF
        from fragdex.formats import wire_reading

        with open(name, "rb") as file:
            index = wire_reading.read(file.read())
        if not index.tracks:
            raise NotISOBMFF(
                f"{name} is JSON, and no index of media",
                expected="an object with a member for each track, as `fragdex index --json` writes",
                found="no track",
            )
        return index
    return fragdex.index(name, **given)


def _from_stdin(options: dict[str, Any]) -> Index:
    """Index what comes through a pipe, in one pass and without keeping it."""
    import fragdex

    known = {key: options[key] for key in ("md5", "init", "strict") if key in options}
    indexer = fragdex.Indexer(**known)
    while piece := sys.stdin.buffer.read(PIECE):
        indexer.feed(piece)
    return indexer.finish()


@contextmanager
def opened_media(
    name: str, opening: Mapping[str, Any]
) -> Iterator[tuple[Index, Source, bytes | None]]:
    """The index that a name stands for, the media it describes, open, and what `init` names.

    Args:
        opening: what was given of `init`, `strict`, `period`, `ignore_mtime`, `follow`, `max_bytes`
            and `max_requests`.

    Raises: as `open_any` and `media_of`.
    """
    import fragdex

    saved = None
    if saved_form(name):
        saved = open_any(name, ignore_mtime=opening["ignore_mtime"], follow=opening["follow"])
        if opening["ignore_mtime"]:
            saved.file = replace(saved.file, mtime_ns=None)
    media = name if saved is None else media_of(saved, name)
    init = None
    if opening.get("init") is not None:
        with fragdex.open_source(opening["init"]) as source:
            init = b"".join(bytes(piece) for piece in source.pieces())
    with source_of(media, opening) as source:
        index = saved or fragdex.index(source, **_how(opening))
        yield _of_period(index, opening), source, init


def source_of(place: str, opening: Mapping[str, Any]) -> Source:
    """A file or URL, open; no more is read of it than the options allow."""
    from fragdex.sources import open_source

    return open_source(place, **{key: opening[key] for key in ("max_bytes", "max_requests")})


def exact_again(
    index: Index,
    source: Source,
    opening: Mapping[str, Any],
    span: tuple[TimeLike, TimeLike, Sequence[int] | None] | None = None,
) -> Index:
    """An index that knows its samples, where one from a sidx, an mfra or a .fidx does not.

    Args:
        index: the one that does not.
        source: the media.
        opening: as `opened_media` takes it.
        span: start, stop and tracks of a clip: only its fragments are read, where that will do.
    """
    import fragdex
    from fragdex.errors import InexactIndex
    from fragdex.fragments.table import FragmentFlags
    from fragdex.indexing.growing import exact_part
    from fragdex.muxing.clip import clip_range

    how = _how(opening)
    virtual = any((t.fragments.flags & FragmentFlags.VIRTUAL).any() for t in index.tracks)
    if span is not None and not virtual and not any(how.values()):
        with suppress(InexactIndex):
            return exact_part(index, source, clip_range(index, *span))
    return _of_period(fragdex.index(source, exact=True, **how), opening)


def _of_period(index: Index, opening: Mapping[str, Any]) -> Index:
    number = opening.get("period")
    return index if number is None else index.of_period(number)


def _how(opening: Mapping[str, Any]) -> dict[str, Any]:
    return {key: opening[key] for key in ("init", "strict") if key in opening}


def media_of(index: Index, name: str) -> str:
    """The media file that an input stands for: itself, or what a saved index was made of.

    Raises:
        SourceNotFound: the saved index does not say.
    """
    from fragdex.errors import SourceNotFound

    if saved_form(name) is None:
        return name
    if not index.file.name:
        raise SourceNotFound(
            f"{name} does not say which file it describes", advice="name the media file itself"
        )
    return media_at_hand(index, name) or index.file.name


def media_at_hand(index: Index, name: str) -> str | None:
    """The local media file of a .fidx: with the recorded name next to it, or at the recorded path.

    The path is looked at where it leads below the folder of the .fidx, or is to be followed.
    """
    from fragdex.sources import ForeignName

    recorded = index.file.name
    if not recorded or is_url(recorded) or is_url(name):
        return None
    beside = os.path.join(os.path.dirname(name), os.path.basename(recorded))
    known = (beside,) if isinstance(recorded, ForeignName) else (beside, recorded)
    return next((path for path in known if os.path.isfile(path)), None)


def notes(index: Index, *, findings: bool = True) -> Sequence[str]:
    """What stderr says of an index that was made: an incomplete input, and what was odd."""
    lines = []
    if not index.complete:
        lines.append(f"truncated or still growing: indexed up to byte {index.resume_offset}")
    if findings:
        lines += [str(f) for f in index.findings if f.code != "truncated"]
    return lines


def bytes_of_view(view: Any, source: Any, known: Any = None) -> Iterator[bytes]:
    """The bytes of a view, piece by piece.

    Args:
        view: of one file or several.
        source: that of its one file, open, or one for each.
        known: what the sources must be; None: what the view says.
    """
    from fragdex.muxing.view import Sources

    with Sources(known or view.sources, source) as sources:
        yield from sources.bytes_of(view.blocks())
