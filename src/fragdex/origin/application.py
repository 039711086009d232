"""The origin as an ASGI application."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from fragdex.errors import (
    BudgetExceeded,
    FragdexError,
    InvalidRange,
    MissingExtra,
    SourceChanged,
    SourceError,
    SourceNotFound,
    TrackNotFound,
    TruncatedInput,
)
from fragdex.origin import film_pages
from fragdex.origin.addresses import Address, parse_address
from fragdex.origin.answers import answer
from fragdex.origin.signing import may_pass
from fragdex.origin.titles import Film, Titles
from fragdex.views.view import View

__all__ = ["Settings", "make_app"]

CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "Range, If-Range, If-None-Match",
    "Access-Control-Expose-Headers": "Content-Range, Content-Length, ETag, Accept-Ranges",
    "Access-Control-Max-Age": "86400",
}
"""Players are on other sites; what is served here is for everyone who has the address."""
_THREADS: Final = 32
"""Requests that are answered at a time; others wait."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How an origin serves.

    Attributes:
        max_age: seconds for which caches may keep media without asking again.
        playlist_max_age: the same of playlists and manifests, which name what is there now.
        secret: that addresses are signed with; None: they need no signature.
        listed: whether `/` lists the films.
    """

    max_age: int = 3600
    playlist_max_age: int = 60
    secret: str | None = None
    listed: bool = True


def make_app(titles: Titles, settings: Settings | None = None) -> Starlette:
    """The application for an ASGI server.

    Args:
        titles: the films.
        settings: None: the usual ones.
    """
    origin = _Origin(titles, settings or Settings())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        titles.close()

    every = Route("/{path:path}", origin.respond, methods=["GET", "HEAD", "OPTIONS"])
    return Starlette(routes=[every], lifespan=lifespan)


class _Origin:
    def __init__(self, titles: Titles, settings: Settings) -> None:
        self._titles, self._settings = titles, settings
        self._threads = ThreadPoolExecutor(_THREADS, "origin")

    async def respond(self, request: Request) -> Response:
        """Any request: failures become answers that say what to do."""
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={**CORS, "Allow": "GET, HEAD, OPTIONS"})
        # files are read, and films indexed: one visit of a thread for all of it
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._tried, request)

    def _tried(self, request: Request) -> Response:
        for turn in (1, 2):
            try:
                return self._found(request)
            except SourceChanged as error:
                # what is open is of the file that was: open it anew, once
                if turn == 2:
                    return _refusal(503, error, retry=True)
            except FragdexError as error:
                return _refusal(_status(error), error)
            except (ValueError, IndexError) as error:
                return _refusal(400, error)
            except KeyError as error:
                return _refusal(404, f"the film has no {error.args[0]}")
        raise AssertionError("two turns end in an answer")

    def _found(self, request: Request) -> Response:
        path: str = request.path_params["path"]
        if not path:
            return self._list()
        secret, until, signature = self._settings.secret, "", ""
        if secret is not None:
            until, _, rest = path.partition("/")
            signature, _, path = rest.partition("/")
        address = parse_address(path)
        if secret is not None and (
            address is None or not may_pass(secret, address.film, until, signature)
        ):
            return _refusal(403, "the address is not signed, or its time is over")
        if address is None:
            self._titles.place(path)  # says where there is no such file
            return RedirectResponse(f"{request.url.path}/", 308, CORS)
        film = self._titles.open(address.names)
        try:
            return self._answer(request, address, film)
        except SourceChanged:
            self._titles.forget(film)
            raise

    def _list(self) -> Response:
        if not self._settings.listed or self._settings.secret is not None:
            return _refusal(404, "films are not listed here")
        return HTMLResponse(film_pages.listing(self._titles.names()))

    def _answer(self, request: Request, address: Address, film: Film) -> Response:
        if not address.action:
            return HTMLResponse(film_pages.player(address.film.rpartition("/")[2]), headers=CORS)
        numbers = [0]
        if address.action.startswith("thumbnail"):
            view = self._thumbnail(film, address.action, request.query_params)
        else:
            view, numbers = _view(film, address, request.query_params)
        text = address.action in ("hls", "dash") and not address.file.endswith((".m4s", ".mp4"))
        age = self._settings.playlist_max_age if text else self._settings.max_age
        # signed addresses are for those who were given them, not for caches between
        scope = "public" if self._settings.secret is None else "private"
        fields = {**CORS, "Cache-Control": f"{scope}, max-age={age}"}

        @contextmanager
        def opened() -> Iterator[list[Any]]:
            with self._titles.sources(film) as every:
                yield [every[number] for number in numbers]

        return answer(view, request.headers, request.method, opened, fields)

    def _thumbnail(self, film: Film, name: str, asked: Mapping[str, str]) -> View:
        """A picture, made anew for each request: it costs about as much as a segment."""
        from fragdex.decoding.thumbnails import thumbnail

        form = name.partition(".")[2].replace("jpg", "jpeg")
        with self._titles.sources(film) as sources:
            made = thumbnail(
                film.indexes[0],
                sources[0],
                _seconds(asked, "t", 0),
                exact=asked.get("exact") == "true",
                width=_number(asked, "w"),
                height=_number(asked, "h"),
                format=form,  # type: ignore[arg-type]
            )
        recipe = [name, sorted(asked.items())]
        source = [film.indexes[0].source]
        return View(made.media_type, source, recipe, [len(made.data)], lambda _: [made.data])


def _view(film: Film, address: Address, asked: Mapping[str, str]) -> tuple[View, list[int]]:
    """What an address names, and which of the film's files are its sources.

    Raises:
        KeyError: the film has no such part.
        ValueError: a number in the query is none.
    """
    if address.action in ("hls", "dash"):
        view = film.package[address.file]
        known = [index.source for index in film.indexes]
        return view, [known.index(source) for source in view.sources]
    kind, tracks = address.action.removesuffix(".mp4"), _ids(asked)
    options: dict[str, Any] = {}
    if kind == "clip":
        options = {
            "start": _seconds(asked, "start", 0.0),
            "stop": _seconds(asked, "end", math.inf),
            "exact": asked.get("exact", "true") != "false",
        }
    return film.view(kind, tracks=tracks, **options), [0]


def _ids(asked: Mapping[str, str]) -> list[int] | None:
    text = asked.get("tracks")
    if text is None:
        return None
    if not all(part.isascii() and part.isdigit() for part in text.split(",")):
        raise ValueError(f"tracks: expected track ids with commas between them, found {text!r}")
    return [int(part) for part in text.split(",")]


def _number(asked: Mapping[str, str], name: str) -> int | None:
    text = asked.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise ValueError(f"{name}: expected a number of pixels, found {text!r}")
    return int(text)


def _seconds(asked: Mapping[str, str], name: str, default: float) -> Any:
    text = asked.get(name)
    if text is None:
        return default
    from fragdex.seeking.times import parse_time

    try:
        return parse_time(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _status(error: FragdexError) -> int:
    if isinstance(error, MissingExtra):
        return 501
    if isinstance(error, (SourceNotFound, TrackNotFound)):
        return 404
    if isinstance(error, InvalidRange):
        return 400
    if isinstance(error, BudgetExceeded):
        return 507
    if isinstance(error, SourceError) and not isinstance(error, TruncatedInput):
        return 502
    return 422


def _refusal(status: int, why: object, *, retry: bool = False) -> Response:
    headers = {**CORS, "Cache-Control": "no-store"} | ({"Retry-After": "1"} if retry else {})
    return PlainTextResponse(f"{why}\n", status, headers)
