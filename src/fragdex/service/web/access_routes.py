"""`/api/v1/keys`, `/usage` and `/url-token`: keys, what a tenant may use, tokens that open one URL.

A key with the scope `admin` lists, makes, rotates and revokes its tenant's keys. The functions are
those of `fragdex key`. Each change is a line of the log (`logs.audit`).
"""

from __future__ import annotations

import hmac
import json
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Annotated

from fastapi import Depends, Request, Response
from pydantic import Field
from typing_extensions import TypeAliasType

from fragdex.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    Obstructed,
    RecordNotFound,
    Unauthenticated,
)
from fragdex.service.config import MOST_TOKEN_SECONDS
from fragdex.service.context import ServiceContext
from fragdex.service.logs import audit
from fragdex.service.records import keys
from fragdex.service.records.identifiers import instant, rfc3339
from fragdex.service.records.keys import ListedKey, page_of_keys, read_key
from fragdex.service.records.pages import DEFAULT_LIMIT
from fragdex.service.records.tenant_limits import limits_of, row_bytes, stored_bytes
from fragdex.service.web import auth
from fragdex.service.web.auth import Asking, Authenticator, InContext, own_origin
from fragdex.service.web.fields import (
    JSON_NUMBER,
    NO_NUL,
    ApiModel,
    Cursor,
    Instant,
    Limit,
    Listed,
    RecordId,
    RequestBody,
    written_as,
)
from fragdex.service.web.idempotency import idempotency_key
from fragdex.service.web.problems import answers
from fragdex.service.web.routing import PREFIX, api_router, needs_scope, with_secret

key_router = api_router("keys")

NOT_FOUND = answers(RecordNotFound)
LONGEST_GRACE = 30 * 86_400  # seconds


class KeyScope(StrEnum):
    """What a key may do; each includes those before it."""

    READ = keys.READ
    WRITE = keys.WRITE
    ADMIN = keys.ADMIN


class KeyStatus(StrEnum):
    """Whether a key opens anything."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


class NewKey(RequestBody):
    """What a new key is for, and what it may do."""

    name: Annotated[str, Field(max_length=1024, examples=["the web site"]), NO_NUL] = ""
    scope: KeyScope = Field(
        KeyScope.WRITE, description="each includes those before it; it never changes"
    )
    expires_at: Instant | None = Field(None, description="null: it does not expire")


class ApiKey(ApiModel):
    """A key, without its secret."""

    id: str
    name: str
    scope: KeyScope
    status: KeyStatus
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    previous_secret_until: str | None = Field(
        description="until then the secret before the last rotation is accepted, too"
    )
    last_used_at: str | None = Field(
        description="to about a minute; also by a URL token that it signed"
    )


class SecretApiKey(ApiKey):
    """The same with what is sent as the bearer, which is shown once."""

    key: str = Field(description="`ef_<secret>_<id>`; only a hash of the secret is stored")


class ApiKeyList(Listed):
    """Keys, newest first."""

    keys: list[ApiKey]


class KeyRotation(RequestBody):
    """How a secret is replaced."""

    previous_seconds: Annotated[int, Field(ge=0, le=LONGEST_GRACE), JSON_NUMBER] = Field(
        86_400, description="how long the secret before is still accepted"
    )


@key_router.get("/keys")
@needs_scope(keys.ADMIN)
def list_keys(
    caller: Asking, context: InContext, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> ApiKeyList:
    """Keys of the tenant, newest first, including expired and revoked ones."""
    records, next_cursor = page_of_keys(context.database, caller.tenant_id, limit, cursor)
    return ApiKeyList(keys=[_api_key(one) for one in records], next_cursor=next_cursor)


class _KeySecret:
    """The secret of a new key is made of the bearer and the Idempotency-Key of the request.

    So the same request gets the same answer, and no secret is stored.
    """

    def without(self, body: bytes) -> bytes:
        return json.dumps({**json.loads(body), "key": ""}).encode()

    def again(self, request: Request, saved: bytes) -> bytes:
        record = json.loads(saved)
        key = f"ef_{_secret_of(request, record['id'])}_{record['id']}"
        try:
            keys.find_key(request.app.state.context.database, key)
        except Unauthenticated:
            raise Conflict(
                f"this Idempotency-Key made the key {record['id']}, which has another secret now,"
                " or opens nothing any more",
                more={"id": record["id"]},
                advice="rotate that key, or send another Idempotency-Key",
            ) from None
        return json.dumps({**record, "key": key}).encode()


def _secret_of(request: Request, key_id: str) -> str | None:
    """The secret of the key that a request makes; None: chance decides."""
    named = request.headers.get("idempotency-key")
    if named is None:
        return None
    bearer = request.headers.get("authorization", "").partition(" ")[2].strip()
    text = f"fragdex key\0{key_id}\0{named}"
    return hmac.new(bearer.encode(), text.encode(), "sha256").hexdigest()


@key_router.post(
    "/keys",
    status_code=201,
    responses=answers(InvalidRequest, Conflict, Obstructed),
    dependencies=[Depends(idempotency_key)],
)
@needs_scope(keys.ADMIN)
@with_secret(_KeySecret())
def create_key(
    new: NewKey, request: Request, response: Response, caller: Asking, context: InContext
) -> SecretApiKey:
    """Create a key of the tenant. The response has the key, shown only once.

    With an `Idempotency-Key`, the same request of the same bearer gets it again.
    """
    if new.expires_at is not None and new.expires_at <= instant():
        raise InvalidRequest("the key would have expired already", pointer="/expires_at")
    bearer = keys.add_key(
        context.database,
        caller.tenant_id,
        new.name,
        scope=new.scope,
        expires_at=new.expires_at,
        secret_of=partial(_secret_of, request),
    )
    created = _with_secret(context, caller.tenant_id, bearer)
    audit("key.create", caller.tenant_id, caller.key_id, created.id, scope=created.scope)
    response.headers["Location"] = f"{PREFIX}/keys/{created.id}"
    return created


@key_router.get("/keys/{id}", responses=NOT_FOUND)
@needs_scope(keys.ADMIN)
def get_key(id: RecordId, caller: Asking, context: InContext) -> ApiKey:
    """A key of the tenant."""
    return _api_key(read_key(context.database, caller.tenant_id, id))


@key_router.delete("/keys/{id}", status_code=204, responses=answers(RecordNotFound, Obstructed))
@needs_scope(keys.ADMIN)
def delete_key(id: RecordId, caller: Asking, context: InContext) -> None:
    """Revoke a key: within seconds, it and its URL tokens are refused.

    Its record stays for a while (`key_history_days`). The last valid key with the scope `admin` is
    not revoked (409).
    """
    keys.revoke_key(context.database, id, caller.tenant_id)
    audit("key.revoke", caller.tenant_id, caller.key_id, id)


@key_router.post("/keys/{id}/rotate", responses=NOT_FOUND)
@needs_scope(keys.ADMIN)
def rotate_key(
    id: RecordId, rotation: KeyRotation, caller: Asking, context: InContext
) -> SecretApiKey:
    """Replace the secret, shown only once; the old one stays valid for a day, or as requested."""
    previous = timedelta(seconds=rotation.previous_seconds)
    bearer = keys.rotate_key(context.database, id, previous, caller.tenant_id)
    audit("key.rotate", caller.tenant_id, caller.key_id, id)
    return _with_secret(context, caller.tenant_id, bearer)


def _with_secret(context: ServiceContext, tenant_id: str, bearer: str) -> SecretApiKey:
    record = read_key(context.database, tenant_id, bearer.rpartition("_")[2])
    return SecretApiKey.of_row(record, key=bearer, previous_secret_until=_previous(record))


def _previous(key: ListedKey) -> str | None:
    """How long the secret before is accepted, too."""
    previous = key.previous_until
    return rfc3339(previous) if previous and previous > instant() else None


def _api_key(key: ListedKey) -> ApiKey:
    return ApiKey.of_row(key, previous_secret_until=_previous(key))


usage_router = api_router("usage")


class UsageLimits(ApiModel):
    """How much the tenant may use."""

    max_stored_bytes: int | None = Field(description="null: no limit")
    max_render_seconds: float = Field(description="of work on the slices of one render")
    max_render_cost: float | None = Field(
        description="seconds of processor time of the slices of one render; null: no limit"
    )
    max_jobs: int = Field(description="unfinished jobs")
    retention_days: float | None = Field(
        description="after which files and finished renders are deleted; null: never"
    )


class Usage(ApiModel):
    """What the tenant uses now."""

    stored_bytes: int = Field(
        description="in the store, once per SHA-256, with the announced sizes of unfinished uploads"
    )
    row_bytes: int = Field(
        description="of its records: names, metadata, data, events, answers kept for an"
        " Idempotency-Key, and 256 a record; the limit of stored bytes holds for them, too,"
        " if it is over 1 MiB"
    )
    jobs: int = Field(description="unfinished jobs")
    scope: KeyScope = Field(description="of the key that asks: what it may do")
    limits: UsageLimits


@usage_router.get("/usage")
def get_usage(caller: Asking, context: InContext) -> Usage:
    """Usage of the key's tenant: stored bytes and running work, with the limits."""
    settings = context.settings
    with context.database.read() as connection:
        own = limits_of(connection, caller.tenant_id)
        stored = stored_bytes(connection, caller.tenant_id)
        rows = row_bytes(connection, caller.tenant_id)
        jobs = context.jobs.unfinished(connection, caller.tenant_id)
    limits = UsageLimits(
        max_stored_bytes=own.max_stored_bytes,
        max_render_seconds=own.max_render_seconds or settings.max_render_work_seconds,
        max_render_cost=own.max_render_cost,
        max_jobs=own.max_jobs or settings.max_tenant_jobs,
        retention_days=own.retention_days,
    )
    return Usage(
        stored_bytes=stored, row_bytes=rows, jobs=jobs, scope=KeyScope(caller.scope), limits=limits
    )


token_router = api_router("url-token")


ParamValue = Annotated[str, Field(max_length=auth.MAX_URL)]
UrlParams = TypeAliasType(
    "UrlParams", Annotated[dict[str, ParamValue], Field(min_length=1, max_length=auth.MOST_PARAMS)]
)
"""A name of its own: generated clients name a type that has none by its place."""


class WantedToken(RequestBody):
    """What is to be opened."""

    url: Annotated[
        str,
        Field(max_length=auth.MAX_URL),
        written_as(auth.URL, "an http URL or a path, without fragment or steps back (`..`),"),
    ] = Field(
        description="absolute, or a path of this service; its query counts as `params`",
        examples=["/api/v1/isobmff_tracks/0192f0c1-0000-7000-8000-000000000000/1"],
    )

    params: UrlParams | None = Field(
        None,
        description="parameters that the query of each request must have, once each, with these "
        "values; other parameters are allowed",
        examples=[{"src": "film.mp4"}],
    )

    seconds: Annotated[int, Field(ge=1, le=MOST_TOKEN_SECONDS), JSON_NUMBER] | None = Field(
        None,
        description="how long it opens the URL, at most `max_url_token_seconds`; default:"
        " `url_token_seconds`. A token ends with the key that signed it",
    )


class UrlToken(ApiModel):
    """A bearer that opens GET and HEAD of the URL, and of what lies below it."""

    token: str


@token_router.post("/url-token")
@needs_scope(keys.READ)
def create_url_token(
    wanted: WantedToken, request: Request, caller: Asking, context: InContext
) -> UrlToken:
    """Sign a token that opens GET and HEAD of a URL's path, and of what lies below it, for a while.

    It is sent as `Authorization: Bearer TOKEN`, or as `?token=TOKEN` where no header can be sent.
    """
    if caller.grant is not None:
        raise Forbidden("a token signs no other")
    settings = context.settings
    seconds = wanted.seconds or settings.url_token_seconds
    if seconds > (most := max(settings.max_url_token_seconds, settings.url_token_seconds)):
        raise InvalidRequest(
            "a token may not last so long", pointer="/seconds",
            expected=f"at most {most}", found=seconds,
        )  # fmt: skip
    authenticator: Authenticator = request.app.state.authenticator
    signed = auth.sign(
        authenticator.signing_secret(),
        wanted.url,
        tenant_id=caller.tenant_id,
        key_id=caller.key_id,
        own_origin=own_origin(request),
        own_path=settings.public_path,
        seconds=seconds,
        params=wanted.params,
    )
    return UrlToken(token=signed)
