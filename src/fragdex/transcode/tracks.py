"""What comes of the media work; knows nothing of FFmpeg's libraries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

SCRUB_TRACK: Final = -1
"""The track id of the low-resolution track for scrubbing."""


@dataclass(frozen=True, slots=True)
class TranscodedTrack:
    """A track that was made.

    Attributes:
        track_id: of the source's stream; SCRUB_TRACK for the scrub track.
        type: `video` or `audio`.
        codec: FFmpeg's name of what is in the file.
        path, index_path: the fragmented file, and its index (`.fidx`).
        duration_ms: from its first presentation time to its end.
        probe_info: what the source's stream was, whether it was copied, and why not.
        ranges_path: a file of `COPIED_RANGE`s: where the source has its bytes; "" where nobody
            looked.
    """

    track_id: int
    type: str
    codec: str
    path: str
    index_path: str
    byte_size: int
    duration_ms: int
    probe_info: dict[str, Any]
    ranges_path: str = ""
