"""Modules that are imported when the first of their names is asked for, not before."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["put_off"]


class _Later(ModuleType):
    """Stands where a module is imported, and answers from the module itself."""

    def __init__(self, name: str, together: Sequence[str]) -> None:
        super().__init__(name)
        self.__path__ = []
        self.__together = together

    def __getattr__(self, name: str) -> Any:
        # The import system looks for these before anybody asked for anything.
        if name.startswith("__"):
            raise AttributeError(name)
        inner = f"{self.__name__}.{name}"
        if inner not in self.__together:
            return getattr(_loaded(self.__name__), name)
        stands = sys.modules.get(inner)
        return stands if isinstance(stands, _Later) else _loaded(inner)


class _Others(MetaPathFinder):
    """Whoever imports another part of a package that was put off needs the package itself."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent = fullname.rpartition(".")[0]
        if not isinstance(sys.modules.get(parent), _Later):
            return None
        _loaded(parent)
        return importlib.util.find_spec(fullname)


def _loaded(name: str) -> ModuleType:
    for other, module in [*sys.modules.items()]:
        if isinstance(module, _Later):
            del sys.modules[other]
    return importlib.import_module(name)


@contextmanager
def put_off(*names: str) -> Iterator[None]:
    """Let what is imported inside refer to modules without loading them.

    They are loaded when something of them is asked for, inside or at any time after. Where one is
    loaded already, or is not installed, nothing is put off.

    Args:
        names: modules, each after the package that it is in.
    """
    if any(name in sys.modules for name in names) or importlib.util.find_spec(names[0]) is None:
        yield
        return
    for name in names:
        sys.modules[name] = _Later(name, names)
    others = _Others()
    sys.meta_path.insert(0, others)
    try:
        yield
    finally:
        sys.meta_path.remove(others)
        for name in names:
            if isinstance(sys.modules.get(name), _Later):
                del sys.modules[name]
