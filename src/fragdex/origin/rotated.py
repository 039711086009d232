"""Files that a recorder began one after the other, named by a pattern, as one title that grows.

`cam1/*.mp4` names the files in `cam1`, `cam1/*/*.mp4` those in the folders below it. What was
listed once keeps its number: it is written down, next to the indexes, when a file joins the title
and when the next one follows it, so that processes agree and a restart changes nothing. Files that
were there before are numbered backwards from the first one that somebody watched, so that only
those are opened that a list has.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fragdex.boxes import parse
from fragdex.errors import FragdexError, SourceNotFound
from fragdex.indexing.moov import plain_init
from fragdex.lru_cache import LRUCache
from fragdex.origin.film_list import SUFFIXES, is_name
from fragdex.origin.writes import NotYet
from fragdex.packaging.package import Package
from fragdex.packaging.rotated import (
    FileLists,
    RotatedFile,
    RotatedPackage,
    Window,
    gone,
    micros_of,
    renditions_of,
    target_of,
)
from fragdex.packaging.titling import creation
from fragdex.record import record
from fragdex.sources.files import born_ns, write_file

if TYPE_CHECKING:
    from fragdex.origin.titles import ServedFilm, Titles

MOST_FILES: Final = 4096
"""Files of a title: the latest of those that match."""
_LOOKED_AT: Final = 50_000
"""Names that are looked at, and folders."""
_STARS: Final = 6
_STILL: Final = 0.5
"""Seconds without a write after which a file is over once another one has begun."""
_AGAIN: Final = 0.1
"""Seconds until files are looked at again that wait to join."""
_CLOSE: Final = 2_000_000
"""Microseconds between files that are no gap: recorders name whole seconds."""
_FAR_FROM_WRITES: Final = 60_000_000
"""Microseconds by which the creation time of a file that grows may differ from its first write."""
_JUDGED: Final = 3
"""Latest files that decide how long segments are."""
_TURNS: Final = 100_000
"""Number of the first discontinuity that is known; those of earlier files come before it."""
_KEPT: Final = 128 << 20
"""Bytes of the lists of files."""
_DATE = re.compile(r"(19|20)\d\d\D?[01]\d\D?[0-3]\d.*", re.DOTALL)


@record(frozen=True, slots=True)
class FoundFile:
    """A file that matches a pattern.

    Attributes:
        name: below the folder that is served.
        file: number that tells it from another one of this name.
        size: bytes.
        written: nanoseconds since 1970 of its last write.
    """

    name: str
    file: int
    size: int
    written: int


@record(slots=True)
class _Ledger:
    """What was listed, as it is written down.

    Attributes:
        renditions: names of those that all files have.
        target, part: as of `RotatedPackage`; the part as text.
        zero: as of `RotatedPackage`.
        is_whole: whether no earlier file can come.
        files: one after the other.
        first, turn: of a file that follows where all files are gone.
    """

    renditions: list[str]
    target: int
    part: str | None
    zero: int
    is_whole: bool = False
    files: list[RotatedFile] = field(default_factory=list)
    first: dict[str, int] = field(default_factory=dict)
    turn: int = _TURNS


@record(eq=False)
class RotatedFilm:
    """A title of several files, as it was found; it stands where a file of the origin does.

    Attributes:
        names: the pattern.
        title: whose state it is.
        package: its lists.
        growing: whether more may come.
        last: the last file.
        waiting: size and last write of files that do not belong to it yet.
        folders: last change of each folder.
        look_at: on the clock of `time.time`, when it has to be looked at again.
    """

    names: tuple[str, ...]
    title: RotatedTitle
    package: RotatedPackage
    growing: bool
    last: ServedFilm | None
    waiting: Mapping[str, tuple[int, int]]
    folders: Mapping[str, int]
    look_at: float
    is_packaged: bool = True
    captions: None = None

    def is_current(self) -> bool:
        """Whether nothing has changed."""
        if time.time() >= self.look_at or self.title.folders_now(self.folders) != self.folders:
            return False
        titles = self.title.titles
        if self.last is not None and titles.opened(self.last.names) is not self.last:
            return False
        for name, known in self.waiting.items():
            try:
                now = os.stat(f"{titles.root}/{name}")
            except OSError:
                return False
            if (now.st_size, now.st_mtime_ns) != known:
                return False
        return True

    def close(self) -> None:
        """Its files are those of other titles."""


class RotatedTitle:
    """The files of a pattern, and what was listed of them.

    Args:
        titles: the files of a folder.
        pattern: of names below it.
        notes: folder in which it is written down what was listed; None: nowhere.

    Raises:
        SourceNotFound: the pattern leads out of the folder.

    Attributes:
        titles: as given.
    """

    def __init__(self, titles: Titles, pattern: str, notes: Path | None) -> None:
        if titles.remote or not is_name(pattern) or pattern.count("*") > _STARS:
            where = "in remote folders" if titles.remote else "like this"
            raise SourceNotFound(f"there are no patterns {where}: {pattern!r}")
        self.titles, self._pattern = titles, pattern
        name = hashlib.md5(f"{titles.root}\n{pattern}".encode(), usedforsecurity=False).hexdigest()
        self._notes = None if notes is None else notes / f"{name}.rotated.json"
        self._lock = threading.RLock()
        self._ledger: _Ledger | None = None
        self._read_at: tuple[int, int] | None = None
        self._found: list[FoundFile] = []
        self._folders: dict[str, int] = {}
        self._left: dict[tuple[str, int], tuple[int | None, str]] = {}
        self._waiting: dict[str, tuple[int, int]] = {}
        self._until = 0.0
        self._lists: LRUCache[FileLists] = LRUCache(_KEPT)

    def update(self) -> RotatedFilm:
        """The title as it is now.

        Raises:
            SourceNotFound: no file matches.
            NotYet: no file has a complete segment yet.
            FragdexError: as `Titles.open`, of the last file, where none can be read.
        """
        with self._lock:
            changed = self.folders_now(self._folders) != self._folders or not self._folders
            if changed:
                self._scan()
            if changed or self._waiting or self._ledger is None:
                with self._written_down():
                    self._waiting = {}
                    self._reconcile()
            ledger = self._ledger
            assert ledger is not None
            last = self._open_last(ledger)
            now, growing = time.time(), self.titles.writes.seconds
            names = [*self._waiting, *([] if last is None else last.names)]
            written = [self.titles.writes.last(f"{self.titles.root}/{name}") or 0 for name in names]
            if names:
                self._until = max(written) + growing
            ended = not growing or now >= self._until
            package = RotatedPackage(
                tuple(ledger.files),
                self._lists_of,
                None if last is None else last.package,
                ledger.target,
                None if ledger.part is None or not growing else Fraction(ledger.part),
                ledger.zero,
                ended,
                max((one.written // 1000 for one in self._found), default=ledger.zero),
                self._findings(),
            )
            look_at = float("inf") if ended else self._until
            if self._waiting:
                look_at = min(look_at, now + _AGAIN)
            return RotatedFilm(
                (self._pattern,), self, package, not ended, last, self._waiting, self._folders,
                look_at,
            )  # fmt: skip

    def within(self, film: RotatedFilm, window: Window) -> RotatedPackage:
        """The lists with all files that a window has, be they numbered already or not.

        Raises:
            SourceNotFound: there are none.
        """
        with self._lock:
            ledger = self._ledger
            assert ledger is not None
            low = window.begins(film.package.end)
            if not ledger.is_whole and ledger.files and ledger.files[0].start > low:
                with self._written_down():
                    self._extend(low)
            first, findings, before = film.package.files[0], self._findings(), 0
            if first in ledger.files:
                before = ledger.files.index(first)
            if before or findings != film.package.findings:
                film.package = film.package.after(ledger.files[:before], findings)
        if not window.of(film.package.files, film.package.end):
            raise SourceNotFound(f"of {self._pattern!r} there is nothing at this time")
        return film.package

    # -- files

    def folders_now(self, folders: Mapping[str, int]) -> dict[str, int]:
        """The last change of each folder, in nanoseconds since 1970; -1: it is gone."""
        now = {}
        for path in folders:
            try:
                now[path] = os.stat(path).st_mtime_ns
            except OSError:
                now[path] = -1
        return now

    def _scan(self) -> None:
        """Find the files of the pattern."""
        _root, folders, looked_at = self.titles.root, [""], 0
        *parts, last = self._pattern.split("/")
        self._folders = {}
        for part in parts:
            below = []
            for folder in folders:
                if "*" not in part:
                    below.append(f"{folder}{part}/")
                    continue
                for entry in self._entries(folder, part):
                    looked_at += 1
                    if entry.is_dir(follow_symlinks=False):
                        below.append(f"{folder}{entry.name}/")
            folders = sorted(below)[-_LOOKED_AT:]
        found = []
        for folder in folders:
            for entry in self._entries(folder, last):
                looked_at += 1
                name = f"{folder}{entry.name}"
                if looked_at > _LOOKED_AT or not entry.name.lower().endswith(SUFFIXES):
                    continue
                with suppress(OSError, SourceNotFound):
                    if entry.is_symlink():
                        self.titles.place(name)  # it may lead out of the folder
                    now = entry.stat()
                    if entry.is_file():
                        found.append(FoundFile(name, now.st_ino, now.st_size, now.st_mtime_ns))
        # what changes while it is looked at may change again at the same time
        recent = time.time_ns() - 100_000_000
        self._folders = {p: at if at < recent else -2 for p, at in self._folders.items()}
        dates = {one.name: date[0] for one in found if (date := _DATE.search(one.name))}
        is_dated = len(dates) == len(found)
        found.sort(key=lambda one: _natural(one.name))
        found.sort(key=lambda one: dates[one.name] if is_dated else one.written)
        self._is_dated, self._found = is_dated, found[-MOST_FILES:]
        there = {(one.name, one.file) for one in self._found}
        self._left = {key: why for key, why in self._left.items() if key in there}

    def _entries(self, folder: str, part: str) -> list[os.DirEntry[str]]:
        """What matches a part of the pattern in a folder."""
        wanted = re.compile("[^/]*".join(map(re.escape, part.split("*"))), re.DOTALL)
        path = os.path.realpath(f"{self.titles.root}/{folder}")
        if os.path.commonpath([path, self.titles.root]) != self.titles.root:
            return []
        try:
            self._folders[path] = os.stat(path).st_mtime_ns
            with os.scandir(path) as entries:
                return [
                    one
                    for one in entries
                    if wanted.fullmatch(one.name)
                    and is_name(one.name)
                    and "," not in one.name
                    and not any("\ud800" <= c <= "\udfff" for c in one.name)
                ]
        except OSError:
            return []

    # -- what was listed

    @contextmanager
    def _written_down(self) -> Iterator[None]:
        """The ledger for this process alone; what changes in it is written down."""
        path = self._notes
        if path is None:
            yield
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("ab") as lock:
            with suppress(ImportError):
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
            with suppress(OSError, ValueError, KeyError, TypeError):
                now = path.stat()
                if self._read_at != (now.st_ino, now.st_mtime_ns):
                    self._ledger = _read(json.loads(path.read_bytes()))
                    self._read_at = now.st_ino, now.st_mtime_ns
            before = None if self._ledger is None else _text(self._ledger)
            yield
            after = None if self._ledger is None else _text(self._ledger)
            if after is not None and after != before:
                write_file(path, [after])
                now = path.stat()
                self._read_at = now.st_ino, now.st_mtime_ns

    def _reconcile(self) -> None:
        """Take away what was deleted from the front, and add what follows."""
        found = {one.name: one for one in self._found}
        ledger = self._ledger
        if ledger is not None:
            while ledger.files and not self._is_there(ledger.files[0], found):
                first = self._closed(ledger.files.pop(0), False)
                ledger.first, ledger.turn = _after(first)
                ledger.is_whole = True
            for file in ledger.files[:-1]:
                if not self._is_there(file, found):
                    self._keep(file, gone(file))
        if not self._found and (ledger is None or not ledger.files):
            raise SourceNotFound(f"no file matches {self._pattern!r}")
        failure: Exception | None = None
        if ledger is None:
            failure = self._begin()
            ledger = self._ledger
        if ledger is not None:
            for one in self._new(ledger):
                failure = self._join(ledger, one) or failure
        if ledger is None or not ledger.files:
            raise failure or NotYet("no file has a complete segment yet")

    def _is_there(self, file: RotatedFile, found: Mapping[str, FoundFile]) -> bool:
        known = found.get(file.name)
        return known is not None and known.file == file.file

    def _new(self, ledger: _Ledger) -> list[FoundFile]:
        """Files that follow the last one."""
        names = {one.name: place for place, one in enumerate(self._found)}
        listed = {(one.name, one.file) for one in ledger.files}
        known = [names[name] for name, _ in listed if name in names]
        low, high = (min(known), max(known)) if known else (0, -1)
        start = ledger.files[-1].start * 1000 if ledger.files else 0
        new = []
        for place, one in enumerate(self._found):
            if (one.name, one.file) in listed:
                continue
            if place > high or (not self._is_dated and one.written >= start):
                new.append(one)
            elif ledger.is_whole or place > low:
                self._leave(one, "it came after files that follow it")
        return new

    def _leave(self, one: FoundFile, why: str, until: int | None = None) -> None:
        """Leave a file out, for as long as it has so many bytes, or for good."""
        self._left[one.name, one.file] = until, why

    def _findings(self) -> tuple[str, ...]:
        """Which files are left out, and why."""
        return tuple(f"{name}: {why}" for (name, _), (_, why) in self._left.items())

    def _is_left(self, one: FoundFile) -> bool:
        size, _ = self._left.get((one.name, one.file), (-1, ""))
        return size is None or size == one.size

    def _begin(self) -> Exception | None:
        """Begin with the latest file that can be read."""
        failure: Exception | None = None
        judged: list[tuple[FoundFile, int]] = []
        anchor: tuple[FoundFile, ServedFilm, Package] | None = None
        for one in reversed(self._found):
            package, film, why = self._opened(one)
            if package is None or film is None:
                failure = failure or why
                continue
            if anchor is not None and renditions_of(package) != renditions_of(anchor[2]):
                break
            anchor = anchor or (one, film, package)
            judged.append((one, _target(package)))
            if len(judged) == _JUDGED:
                break
        if anchor is None:
            return failure
        one, film, package = anchor
        start = self._starts(film, one, _seconds(package))[-1]
        oldest = self._found[0]
        zero, before = start, len(self._found) - 1
        if before:
            with suppress(FragdexError, NotYet, OSError), self._for_once(oldest.name) as other:
                seconds = max(_seconds(other.package), _seconds(package))
                zero = min(start, *self._starts(other, oldest, _seconds(other.package)))
                long = int(before * seconds * 10**6)
                if start - zero < long * 9 // 10:
                    zero = start - 2 * long  # copies, whose times say nothing
        promised = package.title.promised
        # parts of files that begin otherwise may be a little longer
        part = None if promised is None else str(promised.part * Fraction(21, 20))
        target = max(target for _, target in judged)
        if promised is None:
            target = max(target, _LONGEST)
        names = renditions_of(package)
        self._ledger = _Ledger(names, target, part, zero)
        first = dict.fromkeys(names, start // 1_000_000)
        self._ledger.files.append(RotatedFile(one.name, one.file, start, _TURNS, first))
        return None

    def _opened(self, one: FoundFile) -> tuple[Package | None, ServedFilm | None, Exception | None]:
        """A file that may join, opened; or why it does not."""
        if self._is_left(one):
            return None, None, None
        try:
            film = self.titles.open_file(one.name)
            return film.package, film, None
        except NotYet as error:
            self._waiting[one.name] = one.size, one.written
            return None, None, error
        except (FragdexError, OSError) as error:
            self._leave(one, str(error).splitlines()[0], one.size)
            return None, None, error

    def _join(self, ledger: _Ledger, one: FoundFile) -> Exception | None:
        """Add a file after the last one, if it can be; else why not."""
        last = ledger.files[-1] if ledger.files else None
        package, film, why = self._opened(one)
        if package is None or film is None:
            return why
        misfit = self._misfit(ledger, package)
        if misfit is not None:
            self._leave(one, misfit)
            return NotYet(f"{one.name}: {misfit}")
        if last is not None and last.counts is None:
            if not self._may_close(last):
                self._waiting[one.name] = one.size, one.written
                return None
            last = ledger.files[-1] = self._closed(last, True)
        if last is not None:
            ledger.first, ledger.turn = _after(last)
        start = self._place(film, one, package, last)
        ledger.files.append(RotatedFile(one.name, one.file, start, ledger.turn, ledger.first))
        return None

    def _misfit(self, ledger: _Ledger, package: Package) -> str | None:
        """Why a file cannot be in the title; None: it can."""
        names = renditions_of(package)
        if names != ledger.renditions:
            return f"it has other tracks: {', '.join(names)}, not {', '.join(ledger.renditions)}"
        target = _target(package)
        if target > ledger.target:
            return (
                f"its segments last up to {target} s, those of the title {ledger.target} s; "
                "a greater --segment-duration is for both"
            )
        return None

    def _may_close(self, last: RotatedFile) -> bool:
        """Whether the last file is over, since another one has begun."""
        written = self.titles.writes.last(f"{self.titles.root}/{last.name}")
        if written is None or time.time() >= written + min(_STILL, self.titles.writes.seconds):
            return True
        with suppress(FragdexError, NotYet, OSError):
            return self.titles.open_file(last.name).growing is not True
        return True

    def _closed(self, file: RotatedFile, is_there: bool) -> RotatedFile:
        """A file to which nothing more comes, with what is known of it."""
        if file.counts is not None:
            return file
        try:
            if not is_there:
                raise SourceNotFound(file.name)
            self.titles.writes.end(f"{self.titles.root}/{file.name}")
            lists = self._made(file)
        except (FragdexError, NotYet, OSError):
            film = self.titles.latest((file.name,))
            package = None if film is None or not film.is_packaged else film.package
            if not isinstance(package, Package):
                return replace(file, counts=dict.fromkeys(file.first, 0))
            lists = FileLists.of(package)  # it was deleted: as it was seen last
        micros = int(lists.seconds * 10**6)
        return replace(file, counts=dict(lists.counts), micros=micros, turns=lists.turns)

    def _extend(self, low: int) -> None:
        """Number files that come before the first one, as far as a time."""
        ledger = self._ledger
        assert ledger is not None
        names = [one.name for one in self._found]
        place = names.index(ledger.files[0].name)
        while place and ledger.files[0].start > low:
            place -= 1
            one, following = self._found[place], ledger.files[0]
            if self._is_left(one):
                continue
            self.titles.writes.end(f"{self.titles.root}/{one.name}")
            try:
                with self._for_once(one.name) as film:
                    misfit = self._misfit(ledger, film.package)
                    lists = FileLists.of(film.package)
                    starts = self._starts(film, one, lists.seconds)
            except (FragdexError, NotYet, OSError) as error:
                self._leave(one, str(error).splitlines()[0])
                continue
            if misfit is not None:
                self._leave(one, misfit)
                continue
            micros = int(lists.seconds * 10**6)
            near = following.start - micros
            # of several files with one creation time, that of none of them is meant
            start = next((at for at in starts if at < near - _CLOSE), near)
            first = {name: following.first[name] - count for name, count in lists.counts.items()}
            turn = following.turn - lists.turns - 1
            if start < ledger.zero - _CLOSE or turn < 0:
                self._leave(one, "it began before the title")
                continue
            known = dict(lists.counts), micros, lists.turns
            file = RotatedFile(one.name, one.file, max(start, ledger.zero), turn, first, *known)
            self._keep(file, lists.placed(file, ledger.zero))
            ledger.files.insert(0, file)
        ledger.is_whole = ledger.is_whole or not place

    @contextmanager
    def _for_once(self, name: str) -> Iterator[ServedFilm]:
        film = self.titles.ended(name)
        try:
            yield film
        finally:
            film.close()

    # -- times

    def _starts(self, film: ServedFilm, one: FoundFile, seconds: Fraction) -> list[int]:
        """When a file began, in microseconds since 1970: what its moov says, then its last write.

        What a moov says of a file that grows counts if it is near when the file was made.
        """
        born = born_ns(f"{self.titles.root}/{one.name}") or one.written
        written = max(min(one.written - int(seconds * 10**9), born) // 10**6 * 1000, 0)
        created = None
        with suppress(FragdexError), self.titles.sources(film) as (source,):
            init = film.windows[0].periods[0].init
            created = creation(parse(plain_init(b"".join(map(source.read, init)))))
        if created is None or (
            film.growing is True and abs(micros_of(created) - written) > _FAR_FROM_WRITES
        ):
            return [written]
        return [micros_of(created), written]

    def _place(
        self, film: ServedFilm, one: FoundFile, package: Package, last: RotatedFile | None
    ) -> int:
        """When a file begins that follows another one."""
        starts = self._starts(film, one, _seconds(package))
        if last is None:
            return starts[0]
        start = next((at for at in starts if at > last.start + last.micros // 2), last.stop)
        return last.stop if abs(start - last.stop) <= _CLOSE else start

    # -- lists

    def _open_last(self, ledger: _Ledger) -> ServedFilm | None:
        """The last file, opened; None: it is gone."""
        last = ledger.files[-1]
        if last.counts is not None:
            return None
        try:
            film = self.titles.open_file(last.name)
            film.package  # noqa: B018 - made here
            return film
        except (FragdexError, NotYet, OSError):
            ledger.files[-1] = self._closed(last, False)
            return None

    def _lists_of(self, file: RotatedFile) -> FileLists:
        """What the lists of a closed file say."""
        known = self._lists.get((file.name, file.file))
        if known is not None:
            return known
        with self._lock:
            known = self._lists.get((file.name, file.file))
            if known is not None:
                return known
            try:
                if os.stat(f"{self.titles.root}/{file.name}").st_ino != file.file:
                    return gone(file)
                known = self._made(file)
            except (FragdexError, NotYet, OSError):
                return gone(file)
            return known if known.counts == file.counts else gone(file)

    def _made(self, file: RotatedFile) -> FileLists:
        assert self._ledger is not None
        with self._for_once(file.name) as film:
            lists = FileLists.of(film.package)
        return self._keep(file, lists.placed(file, self._ledger.zero))

    def _keep(self, file: RotatedFile, lists: FileLists) -> FileLists:
        weight = sum(map(len, lists.lists.values())) + len(lists.periods)
        self._lists.put((file.name, file.file), lists, weight)
        return lists


_LONGEST: Final = 12
"""Target duration of files that do not grow, whose key frames may be further apart later on."""


def _seconds(package: Package) -> Fraction:
    """How long a file is, with what is not listed yet."""
    periods = package.title.periods
    opened = [one for one in periods[-1].renditions if one.open is not None]
    begun = [Fraction(int(one.open.durations.sum()), one.timescale) for one in opened if one.open]
    return sum((one.seconds for one in periods), max(begun, default=Fraction(0)))


def _target(package: Package) -> int:
    """Whole seconds that no segment exceeds when it is rounded."""
    promised = package.title.promised
    least = 0 if promised is None else promised.target
    texts = (package[f"{name}.m3u8"].read() for name in renditions_of(package))
    return max(least, *map(target_of, texts))


def _natural(name: str) -> list[tuple[int, str]]:
    """A key by which numbers in names count as numbers.

    >>> _natural("a10") > _natural("a9")
    True
    """
    parts = re.split(r"(\d+)", name)
    return [(int(one), one) if one.isdecimal() else (-1, one) for one in parts]


def _after(last: RotatedFile) -> tuple[dict[str, int], int]:
    """Numbers of the first segments, and of the discontinuity, of a file after another one."""
    counts = last.counts or {}
    first = {name: number + counts.get(name, 0) for name, number in last.first.items()}
    return first, last.turn + last.turns + 1


def _text(ledger: _Ledger) -> bytes:
    files = [asdict(one) for one in ledger.files]
    return json.dumps(asdict(ledger) | {"files": files}).encode()


def _read(text: Any) -> _Ledger:
    files = [RotatedFile(**one) for one in text["files"]]
    return _Ledger(**(text | {"files": files}))


def window_of(query: Mapping[str, str]) -> Window:
    """The window that a query names: `from` and `to` in ISO 8601, or `last` in seconds.

    Raises:
        ValueError: a value is invalid.

    >>> window_of({"last": "60"})
    Window(start=None, stop=None, last=60000000, query='last=60')
    """
    times: dict[str, int | None] = {}
    named = []
    for name in ("from", "to"):
        # in a query, a plus stands for a space
        text = query.get(name, "").replace(" ", "+")
        times[name] = None
        if text:
            try:
                time_ = datetime.fromisoformat(text)
            except ValueError:
                raise ValueError(
                    f"{name}: expected a time such as 2026-05-04T17:00:00Z, found {text!r}"
                ) from None
            times[name] = micros_of(time_ if time_.tzinfo else time_.replace(tzinfo=UTC))
            named.append(f"{name}={text.replace('+', '%2B')}")
    last = query.get("last")
    if last is not None:
        if not re.fullmatch(r"\d{1,9}", last) or not int(last) or named:
            raise ValueError(f"last: expected seconds without from and to, found {last!r}")
        named.append(f"last={last}")
    seconds = None if last is None else int(last) * 1_000_000
    return Window(times["from"], times["to"], seconds, "&".join(named))
