"""Errors between a child and its parent as JSON and back, and what the end of a child means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fragdex import errors as kinds
from fragdex.errors import (
    FragdexError,
    ServiceError,
    StoreFull,
    Unavailable,
    UndecodableMedia,
    Unprocessable,
)

__all__ = ["CRASHES", "Failures", "error_as_json", "error_of_json"]

# Signals that a program sends itself by its faults: what it was given broke it, and will again.
CRASHES: Final = frozenset(
    {"SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGBUS", "SIGXFSZ", "SIGTRAP", "SIGSYS"}
)
_PLACE: Final = ("path", "offset", "expected", "found")


@dataclass(frozen=True, slots=True)
class Failures:
    """What the end of a child means to whoever wanted its work.

    Args:
        what: which part of the service works there, and on what.
        input: what it was given.
        by_input: the error where the input is to blame: nobody tries again.
        gone: the error where nobody knows that it is: somebody may try again.

    >>> failures = Failures("the decoder", "this file")
    >>> failures.ended("SIGSEGV", "")
    Unprocessable('the decoder broke on this file')
    >>> failures.ended("SIGKILL", "")
    Unavailable('the decoder was ended by SIGKILL')
    """

    what: str
    input: str
    by_input: type[ServiceError] = Unprocessable
    gone: type[ServiceError] = Unavailable

    def memory(self) -> ServiceError:
        """It took more memory than it may have."""
        return self.by_input(f"{self.input} needs more memory than {self.what} may have")

    def hung(self) -> ServiceError:
        """It did not say a word for long."""
        return self.by_input(f"{self.what} hung on {self.input}")

    def ended(self, ending: str | int, words: str) -> Exception:
        """It ended with a signal or an exit code, and wrote something last."""
        # An interpreter that gives up for want of memory ends with SIGABRT.
        if "MemoryError" in words and (isinstance(ending, int) or ending in CRASHES):
            return self.memory()
        if ending in CRASHES:
            return self.by_input(f"{self.what} broke on {self.input}", found=ending)
        if ending == "SIGXCPU":
            return self.by_input(f"{self.input} takes {self.what} more processor time than it may")
        if isinstance(ending, str):
            return self.gone(f"{self.what} was ended by {ending}", retry_after=5)
        if "File too large" in words:
            return self.by_input(f"{self.what} would write more than it may of {self.input}")
        if "No space left on device" in words:
            return StoreFull(f"no room for what {self.what} makes", retry_after=60)
        kind = RuntimeError if self.gone is Unavailable else self.gone
        return kind(f"{self.what} ended with {ending}: {words}")


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

    >>> error_of_json(error_as_json(kinds.TrackNotFound("there is no track 3", found=3)))
    TrackNotFound('there is no track 3')
    """
    more = dict(plain)
    name, message = more.pop("kind"), more.pop("message")
    kind: type[FragdexError] = getattr(kinds, name, None) or FragdexError
    if kind is UndecodableMedia:
        made = UndecodableMedia(message, advice=more["advice"])
        made.start, made.stop = more["start"], more["stop"]
        return made
    return kind(message, **more)
