"""Uploads by protocols that have more to remember than the bytes."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, String, Text

from fragdex.service.records.tables.columns import (
    at,
    by_time_and_md5,
    md5,
    of_tenant,
    own_id,
    row_bytes,
    table,
)

__all__ = ["tus_uploads"]

tus_uploads = table(
    "tus_uploads",
    # of a part, or of the file that is uploaded
    own_id(),
    of_tenant(),
    Column("filename", Text, nullable=False),
    Column("mime_type", String(40), nullable=False),
    Column("byte_size", BigInteger, nullable=False),
    md5(),
    # Upload-Metadata and Upload-Concat as they were sent
    Column("metadata", Text),
    Column("concat", Text),
    # whether the record of the file was made for this upload: it goes where nobody finishes it
    Column("made_file", Boolean, nullable=False, default=False),
    at("created_at", needed=True),
    at("completed_at"),
    at("expires_at", needed=True),
    row_bytes("filename", "metadata", "concat"),
)
by_time_and_md5(tus_uploads)
Index(None, tus_uploads.c.tenant_id, tus_uploads.c.row_bytes)
Index(None, tus_uploads.c.expires_at)
