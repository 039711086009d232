"""Where slices meet: whether the browsers that drew them saw the same there.

A slice that begins within a film lets pass what comes before, and draws the last frame of that as
well. A page may keep what does not come about again in this way, such as what was answered late,
or by chance. Then that frame is another one than the last of the slice before, and one browser has
to draw the film. Of some things it is known that they come out otherwise, if later than there: a
browser that has skipped frames stops where the page uses one of them (`Notes.keeps`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from fragdex.rendering.messages import SliceMade

ALONE: Final = "drawn by one browser: "
"""How the note of a film begins that is not drawn by several, and why."""


class OneBrowserNeeded(Exception):
    """The page uses something that skipped frames would change; the text says what."""


def differing(slices: Sequence[SliceMade]) -> int | None:
    """The first frame before which two neighbours saw different pictures; None: they all agree.

    Args:
        slices: of the whole film, in order.
    """
    for one, other in pairwise(slices):
        if one.ends_with is None or one.ends_with != other.begins_after:
            return other.first
    return None


def note(frame: int) -> str:
    """What the record of a film says whose slices did not fit before a frame."""
    return (
        f"{ALONE}before frame {frame}, two of several showed different pictures, as the page "
        "keeps something that does not come about again when frames are skipped"
    )


def needed(error: OneBrowserNeeded) -> str:
    """What the record of a film says that uses such a thing."""
    return f"{ALONE}the page uses {error}, which skipped frames would change"


def notes_of(notes: Mapping[str, Any] | None) -> list[str]:
    """Those of `note` among the notes of a render or of a slice, as JSON tells them."""
    return [line for line in (notes or {}).get("browser", ()) if line.startswith(ALONE)]
