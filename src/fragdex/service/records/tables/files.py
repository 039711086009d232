"""Files of the families, and the making of one from another."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, Index, Integer, String, Table, Text

from fragdex.service.records.tables.columns import (
    PREFIX,
    at,
    by_time_and_md5,
    md5,
    of,
    of_tenant,
    own_id,
    row_bytes,
    sha256,
    table,
)

__all__ = [
    "caption_files",
    "image_files",
    "isobmff_files",
    "isobmff_tracks",
    "processes",
    "timelines",
    "unprocessed_files",
]


def _uploaded(name: str, *more: Column[Any]) -> Table:
    """A family whose files are kept as they came."""
    return table(
        name,
        own_id(),
        of_tenant(),
        Column("filename", Text, nullable=False),
        Column("mime_type", String(40), nullable=False),
        Column("byte_size", BigInteger, nullable=False),
        md5(),
        *more,
        Column("problem", JSON),
        at("created_at", needed=True),
        at("completed_at"),
        at("failed_at"),
        at("expires_at"),
        row_bytes("filename", "problem"),
    )


image_files = _uploaded("image_files", Column("width", Integer), Column("height", Integer))
caption_files = _uploaded("caption_files")

unprocessed_files = table(
    "unprocessed_files",
    own_id(),
    of_tenant(),
    Column("filename", Text, nullable=False),
    Column("mime_type", String(40)),
    Column("byte_size", BigInteger, nullable=False),
    md5(),
    sha256(),
    # a video of the one family is processed by itself once its last byte is in
    Column("process_when_complete", Boolean, nullable=False, default=False),
    # what the library's Indexer found while the bytes arrived: a stored .fidx, or nothing
    Column("index_key", Text),
    at("created_at", needed=True),
    at("completed_at"),
    at("failed_at"),
    Column("problem", JSON),
    at("expires_at"),
    row_bytes("filename", "problem"),
)

isobmff_files = table(
    "isobmff_files",
    own_id(),
    of_tenant(),
    Column("filename", Text, nullable=False),
    md5(needed=True),
    sha256(),  # null where a client has named the file by its md5, and no bytes are known
    # of the bytes that this file is itself; null where only tracks or an index are known
    Column("byte_size", BigInteger),
    # the whole file's index: .fidx in the store, and the JSON it was sent as, unknown keys kept
    Column("index_key", Text),
    Column("index_json_key", Text),
    at("index_completed_at"),
    at("created_at", needed=True),
    at("expires_at"),
    row_bytes("filename"),
)

isobmff_tracks = table(
    "isobmff_tracks",
    of("isobmff_files", "file_id", primary_key=True),
    Column("track_id", Integer, primary_key=True),  # -1: the scrub track
    of_tenant(),
    Column("type", String(10), nullable=False),
    Column("probe_info", JSON),
    Column("duration_ms", BigInteger),
    Column("codec_name", String(40)),
    Column("byte_size", BigInteger),
    md5(),
    Column("index_key", Text),  # .fidx of the track's own file
    at("created_at", needed=True),
    at("completed_at"),
    row_bytes("probe_info"),
)

processes = table(
    "processes",
    own_id(),
    of_tenant(),
    of("unprocessed_files", "unprocessed_file_id"),
    Column("isobmff_file_id", String(36)),
    Column("progress", Float, nullable=False, default=0.0),
    Column("problem", JSON),
    at("created_at", needed=True),
    at("started_at"),
    at("completed_at"),
    at("failed_at"),
)
Index(None, processes.c.unprocessed_file_id)
# they go with their tenant
Index(None, processes.c.tenant_id)

timelines = table(
    "timelines",
    own_id(),
    of_tenant(),
    Column("name", Text, nullable=False),
    # ids of ISOBMFF files in their order; one may be deleted later
    Column("files", JSON, nullable=False),
    Column("gaps", String(10), nullable=False),  # "keep" or "close"
    at("created_at", needed=True),
    at("expires_at"),
    row_bytes("name", "files"),
)
Index(None, timelines.c.tenant_id, timelines.c.id)
Index(None, timelines.c.tenant_id, timelines.c.row_bytes)
Index(None, isobmff_tracks.c.tenant_id, isobmff_tracks.c.row_bytes)
Index(None, timelines.c.expires_at)

for _family in (image_files, caption_files, unprocessed_files, isobmff_files):
    by_time_and_md5(_family)
    Index(None, _family.c.tenant_id, _family.c.row_bytes)
    Index(None, _family.c.expires_at)

# One record per tenant and bytes, and one per md5 whose bytes are not known: creating it again
# answers with the one that is there. (An unprocessed file may come without its md5, and turn out to
# be a second one of the same bytes.)
_OF_MD5 = (isobmff_files.c.tenant_id, isobmff_files.c.md5)
_UNKNOWN = isobmff_files.c.sha256.is_(None)
Index(None, *_OF_MD5, isobmff_files.c.sha256, unique=True)
Index(
    f"ix_{PREFIX}isobmff_files_unknown",
    *_OF_MD5,
    unique=True,
    sqlite_where=_UNKNOWN,
    postgresql_where=_UNKNOWN,
)
