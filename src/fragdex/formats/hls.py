"""HLS playlists with byte ranges into the file itself (RFC 8216).

A media segment is a run of whole fragments, all tracks together, that begins with a sync sample
of the reference track; the initialization segment is named by EXT-X-MAP. Only fragmented files
can be played so: a progressive file has no segments to point at.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from urllib.parse import quote

import numpy as np

from fragdex.errors import BuildError, InexactIndex, NoSyncSample
from fragdex.formats.hls_attributes import (
    Range,
    address,
    bandwidths,
    bytes_of_name,
    media,
    named_codecs,
    picture_rate,
    picture_size,
    spoken,
    target_duration,
)
from fragdex.formats.subsegments import (
    Subsegments,
    init_range,
    period_of,
    reference_track,
    subsegments,
    timed,
)
from fragdex.formats.wire import MIN_SEGMENT_MS
from fragdex.fragments.table import NULL
from fragdex.seeking.model import FragmentIndex, Period, TrackIndex

__all__ = ["has_iframes", "uri_of", "write", "write_iframes", "write_master"]


def write(
    index: FragmentIndex,
    *,
    uri: str | None = None,
    track: int | None = None,
    min_segment_ms: float = MIN_SEGMENT_MS,
    playlist: str = "media",
    growing: bool = False,
    init_uri: str | None = None,
    media_uri: str = "media.m3u8",
    iframes_uri: str | None = None,
) -> bytes:
    """A media playlist, as UTF-8 text; periods are parted by EXT-X-DISCONTINUITY.

    Args:
        uri: address of the file, as it is to stand in the playlist; None: its URL, or the last
            part of its path.
        track: the reference stream; None: the first video track, or else the first audio track.
        min_segment_ms: a segment lasts at least so long.
        playlist: `media`, `iframes` (see `write_iframes`) or `master` (see `write_master`).
        growing: leave out EXT-X-ENDLIST, so that players come back for more.
        init_uri: address of the initialization segment, where the file has none itself.
        media_uri, iframes_uri: what a `master` playlist names.

    Raises:
        BuildError: there are no movie fragments, or no initialization segment.
        InexactIndex: times of fragments are not known.
        ValueError: there is no such playlist.

    >>> from fragdex.seeking.model import How, SourceInfo
    >>> write(FragmentIndex(SourceInfo("a.mp4"), How("boxes", True), ())).decode().splitlines()[-1]
    '#EXT-X-ENDLIST'
    """
    if playlist == "iframes":
        return write_iframes(index, uri=uri, track=track, init_uri=init_uri)
    if playlist == "master":
        return write_master(
            index,
            media_uri=media_uri,
            iframes_uri=iframes_uri,
            track=track,
            min_segment_ms=min_segment_ms,
        )
    if playlist != "media":
        raise ValueError(f"no playlist {playlist!r}: expected media, iframes or master")
    groups = []
    for period in index.periods:
        chosen = reference_track(period, track)
        ticks = int(Fraction(min_segment_ms) * chosen.timescale / 1000)
        found = subsegments(period, chosen.id, min_ticks=ticks, at_sync=True)
        groups.append((period, list(media_segments(found, chosen.timescale))))
    head = ["#EXT-X-INDEPENDENT-SEGMENTS"]
    return _playlist(groups, uri_of(index, uri), head, init_uri, growing)


def write_iframes(
    index: FragmentIndex,
    *,
    uri: str | None = None,
    track: int | None = None,
    init_uri: str | None = None,
) -> bytes:
    """An I-frame playlist of a video track (RFC 8216, 4.3.3.6), as UTF-8 text.

    A segment is a fragment from its moof to the end of its first sample, where that is a sync
    sample; the samples before and after it cannot be left out by a byte range.

    Args:
        uri, init_uri: as for `write`.
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
    return _playlist(groups, uri_of(index, uri), ["#EXT-X-I-FRAMES-ONLY"], init_uri)


def write_master(
    index: FragmentIndex,
    *,
    media_uri: str = "media.m3u8",
    iframes_uri: str | None = None,
    track: int | None = None,
    period: int | None = None,
    min_segment_ms: float = MIN_SEGMENT_MS,
) -> bytes:
    """A multivariant playlist with one variant, the file (RFC 8216, 4.3.4), as UTF-8 text.

    Sound beside pictures is an audio group without a URI: it is in the variant itself.

    Args:
        media_uri: address of the media playlist, which `write` gives with the same `track` and
            `min_segment_ms`.
        iframes_uri: address of the I-frame playlist (see `write_iframes`), if there is one.
        track: as for `write`.
        period: number of the period that is described; needed where there are several.
        min_segment_ms: as in the media playlist; the peak bandwidth is that of its segments.

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
    about += named_codecs(
        t.codec
        for t in found.tracks
        if len(t.fragments) and (t.codec or t.kind in ("video", "audio"))
    )
    about += [*picture_size(chosen), *picture_rate(chosen, segments)]
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    sound = next((t for t in found.tracks if t.kind == "audio" and len(t.fragments)), None)
    if sound is not None and chosen.kind == "video":
        language, channels = spoken(sound), sound.info.channel_count
        name = sound.info.language or "audio"
        lines.append(media("audio", name, language=language, channels=channels))
        about.append('AUDIO="audio"')
    lines += ["#EXT-X-STREAM-INF:" + ",".join(about), address(media_uri)]
    if iframes_uri is not None:
        peak, average = bandwidths(list(_iframes(chosen)))
        named = [f"BANDWIDTH={peak}", f"AVERAGE-BANDWIDTH={average}"]
        named += [*named_codecs([chosen.codec]), *picture_size(chosen)]
        named.append(f'URI="{address(iframes_uri)}"')
        lines.append("#EXT-X-I-FRAME-STREAM-INF:" + ",".join(named))
    return ("\n".join(lines) + "\n").encode()


def has_iframes(index: FragmentIndex, track: int | None = None) -> bool:
    """Whether an I-frame playlist can be written: pictures, and a fragment that begins with one.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> has_iframes(fragdex.index(movie()))
    True
    """
    chosen = [reference_track(period, track) for period in index.periods]
    return all(t.kind == "video" and t.has_samples for t in chosen) and any(
        (t.fragments.sync == 0).any() for t in chosen
    )


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
    return quote(bytes_of_name(name.replace("\\", "/").rpartition("/")[2] or "media.mp4"), safe="")


def _playlist(
    groups: list[tuple[Period, list[Range]]],
    uri: str,
    head: list[str],
    init_uri: str | None,
    growing: bool = False,
) -> bytes:
    target = target_duration(seconds for _, part in groups for seconds, _, _ in part)
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:7",
        f"#EXT-X-TARGETDURATION:{target}",
        "#EXT-X-MEDIA-SEQUENCE:0",
        f"#EXT-X-PLAYLIST-TYPE:{'EVENT' if growing else 'VOD'}",
        *head,
    ]
    for number, (period, segments) in enumerate(groups):
        if number:
            lines.append("#EXT-X-DISCONTINUITY")
        if init_uri is not None and not period.init:
            lines.append(f'#EXT-X-MAP:URI="{address(init_uri)}"')
        else:
            init = init_range(period)
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
    timed(track)
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
    columns = (np.diff(cts, append=end), start, stop, table.moof_offset[rows])
    for duration, low, high, moof in zip(*(c.tolist() for c in columns), strict=True):
        if high <= moof:
            raise BuildError(
                "the media data of a fragment lies before its moof", offset=low, found=high
            )
        yield Fraction(duration, track.timescale), low, high - low
