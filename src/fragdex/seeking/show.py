"""How an index prints itself: a line a track, a text, and a table with a timeline in HTML.

However long the file is, each lane of the timeline is one path with at most a mark a pixel.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragdex.errors import DamagedIndex, printable
from fragdex.fragments.table import NULL

if TYPE_CHECKING:
    from fragdex.seeking.model import Index
    from fragdex.seeking.track import Track

Floats = npt.NDArray[np.float64]

WIDTH, LEFT, RIGHT, LANE, RATE = 760, 120, 32, 22, 60
# Two colours that every eye tells apart, also in grey: blue and vermilion of Okabe and Ito.
FRAGMENT, SYNC, BYTES = "#0072B2", "#D55E00", "#009E73"


def fragment_spans(track: Track) -> tuple[Floats, Floats]:
    """Seconds at which the fragments of a track start and stop, in file order.

    A fragment that does not tell its end lasts until the next; fragments without times are left
    out.
    """
    table = track.fragments
    known = table.cts_min != NULL
    if not track.info.timescale or not known.any():
        return np.zeros(0), np.zeros(0)
    starts, ends = table.cts_min[known], table.cts_end[known].copy()
    order = np.argsort(starts, kind="stable")
    following = np.append(starts[order][1:], starts[order][-1])
    open_ended = ends[order] == NULL
    sorted_ends = ends[order]
    sorted_ends[open_ended] = following[open_ended]
    ends[order] = sorted_ends
    shift = float(track.presentation(0))
    scale = track.info.timescale
    return starts / scale + shift, ends / scale + shift


def sync_times(track: Track, most: int = 1_000_000) -> Floats:
    """Seconds of the sync samples of a track, in order; at most so many, evenly left out."""
    sync = track.sync_samples
    if not track.info.timescale or not len(sync):
        return np.zeros(0)
    total = int(sync.count.sum())
    numbers = np.arange(0, total, max(1, -(-total // most)))
    firsts = np.cumsum(sync.count) - sync.count
    run = np.searchsorted(firsts, numbers, side="right") - 1
    ticks = sync.cts[run] + (numbers - firsts[run]) * sync.step[run]
    seconds: Floats = ticks / track.info.timescale + float(track.presentation(0))
    return seconds


def main_track(tracks: Sequence[Track]) -> Track | None:
    """The track whose fragments pace the file: the first of pictures, else the first with any."""
    timed = [t for t in tracks if len(t.fragments) and len(fragment_spans(t)[0])]
    return next((t for t in timed if t.info.kind == "video"), timed[0] if timed else None)


def rate_steps(tracks: Sequence[Track]) -> tuple[Floats, Floats]:
    """Bits a second of the whole file as steps: n + 1 times in seconds, n rates.

    The bytes from one fragment of the main track to the next are what a player must fetch in that
    time, other tracks included.
    """
    track = main_track(tracks)
    if track is None:
        return np.zeros(0), np.zeros(0)
    starts, stops = fragment_spans(track)
    table = track.fragments.rows(track.fragments.cts_min != NULL)
    order = np.argsort(starts, kind="stable")
    starts, offset = starts[order], table.offset[order]
    last = float(stops.max())
    edges = np.append(starts, max(last, float(starts[-1])))
    sizes = np.append(np.diff(offset), table.size[order][-1])
    # Out of file order the distance says nothing: the fragment's own bytes do.
    sizes = np.where(sizes > 0, sizes, table.size[order])
    spans = np.diff(edges)
    lasting = spans > 0
    rates = sizes[lasting] * 8 / spans[lasting]
    return np.append(edges[:-1][lasting], edges[-1]), rates


def time_ticks(start: float, stop: float, most: int = 8) -> list[float]:
    """Round times between two, at most so many.

    >>> time_ticks(0, 10, 6)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    span = stop - start
    if not 0 < span < math.inf:
        return [start]
    round_steps = [m * 10.0**e for e in range(-4, 1) for m in (1, 2, 5)]
    round_steps += [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]
    step = next((s for s in round_steps if span / s <= most - 1), span / (most - 1))
    first = math.ceil(start / step - 1e-9)
    return [n * step for n in range(first, math.floor(stop / step + 1e-9) + 1)]


def tick_label(seconds: float, step: float) -> str:
    """A time under an axis, as short as the step allows.

    >>> tick_label(75, 15), tick_label(0.5, 0.5), tick_label(3600, 600)
    ('1:15', '0.5', '1:00:00')
    """
    if step < 1:
        return f"{seconds:.{max(0, -math.floor(math.log10(step)))}f}"
    whole = round(abs(seconds))
    sign = "-" if seconds < 0 else ""
    if whole >= 3600:
        return f"{sign}{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
    return f"{sign}{whole // 60}:{whole % 60:02}" if whole >= 60 else f"{sign}{whole}"


def bit_rate(value: float) -> str:
    """Bits a second as people read them.

    >>> bit_rate(1_500_000), bit_rate(900)
    ('1.5 Mbit/s', '900 bit/s')
    """
    for unit in ("", "k", "M", "G"):
        if value < 999.5:
            return f"{value:.3g} {unit}bit/s"
        value /= 1000
    return f"{value:,.3g} Tbit/s"


def timeline_svg(tracks: Sequence[Track]) -> str:
    """Lanes over one axis of presentation time; "" where no track has times."""
    drawn = [(track, *fragment_spans(track)) for track in tracks]
    drawn = [lane for lane in drawn if len(lane[1])]
    if not drawn:
        return ""
    first = min(float(starts.min()) for _, starts, _ in drawn)
    last = max(float(stops.max()) for _, _, stops in drawn)
    per_second = (WIDTH - LEFT - RIGHT) / max(last - first, 1e-9)

    def x(seconds: Floats) -> Floats:
        return np.round(LEFT + (seconds - first) * per_second, 1)

    several = len({track.period for track in tracks}) > 1
    height = RATE + 14 + LANE * len(drawn) + 24
    parts = [_rate_path(tracks, x)]
    top = RATE + 14
    for track, starts, stops in drawn:
        place = f"period {track.period} " if several else ""
        parts.append(_text(LEFT - 8, top + 14, f"{place}track {track.info.id}", "end"))
        parts.append(_fragment_path(x(starts), x(stops), top + 4))
        parts.append(_sync_path(x(sync_times(track, 10_000)), top))
        top += LANE
    ticks = time_ticks(first, last)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    for tick in ticks:
        at = float(x(np.array([tick]))[0])
        parts.append(f'<path d="M{at:g} {top}v5" stroke="currentColor"/>')
        parts.append(_text(at, top + 18, tick_label(tick, step), "middle"))
    parts.append(_text(LEFT - 8, top + 18, "time (s)" if last < 60 else "time", "end"))
    parts.append(f'<path d="M{LEFT} {top}H{WIDTH - RIGHT}" stroke="currentColor"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'style="width:100%;max-width:{WIDTH}px;font:11px sans-serif" fill="none">'
        "<title>Fragments (blue), sync samples (orange) and bytes a second over time</title>"
        f"{''.join(parts)}</svg>"
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    # Only numbers and words of our own come here: nothing to escape.
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="currentColor">{text}</text>'


def _rate_path(tracks: Sequence[Track], x: Callable[[Floats], Floats]) -> str:
    edges, rates = rate_steps(tracks)
    if not rates.any():
        return ""
    places = x(edges)
    highest = float(rates.max())
    tops = np.round(RATE - rates / highest * (RATE - 8), 1)
    if len(rates) > WIDTH:
        # One step a pixel: the highest of those that share it.
        pixel = places[:-1].astype(np.int64)
        firsts = np.flatnonzero(np.diff(pixel, prepend=-1))
        tops = np.minimum.reduceat(tops, firsts)
        places = np.append(places[:-1][firsts], places[-1])
    path = f"M{places[0]:g} {RATE}"
    for start, level in zip(places[:-1], tops, strict=True):
        path += f"H{start:g}V{level:g}"
    path += f"H{places[-1]:g}V{RATE}Z"
    label = _text(LEFT - 8, 16, bit_rate(highest), "end") + _text(LEFT - 8, RATE, "0", "end")
    return f'{label}<path d="{path}" fill="{BYTES}" fill-opacity=".45" stroke="{BYTES}"/>'


def _fragment_path(starts: Floats, stops: Floats, top: float) -> str:
    low, high = float(starts.min()), float(stops.max())
    bar = (
        f'<rect x="{low:g}" y="{top:g}" width="{max(high - low, 1):g}" height="14" '
        f'fill="{FRAGMENT}" fill-opacity=".3"/>'
    )
    edges = np.unique(starts)
    if len(edges) > WIDTH / 3:
        return bar  # closer than the eye can part them
    path = "".join(f"M{at:g} {top:g}v14" for at in edges)
    return f'{bar}<path d="{path}" stroke="{FRAGMENT}" stroke-width="1"/>'


def _sync_path(places: Floats, top: float) -> str:
    pixels = np.unique(np.round(places * 2) / 2)
    path = "".join(f"M{at:g} {top:g}v6" for at in pixels)
    return f'<path d="{path}" stroke="{SYNC}" stroke-width="1"/>' if path else ""


ORIGINS = {
    "boxes": "the movie fragments (moof)",
    "stbl": "the sample tables (stbl)",
    "stbl+boxes": "the sample tables and movie fragments (stbl, moof)",
}
"""Where an index comes from, by its method; the others are boxes or files of that name."""
MAX_TRACKS = 50
"""Tracks and findings that a printed index lists; real files have a handful."""


def track_line(track: Track) -> str:
    """One line on one track: kind, codec, picture or sound, fragments, samples, span."""
    cells = [cell for cell in _cells(track)[1:] if cell]
    return f"track {track.info.id}: {', '.join(cells)}"


def index_text(index: Index) -> str:
    """A few lines on a whole index, as `print(index)` shows them."""
    lines = [_headline(index)]
    tracks = index.tracks[:MAX_TRACKS]
    rows = [_cells(track) for track in tracks]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    several = len({track.period for track in index.tracks}) > 1
    for track, row in zip(tracks, rows, strict=True):
        padded = "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width
        )
        where = f"period {track.period}  " if several else ""
        lines.append(f"  {where}track {padded}".rstrip())
    if len(index.tracks) > MAX_TRACKS:
        lines.append(f"  and {len(index.tracks) - MAX_TRACKS:,} more tracks")
    lines += _rest(index)
    return "\n".join(lines)


def index_html(index: Index) -> str:
    """The index as an HTML fragment: a summary table and a timeline drawn as inline SVG.

    The timeline shows, over presentation time, the bytes a second, the fragments of each track and
    their sync samples. Every text that comes from the file is escaped. At most a few hundred marks
    are drawn, however long the file is.
    """
    titles = ("track", "kind", "codec", "format", "fragments", "samples", "sync", "presentation")
    rows = [_cells(track) for track in index.tracks[:MAX_TRACKS]]
    cell = 'style="text-align:left;padding:2px 12px 2px 0;white-space:nowrap"'
    parts = [f"<p><strong>{escape(_headline(index))}</strong></p>"]
    if rows:
        head = "".join(f"<th {cell}>{title}</th>" for title in titles)
        body = "".join(
            "<tr>" + "".join(f"<td {cell}>{escape(_bare(text))}</td>" for text in row) + "</tr>"
            for row in rows
        )
        parts.append(
            '<table style="font-size:13px"><thead>'
            f"<tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )
        whole = [track for track in index.tracks[:MAX_TRACKS] if not _damage(track)]
        parts.append(timeline_svg(whole))
    parts += [f"<p>{escape(line.strip())}</p>" for line in _rest(index)]
    return f'<div class="fragdex-index">{"".join(parts)}</div>'


def clock(seconds: float) -> str:
    """Seconds as people read them: `0.000`, `1:05.250`, `2:00:00.000`.

    >>> clock(65.25), clock(-0.5), clock(7200)
    ('1:05.250', '-0.500', '2:00:00.000')
    """
    sign, thousandths = "-" if seconds < 0 else "", round(abs(seconds) * 1000)
    minutes, rest = divmod(thousandths, 60_000)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest // 1000}.{rest % 1000:03}"
    if hours:
        return f"{sign}{hours}:{minutes:02}:{tail:0>6}"
    return f"{sign}{minutes}:{tail:0>6}" if minutes else f"{sign}{tail}"


def byte_count(size: int) -> str:
    """Bytes as people read them, in powers of 1024.

    >>> byte_count(512), byte_count(1536), byte_count(5 << 30)
    ('512 B', '1.5 KiB', '5.0 GiB')
    """
    if size < 1024:
        return f"{size:,} B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1023.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:,.1f} TiB"


def counted(count: int | None, word: str) -> str:
    """A number and its word: `1 track`, `2 tracks`, `? samples`.

    >>> counted(1, "track"), counted(None, "sample")
    ('1 track', '? samples')
    """
    return f"{'?' if count is None else f'{count:,}'} {word}{'' if count == 1 else 's'}"


def _headline(index: Index) -> str:
    how, size = index.how, index.file.size
    parts = [] if size is None else [byte_count(size)]
    with contextlib.suppress(DamagedIndex):
        if (duration := index.duration) is not None:
            parts.append(f"{clock(duration)} s" if duration < 60 else clock(duration))
    parts.append(counted(len(index.tracks), "track"))
    parts.append("exact" if how.exact else "fragments only")
    read = f"{byte_count(how.bytes_read)} read in {counted(how.requests, 'request')}"
    name = printable(index.file.name) or "index"
    return f"{name}: {', '.join(parts)}, from {ORIGINS.get(how.method, how.method)}; {read}"


def _damage(track: Track) -> str:
    """Where a saved index contradicts itself; "" where it does not.

    Its tables are read when they are first used. Whoever prints it wants to see what is wrong.
    """
    try:
        _ = track.fragments, track.sync_samples
    except DamagedIndex as error:
        return f"damaged at {error.path}"
    return ""


def _cells(track: Track) -> tuple[str, ...]:
    """The cells of a track's line; texts of the file are made safe for a terminal."""
    return tuple(map(printable, _texts(track)))


def _texts(track: Track) -> tuple[str, ...]:
    info = track.info
    if info.width and info.height:
        shape = f"{info.width}×{info.height}"
    elif info.sample_rate:
        shape = f"{info.sample_rate:,} Hz" + (
            f" {info.channel_count} ch" if info.channel_count else ""
        )
    else:
        shape = info.language or ""
    if info.encryption is not None:
        shape = f"{shape} {info.encryption.scheme or 'encrypted'}".strip()
    if damage := _damage(track):
        return (str(info.id), info.kind, info.codec or info.format, shape, damage, "", "", "")
    span = ""
    if track.start is not None and track.stop is not None:
        span = f"{clock(float(track.start))} – {clock(float(track.stop))}"
    elif not info.timescale and len(track.fragments):
        span = "times unknown"
    # Without sample numbers, a run of sync samples looks like one at each of its ends.
    known = not (track.sync_samples.sample == NULL).any()
    sync = int(np.sum(track.sync_samples.count)) if known else None
    return (
        str(info.id),
        info.kind,
        info.codec or info.format,
        shape,
        counted(len(track.fragments), "fragment"),
        counted(track.sample_count, "sample"),
        f"{'?' if sync is None else f'{sync:,}'} sync",
        span,
    )


def _bare(cell: str) -> str:
    """A count without the word that the column's title says already."""
    head, _, word = cell.partition(" ")
    return head if word.rstrip("s") in ("fragment", "sample", "sync") else cell


def _rest(index: Index) -> list[str]:
    lines = []
    if not index.complete:
        lines.append(f"  not complete: it can be resumed at byte {index.resume_offset:,}")
    lines += [f"  note: {printable(str(finding))}" for finding in index.findings[:MAX_TRACKS]]
    if len(index.findings) > MAX_TRACKS:
        lines.append(f"  and {len(index.findings) - MAX_TRACKS:,} more notes")
    return lines
