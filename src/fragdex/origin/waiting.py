"""Requests that wait for what a growing title does not have yet (RFC 8216bis, 6.2.5.2).

Whoever waits holds no thread: it waits for a future of the event loop. For each title for which
somebody waits, one task looks whether its files have grown, opens the title again if so, and wakes
all who wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, Final

from fragdex.errors import FragdexError
from fragdex.origin.titles import OpenTitle, Titles
from fragdex.origin.writes import NotYet
from fragdex.packaging.rotated import AnyPackage
from fragdex.record import record

MOST_WAITING: Final = 2000
"""Requests that wait at a time."""
TARGETS_WAITED: Final = 3
"""Target durations for which a request waits."""
_LOOKS: Final = 0.05
"""Seconds between two looks whether files have grown."""
_BEYOND: Final = 2
"""Segments after the last one that a request may name."""


class TooManyWait(Exception):
    """So many requests wait that no more may."""


class HlsSkip(StrEnum):
    """Lines of a playlist that a player has, and are left out (RFC 8216bis, 6.2.5.1)."""

    SEGMENTS = "YES"
    WITH_DATE_RANGES = "v2"


@record(frozen=True, slots=True)
class Directives:
    """What a request wants of a media playlist (RFC 8216bis, 6.2.5).

    Attributes:
        segment: number that the playlist has to have, from 0; None: it does not wait.
        part: number of a part of that segment; None: all of the segment.
        skip: whether segments that the player has are left out.
    """

    segment: int | None = None
    part: int | None = None
    skip: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Directives:
        """Those of a query.

        Raises:
            ValueError: a value is invalid, or a part is named without its segment.
        """
        segment, part = (_number(query, name) for name in ("_HLS_msn", "_HLS_part"))
        if part is not None and segment is None:
            raise ValueError("_HLS_part: expected _HLS_msn with it")
        skip = query.get("_HLS_skip")
        if skip not in (None, *HlsSkip):
            raise ValueError(f"_HLS_skip: expected YES or v2, found {skip!r}")
        return cls(segment, part, skip is not None)

    def are_met(self, package: AnyPackage, name: str) -> bool:
        """Whether a media playlist has what they name, or has ended.

        Raises:
            KeyError: the title has no such playlist.
            ValueError: they name what is too far from the end of the playlist.
        """
        progress = package.progress(name)
        if self.segment is None or progress is None:
            return True
        complete, begun = progress
        last = complete if begun else complete - 1
        if self.segment > last + _BEYOND:
            raise ValueError(f"_HLS_msn: expected at most {last + _BEYOND}, found {self.segment}")
        following = begun if self.segment == complete else 0
        if self.segment >= complete and self.part is not None and self.part > following:
            raise ValueError(f"_HLS_part: expected at most {following}, found {self.part}")
        if self.part is None:
            return self.segment < complete
        # a part after the last of its segment is the first of the next (RFC 8216bis, 6.2.5.2)
        return (self.segment, self.part) <= package.last_part(name)


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise ValueError(f"{name}: expected a whole number, found {text!r}")
    return int(text)


class Waiters:
    """Who waits for titles to grow.

    Args:
        titles: the titles.
        run: runs a function in a thread.
    """

    def __init__(self, titles: Titles, run: Callable[[Callable[[], Any]], Any]) -> None:
        self._titles, self._run = titles, run
        self._waiting: dict[tuple[str, ...], dict[asyncio.Future[None], OpenTitle]] = {}
        self._tasks: dict[tuple[str, ...], asyncio.Task[None]] = {}
        self.count = 0

    def watched(self, names: tuple[str, ...]) -> OpenTitle | None:
        """A title that is looked at, as it was found last; None: nobody looks at it."""
        film = self._titles.latest(names) if names in self._tasks else None
        return film if film is not None and film.growing is True and film.is_packaged else None

    async def changed(self, film: OpenTitle, seconds: float) -> bool:
        """Wait until a title is another one than this; False: it is not after so many seconds.

        Raises:
            TooManyWait: `MOST_WAITING` wait already.
        """
        if self.count >= MOST_WAITING:
            raise TooManyWait
        future = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(film.names, {})
        waiting[future] = film
        self.count += 1
        if film.names not in self._tasks:
            self._tasks[film.names] = asyncio.create_task(self._watch(film.names))
        try:
            if self._titles.latest(film.names) is not film:
                return True
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            return False
        finally:
            self.count -= 1
            waiting.pop(future, None)
        return True

    async def _watch(self, names: tuple[str, ...]) -> None:
        """Look whether files have grown for as long as somebody waits for it."""
        waiting = self._waiting[names]
        try:
            await self._look(names, waiting)
        finally:
            # at once: whoever comes next finds no watch that has ended, and nobody waits for one
            self._waiting.pop(names, None)
            self._tasks.pop(names, None)
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    async def _look(
        self, names: tuple[str, ...], waiting: dict[asyncio.Future[None], OpenTitle]
    ) -> None:
        pause = _LOOKS
        while waiting:
            await asyncio.sleep(pause)
            pause, is_open = _LOOKS, self._titles.opened(names) is not None
            if not is_open:
                began = time.monotonic()
                await self._run(partial(_open, self._titles, names))
                # a long recording takes a while to open, and others need the processor too
                pause = max(_LOOKS, time.monotonic() - began)
            # another request may have opened it again before
            latest = self._titles.latest(names)
            for future, film in list(waiting.items()):
                if not future.done() and (not is_open or film is not latest):
                    future.set_result(None)


def _open(titles: Titles, names: tuple[str, ...]) -> None:
    """Open and package a title; those who wait then find what keeps that from being done."""
    try:
        titles.open(names).package  # noqa: B018 - made once, for all
    except (FragdexError, NotYet, OSError):
        return
