"""Folders, globs, URLs and buckets to the names of videos, and the connections they share."""

from __future__ import annotations

import glob
import os
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from fragdex.errors import SourceError, SourceNotFound
from fragdex.record import record
from fragdex.sources.http import client_for
from fragdex.sources.objects import FILM_SUFFIXES, in_this_process, known_of, store_for
from fragdex.sources.opening import OBJECT_STORE_SCHEMES


@record(frozen=True, slots=True, order=True)
class ListedFilm:
    """A video, and what the listing says of it.

    Attributes:
        name: path, URL, or name in a store or file system.
        mtime_ns: nanoseconds since 1970 at which a local file was last written, or None.
    """

    name: str
    size: int | None = None
    etag: str | None = None
    mtime_ns: int | None = None


def listed(
    what: str | Iterable[str], *, store: Any = None, filesystem: Any = None
) -> Iterator[ListedFilm]:
    """The videos that names stand for, as they are found; one that several name comes again.

    Args:
        what: paths, folders (all videos below them), globs with `**`, URLs, and the same for
            buckets (`s3://bucket/folder/`, `s3://bucket/**/*.mp4`). A name that is not a folder and
            no glob is taken as it is.
        store: an obstore store in which names are looked up.
        filesystem: an fsspec file system in which names are looked up; it lists a folder or glob
            at once.

    Raises:
        SourceNotFound: a folder or glob has no video.
        SourceError: a bucket cannot be listed.
    """
    for name in [what] if isinstance(what, str) else what:
        film = None
        for film in _films(os.fspath(name), store, filesystem):
            yield film
        if film is None:
            raise SourceNotFound(
                f"there is no video in {name}",
                expected="files that end in " + ", ".join(FILM_SUFFIXES),
                advice="name the files, or give a glob",
            )


def split_url(url: str) -> tuple[str, str] | None:
    """The address of a bucket, and the name in it; None: it is not a URL of an object store."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() not in OBJECT_STORE_SCHEMES:
        return None
    bucket, _, name = rest.partition("/")
    return f"{scheme}://{bucket}", name


def _films(name: str, store: Any, filesystem: Any) -> Iterator[ListedFilm]:
    if filesystem is not None:
        yield from _in_filesystem(name, in_this_process(filesystem))
    elif store is not None or split_url(name):
        yield from _in_bucket(name, store)
    elif re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name):
        yield ListedFilm(name)
    elif os.path.isdir(name):
        yield from map(_local, _below(name))
    elif glob.has_magic(name) and not os.path.lexists(name):
        paths = glob.iglob(name, recursive=True)
        plain = name.endswith("*")
        yield from (
            _local(path) for path in paths if os.path.isfile(path) and (_is_film(path) or not plain)
        )
    else:
        yield _local(name)


def _below(folder: str) -> Iterator[str]:
    """Paths of videos in a folder and those in it; a folder that may not be read has none."""
    folders = [folder]
    while folders:
        with suppress(PermissionError, FileNotFoundError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif _is_film(entry.name) and not entry.is_dir():
                    yield entry.path


def _local(path: str) -> ListedFilm:
    try:
        status = os.stat(path)
    except OSError:  # named when it is indexed
        return ListedFilm(path)
    return ListedFilm(path, status.st_size, None, status.st_mtime_ns)


def _in_bucket(name: str, store: Any) -> Iterator[ListedFilm]:
    import obstore
    from obstore.exceptions import BaseError

    from fragdex.sources.objects import store_for

    parts = ("", name) if store is not None else split_url(name)
    assert parts is not None
    address, wanted = parts
    start = address + "/" if address else ""
    if not glob.has_magic(wanted) and _is_film(wanted):
        yield ListedFilm(name)
        return
    pattern = _pattern(wanted)
    prefix = re.split(r"[*?\[]", wanted)[0].rpartition("/")[0] if glob.has_magic(wanted) else wanted
    opened = store if store is not None else store_for(f"{address}/", 3, 30.0)
    try:
        for page in obstore.list(opened, prefix.strip("/") or None, chunk_size=1000):
            for one in page:
                if pattern.fullmatch(one["path"]):
                    shown = one["path"].replace("%", "%25") if start else one["path"]
                    yield ListedFilm(start + shown, one["size"], one["e_tag"])
    except (BaseError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"{name} cannot be listed: {reason}") from error


def _in_filesystem(name: str, filesystem: Any) -> Iterator[ListedFilm]:
    plain = filesystem._strip_protocol(name)
    try:
        if glob.has_magic(plain):
            entries = filesystem.glob(plain, detail=True)
        elif filesystem.isdir(plain):
            entries = filesystem.find(plain, detail=True)
        else:
            entries = {plain: filesystem.info(plain)}
    except FileNotFoundError:
        return
    except OSError as error:
        raise SourceError(f"{name} cannot be listed: {error}") from error
    exact = len(entries) == 1 and plain in entries
    for path, info in entries.items():
        if info.get("type") != "directory" and (_is_film(path) or exact):
            yield ListedFilm(path, *known_of(info))


def _is_film(name: str) -> bool:
    return name.lower().endswith(FILM_SUFFIXES)


def _pattern(wanted: str) -> re.Pattern[str]:
    """What names in a bucket look like that a glob or the name of a folder stands for."""
    films = "|".join(re.escape(suffix) for suffix in FILM_SUFFIXES)
    below = f"(?:.*/)?[^/]*(?i:{films})"
    if not glob.has_magic(wanted):
        folder = wanted.strip("/")
        return re.compile((re.escape(folder) + "/" if folder else "") + below)
    text = ""
    for part in re.split(r"(\*\*/|\*\*$|\*|\?|\[[^\]]+\])", wanted):
        match part:
            case "**/":
                text += "(?:.*/)?"
            case "**":
                text += below
            case "*":
                text += "[^/]*"
            case "?":
                text += "[^/]"
            case _ if part.startswith("[") and part.endswith("]"):
                text += "[" + part[1:-1].replace("!", "^", 1).replace("\\", r"\\") + "]"
            case _:
                text += re.escape(part)
    return re.compile(text)


class Connections:
    """One store for each bucket and one client for HTTP, instead of new ones for each video.

    They last as long as somebody holds this: the set, or frames of one of its videos. Another
    process makes its own.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._stores: dict[str, Any] = {}
        self._client: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_pid": -1, "_stores": {}, "_client": None}

    def options(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """How a video is opened: what was given, with a store or client that is shared."""
        if self._pid != os.getpid():  # those belong to the process that was forked
            self._pid, self._stores, self._client = os.getpid(), {}, None
        chosen = dict(options)
        if chosen.get("store") is not None or chosen.get("filesystem") is not None:
            return chosen
        timeout = chosen.get("timeout", 30.0)
        bucket = split_url(name)
        if bucket is not None:
            address = bucket[0] + "/"
            if address not in self._stores:
                self._stores[address] = store_for(address, chosen.get("retries", 3), timeout)
            chosen["store"] = self._stores[address]
        elif name.startswith(("http://", "https://")) and chosen.get("client") is None:
            if self._client is None:
                self._client = client_for(timeout)
                weakref.finalize(self, _close, self._client, self._pid)
            chosen["client"] = self._client
        return chosen


def _close(client: Any, pid: int) -> None:
    if os.getpid() == pid:
        client.close()
