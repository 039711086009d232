"""The job that makes one attempt of a delivery, and writes down what came of it.

Each attempt is a job of its own. What came of it and the order for the next one are one
transaction: a worker that dies before has sent in vain, and the same attempt is made again. So a
delivery arrives at least once, under one `webhook-id`.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import random
import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlsplit

import sqlalchemy as sa
from sqlalchemy import Connection, Row

from fragdex.outgoing import (
    Address,
    AddressRefused,
    PinnedHTTP,
    PinnedHTTPS,
    Resolve,
    checked_address,
    cut_after,
    is_public,
)
from fragdex.record import record
from fragdex.service import outbox
from fragdex.service.context import ServiceContext
from fragdex.service.jobs.work import WEBHOOKS, Job, Work
from fragdex.service.records import keys
from fragdex.service.records.identifiers import instant, rfc3339
from fragdex.service.records.tables import webhook_deliveries, webhooks
from fragdex.service.webhooks.model import MAX_URL, DeliveryStatus
from fragdex.traces import inner_span, trace_context
from fragdex.webhook_signature import secret_text, sign

_READ: Final = 4096
"""Bytes of a response that are read."""
_SHOWN: Final = 1000
"""Characters of it that are shown."""
_PRINTED: Final = re.compile(r"[^\x20-\x7e]+")
_SECONDS: Final = re.compile("[0-9]{1,9}")


class NotSent(Exception):
    """There was no response; the text says why, to the tenant."""


@record(frozen=True, slots=True)
class ReceiverAnswer:
    """What a receiver answered.

    Attributes:
        body: the beginning of it, as printable ASCII.
        retry_after: seconds, if it sends them.
    """

    status: int
    body: str
    retry_after: float | None = None

    @property
    def accepted(self) -> bool:
        """Whether the delivery has arrived."""
        return 200 <= self.status <= 299


def validate_url(url: str, networks: Sequence[str]) -> tuple[bool, str, int, str]:
    """Whether a URL is of TLS, its host, its port and its request target.

    Args:
        networks: not public, and allowed; without any, only `https` is taken.

    Raises:
        ValueError: no delivery may be sent there.
    """
    if len(url) > MAX_URL or any(ord(char) <= 32 or ord(char) > 126 for char in url):
        raise ValueError("the URL is not encoded, or too long")
    parts = urlsplit(url)
    host, port = (parts.hostname or "").rstrip("."), parts.port
    schemes = ("https", "http") if networks else ("https",)
    if parts.scheme not in schemes:
        raise ValueError(f"a URL with {' or '.join(schemes)} is expected")
    if not host or port == 0:
        raise ValueError("the URL names no host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL has credentials; receivers check the signature instead")
    tls = parts.scheme == "https"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return tls, host, port or (443 if tls else 80), target


@record(frozen=True, slots=True)
class Sender:
    """Sends deliveries.

    Attributes:
        seconds: that a request may take, its response included.
        networks: not public, and allowed, such as `10.0.0.0/8`.
        resolve: as `socket.getaddrinfo`.
        tls: whom to trust; the system's authorities where it is None.
    """

    seconds: float
    networks: Sequence[str] = ()
    resolve: Resolve = socket.getaddrinfo
    tls: ssl.SSLContext | None = None

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> ReceiverAnswer:
        """The response to a delivery; its body is read as far as it may be shown.

        Raises:
            NotSent: there was none.
        """
        deadline = time.monotonic() + self.seconds
        try:
            is_tls, host, port, target = validate_url(url, self.networks)
        except ValueError as error:
            raise NotSent(str(error)) from None
        try:
            allowed = self._allowed if is_tls else self._inside
            address = checked_address(host, port, allowed, self.resolve)
        except AddressRefused as error:
            more = "" if is_tls else "; `http` is for the networks of `webhook_networks` alone"
            raise NotSent(f"{error}{more}") from None
        left = max(0.001, deadline - time.monotonic())
        connection = (
            PinnedHTTPS(host, port, address, left, self.tls)
            if is_tls
            else PinnedHTTP(host, port, address, left)
        )
        try:
            with cut_after(connection, left):
                connection.request("POST", target, body=body, headers=dict(headers))
                return _answer(connection.getresponse())
        except ssl.SSLCertVerificationError as error:
            raise NotSent(f"the certificate of {host}: {error.verify_message}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            if time.monotonic() >= deadline:
                raise NotSent(f"no response within {self.seconds:g} s") from None
            raise NotSent(f"{host} could not be reached: {type(error).__name__}") from None

    def _inside(self, address: Address) -> bool:
        mapped = getattr(address, "ipv4_mapped", None) or address
        return any(mapped in ipaddress.ip_network(network) for network in self.networks)

    def _allowed(self, address: Address) -> bool:
        return is_public(address) or self._inside(address)


def _answer(response: http.client.HTTPResponse) -> ReceiverAnswer:
    try:
        body = response.read(_READ)
    except (OSError, http.client.HTTPException):
        body = b""  # the status says what counts
    text = _PRINTED.sub(" ", body.decode("ascii", "replace"))[:_SHOWN]
    retry_after = (response.getheader("Retry-After") or "").strip()
    seconds = float(retry_after) if _SECONDS.fullmatch(retry_after) else None
    return ReceiverAnswer(response.status, text, seconds)


_ROW, _HOOK = webhook_deliveries.c, webhooks.c
_GONE: Final = 410


def secret_of(installation: bytes, webhook_id: str, number: int) -> bytes:
    """The secret of a webhook: derived, so that it stands nowhere.

    Args:
        installation: `keys.secret(database, "webhooks")`.
        number: of rotations.
    """
    return hmac.new(installation, f"{webhook_id}/{number}".encode(), hashlib.sha256).digest()


def _run(context: ServiceContext, job: Job) -> None:
    row = _due(context, job)
    if row is None:
        return
    if row.disabled_at is not None:
        _record(context, job, None, outbox.DISABLED)
        return
    settings = context.settings
    sender = Sender(settings.webhook_timeout_seconds, settings.webhook_networks)
    body = row.body.encode()
    headers = _headers(keys.secret(context.database, "webhooks"), row, body)
    try:
        answer = _sent(sender, row.url, headers, body)
    except NotSent as error:
        _record(context, job, None, str(error))
        return
    _record(context, job, answer, _problem(answer))


def _sent(sender: Sender, url: str, headers: Mapping[str, str], body: bytes) -> ReceiverAnswer:
    """What came of a delivery; its receiver may continue the trace, and gets no `tracestate`."""
    with inner_span("POST webhook", kind="client") as span:
        trace = trace_context()
        trace.pop("tracestate", None)
        answer = sender.post(url, {**headers, **trace}, body)
        if span is not None:
            span.describe(http__request__method="POST", http__response__status_code=answer.status)
            if not answer.accepted:
                span.failed(str(answer.status))
        return answer


def _failed(context: ServiceContext, job: Job, problem: Mapping[str, Any]) -> None:
    """The attempt took its workers with it, or met a fault of ours: the next one may not."""
    _record(context, job, None, str(problem["detail"]))


def _mine(job: Job) -> sa.ColumnElement[bool]:
    """The row of a delivery, if this is the attempt that is to be made."""
    number: int = job.payload["number"]
    waits = _ROW.status == DeliveryStatus.PENDING
    return sa.and_(_ROW.id == job.record_id, _ROW.orders == number, waits)


def _due(context: ServiceContext, job: Job) -> Row[Any] | None:
    query = (
        sa.select(
            webhook_deliveries, _HOOK.url, _HOOK.secret_number, _HOOK.previous_secret_until,
            _HOOK.disabled_at,
        )
        .join(webhooks, _HOOK.id == _ROW.webhook_id)
        .where(_mine(job))
    )  # fmt: skip
    return context.database.first(query)


def _headers(installation: bytes, row: Row[Any], body: bytes) -> dict[str, str]:
    numbers = [row.secret_number]
    if row.previous_secret_until is not None and row.previous_secret_until > instant():
        numbers.append(row.secret_number - 1)
    secrets = [secret_of(installation, row.webhook_id, number) for number in numbers]
    at = int(time.time())
    # Receivers that are older than the standard look at this one alone.
    plain = hmac.new(secret_text(secrets[0]).encode(), body, hashlib.sha256)
    return {
        "Content-Type": "application/json",
        "User-Agent": f"fragdex/{version('fragdex')}",
        "webhook-id": row.id,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(sign(secret, row.id, at, body) for secret in secrets),
        "X-Webhook-Signature": plain.hexdigest(),
    }


def _problem(answer: ReceiverAnswer) -> str | None:
    if answer.accepted:
        return None
    if 300 <= answer.status <= 399:
        return f"the receiver answered {answer.status}; redirects are not followed"
    return f"the receiver answered {answer.status}"


def _record(
    context: ServiceContext, job: Job, answer: ReceiverAnswer | None, problem: str | None
) -> None:
    """Write down an attempt; order the next one, or give the delivery up."""
    now = instant()
    with context.database.write() as connection:
        query = sa.select(webhook_deliveries).where(_mine(job)).with_for_update()
        row = connection.execute(query).one_or_none()
        if row is None:
            return  # replayed meanwhile, or another run has written it
        attempts = row.attempts + 1
        values: dict[str, Any] = {
            "attempts": attempts,
            "next_attempt_at": None,
            "response_status": None if answer is None else answer.status,
            "response_body": None if answer is None else answer.body,
            "problem": problem,
        }
        if problem is None:
            values |= {"status": DeliveryStatus.DELIVERED, "delivered_at": now, "failed_at": None}
            mine = webhooks.update().where(_HOOK.id == row.webhook_id)
            connection.execute(mine.values(accepted_at=now))
        elif (wait := _pause(context, attempts, answer, problem)) is None:
            values |= {"status": DeliveryStatus.FAILED, "failed_at": now}
            _disable(connection, row, answer, problem)
        else:
            values["next_attempt_at"] = now + timedelta(seconds=wait)
            outbox.order(context, connection, row.tenant_id, row.id, row.orders + 1, wait)
        connection.execute(webhook_deliveries.update().where(_ROW.id == row.id).values(**values))


def _pause(
    context: ServiceContext, attempts: int, answer: ReceiverAnswer | None, problem: str
) -> float | None:
    if problem == outbox.DISABLED or (answer is not None and answer.status == _GONE):
        return None
    retry_after = None if answer is None else answer.retry_after
    return pause(attempts, context.settings.webhook_attempts, retry_after)


def _disable(
    connection: Connection, row: Row[Any], answer: ReceiverAnswer | None, problem: str
) -> None:
    """Disable the webhook of a delivery that was given up, where nothing else arrived meanwhile."""
    if problem == outbox.DISABLED:
        return
    silent = (_HOOK.id == row.webhook_id) & _HOOK.disabled_at.is_(None)
    why = "the receiver answered 410 Gone"
    if answer is None or answer.status != _GONE:
        silent &= _HOOK.accepted_at.is_(None) | (_HOOK.accepted_at < row.ordered_at)
        why = f"no delivery was accepted since {rfc3339(row.ordered_at)}; the last one: {problem}"
    values = {"disabled_at": instant(), "disabled_because": why}
    connection.execute(webhooks.update().where(silent).values(**values))


WORK: tuple[Work, ...] = (Work(outbox.DELIVER, _run, _failed, queue=WEBHOOKS),)
"""What the family has done by workers."""


PAUSES: Final = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Seconds after the first attempt, the second …: those that Standard Webhooks recommends."""

_JITTER: Final = 0.2
"""Up to this part longer."""
_LONGEST: Final = 86_400.0
"""A receiver that requests more time gets at most this."""


def pause(
    attempts: int, limit: int, retry_after: float | None = None, chance: float | None = None
) -> float | None:
    """Seconds until the next attempt; None: there is none.

    Args:
        attempts: that have failed, 1 or more.
        limit: attempts in all, 1 to 10.
        retry_after: the receiver's request, in seconds.
        chance: 0 to 1; drawn where it is None.
    """
    if attempts >= min(limit, len(PAUSES) + 1):
        return None
    drawn = random.random() if chance is None else chance
    seconds = PAUSES[attempts - 1] * (1 + _JITTER * drawn)
    return max(seconds, min(retry_after or 0.0, _LONGEST))
