"""What requests and answers about files of any type say."""

from __future__ import annotations

from enum import StrEnum

from pydantic import AwareDatetime, BaseModel, Field

from fragdex.service.unprocessed.model import Problem
from fragdex.service.web.fields import ByteSize, FileName, Listed, Md5Text

__all__ = [
    "AnyFile",
    "AnyFileList",
    "AnyFileStatus",
    "Deleted",
    "FileTrack",
    "FileType",
    "NewAnyFile",
]


class FileType(StrEnum):
    """What a file is."""

    VIDEO = "video"
    IMAGE = "image"
    CAPTION = "caption"


class AnyFileStatus(StrEnum):
    """How far a file is."""

    CREATED = "created"
    UPLOADING = "uploading"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


class NewAnyFile(BaseModel):
    """A file to come. A video may as well have sound alone."""

    filename: FileName
    type: FileType
    byte_size: ByteSize
    md5: Md5Text | None = None
    mime_type: str | None = Field(
        None,
        max_length=40,
        pattern=r"^[\x20-\x7e]*$",
        description="of images and captions, else from the name",
    )
    expires_at: AwareDatetime | None = Field(
        None, description="when the file and all that was made of it are deleted"
    )


class FileTrack(BaseModel):
    """A track of a video."""

    track_id: int = Field(description="-1: the scrub track")
    type: str
    codec_name: str | None
    duration_ms: int | None
    byte_size: int | None = Field(description="null for a track that the index alone tells of")


class AnyFile(BaseModel):
    """A file of any type."""

    id: str
    filename: str
    type: FileType
    status: AnyFileStatus
    byte_size: int | None = Field(description="null for a video known by its tracks or index alone")
    md5: str | None = Field(description="dashed; null until it is told or known")
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


class Deleted(BaseModel):
    """What was deleted."""

    id: str
    success: bool = True
