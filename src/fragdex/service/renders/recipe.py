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
from typing import Final

from fragdex.service.renders.browser.timing import View
from fragdex.service.renders.encoders import version
from fragdex.service.renders.messages import view_as_json
from fragdex.service.renders.plan import Wanted

__all__ = ["recipe"]

# Everything of ours that has a say in pixels or samples: whoever changes it makes slices anew.
_OUR_FILES: Final = (
    "encode.py",
    "encoders.py",
    "given_data.py",
    "line.py",
    "pictures.py",
    "repeats.py",
    "rgb.py",
    "site.py",
    "slice.py",
    "stills.py",
)


def recipe(view: View, frames: range, wanted: Wanted, browser_version: str) -> bytes:
    """SHA-256 of all that decides these frames of any page, or the still that is wanted of it.

    >>> from fractions import Fraction
    >>> one, two = View(640, 360, Fraction(30)), View(640, 360, Fraction(60))
    >>> recipe(one, range(60), Wanted(), "1.0") == recipe(two, range(60), Wanted(), "1.0")
    False
    """
    if wanted.still is None:
        what = {"first": frames.start, "stop": frames.stop, "encoder": version(wanted.film)}
    else:
        import PIL

        what = {
            "time_ms": wanted.time_ms,
            "still": asdict(wanted.still),
            "encoder": f"Pillow {PIL.__version__}",
        }
    told = {"view": view_as_json(view), "browser": browser_version, "ours": _ours(), **what}
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
