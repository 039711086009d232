"""`fragdex seek` of a saved index where nothing else is asked: without numpy and without typer.

Importing those takes many times longer than the answer. What is not exactly as we write it, or is
asked in another way, is left to `fragdex.cli.app`: it answers the same, and tells every error. Only
what the answer is made of is looked at: columns by their checksums, and of the JSON part the values
that are used.
"""

from __future__ import annotations

import json
import os
import sys
import zlib

from fragdex.errors import DamagedIndex, NoSyncSample
from fragdex.formats.fidx_head import parse_head
from fragdex.fragments import NULL
from fragdex.seeking.finding import ROW_COLUMNS, SYNC_COLUMNS, PlainSeeker, last_tick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_TEXT = 40


class _Otherwise(Exception):
    """The question is not one of these."""


def seek(arguments: list[str]) -> int | None:
    """Answer `fragdex seek`, or None where the whole command line must.

    Args:
        arguments: what follows the program's name.
    """
    try:
        name, time, tracks, as_json = _asked(arguments)
        text = _answer(name, _seconds(time), tracks, as_json)
        sys.stdout.buffer.write(text.encode("ascii"))
        sys.stdout.buffer.flush()
    except (_Otherwise, OSError, DamagedIndex, NoSyncSample):
        return None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError):
        return None  # values of another kind than ours
    return 0


def _asked(arguments: list[str]) -> tuple[str, str, list[int] | None, bool]:
    """Name, time, track_IDs and whether JSON is wanted."""
    words: list[str] = []
    tracks: list[int] = []
    as_json, rest = False, iter(arguments[1:])
    for word in rest:
        if word == "--json":
            as_json = True
        elif word in ("-t", "--track"):
            number = next(rest, "")
            _need(number.isascii() and number.isdigit())
            tracks.append(int(number))
        else:
            _need(word[:1] not in ("", "-"))
            words.append(word)
    _need(len(words) == 2 and words[0].isascii() and words[0].isprintable())
    _need(not any(letter in "*?[" for letter in words[0]) and "://" not in words[0])
    return words[0], words[1], tracks or None, as_json


def _need(holds: object) -> None:
    if not holds:
        raise _Otherwise


def _seconds(text: str) -> tuple[int, int]:
    """Numerator and denominator of a time as `fragdex.seeking.time_texts` takes it."""
    text = text.strip()
    _need(len(text) <= _MOST_TEXT and text.isascii())
    *clock, rest = text.split(":")
    if not clock:
        rest = rest.removesuffix("s")
    whole, _point, decimals = rest.partition(".")
    _need(whole.isdigit() and (decimals.isdigit() or not decimals))
    over, under = int(whole + decimals), 10 ** len(decimals)
    if clock:
        _need(len(clock) <= 2 and all(part.isdigit() for part in clock) and over < 60 * under)
        hours, minutes = int(clock[0]) if len(clock) == 2 else 0, int(clock[-1])
        _need(len(clock) == 1 or minutes < 60)
        over += (hours * 3600 + minutes * 60) * under
    return over, under


def _answer(name: str, time: tuple[int, int], tracks: list[int] | None, as_json: bool) -> str:
    view = _content(name)
    plain, _, start = parse_head(view)
    _need(plain["complete"] is True)
    _refuse_other_media(name, plain["source"])
    (period,) = plain["periods"]
    known = [_SavedTrack(track, period["movie"], view[start:]) for track in period["tracks"]]
    if tracks is None:
        chosen = [track for track in known if track.timescale and track.runs]
    else:
        numbers = [track.id for track in known]
        _need(all(numbers.count(number) == 1 for number in tracks))
        chosen = [known[numbers.index(number)] for number in tracks]
    _need(chosen)
    hits = [track.seek(time) for track in chosen]
    if as_json:
        value = {"file": name, "time": time[0] / time[1], "hits": hits}
        return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"
    return "".join(map(_line, hits))


def _content(name: str) -> memoryview:
    import mmap

    _need(sys.byteorder == "little" and os.path.isfile(name))
    with open(name, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _refuse_other_media(name: str, source: Any) -> None:
    """Continue only if the media of the index is missing, or is surely the same file."""
    recorded = source["name"]
    if not recorded or recorded.startswith(("http://", "https://", "s3://")):
        return  # nothing that could be compared
    _need("://" not in recorded and not source.get("etag"))
    beside = os.path.join(os.path.dirname(name), os.path.basename(recorded))
    if not os.path.isfile(beside):
        _need(not os.path.exists(recorded))
        return
    media = os.stat(beside)
    _need(source["size"] == media.st_size and source["mtime_ns"] == media.st_mtime_ns)


class _SavedTrack:
    """One track of a saved index, as far as a seek needs it."""

    def __init__(self, plain: Any, movie: Any, space: memoryview) -> None:
        info = plain["info"]
        info = movie["tracks"][_count(info)] if type(info) is not dict else info
        self.id, self.timescale = _count(info["id"]), _count(info["timescale"])
        self.kind = info["kind"]
        _need(type(self.kind) is str and self.kind.isascii() and self.kind.isalpha())
        numerator, denominator = plain["shift"]
        _need(type(numerator) is int and _count(denominator))
        self.shift = numerator, denominator
        self._tables, self._space = plain["tables"], space
        self.runs = _count(self._tables["sync"]["rows"])
        self._check()

    def seek(self, time: tuple[int, int]) -> dict[str, Any]:
        """A hit as `hit_value` of `fragdex.cli.seek` has it."""
        _need(self.timescale)
        sync, rows = self._columns("sync", SYNC_COLUMNS), self._columns("fragments", ROW_COLUMNS)
        target = last_tick(time, self.timescale, self.shift)
        row, sample, offset, size, cts, dts, clamped = PlainSeeker(sync, rows).find(target)
        _need(size)
        over, under = self.shift
        return {
            "track": self.id,
            "period": 0,
            "kind": self.kind,
            "fragment": row,
            "sample": None if sample == NULL else sample,
            "start": offset,
            "stop": offset + size,
            "time": (cts * under + over) / (self.timescale * under),
            "cts": cts,
            "dts": None if dts == NULL else dts,
            "timescale": self.timescale,
            "clamped": clamped,
        }

    def _columns(self, table: str, names: tuple[str, ...]) -> dict[str, memoryview]:
        places = {name: offset for name, _, offset, _ in self._tables[table]["columns"]}
        size = 8 * self._tables[table]["rows"]
        return {name: self._space[places[name] : places[name] + size].cast("q") for name in names}

    def _check(self) -> None:
        """Continue only if no column is damaged: the whole command compares them all."""
        for table in ("fragments", "sync", "groups"):
            plain = self._tables.get(table)
            _need(plain is not None or table == "groups")
            if plain is None:
                continue
            rows, columns = _count(plain["rows"]), plain["columns"]
            _need(len({name for name, *_ in columns}) == len(columns))
            for name, dtype, offset, checksum in columns:
                _need(dtype in ("<i8", "<u4") and not _count(offset) % 64)
                _need(dtype == "<i8" or name not in SYNC_COLUMNS + ROW_COLUMNS)
                size = rows * int(dtype[2:])
                column = self._space[offset : offset + size]
                _need(len(column) == size and zlib.crc32(column) == checksum)


def _count(value: Any) -> int:
    _need(type(value) is int and value >= 0)
    return int(value)


def _line(hit: dict[str, Any]) -> str:
    words = [
        f"track {hit['track']} ({hit['kind']})",
        f"bytes={hit['start']}-{hit['stop'] - 1}",
        f"from {hit['time']:.6f} s",
        f"fragment {hit['fragment']}",
    ]
    if hit["sample"] is not None:
        words.append(f"sample {hit['sample']}")
    if hit["clamped"]:
        words.append("clamped")
    return "  ".join(words) + "\n"
