"""The indexing of one unprocessed file in a child process, into its own folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fragdex import Source, index
from fragdex.errors import FragdexError, SourceUnavailable
from fragdex.service.indexing.child import INDEX, reading
from fragdex.service.processes.channel import Channel
from fragdex.service.unprocessed.arrival import usable
from fragdex.service.unprocessed.as_it_came import why_not

__all__ = ["main"]


def main(channel: Channel) -> None:
    """Index files that are handed over open, or whose bytes the parent reads."""

    def index_file(size: int, md5: str, files: list[int] | None = None) -> dict[str, Any]:
        try:
            with reading(channel, size, files) as source:
                return _indexed(source, md5)
        except SourceUnavailable:
            raise
        except FragdexError as error:
            return {"refused": str(error)}

    channel.serve({"index": index_file})


def _indexed(source: Source, md5: str) -> dict[str, Any]:
    made = usable(index(source, exact=True), bytes.fromhex(md5))
    if made is None:
        return {"refused": "it is no movie, or none that is whole"}
    made.save(Path(INDEX))
    reason = why_not(made, source, remote=source.remote)
    return {"tracks": [track.id for track in made.tracks], "reason": reason}
