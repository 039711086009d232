"""The console at `/`: the whole service in a browser, over nothing but its HTTP interface.

One document stands at every address of its views, with its modules and styles. Links in it are
relative to a base that the depth of its own address tells, so that a proxy may put the service
below any path, with or without saying so.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request
from starlette.responses import Response

from fragdex.errors import RecordNotFound
from fragdex.responses import has_already
from fragdex.service.web.routing import HeadRoute

# The console: one document at every address of its views, and its modules and styles.
#
# Links in the document are relative to a base that the depth of its own address tells, so that a
# proxy may put the service below any path, with or without saying so.


router = APIRouter(include_in_schema=False, route_class=HeadRoute)

SECTIONS = (
    "files", "renders", "transcriptions", "images", "captions", "jobs", "webhooks", "keys",
    "storage",
)  # fmt: skip
"""First parts of the addresses that the console has views for."""

TYPES = {"js": "text/javascript", "css": "text/css"}

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        # what is played is made by the page itself, piece by piece, or is a stored file
        "media-src 'self' blob:",
        "img-src 'self' data: blob:",
        "frame-src 'self'",
        "base-uri 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)

PREVIEW_POLICY = "; ".join(
    (
        # an origin of its own that has nothing, wherever it is opened
        "sandbox allow-scripts",
        "default-src 'none'",
        "script-src 'unsafe-inline' 'unsafe-eval' blob: data: https:",
        "style-src 'unsafe-inline' blob: data: https:",
        "img-src blob: data: https:",
        "media-src blob: data: https:",
        "font-src blob: data: https:",
        "connect-src blob: data:",
        "base-uri 'none'",
        "form-action 'none'",
        # stronger than X-Frame-Options (CSP Level 3, 6.4.2.2)
        "frame-ancestors 'self'",
    )
)
"""Of a page that shows what somebody wrote, before it is rendered."""


def page(request: Request) -> Response:
    """The document, at any address of the console."""
    depth = request.scope["path"].count("/") - 1
    body, etag = document(max(depth, 0))
    headers = {
        "Content-Security-Policy": POLICY,
        "Cache-Control": "no-cache",
        "Referrer-Policy": "no-referrer",
        "ETag": etag,
    }
    if has_already(request.headers, etag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="text/html", headers=headers)


router.routes.extend(
    HeadRoute(path, page, include_in_schema=False)
    for path in ("/", *(f"/{one}{rest}" for one in SECTIONS for rest in ("", "/{id}")))
)


@router.get("/console/preview")
def preview() -> Response:
    """A frame that shows the page that it is given, apart from the console."""
    headers = {"Content-Security-Policy": PREVIEW_POLICY, "Cache-Control": "no-cache"}
    return Response(_texts()["preview.html"], media_type="text/html", headers=headers)


@router.get("/console/{revision}/{name}")
def part(revision: str, name: str, request: Request) -> Response:
    """A module or a style; of a version of its own, so that browsers need not ask again."""
    body, media_type = asset(name)
    # while versions change, an old document may be answered by a new process
    same = revision == version()
    etag = f'"{version()}-{name}"'
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable" if same else "no-cache",
        "ETag": etag,
    }
    if has_already(request.headers, etag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


def document(depth: int) -> tuple[bytes, str]:
    """The HTML document for addresses with so many slashes after the first, and its ETag.

    >>> body, etag = document(1)
    >>> b'<base href="../">' in body, etag == document(0)[1]
    (True, False)
    """
    preloads = (
        f'<link rel="modulepreload" href="console/{version()}/{name}">' for name in _shell()
    )
    html = _texts()["console.html"].replace("{version}", version())
    html = html.replace("{preloads}", "\n".join(preloads))
    body = html.replace("{base}", "../" * depth or "./").encode()
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


@cache
def version() -> str:
    """A name for the modules and styles as they are.

    >>> len(version())
    16
    """
    whole = hashlib.sha256()
    for name in sorted(_texts()):
        whole.update(f"{name}\0{_texts()[name]}\0".encode())
    return whole.hexdigest()[:16]


def parts() -> list[str]:
    """The names of all modules and styles.

    >>> "app.js" in parts()
    True
    """
    return sorted(name for name in _texts() if name.rpartition(".")[2] in TYPES)


def asset(name: str) -> tuple[bytes, str]:
    """The bytes of a module or style, and their media type.

    Raises:
        RecordNotFound: there is none of this name.

    >>> asset("theme.js")[1]
    'text/javascript'
    """
    if name not in parts():
        raise RecordNotFound("the console has no file of this name")
    return _texts()[name].encode(), TYPES[name.rpartition(".")[2]]


@cache
def _shell() -> tuple[str, ...]:
    """The modules that every view needs: those that the first one imports, and so on."""
    modules, ahead = set(), ["app.js"]
    while ahead:
        name = ahead.pop()
        if name not in modules:
            modules.add(name)
            ahead += re.findall(
                r'^(?:import|\}) .*from "\./([^"]+)";$', _texts()[name], re.MULTILINE
            )
    return tuple(sorted(modules))


@cache
def _texts() -> dict[str, str]:
    own = files(__package__).iterdir()
    wanted = (one for one in own if one.name.rpartition(".")[2] in (*TYPES, "html"))
    return {one.name: one.read_text("utf-8") for one in wanted}
