"""The part of the demo that renders a page: a title card, with sound."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import fragdex

__all__ = ["missing", "story"]

PAGE = Path(__file__).resolve().parent / "title"
FILM = Path("title.mp4")


def missing() -> str | None:
    """What would be needed and is not there, with how to get it; or None."""
    try:
        import av  # noqa: F401
        import PIL  # noqa: F401

        from fragdex.errors import EngineUnavailable
        from fragdex.rendering.browser.finding import find_engine
    except ImportError as error:
        return f"{error.name} is not installed (pip install 'fragdex[service]')"
    try:
        find_engine()
    except EngineUnavailable as error:
        return str(error)
    return None


def story(command: Callable[..., None], expect: Callable[[bool, str], None]) -> None:
    """Render the page, then look at the file as the library sees it."""
    shutil.copytree(PAGE, "title", dirs_exist_ok=True)
    command("render", "title", "-o", str(FILM))
    index = fragdex.index(FILM, exact=True)
    kinds = [track.kind for track in index.tracks]
    frames = index.tracks[0].sample_count
    expect(kinds == ["video", "audio"], "a picture track and a sound track")
    expect(frames == 120, f"{frames} frames, as many as 4 s have")
    print(f"  The title card is {FILM}.")
