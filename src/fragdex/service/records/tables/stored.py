"""Bytes: those in the store, who needs them, and those on their way in."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, LargeBinary, String, Text

from fragdex.service.records.tables.columns import at, md5, of_tenant, table

__all__ = ["blob_uses", "blobs", "trash", "uploads"]

blobs = table(
    "blobs",
    of_tenant(primary_key=True),
    Column("md5", LargeBinary(16), primary_key=True),
    Column("sha256", LargeBinary(32), nullable=False),
    Column("byte_size", BigInteger, nullable=False),
    Column("store_key", Text, nullable=False),
    at("created_at", needed=True),
)

blob_uses = table(
    "blob_uses",
    of_tenant(primary_key=True),
    Column("md5", LargeBinary(16), primary_key=True),
    # the family, and the record's id ("ID" or "ID/TRACK")
    Column("family", String(20), primary_key=True),
    Column("record_id", String(60), primary_key=True),
)

trash = table(
    "trash",
    Column("store_key", Text, primary_key=True),
    at("delete_after", needed=True),
)

uploads = table(
    "uploads",
    Column("family", String(20), primary_key=True),
    Column("record_id", String(60), primary_key=True),
    of_tenant(),
    Column("byte_size", BigInteger, nullable=False),
    md5(),  # what the bytes must have; unknown for images sent without one
    # bytes 0..next_byte are durable in the store's draft
    Column("next_byte", BigInteger, nullable=False, default=0),
    Column("draft", Text, nullable=False),
    Column("lease_holder", String(36)),
    at("lease_until"),
    at("created_at", needed=True),
    at("completed_at"),
)
