"""What requests and answers about timelines say."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from fragdex.service.web.fields import NO_NUL, ApiModel, Instant, Listed

Gaps = TypeAliasType("Gaps", Literal["keep", "close"])
MOST_FILES = 100
"""Of one timeline."""

FileId = Annotated[str, Field(min_length=1, max_length=36), NO_NUL]


class NewTimeline(ApiModel):
    """Files to be played one after the other."""

    files: list[FileId] = Field(
        min_length=1, max_length=MOST_FILES, description="ids of videos, in their order"
    )
    gaps: Gaps = Field(
        "close",
        description="`close`: each file begins where the one before ends; `keep`: at its own "
        "presentation times, less that of the first",
    )
    name: Annotated[str, Field(max_length=1024), NO_NUL] = ""
    expires_at: Instant | None = Field(None, description="when the timeline, not its files, ends")


class TimelineRecord(ApiModel):
    """A timeline."""

    id: str
    name: str
    files: list[str] = Field(description="ids of ISOBMFF files, in their order")
    missing: list[str] = Field(
        description="those of them that were deleted; until they are taken out, nothing is played"
    )
    gaps: Gaps
    created_at: str
    expires_at: str | None


class TimelineList(Listed):
    """Timelines, newest first."""

    timelines: list[TimelineRecord]
