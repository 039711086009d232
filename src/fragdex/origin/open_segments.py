"""Answers with a segment that is not complete: its parts as they come, without a length (LL-DASH).

Whoever waits for the next part holds no thread, as in `waiting`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from fragdex.errors import FragdexError
from fragdex.muxing.view import View
from fragdex.origin.waiting import TARGETS_WAITED, Directives, TooManyWait, Waiters
from fragdex.origin.writes import NotYet
from fragdex.packaging.rotated import AnyPackage

WAITS: Final = ("_HLS_msn", "_HLS_part")
"""What players add to the address of a list that they wait for."""


class NothingWritten(Exception):
    """What is requested did not come in the time for which a request waits."""


async def wait_until(
    waiters: Waiters, opened: Callable[[], Awaitable[Any]], is_there: Callable[[AnyPackage], bool]
) -> Any:
    """Wait until something holds of a growing title, or it has ended.

    Args:
        waiters: who waits for titles of this kind.
        opened: gives the title as it is now, packaged.
        is_there: whether it holds.

    Returns: the title.

    Raises:
        NothingWritten: it does not for `TARGETS_WAITED` target durations.
        TooManyWait: more requests wait than may.
        Exception: as `opened` and `is_there`.
    """
    loop = asyncio.get_running_loop()
    stop: float | None = None
    while True:
        film = await opened()
        growth = film.package.title.growth
        if is_there(film.package) or growth is None or growth.ended:
            return film
        stop = stop or loop.time() + TARGETS_WAITED * growth.target
        if loop.time() >= stop or not await waiters.changed(film, stop - loop.time()):
            raise NothingWritten(f"nothing was written for {TARGETS_WAITED * growth.target} s")


async def wait_for(
    until: Until, name: str, query: Mapping[str, str], *, whole: bool
) -> tuple[Any, bool]:
    """Wait for a list, part or segment of a growing title that is requested.

    Args:
        until: waits.
        name: of the file in its package.
        query: of the request.
        whole: whether a segment is waited for until it is complete; else until it has begun.

    Returns: the title, and whether what is requested is a segment that has begun.

    Raises:
        KeyError: the title has no such file.
        ValueError: what is named is invalid, or too far ahead.
        NothingWritten, TooManyWait: as `wait_until`.
    """
    is_list = name.endswith(".m3u8")
    asked = Directives.of(query) if is_list else None
    begun = False

    def is_there(package: AnyPackage) -> bool:
        nonlocal begun
        if asked is not None:
            return asked.are_met(package, name)
        parts = package.parts_of_open(name)
        begun = parts is not None and not whole
        return not package.is_next_part(name) if parts is None else parts > 0 and not whole

    film = await until(is_there)
    if asked is not None:
        await asyncio.sleep(film.package.hold_back(name, asked.segment, asked.part))
    return film, begun


class _BrokenOff(Exception):
    """The rest of an answer never comes."""


Until: TypeAlias = Callable[[Callable[[AnyPackage], bool]], Awaitable[Any]]
"""`wait_until` of one title."""
Read: TypeAlias = Callable[[Any, View], Awaitable[bytes]]
"""Reads a part of a title."""


class OpenSegment(StreamingResponse):
    """A segment of a growing title in pieces, which ends with the segment.

    Args:
        name: of the segment in its package.
        film: the title, with at least one part of it.
        until: waits for more.
        read: reads a part.
        fields: of the answer.

    Where the recording ends without the rest, or is another one, the answer breaks off: whoever
    receives it knows that it is not whole (RFC 9112, 8).
    """

    def __init__(
        self, name: str, film: Any, until: Until, read: Read, fields: Mapping[str, str]
    ) -> None:
        media_type = film.package.parts_of(name)[0].media_type
        super().__init__(self._pieces(name, film, until, read), 200, fields, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; the server closes a connection whose answer is not whole."""
        try:
            await super().__call__(scope, receive, send)
        except _BrokenOff:
            return

    async def _pieces(self, name: str, film: Any, until: Until, read: Read) -> AsyncIterator[bytes]:
        sent = 0
        try:
            while True:
                package = film.package
                parts, is_open = package.parts_of(name), package.parts_of_open(name) is not None
                for part in parts[sent:]:
                    yield await read(film, part)
                sent = len(parts)
                if not is_open:
                    return
                film = await until(partial(has_more, name=name, sent=sent))
        except (FragdexError, KeyError, NotYet, NothingWritten, TooManyWait) as error:
            raise _BrokenOff from error


def has_more(package: AnyPackage, name: str, sent: int) -> bool:
    """Whether a segment is complete, or has more parts than so many."""
    there = package.parts_of_open(name)
    return there is None or there > sent
