"""The moofs of a copy: what each names in the source, and the boxes that take their places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import build, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, InexactIndex, MalformedBox
from fragdex.formats.copy_check import check_runs, copied_parts
from fragdex.formats.embed_mending import Shifts, needs_rebasing
from fragdex.formats.moved_moof import moved_moof, rebased, runs_of
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.seeking.model import FragmentIndex, Period

__all__ = ["Edit", "Fragments", "Moofs", "Piece", "default_sizes", "joined", "moofs_of", "whole"]

Read = Callable[[ByteRange], bytes]
Piece: TypeAlias = bytes | ByteRange
"""Bytes to write as they are, or a range of the source to copy."""

Edit: TypeAlias = tuple[ByteRange, bytes]
"""A range of the source and the bytes that take its place."""

Moofs: TypeAlias = Mapping[int, Mapping[int, tuple[int, int, bool]]]

MAX_MENDED = 1 << 29
"""Bytes of a moov, moof, meta or mfra that is read as a whole."""


def moofs_of(index: FragmentIndex) -> Moofs:
    """What is known of each moof, by offset and track_ID.

    First byte of the track's samples, byte behind the media data, whether its base is stale.
    """
    found: dict[int, dict[int, tuple[int, int, bool]]] = {}
    for track in index.tracks:
        table = track.fragments
        real = table.rows((table.flags & FragmentFlags.VIRTUAL) == 0)
        if (real.moof_offset == NULL).any():
            raise InexactIndex(
                "the positions of the movie fragments are not known",
                advice="build the index with exact=True",
            )
        start = np.where(real.data_start == NULL, real.moof_offset, real.data_start)
        columns = (real.moof_offset, start, real.offset + real.size, real.flags)
        for moof, first, stop, flags in zip(*(c.tolist() for c in columns), strict=True):
            stale = bool(flags & FragmentFlags.REPAIRED)
            found.setdefault(moof, {})[track.id] = (first, stop, stale)
    return dict(sorted(found.items()))


def default_sizes(period: Period) -> dict[int, int]:
    """track_ID → default_sample_size of its trex, where there is one."""
    infos = (track.info for track in period.tracks)
    return {info.id: info.defaults.size for info in infos if info.defaults is not None}


class Fragments:
    """The moofs of a file that change in a copy of it.

    Args:
        read: exactly the bytes of a range of the source.
        moofs: what is known of them.
        sizes: track_ID → default_sample_size of its trex.

    Attributes:
        edits: the moofs that change; their new bytes are zeros of the right size.
        grown: the moofs whose size changes, and the bytes that they gain.

    Raises:
        MalformedBox: a moof is not where the index says.
        BuildError: one is too large.
    """

    def __init__(self, read: Read, moofs: Moofs, sizes: Mapping[int, int]) -> None:
        self._moofs, self._sizes = moofs, sizes
        self._changing: list[tuple[ByteRange, bytes]] = []
        self.edits: list[Edit] = []
        self.grown: list[tuple[ByteRange, int]] = []
        for at in moofs:
            part, header = _moof_at(read, at)
            data = whole(read, part)
            stale = self._stale(at)
            if not stale and not needs_rebasing(data, header):
                continue
            size = len(build(rebased(parse_box(data, offset=at), stale)))
            self._changing.append((part, data))
            self.edits.append((part, bytes(size)))
            if size != part.size:
                self.grown.append((part, size - part.size))

    def _stale(self, moof: int) -> set[int]:
        return {track for track, (_, _, stale) in self._moofs[moof].items() if stale}

    def finished(self, edits: list[Edit], shifts: Shifts, size: int) -> list[Piece]:
        """The pieces of the copy, checked: each sample is where the copy says.

        Args:
            edits: all others.
            shifts: where everything goes, these moofs included.
            size: bytes of the source.

        Raises:
            BuildError: a moof cannot say any more where its samples are.
        """
        made = []
        for part, data in self._changing:
            old, stale = parse_box(data, offset=part.start), self._stale(part.start)
            stop = max(stop for _, stop, _ in self._moofs[part.start].values())
            fragment = ByteRange(part.start, max(stop, part.stop))
            to = shifts.one(part.start)
            new = moved_moof(old, rebased(old, stale), to, shifts.one, stale, fragment)
            made.append((part, build(new)))
        pieces = list(joined([*edits, *made], size))
        copied = copied_parts(pieces)
        for (part, data), (_, new_data) in zip(self._changing, made, strict=True):
            to = shifts.one(part.start)
            check_runs(
                runs_of(
                    parse_box(data, offset=part.start),
                    part.start,
                    self._sizes,
                    self._stale(part.start),
                ),
                runs_of(parse_box(new_data), to, self._sizes),
                copied,
                part.start,
                size,
            )
        self._check_others(shifts)
        return pieces

    def _check_others(self, shifts: Shifts) -> None:
        """Moofs that stay as they are must keep their distance to their samples."""
        changing = {part.start for part, _ in self._changing}
        rows = [
            (moof, first)
            for moof, tracks in self._moofs.items()
            for first, _, _ in tracks.values()
            if moof not in changing
        ]
        if not rows:
            return
        places = np.array(rows, np.int64)
        moved = shifts.of(places) - places
        # What is inserted in front of the moof comes before it; the moof itself ends behind.
        wrong = np.flatnonzero(moved[:, 0] != moved[:, 1])
        if len(wrong):
            moof, first = rows[int(wrong[0])]
            raise BuildError(
                "a moof and its media data would be separated in the copy",
                path="moof",
                offset=moof,
                found=f"media data at byte {first}",
            )


def _moof_at(read: Read, at: int) -> tuple[ByteRange, int]:
    """A moof's place, and the bytes of its header."""
    header = read_header(read(ByteRange.of(at, 16)))
    if header is None or header.type != b"moof" or header.size < header.length:
        raise MalformedBox("there is no moof where the index says", offset=at)
    return ByteRange.of(at, header.size), header.length


def whole(read: Read, part: ByteRange) -> bytes:
    """The bytes of a box.

    Raises:
        BuildError: it is too large.
    """
    if part.size > MAX_MENDED:
        raise BuildError(
            "a box that must be changed is too large",
            offset=part.start,
            expected=f"at most {MAX_MENDED} bytes",
            found=part.size,
        )
    return read(part)


def joined(edits: list[Edit], size: int) -> Iterator[Piece]:
    """The source in file order, with the edits in it; an insertion goes before the rest."""
    reached = 0
    for part, data in sorted(edits, key=lambda edit: edit[0]):
        if part.start > reached:
            yield ByteRange(reached, part.start)
        if data:
            yield data
        reached = max(reached, part.stop)
    if reached < size:
        yield ByteRange(reached, size)
