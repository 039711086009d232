"""URL tokens: a signed bearer that opens GET and HEAD of one URL, and what lies below it.

A JWT (RFC 7519, HS256) with `exp`, so that players can tell when to fetch another. It is bound to
an origin, a path by whole segments, a tenant and the key that asked for it, and dies with that key.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from fragdex.service.errors import InvalidRequest, Unauthenticated

__all__ = ["Grant", "origin_of", "read_token", "segments", "sign"]

ALGORITHM = "HS256"
PORTS = {"http": 80, "https": 443}
MAX_URL = 2048


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token opens."""

    tenant_id: str
    key_id: str
    origin: str
    path: tuple[str, ...]

    def opens(self, method: str, origin: str, path: str) -> bool:
        """Whether a request is inside of the grant.

        >>> grant = Grant("t", "k", "http://localhost:8000", ("api", "v1", "files", "1"))
        >>> grant.opens("GET", "http://localhost:8000", "/api/v1/files/1/tracks/2")
        True
        >>> grant.opens("GET", "http://localhost:8000", "/api/v1/files/12")
        False
        """
        asked = segments(path)
        return (
            method in ("GET", "HEAD")
            and origin == self.origin
            and asked[: len(self.path)] == self.path
        )


def segments(path: str) -> tuple[str, ...]:
    """A decoded path as its segments.

    >>> segments("/api/v1/")
    ('api', 'v1')
    """
    return tuple(part for part in path.split("/") if part)


def origin_of(scheme: str, netloc: str) -> str:
    """Scheme, host and port in one spelling: lower case, no port where it is the usual one.

    >>> origin_of("HTTPS", "Example.org:443")
    'https://example.org'
    """
    scheme, netloc = scheme.lower(), netloc.lower().rpartition("@")[2]
    return f"{scheme}://{netloc.removesuffix(f':{PORTS.get(scheme)}')}"


def sign(
    secret: bytes, url: str, *, tenant_id: str, key_id: str, own_origin: str, seconds: int
) -> str:
    """A token for `url`, which is absolute or a path of this service.

    Raises:
        InvalidRequest: it is no http URL, or its path is not plain.
    """
    if len(url) > MAX_URL:
        raise InvalidRequest(f"a URL has {MAX_URL} characters at most", pointer="/url")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise InvalidRequest("this is no URL", pointer="/url") from None
    if parts.netloc:
        if parts.scheme.lower() not in PORTS:
            raise InvalidRequest("only http and https URLs can be opened", pointer="/url")
        origin = origin_of(parts.scheme, parts.netloc)
    elif parts.scheme or not parts.path.startswith("/"):
        raise InvalidRequest("this is no absolute URL", pointer="/url")
    else:
        origin = own_origin
    path = segments(unquote(parts.path))
    if {".", ".."} & set(path):
        raise InvalidRequest("the path of the URL has steps back", pointer="/url")
    if not path:
        raise InvalidRequest("the URL names no path", pointer="/url")
    now = int(time.time())
    claims = {
        "iat": now,
        "exp": now + seconds,
        "sub": tenant_id,
        "key": key_id,
        "origin": origin,
        "path": "/" + "/".join(path),
    }
    import jwt  # with cryptography, 10 MB; many a service never signs

    return jwt.encode(claims, secret, algorithm=ALGORITHM)


def read_token(secret: bytes, token: str) -> Grant:
    """What a genuine, living token opens.

    Raises:
        Unauthenticated: it is not ours, or its time is over.
    """
    import jwt

    needed = ["exp", "sub", "key", "origin", "path"]
    try:
        claims = jwt.decode(token, secret, algorithms=[ALGORITHM], options={"require": needed})
    except jwt.ExpiredSignatureError:
        raise Unauthenticated("the time of this token is over") from None
    except jwt.InvalidTokenError:
        raise Unauthenticated("this is no token of this service") from None
    return Grant(claims["sub"], claims["key"], claims["origin"], segments(claims["path"]))
