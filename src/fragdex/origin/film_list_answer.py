"""The answer to `/`: the films as JSON, or as a page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from fragdex.origin import film_pages
from fragdex.origin.film_list import MOST_LISTED
from fragdex.origin.queries import number
from fragdex.origin.signing import signed
from fragdex.origin.titles import Titles

__all__ = ["list_answer"]

_USUAL: Final = 100
_LONGEST: Final = 1024
"""Characters of a name: as many bytes has that of an object at most."""


def list_answer(
    request: Request,
    titles: Titles,
    fields: Mapping[str, str],
    secret: str | None = None,
    until: int = 0,
) -> Response:
    """Some films: after the name `after`, at most `limit`.

    Args:
        request: its Accept decides: a page, unless JSON is wanted and HTML is not.
        titles: the films.
        fields: headers of the answer.
        secret, until: with which the addresses of films are signed; None: they are not.

    Raises:
        ValueError: a parameter is none.
        SourceError: the films cannot be listed.
    """
    asked = request.query_params
    most = number(asked, "limit", 1, MOST_LISTED) or _USUAL
    after = asked.get("after", "")
    if len(after) > _LONGEST:
        raise ValueError(f"after: expected a name of at most {_LONGEST} characters")
    found = titles.listed(after, most)
    more = None
    if found.next is not None:
        more = "?" + urlencode({"after": found.next, "limit": most})
    addresses = [_address(one.name, secret, until) for one in found.films]
    headers = {**fields, "Vary": "Accept"}
    if not _wants_json(request.headers.get("accept", "")):
        names = [one.name for one in found.films]
        page = film_pages.listing(list(zip(names, addresses, strict=True)), more)
        return HTMLResponse(page, headers=headers)
    films = [
        {
            "name": one.name,
            "url": address,
            "bytes": one.size,
            "modified": datetime.fromtimestamp(one.modified, UTC).isoformat(),
        }
        for one, address in zip(found.films, addresses, strict=True)
    ]
    return JSONResponse({"films": films, "next": more}, headers=headers)


def _address(name: str, secret: str | None, until: int) -> str:
    """Where a film is, relative to the list; the list that is signed is two steps deep."""
    before = "" if secret is None else f"../../{signed(secret, name, until)}/"
    return f"{before}{quote(name)}/"


def _wants_json(accept: str) -> bool:
    kinds = [one.partition(";")[0].strip().lower() for one in accept.split(",")]
    return "application/json" in kinds and "text/html" not in kinds
