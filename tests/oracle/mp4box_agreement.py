"""Whether MP4Box.js's samples of a track say the same as the samples of an index.

Offset, size, dts, cts, sync and duration of every sample are compared. Before that, four things
are undone that MP4Box.js does to all files alike. Each is proved first, where it happens, and is
undone with what MP4Box.js itself parsed; nothing moves inside a run:

- Last durations. Of the last sample of a moov's tables it makes the duration what mdhd has left.
  Where that is so, the last sample_delta of its stts is taken (8.6.1.2).
- Counting on. It takes the tfdt of a track's first traf and adds up durations from there. Where a
  later traf begins exactly at the end of the sample before, its own tfdt is taken (8.8.12).
- Runs. It takes the data_offset of a traf's first run and lets every other begin where the sample
  that it listed last ends. Where one does, its own data_offset is taken (8.8.8).
- Bases. Without base_data_offset and default-base-is-moof it counts each traf from its moof. Where
  one does that is not the first of its moof, it is moved to the end of the data of the traf before
  (8.8.7.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import fragdex

COLUMNS = ("offset", "size", "dts", "cts", "sync", "duration")
OFFSET, SIZE, DTS, CTS, _, DURATION = range(6)

Rows = list[list[int]]
Said = Mapping[str, Any]


def by_the_standard(dump: Said) -> tuple[dict[int, Rows], Counter[str]]:
    """MP4Box.js's samples of each track_ID with its habits undone.

    Returns:
        The rows of each track, and how many samples each habit moved (`ends`, `tfdt`,
        `runs`, `bases`).
    """
    rows = {
        int(track): [list(row) for row in samples] for track, samples in dump["samples"].items()
    }
    undone: Counter[str] = Counter()
    _undo_last_durations(dump, rows, undone)
    _undo_counting_on(dump, rows, undone)
    _undo_positions(dump, rows, undone)
    return rows, undone


def disagreements(samples: fragdex.tables.SampleTable, rows: Rows) -> set[str]:
    """Names of the columns that differ, or "samples" where there are more or fewer of them.

    Args:
        samples: what the index says.
        rows: what MP4Box.js says, by the standard.
    """
    if len(samples) != len(rows):
        return {"samples"}
    ours = [getattr(samples, name).astype(int).tolist() for name in COLUMNS]
    # Lists, not arrays: its times may be larger than 64 bits with a sign.
    theirs = [list(column) for column in zip(*rows, strict=True)]
    return {name for name, mine, its in zip(COLUMNS, ours, theirs, strict=False) if mine != its}


def _first_in_fragments(dump: Said, rows: dict[int, Rows]) -> dict[int, int]:
    """Where in each track's rows the samples of fragments begin, behind those of the moov."""
    at = {track: len(samples) for track, samples in rows.items()}
    for moof in dump["fragments"]:
        for traf in moof["trafs"]:
            at[traf["track"]] -= sum(count for _, count in traf["runs"])
    return at


def _undo_last_durations(dump: Said, rows: dict[int, Rows], undone: Counter[str]) -> None:
    for track, count in _first_in_fragments(dump, rows).items():
        whole, delta = dump["ends"][str(track)]
        last = rows[track][count - 1] if count > 0 else None
        if last and delta is not None and last[DURATION] == whole - last[DTS] != delta:
            last[DURATION] = delta
            undone["ends"] += 1


def _undo_counting_on(dump: Said, rows: dict[int, Rows], undone: Counter[str]) -> None:
    at = _first_in_fragments(dump, rows)
    begun: set[int] = set()
    said_before: dict[int, int] = {}
    shift: dict[int, int] = {}
    for moof in dump["fragments"]:
        for traf in moof["trafs"]:
            track = traf["track"]
            count = sum(count for _, count in traf["runs"])
            part = rows[track][at[track] : at[track] + count]
            at[track] += count
            if not part:
                continue
            counts_on = track in begun and part[0][DTS] == said_before[track]
            if counts_on and traf["tfdt"] is not None:
                shift[track] = traf["tfdt"] - part[0][DTS]
            begun.add(track)
            said_before[track] = part[-1][DTS] + part[-1][DURATION]
            move = shift.get(track, 0) if counts_on else 0
            undone["tfdt"] += count * bool(move)
            for row in part:
                row[DTS] += move
                row[CTS] += move


def _undo_positions(dump: Said, rows: dict[int, Rows], undone: Counter[str]) -> None:
    at = _first_in_fragments(dump, rows)
    listed = None  # where the sample that it listed last ends, by its own count
    for moof in dump["fragments"]:
        end = None  # where the data of the traf before ends, by the standard
        for traf in moof["trafs"]:
            track, its_base = traf["track"], traf["base"]
            base = its_base if its_base is not None else moof["start"]
            if its_base is None and not traf["base_is_moof"] and end is not None:
                base = end
            position = base
            for number, (data_offset, count) in enumerate(traf["runs"]):
                part = rows[track][at[track] : at[track] + count]
                at[track] += count
                if data_offset is not None:
                    position = base + data_offset
                # Of a first run without samples it makes "not a number" of all positions behind.
                if not part or part[0][OFFSET] is None:
                    continue
                begins = part[0][OFFSET]
                if number:
                    habit, proved = "runs", begins == listed
                else:
                    from_moof = moof["start"] + (data_offset or 0)
                    habit, proved = "bases", its_base is None and begins == from_moof
                listed = part[-1][OFFSET] + part[-1][SIZE]
                move = position - begins if proved else 0
                undone[habit] += count * bool(move)
                for row in part:
                    row[OFFSET] += move
                position = part[-1][OFFSET] + part[-1][SIZE]
            end = position
