"""From a name in an address to the film: opened, indexed and packaged, the last few in memory."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property
from hashlib import md5
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote
from weakref import WeakValueDictionary

import fragdex
from fragdex.boxes import find, parse
from fragdex.boxes.limits import MAX_MADE_SAMPLES
from fragdex.byterange import ByteRange
from fragdex.errors import (
    BuildError,
    DamagedIndex,
    FormatError,
    FragdexError,
    NoSyncSample,
    NotISOBMFF,
    SourceChanged,
    SourceError,
    SourceNotFound,
    TruncatedInput,
)
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.indexing.moov import plain_init
from fragdex.muxing.kinds import described
from fragdex.muxing.view import View
from fragdex.origin.film_list import FilmList, film_list, is_name
from fragdex.origin.live import LiveFilm, growing_index
from fragdex.origin.rotated import RotatedFilm, RotatedTitle
from fragdex.origin.writes import NotYet, Writes
from fragdex.packaging.growing import Irregular
from fragdex.packaging.package import Package, package
from fragdex.packaging.subtitles import Captions, read_captions
from fragdex.packaging.titling import UNIX, creation
from fragdex.record import record
from fragdex.seeking.model import Index
from fragdex.sources import Source, open_source
from fragdex.sources.files import born_ns

SUFFIX = ".fidx"


class IndexFiles:
    """Where the indexes of files are.

    Args:
        folder: that indexes are written to; None: they are not written.
        beside: whether they are written next to local files, as `film.mp4.fidx`. Those that are
            there are read in any case.

    Attributes:
        folder, beside: as given.
    """

    def __init__(self, folder: Path | None = None, *, beside: bool = False) -> None:
        self.folder, self.beside = folder, beside

    def index(
        self,
        place: str,
        source: Source,
        known: Index | None = None,
        *,
        growing: bool = False,
    ) -> Index:
        """The index of a film: one that was kept, if it is of these very bytes, or a new one.

        Args:
            place: path or URL of the file.
            source: the file.
            known: the index of its beginning.
            growing: whether it may grow: its index is not written then.

        Raises: as `fragdex.index`.
        """
        for path in self._paths(place, source.remote):
            saved = _of(path, place, source)
            if saved is not None:
                return saved
        index = None if known is None else known.extend(source)
        if index is None or index.file.mtime_ns != source.mtime_ns:
            index = fragdex.index(source, exact=True)
        written = None if growing else self._written(place, source.remote)
        samples = sum(track.sample_count or 0 for track in index.tracks)
        # raw sound may have billions of them, and they are found again quickly
        if written is not None and samples <= MAX_MADE_SAMPLES:
            with suppress(OSError):  # a full or read-only disk: the video plays all the same
                written.parent.mkdir(parents=True, exist_ok=True)
                index.save(written, samples=True)
        return index

    def _paths(self, place: str, remote: bool) -> list[Path]:
        beside = [] if remote else [Path(place + SUFFIX)]
        written = self._written(place, remote)
        return list(dict.fromkeys([*beside, *([] if written is None else [written])]))

    def _written(self, place: str, remote: bool) -> Path | None:
        if self.folder is not None:
            name = hashlib.md5(os.fsencode(place), usedforsecurity=False).hexdigest()
            return self.folder / f"{name}{SUFFIX}"
        return Path(place + SUFFIX) if self.beside and not remote else None


def _of(path: Path, place: str, source: Source) -> Index | None:
    """The index in a file, if it is of this file and knows its samples."""
    if not path.is_file():
        return None
    try:
        index = fragdex.open_index(path)
        if source.remote:
            source.read_up_to(fragdex.ByteRange(0, 16))  # its size and tag come with an answer
        index.file.refuse_other(place, size=source.size, etag=source.etag, mtime_ns=source.mtime_ns)
    except (DamagedIndex, FormatError, SourceChanged, OSError):
        return None
    return index if all(track.has_samples for track in index.tracks) else None


_MOST_VIEWS: Final = 8
_MOST_IDLE: Final = 16
_MOST_REVISIONS: Final = 4096
"""Titles of which it is known that a file was cut or written again."""


@record(eq=False)
class ServedFilm:
    """One or several files that are opened.

    Attributes:
        names: of the files, as addresses name them.
        windows: indexes of each; of one that grows, of its end alone where `live` has the rest.
        titles: where it was opened.
        idle: its files, opened and not used now, for one thread at a time.
        forgotten: whether files that are given back are closed.
        captions: the caption files of the first file, where that is local.
        trusted_until: on the clock of `time.monotonic`, when a remote file is looked at again.
        growing: as `fragdex.package` takes it.
        grows_until: on the clock of `time.time`, when it has ended if nothing is written.
        fingerprints: of its files, while it grows.
        began: when its time 0 was, where no file of it says so.
        grown: size and time of the last write of each file, when it was last found to be the same
            with more.
        live: what it grows by; None: it does not, or is packaged as a whole each time.
        irregular: whether it has to be packaged as a whole.
    """

    names: tuple[str, ...]
    windows: tuple[Index, ...]
    titles: Titles
    _views: OrderedDict[str, View] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    idle: list[list[Source]] = field(default_factory=list)
    forgotten: bool = False
    trusted_until: float = 0.0
    captions: CaptionsBeside | None = None
    checking: threading.Lock = field(default_factory=threading.Lock)
    growing: bool | Literal["ended"] = False
    grows_until: float = 0.0
    fingerprints: tuple[tuple[str, str], ...] = ()
    began: datetime | None = None
    grown: list[tuple[int, int]] | None = None
    live: LiveFilm | None = None
    irregular: bool = False

    @cached_property
    def indexes(self) -> tuple[Index, ...]:
        """The index of each file."""
        if self.live is None:
            return self.windows
        return tuple(self.live.whole(number) for number in range(len(self.names)))

    @property
    def is_packaged(self) -> bool:
        """Whether its package is made."""
        return "package" in self.__dict__

    def give_back(self, opened: list[Source]) -> None:
        """Its files, for whoever reads next."""
        if len(self.idle) < _MOST_IDLE and not self.forgotten:
            self.idle.append(opened)
        else:
            _close(opened)

    def continued(self, sources: list[Source]) -> list[Index | None]:
        """Its indexes, where it grew and files are the same with more; None for others."""
        if not self.is_same(sources):
            return [None] * len(sources)
        return list(self.indexes)

    def is_same(self, sources: list[Source]) -> bool:
        """Whether it grew, and files are the same with more."""
        return bool(self.growing) and self._fingerprints(sources) == self.fingerprints

    def is_cut(self, sources: list[Source]) -> bool:
        """Whether it grew, and files are shorter now, or have other fragments."""
        if not self.growing:
            return False
        pairs = zip(self._fingerprints(sources), self.fingerprints, strict=True)
        return any(now[1] != known[1] for now, known in pairs)

    def _fingerprints(self, sources: list[Source]) -> tuple[tuple[str, str], ...]:
        """Those of files as they are now; where they are shorter, of none."""
        return tuple(
            ("", "") if (source.size or 0) < (index.file.size or 0) else fingerprint(index, source)
            for index, source in zip(self.windows, sources, strict=True)
        )

    def close(self) -> None:
        """Close its files, now or when whoever reads from them is done."""
        self.forgotten = True
        while self.idle:
            _close(self.idle.pop())

    @cached_property
    def package(self) -> Package:
        """All files as one title in HLS and DASH.

        Raises: as `fragdex.package`.
            NotYet: it grows, and no segment is complete.
        """
        with self.titles.sources(self) as sources:
            try:
                return package(
                    self.indexes,
                    source=sources,
                    segment_duration=self.titles.segment_duration,
                    captions=[] if self.captions is None else self.captions.read(),
                    growing=self.growing,
                    began=self.began,
                    low_latency=True,
                )
            except (BuildError, NoSyncSample) as error:
                if self.growing is True:
                    raise NotYet(str(error)) from error
                raise

    def view(self, kind: str, **options: Any) -> View:
        """A view of the first file, as `fragdex.view` makes it; the last few are kept."""
        key = repr((kind, sorted(options.items())))
        with self._lock:
            if key in self._views:
                self._views.move_to_end(key)
                return self._views[key]
        with self.titles.sources(self) as sources:
            index, length = self.indexes[0], self.titles.segment_duration
            view = described(index, kind, source=sources[0], segment_duration=length, **options)  # type: ignore[arg-type]
        with self._lock:
            self._views[key] = view
            while len(self._views) > _MOST_VIEWS:
                self._views.popitem(last=False)
        return view


OpenTitle: TypeAlias = ServedFilm | RotatedFilm


class Titles:
    """The files of a folder, or below a URL.

    Args:
        root: path of a folder, or a URL (https, s3, gs, az) that names are put after.
        segment_duration: wanted length of segments.
        in_memory: how many files stay open.
        indexes: where indexes are kept; None: they are made again. That of a file of two hours
            takes about 30 MB.
        max_bytes: that may be read of a remote file to index it; None: no bound.
        trust: seconds for which a remote file is taken to be the same without asking. What is
            read of it is checked in any case.
        growing: seconds after its last write for which a local fragmented file counts as one that
            grows, unless it ends with an mfra; 0: none does.
        notes: folder in which processes agree on the numbers of titles of several files; None:
            that of the indexes, or else nobody has to be agreed with.
        options: for `fragdex.open_source`.

    For several threads at a time.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        segment_duration: Any = 4,
        in_memory: int = 16,
        indexes: IndexFiles | None = None,
        max_bytes: int | None = None,
        trust: float = 60,
        growing: float = 0,
        notes: Path | None = None,
        **options: Any,
    ) -> None:
        text = os.fspath(root)
        self.remote = "://" in text
        self.root = text.rstrip("/") if self.remote else os.path.realpath(text)
        if not self.remote and not os.path.isdir(self.root):
            raise SourceNotFound(f"there is no folder {text}", advice="name a folder or a URL")
        self.segment_duration, self._in_memory = segment_duration, in_memory
        self._indexes = IndexFiles() if indexes is None else indexes
        self._max_bytes, self._trust, self._options = max_bytes, trust, options
        self._notes = self._indexes.folder if notes is None else notes
        self.writes = Writes(0.0 if self.remote else growing, self._notes)
        self._films: OrderedDict[tuple[str, ...], OpenTitle] = OrderedDict()
        self._revisions: OrderedDict[tuple[str, ...], int] = OrderedDict()
        self._lock = threading.Lock()
        # each as long as somebody opens the title, or waits for it
        self._opening: WeakValueDictionary[tuple[str, ...], Any] = WeakValueDictionary()

    def pattern(self, names: tuple[str, ...]) -> str | None:
        """The pattern that a name is, of files that are one title; None: it is that of a file."""
        if len(names) != 1 or "*" not in names[0]:
            return None
        with suppress(SourceNotFound):
            self.place(names[0])
            return None
        return names[0]

    def listed(self, after: str, most: int) -> FilmList:
        """Some files of the folder or bucket and below, by their names.

        Raises: as `film_list`.
        """
        return film_list(self.root, self.remote, after, most, self._options)

    def place(self, name: str) -> str:
        """The path or URL of a file.

        Raises:
            SourceNotFound: the name leads out of the folder, or to no file in it.
        """
        if not is_name(name):
            raise SourceNotFound(f"there is no file {name!r}")
        if self.remote:
            return f"{self.root}/{quote(name)}"
        path = os.path.realpath(os.path.join(self.root, *name.split("/")))
        inside = os.path.commonpath([path, self.root]) == self.root
        if not inside or not os.path.isfile(path):
            raise SourceNotFound(f"there is no file {name!r}")
        return path

    @contextmanager
    def sources(self, film: ServedFilm) -> Iterator[list[Source]]:
        """The files of a title, opened for this thread; returned ones are reused."""
        try:
            opened = film.idle.pop()
        except IndexError:
            opened = [open_source(self.place(name), **self._options) for name in film.names]
        try:
            if film.growing is True:
                for source in opened:
                    source.refresh()
            yield opened
        except BaseException:
            _close(opened)
            raise
        film.give_back(opened)

    def opened(self, names: tuple[str, ...]) -> OpenTitle | None:
        """A local file that is open and unchanged, at once; None: it has to be opened."""
        film = self._films.get(names)
        if film is None or self.remote:
            return None
        places = [f"{self.root}/{name}" for name in names]
        if not self._is_current(film, places):
            return None
        with self._lock:
            if self._films.get(names) is not film:
                return None
            self._films.move_to_end(names)
        return film

    def beginning(self, names: tuple[str, ...]) -> OpenTitle | None:
        """A local file that is open, and unchanged or the same with more; None: it is neither.

        What was complete when it was opened is read from it without opening it again.
        """
        film = self.opened(names)
        if film is not None or self.remote:
            return film
        film = self._films.get(names)
        if film is None or isinstance(film, RotatedFilm) or film.growing is not True:
            return None
        states = []
        for index, name in zip(film.windows, names, strict=True):
            try:
                now = os.stat(f"{self.root}/{name}")
            except OSError:
                return None
            same = (now.st_dev, now.st_ino) == index.file.grows_as
            if not same or now.st_size < (index.file.size or 0):
                return None
            states.append((now.st_size, now.st_mtime_ns))
        if film.grown != states:
            try:
                with self.sources(film) as sources:
                    if not film.is_same(sources):
                        return None
            except FragdexError:
                return None
            film.grown = states
        return film

    def latest(self, names: tuple[str, ...]) -> OpenTitle | None:
        """The file that was opened last, be it unchanged or not."""
        return self._films.get(names)

    def open(self, names: tuple[str, ...]) -> OpenTitle:
        """The title of some files that are its renditions.

        Raises:
            SourceNotFound: there is no such file.
            NotYet: a file is still being written, and cannot be indexed yet.
            FragdexError: as `fragdex.index` and `fragdex.package`.
        """
        pattern = self.pattern(names)
        places = [] if pattern else [self.place(name) for name in names]
        with self._lock:
            film = self._films.get(names)
            if film is not None:
                self._films.move_to_end(names)
        if film is not None and self._is_current(film, places):
            return film
        with self._lock:
            opening = self._opening.setdefault(names, threading.Lock())
        with opening:  # other callers wait meanwhile, and find it made
            with self._lock:
                film = self._films.get(names)
            if film is None or not self._is_current(film, places):
                if pattern:
                    known = film.title if isinstance(film, RotatedFilm) else None
                    film = (known or RotatedTitle(self, pattern, self._notes)).update()
                else:
                    assert film is None or isinstance(film, ServedFilm)
                    film = self._made(names, places, film)
                with self._lock:
                    gone = [self._films.pop(names, None)]
                    self._films[names] = film
                    while len(self._films) > self._in_memory:
                        gone.append(self._films.popitem(last=False)[1])
                for old in gone:
                    if old is not None:
                        old.close()
        return film

    def forget(self, film: OpenTitle) -> None:
        """Open a title again on its next request: one of its files has changed."""
        with self._lock:
            if self._films.get(film.names) is film:
                del self._films[film.names]
        film.close()

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            films = list(self._films.values())
            self._films.clear()
        for film in films:
            film.close()

    def _is_current(self, film: OpenTitle, places: list[str]) -> bool:
        """Whether files are those that were indexed; remote ones are asked from time to time.

        Raises:
            SourceError: a remote one cannot be asked.
        """
        if isinstance(film, RotatedFilm):
            return film.is_current()
        if self.remote:
            return self._is_trusted(film, places)
        if film.growing is True:
            is_over = any(map(self.writes.is_over, places))
            if is_over or time.time() >= film.grows_until:
                return False
        for index, place in zip(film.windows, places, strict=True):
            try:
                now = os.stat(place)
            except OSError:
                return False
            if (now.st_size, now.st_mtime_ns) != (index.file.size, index.file.mtime_ns):
                return False
        try:
            return film.captions is None or film.captions.is_current()
        except OSError:
            return False

    def _is_trusted(self, film: ServedFilm, places: list[str]) -> bool:
        if time.monotonic() < film.trusted_until:
            return True
        with film.checking:  # other callers wait meanwhile for the answer
            if time.monotonic() < film.trusted_until:
                return True
            for index, place in zip(film.windows, places, strict=True):
                with open_source(place, **self._options) as source:
                    source.read_up_to(fragdex.ByteRange(0, 1))
                    try:
                        index.file.refuse_other(place, size=source.size, etag=source.etag)
                    except SourceChanged:
                        return False
            film.trusted_until = time.monotonic() + self._trust
        return True

    def open_file(self, name: str) -> ServedFilm:
        """A file as a title of its own.

        Raises: as `open`.
        """
        film = self.open((name,))
        assert isinstance(film, ServedFilm)
        return film

    def latest_package(self, name: str) -> Package | None:
        """The package of a file that was made last, be the file there or not."""
        film = self._films.get((name,))
        return film.package if isinstance(film, ServedFilm) and film.is_packaged else None

    def ended(self, name: str) -> ServedFilm:
        """A local file to which nothing more comes, opened for the caller, who closes it.

        Raises: as `open`.
        """
        place, film = self.place(name), self._films.get((name,))
        assert not isinstance(film, RotatedFilm)
        return self._made((name,), [place], film, is_over=True)

    def _made(
        self,
        names: tuple[str, ...],
        places: list[str],
        before: ServedFilm | None,
        is_over: bool = False,
    ) -> ServedFilm:
        """A file that is opened; of one that grew, what has come is indexed alone.

        Args:
            is_over: whether nothing more comes.
        """
        most = self._max_bytes if self.remote else None
        captions = None if self.remote else CaptionsBeside(places[0])
        until = time.monotonic() + self._trust
        grows_until = 0.0 if is_over else max(self.writes.until(place) for place in places)
        sources = [open_source(place, max_bytes=most, **self._options) for place in places]
        growing: bool | Literal["ended"] = False
        began: datetime | None = None
        live: LiveFilm | None = None
        irregular = False
        try:
            if before is not None and grows_until and before.is_same(sources):
                grown = self._grown(before, sources, until, grows_until, captions)
                if grown is not None:
                    grown.give_back(sources)
                    sources = []
                    return grown
                irregular = before.live is not None or before.irregular
            known = [None] * len(places) if before is None else before.continued(sources)
            indexes = tuple(
                self._indexes.index(place, source, index, growing=grows_until > 0)
                for place, source, index in zip(places, sources, known, strict=True)
            )
            if grows_until:
                growing = any(map(may_grow, indexes, sources))
            grew = None not in known or (is_over and all(map(has_fragments, indexes)))
            if not growing and grew:
                growing = "ended"  # what was announced of it keeps its entity tags
            if growing:
                revision = self._revision(names, sources, before)
                every = zip(indexes, sources, strict=True)
                indexes = tuple(growing_index(*both, revision) for both in every)
            fingerprints = tuple(map(fingerprint, indexes, sources)) if growing else ()
            if growing:
                if before is None or None in known:
                    began = began_of(indexes, sources, places)
                else:
                    began = before.began
                is_plain = not irregular and (captions is None or not captions.files)
                if growing is True and is_plain:
                    try:
                        live = LiveFilm.of(
                            places, indexes, sources, self.segment_duration, began, self._options
                        )
                    except Irregular:
                        irregular = True
            windows = indexes if live is None else live.windows(sources)
        except FragdexError as error:
            unread = isinstance(error, SourceError) and not isinstance(error, TruncatedInput)
            never = isinstance(error, NotISOBMFF) and not _may_begin(places)
            if unread or not grows_until or never:
                raise
            raise NotYet(str(error)) from error
        finally:
            _close(sources)
        film = ServedFilm(
            names, windows, self, trusted_until=until, captions=captions,
            growing=growing, grows_until=grows_until, fingerprints=fingerprints, began=began,
            live=live, irregular=irregular,
        )  # fmt: skip
        if live is not None:
            film.__dict__["package"] = live.title.package
        return film

    def _revision(
        self, names: tuple[str, ...], sources: list[Source], before: ServedFilm | None
    ) -> int:
        """How often files were found cut or written again: equal tags are of equal bytes."""
        if before is not None and before.is_cut(sources):
            self._revisions[names] = self._revisions.pop(names, 0) + 1
            while len(self._revisions) > _MOST_REVISIONS:
                self._revisions.popitem(last=False)
        return self._revisions.get(names, 0)

    def _grown(
        self,
        before: ServedFilm,
        sources: list[Source],
        until: float,
        grows_until: float,
        captions: CaptionsBeside | None,
    ) -> ServedFilm | None:
        """A title with what has come; None: it has to be packaged as a whole, or has ended."""
        live = before.live
        if live is None or (captions is not None and captions.files):
            return None
        grown = live.grow(sources)
        if grown is None:
            return None
        windows, package_ = grown
        if not any(map(may_grow, windows, sources)):
            return None
        fingerprints = tuple(map(fingerprint, windows, sources))
        film = ServedFilm(
            before.names, windows, self, trusted_until=until, captions=captions, growing=True,
            grows_until=grows_until, fingerprints=fingerprints, began=before.began, live=live,
        )  # fmt: skip
        film.__dict__["package"] = package_
        return film


def _close(sources: list[Source]) -> None:
    for source in sources:
        source.close()


_FINGERPRINT: Final = 64 << 10
"""Bytes of the last fragment that two files have to share to be one file with more."""
_MFRO: Final = 16
"""Bytes of the box that ends a complete file (ISO/IEC 14496-12, 8.8.11)."""


def began_of(
    indexes: Sequence[Index], sources: Sequence[Source], places: Sequence[str]
) -> datetime | None:
    """When time 0 of files that grow was, where none says when it was made; None: one does.

    It is when a file was born, which every process that serves it finds alike; where a file
    system does not keep that, or a copy grows faster than time goes by, the last write less the
    length.
    """
    reached = Fraction(0)
    for index, source in zip(indexes, sources, strict=True):
        init = b"".join(source.read(part) for part in index.periods[0].init)
        if creation(parse(plain_init(init))) is not None:
            return None
        ends = [track.stop for track in index.tracks]
        reached = max([reached, *(end.fraction for end in ends if end is not None)])
    written = max(os.stat(place).st_mtime_ns for place in places)
    births = [born for place in places if (born := born_ns(place)) is not None]
    began = min([written - int(reached * 10**9), *births])
    return UNIX + timedelta(microseconds=max(began, 0) // 1000)


def _may_begin(places: Sequence[str]) -> bool:
    """Whether what files begin with, as far as it is there, may be boxes."""
    for place in places:
        with open(place, "rb") as file:
            head = file.read(8)
        # room that a recorder has reserved, and fills later
        if head.strip(b"\0") and not (len(head) < 8 or head[4:8].isalnum()):
            return False
    return True


def may_grow(index: Index, source: Source) -> bool:
    """Whether a file has fragments, or none yet, and no mfra, which writers put after them.

    Others do not grow: their moov says all, unless it says that fragments may follow (mvex).
    """
    if any(len(track.fragments) for track in index.tracks) and not has_fragments(index):
        init = b"".join(source.read(part) for part in index.periods[-1].init)
        if find(parse(plain_init(init)), "moov/mvex") is None:
            return False
    size = source.size or 0
    return source.read_up_to(ByteRange(max(size - _MFRO, 0), size))[4:8] != b"mfro"


def has_fragments(index: Index) -> bool:
    """Whether samples of a file are in fragments, not all in its moov."""
    tables = [track.fragments for track in index.tracks]
    return any(((rows.flags & FragmentFlags.VIRTUAL) == 0).any() for rows in tables)


def fingerprint(index: Index, source: Source) -> tuple[str, str]:
    """Hashes of the moov and of the last fragment's begin: a file that grew still has them.

    Some recorders write at the end into the moov how long it was.

    Raises: as `Source.read_up_to`.
    """
    period = index.periods[-1]
    tables = [track.fragments for track in period.tracks if len(track.fragments)]
    last = max((int(rows.moof_offset[-1]) for rows in tables), default=NULL)
    stop = index.file.size or 0
    part = ByteRange(max(last, 0), stop if last < 0 else min(last + _FINGERPRINT, stop))
    moov = b"".join(map(source.read_up_to, period.init))
    first, second = (
        md5(data, usedforsecurity=False).hexdigest() for data in (moov, source.read_up_to(part))
    )
    return first, second


_SUFFIXES: Final = (".vtt", ".srt")
_MOST: Final = 64
"""Caption files of one file."""


def files_beside(place: str) -> tuple[tuple[str, int, int], ...]:
    """Path, size and time of the last change of each caption file of a local file, in order."""
    film = Path(place)
    files = []
    with os.scandir(film.parent) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(f"{film.stem}.") and name.lower().endswith(_SUFFIXES):
                try:
                    now = entry.stat()
                except OSError:  # gone meanwhile
                    continue
                files.append((entry.path, now.st_size, now.st_mtime_ns))
    return tuple(sorted(files)[:_MOST])


@record(slots=True)
class CaptionsBeside:
    """The caption files of a local file, as they were when it was opened.

    Args:
        place: path of the file.
    """

    place: str
    changed: int = field(init=False)
    files: tuple[tuple[str, int, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        self.changed = self._folder()
        self.files = files_beside(self.place)

    def read(self) -> list[Captions]:
        """Those that can be read; the file plays without the others."""
        captions = []
        for path, _, _ in self.files:
            with suppress(FormatError, SourceError):
                captions.append(read_captions(path))
        return captions

    def is_current(self) -> bool:
        """Whether the same files are there, unchanged.

        Raises:
            OSError: the folder is gone.
        """
        changed = self._folder()
        if changed != self.changed:  # a file was added or removed, perhaps another video's
            if files_beside(self.place) != self.files:
                return False
            self.changed = changed
        for path, size, mtime_ns in self.files:
            now = os.stat(path)
            if (now.st_size, now.st_mtime_ns) != (size, mtime_ns):
                return False
        return True

    def _folder(self) -> int:
        return os.stat(os.path.dirname(self.place)).st_mtime_ns
