"""Pages that become films and stills, and the slices that are kept for the next one."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    text,
)

from fragdex.service.records.tables.columns import (
    at,
    by_time_and_md5,
    md5,
    of,
    of_tenant,
    own_id,
    row_bytes,
    table,
)

__all__ = ["render_parts", "render_slices", "renders"]

renders = table(
    "renders",
    own_id(),
    of_tenant(),
    md5(),  # the client's own mark, no digest of ours
    Column("metadata", JSON, nullable=False),
    Column("status", String(10), nullable=False),
    # what was asked for, as `renders.request` reads it; null is the page's to say
    Column("wanted", JSON, nullable=False),
    # bytes of the page: the md5 of its html, or of its packed site
    Column("page_md5", LargeBinary(16)),
    Column("is_archive", Boolean, nullable=False, default=False),
    # what it came to: known when it is parted into slices
    Column("width", Integer),
    Column("height", Integer),
    Column("duration_ms", BigInteger),
    Column("frames", BigInteger),
    # of the result
    Column("media_type", String(40)),
    Column("byte_size", BigInteger),
    Column("result_md5", LargeBinary(16)),
    Column("index_key", Text),  # .fidx of an MP4
    Column("seconds", JSON),
    Column("notes", JSON),
    Column("problem", JSON),
    at("created_at", needed=True),
    at("queued_at"),
    at("started_at"),
    at("completed_at"),
    at("failed_at"),
    row_bytes("metadata", "wanted", "seconds", "notes", "problem"),
)

render_parts = table(
    "render_parts",
    of("renders", "render_id", primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("first", BigInteger, nullable=False),
    Column("stop", BigInteger, nullable=False),
    # frames of it that were finished by the run that came farthest
    Column("done", BigInteger, nullable=False, default=0),
    Column("attempts", Integer, nullable=False, default=0),
    # not a foreign key: a kept slice may go, and is made again
    Column("slice_id", String(36)),
    Column("reused", Boolean, nullable=False, default=False),
    Column("seconds", JSON),
    Column("notes", JSON),
)

render_slices = table(
    "render_slices",
    own_id(),
    of_tenant(),
    # the render it was made for, and goes with; null: that one is gone, others use it
    Column("render_id", String(36)),
    # digest of everything but the site that decides its pixels
    Column("recipe", LargeBinary(32), nullable=False),
    # paths of the site that were read, with their digests; null: looked for and not there
    Column("reads", JSON, nullable=False),
    # what has to be known of it to join it: as the maker told
    Column("made", JSON, nullable=False),
    at("created_at", needed=True),
    at("expires_at"),
    row_bytes("reads", "made"),
)
by_time_and_md5(renders)
# those whose page is to come
_UNSENT = text("queued_at IS NULL AND failed_at IS NULL")
Index(None, renders.c.created_at, sqlite_where=_UNSENT, postgresql_where=_UNSENT)
Index(None, renders.c.tenant_id, renders.c.row_bytes)
Index(None, render_slices.c.tenant_id, render_slices.c.row_bytes)
Index(None, render_slices.c.tenant_id, render_slices.c.recipe)
Index(None, render_slices.c.render_id)
Index(None, render_slices.c.expires_at)
