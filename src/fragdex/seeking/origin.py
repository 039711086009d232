"""Where an index comes from: the bytes it describes, and the way it was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fragdex.byterange import ByteRange
from fragdex.errors import SourceChanged
from fragdex.fragments.track_info import SampleDefaults
from fragdex.sources import SourceLike


@dataclass(frozen=True, slots=True)
class FileInfo:
    """Which bytes an index describes.

    Attributes:
        name: path or URL as it was given; "" for bytes and streams.
        size: bytes, or None while the end is unknown.
        md5: 32 hex digits, or None if it was not requested.
        etag: the server's entity tag, or None.
        mtime_ns: nanoseconds since 1970 at which a local file was last written, or None.

    >>> FileInfo("movie.mp4", 1024).size
    1024
    """

    name: str = ""
    size: int | None = None
    md5: str | None = None
    etag: str | None = None
    mtime_ns: int | None = None

    def refuse_other(
        self,
        name: str,
        *,
        size: int | None = None,
        etag: str | None = None,
        mtime_ns: int | None = None,
    ) -> None:
        """Compare what is known of both with a file that should be this one.

        Args:
            name: of that file, for the message.
            size, etag, mtime_ns: of that file; None: not known, or not to be compared.

        Raises:
            SourceChanged: one of them differs.

        >>> FileInfo("a.mp4", 1024).refuse_other("a.mp4", size=1024, etag='"1"')
        """
        for what, was, is_ in (
            ("bytes", self.size, size),
            ("as ETag", self.etag, etag),
            ("as modification time (ns)", self.mtime_ns, mtime_ns),
        ):
            if was is not None and is_ is not None and was != is_:
                date = what.startswith("as mod")
                raise SourceChanged(
                    f"{name} is not the file that was indexed, or it has changed since",
                    expected=f"{was} {what}",
                    found=is_,
                    advice="index it again"
                    + (
                        "; if only its date differs (fragdex verify checks it), use "
                        "--ignore-mtime (ignore_mtime=True)"
                        if date
                        else ""
                    ),
                )


@dataclass(frozen=True, slots=True)
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
            of a few KiB at the start or the end.

    >>> How("boxes", True, "no sidx and no mfra").exact
    True
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

    >>> Home(FileInfo("movie.mp4"), (), {}).file.name
    'movie.mp4'
    """

    file: FileInfo
    init: tuple[ByteRange, ...]
    defaults: dict[int, SampleDefaults]
    media: SourceLike | None = None

    @property
    def place(self) -> SourceLike | None:
        """The media, or their name; None where neither is known."""
        if self.media is not None:
            return self.media
        # bytes and open files are named in angle brackets
        return None if self.file.name[:1] in ("", "<") else self.file.name
