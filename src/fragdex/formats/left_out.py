"""How it is said that a track is not in what was made of its file."""

from __future__ import annotations

from fragdex.seeking.model import TrackIndex

__all__ = ["track_left_out"]


def track_left_out(track: TrackIndex, why: str) -> str:
    """The sentence on a track that is not in a clip, view or package.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> track_left_out(fragdex.index(movie()).track(1), "nobody looks at it")
    'track 1 (video) is left out: nobody looks at it'
    """
    return f"track {track.id} ({track.kind}) is left out: {why}"
