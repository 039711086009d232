"""Files of a package, whose lists name the storyboard that players show over the timeline."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from fragdex.decoding.storyboards import Layout, storyboard_layout
from fragdex.errors import FragdexError
from fragdex.origin.previews import SHEETS
from fragdex.seeking.model import FragmentIndex
from fragdex.seeking.origin import SourceInfo
from fragdex.views.package import MANIFEST, MULTIVARIANT, Package
from fragdex.views.view import View

__all__ = ["IMAGES", "package_file"]

IMAGES: Final = "images.m3u8"
"""The image playlist of the storyboard, beside the other playlists."""
_PERIOD_ENDS: Final = "</Period>"


def package_file(package: Package, index: FragmentIndex, name: str) -> View:
    """A file of a package; its lists name the storyboard of the first film, unless that grows.

    Raises:
        KeyError: the package has no such file.
    """
    growth = package.title.growth
    if name not in (MULTIVARIANT, MANIFEST, IMAGES) or (growth is not None and not growth.ended):
        return package[name]
    return package.kept(f"{name} with its storyboard", lambda: _listing(package, index, name))


def _listing(package: Package, index: FragmentIndex, name: str) -> View:
    layout = _layout(index)
    sheets = f"../{SHEETS}"
    if name == IMAGES:
        if layout is None:
            raise KeyError(name)
        text = layout.hls(sheets)
        # of the first film alone, and of the media type of the other playlists
        return _text(package[MULTIVARIANT].media_type, (index.source,), [name], text)
    view = package[name]
    if layout is None:
        return view
    text = view.read().decode()
    if name == MULTIVARIANT:
        text += layout.hls_stream_inf(IMAGES) + "\n"
    elif text.count(_PERIOD_ENDS) == 1:
        text = text.replace(_PERIOD_ENDS, layout.dash(sheets) + _PERIOD_ENDS)
    return _text(view.media_type, view.sources, [name, view.recipe], text)


def _layout(index: FragmentIndex) -> Layout | None:
    """The storyboard of a film, if it can have one."""
    for track in index.tracks:
        if track.kind == "video":
            if track.info.encryption is None and len(track.sync):
                with suppress(FragdexError):
                    return storyboard_layout(track)
            return None
    return None


def _text(media_type: str, sources: tuple[SourceInfo, ...], recipe: list[str], text: str) -> View:
    data = text.encode()
    return View(media_type, sources, ["storyboard", *recipe], [len(data)], lambda _: [data])
