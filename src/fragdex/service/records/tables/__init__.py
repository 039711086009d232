"""All tables of the service. Migrations make them; a test holds the two equal.

| Table | A row is |
|---|---|
| tenants | an organisation; every record below belongs to one |
| keys | an API key; only a hash of its secret |
| rates | how far a key has used its rate |
| schema | one: the oldest version whose processes may run on these tables |
| secrets | what this installation signs and hashes with, made on first start |
| blobs | bytes in the store, once per tenant and SHA-256 |
| blob_uses | a record that needs a blob; without one, and none composed of it, the bytes go |
| derived_files | what was made of stored bytes when it was asked for, such as a picture |
| trash | an object of the store that no record names any more, until it is deleted |
| uploads | bytes on their way in, one per record that takes bytes |
| tus_uploads | what tus has to remember of an upload, and parts that one is put together of |
| image_files, caption_files, unprocessed_files, isobmff_files, isobmff_tracks | the families |
| processes | the making of an ISOBMFF file from an unprocessed one |
| timelines | several ISOBMFF files, one behind the other |
| renders | a page that is, or was, rendered |
| render_parts | a slice of a render: how far it is, and which kept slice it became |
| render_slices | frames kept for any render that would make the same ones |
| transcriptions | what is, or was, heard in a track |
| transcription_slices | a slice of a transcription, and the words of it |
| replays | answers kept for requests that come again with their Idempotency-Key |
| jobs | work that was asked for: how often it was begun, and whether it is still wanted |
| executors | a worker process that is alive, by the database's clock |
| turns | whose work is next in a queue: the next number of each tenant |
| webhooks | a URL that is sent the events of a tenant |
| webhook_deliveries | an event that is, or was, sent to a webhook |

A family's tables stand in a file of their own; whoever asks imports them from here. Identifiers
are UUIDv7 texts, they sort by time. md5 and sha256 are raw bytes. Instants are UTC.
"""

from __future__ import annotations

from fragdex.service.records.tables.callers import keys, rates, replays, schema, secrets, tenants
from fragdex.service.records.tables.columns import PREFIX, Instant, metadata
from fragdex.service.records.tables.files import (
    caption_files,
    image_files,
    isobmff_files,
    isobmff_tracks,
    processes,
    timelines,
    unprocessed_files,
)
from fragdex.service.records.tables.renders import render_parts, render_slices, renders
from fragdex.service.records.tables.stored import blob_uses, blobs, derived_files, trash, uploads
from fragdex.service.records.tables.transcriptions import transcription_slices, transcriptions
from fragdex.service.records.tables.uploading import tus_uploads
from fragdex.service.records.tables.webhooks import webhook_deliveries, webhooks
from fragdex.service.records.tables.work import executors, jobs, turns

__all__ = [
    "PREFIX",
    "Instant",
    "blob_uses",
    "blobs",
    "caption_files",
    "derived_files",
    "executors",
    "image_files",
    "isobmff_files",
    "isobmff_tracks",
    "jobs",
    "keys",
    "metadata",
    "processes",
    "rates",
    "render_parts",
    "render_slices",
    "renders",
    "replays",
    "schema",
    "secrets",
    "tenants",
    "timelines",
    "transcription_slices",
    "transcriptions",
    "trash",
    "turns",
    "tus_uploads",
    "unprocessed_files",
    "uploads",
    "webhook_deliveries",
    "webhooks",
]
