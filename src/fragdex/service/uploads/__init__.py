"""Bytes that arrive in chunks: durable, resumable, hashed on their way, one writer at a time.

model            what an upload is, and how a family takes its bytes
leases           the row of an upload: who writes, how far it is durable
ordered_workers  work on pieces in order, in threads, a bounded number of bytes ahead
hashing          md5, sha-256 and a family's watcher over the bytes; kept between two chunks
upload_session   one request's bytes, from the lease to the answer
operations       begin, state, receive
presigned        uploads whose bytes clients put into the object store
receiving        the same for a body that arrives as an asynchronous stream
requests         the same for a request of the web
repository       records of tenants: found and listed
file_repository  the records of files that are kept as they came
family           the routes of a family of records, upload and all
"""

from __future__ import annotations

from fragdex.service.uploads.model import Arrival, Arrived, Progress, Upload, Watcher
from fragdex.service.uploads.operations import begin, no_bytes, receive, state
from fragdex.service.uploads.receiving import receive_stream

__all__ = [
    "Arrival",
    "Arrived",
    "Progress",
    "Upload",
    "Watcher",
    "begin",
    "no_bytes",
    "receive",
    "receive_stream",
    "state",
]
