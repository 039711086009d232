"""Names that stand in files of strangers: where they lead, and which of them are opened.

An index names its media, a set its videos. Whoever wrote one could name anything that its reader
may read. Every way to open such a name asks here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fragdex.errors import SourceError
from fragdex.record import record
from fragdex.sources.files import written_here

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem
    from obstore.store import ObjectStore

URL: Final = re.compile(r"([a-z][a-z0-9+.-]+)://", re.ASCII | re.IGNORECASE)


class ForeignName(str):
    """A name that stands in a file and leads out of its folder or origin; nothing opens it.

    `str` of it can be opened.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return self[:]


def name_in_file(name: str, file: str | None) -> str:
    """A name that stands in a file, as it is opened, or as a ForeignName.

    Args:
        file: path or URL of the file it stands in; None: not known. What this process has written
            itself is trusted.
    """
    # bytes and open files are named in angle brackets, and cannot be opened by it
    if name[:1] in ("", "<"):
        return name
    if file is None:
        return ForeignName(name)
    if URL.match(file):
        # what is relative was seen from the folder of whoever wrote it
        return name if URL.match(name) and is_below(name, file) else ForeignName(name)
    if written_here(file):
        return name
    # as the system resolves it: a `..` after a link leads elsewhere than one in the text
    path = os.path.join(os.getcwd(), name) if "://" not in name else name
    return name if is_below(path, os.path.dirname(os.path.abspath(file))) else ForeignName(name)


def is_below(name: str, base: str) -> bool:
    """Whether a name leads to something below a folder, or to the origin of a URL."""
    if "://" in base:
        if "://" not in name:
            from urllib.parse import unquote  # slow to import

            steps = re.split(r"[/\\]", unquote(name))
            return not os.path.isabs(name) and bool(steps[0]) and ".." not in steps
        from urllib.parse import urlsplit  # slow to import

        one, other = urlsplit(name), urlsplit(base)
        return (one.scheme.lower(), one.netloc) == (other.scheme.lower(), other.netloc)
    if "://" in name or "\0" in name:
        return False
    # links count as what they lead to: a folder that was unpacked may have any
    if _is_plainly_below(os.path.join(base, name), base):
        return True
    return _is_in(os.path.realpath(os.path.join(base, name)), os.path.realpath(base))


def _is_plainly_below(path: str, folder: str) -> bool:
    """Whether a path only descends from a folder, through no link: then it stays in it."""
    steps = path[len(folder) :].split("/")
    is_plain = path.startswith(folder) and len(steps) > 1 and not steps[0] and ".." not in steps
    if os.altsep or not is_plain:  # elsewhere, a path has separators of two kinds
        return False
    for step in steps[1:]:
        folder = os.path.join(folder, step)
        if os.path.islink(folder):
            return False
    return True


def _is_in(path: str, folder: str) -> bool:
    try:
        return os.path.commonpath([path, folder]) == folder
    except ValueError:  # on another drive
        return False


@record(frozen=True, slots=True)
class SetPlace:
    """Where the files of a set are, and which of its names are opened.

    Attributes:
        folder: of the set itself, on this machine or a URL.
        root: what was given as such: a folder, a URL, or a folder of the store or file system
            ("": all of it); None: nothing.
        follow: open whatever the set names.
        all_relative: names are always seen from root, also those that begin as it does.
    """

    folder: str
    root: str | None
    follow: bool
    all_relative: bool = False

    def address(
        self,
        name: str,
        *,
        store: ObjectStore | None = None,
        filesystem: AbstractFileSystem | None = None,
    ) -> str:
        """A name of the set as it is opened in the store, in the file system, or without either.

        Raises:
            SourceError: it leads out of root, by itself or by a link, and is not followed.
        """
        if store is None and filesystem is None:
            return self._on_this_machine(name)
        local = _local_paths(store, filesystem)
        if self.root is None:
            # the file system of this machine alone begins where the set may be
            is_plain = local is not None and filesystem is not None
            if is_plain and not hasattr(filesystem, "fs") and "://" not in name:
                name = os.path.join(self.folder, name)
            if not self.follow and (local is None or not is_below(local(name), self.folder)):
                raise self._outside(name, " or of the store" if local is None else "")
            return name
        parts, root = _parts(name), _parts(self.root)
        is_whole = parts[: len(root)] == root and not self.all_relative
        is_absolute = "://" in name or name.startswith(("/", "\\"))
        is_joined = self.root and not is_whole and not is_absolute
        address = f"{self.root.rstrip('/')}/{name}" if is_joined else name
        if self.follow:
            return address
        if ".." in parts or "://" in name or "\0" in name or (is_absolute and not is_whole):
            raise self._outside(name)
        if local is not None and not is_below(local(address), local(self.root)):
            raise self._outside(name)
        return address

    def _on_this_machine(self, name: str) -> str:
        root = self.folder if self.root is None else self.root
        if not self.follow and not is_below(name, root):
            raise self._outside(name)
        if "://" in name or os.path.isabs(name):
            return name
        return f"{root.rstrip('/')}/{name}" if "://" in root else os.path.join(root, name)

    def _outside(self, name: str, or_else: str = "") -> SourceError:
        root = self.folder if self.root is None else self.root
        return SourceError(
            f"the set names {name}, which lies outside of {root or 'the store'}",
            expected=f"a file below the folder of the set{or_else}, or below root",
            advice="root=… says where its files are (in a store or file system: the folder of it);"
            " if you trust the set, follow=True opens every file that it names",
        )


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"[/\\]", name) if part not in ("", ".")]


def _local_paths(store: Any, filesystem: Any) -> Callable[[str], str] | None:
    """What gives the path on this machine of a name in a store or file system; None: none has."""
    if filesystem is None:
        if type(store).__name__ != "LocalStore":
            return None
        base = os.fspath(store.prefix or os.sep)
        return lambda name: os.path.join(base, name.lstrip("/"))
    folders: list[str] = []
    while hasattr(filesystem, "fs"):  # one that caches another, or shows a folder of it
        folders.append(getattr(filesystem, "path", None) or "")
        filesystem = filesystem.fs
    protocols = filesystem.protocol
    if "file" not in ((protocols,) if isinstance(protocols, str) else protocols):
        return None

    def path(name: str) -> str:
        for folder in filter(None, folders):
            name = f"{folder}/{name}"
        return str(filesystem._strip_protocol(name))

    return path
