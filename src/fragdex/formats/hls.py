"""HLS playlists with byte ranges into the file itself (RFC 8216).

A media segment is a run of whole fragments, all tracks together, that begins with a sync sample
of the reference track; the initialization segment is named by EXT-X-MAP. Only fragmented files
can be played so: a progressive file has no segments to point at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from urllib.parse import quote

import numpy as np

from fragdex.errors import BuildError, InexactIndex, NoSyncSample
from fragdex.formats.subsegments import (
    Subsegments,
    init_range,
    period_of,
    reference_track,
    subsegments,
)
from fragdex.formats.wire import MIN_SEGMENT_MS
from fragdex.fragments.table import NULL
from fragdex.seeking.model import FragmentIndex, Period, TrackIndex

__all__ = ["uri_of", "write", "write_iframes", "write_master"]

Range = tuple[Fraction, int, int]
"""Seconds, offset and size of a segment."""


def write(
    index: FragmentIndex,
    *,
    uri: str | None = None,
    track: int | None = None,
    min_segment_ms: float = MIN_SEGMENT_MS,
    playlist: str = "media",
    growing: bool = False,
) -> bytes:
    """A media playlist, as UTF-8 text; periods are parted by EXT-X-DISCONTINUITY.

    Args:
        uri: address of the file, as it is to stand in the playlist; None: its URL, or the last
            part of its path.
        track: the reference stream; None: the first video track, or else the first audio track.
        min_segment_ms: a segment lasts at least so long.
        playlist: `media`, `iframes` (see `write_iframes`) or `master` (see `write_master`).
        growing: leave out EXT-X-ENDLIST, so that players come back for more.

    Raises:
        BuildError: there are no movie fragments, or no initialization segment.
        InexactIndex: times of fragments are not known.
        ValueError: there is no such playlist.

    >>> from fragdex.seeking.model import How, SourceInfo
    >>> write(FragmentIndex(SourceInfo("a.mp4"), How("boxes", True), ())).decode().splitlines()[-1]
    '#EXT-X-ENDLIST'
    """
    if playlist == "iframes":
        return write_iframes(index, uri=uri, track=track)
    if playlist == "master":
        return write_master(index, track=track)
    if playlist != "media":
        raise ValueError(f"no playlist {playlist!r}: expected media, iframes or master")
    groups = []
    for period in index.periods:
        chosen = reference_track(period, track)
        ticks = int(Fraction(min_segment_ms) * chosen.timescale / 1000)
        found = subsegments(period, chosen.id, min_ticks=ticks, at_sync=True)
        groups.append((period, list(media_segments(found, chosen.timescale))))
    head = ["#EXT-X-INDEPENDENT-SEGMENTS"]
    return _playlist(groups, uri_of(index, uri), head, growing)


def write_iframes(
    index: FragmentIndex, *, uri: str | None = None, track: int | None = None
) -> bytes:
    """An I-frame playlist of a video track (RFC 8216, 4.3.3.6), as UTF-8 text.

    A segment is a fragment from its moof to the end of its first sample, where that is a sync
    sample; the samples before and after it cannot be left out by a byte range.

    Args:
        uri: as for `write`.
        track: the video track; None: the first one.

    Raises:
        NoSyncSample: no fragment begins with a sync sample.
        BuildError: there are no movie fragments.
        InexactIndex: samples are not known.

    >>> from fragdex.seeking.model import How, SourceInfo
    >>> write_iframes(FragmentIndex(SourceInfo(), How("boxes", True), ())).split()[3]
    b'#EXT-X-MEDIA-SEQUENCE:0'
    """
    groups = []
    for period in index.periods:
        chosen = reference_track(period, track)
        groups.append((period, list(_iframes(chosen))))
    if groups and not any(segments for _, segments in groups):
        raise NoSyncSample("no fragment begins with a sync sample")
    return _playlist(groups, uri_of(index, uri), ["#EXT-X-I-FRAMES-ONLY"])


def write_master(
    index: FragmentIndex,
    *,
    media_uri: str = "media.m3u8",
    iframes_uri: str | None = None,
    track: int | None = None,
    period: int | None = None,
    min_segment_ms: float = MIN_SEGMENT_MS,
) -> bytes:
    """A master playlist with one variant (RFC 8216, 4.3.4), as UTF-8 text.

    Args:
        media_uri: address of the media playlist.
        iframes_uri: address of the I-frame playlist, if there is one.
        track: as for `write`.
        period: number of the period that is described; needed where there are several.
        min_segment_ms: as in the media playlist; the peak bandwidth is that of a segment.

    Raises: as `write`.

    >>> from fragdex.seeking.model import How, SourceInfo
    >>> write_master(FragmentIndex(SourceInfo(), How("boxes", True), ()))
    Traceback (most recent call last):
    ...
    fragdex.errors.BuildError: the index has no period
    """
    found = period_of(index, period)
    chosen = reference_track(found, track)
    ticks = int(Fraction(min_segment_ms) * chosen.timescale / 1000)
    segments = list(
        media_segments(
            subsegments(found, chosen.id, min_ticks=ticks, at_sync=True),
            chosen.timescale,
        )
    )
    peak, average = bandwidths(segments)
    about = [f"BANDWIDTH={peak}", f"AVERAGE-BANDWIDTH={average}"]
    about += named_codecs(t.codec for t in found.tracks if len(t.fragments))
    about += [*picture_size(chosen), *picture_rate(chosen, segments)]
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    lines += ["#EXT-X-STREAM-INF:" + ",".join(about), address(media_uri)]
    if iframes_uri is not None:
        pictures = list(_iframes(chosen))
        named = [f"BANDWIDTH={bandwidths(pictures)[0]}", *named_codecs([chosen.codec])]
        named += [*picture_size(chosen), f'URI="{address(iframes_uri)}"']
        lines.append("#EXT-X-I-FRAME-STREAM-INF:" + ",".join(named))
    return ("\n".join(lines) + "\n").encode()


def uri_of(index: FragmentIndex, uri: str | None) -> str:
    """The address of the file in a playlist: as given, its URL, or the last part of its path.

    >>> from fragdex.seeking.model import How, SourceInfo
    >>> uri_of(FragmentIndex(SourceInfo("/films/a film.mp4"), How("boxes", True), ()), None)
    'a%20film.mp4'
    """
    if uri is not None:
        return address(uri)
    name = index.source.name
    if "://" in name:
        return address(name)
    # A colon in the first part would be read as a scheme (RFC 3986, 4.2).
    return quote(name.replace("\\", "/").rpartition("/")[2] or "media.mp4", safe="")


def address(uri: str) -> str:
    """A URI as it may stand on a line and in quotes; what is escaped already stays."""
    return quote(uri, safe="%/:?#[]@!$&'()*+,;=~")


def _playlist(
    groups: list[tuple[Period, list[Range]]], uri: str, head: list[str], growing: bool = False
) -> bytes:
    longest = max((seconds for _, part in groups for seconds, _, _ in part), default=Fraction(1))
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:7",
        f"#EXT-X-TARGETDURATION:{max(1, int(longest + Fraction(1, 2)))}",
        "#EXT-X-MEDIA-SEQUENCE:0",
        f"#EXT-X-PLAYLIST-TYPE:{'EVENT' if growing else 'VOD'}",
        *head,
    ]
    for number, (period, segments) in enumerate(groups):
        init = init_range(period)
        if number:
            lines.append("#EXT-X-DISCONTINUITY")
        lines.append(f'#EXT-X-MAP:URI="{uri}",BYTERANGE="{init.size}@{init.start}"')
        reached = Fraction(0)
        for seconds, offset, size in segments:
            # Rounded ends, not rounded durations: the sum does not drift.
            duration = round(reached + seconds, 6) - round(reached, 6)
            reached += seconds
            lines += [f"#EXTINF:{float(duration):.6f},", f"#EXT-X-BYTERANGE:{size}@{offset}", uri]
    if not growing:
        lines.append("#EXT-X-ENDLIST")
    return ("\n".join(lines) + "\n").encode()


def media_segments(found: Subsegments, timescale: int) -> Iterator[Range]:
    """Seconds, offset and size of each stretch."""
    columns = (found.duration.tolist(), found.offset.tolist(), found.size.tolist())
    for duration, offset, size in zip(*columns, strict=True):
        yield Fraction(duration, timescale), offset, size


def _iframes(track: TrackIndex) -> Iterator[Range]:
    if not track.has_samples:
        raise InexactIndex(
            f"the samples of track {track.id} are not in this index",
            advice="build it with exact=True, or save it with samples=True",
        )
    table, samples = track.fragments, track.samples
    rows = np.flatnonzero((table.sync == 0) & (table.moof_offset != NULL))
    first = table.sample_start[rows]
    cts = samples.cts[first]
    order = np.argsort(cts, kind="stable")
    rows, first, cts = rows[order], first[order], cts[order]
    if not len(rows):
        return
    end = max(int(table.cts_end.max()), int(cts[-1]))
    start, stop = table.offset[rows], samples.offset[first] + samples.size[first]
    columns = (np.diff(cts, append=end).tolist(), start.tolist(), stop.tolist())
    for duration, low, high in zip(*columns, strict=True):
        if high <= low:
            raise BuildError(
                "the media data of a fragment lies before its moof", offset=low, found=high
            )
        yield Fraction(duration, track.timescale), low, high - low


def bandwidths(segments: Sequence[Range]) -> tuple[int, int]:
    """Bits a second of the segment that needs most, and of all together; 1 where nothing is."""
    rates = [Fraction(8 * size) / seconds for seconds, _, size in segments if seconds]
    whole = sum(seconds for seconds, _, _ in segments)
    bits = 8 * sum(size for _, _, size in segments)
    return int(max(rates, default=Fraction(0))) + 1, int(bits / whole) + 1 if whole else 1


def named_codecs(codecs: Iterable[str | None]) -> list[str]:
    """The attribute CODECS, each named once; nothing where one is not known."""
    known = list(dict.fromkeys(codecs))
    return [] if None in known or not known else [f'CODECS="{",".join(map(str, known))}"']


def picture_size(track: TrackIndex) -> list[str]:
    """The attribute RESOLUTION of a video track, where it is known."""
    info = track.info
    if track.kind != "video" or not info.width or not info.height:
        return []
    return [f"RESOLUTION={info.width}x{info.height}"]


def picture_rate(track: TrackIndex, segments: Sequence[Range]) -> list[str]:
    """The attribute FRAME-RATE of a video track, where it is known."""
    seconds = sum(duration for duration, _, _ in segments)
    count = track.sample_count
    if track.kind != "video" or not seconds or not count:
        return []
    return [f"FRAME-RATE={float(count / seconds):.3f}"]
