"""Operations on url-token. Written by tools/make_client.py."""

from __future__ import annotations

from collections.abc import Mapping

from fragdex.client.api.tokens_records import UrlToken
from fragdex.client.request import Request

__all__ = ["create_url_token"]


def create_url_token(
    *, url: str, params: Mapping[str, str] | None = None, seconds: int | None = None
) -> Request[UrlToken]:
    """Sign a token that opens GET and HEAD of a URL's path, and of what lies below it, for a while.

    It is sent as `Authorization: Bearer TOKEN`, or as `?token=TOKEN` where no header can be sent.

    Args:
        params: parameters that the query of each request must have, once each, with these
            values; others may be beside them.
        seconds: how long it opens the URL, at most `max_url_token_seconds`; default:
            `url_token_seconds`. A token ends with the key that signed it.
        url: absolute, or a path of this service.
    """
    return Request(
        "POST",
        "/api/v1/url-token",
        body={"params": params, "seconds": seconds, "url": url},
        result=UrlToken,
    )
