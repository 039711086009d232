"""Repairs a stored file in a process of its own, and finds out which good file is most like it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import fragdex
from fragdex import ByteRange, Source, open_source
from fragdex.errors import FragdexError, SourceUnavailable
from fragdex.fragments.table import Int64
from fragdex.muxing.view import Scattered, SourceRange
from fragdex.record import record
from fragdex.sandbox.channel import Channel, opened
from fragdex.sandbox.child import ChildProcess, Failures, ParentSource, reads
from fragdex.sandbox.folders import OwnFolder, take_file
from fragdex.sandbox.walls import Walls
from fragdex.service.context import ServiceContext

if TYPE_CHECKING:
    from fragdex.repairing.repair import Repair

MEMORY: Final = 2 << 30
"""Bytes of data of the process."""
CPU_SECONDS: Final = 24 * 3600
MOST_SPANS: Final = 500
"""Spans of a report; the rest of the file is in the last one."""
COMPARED: Final = 8 << 20
"""First bytes of a file that are compared with a good one."""
ALIKE: Final = 0.8
"""Part of them that has to be in samples, found as the good file says."""

_LARGEST_FILE: Final = 1 << 30
_FAILURES: Final = Failures("the process that repairs files", "this file")
_HEAD, _RANGES = "head", "ranges"
_REPORT_SECONDS: Final = 0.5


@record(frozen=True, slots=True)
class RepairedFile:
    """A repaired file: bytes that were made, and ranges of the broken file after them.

    Attributes:
        starts, sizes: int64 of each range; not checked against the broken file.
        media_type: of the whole.
        report: JSON, as `RepairReport` has it.
    """

    head: bytes
    starts: Int64
    sizes: Int64
    media_type: str
    report: dict[str, Any]


def repaired(
    context: ServiceContext,
    key: str,
    like: str | None,
    *,
    rate: str | None,
    progress: Callable[[float], None],
    check: Callable[[], None],
) -> RepairedFile:
    """Repair a stored file.

    Args:
        key, like: of the file and of the good file in the store.
        rate: frames a second, as of `fragdex.repair`.
        progress: called with 0…1.
        check: called several times a second; what it raises ends the process.

    Raises:
        FragdexError: as `fragdex.repair`; Unprocessable, too, where it takes more time or memory
            than a file may, or breaks the process.
        Unavailable: the process was ended from outside.
    """

    def on_message(message: dict[str, Any]) -> None:
        progress(message["progress"])

    with OwnFolder() as folder:
        keys = [key] if like is None else [key, like]
        answer = _asked(
            context, keys, "repair", check, on_message, folder, (_HEAD, _RANGES), rate=rate
        )
        rows = np.fromfile(folder / _RANGES, np.int64).reshape(-1, 2)
        return RepairedFile(
            (folder / _HEAD).read_bytes(), rows[:, 0], rows[:, 1],
            str(answer["media_type"]), answer["report"],
        )  # fmt: skip


def most_similar(
    context: ServiceContext, key: str, good: Sequence[str], check: Callable[[], None]
) -> int | None:
    """Which of some good files a broken one is most like; None: like none of them.

    Its first bytes are repaired with each of them. Raises as `repaired`.
    """
    answer = _asked(context, [key, *good], "compare", check)["best"]
    return None if answer is None else int(answer)


def _asked(
    context: ServiceContext,
    keys: Sequence[str],
    job: str,
    check: Callable[[], None],
    on_message: Callable[[dict[str, Any]], None] = lambda message: None,
    folder: Path | None = None,
    names: Sequence[str] = (),
    **arguments: Any,
) -> dict[str, Any]:
    walls = Walls(MEMORY, _LARGEST_FILE, cpu_seconds=CPU_SECONDS)
    with ExitStack() as stack:
        sources = [stack.enter_context(context.store.source(key)) for key in keys]
        files = [source.fileno() for source in sources]
        child = stack.enter_context(ChildProcess(__name__, walls, _FAILURES))
        answer = child.do(
            job, check=check, on_message=on_message, answer=reads(*sources),
            files=[file for file in files if file is not None],
            sizes=[context.store.size(key) for key in keys],
            is_local=[file is not None for file in files], **arguments,
        )  # fmt: skip
        for name in names:
            assert folder is not None
            take_file(child.folder / name, folder / name)
    return answer


def main(channel: Channel) -> None:
    """What the child does."""
    last = 0.0

    def progress(done: int, size: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _REPORT_SECONDS:
            last = time.monotonic()
            channel.send(progress=done / size if size else 1.0)

    def repair(
        sizes: list[int], is_local: list[bool], rate: str | None, files: list[int] | None = None
    ) -> dict[str, Any]:
        with _sources(channel, sizes, is_local, files or []) as (broken, *good):
            mended = fragdex.repair(broken, *good, rate=rate, progress=progress)
            _write(mended)
        return {"media_type": mended.view.media_type, "report": report_of(mended)}

    def compare(
        sizes: list[int], is_local: list[bool], files: list[int] | None = None
    ) -> dict[str, Any]:
        with _sources(channel, sizes, is_local, files or []) as (broken, *good):
            head = broken.read_up_to(ByteRange(0, min(COMPARED, sizes[0])))
            parts = []
            for one in good:
                parts.append(likeness(head, one))
                channel.send(progress=0.0)  # it is not hung
        best = max(range(len(parts)), key=lambda number: parts[number], default=None)
        return {"best": best if best is not None and parts[best] >= ALIKE else None}

    channel.serve({"repair": repair, "compare": compare})


@contextmanager
def _sources(
    channel: Channel, sizes: list[int], is_local: list[bool], files: list[int]
) -> Iterator[list[Source]]:
    """The files of a job: handed over open, or read by the parent."""
    given = iter(files)
    with ExitStack() as stack:
        sources: list[Source] = []
        for number, (size, local) in enumerate(zip(sizes, is_local, strict=True)):
            if local:
                file = stack.enter_context(opened(next(given), "file"))
                sources.append(stack.enter_context(open_source(file)))
            else:
                sources.append(ParentSource(channel, size, number=number))
        yield sources


def _write(mended: Repair) -> None:
    """The repaired file in two files of the child's folder."""
    head, columns = [], []
    for block in mended.view.blocks():
        if isinstance(block, bytes):
            head.append(block)
        elif isinstance(block, SourceRange):
            columns.append(np.array([[block.range.start, block.range.size]], np.int64))
        else:
            assert isinstance(block, Scattered)
            columns.append(np.column_stack([block.start, block.size]))
    Path(_HEAD).write_bytes(b"".join(head))
    Path(_RANGES).write_bytes(np.concatenate(columns).astype(np.int64).tobytes())


def report_of(mended: Repair) -> dict[str, Any]:
    """What is proved, guessed and lost."""
    spans = list(mended.spans[:MOST_SPANS])
    if len(mended.spans) > MOST_SPANS:
        rest = len(mended.spans) - MOST_SPANS + 1
        last = spans[-1]
        spans[-1] = last._replace(stop=mended.size, state="lost", what=f"{rest:,} further spans")
    return {
        "byte_size": mended.view.size,
        "lost_bytes": mended.lost,
        "tracks": [
            {
                "track_id": track.id,
                "type": track.kind,
                "codec": track.codec,
                "samples": track.samples,
                "proved": track.proved,
                "duration_ms": round(1000 * track.seconds),
            }
            for track in mended.tracks
        ],
        "findings": list(mended.findings[:MOST_SPANS]),
        "spans": [span._asdict() for span in spans],
    }


def likeness(head: bytes, good: Source) -> float:
    """The part of the first bytes of a broken file that are samples as a good file has them.

    Bytes of samples that say neither where they begin nor where they end count half; 0 where a
    track of the good file is missing.
    """
    try:
        mended = fragdex.repair(head, good)
        expected = len(fragdex.index(good).tracks)
    except SourceUnavailable:
        raise
    except FragdexError:
        return 0.0
    if len(mended.tracks) != expected or not any(track.proved for track in mended.tracks):
        return 0.0
    sizes = Counter[str]()
    for span in mended.spans:
        sizes["whole" if span.says_end else span.state] += span.stop - span.start
    media = len(head) - sizes["structure"]
    return (sizes["whole"] + sizes["guessed"] / 2) / media if media else 0.0
