"""The sample tables of a track held against ISO/IEC 14496-12, 8.5 to 8.7."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from fragdex.boxes import Box
from fragdex.fragments.table import Int64
from fragdex.testing.checks.cmaf_header import Place
from fragdex.testing.checks.violation import Violation

__all__ = ["table_rules"]

_SELF_CONTAINED: Final = 1


def table_rules(place: Place, trak: Box, media: Sequence[tuple[int, int]]) -> Iterator[Violation]:
    """What is wrong with the sample tables of a trak.

    Args:
        media: first byte of each mdat's payload, and the one behind it.
    """
    stbl = trak.find("mdia/minf/stbl")
    if stbl is None:
        return
    stsd, stts, stsc = (stbl.find(name) for name in ("stsd", "stts", "stsc"))
    stsz = stbl.find("stsz") or stbl.find("stz2")
    stco = stbl.find("stco") or stbl.find("co64")
    if stsz is None or stco is None:
        yield place.wrong("sample-tables", "14496-12, 8.7", "no stsz, or no stco", stbl)
        return
    if stsd is None or stts is None or stsc is None:
        return  # told already
    yield from _entries(place, trak, stsd)
    sizes = _sizes(stsz)
    yield from _counts(place, stbl, len(sizes))
    chunks: Int64 = stco["entries"]["chunk_offset"].astype(np.int64)
    rows: Any = stsc["entries"]
    firsts = rows["first_chunk"].astype(np.int64)
    each = rows["samples_per_chunk"].astype(np.int64)
    index = rows["sample_description_index"].astype(np.int64)
    if not len(sizes):
        return
    if not len(rows) or firsts[0] != 1 or (np.diff(firsts) <= 0).any():
        yield place.wrong("stsc", "14496-12, 8.7.4", "first_chunk does not rise from 1", stsc)
        return
    if len(index) and not (index.min() >= 1 and index.max() <= len(stsd.children)):
        message = f"sample_description_index {index.max()} of {len(stsd.children)}"
        yield place.wrong("description", "14496-12, 8.7.4", message, stsc)
    if firsts[-1] > len(chunks):
        message = f"chunk {firsts[-1]} of {len(chunks)}"
        yield place.wrong("stsc", "14496-12, 8.7.4", message, stsc)
        return
    per_chunk = np.repeat(each, np.diff(np.append(firsts, len(chunks) + 1)))
    if int(per_chunk.sum()) != len(sizes):
        message = f"{int(per_chunk.sum())} samples in {len(chunks)} chunks, stsz has {len(sizes)}"
        yield place.wrong("sample-count", "14496-12, 8.7.4", message, stsc)
        return
    edges = np.append(0, np.cumsum(per_chunk))
    ends = chunks + np.diff(np.append(0, np.cumsum(sizes))[edges])
    starts = np.array(sorted(media), np.int64).reshape(-1, 2)
    held = np.searchsorted(starts[:, 0], chunks, side="right") - 1
    inside = (held >= 0) & (ends <= np.append(starts[:, 1], 0)[held])
    outside = np.flatnonzero(~inside & (ends > chunks))
    if len(outside):
        first = int(outside[0])
        message = f"chunk {first + 1} at {chunks[first]} to {ends[first]} lies in no mdat"
        yield place.wrong("sample-place", "14496-12, 8.7.5", message, stco)


def _sizes(box: Box) -> Int64:
    if box.type == "stz2":
        return np.asarray(box["entry_size"], np.int64)
    if box["sample_size"]:
        return np.full(int(box["sample_count"]), int(box["sample_size"]), np.int64)
    sizes: Int64 = box["entries"]["entry_size"].astype(np.int64)
    return sizes


def _entries(place: Place, trak: Box, stsd: Box) -> Iterator[Violation]:
    if not stsd.children:
        yield place.wrong("sample-entry", "14496-12, 8.5.2", "no sample entry", stsd)
    dref = trak.find("mdia/minf/dinf/dref")
    count = 0 if dref is None else len(dref.children)
    for entry in stsd.children:
        number = entry.get("data_reference_index")
        if number is not None and not 1 <= int(number) <= count:
            message = f"data_reference_index {number} of {count}"
            yield place.wrong("data-reference", "14496-12, 8.5.2", message, entry)
    for reference in () if dref is None else dref.children:
        if reference.get("flags") is not None and not reference["flags"] & _SELF_CONTAINED:
            message = "its media is in another file"
            yield place.wrong("data-reference", "14496-12, 8.7.2", message, reference)


def _counts(place: Place, stbl: Box, count: int) -> Iterator[Violation]:
    for box in stbl.children:
        if box.type in ("stts", "ctts"):
            told = int(box["entries"]["sample_count"].astype(np.int64).sum())
            if told != count:
                message = f"{told} samples, stsz has {count}"
                yield place.wrong("sample-count", "14496-12, 8.6", message, box)
        elif box.type == "sdtp" and len(box["entries"]) != count:
            message = f"{len(box['entries'])} samples, stsz has {count}"
            yield place.wrong("sample-count", "14496-12, 8.6.4", message, box)
        elif box.type == "sbgp":
            told = int(box["entries"]["sample_count"].astype(np.int64).sum())
            if told > count:
                message = f"{told} samples, stsz has {count}"
                yield place.wrong("sample-count", "14496-12, 8.9.2", message, box)
        elif box.type == "stss":
            numbers = box["entries"]["sample_number"].astype(np.int64)
            if len(numbers) and (
                numbers[0] < 1 or numbers[-1] > count or (np.diff(numbers) <= 0).any()
            ):
                message = f"its numbers do not rise within 1 to {count}"
                yield place.wrong("stss", "14496-12, 8.6.2", message, box)
