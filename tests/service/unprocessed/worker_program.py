"""A process that works on the jobs of this family alone: `python worker_program.py URL DATA`."""

import sys
import threading
from pathlib import Path

from fragdex.service.config import Settings
from fragdex.service.context import ServiceContext
from fragdex.service.jobs.api import Jobs
from fragdex.service.jobs.work import JobOptions
from fragdex.service.records.database import Database
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


def main():
    context = open_context(sys.argv[1], Path(sys.argv[2]))
    print(context.jobs.start_worker(context), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
