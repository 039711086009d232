"""A copy is checked before it is written: each sample's place in it holds the source's sample."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.errors import BuildError
from fragdex.formats.moved_moof import Run
from fragdex.fragments.table import Int64, SampleTable

__all__ = ["Places", "check_runs", "check_samples", "copied_parts"]


def copied_parts(pieces: Iterable[bytes | ByteRange]) -> list[tuple[ByteRange, int]]:
    """The ranges among pieces of a copy, in their order, and where each begins in the copy.

    >>> copied_parts([b"abc", ByteRange(5, 9)])
    [(ByteRange(start=5, stop=9), 3)]
    """
    found = []
    at = 0
    for piece in pieces:
        if isinstance(piece, ByteRange):
            found.append((piece, at))
            at += piece.size
        else:
            at += len(piece)
    return found


def check_runs(
    source: Iterable[Run],
    copy: Iterable[Run],
    copied: Sequence[tuple[ByteRange, int]],
    moof: int,
    size: int | None = None,
) -> None:
    """Compare the runs that a moof names in the source with those it names in the copy.

    Args:
        source, copy: in the same order.
        copied: ranges of the source in file order, none over another, and where each begins in
            the copy.
        moof: byte of the moof in the source, for the message.
        size: bytes of the source; samples that it does not hold need not be in the copy.

    Raises:
        BuildError: the bytes of a run are not copied, or lie elsewhere.

    >>> check_runs([Run(1, 10, 5)], [Run(1, 110, 5)], [(ByteRange(8, 20), 108)], 0)
    """
    for old, new in zip(source, copy, strict=True):
        if old.track != new.track or old.size != new.size:
            raise _wrong(moof, old, new)
        if not old.size or (size is not None and old.start + old.size > size):
            continue
        at = bisect_right(copied, old.start, key=_start) - 1
        if at < 0 or old.start + old.size > copied[at][0].stop:
            raise BuildError(
                "samples of a fragment are outside it, so it cannot be copied as a whole",
                path="moof/traf/trun",
                offset=moof,
                expected="bytes of the fragment's own boxes",
                found=f"bytes {old.start} to {old.start + old.size}",
            )
        part, start = copied[at]
        if new.start - start != old.start - part.start:
            raise _wrong(moof, old, new._replace(start=new.start - start + part.start))


def _start(copied: tuple[ByteRange, int]) -> int:
    return copied[0].start


class Places(NamedTuple):
    """Where parts of a source begin in a copy, rising, and where they start in the source.

    >>> Places(np.array([8]), np.array([40])).starts
    array([40])
    """

    begins: Int64
    starts: Int64


def check_samples(source: SampleTable, copy: SampleTable, copied: Places, track: int) -> None:
    """Compare samples of the source with those that the tables of a copy name.

    Args:
        source, copy: in the same order, each with its own places.
        copied: of the parts of the source in the copy.
        track: track_ID, for the message.

    Raises:
        BuildError: a sample is not where the copy says, or has another size or time.

    >>> nowhere = Places(np.zeros(0, np.int64), np.zeros(0, np.int64))
    >>> check_samples(SampleTable.empty(), SampleTable.empty(), nowhere, 1)
    """
    wrong = "other samples" if len(source) != len(copy) else ""
    for name in () if wrong else ("size", "dts", "cts", "sync"):
        if not np.array_equal(getattr(source, name), getattr(copy, name)):
            wrong = f"another {name}"
    held = np.flatnonzero(source.size > 0)
    if len(held) and not wrong:
        begins, starts = copied
        part = np.searchsorted(begins, copy.offset[held], side="right") - 1
        back = starts[part] + copy.offset[held] - begins[part]
        if (part < 0).any() or (back != source.offset[held]).any():
            wrong = "samples at other places"
    if wrong:
        raise BuildError(
            "a copy would not have the samples of its source",
            path="moov/trak/mdia/minf/stbl",
            expected=f"the samples of track {track}",
            found=wrong,
            advice="please report this file",
        )


def _wrong(moof: int, old: Run, new: Run) -> BuildError:
    return BuildError(
        "a copy would not have the samples of its source",
        path="moof/traf/trun",
        offset=moof,
        expected=f"track {old.track}, bytes {old.start} to {old.start + old.size} of the source",
        found=f"track {new.track}, bytes {new.start} to {new.start + new.size}",
        advice="please report this file",
    )
