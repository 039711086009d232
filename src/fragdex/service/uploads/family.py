"""The routes of a family of records, declared one by one; what is alike in all families is here.

    routes = Family(api_router("image files"), "/image_files", "image file")
    routes.creation(NewImage, ImageRecord, create_image)
    routes.by_md5(ImageRecord, find_image)

Each takes the operation it asks, and the model of what is answered. Operations are named after the
noun (`create_image_file`), their sentences are made of it; `description` stands instead where there
is more to say. A route unlike the others is written on the router, between or after these.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any, Protocol, TypeVar

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query, Request, Response

from fragdex.errors import FragdexError, NotReady, RecordNotFound, UploadIncomplete
from fragdex.service.context import ServiceContext
from fragdex.service.records.blobs import StoredBytes
from fragdex.service.records.identifiers import md5_bytes
from fragdex.service.records.pages import DEFAULT_LIMIT
from fragdex.service.uploads.model import Target
from fragdex.service.uploads.operations import state
from fragdex.service.uploads.receiving import BODY, REFUSALS, ensure_complete, receive_request
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.events import Batch, Event, LastEventId, Look, event_answers, progress_of
from fragdex.service.web.fields import (
    ApiModel,
    Cursor,
    Limit,
    Listed,
    Md5InPath,
    RecordId,
    record_id,
)
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.ranges import media_answers, media_of
from fragdex.service.web.routing import PREFIX, get_and_head, with_fast_path
from fragdex.service.web.threads import run_by_records

NOT_FOUND = answers(RecordNotFound)


class _Answered(Protocol):
    """What a route needs of the model it answers."""

    @property
    def id(self) -> str: ...
    def model_dump_json(self) -> str: ...


New = TypeVar("New", bound=ApiModel)
Record = TypeVar("Record", bound=_Answered)
Page = TypeVar("Page", bound=Listed)


class Family:
    """The routes of one collection.

    Args:
        router: that the routes are put on, in the order in which they are declared.
        path: of the collection, below the prefix: `/image_files`.
        noun: what one of its records is called: `image file`.
        record_at: where a record is, below the collection.
        plural: of the noun, where it is not made with an s.
    """

    def __init__(
        self, router: APIRouter, path: str, noun: str, *, record_at: str = "/{id}", plural: str = ""
    ) -> None:
        self._router, self._path, self._noun, self._record_at = router, path, noun, record_at
        self._all = plural or f"{noun}s"
        self._name = noun.lower().replace(" ", "_")
        self._one = f"an {noun}" if noun[0] in "aeiouAEIOU" else f"a {noun}"

    def creation(
        self,
        new: type[New],
        record: type[Record],
        create: Callable[[ServiceContext, str, New], tuple[Record, bool]],
        *refusals: type[FragdexError],
        description: str = "",
        always_new: bool = False,
    ) -> None:
        """POST of a new record: 201, or 200 where `create` gives one that was there.

        Args:
            always_new: it never does.
        """

        async def post(new: Any, response: Response, caller: Asking, context: InContext) -> Any:
            # what has no bytes is stored at once
            record, is_new = await run_by_records(
                context, lambda c: create(c, caller.tenant_id, new)
            )
            if not is_new:
                response.status_code = 200
            response.headers["Location"] = (
                PREFIX + self._path + self._record_at.format(id=record.id)
            )
            return record

        post.__annotations__["new"] = new  # where the framework looks for the body's model
        known = {"model": record, "description": "There is one of this md5 already"}
        self._router.post(
            self._path,
            name=f"create_{self._name}",
            description=description or f"Announce {self._one}; its bytes follow by upload.",
            status_code=201,
            response_model=record,
            responses=answers(*refusals) | ({} if always_new else {200: known}),
            dependencies=[Depends(idempotency_key)],
        )(post)

    def listing(
        self,
        page: type[Page],
        statuses: Any,
        find: Callable[[ServiceContext, str, int, str | None, Any], Page],
    ) -> None:
        """GET of the collection, newest first, a page at a time.

        Args:
            statuses: an enumeration or a Literal: a list may show one of them alone.
        """

        def get(
            caller: Asking,
            context: InContext,
            limit: Limit = DEFAULT_LIMIT,
            cursor: Cursor = None,
            status: Any = None,
        ) -> Any:
            return find(context, caller.tenant_id, limit, cursor, status)

        get.__annotations__["status"] = Annotated[statuses | None, Query(description="only those")]
        self._router.get(
            self._path,
            name=f"list_{self._all.lower().replace(' ', '_')}",
            description=f"{self._all[0].upper()}{self._all[1:]}, newest first.",
            response_model=page,
        )(get)

    def by_md5(
        self,
        record: type[Record],
        find: Callable[[ServiceContext, str, bytes], Record],
        *,
        description: str = "",
    ) -> None:
        """GET of the record of an md5."""

        def sync_handler(request: Request, context: ServiceContext, tenant_id: str) -> Response:
            return _json(find(context, tenant_id, md5_bytes(request.path_params["md5"], "md5")))

        @with_fast_path(sync_handler)
        async def get(md5: Md5InPath, caller: Asking, context: InContext) -> Response:
            return _json(await run_by_records(context, lambda c: find(c, caller.tenant_id, md5)))

        self._router.get(
            f"{self._path}/md5/{{md5}}",
            name=f"find_{self._name}",
            description=description or f"The {self._noun} whose bytes have this md5.",
            response_model=record,
            responses=NOT_FOUND,
        )(get)

    def record(
        self,
        record: type[Record],
        find: Callable[[ServiceContext, str, str], Record],
        *,
        description: str = "The record.",
        responses: dict[int | str, dict[str, Any]] = NOT_FOUND,
    ) -> None:
        """GET of the record of an id."""

        def sync_handler(request: Request, context: ServiceContext, tenant_id: str) -> Response:
            return _json(find(context, tenant_id, record_id(request.path_params["id"])))

        @with_fast_path(sync_handler)
        async def get(id: RecordId, caller: Asking, context: InContext) -> Response:
            return _json(await run_by_records(context, lambda c: find(c, caller.tenant_id, id)))

        self._router.get(
            self._path + self._record_at,
            name=f"get_{self._name}",
            description=description,
            response_model=record,
            responses=responses,
        )(get)

    def progress(
        self,
        look: Look,
        to_batches: Callable[[AsyncIterator[Event], str | None], AsyncIterator[Batch]],
        events: str,
        *,
        description: str = "",
    ) -> None:
        """GET of how far a record is, as events.

        Args:
            look, to_batches: as `web.events.progress_of`.
            events: which there are, in a few words.
        """

        def get(
            id: RecordId,
            request: Request,
            caller: Asking,
            context: InContext,
            after: LastEventId = None,
        ) -> Response:
            return progress_of(request, context, caller.tenant_id, id, after, look, to_batches)

        self._router.get(
            f"{self._path}/{{id}}/progress",
            name=f"get_{self._name}_progress",
            description=description or f"How far {self._one} is, as events.",
            response_class=Response,
            responses={**NOT_FOUND, **event_answers(events)},
        )(get)

    def upload(
        self,
        record: type[Record],
        find: Callable[[ServiceContext, str, str], Record],
        target: Callable[[ServiceContext, str, str], Target],
        *,
        description: str = "",
    ) -> None:
        """POST of bytes, whole or in chunks, and GET of the record once they are complete.

        Args:
            target: where the bytes of a tenant's record go; may leave it to the upload that there
                is one.
        """
        at = f"{self._path}/{{id}}/upload"

        async def post(
            id: RecordId, request: Request, caller: Asking, context: InContext
        ) -> Response:
            tenant_id = caller.tenant_id
            upload = await run_sync(target, context, tenant_id, id)
            progress = await receive_request(request, tenant_id, upload)
            try:
                uploaded = find(request.app.state.nonblocking, tenant_id, id)
            except BlockingIOError:
                uploaded = await run_by_records(context, lambda c: find(c, tenant_id, id))
            return _json(uploaded, 201 if progress.complete else 202)

        def look(context: ServiceContext, tenant_id: str, id: str) -> Record:
            family = target(context, tenant_id, id).family
            ensure_complete(state(context, tenant_id, family, id))
            return find(context, tenant_id, id)

        async def get(id: RecordId, caller: Asking, context: InContext) -> Any:
            return await run_by_records(context, lambda c: look(c, caller.tenant_id, id))

        missing = {"model": record, "description": "Bytes are missing"}
        self._router.post(
            at,
            name=f"upload_{self._name}",
            description=description
            or f"Send bytes of {self._one}, whole or in chunks; 202 while some are missing.",
            status_code=201,
            response_model=record,
            responses={**answers(*REFUSALS), 202: missing},
            openapi_extra=BODY,
        )(post)
        self._router.get(
            at,
            name=f"get_{self._name}_upload",
            description="The record, once its bytes are complete; before that 404, with "
            "`next_byte`.",
            response_model=record,
            responses=answers(RecordNotFound, UploadIncomplete),
        )(get)

    def media(
        self,
        types: tuple[str, ...],
        find: Callable[[ServiceContext, str, str], StoredBytes],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """GET and HEAD of the bytes of a record, whole or by ranges."""

        @get_and_head(
            self._router,
            f"{self._path}/{{id}}",
            name=f"download_{self._name}",
            description=f"The bytes of a complete {self._noun}.",
            responses={**answers(RecordNotFound, NotReady), **media_answers(*types)},
        )
        def get(id: RecordId, request: Request, caller: Asking, context: InContext) -> Response:
            return media_of(request, find(context, caller.tenant_id, id), headers)

    def deletion(
        self,
        delete: Callable[[ServiceContext, str, str], None],
        *,
        description: str = "",
        responses: dict[int | str, dict[str, Any]] = NOT_FOUND,
    ) -> None:
        """DELETE of a record and of what hangs on it."""

        def gone(id: RecordId, caller: Asking, context: InContext) -> None:
            delete(context, caller.tenant_id, id)

        self._router.delete(
            f"{self._path}/{{id}}",
            name=f"delete_{self._name}",
            description=description or f"Delete {self._one} and its bytes.",
            status_code=204,
            responses=responses,
        )(gone)


def _json(record: _Answered, status: int = 200) -> Response:
    return Response(record.model_dump_json(), status, media_type="application/json")
