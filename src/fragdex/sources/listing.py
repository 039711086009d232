"""The names of what is in a folder and below, or in an object store, in their order."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fragdex.errors import SourceError
from fragdex.sources.objects import STORE_TIMEOUT_S, failure_of, store_for

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["Listed", "list_folder", "list_objects"]


@dataclass(frozen=True, slots=True)
class Listed:
    """A file or an object; or a folder, whose name ends with a slash.

    Attributes:
        name: its path below where it was looked for, with slashes.
        size: bytes.
        modified: seconds since 1970.
    """

    name: str
    size: int
    modified: float


def list_folder(root: str, *, after: str = "", most: int = 10_000) -> Iterator[Listed]:
    """Files and folders below a folder, in the order of their names.

    Hidden ones, files that are none, those that lead out of the folder, and names that are no
    UTF-8 are left out; folders that cannot be read seem empty, links to folders are not followed.

    Args:
        root: the folder, as `os.path.realpath` gives it.
        after: a name; what does not come behind it is left out, but for the folders above it.
        most: how many are given; so many of a folder are held in memory.
    """
    left = most
    waiting = [iter(_entries(root, "", after, most))]
    while waiting and left:
        name = next(waiting[-1], None)
        if name is None:
            waiting.pop()
            continue
        path = os.path.join(root, name)
        try:
            if name.endswith("/"):
                waiting.append(iter(_entries(root, name, after, most)))
            elif os.path.commonpath([os.path.realpath(path), root]) != root:
                continue
            found = os.stat(path)
        except OSError:
            continue  # it has gone meanwhile
        left -= 1
        yield Listed(name, found.st_size, found.st_mtime)


def _entries(root: str, folder: str, after: str, most: int) -> list[str]:
    """The first names in a folder behind another name, in order."""

    def wanted(entry: os.DirEntry[str]) -> str | None:
        is_folder = entry.is_dir(follow_symlinks=False)
        name = f"{folder}{entry.name}{'/' * is_folder}"
        behind = name > after or (is_folder and after.startswith(name))
        if not behind or entry.name[:1] == "." or not (is_folder or entry.is_file()):
            return None
        # bytes that are no UTF-8 have no place in an address
        return None if any("\ud800" <= c <= "\udfff" for c in name) else name

    try:
        with os.scandir(os.path.join(root, folder)) as entries:
            return heapq.nsmallest(most, (n for n in map(wanted, entries) if n is not None))
    except OSError:
        return []


def list_objects(
    url: str,
    *,
    after: str = "",
    store: ObjectStore | None = None,
    retries: int = 3,
    timeout: float = STORE_TIMEOUT_S,
    **_: Any,
) -> Iterator[Listed]:
    """Objects below a URL of an object store, in the order of their names; asked page by page.

    Args:
        url: such as s3://bucket/prefix.
        after: a name below it; what does not come behind it is left out.
        store: an obstore store for that URL; None: one is made.
        retries, timeout: as `open_source` takes them; its other options say nothing here.

    Raises:
        SourceError: there is no such bucket, it may not be listed, or it does not answer.

    >>> from obstore.store import MemoryStore
    >>> store = MemoryStore()
    >>> for name in ("b.mp4", "a/c.mp4"):
    ...     _ = store.put(name, b"abc")
    >>> [one.name for one in list_objects("memory://", store=store)]
    ['a/c.mp4', 'b.mp4']
    """
    import obstore

    found = store_for(f"{url.rstrip('/')}/", retries, timeout) if store is None else store
    try:
        for page in obstore.list(found, offset=after or None, chunk_size=1000):
            for one in page:
                yield Listed(one["path"], one["size"], one["last_modified"].timestamp())
    except SourceError:
        raise
    except (obstore.exceptions.BaseError, OSError) as error:
        raise failure_of(error, url) from error
