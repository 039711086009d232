"""What goes in comes out or is named: all content of each fixture, in each kind of output.

Content is every box that its declaration does not call structure, and every box that has none; a
new declaration takes part by itself. What is in a box counts as in the source: names, languages,
chapters and events are compared by their values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragdex
from fragdex.boxes import Box, build, find, layout_of, make_box, parse
from fragdex.errors import BuildError, FragdexError
from fragdex.muxing.copies import captioned, embedded
from fragdex.muxing.mixed_files import clip_of_several, muxed
from fragdex.packaging.subtitles import TrackCues
from fragdex.sources import open_source
from fragdex.testing import check_bmff, edit, movie

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FILES = sorted(
    path
    for folder in (FIXTURES, FIXTURES / "made")
    for path in folder.iterdir()
    if path.suffix in (".mp4", ".mov", ".m4a", ".avif", ".ismv", ".3gp", ".3g2", ".f4v")
)
Owned = tuple[int, str]
"""Track_ID, or 0 for what belongs to no track, and the type of a box with what it is of."""


def contents(boxes: Iterable[Box], track: int = 0, parent: str | None = None) -> Iterator[Owned]:
    """The boxes that say something of their own."""
    for box in boxes:
        layout = layout_of(str(box.get("user_type", box.type)), parent)
        own = track
        if box.type in ("trak", "traf"):
            head = box.find("tkhd" if box.type == "trak" else "tfhd")
            own = int(head["track_ID"]) if head is not None and "track_ID" in head else 0
        holds = layout is not None and layout.children
        says = layout is None or not (
            layout.structure or (holds and {f.name for f in layout.fields} <= {layout.child_count})
        )
        if says:
            told = (box.get(name) for name in ("grouping_type", "user_type", "scheme_id_uri"))
            of = next((str(one) for one in told if one is not None), "")
            # copies say compact groups run by run
            name = "sbgp" if box.type == "csgp" else box.type
            yield track, f"{name} {of}".strip()
        yield from contents(box.children, own, box.type)


@lru_cache(maxsize=1)
def index_of(path: Path) -> fragdex.Index:
    """That of a fixture, for all that is made of it one after the other."""
    return fragdex.index(path, exact=True)


@lru_cache(maxsize=1)
def package_of(path: Path) -> Any:
    return fragdex.package(index_of(path))


def packaged(path: Path) -> tuple[list[bytes], Sequence[str], list[int]]:
    made = package_of(path)
    media = [made[name].read() for name in made if name.endswith(("init.mp4", "m4s"))]
    texts = [one.rendition for one in made.title.subtitles if one.rendition is not None]
    return media, made.findings, [one.track.id for one in (*made.title.renditions, *texts)]


def as_text(path: Path) -> list[int]:
    """Tracks whose text a package has as WebVTT."""
    cues = (one.cues for one in package_of(path).title.subtitles)
    return [one.media.track.id for one in cues if isinstance(one, TrackCues)]


def viewed(view: fragdex.View) -> tuple[list[bytes], Sequence[str], list[int]]:
    data = view.read()
    return [data], view.findings, [track.id for track in fragdex.index(data).tracks]


def indexed(path: Path) -> tuple[list[bytes], Sequence[str], list[int]]:
    with open_source(path) as source:
        return viewed(embedded(index_of(path), source))


def with_cues(path: Path) -> tuple[list[bytes], Sequence[str], list[int]]:
    with open_source(path) as source:
        return viewed(captioned(index_of(path), source, [(0, 100, "a")], "en"))


def in_parallel(
    path: Path, make: Callable[..., fragdex.View] = muxed
) -> tuple[list[bytes], Sequence[str], list[int]]:
    index = index_of(path)
    view = make([index], source=[path])
    data = view.read(source=[path])
    tracks = [track.id for track in fragdex.index(data).tracks]
    if [t.id for t in index.tracks if t.id in tracks] != tracks:
        raise BuildError("its tracks have other numbers there")
    return [data], view.findings, tracks


KINDS: dict[str, Callable[[Path], tuple[list[bytes], Sequence[str], list[int]]]] = {
    "fragmented": lambda path: viewed(fragdex.view(index_of(path))),
    "faststart": lambda path: viewed(fragdex.view(index_of(path), "faststart")),
    "tracks": lambda path: viewed(fragdex.view(index_of(path), "tracks")),
    "clip": lambda path: viewed(fragdex.clip(index_of(path))),
    "clip at a key frame": lambda path: viewed(fragdex.clip(index_of(path), at_key_frame=True)),
    "join": lambda path: viewed(fragdex.join([index_of(path)] * 2)),
    "in parallel": in_parallel,
    "clip of several": lambda path: in_parallel(path, clip_of_several),
    "package": packaged,
    "embed": indexed,
    "captioned": with_cues,
}


@pytest.fixture(scope="module")
def compared() -> Counter[str]:
    return Counter()


OWN = {"decode-time", "sample-place", "box-size"}
"""What copies of whole fragments keep: times that fall back, samples that are not there, and the
rest of a file that was cut off."""


def wrong(kind: str, media: list[bytes]) -> list[str]:
    """What breaks a rule in an output."""
    if kind != "package":
        return [f"{kind}: {one}" for one in check_bmff(media[0])]
    init, found = b"", []
    for part in media:
        init = part if part[4:8] == b"ftyp" else init
        found += check_bmff(part) if part is init else check_bmff(part, init)
    return [f"{kind}: {one}" for one in found]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_goes_in_comes_out_or_is_named_and_is_right(path: Path) -> None:
    compare(path)


def compare(path: Path) -> None:
    """Hold every kind of output of a file to what is in the file."""
    data = path.read_bytes()
    try:
        source = index_of(path)
        boxes = parse(data)
    except FragdexError:
        return  # nothing can be written of it
    if len(source.periods) != 1:
        return
    known = {one.code for one in source.findings}
    broken = {one.rule for one in check_bmff(data)}
    own = OWN if OWN & broken else set()
    wanted = Counter(contents(boxes))
    references = {
        (int(trak.find("tkhd")["track_ID"]), one.type): set(map(int, one["track_IDs"]))  # type: ignore[index]
        for box in boxes
        for trak in box.find_all("trak")
        for one in trak.find_all("tref/*")
        if "track_IDs" in one
    }
    for name, make in KINDS.items():
        try:
            media, findings, tracks = make(path)
        except FragdexError:
            continue  # refused by name
        # a copy with captions keeps the segment indexes of its source, which may lie
        may = own | (broken & {"sidx", "tfra"} if name == "captioned" else set())
        assert [
            one for one in wrong(name, media) if not any(f"({rule}" in one for rule in may)
        ] == []
        if name != "package":
            findings_made = fragdex.index(media[0], exact=True).findings
            assert {one.code for one in findings_made} <= known, name
        made = Counter(owned for part in media for owned in contents(parse(part)))
        named = [one for one in findings if getattr(one, "code", "") == "left-out"]
        gone = {one.what for one in named}  # type: ignore[attr-defined]
        for (track, what), count in wanted.items():
            if track and track not in tracks:
                found = any(f"track {track} " in one for one in gone)
                found = found or (name == "package" and track in as_text(path))
            elif references.get((track, what), {track}).isdisjoint(tracks):
                found = True  # it goes with the tracks that it names
            else:
                # events count; of others one may stand for many
                least = count if what.startswith("emsg") else 1
                found = made[track, what] >= least or any(what in one for one in gone)
            assert found, f"{what} of track {track} is not in {name}, and not named: {findings}"
        for sentence in named:
            assert sentence.why  # type: ignore[attr-defined]
            kind = 0, sentence.what  # type: ignore[attr-defined]
            assert kind not in wanted or made[kind] < wanted[kind], f"{sentence}, and is in {name}"


def auxiliary(fragmented: bool, data: bytes) -> bytes:
    """A film with a byte of auxiliary information of type `abcd` for each sample."""
    told = {"flags": 1, "aux_info_type": "abcd", "aux_info_type_parameter": 0}

    def boxes(count: int, at: int) -> list[Box]:
        entries = np.array([(at,)], [("offset", ">u4")])
        saiz = make_box("saiz", **told, default_sample_info_size=1, sample_count=count)
        return [saiz, make_box("saio", **told, entries=entries)]

    if not fragmented:
        count = int(find(parse(data), "moov/trak/mdia/minf/stbl/stsz")["sample_count"])  # type: ignore[index]

        def more(box: Box) -> Box:
            return box.replace(children=[*box.children, *boxes(count, len(data) - count)])

        def later(rows: Box) -> Box:
            entries = rows["entries"].copy()
            entries["chunk_offset"] += sum(len(build(box)) for box in boxes(1, 0))
            return rows.replace(entries=entries)

        moved = edit(data, "moov/trak/mdia/minf/stbl/stco", later)
        return edit(moved, "moov/trak[1]/mdia/minf/stbl", more)
    longer = sum(len(build(box)) for box in boxes(1, 0))

    def moved(trun: Box) -> Box:
        return trun.replace(data_offset=trun["data_offset"] + longer)

    def moof(box: Box) -> Box:
        box = edit(box, "traf/trun", moved)
        trun = box.find("traf/trun")
        assert trun is not None
        told_here = boxes(int(trun["sample_count"]), int(trun["data_offset"]))
        return edit(box, "traf[1]", lambda one: one.replace(children=[*one.children, *told_here]))

    return edit(data, "moof", moof)


@pytest.mark.parametrize("fragmented", [False, True])
def test_auxiliary_information_of_any_type_is_there_or_named(
    fragmented: bool, tmp_path: Path
) -> None:
    data = auxiliary(fragmented, movie(4, tracks=2, fragmented=fragmented))
    path = tmp_path / "auxiliary.mp4"
    path.write_bytes(data)
    compare(path)
    left = fragdex.index(data, exact=True).window(1, 0, 2).left_out(data)
    assert any("saiz abcd" in one for one in left)


@pytest.mark.parametrize("name", ["tags.mp4", "chapters.mp4", "frag-two-languages.mp4"])
@pytest.mark.parametrize("kind", ["fragmented", "faststart", "clip", "clip at a key frame"])
def test_names_languages_and_chapters_are_the_same(name: str, kind: str) -> None:
    source = fragdex.index(FIXTURES / name, exact=True)
    made = fragdex.index(KINDS[kind](FIXTURES / name)[0][0], exact=True)

    def said(index: fragdex.Index) -> list[Any]:
        return [
            (t.id, t.info.language, t.info.title, t.info.extended_language) for t in index.tracks
        ]

    assert said(made) == said(source)
    assert made.periods[0].movie.chapters == source.periods[0].movie.chapters


@pytest.mark.parametrize("kind", ["fragmented", "clip at a key frame", "join", "package"])
def test_events_keep_their_times_and_their_messages(kind: str) -> None:
    path = FIXTURES / "made" / "emsg.mp4"
    boxes = parse(path.read_bytes())
    begins, begin = [], 0.0
    track = fragdex.index(path, exact=True).track(1)
    starts = dict(zip(track.fragments.moof_offset.tolist(), track.fragments.cts_min, strict=True))
    events: list[tuple[float, bytes]] = []
    for box in boxes:
        if box.type == "emsg":
            begins.append(box)
        elif box.type == "moof":
            begin = int(starts[box.offset]) / track.timescale
            events += [seen(one, begin) for one in begins]
            begins = []
    media, findings, _ = KINDS[kind](path)
    made = [box for part in media for box in parse(part) if box.type == "emsg"]
    again = 1 + (kind == "join")
    later = [(time + 0.36, data) for time, data in events] * (again - 1)
    shown = [seen(box, 0.02 if box.get("version") == 0 else 0) for box in made]
    if kind == "clip at a key frame":
        # copied as they are: those of version 0 count from their own fragment
        assert [data for _, data in shown] == [data for _, data in events]
    else:
        assert near(shown, events + later)
    assert findings == ()


def seen(box: Box, begin: float) -> tuple[float, bytes]:
    """Seconds of presentation at which an event is, and its message."""
    ticks = box.get("presentation_time")
    time = begin + box["presentation_time_delta"] / box["timescale"] if ticks is None else 0.0
    return (time if ticks is None else ticks / box["timescale"]), bytes(box["message_data"])


def near(made: Sequence[tuple[float, bytes]], wanted: Sequence[tuple[float, bytes]]) -> bool:
    return [data for _, data in made] == [data for _, data in wanted] and all(
        abs(one - other) < 0.002 for (one, _), (other, _) in zip(made, wanted, strict=True)
    )


def test_a_million_events_cost_no_memory_for_each() -> None:
    """Hostile: events that a few bytes each repeat."""
    from fragdex.muxing.between import MOST_EVENTS, between

    event = build(make_box("emsg", version=1, timescale=1, scheme_id_uri="u"))
    data = movie(1)
    at = data.index(b"moof") - 4
    many = data[:at] + event * (MOST_EVENTS + 9) + data[at:]
    index = fragdex.index(many)
    found = between(index.periods[0], lambda part: many[part.start : part.stop], size=len(many))
    assert len(found.events) == MOST_EVENTS
    assert found.boxes[0, "emsg"] == 9
    view = fragdex.view(many)
    assert any("emsg (9 boxes)" in one for one in view.findings)
    assert view.read().count(b"emsg") == MOST_EVENTS
