"""What goes in comes out or is named: the content of two files, box by box, and what one lacks.

Nothing here knows a box by name but by its declaration: structure, which a copy says again, is
skipped, and all else is content, be it declared or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, Literal, NamedTuple, Self

from fragdex.boxes import Box, layout_of
from fragdex.indexing.beside import is_structure
from fragdex.muxing.movie import track_id
from fragdex.seeking.model import Index, Track

NO_SAMPLES: Final = "it has no samples"
MOST_NAMED: Final = 64
"""Kinds of boxes that are named; others are counted."""
_KIND_OF: Final = ("grouping_type", "aux_info_type", "user_type", "scheme_id_uri")
"""Fields that tell boxes of one type apart."""
_OF_SAMPLES: Final = ("sbgp", "sgpd", "subs")
"""Boxes that speak of samples: one box of a copy may stand for those of many fragments."""
_SCHEMES: Final = ("cenc", "cens", "cbc1", "cbcs", "")


class BoxKind(NamedTuple):
    """What boxes are counted by.

    Attributes:
        track: track_ID; 0: they belong to the movie or to the file.
        name: their type, and of what they are.
    """

    track: int
    name: str


def kind_of(box: Box, track: int = 0) -> BoxKind:
    """What a box of a track is counted by."""
    fields = box.fields
    told = next((str(fields[name]) for name in _KIND_OF if name in fields), "")
    # Without a type, auxiliary information is that of the encryption (14496-12, 8.7.8).
    own = "" if box.type in ("saiz", "saio") and told in _SCHEMES else told
    return BoxKind(track, f"{box.type} {own}".rstrip())


def content(boxes: Iterable[Box], tracks: Collection[int] | None = None) -> Counter[BoxKind]:
    """How many boxes of each kind say what no copy says by itself."""
    counted: Counter[BoxKind] = Counter()
    _count(boxes, 0, None, tracks, counted)
    return counted


def renumbered(counted: Mapping[BoxKind, int], ids: Mapping[int, int]) -> Counter[BoxKind]:
    """The same under the track_IDs of an output, without tracks that it does not have."""
    own: Counter[BoxKind] = Counter()
    for kind, count in counted.items():
        if not kind.track or kind.track in ids:
            own[kind._replace(track=ids.get(kind.track, 0))] += count
    return own


@lru_cache(maxsize=1024)
def _standing(code: str, parent: str | None) -> Literal["content", "structure", "parsed"]:
    """Whether a box is content or structure, or structure only where it could be parsed."""
    layout = layout_of(code, parent)
    if layout is None:
        return "content"
    if layout.structure:
        return "structure"
    return "parsed" if is_structure(layout) else "content"


def _count(
    boxes: Iterable[Box],
    track: int,
    parent: str | None,
    tracks: Collection[int] | None,
    counted: Counter[BoxKind],
) -> None:
    for box in boxes:
        fields = box.fields
        if (
            tracks is not None
            and parent == "tref"
            and not {*fields.get("track_IDs", ())} & {*tracks}
        ):
            continue
        standing = _standing(str(fields.get("user_type", box.type)), parent)
        is_opaque = box.layout is None and "data" in fields
        if standing == "content" or (standing == "parsed" and is_opaque):
            kind = kind_of(box, track)
            if box.type == "csgp":  # copies say it run by run
                kind = BoxKind(track, kind.name.replace("csgp", "sbgp", 1))
            counted[kind] += 1
        if box.children:
            _count(box.children, _owner(box, track), box.type, tracks, counted)


def _owner(box: Box, track: int) -> int:
    if box.type == "trak":
        return track_id(box)
    if box.type == "traf":
        tfhd = box.find("tfhd")
        return int(tfhd["track_ID"]) if tfhd is not None and "track_ID" in tfhd else 0
    return track


class LeftOut(str):
    """A sentence on something of a source that is not in a copy."""

    __slots__ = ("what", "why")
    code: Final = "left-out"
    what: str
    why: str

    def __new__(cls, what: str, why: str) -> Self:
        """Make the sentence."""
        made = super().__new__(cls, f"{what} is left out: {why} ({cls.code})")
        made.what, made.why = what, why
        return made

    def __reduce__(self) -> tuple[type[LeftOut], tuple[str, str]]:
        return LeftOut, (self.what, self.why)


def track_left_out(track: Track, why: str) -> LeftOut:
    """On a track that is not in a clip, view or package."""
    return LeftOut(f"track {track.id} ({track.kind})", why)


def without_samples(tracks: Iterable[Track]) -> Iterator[LeftOut]:
    """On each track that has no samples, so that no copy has it."""
    for track in tracks:
        if track.sample_count == 0:
            yield track_left_out(track, NO_SAMPLES)


def second_tracks(index: Index) -> Iterator[LeftOut]:
    """On each track whose track_ID another one before it has: indexes and copies lack it."""
    for finding in index.findings:
        if finding.code == "same-track-id":
            yield LeftOut(f"the other track {finding.track}", "a track_ID is of one track (8.3.2)")


def boxes_left_out(
    source: Mapping[BoxKind, int],
    made: Mapping[BoxKind, int],
    why: str,
    *,
    tracks: Collection[int] | None = None,
) -> tuple[LeftOut, ...]:
    """On the content of a source that a copy lacks.

    Args:
        tracks: track_IDs of the copy: other tracks are not spoken of; None: all.
    """
    lost = [
        (kind, count - made.get(kind, 0))
        for kind, count in source.items()
        if count > made.get(kind, 0)
        and (not kind.track or tracks is None or kind.track in tracks)
        and not (made.get(kind) and kind.name[:4] in _OF_SAMPLES)
    ]
    named = [LeftOut(_named(*one), why) for one in lost[:MOST_NAMED]]
    if len(lost) > MOST_NAMED:
        named.append(LeftOut(f"what boxes of {len(lost) - MOST_NAMED} other kinds say", why))
    return tuple(named)


def _named(kind: BoxKind, count: int) -> str:
    of = f" of track {kind.track}" if kind.track else ""
    return f"{kind.name}{of}" + (f" ({count:,} boxes)" if count > 1 else "")
