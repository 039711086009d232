"""Everything as one: `open_house` makes the parts, `make_app` the ASGI application over them."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.metadata import version

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import APIRouter, FastAPI
from starlette.types import Receive, Scope, Send

from fragdex.errors import FragdexError
from fragdex.service.captions import routes as captions
from fragdex.service.config import Settings
from fragdex.service.errors import ConfigError
from fragdex.service.files import routes as files
from fragdex.service.house import House
from fragdex.service.images import routes as images
from fragdex.service.isobmff import routes as isobmff
from fragdex.service.isobmff import shortcuts as isobmff_shortcuts
from fragdex.service.jobs.door import Jobs, Work, options_of
from fragdex.service.jobs.door import upgrade as upgrade_engine
from fragdex.service.page import routes as page
from fragdex.service.records import blobs, deletion, migrations
from fragdex.service.records.database import Database
from fragdex.service.renders import routes as renders
from fragdex.service.renders import worker as rendering
from fragdex.service.store.opening import open_store
from fragdex.service.transcriptions import routes as transcriptions
from fragdex.service.transcriptions import worker as transcribing
from fragdex.service.unprocessed import routes as unprocessed
from fragdex.service.unprocessed import worker as processing
from fragdex.service.web import cors, documents, health, idempotency, links, problems
from fragdex.service.web.auth import Doorman
from fragdex.service.web.front import Front
from fragdex.service.web.metrics import Metrics
from fragdex.service.web.shortcuts import Shortcut, Shortcuts

__all__ = ["ROUTERS", "WORK", "close_house", "make_app", "open_database", "open_house", "upgrade"]

log = logging.getLogger("fragdex.service")

ROUTERS: tuple[APIRouter, ...] = (
    images.router,
    captions.router,
    links.router,
    health.router,
    isobmff.router,
    unprocessed.router,
    files.router,
    renders.router,
    transcriptions.router,
    page.router,
)
"""What the families answer."""

WORK: tuple[Work, ...] = (*processing.WORK, *rendering.WORK, *transcribing.WORK)
"""What the families have done by workers."""

SHORTCUTS: tuple[Shortcut, ...] = (*isobmff_shortcuts.SHORTCUTS,)
"""What is answered before the framework where it is at hand."""

HOUSEKEEPING_SECONDS = 60.0


def open_house(settings: Settings) -> House:
    """Make the parts of a process; the data folder and the tables are made where they are missing.

    Raises:
        ConfigError: a setting that cannot be used.
        Unavailable: the database or the store does not answer.
    """
    database = open_database(settings)
    store = open_store(settings.store_url, settings.store_options, direct=settings.direct_writes)
    jobs = Jobs(database, options_of(settings))
    jobs.register(*WORK)
    return House(settings, database, store, jobs)


def open_database(settings: Settings) -> Database:
    """The database, its tables brought to what this version needs; raises as `open_house`."""
    try:
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(f"the data folder {settings.data}: {error.strerror}") from None
    if not os.access(settings.data, os.W_OK | os.X_OK):
        raise ConfigError(f"the data folder {settings.data} cannot be written")
    database = Database(settings.database_url)
    upgrade(database)
    return database


def upgrade(database: Database) -> None:
    """Bring our tables and the engine's to what this version needs; harmless where they are."""
    migrations.upgrade(database)
    upgrade_engine(database)


def close_house(house: House) -> None:
    """Hand jobs back, and let go of the database."""
    house.jobs.close()
    house.database.close()


class _Application(FastAPI):
    """FastAPI that is asked where no shortcut answers."""

    shortcuts: Shortcuts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self
        if not await self.shortcuts.answered(scope, receive, send):
            await super().__call__(scope, receive, send)


def make_app(house: House, *routers: APIRouter) -> FastAPI:
    """The application over a house; `routers` come beside those of the families.

    It works on jobs too, where the settings say so, from its start to its end.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = house.settings.threads
        if house.settings.job_workers:
            await run_sync(house.jobs.start_worker, house)
        ended = threading.Event()
        keeping = threading.Thread(target=_keep_house, args=(house, ended), daemon=True)
        keeping.start()
        try:
            yield
        finally:
            ended.set()
            app.state.stuck_jobs = stuck = await run_sync(house.jobs.stop)
            if stuck:
                log.warning("%d jobs did not end and were handed back", len(stuck))
            await run_sync(keeping.join, 5.0)

    app = _Application(
        title="fragdex",
        version=version("fragdex"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    metrics = Metrics()
    app.state.house = house
    app.state.doorman = doorman = Doorman(house)
    app.state.metrics = metrics
    app.shortcuts = Shortcuts(house, doorman, metrics, SHORTCUTS)
    app.state.draining = asyncio.Event()
    app.state.stuck_jobs = []
    problems.install(app)
    documents.install(app)
    for router in (*ROUTERS, *routers):
        # not `include_router`, which looks at every route twice for each request
        app.router.routes.extend(router.routes)
    app.add_middleware(Front, metrics=metrics)
    cors.install(app, house.settings)
    return app


def _keep_house(house: House, ended: threading.Event) -> None:
    """At once, then every minute: what is past its time goes. Several processes may do it."""
    age = timedelta(hours=house.settings.upload_hours)
    while not ended.is_set():
        try:
            deletion.expired(house.database)
            idempotency.forget(house)
            blobs.sweep(house.database, house.store, age)
        except (FragdexError, OSError) as error:
            log.warning("housekeeping waits: %s", error)
        except Exception:
            # A thread that dies would leave everything to lie for ever.
            log.exception("housekeeping goes on after an error")
        ended.wait(HOUSEKEEPING_SECONDS)
