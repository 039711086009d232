"""What a forked process must neither use nor free: locks and decoders of the process before."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Protocol

__all__ = ["abandon", "begin_anew_in_forks"]


class _Anew(Protocol):
    def begin_anew(self) -> None: ...


_known: weakref.WeakSet[Any] = weakref.WeakSet()


def begin_anew_in_forks(thing: _Anew) -> None:
    """Have `thing.begin_anew()` called in each process that is forked, before anything else."""
    _known.add(thing)


def abandon(thing: Any) -> None:
    """Never free a thing, nor what it holds; its memory is that of the process before."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _after_fork() -> None:
    for thing in list(_known):
        thing.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
