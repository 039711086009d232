"""What continues after a break: uploads, uploads into an object store, downloads, and events."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, Generic, TypeAlias, TypeVar

import msgspec

from fragdex.client import api
from fragdex.client.errors import (
    Conflict,
    JobFailed,
    NotFound,
    RequestRefused,
    ServiceUnreachable,
    UnexpectedResponse,
)
from fragdex.client.exchange import (
    PASSING,
    Await,
    ConnectionLost,
    Fetch,
    Procedure,
    Put,
    Request,
    Response,
    Retries,
    Send,
    Sleep,
    exchange,
    problem_of,
    result_of,
)
from fragdex.digest import Md5
from fragdex.errors import SourceChanged

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
                next_byte = yield from self._next_byte(retries)
                if not isinstance(next_byte, int):
                    self._tell(self.size)
                    return next_byte
                if next_byte > start:
                    tried = 0
                start = next_byte
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
    """A second thread: gives what submits calls to it, as `Executor.submit`."""
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


DIRECT_BYTES: Final = 32 << 20
"""Of a smaller file, two more requests to the service would cost more than they save."""


class DirectUpload:
    """The bytes of a file on their way into an object store.

    Args:
        file: open for reading in binary.
        size: of it.
        file_id: of the record.
        progress: called with the bytes that are there and those in all, after each part.
        hashed: whether the bytes are hashed on their way; `md5` has the digest then.
    """

    def __init__(
        self, file: BinaryIO, size: int, file_id: str, progress: Progress | None, *, hashed: bool
    ) -> None:
        self._file, self._size, self._id, self._progress = file, size, file_id, progress
        self._digest, self._hashed = Md5() if hashed else None, 0
        self._tried = 0
        self._expired = False

    @property
    def md5(self) -> str | None:
        """Of all bytes, as hex digits; None where they were not all read in order."""
        return self._digest.hexdigest() if self._digest and self._hashed == self._size else None

    def run(self, retries: Retries) -> Procedure[api.AnyFile | None]:
        """Send all; gives the complete record, or None where the service takes the bytes itself.

        Raises:
            SourceChanged: the file became shorter.
            RequestRefused: the service, or its object store, refuses the bytes.
            ServiceUnreachable: no response for a while, in which nothing arrived.
        """
        while True:
            try:
                plan = yield from exchange(api.create_file_parts(self._id), retries)
            except Conflict as refused:
                if refused.problem.get("offered") is False:
                    return None
                if refused.problem.get("next_byte") != self._size:
                    raise
                plan = None  # another sender was faster
            if plan is not None and plan.parts:
                yield from self._put_all(plan, retries)
                if plan.missing > len(plan.parts):
                    continue
            record = yield from self._complete(retries)
            if record is not None:
                return record

    def _put_all(self, plan: api.UploadParts, retries: Retries) -> Procedure[None]:
        """Put the parts of a plan; it ends early where the URLs are not valid any more."""
        left = sum(part.byte_size for part in plan.parts)
        done = self._size - left if plan.missing == len(plan.parts) else plan.parts[0].start
        with background() as submit:
            ahead = submit(self._read, plan.parts[0])
            for part, after in zip(plan.parts, [*plan.parts[1:], None], strict=True):
                data = yield Await(ahead)
                if after is not None:
                    ahead = submit(self._read, after)
                while (yield from self._put(part.url, data, retries)) is None:
                    pass
                if self._expired:
                    return
                done += part.byte_size
                if self._progress is not None:
                    self._progress(done, self._size)

    def _put(self, url: str, data: bytes, retries: Retries) -> Procedure[bool | None]:
        """Whether a part was put; None: try again."""
        self._expired = False
        try:
            response: Response = yield Put(url, data)
        except ConnectionLost as error:
            if self._tried == retries.most:
                raise ServiceUnreachable(f"no response of the object store: {error}") from error
            wait = retries.wait(self._tried)
        else:
            if response.status < 300:
                self._tried = 0
                return True
            refused = problem_of(response)
            if self._tried == retries.most or response.status not in (*PASSING, 403, 500):
                raise refused
            wait = retries.wait(self._tried, refused.retry_after)
            self._expired = response.status == 403
        self._tried += 1
        yield Sleep(wait)
        return False if self._expired else None

    def _complete(self, retries: Retries) -> Procedure[api.AnyFile | None]:
        """The record once the service has read the parts; None where it misses some."""
        request = api.complete_file_parts(self._id)
        while True:
            refused: Exception
            try:
                response: Response = yield Send(request)
            except ConnectionLost as error:
                refused, wait = ServiceUnreachable(f"no response: {error}"), retries.longest
            else:
                if response.status < 400:
                    return result_of(request, response)
                refused = problem_of(response)
                busy = isinstance(refused, Conflict) and refused.retry_after is not None
                if isinstance(refused, Conflict) and not busy:
                    return None
                if not busy and response.status not in PASSING:
                    raise refused
                wait = retries.wait(self._tried, refused.retry_after)
                if busy:  # it reads them; however long that takes
                    yield Sleep(wait)
                    continue
            if self._tried == retries.most:
                raise refused
            self._tried += 1
            yield Sleep(min(wait, 1 + self._tried))

    def _read(self, part: api.UploadPart) -> bytes:
        self._file.seek(part.start)
        data = self._file.read(part.byte_size)
        if len(data) < part.byte_size:
            raise SourceChanged(
                "the file became shorter while it was sent",
                expected=self._size,
                found=part.start + len(data),
            )
        if self._digest is not None and part.start == self._hashed:
            self._digest.update(data)
            self._hashed += len(data)
        return data


_PART: Final = ".part"


class Download:
    """The bytes of a response on their way into a file.

    Args:
        request: a GET of stored bytes.
        file: open for writing in binary; bytes go after its position.
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


def download(
    request: Request[Any], to: Any, progress: Progress | None, retries: Retries
) -> Procedure[int]:
    """Download into an open file, or to a path.

    A file at a path appears when it is complete; what was there stays until then.
    """
    if hasattr(to, "write"):
        return (yield from Download(request, to, progress).run(retries))
    path: str | os.PathLike[str] = to
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


_ENDINGS: Final = ("complete", "error")


class EventStream:
    """What is known of a stream: where it is, and whether it ended.

    Args:
        request: of `…/progress`.

    Attributes:
        ended: whether its last event came.
    """

    def __init__(self, request: Request[api.Event], retries: Retries) -> None:
        self._request, self._retries = request, retries
        self._last: str | None = request.headers.get("Last-Event-ID")
        self._tried = 0
        self.ended = False

    def request(self) -> Request[api.Event]:
        """The request that continues after the last event."""
        headers = {**self._request.headers, "Last-Event-ID": self._last}
        return dataclasses.replace(self._request, headers=headers)

    def opened(self, response: Response) -> bool:
        """Take the head of a response; returns whether events follow.

        Raises:
            RequestRefused: the service refuses the stream.
        """
        if response.status == 204:
            self.ended = True
            return False
        if response.status >= 400:
            raise problem_of(response)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            raise UnexpectedResponse(f"{self._request.path} was answered with no events")
        return True

    def take(self, name: str, data: str, id: str) -> api.Event | None:
        """An event that came; None for a heartbeat.

        Raises:
            JobFailed: it is `error`.
        """
        self._tried = 0
        if name == "heartbeat":
            return None
        self._last = id or self._last
        self.ended = name in _ENDINGS
        members: dict[str, Any] = msgspec.json.decode(data or "{}")
        if name == "error":
            raise JobFailed(members)
        return api.Event(id=id, event=name, data=msgspec.convert(members, api.EventData))  # type: ignore[arg-type]

    def wait(self, why: Exception) -> float:
        """Seconds until the stream is requested again, after a break.

        Raises:
            RequestRefused: it will be refused again.
            ServiceUnreachable: it broke too often with no event in between.
        """
        if isinstance(why, RequestRefused) and why.status not in PASSING:
            raise why
        if self._tried == self._retries.most:
            raise ServiceUnreachable(f"no events: {why}") from why
        self._tried += 1
        return self._retries.wait(self._tried - 1, getattr(why, "retry_after", None))
