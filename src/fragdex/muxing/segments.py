"""Segments of fragments that are made: the initialization segment, and moofs around samples.

`fragments` writes them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from fragdex.boxes import Box, build, make_box, parse
from fragdex.boxes.box import with_changes
from fragdex.errors import BuildError
from fragdex.formats.sidx import boxes
from fragdex.formats.subsegments import Subsegments
from fragdex.fragments.table import NULL, Int64
from fragdex.muxing.between import Trafs
from fragdex.muxing.census import LeftOut
from fragdex.muxing.fragments import WHY, Fragments
from fragdex.muxing.groups import descriptions_of_groups, groupings_of
from fragdex.muxing.media import media_type
from fragdex.muxing.movie import clip_init, described, track_id
from fragdex.muxing.plan import Plan, PlannedTrack, begins_of
from fragdex.muxing.protection import Read, protected
from fragdex.muxing.segmentation import cut, reference
from fragdex.muxing.subsamples import with_subsamples
from fragdex.muxing.view import Block, View
from fragdex.seeking.origin import FileInfo
from fragdex.seeking.times import TimeLike, exact_time

CMAF = "cmfc"
"""A track of fragments with composition offsets of 0 or more (ISO/IEC 23000-19, 7.2)."""


def init_segment(
    init: bytes,
    media: Sequence[PlannedTrack],
) -> bytes:
    """The initialization segment for some tracks.

    Args:
        media: the tracks, with their timescales; an edit list of one entry says their
            `media_time`.
    """
    known = {one.track.id: one for one in media}
    traks = []
    for piece in clip_init(
        init,
        set(known),
        delays=False,
        from_samples=True,
        groups={one.track.id: descriptions_of_groups(one.groups) for one in media},
    ):
        if piece[4:8] == b"moov":
            (moov,) = parse(piece)
            piece = build(with_changes(moov, {"trak": partial(_trak, known=known)}))
        elif piece[4:8] == b"ftyp" and len(media) == 1:
            (ftyp,) = parse(piece)
            brands = (*ftyp["compatible_brands"], CMAF)
            piece = build(ftyp.replace(compatible_brands=brands))
        traks.append(piece)
    return b"".join(piece for piece in traks if piece[4:8] in (b"ftyp", b"moov"))


def _trak(box: Box, known: dict[int, PlannedTrack]) -> Box:
    media = known.get(track_id(box))
    if media is None:
        return box
    ticks = media.media_time

    def tkhd(child: Box) -> Sequence[Box]:
        if not ticks:
            return [child]
        elst = make_box("elst", version=int(ticks >= 1 << 31), entries=[(0, ticks, 1, 0)])
        return [child, make_box("edts", children=[elst])]

    def mdhd(child: Box) -> Box:
        is_same = media.timescale == media.track.timescale
        return child if is_same else child.replace(timescale=media.timescale)

    return with_changes(box, {"edts": lambda _: (), "tkhd": tkhd, "mdia/mdhd": mdhd})


def descriptions_of(trak: Box | None, media: PlannedTrack) -> Int64 | None:
    """sample_description_index of each sample of a track; None: 1 for all."""
    track = media.track
    stsd = None if trak is None else trak.find("mdia/minf/stbl/stsd")
    if trak is None or stsd is None or not stsd.children:
        raise BuildError(
            f"the moov describes no samples of track {track.id}", path="moov/trak/mdia/minf/stbl"
        )
    if len(stsd.children) == 1:
        return None
    firsts = media.source_numbers
    numbers = described(track, trak, firsts)
    lasts = np.append(firsts[1:], media.count) - 1
    if media.unit and (numbers != described(track, trak, lasts)).any():
        raise BuildError(
            f"another sample description begins inside a chunk of track {track.id}",
            path="moov/trak/mdia/minf/stbl/stsd",
        )
    return None if (numbers == 1).all() else numbers


def completed(
    media: PlannedTrack,
    trak: Box | None,
    read: Read | None = None,
    *,
    later: bool = False,
    trafs: Trafs = MappingProxyType({}),
) -> PlannedTrack:
    """A track with the descriptions and groups of its samples, and what decrypts them.

    Args:
        later: whether more comes, which may have groups of its own.
    """
    planned = replace(media, descriptions=descriptions_of(trak, media))
    # a row may stand for many samples
    if not (media.unit or later):
        groups = groupings_of(media.track, trak, media.source_numbers, trafs)
        planned = replace(planned, groups=groups)
    planned = with_subsamples(planned, trak, trafs)
    if read is None or trak is None:
        return planned
    return replace(planned, protection=protected(trak, planned, read))


STYP: Final = struct.pack(">I4s4sI4s4s", 24, b"styp", b"msdh", 0, b"msdh", b"cmfs")
"""A media segment (ISO/IEC 23009-1, 6.3.4.2; ISO/IEC 23000-19, 7.2)."""


def seconds_of(seconds: TimeLike | None) -> Fraction | None:
    """A wanted length as an exact number of seconds; None stays."""
    if seconds is None:
        return None
    length = exact_time(seconds)
    if not 0 < length < float("inf"):
        raise ValueError(f"segments must last longer than 0 s, and not for ever: {seconds}")
    return Fraction(length)


class Segments:
    """Tracks cut into segments, each a fragment with all of them.

    Args:
        seconds: wanted length; None: a segment for each sync sample.
        edges: of each track the first sample of each segment, and the end; None: cut again.
        head: bytes in front of each segment.
        begins: as `Fragments` takes it.
        later: whether more comes, so that what is here must not change by it.
        parts: of the one track, the first sample of each fragment, and the end, where a segment is
            several; None: each is one.
        first_number: of the first fragment.

    Attributes:
        firsts: number of the first fragment of each segment, and of all.
        lead: the track whose times are those of the segments.
        time: int64 presentation time of each segment in ticks of the lead; the first begins where
            the track does, or at 0 where the edit list hides what is before.
        is_closed: whether nothing in a segment is presented before its first sample.
        duration: int64 ticks to the next one's time, the last one's to the end of the track.

    Raises:
        NoSyncSample, BuildError: as `cut` and `Fragments`.
    """

    def __init__(
        self,
        plan: Plan,
        seconds: Fraction | None,
        edges: Sequence[Int64] | None = None,
        *,
        head: bytes = b"",
        begins: int | None = None,
        later: bool = False,
        parts: Int64 | None = None,
        first_number: int = 1,
    ) -> None:
        self._plan, self.media = plan, plan.tracks
        self.lead = reference(self.media)
        self.edges = list(edges) if edges is not None else cut(self.media, seconds, self.lead)
        self.media_type = media_type(one.track for one in self.media)
        mine = self.edges[next(n for n, one in enumerate(self.media) if one is self.lead)]
        shown, least = self.lead.presentation, begins_of(self.lead, mine)
        self.time: Int64 = np.maximum(least, 0)
        end = max(self.lead.end, int(self.time[-1]))
        self.duration: Int64 = np.diff(self.time, append=end)
        stop = Fraction(end, self.lead.timescale) if later else None
        cuts = self.edges if parts is None else [parts]
        numbers = np.arange(len(mine)) if parts is None else np.searchsorted(parts, mine)
        self.firsts: Int64 = numbers
        self.fragments = Fragments(
            plan, cuts, head, begins, first_number, stop=stop, led=numbers[:-1]
        )
        self.sizes: Int64 = np.add.reduceat(self.fragments.sizes, numbers[:-1])
        starts = self.lead.samples.sync[mine[:-1]]
        self.is_closed = bool((shown[mine[:-1]] <= least).all())
        self._access = np.where(starts, np.maximum(shown[mine[:-1]], 0), NULL)

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def init(self) -> bytes:
        """The initialization segment; made when it is requested."""
        return init_segment(self._plan.init, self.media)

    @cached_property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What of these tracks, and of the file, is not in the segments."""
        return self._plan.lacking(parse(self._plan.init), parse(self.init), WHY, in_fragments=True)

    @cached_property
    def sidx(self) -> bytes:
        """The segment index that stands between initialization segment and fragments."""
        return build(boxes(self._subsegments, self.lead.track.id, self.lead.timescale))

    @property
    def _subsegments(self) -> Subsegments:
        """The segments as stretches, for a sidx."""
        sizes = self.sizes
        return Subsegments(
            np.cumsum(sizes) - sizes,
            sizes,
            self.time,
            self.duration,
            self._access,
            (self._access != NULL).astype(np.int64),
            np.arange(len(sizes)),
        )

    def whole(
        self,
        sources: Sequence[FileInfo],
        recipe: Any,
        media_type: str | None = None,
    ) -> View:
        """One file as a view: initialization segment, sidx and all fragments."""
        # nothing else is needed by the view: a source's moov may have 100 MB
        head, fragments = [self.init, self.sidx], self.fragments
        sizes = np.concatenate([[sum(map(len, head))], fragments.sizes])

        def block(number: int) -> Sequence[Block]:
            return fragments.parts(number - 1) if number else head

        kind = media_type or self.media_type
        return View(kind, sources, recipe, sizes, block, self.left_out)

    def view(self, number: int, source: FileInfo, recipe: Any, named: int | None = None) -> View:
        """One segment as a view; `recipe` says what else decides its bytes.

        Args:
            named: its number in what these are a part of; None: the same.
        """
        named = number if named is None else named
        low, high = self.firsts[number : number + 2].tolist()
        blocks = partial(self._blocks, low, high)
        return View(self.media_type, [source], [*recipe, named], [int(self.sizes[number])], blocks)

    def part(self, number: int, source: FileInfo, recipe: Any) -> View:
        """One fragment as a view, by its number from 0; `recipe` says what else decides it."""
        size, blocks = int(self.fragments.sizes[number]), partial(self._blocks, number, number + 1)
        return View(self.media_type, [source], recipe, [size], blocks)

    def _blocks(self, low: int, high: int, _: int) -> list[Block]:
        return self.fragments.parts(low, high)
