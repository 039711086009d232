"""Sync samples whose own flags speak against them: what an index notes without reading media."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fragdex.boxes import Box
from fragdex.boxes.fragments import SAMPLE_FLAGS, TFHD, TRUN
from fragdex.boxes.layout import BoxLayout
from fragdex.fragments import hop
from fragdex.fragments.access import every_sample
from fragdex.fragments.batch import TFHD_CODE, TRAF, TRUN_CODE
from fragdex.fragments.configurations import body
from fragdex.fragments.fields import DECIDING, fixed_fields
from fragdex.fragments.findings import Findings
from fragdex.fragments.moof_decoder import MoofBytes
from fragdex.fragments.runs import column_of
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, SyncTable
from fragdex.fragments.track_info import TrackInfo

__all__ = ["Known", "note_doubts"]

FRAGMENTS = 4
"""Fragments of a track whose flags are looked at: the first, the last, and between."""
DEPENDS_AND_SYNC, DEPENDS = 0x03010000, 0x01000000
"""sample_depends_on and sample_is_non_sync_sample; depends on others, and sync (8.8.3.1)."""


class _Run(NamedTuple):
    """What a trun says of flags: those of its traf, of its first sample, and of each."""

    default: int | None
    first: int | None
    samples: int
    flags: Any


Known: TypeAlias = dict[int, dict[int, list[_Run]]]
"""Offset of a moof → track_ID → its runs."""


def note_doubts(
    info: TrackInfo,
    fragments: FragmentTable,
    sync: SyncTable,
    stbl: Box | None,
    moofs: MoofBytes,
    findings: Findings,
    known: Known,
) -> None:
    """Note where a track of pictures marks samples sync that say themselves they are none.

    Args:
        info, fragments, sync: of the track.
        stbl: its sample tables in the moov.
        moofs: the bytes of its moofs.
        findings: doubts are noted here.
        known: what the moofs that were looked at for other tracks say; they are not read again.
    """
    if info.kind != "video" or every_sample(info.kind, info.format, info.codec):
        return
    depends = _depending(info, fragments, moofs, known) + _depending_in(stbl, sync)
    if depends:
        findings.add(
            "sync-depends",
            "samples marked sync say that they depend on others; seek with verified=True",
            path="moov/trak/mdia/minf/stbl/sdtp" if stbl is not None else "moof/traf/trun",
            track=info.id,
            count=depends,
        )
    counts = fragments.sample_count
    if (counts == NULL).any() or not len(sync):
        return
    offsets = sync.cts - sync.dts
    if int(sync.count.sum()) == int(counts.sum()) > 1 and (offsets != offsets[0]).any():
        findings.add(
            "sync-reordered",
            "every picture is marked sync, but they are displayed in another order than decoded, "
            "so some depend on others; seek with verified=True",
            track=info.id,
        )


def _depending(info: TrackInfo, fragments: FragmentTable, moofs: MoofBytes, known: Known) -> int:
    """Samples of some fragments that are sync and depend on others."""
    found = 0
    virtual = (fragments.flags & FragmentFlags.VIRTUAL) != 0
    rows = np.flatnonzero(~virtual & (fragments.sync >= 0) & (fragments.moof_offset != NULL))
    if not len(rows):
        return 0
    chosen = sorted({at * (len(rows) - 1) // (FRAGMENTS - 1) for at in range(FRAGMENTS)})
    offsets = fragments.moof_offset[rows[chosen]].tolist()
    missing = np.array([offset for offset in offsets if offset not in known], np.int64)
    data, sizes = moofs(missing)
    view, at = memoryview(data), 0
    for offset, size in zip(missing.tolist(), sizes.tolist(), strict=True):
        known[offset] = _runs(view[at : at + size])
        at += size
    for offset in offsets:
        for run in known[offset].get(info.id, ()):
            for flags in _flags(run, info):
                found += int((flags & DEPENDS_AND_SYNC == DEPENDS).sum())
    return found


def _runs(moof: memoryview) -> dict[int, list[_Run]]:
    """What the runs of a moof say of flags, by track_ID; nothing where it breaks the rules."""
    found: dict[int, list[_Run]] = {}
    boxes = hop.walk(moof, max_rows=1 << 62, inside=True).inner
    kinds = boxes["type"]
    chosen = (boxes["depth"] == 1) | (kinds == TFHD_CODE) | (kinds == TRUN_CODE)
    header: dict[str, int] | None = None
    waiting: list[tuple[int, int]] = []
    inside = False
    places = (
        boxes[name][chosen].tolist() for name in ("offset", "size", "type", "header", "depth")
    )
    for offset, size, kind, head, depth in (*zip(*places, strict=True), (0, 0, 0, 0, 1)):
        if depth == 1:
            # A traf ends here; its tfhd may stand behind its runs.
            if header is not None and waiting:
                runs = (_run(moof, *place, header.get("default_sample_flags")) for place in waiting)
                found.setdefault(header["track_ID"], []).extend(run for run in runs if run)
            inside, header, waiting = kind == TRAF, None, []
        elif inside and depth == 2 and kind == TFHD_CODE and header is None:
            header = _fields(moof, offset + head, size - head, TFHD)
        elif inside and depth == 2 and kind == TRUN_CODE:
            waiting.append((offset + head, size - head))
    return found


def _run(moof: memoryview, body: int, room: int, default: int | None) -> _Run | None:
    """What the trun whose body starts at `body` says of flags."""
    fields = _fields(moof, body, room, TRUN)
    if fields is None:
        return None
    count, first = fields["sample_count"], fields.get("first_sample_flags")
    word = fields["flags"]
    if not word & SAMPLE_FLAGS:
        return _Run(default, first, count, None)
    columns, start = (word & 0xF00).bit_count(), fields["width"]
    if start + 4 * columns * count > room:
        return None
    rows = np.frombuffer(moof, ">u4", columns * count, body + start).reshape(count, columns)
    flags = column_of(rows, word, SAMPLE_FLAGS)
    return _Run(default, first, count, flags)


def _fields(moof: memoryview, body: int, room: int, layout: BoxLayout) -> dict[str, int] | None:
    """Fixed fields of a tfhd or trun, its flags, and the bytes of all these."""
    word = int.from_bytes(moof[body : body + 4], "big") & (0xFF000000 | DECIDING[layout.code])
    if room < 4 or word >> 24 > 1:
        return None
    fixed = fixed_fields(layout, word)
    if room < fixed.width:
        return None
    found = {"flags": word & 0xFFFFFF, "width": fixed.width}
    for name, (at, dtype) in zip(fixed.names, fixed.places, strict=True):
        found[name] = int.from_bytes(moof[body + at : body + at + dtype.itemsize], "big")
    return found


def _flags(run: _Run, info: TrackInfo) -> Iterator[Any]:
    """Flags that a run of a track says; one for many samples stands for itself."""
    default = run.default
    if default is None and info.defaults is not None:
        default = info.defaults.flags
    if run.flags is not None:
        yield run.flags[0 if run.first is None else 1 :]
    elif default is not None and run.samples > (run.first is not None):
        yield np.array([default])
    if run.first is not None:
        yield np.array([run.first])


def _depending_in(stbl: Box | None, sync: SyncTable) -> int:
    """Sync samples of a progressive file that its sdtp says depend on others (8.6.4)."""
    sdtp = stbl.find("sdtp") if stbl is not None else None
    if sdtp is None:
        return 0
    depends = np.frombuffer(body(sdtp)[4:], np.uint8) >> 4 & 3 == 1
    before = np.concatenate([[0], np.cumsum(depends)])
    # A run of neighbours is counted by its ends; others are single or few.
    found = 0
    near = (sync.sample_step <= 1) & (sync.sample >= 0)
    low = np.minimum(sync.sample[near], len(depends))
    high = np.minimum(low + sync.count[near], len(depends))
    found += int((before[high] - before[low]).sum())
    for row in np.flatnonzero(~near & (sync.sample >= 0)).tolist():
        first, step = int(sync.sample[row]), int(sync.sample_step[row])
        stop = min(first + step * int(sync.count[row]), len(depends))
        found += int(depends[first:stop:step].sum())
    return found
