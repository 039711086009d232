"""How an index prints itself: a line a track, a text, and a table with a timeline in HTML.

The model imports this module to print itself, so this module knows the model only by its shape.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from html import escape
from typing import Protocol

import numpy as np

from fragdex.errors import DamagedIndex, printable
from fragdex.fragments.findings import Finding
from fragdex.fragments.table import NULL
from fragdex.seeking.timeline import Track, timeline_svg

__all__ = ["Index", "index_html", "index_text", "track_line"]

ORIGINS = {
    "boxes": "the movie fragments (moof)",
    "stbl": "the sample tables (stbl)",
    "stbl+boxes": "the sample tables and movie fragments (stbl, moof)",
}
"""Where an index comes from, by its method; the others are boxes or files of that name."""
MAX_TRACKS = 50
"""Tracks and findings that a printed index lists; real files have a handful."""


class Source(Protocol):
    """What this module wants of a `SourceInfo`."""

    @property
    def name(self) -> str:
        """Path or URL."""

    @property
    def size(self) -> int | None:
        """Bytes."""


class Way(Protocol):
    """What this module wants of a `How`."""

    @property
    def method(self) -> str:
        """`boxes`, `sidx`, `mfra`, `stbl` and so on."""

    @property
    def exact(self) -> bool:
        """Whether every sample is known."""

    @property
    def requests(self) -> int:
        """Reads that the source answered."""

    @property
    def bytes_read(self) -> int:
        """Bytes that were read."""


class Index(Protocol):
    """What this module wants of a `FragmentIndex`."""

    @property
    def source(self) -> Source:
        """Which bytes it describes."""

    @property
    def how(self) -> Way:
        """How it came to be."""

    @property
    def tracks(self) -> Sequence[Track]:
        """The tracks of all periods."""

    @property
    def findings(self) -> Sequence[Finding]:
        """What was odd."""

    @property
    def complete(self) -> bool:
        """False where the file is truncated or growing."""

    @property
    def resume_offset(self) -> int:
        """The first byte that is not indexed."""

    @property
    def duration(self) -> float | None:
        """Seconds."""


def track_line(track: Track) -> str:
    """One line on one track: kind, codec, picture or sound, fragments, samples, span.

    >>> from fragdex.fragments.table import FragmentTable, SyncTable
    >>> from fragdex.fragments.track_info import TrackInfo
    >>> from fragdex.seeking.model import TrackIndex
    >>> print(
    ...     track_line(TrackIndex(TrackInfo.unknown(3), FragmentTable.empty(), SyncTable.empty()))
    ... )
    track 3: other, 0 fragments, 0 samples, 0 sync
    """
    cells = [cell for cell in _cells(track)[1:] if cell]
    return f"track {track.info.id}: {', '.join(cells)}"


def index_text(index: Index) -> str:
    """A few lines on a whole index, as `print(index)` shows them.

    >>> from fragdex.seeking.model import FragmentIndex, How, SourceInfo
    >>> print(index_text(FragmentIndex(SourceInfo("a.mp4", 2048), How("boxes", True), [])))
    a.mp4: 2.0 KiB, 0 tracks, exact, from the movie fragments (moof); 0 B read in 0 requests
    """
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

    >>> from fragdex.seeking.model import FragmentIndex, How, SourceInfo
    >>> html = index_html(FragmentIndex(SourceInfo("<a>.mp4", 9), How("boxes", True), []))
    >>> "&lt;a&gt;.mp4" in html, "<a>" in html
    (True, False)
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
    how, size = index.how, index.source.size
    parts = [] if size is None else [byte_count(size)]
    with contextlib.suppress(DamagedIndex):
        if (duration := index.duration) is not None:
            parts.append(f"{clock(duration)} s" if duration < 60 else clock(duration))
    parts.append(counted(len(index.tracks), "track"))
    parts.append("exact" if how.exact else "fragments only")
    read = f"{byte_count(how.bytes_read)} read in {counted(how.requests, 'request')}"
    name = printable(index.source.name) or "index"
    return f"{name}: {', '.join(parts)}, from {ORIGINS.get(how.method, how.method)}; {read}"


def _damage(track: Track) -> str:
    """Where a saved index contradicts itself; "" where it does not.

    Its tables are read when they are first asked for. Whoever prints it wants to see what is wrong.
    """
    try:
        _ = track.fragments, track.sync
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
    if track.start is not None and track.end is not None:
        span = f"{clock(float(track.start))} – {clock(float(track.end))}"
    elif not info.timescale and len(track.fragments):
        span = "times unknown"
    # Without sample numbers a run of sync samples cannot be told from one at each of its ends.
    known = not (track.sync.sample == NULL).any()
    sync = int(np.sum(track.sync.count)) if known else None
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
