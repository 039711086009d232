"""A client of the service: every operation of its OpenAPI document, for threads and for asyncio.

    from fragdex.client import Client, api

    with Client("https://media.example.org", key) as client:
        file = client.wait(client.push("film.mp4"))
        client.pull(client.wait(client.transcribe(file)), "film.vtt")
        seek = client.send(api.seek_isobmff_file(file.id, time_ms=1500))

Needs the extra `remote`.
"""

from __future__ import annotations

from fragdex.client import api
from fragdex.client.clients import AsyncClient, Client
from fragdex.client.errors import (
    ClientError,
    Conflict,
    Forbidden,
    InvalidRequest,
    InvalidSignature,
    JobFailed,
    NotFound,
    RequestRefused,
    ServiceFault,
    ServiceUnreachable,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    UnexpectedResponse,
)
from fragdex.client.exchange import Request, Retries
from fragdex.client.webhook import verify_webhook

__all__ = [
    "AsyncClient",
    "Client",
    "ClientError",
    "Conflict",
    "Forbidden",
    "InvalidRequest",
    "InvalidSignature",
    "JobFailed",
    "NotFound",
    "Request",
    "RequestRefused",
    "Retries",
    "ServiceFault",
    "ServiceUnreachable",
    "TooLarge",
    "TooManyRequests",
    "Unauthenticated",
    "UnexpectedResponse",
    "api",
    "verify_webhook",
]
