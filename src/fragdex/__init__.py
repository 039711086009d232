"""fragdex finds the bytes of any moment of an MP4 without reading the media.

    import fragdex

    index = fragdex.index("movie.mp4")
    hit = index.track(1).seek(3600.5)
    hit.range, hit.time, hit.sample

Names are imported when they are first used: `import fragdex` alone costs a few milliseconds.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as in typing, whose import takes longer than all the rest
if TYPE_CHECKING:
    from fragdex import boxes as boxes
    from fragdex import byterange as byterange
    from fragdex import data as data
    from fragdex import decoding as decoding
    from fragdex import digest as digest
    from fragdex import errors as errors
    from fragdex import formats as formats
    from fragdex import frames as frames
    from fragdex import media as media
    from fragdex import muxing as muxing
    from fragdex import packaging as packaging
    from fragdex import seeking as seeking
    from fragdex import sources as sources
    from fragdex import tables as tables
    from fragdex.byterange import ByteRange
    from fragdex.errors import FragdexError
    from fragdex.formats.fidx import open_index
    from fragdex.formats.media_or_index import verify
    from fragdex.fragments.findings import Finding
    from fragdex.frames.frames import Frames
    from fragdex.indexing.growing import Indexer
    from fragdex.indexing.making import index
    from fragdex.muxing.kinds import clip, join, view
    from fragdex.muxing.view import View
    from fragdex.packaging.package import Package, package
    from fragdex.repairing.repair import Repair, repair
    from fragdex.seeking.model import Index, Track
    from fragdex.seeking.plan import Plan, Span
    from fragdex.seeking.seek import Hit, Hits
    from fragdex.seeking.times import Time, TimeLike
    from fragdex.seeking.window import Window
    from fragdex.sources import Source, SourceLike, open_source

__version__ = "0.1.0"

_HOMES = {
    "ByteRange": "byterange",
    "Finding": "fragments.findings",
    "FragdexError": "errors",
    "Frames": "frames.frames",
    "Hit": "seeking.seek",
    "Hits": "seeking.seek",
    "Index": "seeking.model",
    "Indexer": "indexing.growing",
    "Package": "packaging.package",
    "Plan": "seeking.plan",
    "Repair": "repairing.repair",
    "Source": "sources",
    "SourceLike": "sources",
    "Span": "seeking.plan",
    "Time": "seeking.times",
    "TimeLike": "seeking.times",
    "Track": "seeking.model",
    "View": "muxing.view",
    "Window": "seeking.window",
    "clip": "muxing.kinds",
    "index": "indexing.making",
    "join": "muxing.kinds",
    "open_index": "formats.fidx",
    "open_source": "sources",
    "package": "packaging.package",
    "repair": "repairing.repair",
    "verify": "formats.media_or_index",
    "view": "muxing.kinds",
}
_MODULES = frozenset(
    {
        "boxes",
        "byterange",
        "client",
        "data",
        "decoding",
        "digest",
        "errors",
        "formats",
        "frames",
        "indexing",
        "media",
        "origin",
        "rendering",
        "repairing",
        "seeking",
        "sources",
        "speech",
        "tables",
        "testing",
        "transcode",
        "muxing",
        "packaging",
    }
)
"""Imported when they are first named: `fragdex.errors`, `fragdex.boxes` and so on."""

__all__ = [
    "ByteRange",
    "Finding",
    "FragdexError",
    "Frames",
    "Hit",
    "Hits",
    "Index",
    "Indexer",
    "Package",
    "Plan",
    "Repair",
    "Source",
    "SourceLike",
    "Span",
    "Time",
    "TimeLike",
    "Track",
    "View",
    "Window",
    "clip",
    "index",
    "join",
    "open_index",
    "open_source",
    "package",
    "repair",
    "verify",
    "view",
]


if not TYPE_CHECKING:  # to type checkers, every name would be there

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return importlib.import_module(f"fragdex.{name}")
        if name not in _HOMES:
            advice = ""
            if not name.startswith("__"):
                from fragdex.errors import did_you_mean

                longer = [known for known in __all__ if known.startswith(f"{name}_")]
                near = f"; did you mean {' or '.join(longer)}?" if longer else ""
                advice = near or did_you_mean(name, __all__)
            raise AttributeError(f"module 'fragdex' has no attribute {name!r}{advice}")
        value = getattr(importlib.import_module(f"fragdex.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The names of the face and no others: what tab completion offers is what is promised."""
    return [*sorted(__all__), "__version__"]
