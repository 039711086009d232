"""The initialization segment of fragments that are made: ftyp and moov without samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fragdex.boxes import Box, build, make_box, parse
from fragdex.errors import BuildError
from fragdex.formats.clip_movie import clip_init, track_id
from fragdex.formats.clip_samples import described
from fragdex.fragments.table import FragmentFlags, Int64
from fragdex.views.media import Media

__all__ = ["descriptions_of", "init_segment"]

CMAF = "cmfc"
"""A track of fragments with composition offsets of 0 or more (ISO/IEC 23000-19, 7.2)."""


def init_segment(init: bytes, media: Sequence[Media]) -> bytes:
    """The initialization segment for some tracks.

    Args:
        init: the source's ftyp and moov.
        media: the tracks, with their timescales; an edit list of one entry says their
            `media_time`.

    Raises:
        BuildError: there is no moov.
    """
    known = {one.track.id: one for one in media}
    made = []
    for piece in clip_init(init, set(known), delays=False, from_samples=True):
        if piece[4:8] == b"moov":
            (moov,) = parse(piece)
            piece = build(moov.replace(children=[_child(box, known) for box in moov.children]))
        elif piece[4:8] == b"ftyp" and len(media) == 1:
            (ftyp,) = parse(piece)
            brands = (*ftyp["compatible_brands"], CMAF)
            piece = build(ftyp.replace(compatible_brands=brands))
        made.append(piece)
    return b"".join(piece for piece in made if piece[4:8] in (b"ftyp", b"moov"))


def _child(box: Box, known: dict[int, Media]) -> Box:
    media = known.get(track_id(box)) if box.type == "trak" else None
    if media is None:
        return box
    children = []
    for child in box.children:
        if child.type == "edts":
            continue
        if child.type == "mdia" and media.finer != 1:
            child = child.replace(children=[_finer(one, media) for one in child.children])
        children.append(child)
        ticks = media.media_time
        if child.type == "tkhd" and ticks:
            elst = make_box("elst", version=int(ticks >= 1 << 31), entries=[(0, ticks, 1, 0)])
            children.append(make_box("edts", children=[elst]))
    return box.replace(children=children)


def _finer(box: Box, media: Media) -> Box:
    return box.replace(timescale=media.timescale) if box.type == "mdhd" else box


def descriptions_of(trak: Box | None, media: Media) -> Int64 | None:
    """sample_description_index of each sample of a track; None: 1 for all.

    Raises:
        BuildError: the moov does not describe the track, or fragments use several descriptions,
            and which one is not known here.
    """
    track = media.track
    stsd = None if trak is None else trak.find("mdia/minf/stbl/stsd")
    if trak is None or stsd is None or not stsd.children:
        raise BuildError(
            f"the moov describes no samples of track {track.id}", path="moov/trak/mdia/minf/stbl"
        )
    virtual = (track.fragments.flags & FragmentFlags.VIRTUAL) != 0
    if len(stsd.children) == 1:
        return None
    if not virtual.all():
        raise BuildError(
            f"fragments of track {track.id} have several sample descriptions, and which one each "
            "uses is not in the index",
            path="moov/trak/mdia/minf/stbl/stsd",
        )
    found = described(trak, media.numbers)
    if (
        media.unit
        and (found != described(trak, np.append(media.numbers[1:], media.count) - 1)).any()
    ):
        raise BuildError(
            f"another sample description begins inside a chunk of track {track.id}",
            path="moov/trak/mdia/minf/stbl/stsd",
        )
    return None if (found == 1).all() else found
