"""Which track of a kind is presented: the one decision for all that take pictures or sound."""

from __future__ import annotations

from collections.abc import Iterable

from fragdex.seeking.track import Track


def presented(tracks: Iterable[Track], kind: str) -> list[Track]:
    """The tracks of a kind that are presented by themselves, those first that play by default.

    Args:
        tracks: of an index or a period.
        kind: video, audio, text, metadata, timecode, hint or other.

    Those that are left (`TrackInfo.auxiliary`: alpha, depth, thumbnails, chapters, disabled) stand
    for them only where a file has no other.

    >>> presented([], "video")
    []
    """
    of_kind = [track for track in tracks if track.kind == kind]
    plain = [track for track in of_kind if track.info.auxiliary is None] or of_kind
    return sorted(plain, key=lambda track: not track.info.enabled)


def presented_first(tracks: Iterable[Track], kind: str) -> Track | None:
    """The track of a kind that is played where none is named; None: there is none.

    >>> presented_first([], "audio")
    """
    return next(iter(presented(tracks, kind)), None)
