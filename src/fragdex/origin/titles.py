"""From a name in an address to the film: opened, indexed and packaged, the last few in memory."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import fragdex
from fragdex.errors import DamagedIndex, SourceChanged, SourceNotFound
from fragdex.seeking.model import FragmentIndex
from fragdex.sources import Source, open_source
from fragdex.views.package import Package, package
from fragdex.views.view import View

__all__ = ["SUFFIXES", "Film", "Titles"]

SUFFIXES: Final = (".mp4", ".m4v", ".m4a", ".mov", ".3gp", ".cmfv", ".cmfa", ".mp4a", ".qt")
"""How files end that are listed."""
_MOST_LISTED: Final = 10_000
_MOST_VIEWS: Final = 8
_MOST_IDLE: Final = 16


@dataclass(eq=False)
class Film:
    """One or several files that are opened.

    Attributes:
        names: of the files, as addresses name them.
        indexes: of each.
        titles: where it was opened.
        idle: its files, opened and not used now, for one thread at a time.
        forgotten: whether files that are given back are closed.
    """

    names: tuple[str, ...]
    indexes: tuple[FragmentIndex, ...]
    titles: Titles
    _views: OrderedDict[str, View] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    idle: list[list[Source]] = field(default_factory=list)
    forgotten: bool = False

    def close(self) -> None:
        """Close its files, now or when whoever reads from them is done."""
        self.forgotten = True
        while self.idle:
            _close(self.idle.pop())

    @cached_property
    def package(self) -> Package:
        """All files as one title in HLS and DASH.

        Raises: as `fragdex.package`.
        """
        with self.titles.sources(self) as sources:
            return package(self.indexes, source=sources, seconds=self.titles.seconds)

    def view(self, kind: str, **options: Any) -> View:
        """A view of the first file, as `fragdex.view` makes it; the last few are kept."""
        key = repr((kind, sorted(options.items())))
        with self._lock:
            if key in self._views:
                self._views.move_to_end(key)
                return self._views[key]
        with self.titles.sources(self) as sources:
            index, seconds = self.indexes[0], self.titles.seconds
            made = fragdex.view(index, kind, source=sources[0], seconds=seconds, **options)  # type: ignore[arg-type]
        with self._lock:
            self._views[key] = made
            while len(self._views) > _MOST_VIEWS:
                self._views.popitem(last=False)
        return made


class Titles:
    """The films of a folder, or below a URL.

    Args:
        root: path of a folder, or a URL (https, s3, gs, az) that names are put behind.
        seconds: wanted length of segments.
        in_memory: how many films stay open.
        cache: a folder that indexes are kept in; None: they are made anew. A film of two hours
            takes about 30 MB there.
        max_bytes: that may be read of a remote file to index it; None: no bound.
        options: for `fragdex.open_source`.

    For several threads at a time.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        seconds: Any = 4,
        in_memory: int = 16,
        cache: Path | None = None,
        max_bytes: int | None = None,
        **options: Any,
    ) -> None:
        text = os.fspath(root)
        self.remote = "://" in text
        self.root = text.rstrip("/") if self.remote else os.path.realpath(text)
        if not self.remote and not os.path.isdir(self.root):
            raise SourceNotFound(f"there is no folder {text}", advice="name a folder or a URL")
        self.seconds, self._in_memory, self._cache = seconds, in_memory, cache
        self._max_bytes, self._options = max_bytes, options
        self._films: OrderedDict[tuple[str, ...], Film] = OrderedDict()
        self._lock = threading.Lock()
        self._opening: dict[tuple[str, ...], threading.Lock] = {}

    def names(self) -> Iterator[str]:
        """Names of the films in a folder and below, in order; none of a URL."""
        if self.remote:
            return
        count = 0
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                    yield os.path.relpath(os.path.join(folder, name), self.root).replace(
                        os.sep, "/"
                    )
                    count += 1
                    if count == _MOST_LISTED:
                        return

    def place(self, name: str) -> str:
        """The path or URL of a file.

        Raises:
            SourceNotFound: the name leads out of the folder, or to no file in it.
        """
        parts = name.split("/")
        if any(part.startswith(".") or not part or "\\" in part or "\0" in part for part in parts):
            raise SourceNotFound(f"there is no file {name!r}")
        if self.remote:
            return f"{self.root}/{quote(name)}"
        path = os.path.realpath(os.path.join(self.root, *parts))
        inside = os.path.commonpath([path, self.root]) == self.root
        if not inside or not os.path.isfile(path):
            raise SourceNotFound(f"there is no file {name!r}")
        return path

    @contextmanager
    def sources(self, film: Film) -> Iterator[list[Source]]:
        """The files of a film, opened for this thread; what is given back is used again."""
        try:
            opened = film.idle.pop()
        except IndexError:
            opened = [open_source(self.place(name), **self._options) for name in film.names]
        try:
            yield opened
        except BaseException:
            _close(opened)
            raise
        if len(film.idle) < _MOST_IDLE and not film.forgotten:
            film.idle.append(opened)
        else:
            _close(opened)

    def open(self, names: tuple[str, ...]) -> Film:
        """The film of some files that are renditions of one title.

        Raises:
            SourceNotFound: there is no such file.
            FragdexError: as `fragdex.index` and `fragdex.package`.
        """
        places = [self.place(name) for name in names]
        with self._lock:
            film = self._films.get(names)
            if film is not None and self._is_current(film, places):
                self._films.move_to_end(names)
                return film
            opening = self._opening.setdefault(names, threading.Lock())
        try:
            with opening:  # whoever asks meanwhile waits, and finds it made
                with self._lock:
                    film = self._films.get(names)
                if film is None or not self._is_current(film, places):
                    film = self._made(names, places)
                    with self._lock:
                        gone = [self._films.pop(names, None)]
                        self._films[names] = film
                        while len(self._films) > self._in_memory:
                            gone.append(self._films.popitem(last=False)[1])
                    for old in gone:
                        if old is not None:
                            old.close()
        finally:
            with self._lock:
                self._opening.pop(names, None)
        return film

    def forget(self, film: Film) -> None:
        """Open a film anew when it is asked for next: a file of it has changed."""
        with self._lock:
            if self._films.get(film.names) is film:
                del self._films[film.names]
        film.close()

    def close(self) -> None:
        """Close all films."""
        with self._lock:
            films = list(self._films.values())
            self._films.clear()
        for film in films:
            film.close()

    def _is_current(self, film: Film, places: list[str]) -> bool:
        """Whether local files are those that were indexed; remote ones are asked when read."""
        if self.remote:
            return True
        for index, place in zip(film.indexes, places, strict=True):
            try:
                now = os.stat(place)
                index.source.refuse_other(place, size=now.st_size, mtime_ns=now.st_mtime_ns)
            except (OSError, SourceChanged):
                return False
        return True

    def _made(self, names: tuple[str, ...], places: list[str]) -> Film:
        most = self._max_bytes if self.remote else None
        sources = [open_source(place, max_bytes=most, **self._options) for place in places]
        try:
            indexes = tuple(
                self._index(place, source) for place, source in zip(places, sources, strict=True)
            )
        finally:
            for source in sources:
                source.close()
        return Film(names, indexes, self)

    def _index(self, place: str, source: Source) -> FragmentIndex:
        """The index of a file: the one that was kept, where it is of these very bytes."""
        kept = self._kept(place)
        if kept is not None and kept.exists():
            try:
                index = fragdex.open_index(kept)
                source.read_up_to(fragdex.ByteRange(0, 16))  # a remote one tells its size now
                index.source.refuse_other(
                    place, size=source.size, etag=source.etag, mtime_ns=source.mtime_ns
                )
                if all(track.has_samples for track in index.tracks):
                    return index
            except (DamagedIndex, SourceChanged, OSError):
                pass  # made anew, and replaced
        index = fragdex.index(source, exact=True)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            index.save(kept, samples=True)
        return index

    def _kept(self, place: str) -> Path | None:
        if self._cache is None:
            return None
        name = hashlib.md5(place.encode(), usedforsecurity=False).hexdigest()
        return self._cache / f"{name}.fidx"


def _close(sources: list[Source]) -> None:
    for source in sources:
        source.close()
