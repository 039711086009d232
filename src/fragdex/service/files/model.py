"""What requests and answers about files of any type say."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fragdex.service.records.tables import FileType
from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.fields import (
    ApiModel,
    ByteSize,
    FileName,
    Instant,
    Listed,
    Md5Text,
    written_as,
)


class AnyFileStatus(StrEnum):
    """How far a file is."""

    CREATED = "created"
    UPLOADING = "uploading"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


_PRINTABLE = written_as(r"[\x20-\x7e]*", "a text of printable ASCII")


class NewAnyFile(ApiModel):
    """A file to come. A video may as well have sound alone."""

    filename: FileName
    type: FileType
    byte_size: ByteSize
    md5: Md5Text | None = None
    mime_type: Annotated[str, Field(max_length=40), _PRINTABLE] | None = Field(
        None, description="of images and captions, else from the name"
    )
    expires_at: Instant | None = Field(
        None, description="when the file and all that was made of it are deleted"
    )


class NewName(ApiModel):
    """Another name of a file."""

    filename: FileName


class FileTrack(ApiModel):
    """A track of a video."""

    track_id: int = Field(description="-1: the scrub track")
    type: str
    codec_name: str | None
    duration_ms: int | None
    byte_size: int | None = Field(description="null for a track that is only in the index")


class UploadPart(ApiModel):
    """Bytes of a file that are missing, and where they are put."""

    start: int = Field(description="the first byte")
    byte_size: int
    url: str = Field(description="PUT the bytes here, without any key")


class UploadParts(ApiModel):
    """The first parts of a file that are missing, at most 100."""

    parts: list[UploadPart]
    missing: int = Field(description="all parts that are missing")
    expires_at: str = Field(description="of the URLs")


class AnyFile(ApiModel):
    """A file of any type."""

    id: str
    filename: str
    type: FileType
    status: AnyFileStatus
    byte_size: int | None = Field(description="null for a video known by its tracks or index alone")
    md5: str | None = Field(description="dashed; null until it is announced or known")
    next_byte: int = Field(description="bytes before this one are here to stay")
    mime_type: str | None
    width: int | None = Field(description="pixels, once they are known")
    height: int | None
    problem: Problem | None = Field(description="why it failed")
    created_at: str
    completed_at: str | None = Field(description="since when it is ready")
    expires_at: str | None
    tracks: list[FileTrack] = Field(description="of a video that was processed, or sent in tracks")


class AnyFileList(Listed):
    """Files of all types, newest first."""

    files: list[AnyFile]


class Deleted(ApiModel):
    """What was deleted."""

    id: str
    success: bool = True
