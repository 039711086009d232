"""The page as one answer: its styles and scripts stand inside, named in the policy by their hash.

So nothing else than `/` is asked of the service but its interface, and the browser runs nothing
that is not ours (CSP Level 3, 6.7.3.3).
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request
from starlette.responses import Response

from fragdex.service.web.negotiation import has_already
from fragdex.service.web.routing import HeadRoute

__all__ = ["document", "router"]

router = APIRouter(include_in_schema=False, route_class=HeadRoute)

STYLES = ("page.css",)
SCRIPTS = (
    "interface.js", "parts.js", "upload.js", "player.js", "timeline.js", "film.js", "page.js",
)  # fmt: skip
"""In the order in which they are run, as one module."""


@router.get("/")
def page(request: Request) -> Response:
    """The page."""
    body, headers = document()
    if has_already(request.headers, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="text/html", headers=headers)


@cache
def document() -> tuple[bytes, dict[str, str]]:
    """The HTML document, and the headers that belong to it.

    >>> body, headers = document()
    >>> b"<script" in body, "unsafe" in headers["Content-Security-Policy"]
    (True, False)
    """
    style, script = _joined(STYLES), _joined(SCRIPTS)
    html = _joined(["page.html"])
    html = html.replace("<style></style>", f"<style>{style}</style>")
    html = html.replace("<script></script>", f'<script type="module">{script}</script>')
    body = html.encode()
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_named(script)}",
            f"style-src {_named(style)}",
            "connect-src 'self'",
            # what is played is made by the page itself, piece by piece
            "media-src blob:",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    etag = hashlib.sha256(body).hexdigest()[:32]
    headers = {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-cache",
        "ETag": f'"{etag}"',
    }
    return body, headers


def _joined(names: tuple[str, ...] | list[str]) -> str:
    folder = files(__package__)
    return "\n".join(folder.joinpath(name).read_text("utf-8") for name in names)


def _named(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
