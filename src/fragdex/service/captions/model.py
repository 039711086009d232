"""What a caption file is to a caller."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fragdex.formats.captions_text import parse_json, parse_srt, parse_webvtt
from fragdex.formats.captions_track import CaptionCue
from fragdex.service.uploads.repository import FileStatus
from fragdex.service.web.fields import ApiModel, ByteSize, FileName, Listed, Md5Text, media_type_of


class CaptionType(StrEnum):
    """The kinds of captions there are."""

    WEBVTT = "text/vtt"
    SRT = "application/x-subrip"
    JSON = "application/json"


PARSERS: dict[CaptionType, Callable[[bytes], list[CaptionCue]]] = {
    CaptionType.WEBVTT: parse_webvtt,
    CaptionType.SRT: parse_srt,
    CaptionType.JSON: parse_json,
}

NAMED = {".vtt": CaptionType.WEBVTT, ".srt": CaptionType.SRT, ".json": CaptionType.JSON}
DECLARED = {
    "text/vtt": CaptionType.WEBVTT,
    "application/x-subrip": CaptionType.SRT,
    "application/srt": CaptionType.SRT,
    "text/srt": CaptionType.SRT,
    "application/json": CaptionType.JSON,
}


_DECLARED = media_type_of("a type of captions", *DECLARED)


class CaptionFacts(ApiModel):
    """The announcement of a caption file."""

    filename: FileName
    byte_size: ByteSize
    mime_type: Annotated[str, Field(max_length=100), _DECLARED] | None = Field(
        None,
        description="text/vtt, application/x-subrip or application/json; else from the name",
        examples=["text/vtt"],
    )


class NewCaption(CaptionFacts):
    """A caption file to come."""

    md5: Md5Text


class CaptionRecord(ApiModel):
    """A caption file."""

    id: str
    filename: str
    mime_type: str
    byte_size: int
    next_byte: int = Field(description="bytes before this one are here to stay")
    complete: bool
    status: FileStatus
    md5: str | None = Field(description="dashed; null until it is announced or known")
    created_at: str
    completed_at: str | None
    expires_at: str | None


class CaptionList(Listed):
    """Caption files, newest first."""

    caption_files: list[CaptionRecord]


def type_of(filename: str, declared: str | None) -> CaptionType | None:
    """The kind that is declared, or that the name tells; None where it is none of ours.

    >>> type_of("a.SRT", None).value, type_of("a.txt", None)
    ('application/x-subrip', None)
    """
    if declared:
        return DECLARED.get(declared.partition(";")[0].strip().lower())
    dot = filename.rfind(".")
    return NAMED.get(filename[dot:].lower()) if dot >= 0 else None
