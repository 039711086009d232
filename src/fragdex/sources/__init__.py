"""The only opener of files: sources over paths, bytes, open files, HTTP and object stores.

Everything above is given bytes, or requests a range and is given it; here stand the opening, the
mapping, the retries, and the counting of requests and bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragdex.sources.base import PIECE_SIZE as PIECE_SIZE
from fragdex.sources.base import Source
from fragdex.sources.files import give_back as give_back
from fragdex.sources.names_in_files import ForeignName as ForeignName
from fragdex.sources.opening import SourceLike, SourceOptions, SourcesLike, open_source
from fragdex.sources.opening import check_options as check_options

if TYPE_CHECKING:
    from fragdex.sources.objects import ListedFile as ListedFile
    from fragdex.sources.objects import list_folder as list_folder
    from fragdex.sources.objects import list_objects as list_objects
    from fragdex.sources.opening import md5
    from fragdex.sources.opening import md5_beside as md5_beside

__all__ = ["Source", "SourceLike", "SourceOptions", "SourcesLike", "md5", "open_source"]


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
