"""The test vectors of docs/index-format.md: small indexes of fixtures, and what must be refused.

`python tests/formats/fidx_vectors.py` writes them anew after a change of the format.
"""

from __future__ import annotations

import io
import json
import lzma
import math
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fragdex
from fragdex.formats import fidx
from fragdex.formats.fidx_head import BYTE_ORDER, HEADER, MAGIC, build_head, parse_head
from fragdex.fragments.table import NULL, FragmentTable, SyncTable
from fragdex.fragments.track_info import Movie, TrackInfo
from fragdex.seeking.model import FileInfo, How, Index, Period, Track
from fragdex.testing.checks.fidx import fidx_answers

FIXTURES = Path(__file__).parents[2] / "fixtures"
PACKED = Path(fragdex.__file__).parent / "testing" / "checks" / "fidx_vectors.tar.xz"
FILMS = {
    "cmaf": ("frag-cmaf.mp4", "fragments of one track of pictures"),
    "two-tracks": ("frag-two-languages.mp4", "several tracks, one of pictures"),
    "interleaved": ("frag-interleaved-truns-offset.mp4", "moofs whose samples lie elsewhere"),
    "one-frame": ("frag-one-frame.mp4", "a fragment for each sample"),
    "progressive": ("open-gop.mp4", "no fragments: rows are runs of samples"),
    "sound": ("frag-audio.m4a", "one run of sync samples"),
    "start": ("frag-start-7s.mp4", "a track that starts late"),
    "negative": ("frag-negative-cts.mp4", "composition times below zero"),
    "large-times": ("frag-tfdt-over-32-bits.mp4", "times beyond 32 bits"),
    "hybrid": ("made/hybrid.mp4", "samples of the moov and fragments"),
    "periods": ("made/two-moovs.mp4", "two periods"),
    "edits": ("made/elst-several.mp4", "a shift that is a fraction of a tick"),
    "groups": ("made/groups.mp4", "sample groups"),
    "sparse": ("made/sparse-track.mp4", "fragments without samples of a track"),
    "no-moov": ("made/segment.m4s", "no timescale: seconds mean nothing"),
    "digests": ("frag-cmaf.mp4", "digests of pieces, of version 1.1"),
    "sidx": ("frag-global-sidx-video.mp4", "fragments alone, made from a sidx"),
}
"""Name → fixture, and what it is for."""
WITHOUT_SAMPLES = ("one-frame", "sidx", "no-moov")


def moments(track: Any, most: int) -> list[float]:
    """Times of the presentation at the boundaries of a track, and beside them, as doubles."""
    if not track.timescale:
        return [0.0]
    sync, fragments = track.sync_samples, track.fragments
    ticks = set()
    for column in (sync.cts, sync.cts + sync.step * (sync.count - 1), sync.cts + sync.step,
                   fragments.cts_min, fragments.cts_end):  # fmt: skip
        ticks.update(one for one in column.tolist() if one != NULL)
    every = sorted(ticks)
    chosen = every[:: max(1, -(-len(every) // most))] + every[-1:]
    times = {-1.0, 0.0, 1e9}
    for one in chosen:
        second = track.presentation(one).seconds
        times |= {second, math.nextafter(second, -math.inf), math.nextafter(second, math.inf)}
        times.add(second + 0.01)
    return sorted(times)


def questions(index: Any, most: int = 4) -> list[dict[str, Any]]:
    """What is asked of an index."""
    asked: list[dict[str, Any]] = [{"ask": "tracks"}, {"ask": "verify"}]
    asked += [{"ask": "init", "period": period.number} for period in index.periods]
    times: set[float] = set()
    for number, track in enumerate(index.tracks):
        some = moments(track, most)
        times.update(some)
        asked += [{"ask": "seek", "track": number, "seconds": one} for one in some]
        if track.samples_ready:
            count = len(track.samples)
            chosen = sorted({0, count // 2, count - 1, count} - {-1})
            asked += [{"ask": "sample", "track": number, "sample": one} for one in chosen]
    starts = sorted(times)[:: max(1, len(times) // most)]
    for start in starts:
        for stop in (start, start + 0.04, start + 1, 1e300):
            asked.append({"ask": "span", "start": start, "stop": stop})
    return asked


def film(name: str) -> bytes:
    """The index of a fixture, the same on every machine."""
    path, _ = FILMS[name]
    data = (FIXTURES / path).read_bytes()
    samples = name not in WITHOUT_SAMPLES
    index = fragdex.index(data, exact=samples or None, partial=True, digests=name == "digests")
    index.file = FileInfo(Path(path).name, len(data))
    return fidx.write(index, samples=samples)


def sealed(text: bytes, columns: bytes, *, version: tuple[int, int] = (1, 0)) -> bytes:
    """A file of this JSON part and these columns, with a right checksum of both."""
    start = -(-(HEADER.size + len(text)) // 64) * 64
    head = HEADER.pack(MAGIC, *version, BYTE_ORDER, start + len(columns), len(text), start, 0)[:60]
    checksum = zlib.crc32(text, zlib.crc32(head))
    return (head + checksum.to_bytes(4, "little") + text).ljust(start, b"\0") + columns


def example() -> tuple[bytes, Any, bytes]:
    """A small file, its JSON part as values, and its columns."""
    whole = film("cmaf")
    plain, _, start = parse_head(memoryview(whole))
    return whole, plain, whole[start:]


def changed(change: Callable[[Any], None]) -> bytes:
    """The small file with something else in its JSON part."""
    _, plain, columns = example()
    change(plain)
    return build_head(plain, len(columns))[0] + columns


def replaced(table: str, column: str, row: int, value: int) -> bytes:
    """The small file with another number in a column, whose checksum is right."""
    _, plain, columns = example()
    new = bytearray(columns)
    tables = plain["periods"][0]["tracks"][0]["tables"][table]
    (entry,) = [one for one in tables["columns"] if one[0] == column]
    place = entry[2] + 8 * row
    new[place : place + 8] = value.to_bytes(8, "little", signed=True)
    entry[3] = zlib.crc32(new[entry[2] : entry[2] + 8 * tables["rows"]])
    return build_head(plain, len(new))[0] + bytes(new)


def table_of(plain: Any, name: str) -> Any:
    return plain["periods"][0]["tracks"][0]["tables"][name]


def entry_of(plain: Any, name: str, column: int) -> Any:
    return table_of(plain, name)["columns"][column]


def refused() -> Iterator[tuple[str, str, bytes]]:
    """Name, clause and bytes of what every reader has to refuse."""
    whole, plain, columns = example()
    text = json.dumps(plain, separators=(",", ":")).encode()
    for name, data in {
        "empty": b"", "magic": b"\x88" + whole[1:], "major": sealed(text, columns, version=(2, 0)),
        "zero-major": sealed(text, columns, version=(0, 9)),
        "byte-order": whole[:12] + whole[12:16][::-1] + whole[16:], "cut": whole[:-1],
        "longer": whole + bytes(64), "header-alone": whole[:64], "half-header": whole[:40],
        "checksum": whole[:60] + bytes([whole[60] ^ 1]) + whole[61:],
        "json-bit": whole[:70] + bytes([whole[70] ^ 1]) + whole[71:],
        "columns-offset": whole[:32] + (2**63).to_bytes(8, "little") + whole[40:],
    }.items():  # fmt: skip
        yield f"refused-{name}", "Header", data
    for name, broken in {
        "no-json": b"", "json-open": text[:-1], "json-more": text + b"{}", "json-list": b"[]",
        "json-word": text.replace(b"true", b"True"),
    }.items():  # fmt: skip
        yield f"refused-{name}", "JSON part", sealed(broken, columns)
    changes: dict[str, Callable[[Any], Any]] = {
        "no-periods": lambda p: p.pop("periods"),
        "no-tracks": lambda p: p["periods"][0].pop("tracks"),
        "period-number": lambda p: p["periods"][0].update(number=1),
        "info": lambda p: p["periods"][0]["tracks"][0].update(info=9),
        "no-timescale": lambda p: p["periods"][0]["movie"]["tracks"][0].pop("timescale"),
    }
    for name, change in changes.items():
        yield f"refused-{name}", "JSON part", changed(change)
    changes = {
        "column-outside": lambda p: entry_of(p, "fragments", 0).__setitem__(2, len(columns)),
        "column-before": lambda p: entry_of(p, "fragments", 0).__setitem__(2, -64),
        "column-odd": lambda p: entry_of(p, "fragments", 0).__setitem__(2, 8),
        "column-type": lambda p: entry_of(p, "fragments", 0).__setitem__(1, "<f8"),
        "column-missing": lambda p: table_of(p, "sync")["columns"].pop(0),
        "column-twice": lambda p: table_of(p, "sync")["columns"].append(entry_of(p, "sync", 0)),
        "rows-many": lambda p: table_of(p, "sync").update(rows=2**61),
        "rows-negative": lambda p: table_of(p, "sync").update(rows=-1),
        "no-sync": lambda p: p["periods"][0]["tracks"][0]["tables"].pop("sync"),
        "overlapping": lambda p: p["periods"][0].update(tracks=p["periods"][0]["tracks"] * 9),
    }
    for name, change in changes.items():
        yield f"refused-{name}", "Columns", changed(change)


def later() -> bytes:
    """A file as a later minor version may write it."""
    _, plain, columns = example()
    plain["later"] = {"a": [1, {"b": None}]}
    plain["periods"][0]["later"] = "x"
    table_of(plain, "fragments")["columns"].append(["later", "<f8", 0, 0])
    tables = plain["periods"][0]["tracks"][0]["tables"]
    tables["later"] = {"rows": 1, "columns": [["x", "<f4", 0, 0]]}
    text = json.dumps(plain, separators=(",", ":")).encode()
    return sealed(text, columns, version=(1, 7))


def spaced() -> bytes:
    """A file of another writer: spaces, escapes, members in another order, one of them twice."""
    _, plain, columns = example()
    plain = dict(reversed(plain.items()))
    text = json.dumps(plain, indent=1).replace(
        '"complete": true', '"complete": 0, "\\u0063omplete": true'
    )
    return sealed(text.replace('"sync"', '"s\\u0079nc"').encode(), columns)


def chained() -> bytes:
    """Twenty fragments, each of which reaches into the next one."""
    rows = 20
    numbers = np.arange(rows, dtype=np.int64)
    names = {"offset": 1000 + 100 * numbers, "size": 0 * numbers + 150, "flags": 0 * numbers}
    names |= {"moof_offset": names["offset"], "data_start": names["offset"] + 80}
    names |= {"data_stop": names["offset"] + 150, "sample_start": numbers}
    names |= {"first_sync": 0 * numbers, "dts": numbers}
    names |= {"cts_min": numbers[::-1], "cts_end": numbers[::-1] + 1}
    names |= {"duration": 0 * numbers + 1, "sample_count": 0 * numbers + 1}
    fragments = FragmentTable.of(names)
    zeros = {name: [0] for name in ("cts", "step", "sample", "sample_step", "fragment")}
    sync = SyncTable.of(zeros | {"dts": [NULL], "count": [1]})
    info = TrackInfo(1, "vide", "video", 10, "avc1", None)
    track = Track(info, fragments, sync)
    period = Period(0, (), Movie(10, 0, True, (info,)), (track,))
    return fidx.write(Index(FileInfo("chained.mp4"), How("boxes", True), [period]))


def doubtful() -> Iterator[tuple[str, bytes]]:
    """Files that open, and in which `verify` finds what is wrong."""
    whole = film("cmaf")
    _, _, start = parse_head(memoryview(whole))
    for name, place in {"column-bit": start, "padding": len(whole) - 1}.items():
        yield name, whole[:place] + bytes([whole[place] ^ 128]) + whole[place + 1 :]


def vectors() -> Iterator[tuple[str, str, bytes, list[dict[str, Any]], list[Any] | None]]:
    """Name, clause, file, questions, answers."""
    for name, (_, about) in FILMS.items():
        data = film(name)
        asked = questions(fidx.read(data))
        yield name, f"Answers: {about}", data, asked, fidx_answers(data, asked)
    data = chained()
    asked = questions(fidx.read(data))
    yield "chained", "Answers: moofs that reach on", data, asked, fidx_answers(data, asked)
    for name, data in {"later-minor": later(), "other-writer": spaced()}.items():
        asked = [one for one in questions(fidx.read(film("cmaf")), 2) if one["ask"] != "verify"]
        yield name, "Versions and extensions", data, asked, fidx_answers(data, asked)
    for name, data in doubtful():
        yield name, "Checks", data, [{"ask": "verify"}], [False]
    for name, clause, data in refused():
        yield name, clause, data, [{"ask": "tracks"}], None


def content() -> dict[str, bytes]:
    """Files by name: those of the archive."""
    files = {}
    for name, clause, data, asked, answers in vectors():
        text = json.dumps({"clause": clause, "questions": asked, "answers": answers}, indent=0)
        files |= {f"{name}.fidx": data, f"{name}.json": text.encode()}
    return files


def packed() -> bytes:
    """The archive, the same bytes every time."""
    out = io.BytesIO()
    preset = 9 | lzma.PRESET_EXTREME
    form = tarfile.USTAR_FORMAT
    with tarfile.open(fileobj=out, mode="w:xz", format=form, preset=preset) as archive:
        for name, data in content().items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


if __name__ == "__main__":
    PACKED.write_bytes(packed())
    print(f"{PACKED}: {PACKED.stat().st_size:,} bytes")
