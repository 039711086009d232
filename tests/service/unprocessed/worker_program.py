"""A process that works on this family's jobs and on repairs: `worker_program.py URL DATA [GATE]`.

With a gate, a repair waits in the middle until there is a file of that name, and says in one next
to it that it does.
"""

import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from fragdex.service.config import Settings
from fragdex.service.context import ServiceContext
from fragdex.service.jobs.api import Jobs
from fragdex.service.jobs.engine import upgrade
from fragdex.service.jobs.work import JobOptions
from fragdex.service.records import migrations
from fragdex.service.records.database import Database
from fragdex.service.repairs import worker as repairs
from fragdex.service.store import open_store
from fragdex.service.store.composing import ComposingStore
from fragdex.service.unprocessed.worker import WORK


def open_context(url, data, **settings):
    """What this work needs of a context."""
    database = Database(url)
    options = JobOptions(
        data=data, poll_seconds=0.1, heartbeat_seconds=0.3, dead_after_seconds=4,
        grace_seconds=3, backoff_seconds=0.1,
    )  # fmt: skip
    jobs = Jobs(database, options)
    jobs.register(*WORK)
    settings = Settings(data=data, database_url=url, **settings)
    store = ComposingStore(open_store(data / "store"))
    return ServiceContext(settings, database, store, jobs)


@contextmanager
def new_context(url, data, *work, **settings):
    """`open_context` on a database that is made first, for this work too; closed in the end."""
    context = open_context(url, data, **settings)
    context.jobs.register(*work)
    migrations.upgrade(context.database)
    upgrade(context.database)
    yield context
    context.jobs.close()
    context.database.close()


def reached(gate):
    """The file that says that a repair waits."""
    return gate.with_name(f"{gate.name}-reached")


def hold(gate):
    """Have repairs wait while their process of its own runs, or has not been cleared away."""
    whole = repairs.repaired

    def repaired(*arguments, progress, **more):
        def waiting(part):
            reached(gate).touch()
            while not gate.exists():
                time.sleep(0.01)
            progress(part)

        return whole(*arguments, progress=waiting, **more)

    repairs.repaired = repaired


def main():
    context = open_context(sys.argv[1], Path(sys.argv[2]))
    context.jobs.register(*repairs.WORK)
    for gate in sys.argv[3:]:
        hold(Path(gate))
    print(context.jobs.start_worker(context), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
