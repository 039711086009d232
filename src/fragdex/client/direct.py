"""Sending a file into the object store of a service, part by part, by URLs that it signs."""

from __future__ import annotations

from typing import BinaryIO, Final

from fragdex.client import api
from fragdex.client.errors import Conflict, ServiceUnreachable
from fragdex.client.exchange import (
    PASSING,
    Await,
    ConnectionLost,
    Procedure,
    Put,
    Response,
    Retries,
    Send,
    Sleep,
    exchange,
    problem_of,
    result_of,
)
from fragdex.client.uploads import Progress, background
from fragdex.digest import Md5
from fragdex.errors import SourceChanged

__all__ = ["DIRECT_BYTES", "DirectUpload"]

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
