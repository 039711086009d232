"""`POST /api/v1/url-token`: a key makes a token that opens one URL for a while."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request
from pydantic import Field

from fragdex.errors import Forbidden, InvalidRequest
from fragdex.service.config import MOST_TOKEN_SECONDS
from fragdex.service.records import keys
from fragdex.service.web import tokens
from fragdex.service.web.auth import Asking, Authenticator, InContext, own_origin
from fragdex.service.web.fields import (
    JSON_NUMBER,
    ApiModel,
    written_as,
)
from fragdex.service.web.routing import api_router, needs_scope

__all__ = ["router"]

router = api_router("url-token")


MOST_PARAMS = 20
ParamValue = Annotated[str, Field(max_length=tokens.MAX_URL)]


class WantedToken(ApiModel):
    """What is to be opened."""

    url: Annotated[
        str,
        Field(max_length=tokens.MAX_URL),
        written_as(tokens.URL, "an http URL or a path, without steps back (`..`),"),
    ] = Field(
        description="absolute, or a path of this service",
        examples=["/api/v1/isobmff_tracks/0192f0c1-0000-7000-8000-000000000000/1"],
    )

    params: Annotated[dict[str, ParamValue], Field(max_length=MOST_PARAMS)] = Field(
        {},
        description="parameters that the query of each request must have, once each, with these "
        "values; others may be beside them",
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


@router.post("/url-token")
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
    signed = tokens.sign(
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
