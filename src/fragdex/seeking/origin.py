"""Where an index comes from: the bytes it describes, checked as they are read; how it was made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Final, NamedTuple

from fragdex.byterange import ByteRange
from fragdex.digest import Digest
from fragdex.errors import SourceChanged, SourceNotFound
from fragdex.fragments.pieces import PieceDigests
from fragdex.fragments.track_info import SampleDefaults
from fragdex.record import record
from fragdex.sources import Source, SourceLike, open_source


@record(frozen=True, slots=True)
class FileInfo:
    """Which bytes an index describes.

    Attributes:
        name: path or URL as it was given; "" for bytes and streams.
        size: bytes, or None while the end is unknown.
        md5: a `fragdex.digest.Digest`, equal to its 32 hex digits; None if it was not requested.
        etag: the server's entity tag, or None.
        mtime_ns: nanoseconds since 1970 at which a local file was last written, or None.
        grows_as: device and inode of a local file that is still written: it is the same file as
            long as it is that one and not shorter than `size`. None: it must not change at all.
        revision: how often that file was found cut or written again: its tags name it, too.
    """

    name: str = ""
    size: int | None = None
    md5: Digest | None = None
    etag: str | None = None
    mtime_ns: int | None = None
    grows_as: tuple[int, int] | None = field(default=None, compare=False, repr=False)
    revision: int = field(default=0, compare=False, repr=False)

    @property
    def path(self) -> str | None:
        """Its name, where it can be opened by that; bytes and streams have none."""
        return None if self.name[:1] in ("", "<") else self.name

    def media(
        self, given: SourceLike | None, advice: str = "give the media with source="
    ) -> SourceLike:
        """The media that a user gave, or else the file's own name.

        Raises:
            SourceNotFound: nothing is given, and the file has no name; with this advice.
        """
        media = self.path if given is None else given
        if media is None:
            raise SourceNotFound(
                "the index was not made from a file or URL that has a name", advice=advice
            )
        return media

    @contextmanager
    def opened(self, given: SourceLike | None = None) -> Iterator[Source]:
        """The file for reading, and no other one; closed at the end, unless it was given open.

        Args:
            given: the media in any form that `fragdex.open_source` takes; None: by its name.

        Raises:
            SourceNotFound: as `media`, or there is no such file.
            SourceChanged: it is not the file that was indexed; of remote ones reads say so.
            SourceError: it cannot be opened.
        """
        media = self.media(given)
        source = open_source(media)
        try:
            self.refuse_other(
                source.name,
                size=source.size,
                etag=source.etag,
                mtime_ns=source.mtime_ns,
                identity=source.identity,
            )
            if self.grows_as is None:
                source.expect(self.size, self.etag)
            yield source
        finally:
            if source is not media:
                source.close()

    def refuse_other(
        self,
        name: str,
        *,
        size: int | None = None,
        etag: str | None = None,
        mtime_ns: int | None = None,
        identity: tuple[int, int] | None = None,
    ) -> None:
        """Compare what is known of both with a file that should be this one.

        Args:
            name: of that file, for the message.
            size, etag, mtime_ns: of that file; None: not known, or not to be compared.
            identity: its device and inode, for files that are still written.

        Raises:
            SourceChanged: one of them differs.
        """
        if self.grows_as is not None:
            # A file that is still written: what was complete stays, whatever is added.
            if identity is not None and identity != self.grows_as:
                raise SourceChanged(f"there is another file at {name} now", advice="index it again")
            if size is not None and self.size is not None and size < self.size:
                raise SourceChanged(
                    f"{name} is shorter than it was",
                    expected=f"at least {self.size} bytes",
                    found=size,
                    advice="index it again",
                )
            return
        for what, was, is_ in (
            ("bytes", self.size, size),
            ("as ETag", self.etag, etag),
            ("as modification time (ns)", self.mtime_ns, mtime_ns),
        ):
            if was is not None and is_ is not None and was != is_:
                date = (
                    "; if only its date differs (fragdex verify checks it), use --ignore-mtime "
                    "(ignore_mtime=True)"
                )
                raise SourceChanged(
                    f"{name} is not the file that was indexed, or it has changed since",
                    expected=f"{was} {what}",
                    found=is_,
                    advice=f"index it again{date if what.startswith('as mod') else ''}",
                )


@record(frozen=True, slots=True)
class How:
    """How an index came to be, and what it cost.

    Attributes:
        method: `boxes` (every moof was read), `sidx`, `mfra`, `stbl` (progressive),
            `stbl+boxes` (hybrid) or `index` (a saved form that does not say).
        exact: whether every sample is known.
        reason: one sentence on why this way was taken.
        requests: reads that the source answered.
        bytes_read: bytes that were read, box headers included.
        mdat_bytes_read: bytes of media data that were read; 0 unless they came along in a read
            of a few KiB at the start or the end, or stand in a page of the file (4 KiB) that holds
            boxes of fragments, or next to pages that all do.
    """

    method: str
    exact: bool
    reason: str = ""
    requests: int = 0
    bytes_read: int = 0
    mdat_bytes_read: int = 0


class Home(NamedTuple):
    """Where the media of a track are, and what is needed to read its samples.

    Attributes:
        media: the media, where they were given; None: they are where `file` says.
        file: which bytes the index describes.
        init: ranges of the initialization segment.
        defaults: track_ID → what its trex says.
    """

    file: FileInfo
    init: tuple[ByteRange, ...]
    defaults: dict[int, SampleDefaults]
    media: SourceLike | None = None

    @property
    def place(self) -> SourceLike | None:
        """The media, or their name; None where neither is known."""
        return self.file.path if self.media is None else self.media


_HELD: Final = 8
"""Reads whose pieces stay at hand: readers continue where they stopped, often inside of a piece."""
_MOST_HELD: Final = 8 << 20
"""Bytes of them at most, in addition to those of the last one."""


class CheckedSource(Source):
    """The bytes of a source, each read checked against the digests of its pieces.

    A read takes in the whole pieces that its range touches, which have a megabyte at most each, and
    gives the range. The source stays the caller's: closing this one does not close it.

    Args:
        source: the media.
        digests: of an index of it.

    Raises (on reading):
        SourceChanged: a piece has other bytes than when it was indexed; `offset` is where it
            begins.
    """

    def __init__(self, source: Source, digests: PieceDigests) -> None:
        super().__init__(source.name, size=source.size, etag=source.etag, remote=source.remote)
        self.mtime_ns, self.connections = source.mtime_ns, source.connections
        self._source, self._digests = source, digests
        self._kept: list[tuple[ByteRange, bytes]] = []

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, cut at the end."""
        return self.read_many([range])[0]

    def read_many(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return the bytes of each range; the pieces of all are read together."""
        self._within_budget(0, 0)
        cut = [self._cut(one) for one in ranges]
        whole = [self._pieces_of(one) for one in cut]
        held = {one: self._found(one) for one in whole}
        missing = [one for one, data in held.items() if data is None]
        if missing:
            for one, data in zip(missing, self._source.read_many(missing), strict=True):
                held[one] = self._checked(one, data)
                self._keep(one, data)
            self.requests, self.bytes_read = self._source.requests, self._source.bytes_read
        return [
            (held[pieces] or b"")[one.start - pieces.start : one.stop - pieces.start]
            for one, pieces in zip(cut, whole, strict=True)
        ]

    def twin(self) -> Source | None:
        """Open the same bytes a second time, checked as well; None where that cannot be."""
        twin = self._source.twin()
        return None if twin is None else CheckedSource(twin, self._digests)

    def _cut(self, range: ByteRange) -> ByteRange:
        end = self._digests.size
        return ByteRange(min(range.start, end), min(range.stop, end))

    def _pieces_of(self, range: ByteRange) -> ByteRange:
        """The whole pieces that a range touches, as one range."""
        if not range.size:
            return range
        rows = self._digests.touching(range)
        first, last = self._digests.range(rows.start), self._digests.range(rows.stop - 1)
        return ByteRange(first.start, last.stop)

    def _found(self, range: ByteRange) -> bytes | None:
        if not range.size:
            return b""
        for known, data in self._kept:
            if known.start <= range.start and range.stop <= known.stop:
                return data[range.start - known.start : range.stop - known.start]
        return None

    def _checked(self, range: ByteRange, data: bytes) -> bytes:
        rows = self._digests.touching(range)
        wrong = self._digests.wrong(rows, data)
        if wrong:
            raise SourceChanged(
                f"{self.name} has other bytes than when it was indexed",
                offset=self._digests.range(wrong[0]).start,
                expected=f"SHA-256 {self._digests.table.digest[wrong[0]].tobytes().hex()} of the "
                f"bytes {self._digests.range(wrong[0])}",
                found="another",
                advice="fragdex verify names all that is damaged",
            )
        return data

    def _keep(self, range: ByteRange, data: bytes) -> None:
        self._kept.append((range, data))
        while len(self._kept) > 1 and (
            len(self._kept) > _HELD or sum(len(held) for _, held in self._kept) > _MOST_HELD
        ):
            del self._kept[0]
