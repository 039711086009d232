"""Answers that wait for more of a video whose upload is not complete, as the origin's do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from fastapi import Request, Response

from fragdex.errors import BytesMissing, InvalidRequest, RecordNotFound, Unavailable
from fragdex.muxing.view import View
from fragdex.origin.open_segments import WAITS, NothingWritten, OpenSegment, wait_for, wait_until
from fragdex.origin.waiting import TooManyWait
from fragdex.record import record
from fragdex.service.context import ServiceContext
from fragdex.service.streaming.arriving import ArrivingTitle, ArrivingTitles
from fragdex.service.streaming.titles import Playable, StoredTitle
from fragdex.service.web.threads import run_at_store
from fragdex.serving.answers import decides

BYTES: Final = "private, max-age=3600"


@record(frozen=True, slots=True)
class ArrivingFiles:
    """Files of a family, be they stored or still on their way.

    Attributes:
        stored: the title of a file that is stored; raises RecordNotFound, BytesMissing.
    """

    stored: Callable[[ServiceContext, str, str], StoredTitle]

    def find(
        self, context: ServiceContext, tenant_id: str, file_id: str, *, waited: bool = False
    ) -> Playable:
        """The title of a file, or of what is durable of it.

        Args:
            waited: whether somebody waits for it, be it played by another process.

        Raises: as `stored`.
        """
        arriving = context.part(ArrivingTitles)
        try:
            stored = self.stored(context, tenant_id, file_id)
        except (RecordNotFound, BytesMissing):
            title = arriving.title(context, tenant_id, file_id)
            if title is None:
                raise
            return title
        if not waited and arriving.latest((tenant_id, file_id)) is None:
            return stored
        return arriving.arrived(context, stored, file_id) or stored

    def find_at_once(self, context: ServiceContext, tenant_id: str, file_id: str) -> StoredTitle:
        """The title of a stored file; BlockingIOError where it may be on its way, or was lately."""
        if context.part(ArrivingTitles).latest((tenant_id, file_id)) is not None:
            raise BlockingIOError("it may still be played as what arrived")
        try:
            return self.stored(context, tenant_id, file_id)
        except (RecordNotFound, BytesMissing):
            raise BlockingIOError("it may be on its way") from None

    async def wait(
        self, request: Request, context: ServiceContext, tenant_id: str, file_id: str, name: str
    ) -> Response | None:
        """Wait for what a player wants next; the answer where it is a segment that has begun.

        Args:
            name: of the file in its package.

        Raises:
            InvalidRequest: it is too far ahead.
            Unavailable: nothing came, or too many requests wait.
        """
        is_list = any(map(request.query_params.get, WAITS))
        if name.endswith(".m3u8") and not is_list:
            return None

        def packaged() -> Playable:
            title = self.find(context, tenant_id, file_id, waited=is_list)
            title.package  # noqa: B018 - made here, in a thread
            return title

        waiters = context.part(ArrivingTitles).waiters
        until = partial(wait_until, waiters, partial(run_at_store, packaged))
        is_whole = request.method == "HEAD" or decides(request.scope["headers"])
        try:
            title, begun = await wait_for(until, name, request.query_params, whole=is_whole)
        except KeyError:
            return None  # the route says so
        except ValueError as error:
            raise InvalidRequest(str(error)) from None
        except (NothingWritten, TooManyWait) as error:
            raise Unavailable(str(error) or "too many requests wait", retry_after=1) from None
        return OpenSegment(name, title, until, _read, {"Cache-Control": BYTES}) if begun else None


async def _read(title: ArrivingTitle, part: View) -> bytes:
    def read() -> bytes:
        with title.sources_of(part) as sources:
            return part.read(source=sources)

    return await run_at_store(read)
