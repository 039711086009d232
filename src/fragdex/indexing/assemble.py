"""A finished scan becomes the periods of an index.

The same moov again is one movie, and not a period for each: recorders and joined segments repeat
the initialization segment, others write a preliminary moov and a final one. Where times start
again, or other tracks come, it is another period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from fragdex.boxes import parse_box
from fragdex.errors import FormatError, MalformedBox
from fragdex.fragments.findings import Finding, Findings
from fragdex.fragments.table import FAR
from fragdex.indexing.beside import between
from fragdex.indexing.fragment_batches import Section, last_place
from fragdex.indexing.headers import ROW, Rows, code
from fragdex.indexing.periods import Moov, Rules, periods
from fragdex.indexing.positions import LEAD_CODES, MDAT, MOOF, lay_out
from fragdex.indexing.samples import MoofStore
from fragdex.indexing.scan import Scan
from fragdex.indexing.sync import Expansion
from fragdex.record import record
from fragdex.seeking.model import Period, Track

Told = tuple[Period, Section]
"""A period, and the section that it was made of."""
MOST_COMPARED = 1 << 22
"""Samples of a track up to which the samples of two moovs are compared."""


def joined(sections: Sequence[Section], scan: Scan, findings: Findings) -> list[Section]:
    """The sections of a file; those whose moov repeats and whose times continue become one."""
    whole: list[Section] = []
    times: dict[int, int] | None = None
    for section in sections:
        if whole and section.repeats:
            if times is None:
                times = whole[-1].last_times()
            first = section.first_times()
            if all(time > times[track] for track, time in first.items() if track in times):
                times |= section.last_times()
                whole[-1].append(section)
                _note(findings, scan.movies[section.moov][0].offset)
                continue
        whole.append(section)
        times = None
    return whole


def only_one_of(before: Told, new: Told, offset: int, findings: Findings) -> Told | None:
    """Of two periods that name the same samples, the one that names more; of equals, the first.

    Returns: None where they are two periods.
    """
    if not (_alike(before, new) or _alike(new, before)):
        return None
    if _covers(before[0], new[0]):
        chosen = before
    elif _covers(new[0], before[0]):
        period = replace(new[0], number=before[0].number)
        for track in period.tracks:
            track.period = period.number
        chosen = period, new[1]
    else:
        return None
    _note(findings, offset)
    return chosen


def _alike(one: Told, other: Told) -> bool:
    """Whether the tracks of `one` are among those of `other`, and decode alike."""
    mine, theirs = one[1].decoders, other[1].decoders
    return bool(mine) and all(mine[track] == theirs.get(track) for track in mine)


def _covers(fuller: Period, other: Period) -> bool:
    """Whether every sample of `other` is one of `fuller`, in the same order."""
    known = {track.id: track for track in fuller.tracks}
    return all(
        not len(track.fragments) or (track.id in known and _begins_with(known[track.id], track))
        for track in other.tracks
    )


def _begins_with(fuller: Track, other: Track) -> bool:
    count, room = other.sample_count, fuller.sample_count
    if count is None or room is None or not count <= room <= MOST_COMPARED:
        return False
    # Mostly the first bytes tell other movies apart; samples are written out for few.
    if fuller.fragments.data_start[0] != other.fragments.data_start[0]:
        return False
    mine, theirs = fuller.samples, other.samples
    return all(
        np.array_equal(getattr(mine, name)[:count], getattr(theirs, name))
        for name in ("offset", "size")
    )


def _note(findings: Findings, offset: int) -> None:
    findings.add(
        "repeated-moov",
        "a moov of the same tracks comes again; it is one movie with the one before",
        offset=offset,
        path="moov",
    )


MPVD = code("mpvd")
"""A motion photo's video, in a HEIC picture."""


@record(slots=True)
class Assembled:
    """What a scan came to."""

    periods: tuple[Period, ...]
    findings: tuple[Finding, ...]
    complete: bool
    resume_offset: int


@record(slots=True)
class _End:
    """Where the usable part of the file ends, and from which moof on fragments are left out."""

    complete: bool
    resume: int
    moofs: int


def assemble(
    scan: Scan,
    size: int,
    *,
    init: Moov | None = None,
    strict: bool = False,
    partial: bool = False,
    known: tuple[Finding, ...] = (),
) -> Assembled:
    """The periods of a scanned file.

    Args:
        scan: it has seen everything up to `size`.
        init: an initialization segment from elsewhere; it governs what no moov governs here.
        strict: keep the positions of the rule where they miss the media data; damage raises.
        partial: keep fragments whose media data is incomplete.
    """
    scan.close_last(size)
    scan.settle()
    findings = Findings(known + scan.findings.all())
    noise = scan.noise(size)
    if noise is not None:
        findings.add(
            "trailing-bytes",
            f"the last {size - noise:,} bytes of the file are not boxes; they are not read",
            offset=noise,
        )
    if scan.stopped is not None and strict:
        raise scan.stopped
    if scan.stopped is not None and noise is None:
        findings.add(
            "malformed-box",
            f"{scan.stopped.message}; what follows is not read",
            offset=scan.stopped.offset,
        )
    if strict and scan.damaged_tracks:
        raise scan.damaged_tracks[0]
    damaged = sorted(scan.damaged)
    if damaged:
        # Fragments that break the rules are a gap; where nothing else is there, an error.
        offsets, _ = scan.moofs()
        offset = int(offsets[damaged[0]])
        why = _why(scan, damaged[0], offset)
        if strict or (len(damaged) == len(offsets) and not scan.movies):
            raise why
        message = f"{why.message}; the fragment is left out"
        findings.add("damaged-fragment", message, offset=offset, path="moof", count=len(damaged))
    end = _end(scan, size if noise is None else noise, partial, noise is not None)
    stbls = sum(len(section.stbls) for section in scan.sections)
    store = MoofStore(*scan.moofs(), scan.moof_bytes())
    rules = Rules(
        cache(lambda: lay_out(scan.tops())),
        cache(lambda: (odd := between(scan.tops()))[odd < (FAR if noise is None else noise)]),
        end.moofs,
        size,
        strict,
        store,
        findings,
        stbls,
        Expansion.of(scan.whole_bytes),
        scan.shapes.known,
        parts_clocks=scan.parts_clocks,
    )
    sections = [s for s in scan.sections if s.moov >= 0 or not s.empty] or [Section(-1)]
    if len(sections) > 1 and sections[0].moov < 0 and init is None:
        # Fragments before the only moov belong to it.
        sections[1].take_over(sections[0])
        sections = sections[1:]
    parts: list[Told] = []
    for section in joined(sections, scan, findings):
        moov = scan.movies[section.moov] if section.moov >= 0 else init
        new, *restarted = (
            (one, section) for one in periods(len(parts), section, moov, scan, rules)
        )
        only = None
        if parts and moov and not restarted:
            only = only_one_of(parts[-1], new, moov[0].offset, findings)
        parts[len(parts) - (only is not None) :] = [only or new, *restarted]
    complete = end.complete and not rules.short
    if complete and not any(one.tracks for one, _ in parts) and not findings.all():
        _note_nothing(scan, findings)
    if not complete:
        findings.add(
            "truncated",
            "the file ends before it should; what is complete is indexed",
            offset=end.resume,
        )
    return Assembled(tuple(one for one, _ in parts), findings.all(), complete, end.resume)


def _note_nothing(scan: Scan, findings: Findings) -> None:
    """Why there is no track in a file in which nothing is wrong."""
    if scan.movies:
        at = scan.movies[0][0].offset
        findings.add("no-tracks", "the moov describes no track", offset=at, path="moov")
        return
    moofs = [int(row["offset"]) for top in scan.tops() for row in top[top["type"] == MOOF]]
    if moofs:
        findings.add(
            "no-tracks", "no moof has a track fragment (traf)", offset=moofs[0], path="moof"
        )
        return
    films = [top[top["type"] == MPVD] for top in scan.tops()]
    film = next((rows[0] for rows in films if len(rows)), None)
    if film is None:
        findings.add("no-movie", "the file has no movie: there is no moov and no moof")
        return
    begin = int(film["offset"] + film["header"])
    findings.add(
        "film-inside",
        "this is a picture with a complete MP4 inside, which begins at byte "
        f"{begin:,} and has {int(film['size'] - film['header']):,} bytes",
        offset=begin,
        path="mpvd",
    )


def _end(scan: Scan, size: int, partial: bool, noisy: bool) -> _End:
    """Whether the file is whole; if not, which part is missing and where to continue.

    Args:
        noisy: whether other bytes follow.
    """
    moofs = scan.moof_count
    tail = _tail(scan)
    tail = tail[tail["offset"] < size] if noisy else tail
    stop = int(tail["offset"][-1] + tail["size"][-1]) if len(tail) else scan.position
    whole = scan.to_end is not None or (stop <= size and scan.position >= size)
    whole &= scan.stopped is None and (not scan.carried or scan.to_end is not None)
    whole = (whole or noisy) and scan.cut_moov is None
    if whole and (not moofs or tail["type"][-1] != MOOF):
        return _End(True, _before_lead(tail, size), moofs)
    if moofs:
        layout = lay_out([tail])
        has_data = bool((tail["type"][tail["offset"] > layout.moof[-1]] == MDAT).any())
        is_cut = stop > size and bool(layout.stop[-1] > size)
        lacks = (is_cut or not has_data) and scan.sections[-1].wants_data(
            moofs - 1, int(layout.moof[-1])
        )
        if whole and not lacks:
            return _End(True, size, moofs)
        if lacks:
            return _End(False, int(layout.start[-1]), moofs if partial else moofs - 1)
    # An unfinished box: continue there, or at the boxes that introduce its fragment.
    if stop > size and len(tail):
        return _End(False, int(tail["offset"][-1]), moofs)
    return _End(False, _before_lead(tail, scan.position), moofs)


def _before_lead(tail: Rows, resume: int) -> int:
    """Where the boxes begin that stand directly before `resume` and introduce a fragment."""
    for row in range(len(tail) - 1, -1, -1):
        offset = int(tail["offset"][row])
        if int(tail["type"][row]) not in LEAD_CODES or offset + int(tail["size"][row]) != resume:
            break
        resume = offset
    return resume


def _tail(scan: Scan) -> Rows:
    """Rows of the last top-level boxes, with the last fragment and what introduces it."""
    parts: list[Rows] = []
    has_tail = False
    for top in reversed(scan.tops()):
        last = last_place(top, MOOF) if scan.moof_count else None
        before = last_place(top[:last], MOOF) if last else None
        if before is not None:
            # What stands before it belongs to no requested fragment.
            parts.insert(0, top[before:])
            break
        parts.insert(0, top)
        if has_tail:
            break
        has_tail = last is not None
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, ROW)


def _why(scan: Scan, moof: int, offset: int) -> FormatError:
    """The error that the declared layouts raise for a damaged moof."""
    before = 0
    for buffer, places in scan.moof_bytes():
        if moof < before + len(places):
            at = int(places[moof - before])
            size = int(scan.moofs()[1][moof])
            try:
                parse_box(buffer[at : at + size], offset=offset, strict=True)
            except FormatError as error:
                return error
            break
        before += len(places)
    return MalformedBox("a movie fragment is malformed", path="moof", offset=offset)
