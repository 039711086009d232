"""HLS playlists with byte ranges into the file itself (RFC 8216).

A media segment is a run of whole fragments, all tracks together, that begins with a sync sample
of the reference track; the initialization segment is named by EXT-X-MAP. Only fragmented files
can be played so: a progressive file has no segments to point at.

A multivariant playlist names tracks that are files of their own. Its first video track is the
variant, with every audio track as a rendition to choose from; video tracks beyond the first are
renditions too, as other cameras are. Of sound alone the first track is the variant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from urllib.parse import quote

import numpy as np

from fragdex.errors import BuildError, NoSyncSample
from fragdex.formats.subsegments import (
    Subsegments,
    init_range,
    period_of,
    reference_track,
    subsegments,
    timed,
)
from fragdex.formats.wire import SEGMENT_DURATION
from fragdex.fragments.findings import Finding, Findings
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.packaging.m3u8 import (
    INDEPENDENT,
    Range,
    Stretch,
    Variant,
    address,
    bandwidths,
    bytes_of_name,
    channels_of,
    durations_between,
    highest_rate,
    media,
    media_playlist,
    multivariant,
    spoken,
    target_duration,
)
from fragdex.record import record
from fragdex.seeking.model import Index, Period, Track
from fragdex.seeking.times import NO_SHIFT, TimeLike, floor_ticks
from fragdex.seeking.track import presented_first

_REFUSED = "players based on Media Source Extensions (hls.js, dash.js, Shaka Player …) refuse them"


def playback_findings(index: Index) -> tuple[Finding, ...]:
    """What keeps MSE players from playing the segments that `hls` and `dash` name.

    Of an index taken from a sidx or mfra nothing is known: make it with `exact=True`.

    Returns: findings, one a track and reason; empty where nothing is known to be in the way.
    """
    findings = Findings()
    for flag, code, message in (
        (
            FragmentFlags.DECLARED_BASE,
            "declared-base-offset",
            f"fragments declare a base_data_offset: {_REFUSED}; fragdex extract "
            "--fragmented makes a copy that plays",
        ),
        (FragmentFlags.NO_TFDT, "no-tfdt", f"fragments have no tfdt: {_REFUSED}"),
    ):
        for track in index.tracks:
            rows = np.flatnonzero(track.fragments.flags & np.uint32(flag))
            if len(rows):
                first = int(track.fragments.offset[rows[0]])
                findings.add(code, message, offset=first, track=track.id, count=len(rows))
    return findings.all()


def write(
    index: Index,
    *,
    uri: str | None = None,
    track: int | None = None,
    segment_duration: TimeLike = SEGMENT_DURATION,
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
        segment_duration: a segment lasts at least so long.
        playlist: `media`, `iframes` (see `write_iframes`) or `master` (see `write_master`).
        growing: leave out EXT-X-ENDLIST, so that players come back for more.
        init_uri: address of the initialization segment, where the file has none itself.
        media_uri, iframes_uri: what a `master` playlist names.

    Raises:
        BuildError: there are no movie fragments, or no initialization segment.
        InexactIndex: times of fragments are not known.
        ValueError: there is no such playlist.
    """
    if playlist == "iframes":
        return write_iframes(index, uri=uri, track=track, init_uri=init_uri)
    if playlist == "master":
        return write_master(
            index,
            media_uri=media_uri,
            iframes_uri=iframes_uri,
            track=track,
            segment_duration=segment_duration,
        )
    if playlist != "media":
        raise ValueError(f"no playlist {playlist!r}: expected media, iframes or master")
    groups = []
    for period in index.periods:
        chosen = reference_track(period, track)
        ticks = floor_ticks(segment_duration, chosen.timescale, NO_SHIFT)
        listed = subsegments(period, chosen.id, min_ticks=ticks, at_sync=True)
        groups.append((period, list(media_segments(listed, chosen.timescale))))
    return _playlist(groups, uri_of(index, uri), INDEPENDENT, init_uri, growing)


def write_iframes(
    index: Index,
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
    """
    groups = []
    for period in index.periods:
        chosen = reference_track(period, track)
        groups.append((period, list(_iframes(chosen))))
    if groups and not any(segments for _, segments in groups):
        raise NoSyncSample("no fragment begins with a sync sample")
    return _playlist(groups, uri_of(index, uri), "#EXT-X-I-FRAMES-ONLY", init_uri)


def write_master(
    index: Index,
    *,
    media_uri: str = "media.m3u8",
    iframes_uri: str | None = None,
    track: int | None = None,
    period: int | None = None,
    segment_duration: TimeLike = SEGMENT_DURATION,
) -> bytes:
    """A multivariant playlist with one variant, the file (RFC 8216, 4.3.4), as UTF-8 text.

    Sound with pictures is an audio group without a URI: it is in the variant itself.

    Args:
        media_uri: address of the media playlist, which `write` gives with the same `track` and
            `segment_duration`.
        iframes_uri: address of the I-frame playlist (see `write_iframes`), if there is one.
        track: as for `write`.
        period: number of the period that is described; needed where there are several.
        segment_duration: as in the media playlist; the peak bandwidth is that of its segments.

    Raises: as `write`.
    """
    governing = period_of(index, period)
    chosen = reference_track(governing, track)
    ticks = floor_ticks(segment_duration, chosen.timescale, NO_SHIFT)
    segments = list(
        media_segments(
            subsegments(governing, chosen.id, min_ticks=ticks, at_sync=True),
            chosen.timescale,
        )
    )
    sound = presented_first([t for t in governing.tracks if len(t.fragments)], "audio")
    lines, groups = [], {}
    if sound is not None and chosen.kind == "video":
        language, channels = spoken(sound), channels_of(sound)
        name = sound.info.language or "audio"
        lines.append(media("audio", name, language=language, channels=channels))
        groups["AUDIO"] = "audio"
    named = [
        t.codec
        for t in governing.tracks
        if len(t.fragments) and (t.codec or t.kind in ("video", "audio"))
    ]
    rate = _picture_rate(chosen, segments)
    shown = chosen.info.dynamic_range
    lines += Variant(media_uri, bandwidths(segments), named, chosen, rate, shown, groups).lines()
    if iframes_uri is not None:
        rates = bandwidths(list(_iframes(chosen)))
        one = Variant(iframes_uri, rates, [chosen.codec], chosen, None, shown)
        lines.append(one.iframes_line())
    return multivariant(lines)


def _picture_rate(track: Track, segments: Sequence[Range]) -> Fraction | None:
    """Pictures a second of a video track, where they are known."""
    seconds = sum(duration for duration, _, _ in segments)
    count = track.sample_count
    if track.kind != "video" or not seconds or not count:
        return None
    mean = count / seconds
    if not track.has_samples:
        return mean
    return highest_rate(track.samples.duration[:-1], track.timescale, mean)


def has_iframes(index: Index, track: int | None = None) -> bool:
    """Whether an I-frame playlist can be written: pictures, and a fragment that begins with one."""
    chosen = [reference_track(period, track) for period in index.periods]
    return all(t.kind == "video" and t.has_samples for t in chosen) and any(
        (t.fragments.first_sync == 0).any() for t in chosen
    )


def uri_of(index: Index, uri: str | None) -> str:
    """The address of the file in a playlist: as given, its URL, or the last part of its path."""
    if uri is not None:
        return address(uri)
    name = index.file.name
    if "://" in name:
        return address(name)
    # A colon in the first part would be read as a scheme (RFC 3986, 4.2).
    return quote(bytes_of_name(name.replace("\\", "/").rpartition("/")[2] or "media.mp4"), safe="")


def _playlist(
    groups: list[tuple[Period, list[Range]]],
    uri: str,
    tag: str,
    init_uri: str | None,
    growing: bool = False,
) -> bytes:
    stretches = []
    for period, segments in groups:
        if init_uri is not None and not period.init:
            init, init_range_ = address(init_uri), None
        else:
            place = init_range(period)
            init, init_range_ = uri, (place.size, place.start)
        ends = accumulate((seconds for seconds, _, _ in segments), initial=Fraction(0))
        durations = durations_between(round(end * 1_000_000) for end in ends)
        ranges = [(size, offset) for _, offset, size in segments]
        stretches.append(Stretch(durations, [uri] * len(ranges), ranges, init, init_range_))
    target = target_duration(seconds for _, part in groups for seconds, _, _ in part)
    return media_playlist(stretches, target, [tag], event=growing, ended=not growing)


def media_segments(listed: Subsegments, timescale: int) -> Iterator[Range]:
    """Seconds, offset and size of each stretch."""
    columns = (listed.duration.tolist(), listed.offset.tolist(), listed.size.tolist())
    for duration, offset, size in zip(*columns, strict=True):
        yield Fraction(duration, timescale), offset, size


def _iframes(track: Track) -> Iterator[Range]:
    timed(track)
    table, samples = track.fragments, track.samples
    rows = np.flatnonzero((table.first_sync == 0) & (table.moof_offset != NULL))
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


@record(frozen=True, slots=True, eq=False)
class TrackPlaylist:
    """A track in a file of its own.

    Attributes:
        index: of that file: one period, whose first video or audio track it is.
        uri: address of its media playlist.
        name: what people choose it by; no other of its kind has the same.
    """

    index: Index
    uri: str
    name: str

    @property
    def track(self) -> Track:
        """The track."""
        return reference_track(period_of(self.index, None))


def write_renditions(
    renditions: Sequence[TrackPlaylist], *, segment_duration: TimeLike = SEGMENT_DURATION
) -> bytes:
    """The multivariant playlist of tracks apart, as UTF-8 text.

    Args:
        renditions: video and audio tracks on one timeline; the first of a kind is the default.
        segment_duration: as in the media playlists; the peak bandwidth is that of segments.

    Raises:
        BuildError: no track is video or audio, or one has no movie fragments.
        InexactIndex: times of fragments are not known.
    """
    kinds = {
        kind: [one for one in renditions if one.track.kind == kind] for kind in ("video", "audio")
    }
    if not any(kinds.values()):
        raise BuildError("a playlist needs a video or an audio track")
    lead = next(alike[0] for alike in kinds.values() if alike)
    lines, beside = [], []
    groups: dict[str, str] = {}
    for kind, alike in kinds.items():
        # what is the variant itself needs no group unless there is something to choose
        if alike and (alike != [lead] or len(alike) > 1):
            groups[kind.upper()] = kind
            lines += [
                media(
                    kind,
                    one.name,
                    language=spoken(one.track),
                    channels=channels_of(one.track),
                    default=one is alike[0],
                    uri=one.uri,
                )
                for one in alike
            ]
            beside += [one for one in alike if lead.track.kind != kind]
    segments = _segments(lead, segment_duration)
    rates = [bandwidths(_segments(one, segment_duration)) for one in beside]
    alone = bandwidths(segments)
    # one rendition of a group plays at a time: the variant needs the most expensive (4.3.4.2)
    peak, average = (alone[n] + max((rate[n] for rate in rates), default=0) for n in (0, 1))
    codecs = [one.track.codec for alike in kinds.values() for one in alike]
    rate = _picture_rate(lead.track, segments)
    shown = lead.track.info.dynamic_range
    variant = Variant(lead.uri, (peak, average), codecs, lead.track, rate, shown, groups)
    return multivariant([*lines, *variant.lines()])


def _segments(one: TrackPlaylist, segment_duration: TimeLike) -> list[Range]:
    track = one.track
    ticks = floor_ticks(segment_duration, track.timescale, NO_SHIFT)
    listed = subsegments(period_of(one.index, None), track.id, min_ticks=ticks, at_sync=True)
    return list(media_segments(listed, track.timescale))
