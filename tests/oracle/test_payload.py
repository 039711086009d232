"""At the positions of the index lie pictures: the lengths of their NAL units add up."""

from __future__ import annotations

import pytest

import fragdex
from oracle.media_files import fixture_files
from oracle.payload import inside_mdat, misplaced

# What is made box by box has no pictures in it: test_made_fixtures.py knows its bytes.
FILES = {name: path for name, path in fixture_files().items() if not name.startswith("made/")}
# Nothing can be indexed, or the samples of a progressive file are not all there.
WITHOUT_MEDIA = {"cut-in-moov.mp4", "cut-moov-last.mp4", "cut-faststart.mp4"}


@pytest.mark.parametrize("name", sorted(FILES.keys() - WITHOUT_MEDIA))
def test_samples_are_sequences_of_nal_units(name: str) -> None:
    index = fragdex.index(FILES[name], exact=True)
    assert misplaced(FILES[name].read_bytes(), index) == []


def test_a_stale_base_offset_is_mended_and_strict_keeps_it() -> None:
    path = FILES["frag-global-sidx-stale-base.mp4"]
    data = path.read_bytes()
    mended, strict = fragdex.index(path, exact=True), fragdex.index(path, exact=True, strict=True)
    assert {one.code for one in mended.findings} == {"stale-base-offset"}
    assert misplaced(data, mended) == []
    assert misplaced(data, strict) == ["track 1 of period 0"]
    assert all(inside_mdat(data, track.samples) for track in mended.tracks)
