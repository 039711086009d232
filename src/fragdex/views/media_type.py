"""The media type of an MP4 (RFC 4337), with the codecs of its tracks (RFC 6381)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fragdex.formats.left_out import track_left_out
from fragdex.seeking.model import Period, TrackIndex

__all__ = ["KEPT", "left_out_of_fragments", "media_type"]

KEPT: Final = ("video", "audio", "text")
"""Kinds of tracks that players of fragments know; others are left out unless they are named."""


def media_type(tracks: Iterable[TrackIndex]) -> str:
    """The media type of an MP4 with some tracks, with their codecs where all are known.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> media_type(fragdex.index(movie(tracks=2)).tracks)
    'video/mp4; codecs="avc1.42000A,Opus"'
    """
    chosen = list(tracks)
    kinds = {track.kind for track in chosen}
    kind = next((k for k in ("video", "audio") if k in kinds), "application")
    codecs = list(dict.fromkeys(track.codec for track in chosen if track.kind in KEPT))
    if not codecs or None in codecs:
        return f"{kind}/mp4"
    return f'{kind}/mp4; codecs="{",".join(map(str, codecs))}"'


def left_out_of_fragments(period: Period) -> Iterator[str]:
    """A sentence on each track of a kind that fragments do not keep."""
    for track in period.tracks:
        if track.kind not in KEPT and track.sample_count:
            yield track_left_out(track, "players of fragments do not know this kind")
