"""The client that blocks."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeVar

import httpx
from httpx_sse import EventSource

from fragdex.client import api, procedures
from fragdex.client.connection import Connection, asked, download, head_of, with_cursor
from fragdex.client.errors import RequestRefused
from fragdex.client.events import EventStream
from fragdex.client.exchange import (
    Await,
    ConnectionLost,
    Fetch,
    Procedure,
    Put,
    Response,
    Send,
    Sleep,
    Step,
    exchange,
)
from fragdex.client.request import Request
from fragdex.client.uploads import CHUNK, Progress

__all__ = ["Client"]

T = TypeVar("T")


class Client(Connection):
    """A client of the service that blocks.

    `send` takes any request of `fragdex.client.api` and gives its typed result. Requests that are
    safe to repeat are sent again after a broken connection or an outage; creating ones get an
    Idempotency-Key for that. For several threads at a time.

    >>> client = Client("http://127.0.0.1:8000", "ef_secret_id")
    >>> request = api.get_file("0193")
    >>> request.method, request.path
    ('GET', '/api/v1/files/0193')
    >>> client.close()
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._http = httpx.Client(**self.options)
        self._elsewhere: httpx.Client | None = None

    def send(self, request: Request[T]) -> T:
        """Send a request; gives what its response says.

        Raises:
            RequestRefused: the service refuses it; its subclasses say why.
            ServiceUnreachable: no response, after bounded retries.
            UnexpectedResponse: one that the document does not know.
        """
        return self._run(exchange(request, self.retries))

    def pages(self, request: Request[T]) -> Iterator[T]:
        """The pages of a list, one after the other: `pages(api.list_files())`."""
        page: Any = self.send(request)
        yield page
        while page.next_cursor:
            page = self.send(with_cursor(request, page.next_cursor))
            yield page

    def events(self, request: Request[api.Event]) -> Iterator[api.Event]:
        """The events of a job until its last one; a break is continued where it was.

        Args:
            request: such as `api.get_render_progress(id)`.

        Raises:
            JobFailed: the job failed.
            RequestRefused, ServiceUnreachable: as `send`.
        """
        stream = EventStream(request, self.retries)
        while not stream.ended:
            why: Exception = ConnectionLost("the connection ended")
            try:
                with self._http.stream(**asked(stream.request())) as answer:
                    failed = answer.status_code >= 400
                    if stream.opened(head_of(answer, answer.read() if failed else b"")):
                        for one in EventSource(answer).iter_sse():
                            event = stream.take(one.event, one.data, one.id)
                            if event is not None:
                                yield event
                            if stream.ended:
                                return
            except (httpx.TransportError, RequestRefused) as error:
                why = error
            if not stream.ended:
                time.sleep(stream.wait(why))

    def push(
        self,
        path: str | os.PathLike[str],
        *,
        filename: str | None = None,
        type: str | None = None,
        expires_at: datetime | None = None,
        hash_first: bool = True,
        chunk: int = CHUNK,
        progress: Progress | None = None,
    ) -> api.AnyFile:
        """Send a file; gives its record once all bytes are there. A video is processed then.

        A broken connection is continued where the service says, so that no more than a chunk is
        sent twice. So is a push that was killed: the file is known by its md5.

        Args:
            path: of the file.
            filename: the service's name for it; None: the last part of the path.
            type: `video` (any media), `image` or `caption`; None: as the suffix says.
            expires_at: when the service deletes it.
            hash_first: look for the file by its md5 before sending, for which it is read twice;
                False: it is hashed on its way.
            chunk: bytes of a request.
            progress: called with the bytes that are there and those in all, after each chunk.

        Raises:
            SourceChanged: the file became shorter meanwhile.
            RequestRefused, ServiceUnreachable: as `send`.
        """
        return self._run(
            self.pushing(
                path,
                filename=filename,
                type=type,
                expires_at=expires_at,
                hash_first=hash_first,
                chunk=chunk,
                progress=progress,
            )
        )

    def render(
        self,
        page: str | os.PathLike[str] | None = None,
        *,
        progress: Progress | None = None,
        **fields: Any,
    ) -> api.RenderRecord:
        """Have a page rendered; gives its record, which is queued then.

        Args:
            page: an HTML file, sent with the files beside it that it names; a folder with an
                index.html, or a .tar.gz or .zip of one; None: `html` is given.
            progress: of sending it, as in `push`.
            fields: those of `api.create_render`.

        Raises: as `send`.
        """
        return self._run(procedures.render(page, fields, progress=progress, retries=self.retries))

    def download(self, request: Request[Any], to: Any, *, progress: Progress | None = None) -> int:
        """Receive the bytes of a request into a file; gives their number.

        A break is continued at the byte that is missing. A path appears when it is complete.

        Args:
            request: such as `api.download_render_mp4(id)`.
            to: a path, or a binary file that is open for writing.
            progress: called with the bytes that are here and those in all (-1: unknown).

        Raises:
            SourceChanged: it was replaced meanwhile.
            RequestRefused, ServiceUnreachable: as `send`.
        """
        return self._run(download(request, to, progress, self.retries))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
        if self._elsewhere is not None:
            self._elsewhere.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, procedure: Procedure[T]) -> T:
        answer: Any = None
        with contextlib.closing(procedure):
            while True:
                try:
                    lost = isinstance(answer, ConnectionLost)
                    step = procedure.throw(answer) if lost else procedure.send(answer)
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
                try:
                    answer = self._do(step)
                except httpx.TransportError as error:
                    answer = ConnectionLost(str(error) or type(error).__name__)

    def _do(self, step: Step) -> Any:
        match step:
            case Send(request):
                got = self._http.request(**asked(request))
                return head_of(got, got.content)
            case Put(url, content):
                if self._elsewhere is None:
                    self._elsewhere = httpx.Client(**self.options_elsewhere)
                got = self._elsewhere.put(url, content=content)
                return head_of(got, got.content)
            case Fetch():
                return self._fetch(step)
            case Sleep(seconds):
                return time.sleep(seconds)
            case Await(future):
                return future.result()

    def _fetch(self, step: Fetch) -> Response:
        with self._http.stream(**asked(step.request, step.headers)) as answer:
            if answer.status_code >= 400:
                return head_of(answer, answer.read())
            head = head_of(answer, b"")
            step.write(head, b"")
            for piece in answer.iter_raw():
                step.write(head, piece)
            return head
