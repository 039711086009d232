"""Sending a file in chunks: it continues where the service says, after any break."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, Generic, TypeAlias, TypeVar

from fragdex.client.errors import Conflict, NotFound, ServiceUnreachable
from fragdex.client.exchange import (
    PASSING,
    Await,
    ConnectionLost,
    Procedure,
    Response,
    Retries,
    Send,
    Sleep,
    exchange,
    problem_of,
    result_of,
)
from fragdex.client.request import Request
from fragdex.digest import Md5
from fragdex.errors import SourceChanged

__all__ = ["CHUNK", "Progress", "Upload", "background"]

T = TypeVar("T")
Progress: TypeAlias = Callable[[int, int], None]

CHUNK: Final = 16 << 20
"""Bytes of a request. The service keeps what arrived of one that broke."""


class Upload(Generic[T]):
    """The bytes of a file on their way to one record.

    Args:
        file: open for reading in binary, at any position.
        upload: makes the request that sends bytes: given them and their Content-Range.
        status: the request whose answer is the record once it is complete, else 404 with
            `next_byte`.
        chunk: bytes of each request.
        progress: called with the bytes that the service has and those in all, after each chunk.
        hashed: whether the bytes are hashed on their way; `md5` has the digest then.
    """

    def __init__(
        self,
        file: BinaryIO,
        upload: Callable[[bytes, str], Request[T]],
        status: Request[T],
        *,
        chunk: int = CHUNK,
        progress: Progress | None = None,
        hashed: bool = False,
    ) -> None:
        self._file, self._upload, self._status = file, upload, status
        self.size = os.fstat(file.fileno()).st_size if _has_number(file) else _end(file)
        self._chunk, self._progress = chunk, progress
        self._digest = Md5() if hashed else None
        self._hashed = 0

    @property
    def md5(self) -> str | None:
        """Of all bytes, as hex digits; None where they were not all hashed."""
        return self._digest.hexdigest() if self._digest and self._hashed == self.size else None

    def _read(self, start: int) -> bytes:
        self._file.seek(start)
        data = self._file.read(min(self._chunk, self.size - start))
        if not data:
            raise SourceChanged(
                "the file became shorter while it was sent", expected=self.size, found=start
            )
        if self._digest is not None and start <= self._hashed < start + len(data):
            self._digest.update(memoryview(data)[self._hashed - start :])
            self._hashed = start + len(data)
        return data

    def run(self, start: int, retries: Retries) -> Procedure[T]:
        """Send all from `start` on; gives the complete record.

        Raises:
            SourceChanged: the file became shorter.
            RequestRefused: the service refuses the bytes.
            ServiceUnreachable: no response for a while, in which nothing arrived.
        """
        if self.size == 0:
            return (yield from exchange(self._status, retries))
        tried = 0
        with background() as submit:
            if self._digest is not None and start > self._hashed:
                yield Await(submit(self._hash_up_to, start))
            ahead = submit(self._read, start)
            while True:
                data = yield Await(ahead)
                stop = start + len(data)
                if stop < self.size:
                    ahead = submit(self._read, stop)
                request = self._upload(data, f"bytes {start}-{stop - 1}/{self.size}")
                try:
                    response: Response = yield Send(request)
                except ConnectionLost as error:
                    if tried == retries.most:
                        raise ServiceUnreachable(f"no response: {error}") from error
                    wait = retries.wait(tried)
                else:
                    if response.status == 201:
                        self._tell(self.size)
                        return result_of(request, response)
                    if response.status == 202:
                        tried, start = 0, getattr(result_of(request, response), "next_byte", stop)
                        if start != stop:
                            ahead = submit(self._read, start)
                        self._tell(start)
                        continue
                    refused = problem_of(response)
                    busy = isinstance(refused, Conflict) and "next_byte" in refused.problem
                    if not busy and response.status not in PASSING:
                        raise refused
                    if tried == retries.most:
                        raise refused
                    wait = retries.wait(tried, refused.retry_after)
                tried += 1
                yield Sleep(wait)
                found = yield from self._next_byte(retries)
                if not isinstance(found, int):
                    self._tell(self.size)
                    return found
                if found > start:
                    tried = 0
                start = found
                self._tell(start)
                if not ahead.done():
                    yield Await(ahead)
                ahead = submit(self._read, start)

    def _hash_up_to(self, stop: int) -> None:
        while self._hashed < stop:
            self._read(self._hashed)

    def _next_byte(self, retries: Retries) -> Procedure[int | T]:
        """Where to continue, or the record where all is there."""
        try:
            return (yield from exchange(self._status, retries))
        except NotFound as refused:
            if "next_byte" not in refused.problem:
                raise
            return int(refused.problem["next_byte"])

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, self.size)


@contextmanager
def background() -> Iterator[Callable[..., Future[Any]]]:
    """A thread beside this one: gives what submits calls to it, as `Executor.submit`."""
    pool = ThreadPoolExecutor(1, "fragdex-client")
    try:
        yield pool.submit
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _has_number(file: BinaryIO) -> bool:
    try:
        file.fileno()
    except (OSError, AttributeError):
        return False
    return True


def _end(file: BinaryIO) -> int:
    return file.seek(0, os.SEEK_END)
