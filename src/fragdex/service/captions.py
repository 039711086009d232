"""Caption files: WebVTT, SRT and JSON, read through before they count as complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from fragdex import ByteRange
from fragdex.errors import InvalidRequest, MalformedCaptions, Unprocessable
from fragdex.muxing.captions import CaptionCue, parse_json, parse_srt, parse_webvtt
from fragdex.packaging.subtitles import Captions, as_webvtt, captions_of
from fragdex.service.context import ServiceContext
from fragdex.service.records.blobs import StoredBytes
from fragdex.service.records.identifiers import md5_bytes
from fragdex.service.records.tables import FileType
from fragdex.service.uploads.model import Arrived
from fragdex.service.uploads.repository import FileRepository, FileStatus, facts
from fragdex.service.web.fields import (
    ApiModel,
    ByteSize,
    FileName,
    Listed,
    Md5Text,
    RequestBody,
    SentByteSize,
    media_type_of,
)


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


class CaptionFacts(RequestBody):
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
    byte_size: SentByteSize
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
    """The kind that is declared, or that the name tells; None where it is none of ours."""
    if declared:
        return DECLARED.get(declared.partition(";")[0].strip().lower())
    dot = filename.rfind(".")
    return NAMED.get(filename[dot:].lower()) if dot >= 0 else None


def _record_of(row: Any) -> CaptionRecord:
    return CaptionRecord(mime_type=row.mime_type, **facts(row))


def _examine(context: ServiceContext, arrived: Arrived, mime_type: str) -> Mapping[str, Any]:
    # bounded by max_caption_bytes, which was announced and is held to
    pieces = context.store.read(arrived.store_key, ByteRange(0, arrived.byte_size))
    try:
        PARSERS[CaptionType(mime_type)](b"".join(pieces))
    except MalformedCaptions as error:
        line = {} if error.line is None else {"line": error.line}
        raise Unprocessable(error.message, more={**line, "next_byte": 0}) from None
    return {}


CAPTIONS = FileRepository(
    FileType.CAPTION, "caption file", _record_of, CaptionList,
    limit=lambda settings: settings.max_caption_bytes, examine=_examine,
)  # fmt: skip


def create_caption(
    context: ServiceContext,
    tenant_id: str,
    new: CaptionFacts,
    told_md5: str | None,
    expires_at: datetime | None = None,
) -> tuple[CaptionRecord, bool]:
    """A record for captions to come, and whether it is a new one.

    One of the same md5 and size is given again.

    Raises:
        InvalidRequest: a type that is not taken here, or no md5.
        TooLarge: more bytes than captions may have.
    """
    mime_type = type_of(new.filename, new.mime_type)
    if mime_type is None:
        raise InvalidRequest(
            "this type of captions is not supported",
            pointer="/mime_type" if new.mime_type else "/filename",
            expected=", ".join(CaptionType),
            found=new.mime_type or new.filename,
        )
    md5 = None if told_md5 is None else md5_bytes(told_md5)
    values = {"filename": new.filename, "mime_type": mime_type.value, "expires_at": expires_at}
    return CAPTIONS.announce(context, tenant_id, new.byte_size, md5, values)


def caption_webvtt(context: ServiceContext, tenant_id: str, caption_id: str) -> bytes:
    """Captions of any kind as WebVTT, with every cue that the service reads in them.

    Raises:
        RecordNotFound: this tenant has none of it.
        NotReady: they are not all here yet.
    """
    stored = CAPTIONS.stored(context, tenant_id, caption_id)
    data = b"".join(context.store.read(stored.store_key, ByteRange(0, stored.byte_size)))
    if not data:  # complete without being read
        return as_webvtt(Captions(()))
    suffix = next(end for end, kind in NAMED.items() if kind == stored.mime_type)
    return as_webvtt(captions_of(data, suffix))


def caption_bytes(context: ServiceContext, tenant_id: str, caption_id: str) -> StoredBytes:
    """Where the bytes of captions are; their type tells how they are written.

    JSON is UTF-8 by itself (RFC 8259, 8.1); of the others it has to be said.

    Raises:
        RecordNotFound: this tenant has none of it.
        NotReady: they are not all here yet.
    """
    stored = CAPTIONS.stored(context, tenant_id, caption_id)
    if stored.mime_type == CaptionType.JSON:
        return stored
    return replace(stored, mime_type=f"{stored.mime_type}; charset=utf-8")
