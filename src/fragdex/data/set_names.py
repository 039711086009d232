"""The names of a set that is written, in a file next to it: a million of them take no memory."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

from fragdex.data.film_listing import ListedFilm
from fragdex.record import record


@record(frozen=True, slots=True)
class Known:
    """What an earlier run knows of a video."""

    size: int | None
    etag: str | None
    mtime_ns: int | None

    def same_as(self, film: ListedFilm) -> bool:
        """Whether the listing shows that it is still the same; False where it does not say."""
        if self.size is None or self.size != film.size:
            return False
        if film.mtime_ns is not None:
            return self.mtime_ns == film.mtime_ns
        return film.etag is not None and self.etag == film.etag


Named: TypeAlias = "tuple[ListedFilm, Known | None, str]"
"""A video, what an earlier run knows of it, and the name that its row has."""

_SUFFIX: Final = ".names"
_CACHE_KIB: Final = 8 << 10
_PAGE: Final = 512
"""Names that are in memory at once."""
_TABLES: Final = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
    CREATE TABLE videos (name TEXT PRIMARY KEY, opened BLOB, size, etag, mtime_ns) WITHOUT ROWID;
    CREATE TABLE saved (name TEXT PRIMARY KEY, is_whole, size, etag, mtime_ns, file, line)
    WITHOUT ROWID;
"""
_CHANGED: Final = """
    FROM videos LEFT JOIN saved ON saved.name = videos.name AND saved.is_whole
    WHERE NOT is_same(saved.size, saved.etag, saved.mtime_ns,
                      videos.size, videos.etag, videos.mtime_ns)
"""


class SetNames:
    """The videos that a set is to have, and the rows that there are.

    Args:
        folder: of the file, which is deleted by `close`; that of a run that was killed is deleted
            by the next one.

    Names are ordered by their code points, as Python's `sorted` orders them.
    """

    def __init__(self, folder: str) -> None:
        for one in os.listdir(folder):
            if one.endswith(_SUFFIX):
                with suppress(OSError):  # another run has it open, on a system that minds
                    os.unlink(os.path.join(folder, one))
        self._path = os.path.join(folder, secrets.token_hex(4) + _SUFFIX)
        self._tables = sqlite3.connect(self._path, isolation_level=None)
        self._tables.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._tables.executescript(_TABLES)
        self._tables.create_function("is_same", 6, _is_same, deterministic=True)
        self._tables.execute("BEGIN")  # never ended: nothing is written that needs not

    def add_films(self, films: Iterable[tuple[str, ListedFilm]]) -> None:
        """Videos that the set is to have, by the names that their rows have; the last one counts.

        Args:
            films: names are UTF-8; the path that a video has need not be.
        """
        self._insert(
            "INSERT OR REPLACE INTO videos VALUES (?, ?, ?, ?, ?)",
            (
                (name, os.fsencode(film.name), film.size, film.etag, film.mtime_ns)
                for name, film in films
            ),
        )

    def add_rows(self, file: int, first: int, rows: Iterable[dict[str, Any]]) -> None:
        """Rows that are saved; the last one of a name counts.

        Args:
            rows: with path, size, etag, mtime_ns and error.
        """
        self._insert(
            "INSERT OR REPLACE INTO saved VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (row["path"], row["error"] is None, row["size"], row["etag"], row["mtime_ns"],
                 file, line)
                for line, row in enumerate(rows, first)
            ),
        )  # fmt: skip

    def counts(self) -> tuple[int, int, int]:
        """How many videos there are to be, how many are not as saved, how many are gone."""
        queries = (
            "SELECT count(*) FROM videos",
            f"SELECT count(*) {_CHANGED}",
            "SELECT count(*) FROM saved WHERE is_whole"
            " AND NOT EXISTS (SELECT 1 FROM videos WHERE videos.name = saved.name)",
        )
        films, changed, gone = (self._rows(query)[0][0] for query in queries)
        return films, changed, gone

    def changed(self) -> Iterator[Named]:
        """Videos that are new, or not as they were saved, by name."""
        query = (
            "SELECT videos.name, opened, videos.size, videos.etag, videos.mtime_ns,"
            " is_whole, saved.size, saved.etag, saved.mtime_ns"
            f" {_CHANGED} AND videos.name > ? ORDER BY videos.name LIMIT {_PAGE}"
        )
        for name, opened, size, etag, mtime_ns, is_whole, *known in self._paged(query):
            film = ListedFilm(os.fsdecode(opened), size, etag, mtime_ns)
            yield film, Known(*known) if is_whole else None, name

    def places(self) -> Iterator[tuple[int, int]]:
        """File and row of all videos that the set is to have, by name."""
        query = (
            "SELECT name, file, line FROM videos JOIN saved USING (name)"
            f" WHERE name > ? ORDER BY name LIMIT {_PAGE}"
        )
        for _, file, line in self._paged(query):
            yield file, line

    def _paged(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Rows by name, some at a time, as others are added meanwhile."""
        after = ""
        while rows := self._rows(query, after):
            yield from rows
            after = rows[-1][0]

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with self._as_os_errors():
            return self._tables.execute(query, values).fetchall()

    def _insert(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._as_os_errors():
            self._tables.executemany(statement, rows)

    @contextmanager
    def _as_os_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:  # such as a disk that is full
            raise OSError(errno.EIO, str(error), self._path) from error

    def close(self) -> None:
        """Delete the file."""
        self._tables.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)


def _is_same(
    size: int | None, etag: str | None, mtime_ns: int | None,
    listed_size: int | None, listed_etag: str | None, listed_mtime_ns: int | None,
) -> bool:  # fmt: skip
    film = ListedFilm("", listed_size, listed_etag, listed_mtime_ns)
    return Known(size, etag, mtime_ns).same_as(film)
