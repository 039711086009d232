"""Each sample of a source is in its views byte for byte, in decode order: all kinds and files."""

import hashlib
import os
from pathlib import Path

import pytest

import fragdex
from fragdex.errors import FragdexError
from fragdex.muxing.kinds import described

FIXTURES = Path(__file__).parents[2] / "fixtures"
SUFFIXES = {".mp4", ".m4a", ".mov", ".3gp", ".3g2", ".f4v", ".ismv", ".isma"}
FOLDERS = [FIXTURES, *(Path(p) for p in [os.environ.get("FRAGDEX_CORPUS")] if p)]
FILES = [path for folder in FOLDERS for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES]
KINDS = ("fragmented", "faststart", "tracks", "timeline")


def hashes(data, track):
    places = zip(track.samples.offset.tolist(), track.samples.size.tolist(), strict=True)
    return [hashlib.md5(data[at : at + size]).hexdigest() for at, size in places]


def in_order(part, whole):
    """Whether the one is a run of the other, from any place on."""
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_md5s_of_all_samples(path):
    data = path.read_bytes()
    try:
        index = fragdex.index(path, exact=True)
    except FragdexError:
        return  # damaged on purpose
    for kind in KINDS:
        try:
            view = described(index, kind)
            copy = view.read()
        except FragdexError:
            continue  # the last test counts how many are not refused
        if path.name.startswith("cut-") and kind == "faststart":
            continue  # as cut as its source
        own = fragdex.index(copy, exact=True)
        for track in own.tracks if len(index.periods) == 1 else ():
            if not len(track.fragments):
                continue
            new, old = hashes(copy, track), hashes(data, index.track(track.id))
            if kind == "faststart" and index.how.method == "stbl":
                assert new == old
            # what an edit list hides at the end, and what the file no longer has, is left out
            assert in_order(new, old), f"{kind}, track {track.id}"


def test_there_are_forty_files_and_most_have_every_kind():
    kinds = {}
    for path in FILES:
        try:
            index = fragdex.index(path, exact=True)
            for kind in KINDS:
                described(index, kind)
                kinds.setdefault(kind, []).append(path.name)
        except FragdexError:
            continue
    assert all(len(names) >= 40 for names in kinds.values())
