"""A multivariant HLS playlist over tracks that are files of their own (RFC 8216, 4.3.4).

The first video track is the variant, with every audio track as a rendition to choose from; video
tracks beyond the first are renditions too, as other cameras are. Each names its own media playlist,
which `hls.write` writes. Of sound alone the first track is the variant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from fragdex.errors import BuildError
from fragdex.formats.hls import media_segments
from fragdex.formats.hls_attributes import (
    Range,
    address,
    bandwidths,
    media,
    named_codecs,
    picture_rate,
    picture_size,
    spoken,
)
from fragdex.formats.subsegments import period_of, reference_track, subsegments
from fragdex.formats.wire import MIN_SEGMENT_MS
from fragdex.seeking.model import FragmentIndex, TrackIndex

__all__ = ["Rendition", "write"]


@dataclass(frozen=True, slots=True, eq=False)
class Rendition:
    """A track in a file of its own.

    Attributes:
        index: of that file: one period, whose first video or audio track it is.
        uri: address of its media playlist.
        name: what people choose it by; no other of its kind has the same.

    >>> from fragdex.seeking.model import How, SourceInfo
    >>> Rendition(FragmentIndex(SourceInfo(), How("boxes", True), ()), "a.m3u8", "English").name
    'English'
    """

    index: FragmentIndex
    uri: str
    name: str

    @property
    def track(self) -> TrackIndex:
        """The track."""
        return reference_track(period_of(self.index, None))


def write(renditions: Sequence[Rendition], *, min_segment_ms: float = MIN_SEGMENT_MS) -> bytes:
    """The multivariant playlist of tracks apart, as UTF-8 text.

    Args:
        renditions: video and audio tracks on one timeline; the first of a kind is the default.
        min_segment_ms: as in the media playlists; the peak bandwidth is that of segments.

    Raises:
        BuildError: no track is video or audio, or one has no movie fragments.
        InexactIndex: times of fragments are not known.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> english = Rendition(fragdex.index(movie(2)), "video.m3u8", "Film")
    >>> write([english]).decode().splitlines()[-1]
    'video.m3u8'
    """
    kinds = {
        kind: [one for one in renditions if one.track.kind == kind] for kind in ("video", "audio")
    }
    if not any(kinds.values()):
        raise BuildError("a playlist needs a video or an audio track")
    lead = next(found[0] for found in kinds.values() if found)
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    groups, beside = [], []
    for kind, found in kinds.items():
        # what is the variant itself needs no group unless there is something to choose
        if found and (found != [lead] or len(found) > 1):
            groups.append(f'{kind.upper()}="{kind}"')
            lines += [
                media(
                    kind,
                    one.name,
                    language=spoken(one.track),
                    channels=one.track.info.channel_count,
                    default=one is found[0],
                    uri=one.uri,
                )
                for one in found
            ]
            beside += [one for one in found if lead.track.kind != kind]
    segments = _segments(lead, min_segment_ms)
    rates = [bandwidths(_segments(one, min_segment_ms)) for one in beside]
    alone = bandwidths(segments)
    # one rendition of a group plays at a time: the variant needs the dearest (4.3.4.2)
    peak, average = (alone[n] + max((rate[n] for rate in rates), default=0) for n in (0, 1))
    about = [f"BANDWIDTH={peak}", f"AVERAGE-BANDWIDTH={average}"]
    about += named_codecs(one.track.codec for found in kinds.values() for one in found)
    about += [*picture_size(lead.track), *picture_rate(lead.track, segments), *groups]
    lines += ["#EXT-X-STREAM-INF:" + ",".join(about), address(lead.uri)]
    return ("\n".join(lines) + "\n").encode()


def _segments(one: Rendition, min_segment_ms: float) -> list[Range]:
    track = one.track
    ticks = int(Fraction(min_segment_ms) * track.timescale / 1000)
    found = subsegments(period_of(one.index, None), track.id, min_ticks=ticks, at_sync=True)
    return list(media_segments(found, track.timescale))
