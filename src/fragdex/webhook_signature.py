"""Signatures of webhooks, as the Standard Webhooks specification has them; no I/O.

A delivery carries `webhook-id`, `webhook-timestamp` and `webhook-signature`. The signature is the
HMAC-SHA256 of `ID.TIMESTAMP.BODY`, with the bytes after `whsec_` as the key. While a secret is
rotated there are two signatures, separated by a space; one valid signature is enough.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Final

__all__ = [
    "SECRET_PREFIX",
    "TOLERANCE_SECONDS",
    "secret_bytes",
    "secret_text",
    "sign",
    "signature_problem",
]

SECRET_PREFIX: Final = "whsec_"
TOLERANCE_SECONDS: Final = 300
"""How far the time of a delivery may be from the receiver's: what bounds its being sent again."""

_VERSION: Final = "v1"
_TIMESTAMP: Final = re.compile("[0-9]{1,12}")


def secret_text(secret: bytes) -> str:
    """A secret as it is handed to people.

    >>> secret_text(bytes(24))
    'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    """
    return SECRET_PREFIX + base64.b64encode(secret).decode()


def secret_bytes(text: str) -> bytes:
    """The key of a secret, with `whsec_` before it or without.

    Raises:
        ValueError: it is not base64.

    >>> secret_bytes("whsec_c2VjcmV0")
    b'secret'
    """
    try:
        key = base64.b64decode(text.strip().removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError("a webhook's secret is `whsec_` and base64")
    return key


def sign(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """The signature of a delivery: `v1,` and base64.

    Args:
        timestamp: seconds since 1970.
        body: as it is sent, byte for byte.

    >>> sign(bytes(24), "msg_1", 1700000000, b"{}")
    'v1,LzeNxZHo3O8fwpFJpLh/0B99ugILNFJw+/9lTgx0APs='
    """
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    digest = hmac.new(secret, signed, hashlib.sha256).digest()
    return f"{_VERSION},{base64.b64encode(digest).decode()}"


def signature_problem(
    headers: Mapping[str, str],
    body: bytes,
    secrets: Sequence[str],
    now: float,
    tolerance: float = TOLERANCE_SECONDS,
) -> str | None:
    """Why a delivery is invalid; None if it is valid.

    Args:
        headers: of the request; names in any case.
        body: as received, byte for byte.
        secrets: any of them will do.
        now: seconds since 1970.
        tolerance: seconds that the delivery's time may be away from `now`.

    Raises:
        ValueError: a secret is not base64.

    >>> headers = {"Webhook-Id": "msg_1", "Webhook-Timestamp": "1700000000"}
    >>> headers["Webhook-Signature"] = sign(bytes(24), "msg_1", 1700000000, b"{}")
    >>> signature_problem(headers, b"{}", [secret_text(bytes(24))], 1700000010)
    >>> signature_problem(headers, b"{ }", [secret_text(bytes(24))], 1700000010)
    'no signature fits'
    """
    keys = [secret_bytes(secret) for secret in secrets]
    named = {name.lower(): value for name, value in headers.items()}
    missing = [
        name
        for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
        if not named.get(name)
    ]
    if missing:
        return f"{missing[0]} is missing"
    timestamp = named["webhook-timestamp"]
    if _TIMESTAMP.fullmatch(timestamp) is None:
        return "webhook-timestamp is not a number of seconds"
    away = now - int(timestamp)
    if abs(away) > tolerance:
        when = "ago" if away > 0 else "ahead"
        return f"it was signed {abs(away):.0f} s {when}; {tolerance:.0f} s are allowed"
    given = named["webhook-signature"].split()
    right = [sign(key, named["webhook-id"], int(timestamp), body) for key in keys]
    fits = [
        hmac.compare_digest(one.encode(), other.encode("utf-8", "surrogateescape"))
        for one in right
        for other in given
    ]
    return None if any(fits) else "no signature fits"
