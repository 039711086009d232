"""Operations on repairs. Written by tools/make_client.py."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from fragdex.client.api.records import Event, Problem
from fragdex.client.exchange import Request, segment

__all__ = [
    "RepairList",
    "RepairRecord",
    "RepairReport",
    "RepairSpan",
    "RepairedTrack",
    "delete_repair",
    "get_repair",
    "get_repair_progress",
    "list_repairs",
    "repair_file",
]


class RepairSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of the broken file, and what became of them."""

    start: int
    state: Literal["proved", "guessed", "lost", "structure"]
    stop: int
    """Exclusive."""
    what: str


class RepairedTrack(msgspec.Struct, frozen=True, kw_only=True):
    """A track of the repaired file."""

    codec: str | None
    duration_ms: int
    proved: int
    """How many of them by their own syntax; the others are guessed."""
    samples: int
    """How many were found."""
    track_id: int
    type: str | None


class RepairReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is proved, guessed and lost."""

    byte_size: int
    """Of the repaired file."""
    findings: tuple[str, ...]
    """Guesses and losses, as sentences."""
    lost_bytes: int
    """Of the broken file, in no sample and no box."""
    spans: tuple[RepairSpan, ...]
    """All bytes of the broken file; at most 500."""
    tracks: tuple[RepairedTrack, ...]


class RepairRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The repair of a file."""

    completed_at: datetime | None
    created_at: datetime
    failed_at: datetime | None
    file_id: str
    """The broken file, which stays as it is."""
    id: str
    like_file_id: str | None
    """The good file; null: none is used."""
    problem: Problem | None
    progress: float
    repaired_file_id: str | None
    """The repaired file, which is processed like an upload; null until it is there."""
    report: RepairReport | None
    """Null until it is complete."""
    status: Literal["repairing", "complete", "failed"]


class RepairList(msgspec.Struct, frozen=True, kw_only=True):
    """Repairs, newest first."""

    next_cursor: str | None
    """Returns the next page; null on the last."""
    repairs: tuple[RepairRecord, ...]


def repair_file(
    id: str,
    *,
    idempotency_key: str | None = None,
    like_file_id: str | None = None,
    rate: str | None = None,
) -> Request[RepairRecord]:
    """Find the samples of a video whose index is lost or wrong, and make a file of them.

    The repaired file is a file of its own, processed like an upload. The same repair is answered
    while it runs and while its file is there; after a failure, a new one.

    Args:
        idempotency_key: The same key with the same body gives the first answer again.
        like_file_id: a good file from the same camera with the same settings; default: the
            tenant's file that the broken one is most like, if there is one.
        rate: pictures a second, where neither a good file nor the stream says it.
    """
    return Request(
        "POST",
        f"/api/v1/files/{segment(id)}/repair",
        body={"like_file_id": like_file_id, "rate": rate},
        headers={"Idempotency-Key": idempotency_key},
        result=RepairRecord,
    )


def list_repairs(
    *,
    limit: int | None = None,
    cursor: str | None = None,
    status: Literal["repairing", "complete", "failed"] | None = None,
) -> Request[RepairList]:
    """Repairs, newest first.

    Args:
        limit: records on a page.
        cursor: `next_cursor` of the page before.
        status: only those.
    """
    return Request(
        "GET",
        "/api/v1/repairs",
        query={"limit": limit, "cursor": cursor, "status": status},
        result=RepairList,
    )


def get_repair(id: str) -> Request[RepairRecord]:
    """The record of a repair: `report` says what is proved, guessed and lost."""
    return Request("GET", f"/api/v1/repairs/{segment(id)}", result=RepairRecord)


def delete_repair(id: str) -> Request[None]:
    """Delete a repair, and stop it if it is running; the repaired file stays."""
    return Request("DELETE", f"/api/v1/repairs/{segment(id)}", result=None)


def get_repair_progress(id: str, *, last_event_id: str | None = None) -> Request[Event]:
    """How far a repair is, as events.

    Args:
        last_event_id: The `id` of the last event received; the stream continues after it.
    """
    return Request(
        "GET",
        f"/api/v1/repairs/{segment(id)}/progress",
        headers={"Last-Event-ID": last_event_id},
        result=Event,
    )
