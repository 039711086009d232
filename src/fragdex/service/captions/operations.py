"""What can be done with caption files; no HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from fragdex import ByteRange
from fragdex.errors import InvalidRequest, MalformedCaptions, Unprocessable
from fragdex.service.captions.model import (
    PARSERS,
    CaptionFacts,
    CaptionList,
    CaptionRecord,
    CaptionType,
    type_of,
)
from fragdex.service.context import ServiceContext
from fragdex.service.records.blobs import StoredBytes
from fragdex.service.records.identifiers import md5_bytes
from fragdex.service.records.tables import FileType
from fragdex.service.uploads.model import Arrived
from fragdex.service.uploads.repository import FileRepository, facts


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
    values = {
        "filename": new.filename,
        "mime_type": mime_type.value,
        "expires_at": expires_at,
    }
    return CAPTIONS.announce(context, tenant_id, new.byte_size, md5, values)


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
