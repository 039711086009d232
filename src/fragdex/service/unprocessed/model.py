"""What requests and answers about unprocessed files and their processing say."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field

from fragdex import errors as kinds
from fragdex.service.web.fields import (
    ApiModel,
    ByteSize,
    FileName,
    Listed,
    Md5Text,
    RequestBody,
    SentByteSize,
)
from fragdex.service.web.problems import Action, row_of


class UnprocessedStatus(StrEnum):
    """How far an unprocessed file is."""

    CREATED = "created"
    UPLOADING = "uploading"
    COMPLETE = "complete"
    FAILED = "failed"


class ProcessStatus(StrEnum):
    """How far the making of an ISOBMFF file is."""

    PROCESSING = "processing"
    COMPLETE = "complete"
    FAILED = "failed"


class Problem(ApiModel):
    """Why something failed, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
    action: Action

    @classmethod
    def of(cls, saved: Mapping[str, Any] | None) -> Problem | None:
        """What a record keeps (`jobs.problem_of`), as it is reported."""
        if saved is None:
            return None
        name = str(saved.get("error", ""))
        error = getattr(kinds, name, None)
        row = row_of(error if isinstance(error, type) else kinds.ServiceError)
        detail = str(saved.get("detail") or row.title)
        return cls(
            type=row.type, title=row.title, status=row.status, detail=detail, action=row.action
        )


class NewUnprocessedFile(RequestBody):
    """A media file to come."""

    md5: Md5Text
    filename: FileName
    byte_size: ByteSize
    processes: list[str] | None = Field(None, description="tolerated, without effect")


class UnprocessedFile(ApiModel):
    """A media file as it is sent."""

    id: str
    filename: str
    md5: str | None = Field(description="dashed; null until it is known")
    byte_size: SentByteSize
    next_byte: int = Field(description="bytes before this one are here to stay")
    complete: bool
    status: UnprocessedStatus = Field(description="failed: what came is not media file")
    fragment_index_complete: bool = Field(
        description="it is an ISO base media file, and its index was made while it came"
    )
    problem: Problem | None
    created_at: str
    completed_at: str | None
    expires_at: str | None


class UnprocessedFileList(Listed):
    """Unprocessed files, newest first."""

    unprocessed_files: list[UnprocessedFile]


class ProcessRecord(ApiModel):
    """The making of an ISOBMFF file from an unprocessed one."""

    id: str
    unprocessed_file_id: str
    isobmff_file_id: str | None = Field(description="null until it is complete")
    status: ProcessStatus
    progress: float = Field(ge=0, le=1)
    problem: Problem | None
    created_at: str
    completed_at: str | None
    failed_at: str | None


class ProcessList(Listed):
    """Processes, newest first."""

    processes: list[ProcessRecord]
