"""Old names, which work until 0.2 and warn: the only place that knows them.

docs/moving.md lists them for readers; a test holds it to these tables. Type checkers see the new
names alone.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final, TypeVar

__all__ = ["ARGUMENTS", "ATTRIBUTES", "NAMES", "OldName", "old_arguments", "old_name"]

UNTIL: Final = "0.2"
"""The version that knows the old names no more."""

NAMES: Final[Mapping[str, str]] = {
    "FragmentIndex": "Index",
    "TrackIndex": "Track",
}
"""Of the module `fragdex`: the old name, and the new one with the modules before it."""

ATTRIBUTES: Final[Mapping[str, str]] = {
    "Index.ranges": "span",
    "Index.source": "file",
    "FragmentTable.sync": "first_sync",
    "Frames.closest_sync": "closest_key_frame",
    "Frames.sync": "key_frames",
    "Time.exact": "fraction",
    "Track.end": "stop",
    "Track.sync": "sync_samples",
}
"""`Class.old` → the new name of the attribute."""

ARGUMENTS: Final[Mapping[str, str]] = {
    "Exporting.export.min_segment_ms": "segment_duration",
    "Titles.seconds": "segment_duration",
    "package.seconds": "segment_duration",
    "view.seconds": "segment_duration",
}
"""`function.old` → the new name of the keyword argument."""

Function = TypeVar("Function", bound=Callable[..., Any])


def _warn(old: str, new: str) -> None:
    warnings.warn(
        f"{old} is now {new}; the old name works until {UNTIL}", DeprecationWarning, stacklevel=3
    )


def old_name(name: str) -> Any:
    """What `fragdex.NAME` was, by its new name, with a warning.

    Raises:
        AttributeError: there was no such name.
    """
    if name not in NAMES:
        raise AttributeError(f"module 'fragdex' has no attribute {name!r}")
    new = NAMES[name]
    warnings.warn(
        f"fragdex.{name} is now fragdex.{new}; the old name works until {UNTIL}",
        DeprecationWarning,
        stacklevel=3,
    )
    home, _, last = f"fragdex.{new}".rpartition(".")
    return getattr(importlib.import_module(home), last)


class OldName:
    """An attribute under its old name, which `ATTRIBUTES` must list: `end = OldName()`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = f"{owner.__name__}.{name}"
        self.new = ATTRIBUTES[self.old]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        _warn(self.old, self.new)
        return getattr(instance, self.new)


def old_arguments(**old: Callable[[Any], Any] | None) -> Callable[[Function], Function]:
    """Keyword arguments of a function under their old names, which `ARGUMENTS` must list.

    Args:
        old: the old name, and what makes its value the new one; None: they are the same.
    """

    def decorate(function: Function) -> Function:
        name = function.__qualname__.rpartition("<locals>.")[2].removesuffix(".__init__")
        warn = _warn  # what `call` uses comes by its closure: its globals are others
        moved = {key: ARGUMENTS[f"{name}.{key}"] for key in old}

        def call(*given: Any, **named: Any) -> Any:
            for key in [key for key in named if key in moved]:
                new, change = moved[key], old[key]
                warn(f"{name}({key}=)", f"{new}=")
                if new in named:
                    raise TypeError(f"{name}: {key}= is the old name of {new}=; both are given")
                value = named.pop(key)
                named[new] = value if change is None else change(value)
            return function(*given, **named)

        # With the globals of the function, by which doctest knows where it is from.
        code, closure = call.__code__, call.__closure__
        renamed = FunctionType(code, function.__globals__, function.__name__, None, closure)
        return functools.wraps(function)(renamed)  # type: ignore[return-value]

    return decorate
