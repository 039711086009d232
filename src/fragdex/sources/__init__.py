"""The only opener of files: sources over paths, bytes, open files, HTTP and object stores.

Everything above is given bytes, or requests a range and is given it; here stand the opening, the
mapping, the retries, and the counting of requests and bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragdex.sources.base import PIECE_SIZE, Source
from fragdex.sources.files import give_back
from fragdex.sources.opening import (
    ForeignName,
    SourceLike,
    SourceOptions,
    check_options,
    open_source,
)

if TYPE_CHECKING:
    from fragdex.sources.objects import ListedFile, list_folder, list_objects
    from fragdex.sources.opening import md5, md5_beside

__all__ = [
    "PIECE_SIZE",
    "ForeignName",
    "ListedFile",
    "Source",
    "SourceLike",
    "SourceOptions",
    "check_options",
    "give_back",
    "list_folder",
    "list_objects",
    "md5",
    "md5_beside",
    "open_source",
]


if not TYPE_CHECKING:  # to type checkers, every name would be there

    def __getattr__(name: str) -> Any:
        """What few need who open a file is imported when it is requested."""
        if name in ("md5", "md5_beside"):
            from fragdex.sources import opening as room
        elif name in ("ListedFile", "list_folder", "list_objects"):
            from fragdex.sources import objects as room
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(room, name)


def __dir__() -> list[str]:
    return sorted(__all__)
