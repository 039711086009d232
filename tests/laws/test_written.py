"""Whatever is written passes `check_bmff`, and indexes without findings that its source has not.

Of all fixtures, `test_census` says it; here fields that a muxer can get wrong have the values at
the edges of what they can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragdex
from fragdex.boxes import Box, build, find, parse
from fragdex.errors import FragdexError
from fragdex.testing import check_bmff, edit
from fragdex.testing.checks.bmff import AT_MOST_ONCE, ONCE
from laws.test_census import FIXTURES, KINDS, index_of, wrong

WRITERS = ("fragmented", "faststart", "tracks", "clip", "clip at a key frame", "join")


EDGES = (0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 2)
SOURCE = (FIXTURES / "moov-last.mp4").read_bytes()


def edited() -> Iterator[Any]:
    """Files that a muxer got wrong."""

    def case(name: str, path: str, change: Callable[[Box], Box]) -> Any:
        return pytest.param(edit(SOURCE, path, change), id=name)

    for value in EDGES:
        for path in ("moov/mvhd", "moov/trak/tkhd", "moov/trak/mdia/mdhd"):
            yield case(f"{path} lasts {value}", path, lambda b, v=value: b.replace(duration=v))
        yield case(
            f"next track {value}", "moov/mvhd", lambda b, v=value: b.replace(next_track_ID=v)
        )
    for brands in (("isom",), ("isom", "mp41"), ("M4V ",)):
        for major in ("M4A ", "isom", "qt  "):
            yield pytest.param(
                build(parse(SOURCE)[0].replace(major_brand=major, compatible_brands=brands))
                + moved(SOURCE, brands),
                id=f"{major} among {brands}",
            )
    yield case("chunks past the end", "moov/trak/mdia/minf/stbl/stco", past_the_end)
    yield case("a chunk of no samples", "moov/trak/mdia/minf/stbl", with_empty_chunk)
    for name in ("moov-last.mp4", "frag-default-base.mp4"):
        data = (FIXTURES / name).read_bytes()
        for path in dict.fromkeys(single(parse(data))):
            for is_last in (False, True):
                where = "at the end" if is_last else "next to it"
                yield pytest.param(again(data, path, is_last), id=f"{name}: {path} again {where}")
    yield pytest.param(SOURCE + b"\1\2\3noise", id="noise after the last box")
    yield pytest.param(SOURCE + bytes(5), id="zeros after the last box")


def single(boxes: Iterable[Box], parent: str = "") -> Iterator[str]:
    """Paths of what may stand once: boxes by rule 6.2.3, and the boxes of a track_ID.

    A second udta is kept as it is: what it says is the user's.
    """
    for box in boxes:
        path = f"{parent}/{box.type}".lstrip("/")
        of = path.split("/")[-2:-1] or [""]
        once = {*ONCE.get(of[0], ()), *AT_MOST_ONCE.get(of[0], ()), "trak", "trex"}
        if box.type in once - {"udta", "mfra"} and not path.startswith("moof"):
            yield path
        yield from single(box.children, path)


def again(data: bytes, path: str, is_last: bool) -> bytes:
    """The file with the first box of a path twice in each box around it."""
    parent, _, code = path.rpartition("/")
    if not parent:
        box = find(parse(data), path)
        return data + data[box.offset : box.stop]

    def twice(box: Box) -> Box:
        children = [*box.children]
        for first in [n for n, child in enumerate(children) if child.type == code][:1]:
            children.insert(len(children) if is_last else first + 1, children[first])
        return box.replace(children=children)

    return edit(data, parent, twice)


def moved(data: bytes, brands: tuple[str, ...]) -> bytes:
    """All after the ftyp, with places that count from the new one's end."""
    ftyp = parse(data)[0]
    more = 16 + 4 * len(brands) - ftyp.size

    def later(box: Box) -> Box:
        rows = box["entries"].copy()
        rows["chunk_offset"] = rows["chunk_offset"].astype(np.int64) + more
        return box.replace(entries=rows)

    return edit(data, "moov/trak/mdia/minf/stbl/stco", later)[ftyp.size :]


def past_the_end(box: Box) -> Box:
    rows = box["entries"].copy()
    rows["chunk_offset"][-1] = (1 << 32) - 9
    return box.replace(entries=rows)


def with_empty_chunk(stbl: Box) -> Box:
    """A chunk of no samples before the others, as some muxers begin."""
    children = []
    for box in stbl:
        if box.type == "stco":
            places = np.concatenate([box["entries"][:1], box["entries"]])
            box = box.replace(entries=places, entry_count=len(places))
        elif box.type == "stsc":
            rows = np.concatenate([box["entries"][:1], box["entries"]])
            rows["first_chunk"][1:] += 1
            rows["samples_per_chunk"][0] = 0
            box = box.replace(entries=rows, entry_count=len(rows))
        children.append(box)
    return stbl.replace(children=children)


@pytest.mark.parametrize("data", [*edited()])
def test_what_is_written_of_a_wrong_file_is_right(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "wrong.mp4"
    path.write_bytes(data)
    known = {one.code for one in index_of(path).findings}
    for kind in WRITERS:
        try:
            media, _, _ = KINDS[kind](path)
        except FragdexError:
            continue
        assert wrong(kind, media) == []
        made = fragdex.index(media[0], exact=True)
        assert {one.code for one in made.findings} <= known, kind


@pytest.mark.parametrize("name", ["moov-last.mp4", "frag-default-base.mp4", "open-gop.mp4"])
@pytest.mark.parametrize("kind", ["fragmented", "faststart", "tracks"])
def test_what_is_written_decodes_to_the_same_frames(name: str, kind: str, tmp_path: Path) -> None:
    av = pytest.importorskip("av", exc_type=ImportError)
    path, copy = FIXTURES / name, tmp_path / "copy.mp4"
    copy.write_bytes(KINDS[kind](path)[0][0])
    wanted = [np.asarray(frame) for frame in fragdex.Frames(path)]
    made = [np.asarray(frame) for frame in fragdex.Frames(copy)]
    assert len(made) == len(wanted)
    assert all(np.array_equal(one, other) for one, other in zip(made, wanted, strict=True))
    with av.open(str(copy)) as container:
        assert sum(1 for _ in container.decode(video=0)) == len(wanted)


def test_a_file_that_is_right_is_copied_to_the_byte() -> None:
    data = (FIXTURES / "faststart.mp4").read_bytes()
    assert check_bmff(data) == []
    assert fragdex.view(data, "faststart").read() == data
