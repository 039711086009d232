"""What lower rooms do for an index.

`index.save`, `index.export`, `index.extend` and seeks that look at pictures are done by rooms below
this one (indexing, formats), which this room must not know: their functions stand here by name, and
are imported when they are first called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

_FUNCTIONS = {
    "export": "fragdex.formats:export",
    "extend": "fragdex.indexing.growing:extend",
    "samples": "fragdex.formats.media_or_index:samples_again",
    "save": "fragdex.formats.fidx:save",
    "seamed": "fragdex.transcode.smart_cut:seamed",
    "verifier": "fragdex.indexing.verified:verifier",
    "window_form": "fragdex.formats.window:window_form",
}


@cache
def offered(name: str) -> Callable[..., Any]:
    """The function under a name.

    >>> offered("export").__module__
    'fragdex.formats'
    """
    module, _, function = _FUNCTIONS[name].partition(":")
    lower: Callable[..., Any] = getattr(import_module(module), function)
    return lower
