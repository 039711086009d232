"""HLS is written in one file, and DASH in one: what others state twice, they state differently."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fragdex

SOURCES = Path(fragdex.__file__).parent
WRITERS = {
    "packaging/m3u8.py": ("#EXTM3U", "#EXTINF", "#EXT-X-BYTERANGE", "#EXT-X-MAP", "#EXT-X-ENDLIST",
                          "#EXT-X-DISCONTINUITY", "#EXT-X-STREAM-INF", "#EXT-X-MEDIA:"),
    "packaging/mpd.py": ("MPD", "Period", "AdaptationSet", "Representation", "SegmentTimeline",
                         "SegmentTemplate", "ContentProtection", "BaseURL"),
}  # fmt: skip


def written_texts(path: Path) -> list[str]:
    """Text that a module makes: the parts of f-strings, and what is no documentation."""
    tree = ast.parse(path.read_text())
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
    }  # fmt: skip
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documentation
    ]


@pytest.mark.parametrize("writer", WRITERS)
def test_tags_and_elements_are_written_in_one_file(writer: str) -> None:
    words = WRITERS[writer]
    is_hls = words[0].startswith("#")
    writing = set()
    for path in SOURCES.rglob("*.py"):
        name = path.relative_to(SOURCES).as_posix()
        if name.startswith("testing/"):
            continue  # it reads them
        text = path.read_text()
        if ("#EXT" if is_hls else "ElementTree") not in text:
            continue
        made = written_texts(path)
        if any(one.startswith(words) if is_hls else one in words for one in made):
            writing.add(name)
    assert writing == {writer}
