"""Bytes: those in the store, who needs them, and those on their way in."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, String, Text

from fragdex.service.records.tables.columns import at, md5, of_tenant, own_id, sha256, table

__all__ = ["blob_uses", "blobs", "derived_files", "trash", "uploads"]

blobs = table(
    "blobs",
    of_tenant(primary_key=True),
    Column("sha256", LargeBinary(32), primary_key=True),
    md5(needed=True),
    Column("byte_size", BigInteger, nullable=False),
    Column("store_key", Text, nullable=False),
    # of its object: less than byte_size where that is composed
    Column("stored_bytes", BigInteger, nullable=False),
    # of the bytes that its object is composed of, which stay as long; null: of none
    Column("source_sha256", LargeBinary(32)),
    at("created_at", needed=True),
)

blob_uses = table(
    "blob_uses",
    of_tenant(primary_key=True),
    Column("sha256", LargeBinary(32), primary_key=True),
    # the family, and the record's id ("ID" or "ID/TRACK")
    Column("family", String(20), primary_key=True),
    Column("record_id", String(60), primary_key=True),
)

derived_files = table(
    "derived_files",
    own_id(),
    of_tenant(),
    # of the bytes that it was made of, and goes with
    Column("source_sha256", LargeBinary(32), nullable=False),
    # what was made, and which of its files this is
    Column("recipe", String(200), nullable=False),
    Column("part", String(40), nullable=False),
    Column("media_type", String(40), nullable=False),
    at("created_at", needed=True),
    at("expires_at", needed=True),
)

trash = table(
    "trash",
    Column("store_key", Text, primary_key=True),
    at("delete_after", needed=True),
    # when a record let it go; null where it is to be written
    at("let_go_at"),
    # from here on nobody may name it any more
    at("deleting_at"),
)

uploads = table(
    "uploads",
    Column("family", String(20), primary_key=True),
    Column("record_id", String(60), primary_key=True),
    of_tenant(),
    Column("byte_size", BigInteger, nullable=False),
    md5(),  # what the bytes must have; unknown for images sent without one
    sha256(),  # of the bytes; known from the moment when the last one is here
    # bytes 0..next_byte are durable in the store's draft
    Column("next_byte", BigInteger, nullable=False, default=0),
    Column("draft", Text, nullable=False),
    # what the draft becomes; known with the SHA-256
    Column("object_key", Text),
    Column("lease_holder", String(36)),
    at("lease_until"),
    # when next_byte moved last
    at("written_at"),
    at("created_at", needed=True),
    at("completed_at"),
)

Index(None, blobs.c.store_key)
Index(None, blobs.c.tenant_id, blobs.c.md5)
# what a tenant stores is summed up from the index alone
Index(None, blobs.c.tenant_id, blobs.c.stored_bytes)
Index(None, blobs.c.tenant_id, blobs.c.source_sha256)
Index(None, blob_uses.c.family, blob_uses.c.record_id)
Index(
    None,
    derived_files.c.tenant_id,
    derived_files.c.source_sha256,
    derived_files.c.recipe,
    derived_files.c.part,
    unique=True,
)
Index(None, derived_files.c.expires_at)
Index(None, trash.c.delete_after)
Index(None, uploads.c.draft)
Index(None, uploads.c.tenant_id, uploads.c.completed_at)
