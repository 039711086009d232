"""What decides the pixels of a slice, besides the page: a name under which it is found again.

A slice is kept under its recipe with the list of what was read for it (`SliceMade.reads`). It can
be taken for another render where the recipe is the same and every path of the list reads the same
there, also those where nothing was. Slices that read anything beyond the site are not taken again.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

import fragdex
from fragdex.errors import EngineUnavailable
from fragdex.rendering.browser.finding import find_engine
from fragdex.rendering.browser.model import PageView
from fragdex.rendering.encode import version
from fragdex.rendering.messages import view_as_json
from fragdex.rendering.spec import RenderSpec

# The code that drives a browser or runs next to it. All that they import affects pixels.
_ENGINE: Final = (
    "fragdex.rendering.child",
    "fragdex.rendering.render",
)
_IMPORT: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))",
    re.MULTILINE,
)


def recipe(view: PageView, frames: range, spec: RenderSpec, browser_version: str) -> bytes:
    """SHA-256 of all that decides these frames of any page, or the still that is wanted of it."""
    if spec.still is None:
        what = {"first": frames.start, "stop": frames.stop, "encoder": version(spec.film)}
    else:
        what = {
            "time_ms": spec.time_ms,
            "still": asdict(spec.still),
        }
    ingredients = {"view": view_as_json(view), "browser": browser_version, "ours": _ours(), **what}
    return hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).digest()


def browser_mark() -> str:
    """What tells one Chromium from another, without starting it."""
    path = find_engine().path
    try:
        seen = path.stat()
    except OSError:
        raise EngineUnavailable("the Chromium of this machine is gone") from None
    return f"{path.name} {seen.st_size} {seen.st_mtime_ns}"


def engine_modules() -> tuple[dict[str, Path], set[str]]:
    """The modules of fragdex that the engine imports, with their files, and foreign packages.

    Read from the text of import statements, wherever they stand: what one process has imported by
    chance does not tell.
    """
    ours: dict[str, Path] = {}
    foreign: set[str] = set()
    seen: set[str] = set()
    waiting = list(_ENGINE)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        file = _file_of(name)
        if file is None:
            continue
        ours[name] = file
        waiting.append(name.rpartition(".")[0])
        for module, names, plain in _IMPORT.findall(file.read_text("utf-8")):
            target = module or plain
            if target.partition(".")[0] == "fragdex":
                waiting += [target, *(f"{target}.{one}" for one in re.findall(r"\w+", names))]
            else:
                foreign.add(target.partition(".")[0])
    return ours, foreign - set(sys.stdlib_module_names)


def _file_of(module: str) -> Path | None:
    path = Path(fragdex.__file__).parents[1].joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


@cache
def _ours() -> str:
    return code_digest()


def code_digest() -> str:
    """SHA-256 of the engine's own code, its scripts, and the versions of the packages it uses."""
    modules, packages = engine_modules()
    files, root = set(modules.values()), Path(fragdex.__file__).parent
    files.update(root.glob("_native*.so"))
    for folder in {file.parent for file in files}:
        # scripts that are put into pages
        files.update(folder.glob("*.js"))
    whole = hashlib.sha256()
    for file in sorted(files):
        whole.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    for name in sorted(packages):
        whole.update(f"{name} {_version_of(name)}\0".encode())
    return whole.hexdigest()


def _version_of(package: str) -> str:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    # it has another name where it is installed from, as PIL has
    return " ".join(sorted(one.version for one in metadata.distributions() if _has(one, package)))


def _has(distribution: metadata.Distribution, package: str) -> bool:
    """Whether a package is in a distribution, by the text of its lists: parsing all takes longer.

    The lists: RECORD (PEP 376), and top_level.txt of setuptools, where systems write no RECORD.
    """
    files = distribution.read_text("RECORD") or ""
    names = distribution.read_text("top_level.txt") or ""
    return f"\n{package}/" in f"\n{files}" or package in names.split()
