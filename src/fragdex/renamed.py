"""Old names, which work until 0.2 and warn: the only place that knows them.

docs/moving.md lists them for readers; a test holds it to these tables. Type checkers see the new
names alone.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeVar

__all__ = [
    "ARGUMENTS",
    "ATTRIBUTES",
    "CALLS",
    "FORMER",
    "NAMES",
    "OPTIONS",
    "OldName",
    "OldTuple",
    "old_arguments",
    "old_calls",
    "old_name",
    "renewed_options",
]

UNTIL: Final = "0.2"
"""The version that knows the old names no more."""

NAMES: Final[Mapping[str, str]] = {
    "Box": "boxes.Box",
    "FragmentFlags": "tables.FragmentFlags",
    "FragmentIndex": "Index",
    "FragmentTable": "tables.FragmentTable",
    "Md5": "digest.Md5",
    "NULL": "tables.NULL",
    "SampleTable": "tables.SampleTable",
    "SyncTable": "tables.SyncTable",
    "TrackIndex": "Track",
    "audio": "media.audio",
    "coalesce": "byterange.coalesce",
    "content_range": "byterange.content_range",
    "loudness": "media.loudness",
    "make_box": "boxes.make_box",
    "md5": "sources.md5",
    "parse": "boxes.parse",
    "parse_box": "boxes.parse_box",
    "parse_content_range": "byterange.parse_content_range",
    "parse_range": "byterange.parse_range",
    "peaks": "media.peaks",
    "plan_reads": "byterange.plan_reads",
    "storyboard": "media.storyboard",
    "thumbnail": "media.thumbnail",
}
"""Of the module `fragdex`: the old name, and the new one with the modules before it."""

OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "seek": {"--until": "--stop"},
    "render": {"--from": "--start", "--to": "--stop"},
    "thumbnail": {"--exact": "--at=frame"},
    "view": {"--seconds": "--segment-duration", "--inexact": "--at-key-frame"},
    "package": {"--seconds": "--segment-duration"},
    "origin": {"--seconds": "--segment-duration"},
    "index": {"--min-segment-ms": "--segment-duration"},
}
"""Of the command line: {command: {old option: new one}}."""

FORMER: Final[Mapping[str, str]] = {
    "audio": "decoding.audio.audio",
    "loudness": "decoding.sound_levels.loudness",
    "parse_range": "byterange.range_or_verdict",
    "peaks": "decoding.sound_levels.peaks",
    "storyboard": "decoding.storyboards.storyboard",
    "thumbnail": "decoding.picture_files.thumbnail",
}
"""What does what the old name did, where the new one takes or gives something else."""

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
    "package.indexes": "what",
    "package.seconds": "segment_duration",
    "thumbnail.exact": "at",
    "view.index": "what",
    "view.seconds": "segment_duration",
}
"""`function.old` → the new name of the keyword argument."""

CALLS: Final[Mapping[str, str]] = {
    "view('clip')": "clip(…)",
    "view('init')": "package(…)['v1/init.mp4']",
    "view('segment')": "package(…)['v1/TIME.m4s']",
    "view('timeline')": "join(…)",
}
"""Calls by their second argument → what to call now."""

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
    home, _, last = f"fragdex.{FORMER.get(name, new)}".rpartition(".")
    return getattr(importlib.import_module(home), last)


class OldName:
    """An attribute under its old name, which `ATTRIBUTES` must list: `end = OldName()`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = f"{owner.__name__}.{name}"
        self.new = ATTRIBUTES[self.old]
        self.__doc__ = f"The old name of `{self.new}`."

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        _warn(self.old, self.new)
        return getattr(instance, self.new)

    def __set__(self, instance: Any, value: object) -> None:
        raise AttributeError(f"{self.old} is now {self.new}, and cannot be set")


class OldTuple:
    """A value that was a tuple: it can still be unpacked and indexed, with a warning."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __iter__(self) -> Iterator[object]:
            name = type(self).__name__
            _warn(f"{name} as a tuple", f"a value: use the attributes of {name}")
            return iter(tuple(getattr(self, slot) for slot in self.__slots__))

        def __getitem__(self, place: int) -> object:
            name = type(self).__name__
            _warn(f"{name}[{place}]", f"{name}.{self.__slots__[place]}")
            return getattr(self, self.__slots__[place])


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


def old_calls(former: Callable[[], Callable[..., Any]]) -> Callable[[Function], Function]:
    """A function that once did what others do now, by its second argument, which `CALLS` lists.

    Args:
        former: gives what still does it, with the arguments of before.
    """

    def decorate(function: Function) -> Function:
        name, warn, calls = function.__qualname__, _warn, CALLS

        def call(*given: Any, **named: Any) -> Any:
            second = given[1] if len(given) > 1 else named.get("kind")
            old = f"{name}({second!r})"
            if old in calls:
                warn(old, calls[old])
                return former()(*given, **named)
            return function(*given, **named)

        code, closure = call.__code__, call.__closure__
        renamed = FunctionType(code, function.__globals__, function.__name__, None, closure)
        return functools.wraps(function)(renamed)  # type: ignore[return-value]

    return decorate


def renewed_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Arguments of the command line with the new names of options, and a sentence for each old one.

    >>> renewed_options(["seek", "a.mp4", "1", "--until=2"])
    (['seek', 'a.mp4', '1', '--stop=2'], ['--until is now --stop; the old name goes in 0.2'])
    >>> renewed_options(["index", "a.mp4", "--min-segment-ms", "2500"])[0]
    ['index', 'a.mp4', '--segment-duration', '2.500']
    """
    names = OPTIONS.get(arguments[0], {}) if arguments else {}
    renewed: list[str] = []
    advice: list[str] = []
    is_milliseconds = False
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*renewed, *arguments[place:]], advice
        old, equals, value = argument.partition("=")
        new = names.get(old)
        if new is not None:
            advice.append(f"{old} is now {new}; the old name goes in {UNTIL}")
            in_ms = old.endswith("-ms")
            argument = f"{new}{equals}{_seconds(value) if in_ms else value}"
            is_milliseconds = in_ms and not equals
        elif is_milliseconds:
            argument, is_milliseconds = _seconds(argument), False
        renewed.append(argument)
    return renewed, advice


def _seconds(milliseconds: str) -> str:
    """A whole number of milliseconds in seconds; any other text as it is."""
    if not (milliseconds.isascii() and milliseconds.isdigit()):
        return milliseconds
    digits = milliseconds.zfill(4)
    return f"{digits[:-3]}.{digits[-3:]}"
