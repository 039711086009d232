"""The client for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
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
from fragdex.client.uploads import Progress

__all__ = ["AsyncClient"]

T = TypeVar("T")


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
                async with self._http.stream(**asked(stream.request())) as answer:
                    failed = answer.status_code >= 400
                    if stream.opened(head_of(answer, await answer.aread() if failed else b"")):
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
        return await self._run(self.pushing(path, **options))

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
                got = await self._http.request(**asked(request))
                return head_of(got, got.content)
            case Put(url, content):
                if self._elsewhere is None:
                    self._elsewhere = httpx.AsyncClient(**self.options_elsewhere)
                got = await self._elsewhere.put(url, content=content)
                return head_of(got, got.content)
            case Fetch():
                return await self._fetch(step)
            case Sleep(seconds):
                return await asyncio.sleep(seconds)
            case Await(future):
                return await asyncio.wrap_future(future)

    async def _fetch(self, step: Fetch) -> Response:
        async with self._http.stream(**asked(step.request, step.headers)) as answer:
            if answer.status_code >= 400:
                return head_of(answer, await answer.aread())
            head = head_of(answer, b"")
            step.write(head, b"")
            async for piece in answer.aiter_raw():
                step.write(head, piece)
            return head
