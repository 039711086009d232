"""Everything as one: `open_context` makes the parts, `make_app` the ASGI application over them."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from importlib.metadata import version

from anyio.to_thread import run_sync
from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from fragdex.errors import FragdexError
from fragdex.sandbox.folders import sweep_temporary
from fragdex.sandbox.processes import share_memory_among
from fragdex.service import console, timelines
from fragdex.service.config import Settings
from fragdex.service.context import ServiceContext, open_database, store_of
from fragdex.service.files import routes as files
from fragdex.service.isobmff import routes as isobmff
from fragdex.service.jobs.api import Jobs, options_of
from fragdex.service.jobs.work import Work
from fragdex.service.logs import audit, explained
from fragdex.service.records import blobs, deletion, keys, trash
from fragdex.service.records.identifiers import instant
from fragdex.service.records.keys import KeyUses
from fragdex.service.renders import operations as render_operations
from fragdex.service.renders import routes as renders
from fragdex.service.renders import worker as rendering
from fragdex.service.repairs import routes as repairs
from fragdex.service.repairs import worker as repairing
from fragdex.service.resumable import draft, tus
from fragdex.service.resumable import operations as resumable_uploads
from fragdex.service.resumable.appending import RunningUploads
from fragdex.service.store.disk_files import Reserve, disks_nearly_full
from fragdex.service.streaming import routes as streaming
from fragdex.service.transcriptions import routes as transcriptions
from fragdex.service.transcriptions import worker as transcribing
from fragdex.service.transcriptions.worker import engine_state
from fragdex.service.unprocessed import routes as unprocessed
from fragdex.service.unprocessed import worker as processing
from fragdex.service.web import access_routes, documents, health, idempotency, problems, rates
from fragdex.service.web.auth import Authenticator
from fragdex.service.web.events import Watcher
from fragdex.service.web.front import Front
from fragdex.service.web.health import StateMetrics
from fragdex.service.web.in_process import InProcess
from fragdex.service.web.prefix import Prefix
from fragdex.service.web.routing import RouteTable
from fragdex.service.web.threads import set_thread_count
from fragdex.service.webhooks import operations as webhook_operations
from fragdex.service.webhooks import routes as webhooks
from fragdex.service.webhooks import worker as delivering
from fragdex.traces import Traces

log = logging.getLogger("fragdex.service")

ROUTERS: tuple[APIRouter, ...] = (
    files.router,
    isobmff.router,
    streaming.router,
    timelines.router,
    files.image_router,
    files.caption_router,
    unprocessed.router,
    tus.router,
    draft.router,
    repairs.router,
    renders.router,
    transcriptions.router,
    webhooks.router,
    access_routes.token_router,
    access_routes.usage_router,
    access_routes.key_router,
    health.router,
    console.router,
)
"""What the families answer, in the order of the documents: what most people come for first."""

WORK: tuple[Work, ...] = (
    *processing.WORK,
    *repairing.WORK,
    *rendering.WORK,
    *transcribing.WORK,
    *delivering.WORK,
)
"""What the families have done by workers."""

HOUSEKEEPING = "housekeeping"
"""Name of the thread that does it."""
HOUSEKEEPING_SECONDS = 60.0
HURRIED_SECONDS = 5.0
"""Where a disk is nearly full, what is deleted frees its room this soon."""


def open_context(settings: Settings) -> ServiceContext:
    """Make the parts of a process; the data folder and the tables are made where they are missing.

    Raises:
        ConfigError: a setting that cannot be used.
        Unavailable: the database or the store does not answer.
    """
    share_memory_among(settings.job_workers + settings.slice_workers)
    database = open_database(settings)
    store = store_of(settings)
    jobs = Jobs(database, options_of(settings), Traces.of_environment())
    jobs.register(*WORK)
    jobs.metrics.add(StateMetrics(settings, database))
    return ServiceContext(settings, database, store, jobs)


def close_context(context: ServiceContext) -> None:
    """Hand jobs back, and let go of the database."""
    context.jobs.close()
    context.close_parts()
    context.traces.close()
    context.database.close()


def make_app(context: ServiceContext, *routers: APIRouter) -> FastAPI:
    """The application over a context; `routers` come in addition to those of the families.

    It works on jobs too, where the settings say so, from its start to its end.
    """
    app = _application(context, housekeeping=True)
    app.state.nonblocking = context.nonblocking()
    app.state.authenticator = Authenticator(context)
    app.state.watcher = Watcher(context)
    app.state.running_uploads = RunningUploads()
    declared = [route for router in (*ROUTERS, *routers) for route in router.routes]
    # not `include_router`, which looks at every route twice for each request
    app.router.routes.extend([RouteTable(declared), *declared])
    documents.install(app, declared)
    return app


def make_worker_app(context: ServiceContext) -> FastAPI:
    """What a worker answers: its health and its metrics. It works on jobs from start to end.

    The pages that it renders are answered as by a process that serves.
    """
    app = _application(context, housekeeping=False, inside=make_app(context))
    app.router.routes.extend(health.router.routes)
    return app


def work_until(context: ServiceContext, ended: Callable[[], object]) -> list[str]:
    """Work on jobs until a function returns, answering nobody but the pages that are rendered.

    Returns the jobs that did not end and were handed back.
    """
    with context.part(InProcess).run_in_thread(make_app(context)):
        context.jobs.start_worker(context)
        ended()
        return context.jobs.stop()


def _application(
    context: ServiceContext, *, housekeeping: bool, inside: FastAPI | None = None
) -> FastAPI:
    """An application without routes: its start and its end, its faults, its requests counted.

    `inside` answers the pages of renders; None: the application itself.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        set_thread_count(context.settings.threads)
        context.part(InProcess).begin(inside or app)
        if context.settings.job_workers:
            await run_sync(context.jobs.start_worker, context)
        ended = threading.Event()
        keeping = threading.Thread(
            target=_housekeep_until, args=(context, ended), name=HOUSEKEEPING, daemon=True
        )
        if housekeeping:
            keeping.start()
        try:
            yield
        finally:
            ended.set()
            app.state.stuck_jobs = stuck = await run_sync(context.jobs.stop)
            if stuck:
                log.warning("%d jobs did not end and were handed back", len(stuck))
            if housekeeping:
                await run_sync(keeping.join, 5.0)

    app = _Application(
        title="fragdex",
        version=version("fragdex"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        # its spans have the query of a URL, and so its token: ours are made by `Front`
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.context = context
    # the first signal has come; then, once balancers could see it, no more requests are taken
    app.state.ending = False
    app.state.draining = asyncio.Event()
    app.state.browser = partial(rendering.browser_state, context)
    app.state.has_no_browser = rendering.browser_is_missing
    app.state.engine = partial(engine_state, context)
    app.state.stuck_jobs = []
    problems.install(app)
    return app


class _Application(FastAPI):
    """Between a request and its route stands one layer, and where there is a prefix another."""

    def build_middleware_stack(self) -> ASGIApp:
        """In place of the framework's seven."""
        context: ServiceContext = self.state.context
        app = Front(
            self.router, context.settings, context.metrics, context.traces, self.exception_handlers
        )
        prefix = context.settings.public_path
        return Prefix(app, prefix) if prefix else app


def _wait(settings: Settings, ended: threading.Event, seconds: float) -> None:
    """Wait, unless a disk becomes nearly full meanwhile."""
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        if ended.wait(min(left, HURRIED_SECONDS)):
            return
        with suppress(OSError):
            if disks_nearly_full(settings):
                return


def _forget_keys(context: ServiceContext) -> None:
    """Delete the keys that ended long ago, and say so where whoever made them is written down."""
    before = instant() - timedelta(days=context.settings.key_history_days)
    for tenant_id, key_id in keys.forget_ended(context.database, before):
        audit("key.delete", tenant_id, None, key_id, by="housekeeping")


def _housekeep_until(context: ServiceContext, ended: threading.Event) -> None:
    """At once, then every minute: what is past its time goes. Several processes may do it."""
    age = timedelta(hours=context.settings.upload_hours)
    reserve, reported = Reserve(context.settings.data), 0.0
    while not ended.is_set():
        wait = HOUSEKEEPING_SECONDS
        try:
            little = disks_nearly_full(context.settings)
            if little:
                wait = HURRIED_SECONDS
                trash.hurry(context.database)
                if time.monotonic() - reported >= HOUSEKEEPING_SECONDS or not reported:
                    reported = time.monotonic()
                    log.warning("a disk is nearly full: %s", "; ".join(little))
            reserve.renew()
            context.part(KeyUses).write(context.database)
            rates.forget_full(context.database)
            resumable_uploads.expire(context)
            render_operations.give_up_unsent(context)
            deletion.expired(context.database)
            deletion.outlived(context.database)
            _forget_keys(context)
            idempotency.forget(context)
            webhook_operations.forget_deliveries(context)
            blobs.sweep(context.database, context.store, age)
            context.store.sweep_temporary()
            context.sweep_work()
            sweep_temporary()
            context.metrics.housekeeping.set_to_current_time()
        except (FragdexError, OSError) as error:
            log.warning("housekeeping waits: %s", explained(error))
        except Exception:
            # A thread that dies would leave everything to lie for ever.
            log.exception("housekeeping continues after an error")
        _wait(context.settings, ended, wait)
    with suppress(FragdexError):
        context.part(KeyUses).write(context.database)
