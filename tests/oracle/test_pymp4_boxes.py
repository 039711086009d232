"""pymp4 reads every moov, moof and sidx of the fixtures, and both say the same of each field.

Places, sizes and nesting are compared as well. What pymp4 cannot read is listed by type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fragdex
from oracle.media_files import fixture_files
from oracle.pymp4_entries import comparable

pytestmark = pytest.mark.pymp4

FILES = fixture_files()
COMPARED = ("moov", "moof", "sidx")
Said = dict[str, Any]

# Boxes in which pymp4 stumbles: type → a piece of what it says, and why it is its own fault.
STUMBLES = {
    "senc": (
        "sample_encryption_info",
        "it looks for the box's flags inside a sample's record (ISO/IEC 23001-7, 7.2)",
    ),
    "uuid": (
        "sample_encryption_info",
        "the same in PIFF's own box (PIFF 1.1, 5.3.2)",
    ),
    "vmhd": (
        "expected 1 but parsed 0",
        "the flags should be 1 (ISO/IEC 14496-12, 12.1.2), but a file in which they are not is no "
        "harder to read",
    ),
    "hdlr": (
        "missing terminator",
        "QuickTime counts the bytes of the name, ISO ends it with a zero (ISO/IEC 14496-12, 8.4.3)",
    ),
}
# Boxes that it reads wrongly, without stumbling.
MISREADS = {"stz2": "sample_count is 32 bits wide; it takes 24 (ISO/IEC 14496-12, 8.7.3.3)"}
# Boxes of which it leaves the end unread, without harm to what it did read.
READS_IN_PART = {"stsd": "the boxes behind the fields of an audio or video sample entry"}


@pytest.fixture(scope="module")
def said(ask_pymp4: Callable[..., list[Said]]) -> dict[str, list[Said]]:
    """What pymp4 says of each file's top-level boxes."""
    by_file: dict[str, list[Said]] = {str(path): [] for path in FILES.values()}
    for line in ask_pymp4(*FILES.values()):
        by_file[line["file"]].append(line)
    return {name: by_file[str(path)] for name, path in FILES.items()}


def pairs(box: fragdex.boxes.Box, node: Said) -> Iterator[tuple[fragdex.boxes.Box, Said]]:
    """Each box of ours beside the node of the same place; their order and number must agree."""
    yield box, node
    if "children" in node:
        assert [child.type for child in box] == [child["type"] for child in node["children"]]
        for child, theirs in zip(box, node["children"], strict=True):
            yield from pairs(child, theirs)


def compared(path: Path, lines: list[Said]) -> list[tuple[fragdex.boxes.Box, Said]]:
    boxes = fragdex.boxes.parse(path.read_bytes())
    # The line without a tree tells of the box that the end of the file cuts off.
    whole = [line["tree"] for line in lines if "tree" in line]
    assert [box.type for box in boxes] == [node["type"] for node in whole]
    return [
        pair
        for box, node in zip(boxes, whole, strict=True)
        if box.type in COMPARED
        for pair in pairs(box, node)
    ]


def hold(path: Path, lines: list[Said]) -> None:
    for box, node in compared(path, lines):
        # For us the user type of a uuid box is part of its header (4.2).
        header_size = box.header_size - 16 * (box.type == "uuid")
        place = (box.offset, box.size, header_size)
        assert place == (node["offset"], node["size"], node["header_size"]), box.type
        if "error" in node:
            assert STUMBLES[box.type][0] in node["error"]
        elif "fields" in node and box.type not in MISREADS:
            ours, theirs = comparable(box, node["fields"])
            assert ours == theirs, f"{box.type} at byte {box.offset}"
            assert "unread" not in node or box.type in READS_IN_PART


@pytest.mark.parametrize("name", FILES)
def test_pymp4_says_the_same_of_every_box(name: str, said: dict[str, list[Said]]) -> None:
    hold(FILES[name], said[name])


@pytest.mark.corpus
def test_pymp4_says_the_same_of_the_corpus(
    corpus: Path, ask_pymp4: Callable[..., list[Said]]
) -> None:
    for path in sorted(corpus.glob("*__*")):
        hold(path, ask_pymp4(path))


def test_enough_was_compared(said: dict[str, list[Said]]) -> None:
    read: Counter[str] = Counter()
    stumbled: Counter[str] = Counter()
    for name in FILES:
        for box, node in compared(FILES[name], said[name]):
            read[box.type] += "fields" in node
            stumbled[box.type] += "error" in node
    assert read["trun"] > 500
    assert read["tfhd"] > 500
    assert read["tfdt"] > 500
    assert read["sidx"] > 20
    assert read["stsz"] > 150
    assert {code for code, times in stumbled.items() if times} <= STUMBLES.keys()
