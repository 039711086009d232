"""What is heard in tracks, slice by slice."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Float, Index, Integer, String, Text

from fragdex.service.records.tables.columns import at, of, of_tenant, own_id, row_bytes, table

__all__ = ["transcription_slices", "transcriptions"]

transcriptions = table(
    "transcriptions",
    own_id(),
    of_tenant(),
    of("isobmff_files", "file_id"),
    Column("track_id", Integer, nullable=False),
    Column("status", String(12), nullable=False),
    Column("engine", String(40), nullable=False),
    # as it was asked for, and as it turned out
    Column("wanted_language", String(35)),
    Column("language", String(35)),
    Column("work_slice_ms", Integer, nullable=False),
    # where the track ends on the presentation's time line
    Column("duration_ms", BigInteger, nullable=False),
    # known when the track is parted into slices, and kept so that all are heard alike
    Column("plan", JSON),
    Column("slices", Integer),
    Column("engine_version", String(40)),
    Column("model", Text),
    # of the result
    Column("words", Integer),
    Column("missing", JSON),
    Column("seconds", JSON),
    Column("problem", JSON),
    # a copy of the file with the captions in it, an ISOBMFF file of its own
    Column("copy_status", String(12)),
    Column("copy_orders", Integer, nullable=False, default=0),
    Column("copy_file_id", String(36)),
    Column("copy_problem", JSON),
    at("created_at", needed=True),
    at("started_at"),
    at("completed_at"),
    at("failed_at"),
    row_bytes("plan", "missing", "seconds", "problem", "copy_problem"),
)

transcription_slices = table(
    "transcription_slices",
    of("transcriptions", "transcription_id", primary_key=True),
    # on the grid of work_slice_ms; those without sound are left out
    Column("number", Integer, primary_key=True),
    Column("attempts", Integer, nullable=False, default=0),
    # words and gaps, as `transcriptions.words` writes them; null until it was heard
    Column("heard", JSON(none_as_null=True)),
    Column("seconds", Float),
    at("completed_at"),
)
Index(None, transcriptions.c.tenant_id, transcriptions.c.id)
Index(None, transcriptions.c.tenant_id, transcriptions.c.row_bytes)
Index(None, transcriptions.c.file_id, transcriptions.c.id)
