"""For receivers of webhooks: whether a delivery is the service's own, and what it says."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from fragdex.client.errors import InvalidSignature
from fragdex.webhook_signature import TOLERANCE_SECONDS, signature_problem


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secret: str,
    *,
    tolerance: float = TOLERANCE_SECONDS,
    now: float | None = None,
) -> dict[str, Any]:
    """The message of a delivery, whose signature fits and is not old.

    The same delivery may come twice: its `webhook-id` tells.

    Args:
        headers: of the request; names in any case.
        body: as received, byte for byte: not parsed and serialized again.
        secret: as the service showed it, `whsec_…`.
        tolerance: seconds that the signature may be older or newer than now.
        now: seconds since 1970; the clock where it is None.

    Raises:
        InvalidSignature: it is not to be believed, and why.
        ValueError: the secret is not `whsec_` and base64.

    >>> from fragdex.webhook_signature import secret_text, sign
    >>> secret, body = secret_text(b"0123456789abcdef01234567"), b'{"type":"file.ready"}'
    >>> headers = {"webhook-id": "1", "webhook-timestamp": "1700000000"}
    >>> headers["webhook-signature"] = sign(b"0123456789abcdef01234567", "1", 1700000000, body)
    >>> verify_webhook(headers, body, secret, now=1700000060)
    {'type': 'file.ready'}
    """
    reason = signature_problem(
        headers, body, [secret], time.time() if now is None else now, tolerance
    )
    if reason is not None:
        raise InvalidSignature(f"this is not a delivery of the service: {reason}")
    try:
        message = json.loads(body)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise InvalidSignature("this is not a delivery of the service: its body is not JSON object")
    return message
