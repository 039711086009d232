"""Sources over what the caller holds: bytes in memory, open files with a seek."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import IO, Any

from fragdex.byterange import ByteRange
from fragdex.errors import SourceChanged, SourceError, SourceUnavailable
from fragdex.sources.base import PIECE_SIZE, Source, steps

__all__ = ["BytesSource", "FileObjectSource"]


class BytesSource(Source):
    """Bytes in memory, not copied: bytes, bytearray, memoryview, mmap, a numpy array.

    What can be written to must not change meanwhile; a bytearray cannot be resized while open.

    >>> BytesSource(bytearray(b"abc")).read_up_to(ByteRange(1, 10))
    b'bc'
    """

    def __init__(
        self,
        data: Any,
        *,
        name: str = "<bytes>",
        max_bytes: int | None = None,
        max_requests: int | None = None,
    ) -> None:
        try:
            self._view = memoryview(data).toreadonly().cast("B")
        except TypeError as error:
            raise SourceError(
                "these bytes are not contiguous", advice="pass bytes(data)"
            ) from error
        super().__init__(
            name, size=self._view.nbytes, max_bytes=max_bytes, max_requests=max_requests
        )

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return a copy of the bytes of `range`, cut at the end."""
        cut = self._spend(range)
        return bytes(self._view[cut.start : cut.stop])

    def view(self) -> memoryview | None:
        """Return the bytes themselves, read-only."""
        self._within_budget(0, 0)
        return self._view[:]

    def pieces(
        self, range: ByteRange | None = None, size: int = PIECE_SIZE
    ) -> Iterator[bytes | memoryview]:
        """Yield slices of the bytes, nothing copied."""
        self._within_budget(0, 0)
        end = self._view.nbytes
        whole = ByteRange(0, end) if range is None else range
        if whole.stop > end:
            raise self._ends_before(whole, end)
        for start in steps(whole, size):
            cut = self._spend(ByteRange(start, min(start + size, whole.stop)))
            yield self._view[cut.start : cut.stop]

    def close(self) -> None:
        """Let go of the bytes; views already handed out stay valid."""
        super().close()
        self._view.release()


class FileObjectSource(Source):
    """An open binary file with `read` and `seek`: BytesIO, a member of an archive, fsspec files.

    Its first byte is byte 0, wherever it stands now. It is left open, and at close where it stood.
    Raises SourceError for text files and for what cannot seek.

    >>> file = io.BytesIO(b"abcdef")
    >>> with FileObjectSource(file) as source:
    ...     source.read(ByteRange(2, 4))
    b'cd'
    >>> file.tell()
    0
    """

    def __init__(
        self, file: IO[bytes], *, max_bytes: int | None = None, max_requests: int | None = None
    ) -> None:
        name = getattr(file, "name", None)
        name = name if isinstance(name, str) else f"<{type(file).__name__}>"
        if isinstance(file, io.TextIOBase):
            raise SourceError(f"{name} is open as text", advice="open it with mode 'rb'")
        try:
            self._stood_at = file.tell()
            file.seek(0, io.SEEK_END)
            size = file.tell()  # some file-likes return nothing from seek
        except (OSError, ValueError, AttributeError) as error:
            raise SourceError(
                f"{name} cannot be read at any position",
                found=error,
                expected="a seekable file",
                advice="feed its bytes to fragdex.Indexer as they arrive",
            ) from error
        self._file = file
        super().__init__(name, size=size, max_bytes=max_bytes, max_requests=max_requests)

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, cut at the size first seen."""
        cut = self._spend(range)
        parts: list[bytes] = []
        left = cut.size
        try:
            if left:
                self._file.seek(cut.start)
            while left:
                part = self._file.read(left)
                if not part:
                    break
                if len(part) > left or not isinstance(part, (bytes, bytearray, memoryview)):
                    raise SourceError(
                        f"{self.name} answers read wrongly",
                        expected=f"at most {left} bytes",
                        found=f"{len(part)} of {type(part).__name__}",
                    )
                parts.append(part)
                left -= len(part)
        except SourceError:
            raise
        except (OSError, ValueError) as error:
            raise SourceUnavailable(
                f"reading {self.name} failed: {error}", offset=cut.start
            ) from error
        if left:
            raise SourceChanged(
                f"{self.name} was truncated while open",
                expected=f"{self.size} bytes",
                found=f"{cut.stop - left}",
            )
        return parts[0] if len(parts) == 1 and type(parts[0]) is bytes else b"".join(parts)

    def refresh(self) -> int:
        """Look again how long the file is; SourceChanged if it shrank."""
        self._within_budget(0, 0)
        self._file.seek(0, io.SEEK_END)
        found = self._file.tell()
        assert self.size is not None
        if found < self.size:
            raise SourceChanged(
                f"{self.name} was truncated while open", expected=f"{self.size} bytes", found=found
            )
        self.size = found
        return found

    def close(self) -> None:
        """Put the file back where it stood; it stays open."""
        if not self.closed:
            super().close()
            with contextlib.suppress(OSError, ValueError):  # its owner closed it already
                self._file.seek(self._stood_at)
