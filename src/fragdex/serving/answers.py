"""A view as an answer of Starlette: 200, 206, 304, 412, 416, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse

from fragdex.byterange import ByteRange
from fragdex.responses import respond
from fragdex.views.view import View

_AT_ONCE: Final = 4 << 20
"""Bytes of an answer that are read at once; larger ones go out piece by piece."""

Opened = Callable[[], AbstractContextManager[list[Any]]]
"""Opens the sources of a view."""


def answer(
    view: View, request_headers: Headers, method: str, opened: Opened, fields: Mapping[str, str]
) -> Response:
    """The answer to GET or HEAD of a view; reads, so that it is called in a thread.

    Args:
        view: what is served.
        request_headers: the request's headers.
        method: GET or HEAD.
        opened: opens the sources of the view.
        fields: headers of every answer.

    Raises:
        SourceError: before the first byte is sent, so that the answer can say so.
    """
    response = respond(
        method,
        request_headers,
        size=view.size,
        etag=view.etag,
        media_type=view.media_type,
        chunks=partial(_chunks, view, opened),
        more={**fields, **view.fields},
    )
    headers = response.headers
    if method == "HEAD" or int(headers.get("Content-Length", 0)) <= _AT_ONCE:
        return Response(b"".join(response.chunks), response.status, headers)
    return StreamingResponse(response.chunks, response.status, headers)


def _chunks(view: View, opened: Opened, part: ByteRange) -> Generator[bytes, None, None]:
    with opened() as given:
        yield from view.chunks(part, source=given)
