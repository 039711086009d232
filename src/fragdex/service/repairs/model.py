"""What requests and answers about repairs say."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.fields import NO_NUL, ApiModel, Listed, written_as

SpanState = TypeAliasType("SpanState", Literal["proved", "guessed", "lost", "structure"])
_RATE = written_as(
    r"[1-9][0-9]{0,5}(?:\.[0-9]{1,6}|/[1-9][0-9]{0,5})?", "a rate, such as 25 or 30000/1001,"
)


class RepairStatus(StrEnum):
    """How far a repair is."""

    REPAIRING = "repairing"
    COMPLETE = "complete"
    FAILED = "failed"


class NewRepair(ApiModel):
    """How a file is repaired."""

    like_file_id: Annotated[str, Field(min_length=1, max_length=36), NO_NUL] | None = Field(
        None,
        description="a good file from the same camera with the same settings; default: the "
        "tenant's file that the broken one is most like, if there is one",
    )
    rate: Annotated[str, Field(max_length=20), _RATE] | None = Field(
        None,
        description="pictures a second, where neither a good file nor the stream says it",
        examples=["30000/1001"],
    )


class RepairedTrack(ApiModel):
    """A track of the repaired file."""

    track_id: int
    type: str | None
    codec: str | None
    samples: int = Field(description="how many were found")
    proved: int = Field(description="how many of them by their own syntax; the others are guessed")
    duration_ms: int


class RepairSpan(ApiModel):
    """Bytes of the broken file, and what became of them."""

    start: int
    stop: int = Field(description="exclusive")
    state: SpanState
    what: str


class RepairReport(ApiModel):
    """What is proved, guessed and lost."""

    byte_size: int = Field(description="of the repaired file")
    lost_bytes: int = Field(description="of the broken file, in no sample and no box")
    tracks: list[RepairedTrack]
    findings: list[str] = Field(description="guesses and losses, as sentences")
    spans: list[RepairSpan] = Field(description="all bytes of the broken file; at most 500")


class RepairRecord(ApiModel):
    """The repair of a file."""

    id: str
    file_id: str = Field(description="the broken file, which stays as it is")
    like_file_id: str | None = Field(description="the good file; null: none is used")
    repaired_file_id: str | None = Field(
        description="the repaired file, which is processed like an upload; null until it is there"
    )
    status: RepairStatus
    progress: float = Field(ge=0, le=1)
    report: RepairReport | None = Field(description="null until it is complete")
    problem: Problem | None
    created_at: str
    completed_at: str | None
    failed_at: str | None


class RepairList(Listed):
    """Repairs, newest first."""

    repairs: list[RepairRecord]
