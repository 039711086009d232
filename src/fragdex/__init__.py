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
    from fragdex.boxes import Box, make_box, parse, parse_box
    from fragdex.byterange import (
        ByteRange,
        coalesce,
        content_range,
        parse_content_range,
        parse_range,
        plan_reads,
    )
    from fragdex.decoding.audio import audio
    from fragdex.decoding.loudness import loudness
    from fragdex.decoding.peaks import peaks
    from fragdex.decoding.storyboards import storyboard
    from fragdex.decoding.thumbnails import thumbnail
    from fragdex.digest import Md5
    from fragdex.errors import FragdexError
    from fragdex.formats.fidx import open_index
    from fragdex.fragments.findings import Finding
    from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, SampleTable, SyncTable
    from fragdex.frames.frames import Frames
    from fragdex.indexing import Indexer, index
    from fragdex.repairing.repair import Repair, repair
    from fragdex.seeking.model import Index, Track
    from fragdex.seeking.plan import Plan, Span
    from fragdex.seeking.seek import Hit, Hits
    from fragdex.seeking.times import Time
    from fragdex.seeking.window import Window
    from fragdex.sources import Source, md5, open_source
    from fragdex.views.kinds import view
    from fragdex.views.package import Package, package
    from fragdex.views.view import View

__version__ = "0.1.0"

_HOMES = {
    "NULL": "fragments.table",
    "Box": "boxes",
    "ByteRange": "byterange",
    "Finding": "fragments.findings",
    "FragdexError": "errors",
    "FragmentFlags": "fragments.table",
    "FragmentTable": "fragments.table",
    "Frames": "frames.frames",
    "Hit": "seeking.seek",
    "Hits": "seeking.seek",
    "Index": "seeking.model",
    "Indexer": "indexing",
    "Md5": "digest",
    "Package": "views.package",
    "Plan": "seeking.plan",
    "Repair": "repairing.repair",
    "SampleTable": "fragments.table",
    "Source": "sources",
    "Span": "seeking.plan",
    "SyncTable": "fragments.table",
    "Time": "seeking.times",
    "Track": "seeking.model",
    "View": "views.view",
    "Window": "seeking.window",
    "audio": "decoding.audio",
    "coalesce": "byterange",
    "content_range": "byterange",
    "index": "indexing",
    "loudness": "decoding.loudness",
    "make_box": "boxes",
    "md5": "sources",
    "open_index": "formats.fidx",
    "open_source": "sources",
    "package": "views.package",
    "parse": "boxes",
    "parse_box": "boxes",
    "parse_content_range": "byterange",
    "parse_range": "byterange",
    "peaks": "decoding.peaks",
    "plan_reads": "byterange",
    "repair": "repairing.repair",
    "storyboard": "decoding.storyboards",
    "thumbnail": "decoding.thumbnails",
    "view": "views.kinds",
}

__all__ = [
    "NULL",
    "Box",
    "ByteRange",
    "Finding",
    "FragdexError",
    "FragmentFlags",
    "FragmentTable",
    "Frames",
    "Hit",
    "Hits",
    "Index",
    "Indexer",
    "Md5",
    "Package",
    "Plan",
    "Repair",
    "SampleTable",
    "Source",
    "Span",
    "SyncTable",
    "Time",
    "Track",
    "View",
    "Window",
    "audio",
    "coalesce",
    "content_range",
    "index",
    "loudness",
    "make_box",
    "md5",
    "open_index",
    "open_source",
    "package",
    "parse",
    "parse_box",
    "parse_content_range",
    "parse_range",
    "peaks",
    "plan_reads",
    "repair",
    "storyboard",
    "thumbnail",
    "view",
]


if not TYPE_CHECKING:  # to type checkers, every name would be there

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            return importlib.import_module("fragdex.renamed").old_name(name)
        value = getattr(importlib.import_module(f"fragdex.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The names of the face and no others: what tab completion offers is what is promised."""
    return [*sorted(__all__), "__version__"]
