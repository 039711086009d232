"""Videos inside tar files, such as WebDataset's shards, indexed and read where they lie."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Unpack

from fragdex.byterange import ByteRange
from fragdex.errors import DamagedIndex
from fragdex.frames import Frames
from fragdex.sources import Source, SourceLike, SourceOptions, open_source
from fragdex.sources.objects import FILM_SUFFIXES

MOST_MEMBERS: Final = 1 << 20
_AHEAD: Final = 16 << 10
"""Bytes of a remote file that are read with a header: those of small members lie together."""


class MemberSource(Source):
    """A file inside another: its own bytes from 0.

    Args:
        outer: the file that it lies in, which stays open.
        place: its bytes there.
        name: in messages.
    """

    def __init__(self, outer: Source, place: ByteRange, name: str) -> None:
        super().__init__(name, size=place.size, etag=outer.etag, remote=outer.remote)
        self._outer, self._place = outer, place

    def read_up_to(self, range: ByteRange) -> bytes:
        """As of every source."""
        return self._outer.read_up_to(self._spend(range).shift(self._place.start))

    def read_many(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """As of every source; several at once where the other file can."""
        self._all_within_budget(ranges)
        return self._outer.read_many([self._spend(r).shift(self._place.start) for r in ranges])


class TarFilms(Mapping[str, Frames]):
    """The videos of a tar file by their names, as `fragdex.Frames`; nothing is unpacked.

    Args:
        what: the tar file, not compressed, in any form that `fragdex.open_source` takes.
        frames: options of `fragdex.Frames`.
        options: passed on to `open_source`.

    Attributes:
        places: name → where its bytes lie in the tar file.

    Only the headers of the members are read. A name is only a key: nothing is written, and links
    are skipped. A context manager; for one thread at a time.

    Raises:
        DamagedIndex: it is not a tar file, or it is compressed.
        SourceError: it cannot be read.
    """

    def __init__(
        self,
        what: SourceLike,
        *,
        frames: Mapping[str, Any] | None = None,
        **options: Unpack[SourceOptions],
    ) -> None:
        self._is_own = not isinstance(what, Source)
        self._source = open_source(what, **options)
        self._options = dict(frames or {})
        try:
            self.places = dict(_members(self._source))
        except BaseException:
            self.close()
            raise

    def __getitem__(self, name: str) -> Frames:
        """The frames of a video, indexed now."""
        return Frames(self.source(name), **self._options)

    def source(self, name: str) -> Source:
        """A video as an open `Source`, for `fragdex.index` and all else that takes one.

        Raises:
            KeyError: there is no such video.
        """
        return MemberSource(self._source, self.places[name], f"{self._source.name}:{name}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def close(self) -> None:
        """Close the tar file, if it was opened here."""
        if self._is_own:
            self._source.close()

    def __enter__(self) -> TarFilms:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _members(source: Source) -> Iterator[tuple[str, ByteRange]]:
    """Name and place of each video."""
    try:
        reading: Any = _Reading(source)
        with tarfile.open(fileobj=reading, mode="r:") as tar:
            # Members that were met are forgotten: tarfile would keep all of them.
            for number, member in enumerate(tar):
                if number >= MOST_MEMBERS:
                    raise DamagedIndex(f"{source.name} has more than {MOST_MEMBERS:,} members")
                kept: Any = tar
                kept.members.clear()
                if member.isreg() and member.name.lower().endswith(FILM_SUFFIXES):
                    yield member.name, ByteRange.of(member.offset_data, member.size)
    except (tarfile.TarError, ValueError, OverflowError) as error:
        raise DamagedIndex(
            f"{source.name} is not a tar file: {error}",
            expected="a tar file that is not compressed",
        ) from error


class _Reading:
    """A source as the file that `tarfile` reads headers from."""

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0
        self._start, self._held = 0, b""

    def tell(self) -> int:
        return self._at

    def seek(self, at: int, whence: int = os.SEEK_SET) -> int:
        self._at = at + (0, self._at, self._source.size or 0)[whence]
        return self._at

    def read(self, size: int) -> bytes:
        stop = self._at + size
        if not self._start <= self._at <= stop <= self._start + len(self._held):
            ahead = max(size, _AHEAD if self._source.remote else size)
            self._start, self._held = (
                self._at,
                self._source.read_up_to(ByteRange.of(self._at, ahead)),
            )
        part = self._held[self._at - self._start : stop - self._start]
        self._at += len(part)
        return part


def decoder(**options: Any) -> Any:
    """What `webdataset.WebDataset(…).decode(…)` takes: videos of samples become `fragdex.Frames`.

    Args:
        options: of `fragdex.Frames`.
    """

    def decode(key: str, data: bytes) -> Frames | None:
        return Frames(data, **options) if key.lower().endswith(FILM_SUFFIXES) else None

    return decode
