"""Views over HTTP; and playlists for those who have a token in the URL, and no header."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from fragdex.service.web.auth import bearer_of
from fragdex.service.web.problems import HTTP, problem
from fragdex.serving.answers import answer
from fragdex.views.view import View

BYTES: Final = "private, max-age=3600"
LISTS: Final = "private, no-cache"
"""Playlists tell what is there now; their entity tags say whether it changed."""
_HLS: Final = re.compile(rb'URI="([^"]+)"|^([^#\r\n].*)$', re.MULTILINE)
_DASH: Final = re.compile(rb'(media|initialization)="([^"]+)"')


def view_response(
    request: Request,
    view: View,
    opened: Callable[[], AbstractContextManager[list[Any]]],
    cache: str,
) -> Response:
    """The answer to GET or HEAD of a view; reads up to 4 MiB, so that it is called in a thread.

    Args:
        opened: opens its sources.
        cache: of Cache-Control.

    Raises:
        FragdexError: a source cannot be read, or is not what it was.
    """
    made = answer(view, request.headers, request.method, opened, {"Cache-Control": cache})
    if made.status_code == 412:
        detail = f"the entity tag is {view.etag} now"
        return problem(HTTP[412], detail, headers={"ETag": view.etag})
    if made.status_code != 416:
        return made
    known = {name: made.headers[name] for name in ("Content-Range", "Accept-Ranges")}
    return problem(
        HTTP[416], f"there are {view.size} bytes", headers=known, more={"size": view.size}
    )


def token_of(request: Request) -> str | None:
    """The token in the URL of one who has no other way to show it; None: a header says who asks."""
    return None if bearer_of(request) else request.query_params.get("token")


def with_token(view: View, token: str | None) -> View:
    """A playlist or manifest whose addresses carry a token, so that players show it there."""
    if token is None:
        return view
    mark = f"token={token}".encode()

    def hls(found: re.Match[bytes]) -> bytes:
        address = found[1] or found[2]
        return found[0].replace(address, _with(address, mark))

    text = view.read()
    if "mpegurl" in view.media_type:
        text = _HLS.sub(hls, text)
    else:
        text = _DASH.sub(lambda one: b'%s="%s"' % (one[1], _with(one[2], mark)), text)
    return View(view.media_type, (), [view.etag, token], [len(text)], lambda _: [text])


def _with(address: bytes, mark: bytes) -> bytes:
    return address + (b"&amp;" if b"?" in address else b"?") + mark
