"""A track of a file that is open for decoding."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from fragdex.decoding.codec import TrackCodec
from fragdex.decoding.sample_entries import TrackSetup
from fragdex.decoding.samples import decodable
from fragdex.indexing.moov import plain_init
from fragdex.seeking.model import FragmentIndex, TrackIndex
from fragdex.sources import Source, SourceLike, open_source

if TYPE_CHECKING:
    from typing import Self

__all__ = ["OpenTrack"]


class OpenTrack:
    """A track of a file that is open for decoding.

    Attributes:
        track: the `TrackIndex` that is read, of an index that tells when samples are decoded.

    Args:
        index: of the file.
        track: one of it.
        source: the file: anything that `open_source` takes, or a Source, which stays open.
        init: the initialization segment; None: it is read from the file.

    A context manager; a source that it opened is closed with it. For one thread at a time.

    Raises:
        UndecodableMedia: there is no decoder for the track, or no initialization segment.
        MissingExtra: PyAV is not installed.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie()
    >>> index = fragdex.index(data)
    >>> OpenTrack(index, index.track(1), data, b"")
    Traceback (most recent call last):
    ...
    fragdex.errors.UndecodableMedia: there is no initialization segment; give it with init=
    """

    def __init__(
        self, index: FragmentIndex, track: TrackIndex, source: SourceLike, init: bytes | None
    ) -> None:
        self.track = track
        self._ours = not isinstance(source, Source)
        self._source = source if isinstance(source, Source) else open_source(source)
        try:
            self._index, self.track = decodable(index, track, self._source, init)
            self._period = self._index.periods[self.track.period]
            if init is None:
                init = plain_init(b"".join(self._source.read(part) for part in self._period.init))
            self._setup = TrackSetup(init, self.track.id)
            init = self._setup.init_of(1) if self._setup.several else init
            self._codec = TrackCodec(init, self.track.id, self.track.codec)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the source, if it was opened here."""
        if self._ours:
            self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
