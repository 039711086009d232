"""What decides the pixels of a slice, besides the page: a name under which it is found again.

A slice is kept under its recipe with the list of what was read for it (`SliceMade.reads`). It can
be taken for another render where the recipe is the same and every path of the list reads the same
there, also those where nothing was. Slices that read anything beyond the site are not taken again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from importlib import resources
from typing import Any, Final

from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.encode import encoder_version
from fragdex.service.renders.messages import view_as_json
from fragdex.service.renders.stills import Still

__all__ = ["recipe", "still_recipe"]

# Everything of ours that has a say in pixels or samples: whoever changes it makes slices anew.
_OUR_FILES: Final = ("encode.py", "pictures.py", "repeats.py", "site.py", "slice.py", "stills.py")


def recipe(view: View, first: int, stop: int, browser_version: str) -> bytes:
    """SHA-256 of all that decides frames first … stop-1 of any page.

    >>> from fractions import Fraction
    >>> one, two = View(640, 360, Fraction(30)), View(640, 360, Fraction(60))
    >>> recipe(one, 0, 60, "1.0") == recipe(two, 0, 60, "1.0")
    False
    """
    return _digest(view, browser_version, first=first, stop=stop, encoder=encoder_version())


def still_recipe(view: View, time_ms: int, still: Still, browser_version: str) -> bytes:
    """SHA-256 of all that decides the still of any page."""
    import PIL

    more = {"time_ms": time_ms, "still": asdict(still), "encoder": f"Pillow {PIL.__version__}"}
    return _digest(view, browser_version, **more)


def _digest(view: View, browser_version: str, **more: Any) -> bytes:
    told = {"view": view_as_json(view), "browser": browser_version, "ours": _ours(), **more}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()


@cache
def _ours() -> str:
    whole = hashlib.sha256()
    here = resources.files("fragdex.service.renders")
    files = [here / name for name in _OUR_FILES]
    for room in ("browser", "page_media"):
        files += sorted((here / room).iterdir(), key=lambda file: file.name)
    for file in files:
        if file.name.endswith((".py", ".js")):
            whole.update(file.name.encode() + b"\0" + file.read_bytes())
    return whole.hexdigest()
