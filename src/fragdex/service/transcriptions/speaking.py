"""Errors between a listening process and whoever started it: as JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fragdex import errors as library
from fragdex.errors import FragdexError, UndecodableMedia
from fragdex.service import errors as service
from fragdex.service.errors import ServiceError

__all__ = ["error_as_json", "error_of_json"]

_PLACE = ("path", "offset", "expected", "found")


def error_as_json(error: FragdexError) -> dict[str, Any]:
    """An error of the library or of the service as plain values."""
    plain: dict[str, Any] = {
        "kind": type(error).__name__,
        "message": error.message,
        "advice": error.advice,
    }
    if isinstance(error, UndecodableMedia):
        return plain | {"start": error.start, "stop": error.stop}
    if isinstance(error, ServiceError):
        plain |= {"more": error.more, "pointer": error.pointer, "retry_after": error.retry_after}
    values = {name: getattr(error, name) for name in _PLACE}
    return plain | {
        name: value if isinstance(value, int) else str(value)
        for name, value in values.items()
        if value is not None
    }


def error_of_json(plain: Mapping[str, Any]) -> FragdexError:
    """The same error again.

    >>> error_of_json(error_as_json(library.TrackNotFound("there is no track 3", found=3)))
    TrackNotFound('there is no track 3')
    """
    more = dict(plain)
    name, message = more.pop("kind"), more.pop("message")
    kind: type[FragdexError] = (
        getattr(service, name, None) or getattr(library, name, None) or FragdexError
    )
    if kind is UndecodableMedia:
        made = UndecodableMedia(message, advice=more["advice"])
        made.start, made.stop = more["start"], more["stop"]
        return made
    return kind(message, **more)
