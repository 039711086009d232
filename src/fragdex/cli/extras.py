"""Imports of what an extra brings."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

from fragdex.errors import MissingExtra

# What cannot be had without an extra, and the packages that are imported only when they are used.
_EXTRAS: Final = {
    "service": ("the service", ()),
    "render": ("rendering", ("av", "PIL")),
    "speech": ("transcribing", ("av",)),
}


@contextmanager
def extra(name: str) -> Iterator[None]:
    """A block of imports that need an extra.

    Raises:
        MissingExtra: a package is not installed.
    """
    # What is imported stays: to look for garbage in it takes a quarter of a start.
    collects = gc.isenabled()
    gc.disable()
    what, packages = _EXTRAS[name]
    try:
        for package in packages:
            if find_spec(package) is None:
                raise ModuleNotFoundError(package, name=package)
        yield
    except ModuleNotFoundError as error:
        if (error.name or "fragdex").split(".")[0] == "fragdex":
            raise
        raise MissingExtra(f"{what} needs the package {error.name}", extra=name) from None
    finally:
        if collects:
            gc.enable()
            gc.freeze()
