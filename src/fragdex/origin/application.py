"""The origin as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode
from weakref import ReferenceType, ref

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
from fragdex.lru_cache import LRUCache
from fragdex.muxing.view import View
from fragdex.origin.addresses import (
    PREVIEW,
    Address,
    may_pass,
    number,
    parse_address,
    signed,
    view_options,
)
from fragdex.origin.film_list import MOST_LISTED, listing, patterns_of, player
from fragdex.origin.open_segments import (
    WAITS,
    NothingWritten,
    OpenSegment,
    wait_for,
    wait_until,
)
from fragdex.origin.previews import PreviewMaker, TooManyWaiting, package_file, preview_of
from fragdex.origin.rotated import RotatedFilm, window_of
from fragdex.origin.titles import OpenTitle, ServedFilm, Titles
from fragdex.origin.waiting import Directives, TooManyWait, Waiters
from fragdex.origin.writes import NotYet
from fragdex.packaging.m3u8 import SKIPPED_UNTIL
from fragdex.packaging.playlists import CLOCK, utc
from fragdex.record import record
from fragdex.responses import has_already
from fragdex.serving.answers import (
    LARGEST,
    PREPARED,
    Opened,
    PreparedSegment,
    answer,
    decides,
)

CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "Range, If-Range, If-None-Match",
    "Access-Control-Expose-Headers": "Content-Range, Content-Length, ETag, Accept-Ranges, Date",
    "Access-Control-Max-Age": "86400",
}
"""Players are on other sites; what is served here is for everyone who has the address."""
HEALTH: Final = "/healthz"
GROWING_MAX_AGE: Final = 1
"""Seconds for which caches may keep what changes while a file grows: all but its segments."""
_EXPECTED: Final = (
    "expected hls/master.m3u8, dash/manifest.mpd, clip.mp4, fragmented.mp4, faststart.mp4, "
    "thumbnail.jpg, storyboard.vtt, peaks.json or loudness.json"
)
"""What is below the address of a file."""
_THREADS: Final = 32
"""Requests that are answered at a time; others wait."""


@record(frozen=True, slots=True)
class OriginSettings:
    """How an origin serves.

    Attributes:
        max_age: seconds for which caches may keep media without asking again.
        playlist_max_age: the same of playlists and manifests, which list what exists now.
        secret: that addresses are signed with; None: they need no signature.
        listed: whether `/` lists the files; with a secret, its signed address does.
        prefix: a path such as `/films` that stands before all requested addresses, and that
            nobody takes away: neither a mount nor a proxy.
        log: called with a line for each request; None: nothing is logged.
        log_json: whether lines are JSON objects.
    """

    max_age: int = 3600
    playlist_max_age: int = 60
    secret: str | None = None
    listed: bool = True
    prefix: str = ""
    log: Callable[[str], None] | None = None
    log_json: bool = False


def path_below(scope: Scope, prefix: str = "") -> str | None:
    """The path of a request below the place where the application is mounted, without its slash.

    None: it is that place itself, without a slash after it.

    Args:
        scope: of the request.
        prefix: what stands before the paths as well, where nobody has taken it away.
    """
    path = str(scope["path"])
    # a proxy may have removed the prefix that a server reports
    for root in (str(scope.get("root_path") or "").rstrip("/"), prefix):
        if root and path == root:
            return None
        if root and path.startswith(f"{root}/"):
            path = path[len(root) :]
    return path[1:]


def _with_slash(scope: Scope) -> Response:
    """Leads to the same path with a slash after it, whatever a proxy has before it."""
    name = quote(str(scope["path"]).rpartition("/")[2], safe=":")
    query = scope["query_string"].decode("latin-1")
    return RedirectResponse(f"./{name}/{f'?{query}' if query else ''}", 308, CORS)


class NotSigned(Exception):
    """The address is not signed, or its time is over."""


class Origin:
    """The application for an ASGI server.

    It closes its files when the server ends it (ASGI's lifespan). A framework that mounts it passes
    no such message on: `close` is then the framework's to call, where it ends.

    Args:
        titles: the files.
        settings: None: the usual ones.
    """

    def __init__(self, titles: Titles, settings: OriginSettings | None = None) -> None:
        self._titles, self._settings = titles, settings or OriginSettings()
        log, in_json = self._settings.log, self._settings.log_json
        self._serve = self._handle if log is None else AccessLog(self._handle, log, json=in_json)
        self._threads = ThreadPoolExecutor(_THREADS, "origin")
        self._previews = PreviewMaker()
        # weak: a title that grows is opened again with each part
        self._prepared: LRUCache[tuple[ReferenceType[ServedFilm], int, PreparedSegment]]
        self._prepared = LRUCache(PREPARED)
        self._buffer = memoryview(bytearray(2 * LARGEST))
        self._waiters = Waiters(titles, self._in_thread)
        self._lists = self._settings.listed and self._settings.secret is None
        self._lifespan = Starlette(lifespan=self._life)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request, or the message that a server starts or ends, as ASGI has it."""
        await self._serve(scope, receive, send)

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Close all files; what is requested afterwards opens them again."""
        self._previews.close()
        self._titles.close()

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
            return
        path = path_below(scope, self._settings.prefix)
        if path is None:
            # relative addresses of the list would lead out of the mount
            await _with_slash(scope)(scope, receive, send)
            return
        ready = self._at_once(scope, path)
        if ready is not None:
            headers, body = ready
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        response = await self._respond(Request(scope, receive), path)
        await response(scope, receive, send)

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        yield
        self.close()

    # -- segments of local videos that wait for nothing

    def _at_once(self, scope: Scope, path: str) -> tuple[Any, bytes] | None:
        """Headers and bytes of a segment, if nothing has to be waited for."""
        if scope["method"] != "GET" or not path.endswith(".m4s") or scope["query_string"]:
            return None
        if decides(scope["headers"]):
            return None
        try:
            path = self._checked(path)
        except NotSigned:
            return None
        prepared = self._prepared.get(path)
        film = None if prepared is None else prepared[0]()
        if film is None or self._titles.beginning(film.names) is not film:
            prepared = self._prepare(path)
            film = None if prepared is None else prepared[0]()
        if prepared is None or film is None:
            return None
        _, number, segment = prepared
        try:
            opened = film.idle.pop()
        except IndexError:
            return None
        body = segment.read(opened[number], self._buffer)
        film.give_back(opened)
        return None if body is None else (segment.headers, body)

    def _prepare(self, path: str) -> tuple[ReferenceType[ServedFilm], int, PreparedSegment] | None:
        self._prepared.drop(path)
        address = parse_address(path)
        if address is None or address.action not in ("hls", "dash"):
            return None
        film = self._titles.beginning(address.names)
        if not isinstance(film, ServedFilm) or not film.is_packaged:
            return None
        try:
            view = film.package[address.file]
            segment = PreparedSegment.of(view, self._fields(address, film))
        except (FragdexError, KeyError):
            return None  # the general way says why
        if segment is None:
            return None
        prepared = ref(film), film.package.sources.index(view.sources[0]), segment
        self._prepared.put(path, prepared, segment.size)
        return prepared

    # -- everything else

    async def _respond(self, request: Request, path: str) -> Response:
        """Any request: failures become answers that say what to do."""
        if path == HEALTH[1:]:
            return PlainTextResponse("ok\n", headers={"Cache-Control": "no-store"})
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={**CORS, "Allow": "GET, HEAD, OPTIONS"})
        if request.method not in ("GET", "HEAD"):
            refused = _refusal(405, "expected GET, HEAD or OPTIONS")
            refused.headers["Allow"] = "GET, HEAD, OPTIONS"
            return refused
        loop = asyncio.get_running_loop()
        for turn in (1, 2):
            try:
                timed_out = await self._awaited(request, path)
                if timed_out is not None:
                    return timed_out
                # files are read and videos indexed in one visit of a thread
                answered = await loop.run_in_executor(self._threads, self._resolved, request, path)
                return (
                    await self._decoded(request, *answered)
                    if isinstance(answered, tuple)
                    else answered
                )
            except SourceChanged as error:
                # the open file is the former one: open it again, once
                if turn == 2:
                    return _refusal(503, error, retry=True)
            except TooManyWaiting:
                return _refusal(503, "too many pictures and sounds wait to be decoded", retry=True)
            except TooManyWait:
                return _refusal(503, "too many requests wait for this recording", retry=True)
            except NotYet as error:
                return _refusal(503, f"the file is still being written:  {error}", retry=True)
            except NotSigned:
                why = "the address is not signed, or its time is over; ask its sender for a new one"
                return _refusal(403, why)
            except SourceNotFound as error:
                return _refusal(404, f"{error}; the front page lists all" if self._lists else error)
            except FragdexError as error:
                return _refusal(_status(error), error)
            except (ValueError, IndexError) as error:
                return _refusal(400, error)
        raise AssertionError("two turns end in an answer")

    async def _awaited(self, request: Request, path: str) -> Response | None:
        """Wait for the list or part that a request names; None: it can be answered.

        Raises:
            ValueError: what it names is invalid, or too far ahead.
            TooManyWait: more requests wait than may.
        """
        is_list = path.endswith(".m3u8") and any(map(request.query_params.get, WAITS))
        if not is_list and not path.endswith(".m4s"):
            return None
        address = parse_address(self._checked(path))
        if address is None or address.action not in ("hls", "dash"):
            return None
        if not is_list and (self._titles.remote or self._is_there(address)):
            return None
        name, query = address.file, request.query_params
        is_whole = request.method == "HEAD" or decides(request.scope["headers"])
        until = partial(wait_until, self._waiters, partial(self._current, address.names))
        try:
            film, begun = await wait_for(until, name, query, whole=is_whole)
        except KeyError:
            return None  # the general way says what there is
        except NothingWritten as error:
            return _refusal(503, error, retry=True)
        growth = film.package.title.growth
        if is_list and growth is not None and not growth.ended:
            if isinstance(film, RotatedFilm):
                return None  # another file may have to be opened
            # one is written for all, and no thread is needed
            asked = Directives.of(query)
            view = film.package.reloaded(name, skip=asked.skip, segment=asked.segment)
            fields = self._fields(address, film, query)
            return answer(view, request.headers, request.method, _made(view), fields)
        if not begun:
            return self._part(request.scope, path)
        return OpenSegment(name, film, until, self._read_part, self._fields(address, film))

    async def _current(self, names: tuple[str, ...]) -> OpenTitle:
        """A title, packaged: as it was found last, where it is looked at, or opened in a thread."""
        film = self._waiters.watched(names)
        return film or await self._in_thread(partial(self._packaged, names))

    async def _read_part(self, film: ServedFilm, part: View) -> bytes:
        def read() -> bytes:
            with self._titles.sources(film) as every:
                given = [every[film.package.sources.index(one)] for one in part.sources]
                return b"".join(part.chunks(source=given))

        data: bytes = await self._in_thread(read)
        return data

    def _part(self, scope: Scope, path: str) -> Response | None:
        """A part that has come, where it is in memory."""
        ready = self._at_once(scope, path)
        if ready is None:
            return None
        response = Response(ready[1])
        response.raw_headers = ready[0]
        return response

    def _packaged(self, names: tuple[str, ...]) -> OpenTitle:
        film = self._titles.open(names)
        film.package  # noqa: B018 - made here, in a thread
        return film

    def _checked(self, path: str) -> str:
        """A path without its signature.

        Raises:
            NotSigned: it needs one, and has none that holds.
        """
        secret = self._settings.secret
        if secret is None:
            return path
        until, _, rest = path.partition("/")
        signature, _, path = rest.partition("/")
        address = parse_address(path)
        if address is None or not may_pass(secret, address.film, until, signature):
            raise NotSigned
        return path

    def _resolved(
        self, request: Request, path: str
    ) -> Response | tuple[ServedFilm, Address, Future[View]]:
        if not path or self._names_list(path):
            return self._list(request, path)
        path = self._checked(path)
        address = parse_address(path)
        if address is None:
            try:
                self._titles.place(path)
            except SourceNotFound:
                above = self._film_above(path)
                if above is None:
                    raise
                return _refusal(404, f"{above!r} has no {path[len(above) + 1 :]!r}: {_EXPECTED}")
            return _with_slash(request.scope)
        film = self._with_media(address) or self._titles.open(address.names)
        try:
            return self._answer(request, address, film)
        except SourceChanged:
            self._titles.forget(film)
            raise

    def _with_media(self, address: Address) -> OpenTitle | None:
        """A growing title, as it was opened last, if it has what is requested; None: open it."""
        if address.action not in ("hls", "dash") or not address.file.endswith((".m4s", ".mp4")):
            return None
        film = self._titles.beginning(address.names)
        if film is None or not film.is_packaged:
            return None
        try:
            film.package[address.file]
        except KeyError:
            return None
        return film

    def _is_there(self, address: Address) -> bool:
        """Whether a segment need not be waited for, as far as what is open tells."""
        film = self._titles.beginning(address.names)
        return film is not None and (
            film.growing is not True or self._with_media(address) is not None
        )

    def _film_above(self, path: str) -> str | None:
        """The file, or files with commas, that a path is below, by one or two names; or None."""
        for _ in range(2):
            path = path.rpartition("/")[0]
            address = parse_address(f"{path}/")
            if address is not None:
                with suppress(SourceNotFound):
                    for name in address.names:
                        self._titles.place(name)
                    return path
        return None

    def _names_list(self, path: str) -> bool:
        """Whether a path is the signed address of the list: `UNTIL/SIGNATURE/`, of no file."""
        secret, parts = self._settings.secret, path.split("/")
        return (
            secret is not None
            and len(parts) == 3
            and not parts[2]
            and may_pass(secret, "", parts[0], parts[1])
        )

    def _list(self, request: Request, path: str) -> Response:
        """The files; where addresses are signed, for who has a signed one of the list."""
        secret = self._settings.secret
        if not self._settings.listed or (secret is not None and not path):
            return _refusal(404, "the list is not available here")
        scope = "public" if secret is None else "private"
        fields = {**CORS, "Cache-Control": f"{scope}, max-age={self._settings.playlist_max_age}"}
        until = int(path.partition("/")[0] or 0)
        return list_answer(request, self._titles, fields, secret, until)

    def _answer(
        self, request: Request, address: Address, film: OpenTitle
    ) -> Response | tuple[ServedFilm, Address, Future[View]]:
        query = request.query_params
        if not address.action:
            # from the folder that the page is
            home = "../" * (address.film.count("/") + 1) if self._lists else None
            several = isinstance(film, RotatedFilm)
            name = address.film if several else address.film.rpartition("/")[2]
            return HTMLResponse(player(name, home, several=several), headers=CORS)
        if address.action == "dash" and address.file == CLOCK:
            fields = {**CORS, "Cache-Control": "no-store"}
            return PlainTextResponse(utc(datetime.now(UTC)), headers=fields)
        if isinstance(film, RotatedFilm):
            return self._list_of(request, address, film)
        numbers = [0]
        if PREVIEW.fullmatch(address.action):
            preview = preview_of(film.indexes[0], address.action, query)
            if has_already(request.headers, preview.etag):
                fields = {**self._fields(address, film), "ETag": preview.etag}
                return Response(status_code=304, headers=fields)
            return film, address, self._previews.view(preview, lambda: self._first(film))
        if address.action in ("hls", "dash"):
            try:
                asked = Directives.of(query) if address.file.endswith(".m3u8") else Directives()
                if asked != Directives():
                    view = film.package.reloaded(
                        address.file, skip=asked.skip, segment=asked.segment
                    )
                else:
                    view = package_file(film.package, lambda: film.indexes[0], address.file)
            except KeyError as error:
                playlist = "hls/master.m3u8" if address.action == "hls" else "dash/manifest.mpd"
                why = f"the file has no {error.args[0]}; {playlist} names what it has"
                return _refusal(404, why)
            known = film.package.sources
            # a storyboard is of the first video as it is now
            numbers = [known.index(one) if one in known else 0 for one in view.sources]
        else:
            kind, options = view_options(address.action, query)
            view = film.view(kind, **options)

        @contextmanager
        def opened() -> Iterator[list[Any]]:
            with self._titles.sources(film) as every:
                yield [every[number] for number in numbers]

        fields = self._fields(address, film, query)
        return answer(view, request.headers, request.method, opened, fields)

    def _list_of(self, request: Request, address: Address, film: RotatedFilm) -> Response:
        """A list of several files that are one title, of the window that the query names.

        Raises:
            ValueError: the window is invalid.
            SourceNotFound: nothing is in it.
        """
        window = window_of(request.query_params)
        up, key = "../" * (address.film.count("/") + 2), ""
        secret = self._settings.secret
        if secret is not None:  # what a list names needs a signature of its own
            key = (path_below(request.scope, self._settings.prefix) or "").partition("/")[0]

        def link(name: str) -> str:
            before = "" if secret is None else f"../../{signed(secret, name, int(key))}/"
            return f"{up}{before}{quote(name)}"

        package = film.title.within(film, window).within(window, link, key)
        asked = Directives.of(request.query_params)
        try:
            if address.action not in ("hls", "dash"):
                raise KeyError(address.action)
            if asked != Directives():
                view = package.reloaded(address.file, skip=asked.skip, segment=asked.segment)
            else:
                view = package[address.file]
        except KeyError as error:
            names = "hls/master.m3u8, dash/manifest.mpd and what they name"
            return _refusal(404, f"of several files there are {names}, no {error.args[0]}")
        fields = self._fields(address, film, request.query_params)
        return answer(view, request.headers, request.method, _made(view), fields)

    @contextmanager
    def _first(self, film: ServedFilm) -> Iterator[Any]:
        with self._titles.sources(film) as every:
            yield every[0]

    async def _decoded(
        self, request: Request, film: ServedFilm, address: Address, future: Future[View]
    ) -> Response:
        """The answer with a preview, once it is made."""
        try:
            view = await asyncio.shield(asyncio.wrap_future(future))
        except SourceChanged:
            self._titles.forget(film)
            raise

        return answer(
            view, request.headers, request.method, _made(view), self._fields(address, film)
        )

    def _fields(
        self, address: Address, film: OpenTitle, query: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Headers of all answers of an address."""
        packaged = address.action in ("hls", "dash")
        media = packaged and address.file.endswith((".m4s", ".mp4"))
        age = self._settings.playlist_max_age if packaged and not media else self._settings.max_age
        if film.growing is True and not media:
            age = min(age, GROWING_MAX_AGE)
            growth = film.package.title.growth if packaged and query else None
            if growth is not None and query is not None and "_HLS_msn" in query:
                # nothing but the end of the recording changes it
                age = SKIPPED_UNTIL * growth.target
        # signed addresses are for those who were given them, not for caches between
        scope = "public" if self._settings.secret is None else "private"
        return {**CORS, "Cache-Control": f"{scope}, max-age={age}"}


def _made(view: View) -> Opened:
    """The sources of a view whose bytes are all made."""
    return lambda: nullcontext([b""] * len(view.sources))


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
        titles: the files.
        fields: headers of the answer.
        secret, until: with which the addresses of files are signed; None: they are not.

    Raises:
        ValueError: a parameter is invalid.
        SourceError: the files cannot be listed.
    """
    query = request.query_params
    most = number(query, "limit", 1, MOST_LISTED) or _USUAL
    after = query.get("after", "")
    if len(after) > _LONGEST:
        raise ValueError(f"after: expected a name of at most {_LONGEST} characters")
    page_of_films = titles.listed(after, most)
    more = None
    if page_of_films.next is not None:
        more = "?" + urlencode({"after": page_of_films.next, "limit": most})
    addresses = [_film_address(one.name, secret, until) for one in page_of_films.films]
    headers = {**fields, "Vary": "Accept"}
    if not _wants_json(request.headers.get("accept", "")):
        names = [one.name for one in page_of_films.films]
        patterns = () if titles.remote else patterns_of(names)
        together = [(one, _film_address(one, secret, until)) for one in patterns]
        page = listing(list(zip(names, addresses, strict=True)), more, together)
        return HTMLResponse(page, headers=headers)
    films = [
        {
            "name": one.name,
            "url": address,
            "bytes": one.size,
            "modified": datetime.fromtimestamp(one.modified, UTC).isoformat(),
        }
        for one, address in zip(page_of_films.films, addresses, strict=True)
    ]
    return JSONResponse({"films": films, "next": more}, headers=headers)


def _film_address(name: str, secret: str | None, until: int) -> str:
    """Where a file is, relative to the list; the list that is signed is two steps deep."""
    before = "" if secret is None else f"../../{signed(secret, name, until)}/"
    return f"{before}{quote(name, safe='/*')}/"


def _wants_json(accept: str) -> bool:
    kinds = [one.partition(";")[0].strip().lower() for one in accept.split(",")]
    return "application/json" in kinds and "text/html" not in kinds


class AccessLog:
    """Logs the requests that an application answers.

    Args:
        app: the application.
        write: called with each line, without its end.
        json: whether lines are JSON objects; else words with spaces between.
    """

    def __init__(self, app: ASGIApp, write: Callable[[str], None], *, json: bool) -> None:
        self._app, self._write, self._json = app, write, json

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, size = time.perf_counter(), 0, 0

        async def counted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            milliseconds = (time.perf_counter() - began) * 1000
            self._write(self._line(scope, status, size, milliseconds))

    def _line(self, scope: Scope, status: int, size: int, milliseconds: float) -> str:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        client = (scope.get("client") or ("-",))[0]
        # as sent, so that no byte of it can end the line
        target = (scope.get("raw_path") or b"").decode("latin-1")
        if scope["query_string"]:
            target += "?" + scope["query_string"].decode("latin-1")
        if self._json:
            return json.dumps(
                {
                    "time": now,
                    "client": client,
                    "method": scope["method"],
                    "target": target,
                    "status": status,
                    "bytes": size,
                    "milliseconds": round(milliseconds, 3),
                }
            )
        return f"{now} {client} {scope['method']} {target} {status} {size} {milliseconds:.1f} ms"
