"""`fragdex seek` and `fragdex plan`: the bytes of a moment, what a seek reads, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import typer

from fragdex.cli import options
from fragdex.cli.inputs import STDIN, answer, media_of, notes, open_any
from fragdex.cli.output import json_line
from fragdex.record import record

Seconds = Fraction | float


@options.opens("init", "exact", "strict", "ignore_mtime", "follow", "max_bytes", "max_requests")
def seek(
    files: options.FilesAndTimes = None,
    time: options.Time = None,
    at: options.At = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--stop",
            "--end",
            "-u",
            metavar="TIME",
            help="End there (or: end), and print the merged byte ranges that play from TIME on.",
        ),
    ] = None,
    verified: Annotated[
        bool,
        typer.Option(
            "--verified", help="Check the media, and go back to where a decoder can really start."
        ),
    ] = False,
    tracks: options.Tracks = None,
    json: options.Json = False,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Find the bytes for a time: where decoding for TIME starts in each track.

    TIME is presentation time, the time a player shows. Byte ranges are written as in HTTP:
    first and last byte, both inclusive. Times before the start or after the end give the nearest
    sync sample, marked as clamped. A negative time goes after --.

    Some files mark pictures as sync samples although they depend on others. --verified checks the
    pictures themselves; for a saved index, those of its media file.

    Examples:
      fragdex seek movie.mp4 1:02:03.5
      fragdex seek movie.mp4 90 --verified
      fragdex seek movie.fidx 60 --stop 90 --track 1
    """
    names, (text,) = options.split_times(files, [time], {"--at": (at, "")})
    start = options.parse_time(text)
    stop = None if until is None else options.parse_time(until)
    if stop is not None and stop < start:
        raise typer.BadParameter(f"--stop {until} lies before {text}")
    query = _Query(start, stop, tracks, verified)
    finding = partial(_seek, query=query, json=json, opening=opening)
    return answer("seek", finding, names, jobs=jobs, output=output, titles=not json)


@record(frozen=True, slots=True)
class _Query:
    """What is sought: seconds, or infinity for the end."""

    start: Seconds
    stop: Seconds | None
    tracks: list[int] | None
    verified: bool


def _seek(
    name: str, query: _Query, json: bool, opening: dict[str, Any]
) -> tuple[str, Sequence[str]]:
    index = open_any(name, **opening)
    start, stop, tracks = query.start, query.stop, query.tracks
    remarks = notes(index, findings=False)
    first, last = edges(index, tracks)
    at_end = math.isinf(start)
    if at_end:
        start = last if last is not None else 0.0
    if stop is not None:
        if math.isinf(stop):
            stop = last if last is not None else start
        begin: Any = start
        if query.verified:
            begin = min(hit.time for _, hit in _hits(index, name, start, query, opening))
        span = index.span(begin, max(start, stop), tracks=tracks)
        beyond = [] if first is None or last is None else _beyond(start, stop, first, last)
        remarks = [*remarks, *([] if at_end else beyond)]
        if json:
            value = {"file": name, **_span_value(start, stop, span), "clamped": bool(beyond)}
            value |= {"plays": span.plays, "obstacle": span.obstacle}
            return json_line(value), remarks
        if not span.plays:
            remarks = [*remarks, f"these bytes do not play alone: {span.obstacle}"]
        lines = [f"init  {part.header}\n" for part in span.init]
        lines += [f"media {part.header}\n" for part in span.media]
        return "".join(lines), remarks
    hits = _hits(index, name, start, query, opening)
    if json:
        value = {"file": name, "time": float(start), "hits": [hit_value(*h) for h in hits]}
        return json_line(value), remarks
    return "".join(_line(track, hit, index) for track, hit in hits), remarks


def _hits(
    index: Any, name: str, start: Seconds, query: _Query, opening: dict[str, Any]
) -> list[tuple[Any, Any]]:
    """Each track that is sought in, and where decoding starts in it."""
    from fragdex.errors import NoSyncSample

    chosen = (
        [index.track(track) for track in query.tracks]
        if query.tracks is not None
        else [track for track in index.tracks if track.timescale and len(track.sync_samples)]
    )
    if not chosen:
        raise NoSyncSample(f"{name} has no track to seek in")
    if not query.verified:
        return [(track, track.seek(start)) for track in chosen]
    with _media(index, name, opening) as source:
        return [(track, track.seek(start, verified=True, source=source)) for track in chosen]


def _media(index: Any, name: str, opening: dict[str, Any]) -> Any:
    """The media of an input, with the rest of its budget."""
    from fragdex.errors import SourceNotFound
    from fragdex.sources import open_source

    if name == STDIN:
        raise SourceNotFound(
            "--verified reads the media again, which a pipe does not allow", advice="name a file"
        )
    media = media_of(index, name)
    source = open_source(media)
    if media == name:
        # Indexing has spent of the same budget.
        source.requests, source.bytes_read = index.how.requests, index.how.bytes_read
    source.max_bytes, source.max_requests = opening["max_bytes"], opening["max_requests"]
    return source


def edges(index: Any, tracks: list[int] | None) -> tuple[float | None, float | None]:
    """Seconds at which the first track starts and the last one ends, where that is known."""
    chosen = index.tracks if tracks is None else [index.track(track) for track in tracks]
    starts = [float(t.start) for t in chosen if t.start is not None]
    ends = [float(t.stop) for t in chosen if t.stop is not None]
    return min(starts, default=None), max(ends, default=None)


def _beyond(start: Seconds, stop: Seconds, first: float, last: float) -> list[str]:
    """A sentence where a span reaches outside of what there is to play."""
    what = f"clamped: it plays from {first:.6f} s to {last:.6f} s"
    if start >= last or stop < first:
        return [f"{what}; these are the nearest bytes"]
    return [what] if start < first or stop > last else []


def hit_value(track: Any, hit: Any) -> dict[str, Any]:
    """A hit as a value for JSON; `stop` is exclusive."""
    return {
        "track": hit.track,
        "period": track.period,
        "kind": track.kind,
        "fragment": hit.fragment,
        "sample": hit.sample,
        "start": hit.range.start,
        "stop": hit.range.stop,
        "time": hit.time.seconds,
        "cts": hit.cts,
        "dts": hit.dts,
        "timescale": track.timescale,
        "clamped": hit.clamped,
    }


def _span_value(start: Seconds, stop: Seconds, span: Any) -> dict[str, Any]:
    def plain(parts: Any) -> list[dict[str, int]]:
        return [{"start": part.start, "stop": part.stop} for part in parts]

    return {
        "time": float(start),
        "until": float(stop),
        "init": plain(span.init),
        "media": plain(span.media),
    }


def _line(track: Any, hit: Any, index: Any) -> str:
    several = len({t.period for t in index.tracks}) > 1
    words = [
        f"{f'period {track.period} ' if several else ''}track {hit.track} ({track.kind})",
        hit.range.header,
        f"from {hit.time.seconds:.6f} s",
        f"fragment {hit.fragment}",
    ]
    if hit.sample is not None:
        words.append(f"sample {hit.sample}")
    if hit.clamped:
        words.append("clamped")
    return "  ".join(words) + "\n"


@options.opens("init", "exact", "strict", "ignore_mtime", "follow", "max_bytes", "max_requests")
def plan(
    files: options.FilesAndTimes = None,
    time: options.Time = None,
    at: options.At = None,
    tracks: options.Tracks = None,
    json: options.Json = False,
    output: options.Output = None,
    jobs: options.Jobs = 1,
    *,
    opening: dict[str, Any],
) -> int:
    """Show what a seek to TIME would read: requests, bytes, samples to decode, and why.

    Examples:
      fragdex plan movie.mp4 1:02:03.5
      fragdex plan https://example.org/movie.mp4 60 --max-requests 4 --json
    """
    names, (text,) = options.split_times(files, [time], {"--at": (at, "")})
    planning = partial(
        _plan, time=options.parse_time(text), tracks=tracks, json=json, opening=opening
    )
    return answer("plan", planning, names, jobs=jobs, output=output, titles=not json)


def _plan(
    name: str, time: Fraction | float, tracks: list[int] | None, json: bool, opening: dict[str, Any]
) -> tuple[str, Sequence[str]]:
    from fragdex.errors import NoSyncSample
    from fragdex.seeking.show import byte_count, counted

    index = open_any(name, **opening)
    remarks = notes(index, findings=False)
    if math.isinf(time):
        time = edges(index, tracks)[1] or 0.0
    plan = index.plan(time, tracks=tracks)
    if not plan.hits:
        raise NoSyncSample(f"{name} has no track to seek in")
    if json:
        tracks_by_id = {track.id: track for track in index.tracks}
        value = {
            "file": name,
            "time": float(time),
            "index": {
                "method": index.how.method,
                "exact": index.how.exact,
                "reason": index.how.reason,
                "requests": index.how.requests,
                "bytes": index.how.bytes_read,
            },
            "requests": plan.requests,
            "bytes": plan.bytes,
            "init": [{"start": r.start, "stop": r.stop} for r in plan.init],
            "reads": [{"start": r.start, "stop": r.stop} for r in plan.reads],
            "samples": {str(track): count for track, count in plan.samples.items()},
            "hits": [hit_value(tracks_by_id[hit.track], hit) for hit in plan.hits],
            "why": list(plan.why),
        }
        return json_line(value), remarks
    how = index.how
    lines = [
        f"index: from {how.method}, {byte_count(how.bytes_read)} read in "
        f"{counted(how.requests, 'request')}" + (f"; {how.reason}" if how.reason else "")
    ]
    if plan.init:
        size = sum(part.size for part in plan.init)
        lines.append(f"once: {byte_count(size)} initialization segment")
        lines += [f"  {part.header}" for part in plan.init]
    lines.append(f"seek: {byte_count(plan.bytes)} in {counted(plan.requests, 'request')}")
    lines += [f"  {part.header}" for part in plan.reads]
    lines.append("why:")
    lines += [f"  {sentence}" for sentence in plan.why]
    return "\n".join(lines) + "\n", remarks
