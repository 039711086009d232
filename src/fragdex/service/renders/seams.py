"""Where slices meet: whether the browsers that drew them saw the same there.

A slice that begins within a film lets pass what comes before, and draws the last frame of that as
well. A page may keep what does not come about again in this way: what its workers drew, how far a
transition of views was, when something was answered. Then that frame is another one than the last
of the slice before, and one browser has to draw the film.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from fragdex.service.renders.messages import SliceMade

__all__ = ["ALONE", "differing", "note", "notes_of"]

ALONE: Final = "drawn again by one browser: "
"""How the note of a film begins whose slices did not fit."""


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


def notes_of(notes: Mapping[str, Any] | None) -> list[str]:
    """Those of `note` among the notes of a render or of a slice, as JSON tells them."""
    return [line for line in (notes or {}).get("browser", ()) if line.startswith(ALONE)]
