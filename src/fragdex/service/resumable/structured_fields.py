"""The fields of draft-ietf-httpbis-resumable-upload-12 as values; no IO.

They are structured fields (RFC 9651). One that is not as its definition says counts as not sent.
"""

from __future__ import annotations

import base64
import re
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import Final

from fragdex.service.resumable.operations import Checksum

INTEROP_VERSION: Final = "8"
"""What drafts that can speak with each other call themselves."""
CONTENT_TYPE: Final = "application/partial-upload"
ALGORITHMS: Final = {"sha-512": ("sha512", 64), "sha-256": ("sha256", 32)}
"""Those that RFC 9530 calls active, the stronger first: their names in hashlib, and bytes."""

_BARE = (
    r"-?\d{1,12}\.\d{1,3}|-?\d{1,15}|\?[01]|:[A-Za-z0-9+/=]*:"
    r'|"(?:[ !#-\[\]-~]|\\["\\])*"|[A-Za-z*][A-Za-z0-9!#$%&\'*+.^_`|~:/-]*'
)
_PARAMETERS = rf"(?:; *[a-z*][a-z0-9_.*-]*(?:=(?:{_BARE}))?)*"
_INTEGER = re.compile(rf" *(-?\d{{1,15}}){_PARAMETERS} *")
_BOOLEAN = re.compile(rf" *\?([01]){_PARAMETERS} *")
_DIGEST = re.compile(rf"[ \t]*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/=]*):{_PARAMETERS}[ \t]*")


def integer(text: str | None) -> int | None:
    """A number of bytes; None where it is none.

    >>> integer("10"), integer("10;a=1"), integer("-1"), integer("10, 11"), integer("1.0")
    (10, 10, None, None, None)
    """
    found = None if text is None else _INTEGER.fullmatch(text)
    number = -1 if found is None else int(found[1])
    return None if number < 0 else number


def boolean(text: str | None) -> bool | None:
    """Whether; None where the field does not say it.

    >>> boolean("?1"), boolean("?0"), boolean("true"), boolean("?1, ?1")
    (True, False, None, None)
    """
    found = None if text is None else _BOOLEAN.fullmatch(text)
    return None if found is None else found[1] == "1"


def item(value: bool | int) -> str:
    """A value as a field.

    >>> item(True), item(10)
    ('?1', '10')
    """
    return f"?{value:d}" if isinstance(value, bool) else str(value)


def limits(**found: int | None) -> str:
    """`Upload-Limit`, of the limits that there are.

    >>> limits(max_size=100, max_age=None, min_size=0)
    'max-size=100, min-size=0'
    """
    return ", ".join(
        f"{name.replace('_', '-')}={number}" for name, number in found.items() if number is not None
    )


def _digests(text: str | None) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for member in (text or "").split(","):
        one = _DIGEST.fullmatch(member)
        if one is None:
            return {}
        try:
            found[one[1]] = base64.b64decode(one[2], validate=True)
        except ValueError:
            return {}
    return found


def content_digest(text: str | None) -> Checksum | None:
    """The strongest digest of `Content-Digest` (RFC 9530, 2) that is known here, or None.

    >>> content_digest("md5=:1B2M2Y8AsgTpgAmY7PhCfg==:") is None
    True
    """
    found = _digests(text)
    for name, (function, size) in ALGORITHMS.items():
        if len(found.get(name, b"")) == size:
            return Checksum(function, found[name])
    return None


def md5_of(text: str | None) -> str | None:
    """The md5 in `Repr-Digest` (RFC 9530, 3), by which files are known here, or None.

    >>> md5_of("md5=:1B2M2Y8AsgTpgAmY7PhCfg==:")
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    found = _digests(text).get("md5", b"")
    return found.hex() if len(found) == 16 else None


def filename_of(text: str | None) -> str | None:
    """The name in `Content-Disposition` (RFC 6266), without folders; None where there is none.

    >>> filename_of("inline; filename*=UTF-8''film%20%C3%A4.mp4"), filename_of("inline")
    ('film ä.mp4', None)
    """
    if text is None:
        return None
    message = Message()
    message["Content-Disposition"] = text
    try:
        given = message.get_params([], "Content-Disposition")
        names = [value for name, value in given if name == "filename"]
        # the extended form comes before the other (RFC 6266, 4.3)
        names.sort(key=lambda value: isinstance(value, str))
        name = collapse_rfc2231_value(names[0]) if names else ""
    except (ValueError, LookupError, TypeError):
        return None
    return re.split(r"[/\\]", name)[-1].strip() or None
