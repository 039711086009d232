"""What a check reports: the rule that is broken, where it is written, and where it is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import urljoin, urlsplit

from fragdex.record import record

Read: TypeAlias = Callable[[str], bytes]
"""The bytes of a URI, as it stands in the playlist or manifest, resolved against its own."""


class BadAddress(ValueError):
    """A URI that cannot be resolved; raised inside of a check alone."""


def joined(base: str, uri: str) -> str:
    """A URI resolved against that of the text it stands in (RFC 3986, 5.2).

    Raises:
        BadAddress: it is invalid.
    """
    try:
        urlsplit(uri)  # without a base it would be taken as it is
        return urljoin(base, uri)
    except ValueError as error:
        raise BadAddress(f"{uri[:80]!r} is no URI: {error}") from None


@record(frozen=True, slots=True)
class Violation:
    """A rule of a standard that is broken at a place.

    Attributes:
        rule: a short name that does not change, such as `target-duration`.
        clause: the standard and its clause.
        where: a line, the path of an element, or a box and its offset.
        message: what is wrong there.

    >>> str(Violation("extm3u", "RFC 8216, 4.3.1.1", "line 1", "#EXTM3U is missing"))
    'line 1: #EXTM3U is missing (extm3u; RFC 8216, 4.3.1.1)'
    """

    rule: str
    clause: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message} ({self.rule}; {self.clause})"
