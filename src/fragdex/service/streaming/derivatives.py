"""Pictures and waveforms of films: found in the store, or made in a process and cached there.

A few are made at once, tenants in turns; who waits holds no thread. What the store has no room for
is answered from memory, to those who wait for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from fractions import Fraction
from typing import Any, Final

from anyio.to_thread import run_sync

from fragdex.decoding.pictures import nearest_sync
from fragdex.errors import RecordNotFound, StoreFull, Unavailable
from fragdex.sandbox.folders import OwnFolder
from fragdex.service.context import ServiceContext
from fragdex.service.indexing.isolated import run_in_child
from fragdex.service.isobmff.opened import cached_for
from fragdex.service.records import blobs
from fragdex.service.records.blobs import Blob, StoredBytes
from fragdex.service.streaming import child
from fragdex.service.streaming.titles import Playable, StoredMedium
from fragdex.service.web.threads import run_at_store

log = logging.getLogger("fragdex.service")
_VERSION: Final = 1
"""Grows with each change of the results."""
Make = Callable[..., dict[str, Any]]


class Derivatives:
    """What is being made, by recipe, so that concurrent requests wait for one; of one loop."""

    def __init__(self) -> None:
        self._making: dict[tuple[str, bytes, str], asyncio.Task[dict[str, StoredBytes]]] = {}

    async def parts(
        self, context: ServiceContext, tenant_id: str, medium: StoredMedium, do: Make, **how: Any
    ) -> dict[str, StoredBytes]:
        """The files that come of a function of `child`, by the names of their parts.

        Raises:
            FragdexError: as that function, and as `run_in_child`.
            RecordNotFound: the bytes were deleted meanwhile.
        """
        arguments = " ".join(f"{name}={value}" for name, value in sorted(how.items()))
        recipe = f"{do.__name__} {_VERSION} {arguments} {medium.mark}".strip()
        blob = medium.blob
        cached = await run_sync(_find, context, tenant_id, blob, recipe)
        if cached:
            return cached
        key = tenant_id, blob.sha256, recipe
        making = self._making.get(key)
        if making is None:
            making = asyncio.ensure_future(_make(context, tenant_id, medium, recipe, do, how))
            self._making[key] = making
            making.add_done_callback(lambda done: self._over(key, done))
        # who goes away leaves the others their picture
        unstored = await asyncio.shield(making)
        if unstored:
            return unstored
        cached = await run_sync(_find, context, tenant_id, blob, recipe)
        if not cached:
            raise RecordNotFound("the file was deleted meanwhile")
        return cached

    def _over(self, key: Any, done: asyncio.Task[Any]) -> None:
        del self._making[key]
        if not done.cancelled():
            done.exception()  # whoever asked may be gone

    def close(self) -> None:
        """Nobody waits any more."""
        self._making.clear()


def _find(
    context: ServiceContext, tenant_id: str, blob: Blob, recipe: str
) -> dict[str, StoredBytes]:
    lasts = cached_for(context)
    return blobs.find_derived(context.database, tenant_id, blob.sha256, recipe, lasts)


async def _make(
    context: ServiceContext,
    tenant_id: str,
    medium: StoredMedium,
    recipe: str,
    do: Make,
    how: dict[str, Any],
) -> dict[str, StoredBytes]:
    async with context.part(DecodingTurns).turn(tenant_id):
        return await run_at_store(_made, context, tenant_id, medium, recipe, do, how)


def _made(
    context: ServiceContext,
    tenant_id: str,
    medium: StoredMedium,
    recipe: str,
    do: Make,
    how: dict[str, Any],
) -> dict[str, StoredBytes]:
    """Make and cache them; returned are those of a cache without room, else nothing."""
    with OwnFolder() as folder, medium.index() as lent:
        answer = run_in_child(
            medium.opened, medium.size, do,
            taken=folder, lent=[lent.fileno()], **how,
        )  # fmt: skip
        try:
            written = {
                name: (
                    blobs.write_file(context.database, context.store, tenant_id, folder / name),
                    answer["types"][name],
                )
                for name in answer["files"]
            }
            blobs.keep_derived(
                context.database, tenant_id, medium.blob.sha256, recipe, written,
                cached_for(context),
            )  # fmt: skip
        except StoreFull as error:
            log.warning("%s is not cached: %s", do.__name__, error)
            return {
                name: _in_memory((folder / name).read_bytes(), answer["types"][name])
                for name in answer["files"]
            }
    return {}


def _in_memory(data: bytes, media_type: str) -> StoredBytes:
    md5, sha256 = hashlib.md5(data, usedforsecurity=False), hashlib.sha256(data)
    return StoredBytes("", len(data), md5.digest(), sha256.digest(), media_type, data)


async def thumbnail(
    context: ServiceContext, tenant_id: str, title: Playable, time: Fraction, form: str,
    exact: bool, **size: Any,
) -> StoredBytes:  # fmt: skip
    """The picture of a moment.

    Args:
        time: seconds of presentation time.
        form: as of `fragdex.decoding.thumbnail`.
        size: `width`, `height`, `fit` as of it.

    Raises: TrackNotFound, and as `Derivatives.parts`.
    """
    medium = title.medium("video")
    if not exact:
        # moments that show one picture are one recipe
        time = nearest_sync(medium.track, time).time.fraction
    parts = await context.part(Derivatives).parts(
        context, tenant_id, medium, child.picture,
        time=str(time), exact=exact, format=form, track=medium.track.id, **size,
    )  # fmt: skip
    return parts["picture"]


async def storyboard(
    context: ServiceContext, tenant_id: str, title: Playable, every: Fraction, width: int,
    columns: int, rows: int,
) -> dict[str, StoredBytes]:  # fmt: skip
    """Sheets of small pictures, by their numbers, and their WebVTT as `vtt`; as `thumbnail`."""
    medium = title.medium("video")
    return await context.part(Derivatives).parts(
        context, tenant_id, medium, child.sheets,
        every=str(every), width=width, columns=columns, rows=rows,
        track=medium.track.id,
    )  # fmt: skip


async def waveform(
    context: ServiceContext, tenant_id: str, title: Playable, samples_per_pixel: int, bits: int
) -> dict[str, StoredBytes]:
    """Peaks of the sound, as `json` and `dat`; raises as `thumbnail`."""
    medium = title.medium("audio")
    return await context.part(Derivatives).parts(
        context, tenant_id, medium, child.waveform, samples_per_pixel=samples_per_pixel, bits=bits
    )


async def loudness(context: ServiceContext, tenant_id: str, title: Playable) -> StoredBytes:
    """How loud the sound is, as JSON; raises as `thumbnail`."""
    medium = title.medium("audio")
    parts = await context.part(Derivatives).parts(context, tenant_id, medium, child.measure)
    return parts["json"]


MOST_AT_ONCE: Final = 2
MOST_WAITING: Final = 64
"""Requests of a tenant that wait; the next one is asked to come again."""


class DecodingTurns:
    """The turns of a process; a part of the context, used in its event loop alone."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._running: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, tenant_id: str) -> AsyncIterator[None]:
        """Wait for the turn of a request of a tenant.

        Raises:
            Unavailable: too many of them wait.
        """
        if sum(one == tenant_id for one, _ in self._waiting) >= MOST_WAITING:
            raise Unavailable("other pictures or waveforms of yours are being made", retry_after=2)
        mine = tenant_id, asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        self._begin()
        try:
            await mine[1]
        except asyncio.CancelledError:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                self._end(tenant_id)
            raise
        try:
            yield
        finally:
            self._end(tenant_id)

    def _begin(self) -> None:
        """Let those begin for whom there is room: of the tenant first for whom least is running."""
        while self._waiting and self._running.total() < MOST_AT_ONCE:
            next_ = min(self._waiting, key=lambda one: self._running[one[0]])
            self._waiting.remove(next_)
            self._running[next_[0]] += 1
            next_[1].set_result(None)

    def _end(self, tenant_id: str) -> None:
        self._running[tenant_id] -= 1
        self._running += Counter()  # those of none are forgotten
        self._begin()

    def close(self) -> None:
        """Nobody's turn comes any more."""
        self._waiting.clear()
