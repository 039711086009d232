"""Fields that many requests and answers share: one rule, one description.

Parameters of a path are looked at after the caller: who has no key learns nothing of them.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Path, Query
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PlainValidator,
    WithJsonSchema,
)

from fragdex.service.errors import RecordNotFound
from fragdex.service.records.identifiers import md5_bytes
from fragdex.service.records.pages import DEFAULT_LIMIT, MAX_LIMIT

__all__ = [
    "DEFAULT_LIMIT",
    "ByteSize",
    "Cursor",
    "FileName",
    "Limit",
    "Listed",
    "Md5InPath",
    "Md5Text",
    "Number",
    "RecordId",
    "record_id",
]

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MD5_PATTERN = "^(?:[0-9A-Fa-f]{32}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$"


def _number(value: object) -> object:
    """JSON's own numbers alone: neither `"12"` nor `true`."""
    if isinstance(value, bool | str):
        raise ValueError("a whole number is expected")
    return value


def record_id(text: str) -> str:
    """An `id` of a path; one that the service never makes is of no record.

    No database is asked for texts that it might not even take (NUL in PostgreSQL).

    Raises:
        RecordNotFound: as if it had been asked for.
    """
    if not _ID.fullmatch(text):
        raise RecordNotFound("there is no such record")
    return text


RecordId = Annotated[str, Path(description="as the service gave it"), AfterValidator(record_id)]
Md5InPath = Annotated[
    bytes,
    Path(description="32 hex digits, or dashed; either case"),
    PlainValidator(lambda text: md5_bytes(text, "md5")),
    WithJsonSchema({"type": "string", "pattern": MD5_PATTERN}),
]

# a name is kept and given back, never a path of ours; control characters would break headers
FileName = Annotated[
    str,
    Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["holiday.jpg"]),
]
Md5Text = Annotated[
    str,
    Field(
        description="32 hex digits, or dashed 8-4-4-4-12; either case",
        pattern=MD5_PATTERN,
        examples=["d41d8cd9-8f00-b204-e980-0998ecf8427e"],
    ),
]
Number = Annotated[int, BeforeValidator(_number)]
ByteSize = Annotated[Number, Field(ge=0, description="bytes in all", examples=[12345])]

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="records on a page")]
Cursor = Annotated[
    str | None, Query(max_length=200, description="`next_cursor` of the page before")
]


class Listed(BaseModel):
    """A page of a list, newest first."""

    next_cursor: str | None = Field(description="asks for the next page; null on the last")
