"""Names and instants, as records hold them and as answers tell them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import overload

import uuid_utils

from fragdex.digest import Digest, parse_digest
from fragdex.errors import InvalidDigest, InvalidRequest


def new_id() -> str:
    """A new identifier (UUIDv7, RFC 9562, 5.7); it sorts after all that this process made."""
    return str(uuid_utils.uuid7())


def first_id(when: datetime) -> str:
    """What no identifier of a later millisecond is less than: their index finds the oldest."""
    digits = f"{int(when.timestamp() * 1000) + 1:012x}"
    return f"{digits[:8]}-{digits[8:]}"


def instant() -> datetime:
    """Now, in UTC, by the clock of this machine.

    >>> instant().tzinfo
    datetime.timezone.utc
    """
    return datetime.now(UTC)


def md5_bytes(text: str, pointer: str = "/md5") -> bytes:
    """The 16 bytes of an md5 written as 32 hex digits or dashed 8-4-4-4-12, in either case.

    Raises:
        InvalidRequest: it is invalid; `pointer` names the field.

    >>> md5_bytes("D41D8CD9-8F00-B204-E980-0998ECF8427E").hex()
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    try:
        return bytes(parse_digest(text))
    except InvalidDigest as error:
        raise InvalidRequest(
            error.message, pointer=pointer, expected=error.expected, found=error.found
        ) from None


def md5_text(md5: bytes) -> str:
    """The dashed form, in which the service answers.

    >>> md5_text(bytes(16))
    '00000000-0000-0000-0000-000000000000'
    """
    return Digest(bytes(md5)).dashed


@overload
def rfc3339(when: datetime) -> str: ...
@overload
def rfc3339(when: datetime | None) -> str | None: ...
def rfc3339(when: datetime | None) -> str | None:
    """An instant as RFC 3339 text, to the millisecond; None stays None.

    >>> rfc3339(datetime(2026, 1, 2, 3, 4, 5, 678901, UTC))
    '2026-01-02T03:04:05.678Z'
    """
    if when is None:
        return None
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
