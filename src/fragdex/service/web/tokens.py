"""URL tokens: a signed bearer that opens GET and HEAD of one URL, and what lies below it.

Parameters may be named that each request has to have, such as the `url` of media elsewhere.

A JWT (RFC 7519, HS256) with `exp`, so that players can tell when to fetch another. It is bound to
an origin, a path by whole segments, a tenant and the key that asked for it, and dies with that key.

Each request is checked, by the clock of the machine that answers, without leeway. A download that
began in time is sent to its end; a stream of events breaks off when its token ends.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from fragdex.errors import InvalidRequest, Unauthenticated

if TYPE_CHECKING:
    from jwt.types import Options

__all__ = [
    "MAX_BEARER",
    "MAX_URL",
    "OVER",
    "URL",
    "Grant",
    "origin_of",
    "read_token",
    "segments",
    "sign",
]

ALGORITHM = "HS256"
PORTS = {"http": 80, "https": 443}
MAX_URL = 2048
MAX_BEARER = 4096
OVER = "the time of this token is over"

_SLASH = "(?:/|%2[Ff])"
_PLAIN = r"[^/?#\x00-\x20\\"
_PORT = "[0-9]{1,4}|[1-5][0-9]{4}|6(?:[0-4][0-9]{3}|5(?:[0-4][0-9]{2}|5(?:[0-2][0-9]|3[0-5])))"
_HOST = rf"(?:{_PLAIN}@]*@)?(?:{_PLAIN}@:\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(?:{_PORT})?)?"
URL = (
    rf"(?:([Hh][Tt][Tt][Pp][Ss]?)://({_HOST})|(?!//))"
    # one segment at least, and none that leads back
    rf"(?![^?#]*{_SLASH}(?:\.|%2[Ee]){{1,2}}(?:[?#]|$|{_SLASH}))"
    rf"(/{_SLASH}*(?!{_SLASH})[^?#\x00-\x20\\]+)"
    r"(?:[?#][^\x00-\x20]*)?"
)
"""The URL of a token as a pattern: absolute, or a path; scheme, host and path are its groups."""

_URL = re.compile(URL)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token opens."""

    tenant_id: str
    key_id: str
    origin: str
    path: tuple[str, ...]
    ends: float = math.inf
    """Seconds since 1970 by this machine's clock: from then on it opens nothing."""
    params: tuple[tuple[str, str], ...] = ()
    """What the query of each request has, once each and decoded, whatever else it has."""

    def opens(
        self, method: str, origin: str, path: str, query: Sequence[tuple[str, str]] = ()
    ) -> bool:
        """Whether a request is inside of the grant.

        >>> grant = Grant("t", "k", "http://localhost:8000", ("api", "v1", "files", "1"))
        >>> grant.opens("GET", "http://localhost:8000", "/api/v1/files/1/tracks/2")
        True
        >>> grant.opens("GET", "http://localhost:8000", "/api/v1/files/12")
        False

        Args:
            query: its parameters, decoded.
        """
        asked = segments(path)
        return (
            method in ("GET", "HEAD")
            and origin == self.origin
            and asked[: len(self.path)] == self.path
            and all(
                [value for own, value in query if own == name] == [wanted]
                for name, wanted in self.params
            )
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
    secret: bytes,
    url: str,
    *,
    tenant_id: str,
    key_id: str,
    own_origin: str,
    own_path: str,
    seconds: int,
    params: Mapping[str, str] | None = None,
) -> str:
    """A token for `url`, which is absolute or a path of this service.

    Args:
        params: see `Grant`.

    Raises:
        InvalidRequest: it is no http URL, or its path is not plain; or the token would be longer
            than one that is accepted.
    """
    parts = _URL.fullmatch(url)
    if parts is None:
        raise InvalidRequest("this is not an http URL with a plain path", pointer="/url")
    scheme, netloc, plain = parts.groups()
    origin = own_origin if scheme is None else origin_of(scheme, netloc)
    path = segments(unquote(plain))
    if scheme is None:
        path = _below(segments(own_path), path)
    now = int(time.time())
    claims: dict[str, Any] = {
        "iat": now,
        "exp": now + seconds,
        "sub": tenant_id,
        "key": key_id,
        "origin": origin,
        "path": "/" + "/".join(path),
    }
    if params:
        claims["params"] = dict(params)
    import jwt  # with cryptography, 10 MB; many a service never signs

    token = jwt.encode(claims, secret, algorithm=ALGORITHM)
    if len(token) > MAX_BEARER:
        raise InvalidRequest(
            "these parameters make too long a token",
            pointer="/params",
            expected=f"a token of at most {MAX_BEARER} characters",
            found=len(token),
        )
    return token


def _below(prefix: tuple[str, ...], path: tuple[str, ...]) -> tuple[str, ...]:
    """A path of this service with the prefix of its public URL, which it may have already.

    >>> _below(("api",), ("api", "v1", "files")), _below(("api",), ("api", "api", "v1"))
    (('api', 'api', 'v1', 'files'), ('api', 'api', 'v1'))
    """
    rest = path[len(prefix) :][:2]
    if path[: len(prefix)] == prefix and rest == ("api", "v1")[: len(rest)]:
        return path
    return prefix + path


def read_token(secret: bytes, token: str) -> Grant:
    """What a genuine, living token opens.

    Raises:
        Unauthenticated: it is not ours, or its time is over.
    """
    import jwt

    needed = ["exp", "sub", "key", "origin", "path"]
    # `iat` is for clients: a machine whose clock is a second ahead signs in our future
    options: Options = {"require": needed, "verify_iat": False}
    try:
        claims = jwt.decode(token, secret, algorithms=[ALGORITHM], options=options)
    except jwt.ExpiredSignatureError:
        raise Unauthenticated(OVER) from None
    except jwt.InvalidTokenError:
        raise Unauthenticated("this is not a token of this service") from None
    path = segments(claims["path"])
    params = tuple(claims.get("params", {}).items())
    return Grant(claims["sub"], claims["key"], claims["origin"], path, float(claims["exp"]), params)
