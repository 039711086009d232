"""Receives one upload, slowly, until it is killed. Started by test_killed.py.

    upload_program.py DATABASE_URL STORE TENANT RECORD START SIZE TOTAL [STOP_AT]

TOTAL is what the request says of the length of the upload: `*`, nothing, and another says it
afterwards. STOP_AT names a step of the completion at which the process waits for its end.
"""

import sys
import time
from types import SimpleNamespace

from fragdex.service.records.database import Database
from fragdex.service.store import open_store
from fragdex.service.uploads import upload_session
from fragdex.service.uploads.model import Arrival
from fragdex.service.uploads.operations import receive

CONTENT = bytes(range(251)) * 4000


def wait_for_the_end():
    print("here", flush=True)
    time.sleep(600)


if __name__ == "__main__":
    url, store, tenant, record, start, size = sys.argv[1:7]
    total = sys.argv[7]
    stop_at = sys.argv[8] if len(sys.argv) > 8 else None
    context = SimpleNamespace(
        settings=SimpleNamespace(lease_seconds=1.0),
        database=Database(url),
        store=open_store(store),
    )
    upload_session.SYNC_BYTES = 20_000

    def pieces():
        for at in range(int(start), int(size), 7001):
            yield CONTENT[at : min(at + 7001, int(size))]
            print(at, flush=True)
        if stop_at == "sent":
            wait_for_the_end()

    def finished(connection, arrived):
        if stop_at == "finished":
            wait_for_the_end()

    text = f"bytes {start}-{int(size) - 1}/{total}"
    arrival = Arrival(finished=finished)
    receive(context, tenant, "image", record, text, pieces(), arrival=arrival)
    if total == "*":
        receive(context, tenant, "image", record, f"bytes */{size}", (), arrival=arrival)
    print("complete", flush=True)
