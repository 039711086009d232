"""The service on a real socket, in a thread of the test's own process."""

import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from fragdex.service.app import close_context, make_app, open_context
from fragdex.service.config import Settings
from fragdex.service.context import ServiceContext
from fragdex.service.records import keys
from fragdex.service.web.server import server_of
from fragdex.sources.tls import tls_when_needed
from service.ready_tables import put_tables

API = "/api/v1"


@dataclass
class Served:
    """A running service: `client` sends the key of `tenant`; `stranger` is another tenant's."""

    url: str
    context: ServiceContext
    key: str
    tenant: str
    client: httpx.Client
    stranger: httpx.Client
    anyone: httpx.Client
    app: object
    server: object

    @property
    def address(self):
        host, port = self.url.removeprefix("http://").rsplit(":", 1)
        return host, int(port)


FIRST_ROUND = re.compile(r"^fragdex_housekeeping_timestamp_seconds [^0]", re.MULTILINE)


def await_housekeeping(url):
    """The first round of a service at a URL is over: it begins with the service, the next one
    a minute later, and what either writes, reads and logs is not what a test looks at.
    """
    deadline = time.monotonic() + 60
    while not FIRST_ROUND.search(httpx.get(f"{url}/metrics", trust_env=False, timeout=60).text):
        assert time.monotonic() < deadline, "housekeeping has not completed a round"
        time.sleep(0.02)


def client_of(url, key=None):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # the environment's proxies have no say in what is on this machine
    return httpx.Client(
        base_url=url, headers=headers, trust_env=False, timeout=120, verify=tls_when_needed()
    )


@contextmanager
def serving(folder, *routers, **settings):
    """The service over `folder`; `routers` come beside its own, `settings` beside the defaults.

    Jobs wait: the engine works once a process. Give `job_workers` where they have to be done.
    """
    given = {"data": folder, "port": 0, "job_workers": 0, "max_connections": 500, **settings}
    settings = Settings(**given)
    if "database_url" not in given:
        put_tables(folder / "fragdex.db")
    context = open_context(settings)
    key = keys.create_key(context.database, "ours", scope=keys.ADMIN)
    other = keys.create_key(context.database, "theirs", scope=keys.ADMIN)
    app = make_app(context, *routers)
    began, urls = threading.Event(), []

    def told(url):
        urls.append(url)
        began.set()

    server = server_of(app, settings, told)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert began.wait(30)
        url = urls[0]
        with (
            client_of(url, key) as client,
            client_of(url, other) as stranger,
            client_of(url) as anyone,
        ):
            tenant = keys.find_key(context.database, key).tenant_id
            yield Served(url, context, key, tenant, client, stranger, anyone, app, server)
    finally:
        server.should_exit = True
        thread.join(60)
        close_context(context)
    assert not thread.is_alive()
