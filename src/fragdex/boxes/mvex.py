"""mvex: the movie goes on in fragments (ISO/IEC 14496-12, 8.8.1)."""

from fragdex.boxes.layout import box

MVEX = box(
    "mvex",
    "Movie Extends",
    "ISO/IEC 14496-12, 8.8.1",
    children=True,
)
