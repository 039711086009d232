"""The clients: one that blocks, one for asyncio, and what both share."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Any, Final, TypeVar

import httpx
from httpx_sse import EventSource

from fragdex.client import api, procedures
from fragdex.client.errors import RequestRefused
from fragdex.client.exchange import (
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
    Step,
    exchange,
)
from fragdex.client.transfers import CHUNK, EventStream, Progress, download
from fragdex.sources.tls import tls_when_needed

T = TypeVar("T")

_TIMEOUT: Final = httpx.Timeout(30, read=120)
"""An upload is answered when its bytes are durable; events have a heartbeat every 15 s."""


class Connection:
    """Where the service is, and how it is asked; the same for both clients."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        retries: Retries | None = None,
        **options: Any,
    ) -> None:
        """Describe a service.

        Args:
            url: of the service, with a path before `/api/v1` where it has one; None: the
                environment's `FRAGDEX_URL`, else http://127.0.0.1:8000.
            key: of a tenant; None: the environment's `FRAGDEX_KEY`. A URL token does for reading.
            retries: how often, and when, something is tried again.
            options: for the client of httpx: `verify`, `proxy`, `timeout`, `transport` …
        """
        base = url or os.environ.get("FRAGDEX_URL") or "http://127.0.0.1:8000"
        secret = key or os.environ.get("FRAGDEX_KEY")
        self.retries = retries or Retries()
        self.options: dict[str, Any] = {
            "base_url": base.rstrip("/"),
            "timeout": _TIMEOUT,
            "verify": tls_when_needed(options.get("trust_env", True)),
            "headers": {"Authorization": f"Bearer {secret}"} if secret else {},
            **options,
        }

    @property
    def options_elsewhere(self) -> dict[str, Any]:
        """What a client of httpx is given that asks other servers: nothing of ours goes there."""
        own = ("base_url", "headers", "auth", "cookies", "params")
        return {name: value for name, value in self.options.items() if name not in own}


def httpx_arguments(request: Request[Any], more: Any = None) -> dict[str, Any]:
    """A request as the arguments of httpx; `more` are headers."""
    return {
        "method": request.method,
        "url": request.path,
        "params": request.parameters(),
        "headers": {**request.fields(), **(more or {})},
        "content": request.payload(),
    }


def to_response(answer: httpx.Response, content: bytes) -> Response:
    """A response of httpx in our terms, with the content that was read of it."""
    return Response(answer.status_code, answer.headers, content)


def with_cursor(request: Request[T], cursor: str) -> Request[T]:
    """The request of the next page of a list."""
    return dataclasses.replace(request, query={**request.query, "cursor": cursor})


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
                with self._http.stream(**httpx_arguments(stream.request())) as answer:
                    failed = answer.status_code >= 400
                    if stream.opened(to_response(answer, answer.read() if failed else b"")):
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
            procedures.push(
                path,
                filename=filename,
                type=type,
                expires_at=expires_at,
                hash_first=hash_first,
                chunk=chunk,
                progress=progress,
                retries=self.retries,
            )
        )

    def render(
        self,
        page: str | os.PathLike[str] | None = None,
        *,
        progress: Progress | None = None,
        **fields: Any,
    ) -> api.RenderRecord:
        """Render a page; returns its record, which is then queued.

        Args:
            page: an HTML file, sent with the files of its folder that it names; a folder with an
                index.html, or a .tar.gz or .zip of one; None: `html` is given.
            progress: of sending it, as in `push`.
            fields: those of `api.create_render`.

        Raises: as `send`.
        """
        return self._run(procedures.render(page, fields, progress=progress, retries=self.retries))

    def transcribe(self, file: api.AnyFile | str, **fields: Any) -> api.TranscriptionRecord:
        """Transcribe the speech of a file; returns the record, which is then queued or complete.

        Args:
            file: its record, as `push` gives it, or its id.
            fields: those of `api.transcribe_file`: engine, language, track_id.

        Raises: as `send`.
        """
        return self._run(procedures.transcribe(file, fields, self.retries))

    def repair(self, file: api.AnyFile | str, **fields: Any) -> api.RepairRecord:
        """Repair a file whose index is lost or wrong; returns the record, queued or complete.

        Args:
            file: its record, as `push` gives it, or its id.
            fields: those of `api.repair_file`: like_file_id, rate.

        Raises: as `send`.
        """
        return self._run(procedures.repair(file, fields, self.retries))

    def record(self, job: procedures.Job | str) -> procedures.Job:
        """The record of a file, render, transcription or repair; a record stays as it is.

        Raises: as `send`; NotFound: there is none of this id.
        """
        return self._run(procedures.record_of(job, self.retries))

    def wait(self, job: procedures.Job | str) -> procedures.Job:
        """Wait until a file is ready, or a render, transcription or repair complete.

        Args:
            job: its record or id.

        Returns: its record.

        Raises:
            JobFailed: it failed.
            And as `send`.
        """
        record = self.record(job)
        if procedures.is_done(record):
            return record
        for _ in self.events(procedures.progress_of(record)):
            pass
        return self.record(record.id)

    def pull(self, job: procedures.Job | str, to: Any, *, progress: Progress | None = None) -> int:
        """Receive what a file, render, transcription or repair is; gives the number of bytes.

        A video comes as one fragmented MP4; captions in the form of the suffix (.vtt, .srt, .json).
        A break is continued at the byte that is missing. A path appears when it is complete.

        Args:
            job: its record or id. It has to be ready: `wait` first.
            to, progress: as in `download`.

        Raises: as `download`.
        """
        return self._run(procedures.pull(job, to, progress, self.retries))

    def download(self, request: Request[Any], to: Any, *, progress: Progress | None = None) -> int:
        """Receive the bytes of a request into a file; gives their number.

        A break is continued at the byte that is missing. A path appears when it is complete.

        Args:
            request: such as `api.download_render(id, "mp4")`.
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
                answer = self._http.request(**httpx_arguments(request))
                return to_response(answer, answer.content)
            case Put(url, content):
                if self._elsewhere is None:
                    self._elsewhere = httpx.Client(**self.options_elsewhere)
                answer = self._elsewhere.put(url, content=content)
                return to_response(answer, answer.content)
            case Fetch():
                return self._fetch(step)
            case Sleep(seconds):
                return time.sleep(seconds)
            case Await(future):
                return future.result()

    def _fetch(self, step: Fetch) -> Response:
        with self._http.stream(**httpx_arguments(step.request, step.headers)) as answer:
            if answer.status_code >= 400:
                return to_response(answer, answer.read())
            head = to_response(answer, b"")
            step.write(head, b"")
            for piece in answer.iter_raw():
                step.write(head, piece)
            return head


class AsyncClient(Connection):
    """`Client` for asyncio: the same methods, awaited.

    >>> async def names(client):
    ...     return [
    ...         file.filename
    ...         async for page in client.pages(api.list_files())
    ...         for file in page.files
    ...     ]
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._http = httpx.AsyncClient(**self.options)
        self._elsewhere: httpx.AsyncClient | None = None

    async def send(self, request: Request[T]) -> T:
        """As `Client.send`."""
        return await self._run(exchange(request, self.retries))

    async def pages(self, request: Request[T]) -> AsyncIterator[T]:
        """As `Client.pages`."""
        page: Any = await self.send(request)
        yield page
        while page.next_cursor:
            page = await self.send(with_cursor(request, page.next_cursor))
            yield page

    async def events(self, request: Request[api.Event]) -> AsyncIterator[api.Event]:
        """As `Client.events`."""
        stream = EventStream(request, self.retries)
        while not stream.ended:
            why: Exception = ConnectionLost("the connection ended")
            try:
                async with self._http.stream(**httpx_arguments(stream.request())) as answer:
                    failed = answer.status_code >= 400
                    if stream.opened(to_response(answer, await answer.aread() if failed else b"")):
                        async for one in EventSource(answer).aiter_sse():
                            event = stream.take(one.event, one.data, one.id)
                            if event is not None:
                                yield event
                            if stream.ended:
                                return
            except (httpx.TransportError, RequestRefused) as error:
                why = error
            if not stream.ended:
                await asyncio.sleep(stream.wait(why))

    async def push(self, path: str | os.PathLike[str], **options: Any) -> api.AnyFile:
        """As `Client.push`."""
        return await self._run(procedures.push(path, **options, retries=self.retries))

    async def render(
        self,
        page: str | os.PathLike[str] | None = None,
        *,
        progress: Progress | None = None,
        **fields: Any,
    ) -> api.RenderRecord:
        """As `Client.render`."""
        return await self._run(
            procedures.render(page, fields, progress=progress, retries=self.retries)
        )

    async def transcribe(self, file: api.AnyFile | str, **fields: Any) -> api.TranscriptionRecord:
        """As `Client.transcribe`."""
        return await self._run(procedures.transcribe(file, fields, self.retries))

    async def repair(self, file: api.AnyFile | str, **fields: Any) -> api.RepairRecord:
        """As `Client.repair`."""
        return await self._run(procedures.repair(file, fields, self.retries))

    async def record(self, job: procedures.Job | str) -> procedures.Job:
        """As `Client.record`."""
        return await self._run(procedures.record_of(job, self.retries))

    async def wait(self, job: procedures.Job | str) -> procedures.Job:
        """As `Client.wait`."""
        record = await self.record(job)
        if procedures.is_done(record):
            return record
        async for _ in self.events(procedures.progress_of(record)):
            pass
        return await self.record(record.id)

    async def pull(
        self, job: procedures.Job | str, to: Any, *, progress: Progress | None = None
    ) -> int:
        """As `Client.pull`."""
        return await self._run(procedures.pull(job, to, progress, self.retries))

    async def download(
        self, request: Request[Any], to: Any, *, progress: Progress | None = None
    ) -> int:
        """As `Client.download`."""
        return await self._run(download(request, to, progress, self.retries))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()
        if self._elsewhere is not None:
            await self._elsewhere.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, procedure: Procedure[T]) -> T:
        answer: Any = None
        with contextlib.closing(procedure):
            while True:
                try:
                    lost = isinstance(answer, ConnectionLost)
                    step = procedure.throw(answer) if lost else procedure.send(answer)
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
                try:
                    answer = await self._do(step)
                except httpx.TransportError as error:
                    answer = ConnectionLost(str(error) or type(error).__name__)

    async def _do(self, step: Step) -> Any:
        match step:
            case Send(request):
                answer = await self._http.request(**httpx_arguments(request))
                return to_response(answer, answer.content)
            case Put(url, content):
                if self._elsewhere is None:
                    self._elsewhere = httpx.AsyncClient(**self.options_elsewhere)
                answer = await self._elsewhere.put(url, content=content)
                return to_response(answer, answer.content)
            case Fetch():
                return await self._fetch(step)
            case Sleep(seconds):
                return await asyncio.sleep(seconds)
            case Await(future):
                return await asyncio.wrap_future(future)

    async def _fetch(self, step: Fetch) -> Response:
        async with self._http.stream(**httpx_arguments(step.request, step.headers)) as answer:
            if answer.status_code >= 400:
                return to_response(answer, await answer.aread())
            head = to_response(answer, b"")
            step.write(head, b"")
            async for piece in answer.aiter_raw():
                step.write(head, piece)
            return head
