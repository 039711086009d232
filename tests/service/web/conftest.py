"""The service with routes of the tests' own beside the families'."""

import asyncio
import hashlib
from contextlib import contextmanager

import pytest
from fastapi import Depends, Request, Response
from pydantic import BaseModel

from fragdex.errors import RecordNotFound, Unprocessable
from fragdex.service.records.blobs import StoredBytes
from fragdex.service.unprocessed.records import whole
from fragdex.service.web.auth import Asking, InContext
from fragdex.service.web.bodies import in_thread
from fragdex.service.web.events import EventStream
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.ranges import media_of
from fragdex.service.web.routing import api_router
from service.working import serving_over

BYTES = bytes(range(256)) * 8192  # 2 MiB
KEY = "blobs/test/bytes"

router = api_router("tests")
calls = []


class Thing(BaseModel):
    """A body."""

    name: str
    count: int = 1


@router.get("/test/bytes", response_class=Response)
@router.head("/test/bytes", response_class=Response)
def get_bytes(request: Request, caller: Asking):
    """Stored bytes."""
    md5, sha256 = hashlib.md5(BYTES).digest(), hashlib.sha256(BYTES).digest()
    key = getattr(request.app.state, "key_of_bytes", KEY)
    return media_of(request, StoredBytes(key, len(BYTES), md5, sha256, "video/mp4"))


@router.post("/test/things", status_code=201, dependencies=[Depends(idempotency_key)])
def make_thing(thing: Thing, caller: Asking):
    """Make a thing; each is another one."""
    if thing.name == "bad":
        raise Unprocessable("a bad thing")
    calls.append(thing.name)
    return {"name": thing.name, "number": len(calls), "tenant": caller.tenant_id}


@router.post("/test/slow", status_code=201, dependencies=[Depends(idempotency_key)])
async def slow(caller: Asking):
    """Take a second."""
    await asyncio.sleep(1)
    return {"done": True}


@router.post("/test/upload")
async def upload(request: Request, caller: Asking, context: InContext):
    """Count the bytes of a body, in a thread."""
    return await in_thread(
        request,
        context.settings.max_image_bytes,
        lambda pieces: {"pieces": (sizes := [len(p) for p in pieces]), "size": sum(sizes)},
    )


@router.get("/test/events/{kind}", response_class=Response)
async def events(kind: str, caller: Asking):
    """A stream of events of a kind."""

    async def told():
        yield (("size", {"size": 3}, "0"),)
        yield (("completion", {"count": 2, "word": "grün"}, "2"),)
        if kind == "broken":
            raise RecordNotFound("it was deleted")
        if kind == "faulty":
            raise RuntimeError("secret")
        if kind == "endless":
            await asyncio.sleep(3600)
        if kind == "quiet":
            await asyncio.sleep(0.5)
        if kind == "unended":
            return
        yield ("completion", {"count": 1}, "3"), ("complete", {}, "end")
        yield (("progress", {"progress": 1}, "1"),)

    async def states():
        for at in (0.1, 0.1, 0.5, 1):
            yield ("complete", {}) if at == 1 else ("progress", {"progress": at})

    if kind == "changes":
        return EventStream(whole(states()))
    return EventStream(told(), heartbeat=0.1 if kind == "quiet" else 15)


@router.get("/test/fault")
def fault(caller: Asking):
    """Fail."""
    raise RuntimeError("secret")


@contextmanager
def web_service(database, request, tmp_path_factory):
    """The service with these routes, over a kind of database."""
    times = {"body_timeout_seconds": 1, "head_timeout_seconds": 1}
    with serving_over(database, request, tmp_path_factory, router, **times) as served:
        served.context.store.write(KEY, [BYTES])
        yield served


@pytest.fixture(scope="session")
def server(request, tmp_path_factory):
    """The service with these routes, for what no database has a part in."""
    with web_service("sqlite", request, tmp_path_factory) as served:
        yield served
