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
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

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
    seconds_of,
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
_LONGEST: Final = 12
"""Target duration of files that do not grow, whose key frames may be further apart later on."""
_DISCONTINUITY: Final = 100_000
"""Number of the first discontinuity that is known; those of earlier files come before it."""
_CACHED: Final = 128 << 20
"""Bytes of the lists of files."""
_DATE = re.compile(r"(19|20)\d\d\D?[01]\d\D?[0-3]\d.*", re.DOTALL)
_UNREADABLE: Final = (FragdexError, NotYet, OSError)
"""Why a file cannot be read, or not yet."""


class _Misfit(NotYet):
    """A file that cannot be in the title, whatever comes to it."""


@record(frozen=True, slots=True)
class MatchingFile:
    """A file that matches a pattern.

    Attributes:
        name: below the folder that is served.
        inode: number that tells it from another one of this name.
        size: bytes.
        written: nanoseconds since 1970 of its last write.
    """

    name: str
    inode: int
    size: int
    written: int

    @property
    def key(self) -> tuple[str, int]:
        """As `RotatedFile.key`."""
        return self.name, self.inode


@record(slots=True)
class _Ledger:
    """What was listed, as it is written down.

    Attributes:
        renditions: names of those that all files have.
        target, part: as of `RotatedPackage`; the part as text.
        zero: as of `RotatedPackage`.
        files: one after the other.
        is_whole: whether no earlier file can come.
        first, discontinuity: as of `RotatedFile`, of the next one, once all are closed.
    """

    renditions: list[str]
    target: int
    part: str | None
    zero: int
    files: list[RotatedFile]
    is_whole: bool = False
    first: dict[str, int] = field(default_factory=dict)
    discontinuity: int = _DISCONTINUITY

    @classmethod
    def read(cls, text: bytes) -> _Ledger:
        fields = json.loads(text)
        return cls(**fields | {"files": [RotatedFile(**one) for one in fields["files"]]})

    def text(self) -> bytes:
        files = [asdict(file) for file in self.files]
        return json.dumps(asdict(self) | {"files": files}).encode()

    def check_fits(self, package: Package) -> None:
        """Raise `_Misfit` for a file that has other tracks or longer segments than the title."""
        names, target = renditions_of(package), _target(package)
        if names != self.renditions:
            known = ", ".join(self.renditions)
            raise _Misfit(f"it has other tracks: {', '.join(names)}, not {known}")
        if target > self.target:
            raise _Misfit(
                f"its segments last up to {target} s, those of the title {self.target} s; "
                "a greater --segment-duration is for both"
            )


@record(eq=False)
class RotatedFilm:
    """A title of several files, as it was at a moment; it stands where a file of the origin does.

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
        if time.time() >= self.look_at or _last_changes(self.folders) != self.folders:
            return False
        titles = self.title.titles
        if self.last is not None and titles.opened(self.last.names) is not self.last:
            return False
        try:
            states = {name: os.stat(f"{titles.root}/{name}") for name in self.waiting}
        except OSError:
            return False
        return self.waiting == {name: (at.st_size, at.st_mtime_ns) for name, at in states.items()}

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
        self._files: list[MatchingFile] = []
        self._folders: dict[str, int] = {}
        self._left: dict[tuple[str, int], tuple[int | None, str]] = {}
        """By key: the bytes at which a file is left out, None at any, and why."""
        self._waiting: dict[str, tuple[int, int]] = {}
        self._until = 0.0
        self._lists: LRUCache[FileLists] = LRUCache(_CACHED)

    def update(self) -> RotatedFilm:
        """The title as it is now.

        Raises:
            SourceNotFound: no file matches.
            NotYet: no file has a complete segment yet.
            FragdexError: as `Titles.open`, of the last file, where none can be read.
        """
        with self._lock:
            changed = _last_changes(self._folders) != self._folders or not self._folders
            if changed:
                self._scan()
            if changed or self._waiting or self._ledger is None:
                with self._written_down():
                    self._waiting = {}
                    self._reconcile()
            ledger = self._known()
            last, last_package = self._open_last(ledger)
            now, growing = time.time(), self.titles.writes.seconds
            names = [*self._waiting, *([] if last is None else last.names)]
            if names:
                written = (self.titles.writes.last(self._path(name)) or 0 for name in names)
                self._until = max(written) + growing
            ended = not growing or now >= self._until
            part = None if ledger.part is None or not growing else Fraction(ledger.part)
            changed_at = max((file.written // 1000 for file in self._files), default=ledger.zero)
            package = RotatedPackage(
                tuple(ledger.files), self._lists_of, last_package, ledger.target, part,
                ledger.zero, ended, changed_at, self._findings(),
            )  # fmt: skip
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
            ledger, low = self._known(), window.begins(film.package.end)
            if not ledger.is_whole and ledger.files and ledger.files[0].start > low:
                with self._written_down():
                    self._extend(self._known(), low)
            files, first, findings = self._known().files, film.package.files[0], self._findings()
            before = files.index(first) if first in files else 0
            if before or findings != film.package.findings:
                film.package = film.package.after(files[:before], findings)
        if not window.of(film.package.files, film.package.end):
            raise SourceNotFound(f"of {self._pattern!r} there is nothing at this time")
        return film.package

    # -- files

    def _path(self, name: str) -> str:
        return f"{self.titles.root}/{name}"

    def _scan(self) -> None:
        """List the files of the pattern, in order."""
        folders, looked_at = [""], 0
        *parts, last = self._pattern.split("/")
        self._folders = {}
        for part in parts:
            if "*" not in part:
                folders = [f"{folder}{part}/" for folder in folders]
                continue
            entries = [(up, entry) for up in folders for entry in self._entries(up, part)]
            looked_at += len(entries)
            below = [f"{up}{x.name}/" for up, x in entries if x.is_dir(follow_symlinks=False)]
            folders = sorted(below)[-_LOOKED_AT:]
        files = []
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
                        files.append(MatchingFile(name, now.st_ino, now.st_size, now.st_mtime_ns))
        # what changes while it is looked at may change again at the same time
        recent = time.time_ns() - 100_000_000
        self._folders = {p: at if at < recent else -2 for p, at in self._folders.items()}
        dates = {file.name: date[0] for file in files if (date := _DATE.search(file.name))}
        self._is_dated = len(dates) == len(files)
        files.sort(key=lambda file: _natural(file.name))
        files.sort(key=lambda file: dates[file.name] if self._is_dated else file.written)
        self._files = files[-MOST_FILES:]
        keys = {file.key for file in self._files}
        self._left = {key: why for key, why in self._left.items() if key in keys}

    def _entries(self, folder: str, part: str) -> list[os.DirEntry[str]]:
        """What matches a part of the pattern in a folder."""
        matches = re.compile("[^/]*".join(map(re.escape, part.split("*"))), re.DOTALL).fullmatch
        path = os.path.realpath(self._path(folder))
        if os.path.commonpath([path, self.titles.root]) != self.titles.root:
            return []
        try:
            self._folders[path] = os.stat(path).st_mtime_ns
            with os.scandir(path) as entries:
                return [
                    entry for entry in entries if matches(entry.name) and _is_address(entry.name)
                ]
        except OSError:
            return []

    # -- what was listed

    def _known(self) -> _Ledger:
        assert self._ledger is not None
        return self._ledger

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
                    self._ledger = _Ledger.read(path.read_bytes())
                    self._read_at = now.st_ino, now.st_mtime_ns
            before = None if self._ledger is None else self._ledger.text()
            yield
            after = None if self._ledger is None else self._ledger.text()
            if after is not None and after != before:
                write_file(path, [after])
                now = path.stat()
                self._read_at = now.st_ino, now.st_mtime_ns

    def _reconcile(self) -> None:
        """Take away what was deleted from the front, and add what follows."""
        keys, ledger = {file.key for file in self._files}, self._ledger
        if ledger is not None:
            while ledger.files and ledger.files[0].key not in keys:
                first = self._closed(ledger.files.pop(0), False)
                ledger.first, ledger.discontinuity = first.following
                ledger.is_whole = True
            for file in ledger.files[:-1]:
                if file.key not in keys:
                    self._keep(file, gone(file))
        if not self._files and (ledger is None or not ledger.files):
            raise SourceNotFound(f"no file matches {self._pattern!r}")
        if ledger is None:
            ledger = self._ledger = self._begin()
        failure: Exception | None = None
        for match in self._new(ledger):
            try:
                self._join(ledger, match)
            except _UNREADABLE as error:
                failure = error
        if not ledger.files:
            raise failure or NotYet("no file has a complete segment yet")

    def _new(self, ledger: _Ledger) -> list[MatchingFile]:
        """Files that follow the last one."""
        places = {file.name: place for place, file in enumerate(self._files)}
        listed = {file.key for file in ledger.files}
        taken = [places[name] for name, _ in listed if name in places]
        low, high = min(taken, default=0), max(taken, default=-1)
        start = ledger.files[-1].start * 1000 if ledger.files else 0
        new = []
        for place, file in enumerate(self._files):
            if file.key in listed:
                continue
            if place > high or (not self._is_dated and file.written >= start):
                new.append(file)
            elif ledger.is_whole or place > low:
                self._left[file.key] = None, "it came after files that follow it"
        return new

    def _findings(self) -> tuple[str, ...]:
        """Which files are left out, and why."""
        return tuple(f"{name}: {why}" for (name, _), (_, why) in self._left.items())

    def _is_left(self, file: MatchingFile) -> bool:
        size, _ = self._left.get(file.key, (-1, ""))
        return size is None or size == file.size

    def _open(self, file: MatchingFile, ledger: _Ledger | None) -> tuple[ServedFilm, Package]:
        """A file that may join a title; one that cannot is left out, or waits."""
        if self._is_left(file):
            raise NotYet(f"{file.name}: {self._left[file.key][1]}")
        try:
            film = self.titles.open_file(file.name)
            package = film.package
            if ledger is not None:
                ledger.check_fits(package)
            return film, package
        except _Misfit as error:
            self._left[file.key] = None, str(error)
            raise
        except NotYet:
            self._waiting[file.name] = file.size, file.written
            raise
        except (FragdexError, OSError) as error:
            self._left[file.key] = file.size, str(error).splitlines()[0]
            raise

    def _begin(self) -> _Ledger:
        """A ledger of the latest file that can be read."""
        failure: Exception | None = None
        latest: list[tuple[MatchingFile, ServedFilm, Package]] = []
        for file in reversed(self._files):
            try:
                film, package = self._open(file, None)
            except _UNREADABLE as error:
                failure = failure or error
                continue
            if latest and renditions_of(package) != renditions_of(latest[0][2]):
                break
            latest.append((file, film, package))
            if len(latest) == _JUDGED:
                break
        if not latest:
            raise failure or NotYet("no file has a complete segment yet")
        file, film, package = latest[0]
        start = self._starts(film, file, _seconds(package))[-1]
        zero, before = start, len(self._files) - 1
        if before:
            oldest = self._files[0]
            with suppress(*_UNREADABLE), closing(self.titles.ended(oldest.name)) as other:
                lasts = _seconds(other.package)
                zero = min(start, *self._starts(other, oldest, lasts))
                micros = int(before * max(lasts, _seconds(package)) * 10**6)
                if start - zero < micros * 9 // 10:
                    zero = start - 2 * micros  # copies, whose times say nothing
        promised = package.title.promised
        # parts of files that begin otherwise may be a little longer
        part = None if promised is None else str(promised.part * Fraction(21, 20))
        target = max(0 if promised else _LONGEST, *(_target(one) for _, _, one in latest))
        names = renditions_of(package)
        first = dict.fromkeys(names, start // 1_000_000)
        files = [RotatedFile(file.name, file.inode, start, _DISCONTINUITY, first)]
        return _Ledger(names, target, part, zero, files)

    def _join(self, ledger: _Ledger, file: MatchingFile) -> None:
        """Add a file after the last one, if that is over."""
        film, package = self._open(file, ledger)
        last = ledger.files[-1] if ledger.files else None
        if last is not None:
            if last.counts is None and not self._may_close(last):
                self._waiting[file.name] = file.size, file.written
                return
            last = ledger.files[-1] = self._closed(last, True)
            ledger.first, ledger.discontinuity = last.following
        starts = self._starts(film, file, _seconds(package))
        start = starts[0]
        if last is not None:
            start = next((at for at in starts if at > last.start + last.micros // 2), last.stop)
            start = last.stop if abs(start - last.stop) <= _CLOSE else start
        ledger.files.append(RotatedFile(*file.key, start, ledger.discontinuity, ledger.first))

    def _may_close(self, last: RotatedFile) -> bool:
        """Whether the last file is over, since another one has begun."""
        written = self.titles.writes.last(self._path(last.name))
        if written is None or time.time() >= written + min(_STILL, self.titles.writes.seconds):
            return True
        with suppress(*_UNREADABLE):
            return self.titles.open_file(last.name).growing is not True
        return True

    def _closed(self, file: RotatedFile, is_there: bool) -> RotatedFile:
        """A file to which nothing more comes, with what is known of it."""
        if file.counts is not None:
            return file
        try:
            if not is_there:
                raise SourceNotFound(file.name)
            self.titles.writes.end(self._path(file.name))
            lists = self._keep(file, self._read(file))
        except _UNREADABLE:
            package = self.titles.latest_package(file.name)  # it was deleted: as it was seen last
            if package is None:
                return replace(file, counts=dict.fromkeys(file.first, 0))
            lists = FileLists.of(package)
        return lists.close(file)

    def _extend(self, ledger: _Ledger, low: int) -> None:
        """Number files that come before the first one, as far as a time."""
        place = [file.name for file in self._files].index(ledger.files[0].name)
        while place and ledger.files[0].start > low:
            place -= 1
            match, following = self._files[place], ledger.files[0]
            if self._is_left(match):
                continue
            self.titles.writes.end(self._path(match.name))
            try:
                with closing(self.titles.ended(match.name)) as film:
                    ledger.check_fits(film.package)
                    lists = FileLists.of(film.package)
                    starts = self._starts(film, match, lists.seconds)
                near = following.start - lists.micros
                # of several files with one creation time, that of none of them is meant
                start = next((at for at in starts if at < near - _CLOSE), near)
                discontinuity = following.discontinuity - lists.discontinuities - 1
                if start < ledger.zero - _CLOSE or discontinuity < 0:
                    raise _Misfit("it began before the title")
            except _UNREADABLE as error:
                self._left[match.key] = None, str(error).splitlines()[0]
                continue
            start = max(start, ledger.zero)
            first = {name: following.first[name] - count for name, count in lists.counts.items()}
            file = lists.close(RotatedFile(*match.key, start, discontinuity, first))
            self._keep(file, lists.placed(file, ledger.zero))
            ledger.files.insert(0, file)
        ledger.is_whole = ledger.is_whole or not place

    def _starts(self, film: ServedFilm, file: MatchingFile, seconds: Fraction) -> list[int]:
        """When a file began, in microseconds since 1970: what its moov says, then its last write.

        What a moov says of a file that grows counts if it is near when the file was made.
        """
        born = born_ns(self._path(file.name)) or file.written
        written = max(min(file.written - int(seconds * 10**9), born) // 10**6 * 1000, 0)
        with suppress(FragdexError), self.titles.sources(film) as (source,):
            init = film.windows[0].periods[0].init
            time_ = creation(parse(plain_init(b"".join(map(source.read, init)))))
            created = written if time_ is None else micros_of(time_)
            if film.growing is not True or abs(created - written) <= _FAR_FROM_WRITES:
                return [created, written]
        return [written]

    # -- lists

    def _open_last(self, ledger: _Ledger) -> tuple[ServedFilm | None, Package | None]:
        """The last file and its package; None: it is closed, or gone."""
        last = ledger.files[-1]
        if last.counts is None:
            try:
                film = self.titles.open_file(last.name)
                return film, film.package
            except _UNREADABLE:
                ledger.files[-1] = self._closed(last, False)
        return None, None

    def _lists_of(self, file: RotatedFile) -> FileLists:
        """What the lists of a closed file say."""
        lists = self._lists.get(file.key)
        if lists is None:
            with self._lock:  # others wait meanwhile, and find them made
                lists = self._lists.get(file.key) or self._keep(file, self._read_again(file))
        return lists

    def _read_again(self, file: RotatedFile) -> FileLists:
        with suppress(*_UNREADABLE):
            if os.stat(self._path(file.name)).st_ino == file.inode:
                lists = self._read(file)
                if lists.counts == file.counts:
                    return lists
        return gone(file)

    def _read(self, file: RotatedFile) -> FileLists:
        with closing(self.titles.ended(file.name)) as film:
            return FileLists.of(film.package).placed(file, self._known().zero)

    def _keep(self, file: RotatedFile, lists: FileLists) -> FileLists:
        weight = sum(map(len, lists.lists.values())) + len(lists.periods)
        self._lists.put(file.key, lists, weight)
        return lists


def _last_changes(folders: Mapping[str, int]) -> dict[str, int]:
    """The last change of each folder, in nanoseconds since 1970; -1: it is gone."""
    changes = {}
    for path in folders:
        try:
            changes[path] = os.stat(path).st_mtime_ns
        except OSError:
            changes[path] = -1
    return changes


def _is_address(name: str) -> bool:
    """Whether addresses can have the name, as that of one file."""
    has_bytes = any("\ud800" <= c <= "\udfff" for c in name)
    return is_name(name) and "," not in name and not has_bytes


def _seconds(package: Package) -> Fraction:
    """How long a file is, with what is not listed yet."""
    begun = [
        Fraction(int(one.open.durations.sum()), one.timescale)
        for one in package.title.periods[-1].renditions
        if one.open is not None
    ]
    return seconds_of(package.title) + max(begun, default=0)


def _target(package: Package) -> int:
    """Whole seconds that no segment exceeds when it is rounded."""
    promised = package.title.promised
    texts = (package[f"{name}.m3u8"].read() for name in renditions_of(package))
    return max(0 if promised is None else promised.target, *map(target_of, texts))


def _natural(name: str) -> list[tuple[int, str]]:
    """A key by which numbers in names count as numbers.

    >>> _natural("a10") > _natural("a9")
    True
    """
    parts = re.split(r"(\d+)", name)
    return [(int(part), part) if part.isdecimal() else (-1, part) for part in parts]


def window_of(query: Mapping[str, str]) -> Window:
    """The window that a query names: `from` and `to` in ISO 8601, or `last` in seconds.

    Raises:
        ValueError: a value is invalid.

    >>> window_of({"last": "60"})
    Window(start=None, stop=None, last=60000000, query='last=60')
    """
    # in a query, a plus stands for a space
    texts = {name: query.get(name, "").replace(" ", "+") for name in ("from", "to")}
    start, stop = (_micros(name, text) for name, text in texts.items())
    fields = [f"{name}={text.replace('+', '%2B')}" for name, text in texts.items() if text]
    last = query.get("last")
    if last is None:
        return Window(start, stop, None, "&".join(fields))
    if not re.fullmatch(r"\d{1,9}", last) or not int(last) or fields:
        raise ValueError(f"last: expected seconds without from and to, found {last!r}")
    return Window(last=int(last) * 1_000_000, query=f"last={last}")


def _micros(name: str, text: str) -> int | None:
    """A time in microseconds since 1970; None: there is none."""
    if not text:
        return None
    try:
        time_ = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{name}: expected a time such as 2026-05-04T17:00:00Z, found {text!r}"
        ) from None
    return micros_of(time_ if time_.tzinfo else time_.replace(tzinfo=UTC))
