"""What an unprocessed file with much structure is: its index, made in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fragdex import Source, index
from fragdex.errors import FragdexError, SourceUnavailable
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.child import INDEX
from fragdex.service.indexing.isolated import run_isolated
from fragdex.service.unprocessed.arrival import usable
from fragdex.service.unprocessed.as_it_came import why_not

__all__ = ["Indexed", "index_apart", "indexed"]


@dataclass(frozen=True, slots=True)
class Indexed:
    """What came of a file.

    Attributes:
        path: of its index, which is opened where it is needed: it may be large, too.
        tracks: their ids.
        reason: why the file must be processed, as `why_not`.
    """

    path: Path
    tracks: tuple[int, ...]
    reason: str | None


@contextmanager
def index_apart(
    context: ServiceContext, tenant_id: str, key: str, md5: bytes, size: int
) -> Iterator[Indexed | None]:
    """The exact index of a stored file, made in a process of its own.

    Args:
        key: of the file in the store.
        md5, size: of the file; 16 bytes, and how many it has.

    Gives: None where it is no ISO base media file, or a broken one; else an index that is gone
    at the end of the context.

    Raises:
        Unprocessable, Unavailable: as `run_isolated`.
    """
    with OwnFolder() as folder:
        path = folder / INDEX
        answer = run_isolated(context, tenant_id, key, size, indexed, {INDEX: path}, md5=md5.hex())
        if "refused" in answer:
            yield None
        else:
            yield Indexed(path, tuple(answer["tracks"]), answer["reason"])


def indexed(source: Source, md5: str) -> dict[str, Any]:
    """What the process does: the index goes into its folder, and what is said of it comes back."""
    try:
        made = usable(index(source, exact=True), bytes.fromhex(md5))
        if made is None:
            return {"refused": "it is no movie, or none that is whole"}
        made.save(Path(INDEX))
        reason = why_not(made, source, remote=source.remote)
    except SourceUnavailable:
        raise
    except FragdexError as error:
        return {"refused": str(error)}
    return {"tracks": [track.id for track in made.tracks], "reason": reason}
