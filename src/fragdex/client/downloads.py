"""Receiving bytes into a file: it continues after a break, and never mixes two versions."""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Final

from fragdex.client.errors import ServiceUnreachable
from fragdex.client.exchange import (
    PASSING,
    ConnectionLost,
    Fetch,
    Procedure,
    Response,
    Retries,
    Sleep,
    problem_of,
)
from fragdex.client.request import Request
from fragdex.client.uploads import Progress
from fragdex.errors import SourceChanged

__all__ = ["Download", "download_to"]

_PART: Final = ".part"


class Download:
    """The bytes of a response on their way into a file.

    Args:
        request: a GET of stored bytes.
        file: open for writing in binary; bytes go behind its position.
        progress: called with the bytes that are here and those in all (-1: unknown).
    """

    def __init__(
        self, request: Request[Any], file: BinaryIO, progress: Progress | None = None
    ) -> None:
        self._request, self._file, self._progress = request, file, progress
        self._etag: str | None = None
        self._size = -1
        self.done = 0

    def run(self, retries: Retries) -> Procedure[int]:
        """Receive all of it; gives its length in bytes.

        Raises:
            SourceChanged: it was replaced meanwhile.
            RequestRefused, ServiceUnreachable: as `exchange`.
        """
        tried, before = 0, 0
        while True:
            headers = {}
            if self.done:
                headers = {"Range": f"bytes={self.done}-", "If-Range": self._etag or ""}
            try:
                response: Response = yield Fetch(self._request, headers, self._write)
            except ConnectionLost as error:
                tried = 0 if self.done > before else tried
                before = self.done
                if tried == retries.most or (self.done and not self._etag):
                    raise ServiceUnreachable(f"the download broke off: {error}") from error
                wait = retries.wait(tried)
            else:
                if response.status < 400:
                    return self.done
                refused = problem_of(response)
                if response.status not in PASSING or tried == retries.most:
                    raise refused
                wait = retries.wait(tried, refused.retry_after)
            tried += 1
            yield Sleep(wait)

    def _write(self, response: Response, data: bytes) -> None:
        if not data:
            self._begin(response)
            return
        self._file.write(data)
        self.done += len(data)
        if self._progress is not None:
            self._progress(self.done, self._size)

    def _begin(self, response: Response) -> None:
        etag = response.headers.get("etag")
        if self.done and (response.status != 206 or etag != self._etag):
            raise SourceChanged(
                f"{self._request.path} was replaced while it was downloaded",
                expected=self._etag,
                found=etag,
            )
        self._etag = etag
        length = response.headers.get("content-length", "")
        self._size = self.done + int(length) if length.isdigit() else -1


def download_to(
    request: Request[Any], path: str | os.PathLike[str], progress: Progress | None, retries: Retries
) -> Procedure[int]:
    """Download into a file that appears when it is complete; what was there stays until then."""
    part = f"{os.fspath(path)}{_PART}"
    try:
        with open(part, "wb") as file:
            size = yield from Download(request, file, progress).run(retries)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise
    return size
